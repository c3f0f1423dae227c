"""Redaction: every value is another, and everything still hangs together."""

from __future__ import annotations

import base64
import json
import re
from collections import Counter
from decimal import Decimal
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sync_rules.lab.delivery import VARIANTS
from sync_rules.lab.recording_replay import Replay
from sync_rules.lab.redact import WORD, Redactor
from sync_rules.language.load import parse_rules
from sync_rules.model.errors import UserError
from sync_rules.model.numbers import format_number, parse_number
from sync_rules.rules.ruleset import Rules
from tests.support import every_kind
from tests.support.depth import deep, spread_over_night
from tests.support.tapes import recorded, shopping

RULES = every_kind.rules_of()
REDACTOR = Redactor(RULES, b"salt")


def rules_with(template: str, rule: str = "") -> Rules:
    tables = "{things: {key: {PK: S}}, others: {key: {id: S}, indexes: {by_a: {a: S}}}}"
    entities = f"{{thing: {{table: things, key: {{PK: '{template}'}}}}, other: {{table: others}}}}"
    return parse_rules(f"tables: {tables}\nentities: {entities}\nrules: {{{rule}}}\n")


def body_of(key: str) -> dict:
    arn = "arn:aws:dynamodb:us-east-1:111122223333:table/things/stream/x"
    return {"eventSourceARN": arn, "dynamodb": {"Keys": {"PK": {"S": key}}, "SizeBytes": 9}}


# ---------------------------------------------------------------- values
def test_redact_replaces_each_piece_between_separators():
    """Separators and words of the key templates stay; the same piece becomes the same wherever it stands."""
    user, path = REDACTOR.text("USER#Ada K.-7"), REDACTOR.text("7#é🙂#Ada K.")
    name, digits, odd = REDACTOR.text("Ada K."), REDACTOR.text("7"), REDACTOR.text("é🙂")
    assert user == f"USER#{name}-{digits}"
    assert path == f"{digits}#{odd}#{name}"
    assert len({name, digits, odd, "Ada K.", "7", "é🙂"}) == 6
    assert (name.isalpha(), odd.isalpha(), digits.isdigit()) == (True, True, True)


def test_redact_keeps_the_shape_where_asked():
    """With keep_shape all that is no letter and no digit stays in its place, and booleans stay."""
    redactor = Redactor(RULES, b"salt", keep_shape=True)
    first, last = redactor.text("Ada"), redactor.text("K")
    assert redactor.text("Ada K. 🙂_") == f"{first} {last}. 🙂_"
    assert redactor.value({"BOOL": False}) == {"BOOL": False}
    assert re.fullmatch(r"-\d{15}\.\d{15}", redactor.number("-12.50"))


@pytest.mark.parametrize(
    "text", ["delete", "keep", "live", "count", "recount", "map", "shop", "user", "name", "Ulrich", "U", "X", "true"]
)
def test_redact_hides_words_of_options_and_names(text):
    """The words of options, of tables and of attributes are values like any other; so is a text that begins with a
    literal that only touches a field.
    """
    options = rules_with("U{user_id}X", "names: {copy: thing.a, into: other.b, link: {user_id: a}, on_delete: delete}")
    for redactor in (REDACTOR, Redactor(options, b"salt")):
        found = redactor.text(text)
        assert found != text
        assert not found.startswith(text[0]) or not found.startswith(text[:2]) or len(text) == 1


@given(st.text(min_size=1, max_size=20))
@settings(max_examples=deep(300))
def test_redact_leaves_nothing_of_a_text_but_separators(text):
    """No character of a value is left, of any script, except the separators of the rules and what a token holds."""
    separators, words = set("#-|"), REDACTOR.words
    if not words & set(re.split(r"[#|-]", text)):
        token = set("abcdefghijklmnopqrstuvwxyz0123456789")
        assert set(REDACTOR.text(text)) <= separators | token


@given(st.integers(-(10**37), 10**37).map(Decimal).flatmap(lambda n: st.integers(0, 20).map(lambda e: n.scaleb(-e))))
@settings(max_examples=deep(300))
def test_redact_gives_a_number_and_its_text_the_same_digits(number):
    """A link from a number to the text in a composite key leads where it led."""
    found = REDACTOR.number(str(number))
    assert found == REDACTOR.text(format_number(number))
    assert parse_number(found) is not None
    assert REDACTOR.number(format_number(number)) == found


def test_redact_keeps_types():
    """Sets stay sets, of as many; maps, lists and null keep their shape; names in maps are values; each boolean is
    true.
    """
    value = {
        "M": {
            "home": {"SS": ["a", "b"]},
            "name": {"NS": ["1", "2.5"]},
            "l": {
                "L": [{"BOOL": True}, {"NULL": True}, {"S": ""}, {"B": base64.b64encode(b"raw").decode()}, {"B": ""}]
            },
            "bs": {"BS": [base64.b64encode(b"raw").decode()]},
        }
    }
    found = REDACTOR.value(value)["M"]
    assert list(found) == [REDACTOR.text("home"), "name", REDACTOR.text("l"), REDACTOR.text("bs")]
    home, name, listed, binaries = found.values()
    assert len(set(home["SS"])) == len(set(name["NS"])) == 2
    assert listed["L"][:3] == [{"BOOL": True}, {"NULL": True}, {"S": ""}]
    assert listed["L"][4] == {"B": ""}
    assert binaries["BS"] == [listed["L"][3]["B"]]
    assert base64.b64decode(binaries["BS"][0]) not in (b"raw", b"")


@given(st.lists(st.text(alphabet="0123456789", min_size=1, max_size=4), unique=True, max_size=60))
def test_redact_keeps_what_can_name_a_number(texts):
    """A text that is no number's spelling, such as 007, is none afterwards; different texts stay different."""
    found = [REDACTOR.text(text) for text in texts]
    assert len(set(found)) == len(texts)
    assert [one.startswith("0") for one in found] == [text.startswith("0") for text in texts]


# ---------------------------------------------------------------- keys


def test_redact_refuses_a_key_that_would_come_to_mean_something_else():
    """A key whose token holds the template's separator, or that is too long once redacted, is refused without its
    value.
    """
    inside = Redactor(rules_with("{a}x{b}"), b"salt")
    hidden = next(name for name in map("n{}".format, count()) if "x" in inside.text(name))
    long = Redactor(rules_with("T#{rest}"), b"salt")
    for redactor, key, found in (
        (inside, f"{hidden}x2", "read it as another key"),
        (long, "T#" + "#a" * 1_000, "too long"),
    ):
        with pytest.raises(UserError, match=found) as caught:
            redactor.record(body_of(key))
        assert "thing" in str(caught.value)
        assert key not in str(caught.value)


def test_redact_refuses_padded_numbers_before_anything_is_read():
    """Their order is in their digits, which a hash does not keep; the entity is named."""
    rules = rules_with("V#{version:pad(6)}")
    for tables in ((), ("things",)):
        with pytest.raises(UserError, match=r"entity thing hold version padded.*without this entity"):
            Redactor(rules, b"salt", tables=tables)
    Redactor(rules, b"salt", tables=("others",))


# ---------------------------------------------------------------- whole recordings
def texts_of(value: object) -> list[str]:
    """Every text inside a value, names in maps too."""
    if isinstance(value, dict):
        return [text for name, inner in value.items() for text in (*texts_of(name), *texts_of(inner))]
    if isinstance(value, list):
        return [text for inner in value for text in texts_of(inner)]
    return [value] if isinstance(value, str) else []


def pieces(bodies: list[dict]) -> set[str]:
    """The runs of three or more characters in the values of records."""
    images = [
        image for body in bodies for name in ("Keys", "NewImage", "OldImage") if (image := body["dynamodb"].get(name))
    ]
    values = [value for image in images for one in image.values() for value in one.values()]
    return {piece for text in texts_of(values) for piece in WORD.findall(text) if len(piece) >= 3}


def verdicts(rules: Rules, records, seed: int, *, with_copies: bool) -> tuple:
    """The result of a replay: the mismatches, and the number of copies per table and rule."""
    run = Replay(rules, VARIANTS[seed % len(VARIANTS)], with_copies=with_copies)
    wrong = [(one.rule, one.drift) for one in run.list_mismatches(records)]
    copies: Counter[str] = Counter()
    for rule in rules.rules.values():
        for item in run.store.items(rule.target.table.name):
            at = rule.target.table.key_of(item)
            if at is not None and rules.entity_of(at) is rule.target:
                copies[rule.name] += sum(path[0] in item for path in rule.copies)
                copies[f"{rule.name} {rule.target.name}"] += 1
    return wrong, copies


@pytest.mark.parametrize("seed", spread_over_night(range(3)))
def test_redact_changes_nothing_that_a_replay_shows(tmp_path, seed):
    """A redacted recording ends as the recording does: the same items of each entity, the same number of copies per rule;
    and nothing of three characters that the rules do not say is left of any value.
    """
    tape = shopping(RULES, seed)
    redactor = Redactor(RULES, b"salt")
    redacted = [redactor.record(body) for body in tape.bodies]
    left = pieces(tape.bodies) & pieces(redacted)
    assert left <= redactor.words | redactor.names
    assert pieces(tape.bodies) - redactor.words - redactor.names, "there is something to hide"
    for with_copies in (False, True):
        plain, hidden = (
            recorded(tmp_path / f"{name}-{with_copies}.jsonl", RULES, bodies)
            for name, bodies in (("plain", tape.bodies), ("redacted", redacted))
        )
        assert [one.change.key.table for one in plain] == [one.change.key.table for one in hidden]
        expected = verdicts(RULES, plain, seed, with_copies=with_copies)
        assert verdicts(RULES, hidden, seed, with_copies=with_copies) == expected
        assert expected[0] == []
    assert "SizeBytes" not in json.dumps(redacted)
