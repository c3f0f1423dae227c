"""Replay: recorded changes run again in memory, every wrong copy is found, and each replay is reproducible."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from sync_rules.lab.delivery import VARIANTS, Delivery
from sync_rules.lab.recording import Recorded
from sync_rules.lab.recording_replay import Mismatch, Replay, ReplayEvent, list_history, load_data, make_action, replay
from sync_rules.lab.rehearsal import Rehearsal
from sync_rules.lab.scenario import Expire
from sync_rules.language.load import parse_rules
from sync_rules.model.errors import StoreError, UserError
from sync_rules.model.items import Change
from sync_rules.model.writes import Delete, Put, Update
from sync_rules.pipeline import consumer, reconcile
from sync_rules.rules.kinds.copy import CopyRule
from sync_rules.rules.ruleset import Rules
from tests.support import every_kind
from tests.support.builders import author_item, book_item, key, m, n, s
from tests.support.depth import spread_over_night
from tests.support.tapes import Tape, recorded, shopping
from tests.support.worlds import record_of

IN_ORDER = VARIANTS[0]
LIBRARY = """
tables:
  authors: {key: {author_id: S}}
  books: {key: {book_id: S}, indexes: {by_author: {author_id: S}}}
entities: {author: {table: authors}, book: {table: books}}
rules:
"""
NAMES = "  names: {copy: author.name, into: book.author.name, on_delete: %s}\n"


def library(rules: str = NAMES % "clear") -> Rules:
    return parse_rules(LIBRARY + rules)


RULES = library()
AUTHOR, BOOK = key(RULES.tables["authors"], "a"), key(RULES.tables["books"], "b")


@pytest.fixture
def records_of(tmp_path):
    """Changes as records, as if they were read from a recording."""
    made = iter(range(1_000))

    def make(*changes: Change, rules: Rules = RULES) -> tuple[Recorded, ...]:
        bodies = [record_of(rules, replace(change, position=str(number))) for number, change in enumerate(changes, 1)]
        return recorded(tmp_path / f"{next(made)}.jsonl", rules, bodies)

    return make


def life(tape: Tape) -> Tape:
    """An author who marries, moves and is deleted, and whose book is written whole with what stood there before."""
    tape.put("authors", author_item("a", name=s("Ada")))
    tape.put("books", book_item("b", "a", pages=n(9)))
    stale = tape.item("books", "b")
    assert stale is not None
    tape.put("authors", author_item("a", name=s("Bea")))
    tape.put("books", {**stale, "pages": n(10)})
    tape.do(Delete(AUTHOR, ()))
    return tape


# ---------------------------------------------------------------- what is done
@pytest.mark.parametrize(
    ("change", "action"),
    [
        (Change(BOOK, None, book_item("b", "a")), Put(BOOK, book_item("b", "a"), ())),
        (Change(BOOK, book_item("b", "a"), None), Delete(BOOK, ())),
        (Change(BOOK, book_item("b", "a"), None, expired=True), Expire(BOOK)),
        (
            Change(BOOK, book_item("b", "a", x=n("1.0"), y=n(1), z=n(1)), book_item("b", "c", x=n(1), y=n(2))),
            Update(BOOK, ((("author_id",), s("c")), (("y",), n(2))), (("z",),), ()),
        ),
    ],
    ids=["insert", "remove", "expire", "modify"],
)
def test_replay_does_what_a_record_says(change, action):
    """An INSERT puts, a REMOVE deletes, a MODIFY sets and removes what differs, and nothing else."""
    assert make_action(change) == action


def test_replay_takes_data_for_what_is_not_recorded(records_of, tmp_path):
    """Items that were there all the time come from a file of data; what is recorded too comes from the recording."""
    path = tmp_path / "data.yaml"
    path.write_text("authors: [{author_id: a, name: Ada}]\nbooks: [{book_id: b, author_id: a, pages: 7}]\n")
    records = records_of(Change(BOOK, book_item("b", "a"), book_item("b", "a", pages=n(2))))
    run = Replay(RULES, IN_ORDER)
    assert list(run.list_mismatches(records, load_data(path, RULES))) == []
    assert run.store.item(BOOK) == book_item("b", "a", pages=n(2), author=m(name=s("Ada")))
    path.write_text("writers: {}\n")
    with pytest.raises(UserError, match="no table 'writers'"):
        load_data(path, RULES)


def test_replay_leaves_the_work_of_rules_to_the_rules(tmp_path):
    """Records that change copies alone are left out, or the recorded pipeline would do what these rules do not."""
    records = recorded(tmp_path / "r.jsonl", RULES, life(Tape(RULES)).bodies)
    plain, faithful = Replay(RULES, IN_ORDER), Replay(RULES, IN_ORDER, with_copies=True)
    assert list(plain.list_mismatches(records)) == list(faithful.list_mismatches(records)) == []
    assert plain.counts["done"] == 5
    assert plain.counts["copies"] == len(records) - 5 > 0
    assert (faithful.counts["done"], faithful.counts["copies"]) == (len(records), 0)
    idle = parse_rules(LIBRARY + "  other: copy author.title into book.title\n")
    assert Replay(idle, IN_ORDER).counts["copies"] == 0


def test_replay_does_not_bring_back_what_the_rules_deleted(records_of):
    """A recorded change of an item that a rule has deleted is skipped and counted."""
    rules = library(NAMES % "delete")
    records = records_of(
        Change(AUTHOR, None, author_item("a", name=s("Ada"))),
        Change(BOOK, None, book_item("b", "a")),
        Change(AUTHOR, author_item("a", name=s("Ada")), None),
        Change(BOOK, book_item("b", "a"), None),
        Change(BOOK, book_item("b", "a"), book_item("b", "a", pages=n(2))),
    )
    for variant in VARIANTS:
        run = Replay(rules, variant)
        assert list(run.list_mismatches(records)) == []
        assert run.store.item(BOOK) is None
        assert run.counts["done"] + run.counts["gone"] + run.counts["copies"] == 5


def test_replay_keeps_an_item_of_the_application_under_the_key_of_a_mirror(tmp_path):
    """An item that names no source is no mirror: it is replayed, and neither changed nor missed at the end."""
    rules = every_kind.rules_of()
    own = {"PK": s("EMAIL#a@b"), "SK": s("EMAIL"), "name": s("own")}
    tape = Tape(rules)
    tape.put("shop", own, every_kind.user("1", email=s("a@b")), own | {"name": s("edited")})
    run = Replay(rules, IN_ORDER)
    assert list(run.list_mismatches(recorded(tmp_path / "r.jsonl", rules, tape.bodies))) == []
    assert run.store.item(rules.tables["shop"].key_of(own)) == own | {"name": s("edited")}


# ---------------------------------------------------------------- what ends wrong
def without_deletes(patch: pytest.MonkeyPatch) -> None:
    """A pipeline that does not look at records of deletes."""
    real = consumer.make_tasks
    patch.setattr(consumer, "make_tasks", lambda changes, rules: real([c for c in changes if c.new is not None], rules))


def without_removes(patch: pytest.MonkeyPatch) -> None:
    """A pipeline that never takes a copy away."""
    real = reconcile.find_differences
    patch.setattr(
        reconcile, "find_differences", lambda *given: {p: v for p, v in real(*given).items() if v is not None}
    )


def no_pulls(patch: pytest.MonkeyPatch) -> None:
    """A pipeline that trusts what stands on a target."""
    patch.setattr(CopyRule, "pulls", lambda _self, change: change.old is None)


def first_wrong(records: tuple[Recorded, ...], rules: Rules) -> Mismatch:
    """The first mismatch that the replay command would find."""
    found = (replay(records, rules, replace(variant, seed=seed)) for seed in range(3) for variant in VARIANTS)
    mismatch = next((one for one in found if one is not None), None)
    assert mismatch is not None
    return mismatch


@pytest.mark.parametrize(
    ("mutant", "drift"),
    [(without_deletes, "orphan"), (without_removes, "orphan"), (no_pulls, "wrong")],
    ids=["deletes-ignored", "nothing-removed", "targets-not-watched"],
)
def test_replay_finds_what_a_broken_pipeline_leaves(tmp_path, monkeypatch, mutant, drift):
    """The rule, the item, the path and the kind of drift are named, with the history of both items and no value."""
    tape = life(Tape(RULES))
    if mutant is no_pulls:
        tape.put("authors", author_item("a", name=s("Cleo")))
        tape.do(Update(BOOK, ((("author",), m(name=s("Zoe"))), (("pages",), n(1))), (), ()))
    records = recorded(tmp_path / "r.jsonl", RULES, tape.bodies)
    mutant(monkeypatch)
    found = first_wrong(records, RULES)
    assert (found.rule, found.drift, found.key, found.path) == ("names", drift, BOOK, "author.name")
    assert "rule names" in str(found)
    assert "books[b] author.name" in str(found)
    assert {event.change.key for event in found.history} == {AUTHOR, BOOK}
    assert {event.by for event in found.history} == {"record", "rules"}
    assert not any(name in str(found) for name in ("Ada", "Bea", "Zoe"))
    assert "Ada" in "\n".join(found.list_history_lines(values=True))
    assert json.loads(json.dumps(found.body()))["rule"] == "names"


def test_replay_finds_a_target_that_was_to_be_deleted(tmp_path, monkeypatch):
    """An orphan older than its source's deletion is a mismatch under `on_delete: delete`; a later one is not."""
    rules = library(NAMES % "delete")
    tape = Tape(rules)
    tape.put("authors", author_item("a", name=s("Ada")))
    tape.put("books", book_item("b", "a"))
    tape.do(Delete(AUTHOR, ()))
    tape.put("books", book_item("late", "a"))
    records = recorded(tmp_path / "r.jsonl", rules, tape.bodies)
    assert replay(records, rules) is None
    without_deletes(monkeypatch)
    found = first_wrong(records, rules)
    assert (found.drift, found.key, found.check) == ("orphan", BOOK, "rules")
    assert not any(event.change.key == key(rules.tables["books"], "late") for event in found.history)


def test_replay_finds_what_the_pipeline_did_to_the_application(tmp_path, monkeypatch):
    """A pipeline that writes over what the application wrote, or makes an item, is found though every copy is right."""
    records = recorded(tmp_path / "r.jsonl", RULES, life(Tape(RULES)).bodies)
    real = Rehearsal.work

    def meddling(self):
        went_on = real(self)
        if not went_on and self.item(BOOK) is not None:
            self.store.update(BOOK, [(("pages",), n(77))])
        return went_on

    monkeypatch.setattr(Rehearsal, "work", meddling)
    found = replay(records, RULES)
    assert found is not None
    assert (found.rule, found.check, found.key, found.path) == ("", "application", BOOK, "pages")
    assert "not what the application wrote" in str(found)


def test_replay_finds_what_differs_from_a_recompute(tmp_path, monkeypatch):
    """A recomputation from scratch finds a wrong copy that verify misses."""
    records = recorded(tmp_path / "r.jsonl", RULES, life(Tape(RULES)).bodies[:-2])
    monkeypatch.setattr("sync_rules.lab.recompute.list_differences", lambda *_given: ())
    monkeypatch.setattr(CopyRule, "pushes", lambda *_given: False)
    monkeypatch.setattr(CopyRule, "pulls", lambda _self, change: change.old is None)
    found = first_wrong(records, RULES)
    assert (found.rule, found.check, found.key) == ("names", "recompute", BOOK)


def test_replay_tells_what_never_ends_and_what_fails(records_of, monkeypatch):
    """No rest, and work that fails though nothing went wrong, are findings as well."""
    records = records_of(Change(BOOK, None, book_item("b", "a")))
    with monkeypatch.context() as patch:
        patch.setattr(Rehearsal, "rest", lambda _self: False)
        restless = replay(records, RULES)
    assert restless is not None
    assert restless.drift == "restless"

    def broken(_self, _request):
        raise StoreError("Broken")

    monkeypatch.setattr("sync_rules.adapters.memory.MemoryStore.read", broken)
    failed = replay(records_of(Change(AUTHOR, None, author_item("a")), Change(BOOK, None, book_item("b", "a"))), RULES)
    assert failed is not None
    assert (failed.drift, failed.reason) == ("failed", "Broken")


@pytest.mark.parametrize("variant", spread_over_night(VARIANTS, share=len(VARIANTS)), ids=lambda one: one.name)
def test_replay_happens_again(tmp_path, variant):
    """The same records, delivery and seed give the same events, one by one; another seed gives others."""
    rules = every_kind.rules_of()
    records = recorded(tmp_path / "r.jsonl", rules, shopping(rules, 7, actions=25).bodies)

    def events(delivery: Delivery) -> list[ReplayEvent]:
        run = Replay(rules, delivery)
        assert list(run.list_mismatches(records)) == []
        return run.events

    first = events(replace(variant, seed=1))
    assert events(replace(variant, seed=1)) == first
    assert events(replace(variant, seed=2)) != first


# ---------------------------------------------------------------- history
def test_history_is_of_the_items_that_a_rule_links(tmp_path):
    """The order, its user, and for a count the books between them; not what other rules have to do with."""
    rules = every_kind.rules_of()
    tape = Tape(rules)
    tape.put("shop", every_kind.user("1", name=s("Ada"), email=s("a@b")), every_kind.order("1", "2", 5))
    tape.put("shop", every_kind.user("2"), every_kind.order("2", "3", 5))
    tape.put("posts", every_kind.post("p", "1", "title"))
    records = recorded(tmp_path / "r.jsonl", rules, tape.bodies)
    events = [ReplayEvent("record", one.change, one.number) for one in records]
    user = key(rules.tables["shop"], "USER#1", "PROFILE")

    def related(rule: str) -> set[str]:
        return {str(event.change.key) for event in list_history(events, rules, rule, [user])}

    order = "shop[USER#1, ORDER#2]"
    assert related("posts") == {str(user), "posts[p]"}
    assert related("tags") == {str(user), order}
    mail = key(rules.tables["shop"], "EMAIL#a@b", "EMAIL")
    assert {str(event.change.key) for event in list_history(events, rules, "mails", [mail])} == {str(user), str(mail)}
    assert {str(user), order} < related("counted") == related("counted.ledger")
    assert {one.partition("/")[0] for one in related("counted") - {str(user), order}} == {"ledger[counted"}
    assert {str(user), order} < related("least")
    assert related("") == {str(user)}


def test_event_tells_names_and_values_only_when_asked():
    """An event prints the names of attributes that changed, without the key's, and their values only on request."""
    change = Change(BOOK, book_item("b", "a", x=n("1.0"), y=s("old")), book_item("b", "a", x=n(1), z=s("new")))
    event = ReplayEvent("rules", change)
    assert (event.name, event.text()) == ("MODIFY", "-y, z")
    assert event.text(values=True) == 'y: "old" -> <absent>, z: <absent> -> "new"'
    assert ReplayEvent("data", Change(BOOK, book_item("b", "a"), None)).text() == ""
