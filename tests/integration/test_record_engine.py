"""A recording of what an application and a pipeline did on the embedded engine: whole, redacted, replayed."""

from __future__ import annotations

import json
from dataclasses import replace
from random import Random

import pytest

from sync_rules.lab.delivery import VARIANTS
from sync_rules.lab.recording import read_recording
from sync_rules.lab.recording_replay import replay
from sync_rules.rules.kinds.copy import CopyRule
from tests.support import every_kind
from tests.support.builders import n, s
from tests.support.sites import Site

DEEDS = 60


def work(shop: Site, random: Random) -> None:
    """One action of the application."""
    user_id, order_id = random.choice("12"), random.choice("345")
    what = random.choice(("user", "order", "order", "post", "part", "delete"))
    if what == "delete":
        shop.delete("shop", f"USER#{user_id}", f"ORDER#{order_id}")
        return
    table, item = {
        "user": lambda: ("shop", every_kind.user(user_id, name=s(random.choice(("Ada", "Grace"))), rank=n(4))),
        "order": lambda: ("shop", every_kind.order(user_id, order_id, random.randrange(9), status=s("OPEN"))),
        "post": lambda: ("posts", every_kind.post(random.choice("pq"), user_id, "title")),
        "part": lambda: ("parts", every_kind.part(random.choice(("CM1", "CM2")), random.choice(("CM1", None)))),
    }[what]()
    shop.put(table, item)


def test_record_engine_records_what_happens_and_replay_ends_right(engine, tmp_path, monkeypatch, capsys):
    """A recording has what the streams have, replays without a mismatch, and reveals a broken rule."""
    monkeypatch.chdir(tmp_path)
    shop = Site(engine, tmp_path, lambda prefix: every_kind.text_of(every_kind.RULES, prefix))
    random = Random(11)
    for _ in range(4):
        for _ in range(DEEDS // 4):
            work(shop, random)
        assert shop.command("run", "--once") == 0
    capsys.readouterr()
    for name, words in {"all": [], "redacted": ["--redact"], "posts": ["--table", "posts"]}.items():
        out = tmp_path / f"{name}.jsonl"
        assert shop.command("record", "--out", out, "--once", "--format", "json", *words) == 0
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    whole, redacted, posts = (
        read_recording(tmp_path / f"{name}.jsonl", shop.rules) for name in ("all", "redacted", "posts")
    )
    assert (
        len(whole.records) == len(redacted.records) == told[0]["records"] > DEEDS // 2
    )  # an action may change nothing
    assert set(told[0]["tables"]) == {"shop", "posts", "parts"}
    assert {one.change.key.table for one in posts} == {"posts"}
    assert redacted.header.redacted
    assert "Grace" not in (tmp_path / "redacted.jsonl").read_text()
    for seed, variant in enumerate(VARIANTS):
        recording, delivery = (whole, redacted)[seed % 2], replace(variant, seed=seed)
        assert replay(recording, shop.rules, delivery) is None
        assert replay(recording, shop.rules, delivery, with_copies=True) is None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CopyRule, "pushes", lambda *_given: False)
        patch.setattr(CopyRule, "pulls", lambda *_given: False)
        found = replay(redacted, shop.rules)
    assert found is not None
    assert found.rule in ("names", "told")
