"""Redacts recordings: replaces values so that keys, links and paths still match each other.

Invariant: the replacement of a value depends on the value and the salt alone, not on its place. Each run of letters and
digits in a text becomes another run, so composite keys, prefixes and paths still match; digits become digits, and a
number is replaced like its text. Texts of the rules stay: they are no secret.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from itertools import count
from typing import Any, Final

from sync_rules.model.errors import UserError
from sync_rules.model.numbers import spelt
from sync_rules.model.sizes import possible_key
from sync_rules.model.values import AttributeValue
from sync_rules.pipeline.records import STREAM_ARN
from sync_rules.rules.ruleset import Rules

PIECE: Final = re.compile(r"[^\W_]+")  # a run of letters and digits
FIELD: Final = re.compile(r"\{[^{}]*\}")
LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"
WORD_LETTERS: Final = 11  # 26**11 is 2**51: two of a million words are alike once in two thousand recordings
NUMBER_DIGITS: Final = 15  # two such numbers, before and after the point, are 30 of 38 digits: sums of them fit too
BINARY_BYTES: Final = 16


class Redactor:
    """A redaction; the same salt gives the same replacements."""

    def __init__(self, rules: Rules, salt: bytes) -> None:
        self._rules = rules
        self._salt = salt
        texts = tuple(_texts(rules))
        self.literals = frozenset(piece for text in texts for piece in PIECE.findall(text))
        self._prefixes = tuple(sorted({p for text in texts for p in _before_fields(text)}, key=len, reverse=True))
        self._suffixes = tuple(sorted({s for text in texts for s in _behind_fields(text)}, key=len, reverse=True))

    def record(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Redact a stream record.

        Raises:
            UserError: when its key would belong to another entity, or be too long: a replay would differ.
        """
        data = dict(body["dynamodb"])
        data.pop("SizeBytes", None)  # reveals the length of the values
        for image in ("Keys", "NewImage", "OldImage"):
            if image in data:
                data[image] = {name: self.value(value) for name, value in data[image].items()}
        redacted = {**body, "dynamodb": data}
        self._require_alike(body, redacted)
        return redacted

    def value(self, value: AttributeValue) -> AttributeValue:
        """Replace a value by one of the same type, in JSON: binaries are base64 text."""
        replaced = {"S": self.text, "N": self.number, "B": self._binary}
        ((kind, content),) = value.items()
        match kind:
            case "S" | "N" | "B":
                return {kind: replaced[kind](content)}
            case "SS" | "NS" | "BS":
                return {kind: [replaced[kind[0]](one) for one in content]}
            case "L":
                return {kind: [self.value(one) for one in content]}
            case "M":
                return {kind: {self.text(name): self.value(one) for name, one in content.items()}}
        return value

    def text(self, text: str) -> str:
        """Replace the pieces of a text; the characters between them stay."""
        return PIECE.sub(lambda match: self._piece(match[0]), text)

    def number(self, text: str) -> str:
        """Replace a number like the text of its shortest spelling. Sign and zero stay."""
        return self.text(spelt(Decimal(text)))

    def _piece(self, piece: str) -> str:
        if piece in self.literals or not piece.strip("0"):
            return piece
        for prefix in self._prefixes:
            if piece.startswith(prefix):
                return prefix + self._piece(piece[len(prefix) :])
        for suffix in self._suffixes:
            if piece.endswith(suffix):
                return self._piece(piece[: -len(suffix)]) + suffix
        return self._digits(piece) if piece.isascii() and piece.isdigit() else self._word(piece)

    def _word(self, piece: str) -> str:
        for number in self._drawn(f"word:{piece}"):
            letters = []
            for _ in range(WORD_LETTERS):
                number, letter = divmod(number, len(LETTERS))  # noqa: PLW2901 - digit by digit
                letters.append(LETTERS[letter])
            word = "".join(letters)
            if not self._like_a_literal(word):
                return word
        raise AssertionError("one of them will do")

    def _digits(self, piece: str) -> str:
        """Replace digits. Zeros at the beginning and end stay: they decide if a text can be the key of a number."""
        ends = len(piece) - len(piece.rstrip("0")) > 0
        for number in self._drawn(f"digits:{piece}"):
            digits = str(number % (9 * 10 ** (NUMBER_DIGITS - 1)) + 10 ** (NUMBER_DIGITS - 1))
            digits = ("0" + digits[1:]) if piece[0] == "0" else digits
            if digits.endswith("0") == ends and not self._like_a_literal(digits):
                return digits
        raise AssertionError("one of them will do")

    def _like_a_literal(self, piece: str) -> bool:
        """Tell whether a piece looks like a text of the rules."""
        return piece in self.literals or piece.startswith(self._prefixes) or piece.endswith(self._suffixes)

    def _binary(self, content: str) -> str:
        raw = base64.b64decode(content)
        return base64.b64encode(self._hmac(b"binary:" + raw)[:BINARY_BYTES]).decode() if raw else content

    def _drawn(self, text: str) -> Iterator[int]:
        for turn in count():
            yield int.from_bytes(self._hmac(f"{turn}:{text}".encode("utf-8", "surrogatepass")))

    def _hmac(self, content: bytes) -> bytes:
        return hmac.digest(self._salt, content, hashlib.sha256)

    def _require_alike(self, body: Mapping[str, Any], redacted: Mapping[str, Any]) -> None:
        arn = STREAM_ARN.match(str(body.get("eventSourceARN", "")))
        table = self._rules.by_physical_name.get(arn[1]) if arn else None
        if table is None:
            return
        key, other = (table.key_of(one["dynamodb"]["Keys"]) for one in (body, redacted))
        if key is None or other is None:
            return
        entity, fitting = self._rules.entity_of(key), possible_key(other)
        if entity is not self._rules.entity_of(other) or not fitting:
            what = f"an item of entity {entity.name}" if entity else "an item of no entity"
            raise UserError(
                f"the key of {what} in table {table.name} cannot be redacted: "
                + ("its template would take it for something else" if fitting else "it would be too long")
                + ". Record without --redact."
            )


# ---------------------------------------------------------------- texts of the rules
def _texts(rules: Rules) -> Iterator[str]:
    """Every text in the rules: templates, paths, expressions, the keys and words of tables."""
    for entity in rules.entities.values():
        yield from (template.text for template in entity.templates.values())
    for rule in rules.rules.values():
        yield from _strings(rule.body())


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _strings(name)
            yield from _strings(inner)
    elif isinstance(value, list | tuple | set | frozenset):
        for inner in value:
            yield from _strings(inner)


def _before_fields(text: str) -> Iterator[str]:
    """The pieces directly before a field: the U in U{user_id}."""
    for literal in FIELD.split(text)[:-1]:
        pieces = PIECE.findall(literal)
        if pieces and literal.endswith(pieces[-1]):
            yield pieces[-1]


def _behind_fields(text: str) -> Iterator[str]:
    """The pieces directly behind a field."""
    for literal in FIELD.split(text)[1:]:
        pieces = PIECE.findall(literal)
        if pieces and literal.startswith(pieces[0]):
            yield pieces[0]
