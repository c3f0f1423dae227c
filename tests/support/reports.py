"""A verify of a small shop in which nearly everything has drifted, for the tests of its report."""

from __future__ import annotations

from datetime import UTC, datetime

from sync_rules.audit.verifier import Verifier
from sync_rules.audit.verify_tally import DriftFinding
from sync_rules.cli.show.drift_page import VerifyReport, note_examples
from sync_rules.cli.show.text import format_command
from tests.support.builders import s
from tests.support.every_kind import order, part, post, rules_of, user
from tests.support.worlds import Scene

SECRET = "s3cret-v4lue"  # occurs in values of items only
SCRIPT = "<script>alert('x')</script>"
HOSTILE = f'1"&{SCRIPT}\u202e\x07'
STARTED = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
ORDERS = 25


def verified(*, clean: bool = False, repair: bool = False, **changes: object) -> VerifyReport:
    """A verify of the shop: `clean`, with nothing wrong in it, but with rules that saw nothing."""
    scene = Scene(rules_of())
    if clean:
        scene.put("parts", part("a"), part("b", "a"))
        scene.rest()
    else:
        scene.there("shop", user(HOSTILE, name=s(SECRET), rank=s(SECRET), email=s("ada@x"), head=s(SECRET)))
        scene.there("shop", *(order(HOSTILE, f"o{number}", 1, user_name=s("SECRET")) for number in range(ORDERS)))
        scene.there("posts", post("p", HOSTILE, SECRET))
        scene.there("parts", part("b", "c"), part("c", "b"))
    names = scene.rules.keeper_names
    verifier = Verifier(scene.rules, scene.world, names, repair=repair, grace_seconds=0)
    examples: dict[str, list[DriftFinding]] = {}
    for _ in note_examples(verifier.sweep(), examples):
        pass
    verifier.grace_seconds = 120.0
    for name in ("share", "grace_seconds", "repair", "tally"):
        if name in changes:
            setattr(verifier, name, changes.pop(name))
    fields: dict[str, object] = {
        "verifier": verifier,
        "names": names,
        "examples": examples,
        "started": STARTED,
        "seconds": 12.34,
        "how": format_command(["verify", "rules.yaml", "--endpoint-url", "http://me:pw@localhost:8000/?token=t"]),
        "endpoint": "localhost:8000",
        "region": "eu-central-1",
    }
    return VerifyReport(**{**fields, **changes})
