"""Redaction: every value is another, and everything still hangs together."""

from __future__ import annotations

import base64
import json
import re
from collections import Counter
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sync_rules.lab.delivery import VARIANTS
from sync_rules.lab.redact import PIECE, Redactor
from sync_rules.lab.replay import Replay
from sync_rules.language.load import parse_rules
from sync_rules.model.errors import UserError
from sync_rules.model.numbers import parsed, spelt
from sync_rules.rules.ruleset import Rules
from tests.support import every_kind
from tests.support.tapes import recorded, shopping

RULES = every_kind.rules_of()
REDACTOR = Redactor(RULES, b"salt")


def rules_with(template: str) -> Rules:
    tables, entities = "{things: {key: {PK: S}}}", f"{{thing: {{table: things, key: {{PK: '{template}'}}}}}}"
    return parse_rules(f"tables: {tables}\nentities: {entities}\nrules: {{}}\n")


def body_of(key: str) -> dict:
    arn = "arn:aws:dynamodb:us-east-1:111122223333:table/things/stream/x"
    return {"eventSourceARN": arn, "dynamodb": {"Keys": {"PK": {"S": key}}, "SizeBytes": 9}}


# ---------------------------------------------------------------- values
def test_redact_replaces_each_run_of_letters_and_digits():
    """Separators and words of the rules stay; the same run becomes the same wherever it stands."""
    user, path = REDACTOR.text("USER#ada-7_x"), REDACTOR.text("7|x|ada")
    word, digits, letter = REDACTOR.text("ada"), REDACTOR.text("7"), REDACTOR.text("x")
    assert user == f"USER#{word}-{digits}_{letter}"
    assert path == f"{digits}|{letter}|{word}"
    assert len({word, digits, letter, "ada", "7", "x"}) == 6
    assert (word.isalpha(), digits.isdigit()) == (True, True)


def test_redact_keeps_what_the_rules_say():
    """Literals of key templates, of `where` and of elements stand in the rules file anyway, and decide."""
    for text in ("USER#", "ORDER", "PROFILE", "VOID", "EMAIL"):
        assert REDACTOR.text(text) == text
    assert REDACTOR.text("OPEN") != "OPEN"


@pytest.mark.parametrize(
    ("number", "shape"),
    [("0", r"0"), ("0.0", r"0"), ("7", r"[1-9]\d{14}"), ("-12.50", r"-\d{15}\.\d{14}[1-9]"), ("1E+2", r"[1-9]\d+0")],
)
def test_redact_makes_numbers_of_numbers(number, shape):
    """Sign and zero stay; the result is a number that DynamoDB can hold, in its one spelling."""
    found = REDACTOR.number(number)
    assert re.fullmatch(shape, found)
    value = parsed(found)
    assert value is not None
    assert spelt(value) == found


@given(st.integers(-(10**37), 10**37).map(Decimal).flatmap(lambda n: st.integers(0, 20).map(lambda e: n.scaleb(-e))))
@settings(max_examples=300)
def test_redact_gives_a_number_and_its_text_the_same_digits(number):
    """A link from a number to the text in a composite key leads where it led."""
    found = REDACTOR.number(str(number))
    assert found == REDACTOR.text(spelt(number))
    assert parsed(found) is not None
    assert REDACTOR.number(found if number == 0 else spelt(number)) == found


def test_redact_keeps_types():
    """Sets stay sets, of as many; maps, lists, booleans and null keep their shape; names in maps are values."""
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


def test_redact_depends_on_the_salt_alone():
    """The same text is redacted the same under the same salt, and differently under another."""
    assert Redactor(RULES, b"salt").text("ada 7") == REDACTOR.text("ada 7")
    assert Redactor(RULES, b"pepper").text("ada 7") != REDACTOR.text("ada 7")


@given(st.lists(st.text(alphabet="0123456789", min_size=1, max_size=4), unique=True, max_size=60))
def test_redact_keeps_what_can_name_a_number(texts):
    """Redaction keeps leading and trailing zeros of digits, and different texts stay different."""
    found = [REDACTOR.text(text) for text in texts]
    assert len(set(found)) == len(texts)
    assert [one.startswith("0") for one in found] == [text.startswith("0") for text in texts]
    assert [one.endswith("0") for one in found] == [text.endswith("0") for text in texts]


# ---------------------------------------------------------------- keys
def test_redact_keeps_a_literal_that_touches_its_field():
    """In U{user_id} the literal U is kept, and the field's value is redacted as it is alone."""
    redactor = Redactor(rules_with("U{user_id}X"), b"salt")
    assert redactor.text("U7X") == f"U{redactor.text('7')}X"
    assert redactor.record(body_of("U7X"))["dynamodb"] == {"Keys": {"PK": {"S": redactor.text("U7X")}}}


@pytest.mark.parametrize(
    ("template", "key", "found"),
    [("{a}x{b}", "1x2", "take it for something else"), ("T#{rest}", "T#" + "-a" * 1_000, "too long")],
    ids=["inside", "long"],
)
def test_redact_refuses_a_key_that_would_come_to_mean_something_else(template, key, found):
    """A key that would be parsed differently or be too long once redacted is refused, without its value."""
    with pytest.raises(UserError, match=found) as caught:
        Redactor(rules_with(template), b"salt").record(body_of(key))
    assert "thing" in str(caught.value)
    assert key not in str(caught.value)


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
    return {piece for text in texts_of(values) for piece in PIECE.findall(text) if len(piece) >= 3}


def verdicts(rules: Rules, records, seed: int, *, with_copies: bool) -> tuple:
    """The result of a replay: the mismatches, and the number of copies per table and rule."""
    run = Replay(rules, VARIANTS[seed % len(VARIANTS)], with_copies=with_copies)
    wrong = [(one.rule, one.drift) for one in run.mismatches(records)]
    copies: Counter[str] = Counter()
    for rule in rules.rules.values():
        for item in run.store.items(rule.target.table.name):
            at = rule.target.table.key_of(item)
            if at is not None and rules.entity_of(at) is rule.target:
                copies[rule.name] += sum(path[0] in item for path in rule.copies)
                copies[f"{rule.name} {rule.target.name}"] += 1
    return wrong, copies


@pytest.mark.parametrize("seed", range(6))
def test_redact_changes_nothing_that_a_replay_shows(tmp_path, seed):
    """A redacted recording ends as the recording does: the same items of each entity, the same number of copies per rule;
    and nothing of three characters that the rules do not say is left of any value.
    """
    tape = shopping(RULES, seed)
    redactor = Redactor(RULES, b"salt")
    redacted = [redactor.record(body) for body in tape.bodies]
    left = pieces(tape.bodies) & pieces(redacted)
    assert left <= redactor.literals
    assert pieces(tape.bodies) - redactor.literals, "there is something to hide"
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
