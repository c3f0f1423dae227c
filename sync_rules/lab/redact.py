"""Redacts recordings: replaces values so that keys, links and paths still match each other.

Invariant: the replacement of a value depends on the value and the salt alone, not on its place. A text is split at the
separators of the rules, and each piece becomes a token, so composite keys, prefixes and paths still match; digits
become digits, and a number is replaced like its text. What the rules file says of keys stays: it is no secret.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Collection, Iterator, Mapping
from decimal import Decimal
from itertools import count
from typing import Any, Final

import jmespath

from sync_rules.lab.provenance import Provenance
from sync_rules.model.entities import Entity
from sync_rules.model.errors import UserError
from sync_rules.model.items import ItemKey
from sync_rules.model.numbers import format_number
from sync_rules.model.sizes import is_possible_key
from sync_rules.model.templates import Template, parse_template
from sync_rules.model.values import AttributeValue
from sync_rules.rules.ruleset import Rules

WORD: Final = re.compile(r"[^\W_]+")  # a run of letters and digits
ALONE: Final = re.compile(r"(?<![^\W_])(?<!})[^\W_]+(?![^\W_])(?!{)")  # a word of a template that touches no field
FIELD: Final = re.compile(r"\{[^{}]*\}")
NUMBER: Final = re.compile(r"-?\d+(\.\d+)?", re.ASCII)
CANONICAL: Final = re.compile(r"-?(0|[1-9]\d*)(\.\d*[1-9])?", re.ASCII)  # as DynamoDB and keys spell a number
LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"
WORD_LETTERS: Final = 11  # 26**11 is 2**51: two of a million words are alike once in two thousand recordings
NUMBER_DIGITS: Final = 15  # two such numbers, before and after the point, are 30 of 38 digits: sums of them fit too
BINARY_BYTES: Final = 16
SALT_MIN_CHARACTERS: Final = 16  # a short one can be guessed, and with it every value


class Redactor:
    """A replacer of the values in recordings. The same salt gives the same replacements.

    `keep_shape`: all characters but letters and digits stay in place, and booleans stay too. `tables`: names of the
    recorded tables; none given means all.

    Raises:
        UserError: for rules with padded fields, whose order is in their digits.
    """

    def __init__(self, rules: Rules, salt: bytes, *, keep_shape: bool = False, tables: Collection[str] = ()) -> None:
        _refuse_formed_keys(rules, tables or rules.tables)
        self._rules = rules
        self._salt = salt
        self._keep_shape = keep_shape
        texts = tuple(_list_key_texts(rules))
        literals = "".join(literal for text in texts for literal in FIELD.split(text))
        between = r"[\W_]" if keep_shape else f"[{re.escape(''.join(sorted(set(WORD.sub('', literals)))))}]"
        self._separator = re.compile(f"({between})" if between != "[]" else r"(?!)")
        words = {word for text in texts for word in ALONE.findall(FIELD.sub("{}", text))}
        compared = {
            piece for text in _list_compared_texts(rules) for separator, piece in self._split(text) if not separator
        }
        self.words = frozenset(words | compared)
        self.names = frozenset(_list_names(rules))
        self._templates = _list_templates(rules)

    def record(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Redact a stream record.

        Raises:
            UserError: if the redacted key would belong to another entity, or be too long: a replay would differ.
        """
        data = dict(body["dynamodb"])
        data.pop("SizeBytes", None)  # reveals the length of the values
        key = self._key_of(body)
        entity = None if key is None else self._rules.entity_of(key)
        for image in ("Keys", "NewImage", "OldImage"):
            if image in data:
                data[image] = {name: self._at(entity, name, value) for name, value in data[image].items()}
        redacted = {**body, "dynamodb": data}
        self._require_alike(body, redacted)
        return redacted

    def value(self, value: AttributeValue, template: Template | None = None) -> AttributeValue:
        """Replace a value by another of the same type, in JSON (binaries are base64 text). `template`: the template
        that the text follows.
        """
        ((kind, content),) = value.items()
        match kind:
            case "S":
                return {kind: self._redact_by_template(content, template)}
            case "SS":
                return {kind: [self._redact_by_template(one, template) for one in content]}
            case "N":
                return {kind: self.number(content)}
            case "NS":
                return {kind: [self.number(one) for one in content]}
            case "B":
                return {kind: self._redact_binary(content)}
            case "BS":
                return {kind: [self._redact_binary(one) for one in content]}
            case "L":
                return {kind: [self.value(one) for one in content]}
            case "M":
                return {kind: {self._name(name): self.value(one) for name, one in content.items()}}
            case "BOOL":
                return {kind: content if self._keep_shape else True}
        return value

    def text(self, text: str) -> str:
        """Replace the pieces of a text between separators. Pieces that the rules name stay as they are."""
        return "".join(piece if separator else self._redact_piece(piece) for separator, piece in self._split(text))

    def number(self, text: str) -> str:
        """Replace a number in the same way as the text of its shortest spelling."""
        return self.text(format_number(Decimal(text)))

    def _split(self, text: str) -> Iterator[tuple[bool, str]]:
        """The pieces of a text and the separators between them, each with True for a separator."""
        for position, piece in enumerate(self._separator.split(text)):
            yield position % 2 == 1, piece

    def _at(self, entity: Entity | None, name: str, value: AttributeValue) -> AttributeValue:
        return self.value(value, None if entity is None else self._templates.get((entity.name, name)))

    def _name(self, name: str) -> str:
        """The name of a value in a map: it may be the id of an embedded item."""
        return name if name in self.names else self.text(name)

    def _redact_by_template(self, text: str, template: Template | None) -> str:
        """A text whose literals are known. Elsewhere a literal that touches its field, as in U{user_id}, is none."""
        bound = None if template is None or template.whole is not None else template.parse({"S": text})
        if template is None or bound is None:
            return self.text(text)
        first, *others = template.literals
        fields = (self.text(str(bound[field]["S"])) for field in template.fields)
        return first + "".join(field + after for field, after in zip(fields, others, strict=True))

    def _redact_piece(self, piece: str) -> str:
        if not piece or piece in self.words or piece == "0":  # zero counts for nothing, and nothing else does
            return piece
        return self._redact_digits(piece) if NUMBER.fullmatch(piece) else self._word(piece)

    def _word(self, piece: str) -> str:
        for number in self._draw_numbers(f"word:{piece}"):
            letters = []
            for _ in range(WORD_LETTERS):
                number, letter = divmod(number, len(LETTERS))  # noqa: PLW2901 - digit by digit
                letters.append(LETTERS[letter])
            word = "".join(letters)
            if word not in self.words:
                return word
        raise AssertionError("one of them will do")

    def _redact_digits(self, piece: str) -> str:
        """Replace a number in a text. A spelling that no number has, such as 007, begins with zero afterwards too: it
        decides if a text can be the key of a number.
        """
        for number in self._draw_numbers(f"digits:{piece}"):
            digits = str(number % (9 * 10 ** (NUMBER_DIGITS - 1)) + 10 ** (NUMBER_DIGITS - 1))
            digits = digits if CANONICAL.fullmatch(piece) else "0" + digits[1:]
            if not digits.endswith("0") and digits not in self.words:
                return digits
        raise AssertionError("one of them will do")

    def _redact_binary(self, content: str) -> str:
        raw = base64.b64decode(content)
        return base64.b64encode(self._compute_hmac(b"binary:" + raw)[:BINARY_BYTES]).decode() if raw else content

    def _draw_numbers(self, text: str) -> Iterator[int]:
        for turn in count():
            yield int.from_bytes(self._compute_hmac(f"{turn}:{text}".encode("utf-8", "surrogatepass")))

    def _compute_hmac(self, content: bytes) -> bytes:
        return hmac.digest(self._salt, content, hashlib.sha256)

    def _require_alike(self, body: Mapping[str, Any], redacted: Mapping[str, Any]) -> None:
        key, other = (self._key_of(one) for one in (body, redacted))
        if key is None or other is None:
            return
        entity, fitting = self._rules.entity_of(key), is_possible_key(other)
        fields = {} if entity is None else entity.fields(key) or {}
        read = {} if entity is None else entity.fields(other)
        alike = entity is self._rules.entity_of(other) and read == {
            field: self.value(one) for field, one in fields.items()
        }
        if not alike or not fitting:
            what = f"an item of entity {entity.name}" if entity else "an item of no entity"
            raise UserError(
                f"the key of {what} in table {key.table} cannot be redacted: "
                + ("its template would read it as another key" if fitting else "it would be too long")
                + ". Record without --redact."
            )

    def _key_of(self, body: Mapping[str, Any]) -> ItemKey | None:
        table = self._rules.find_table_of_stream(str(body.get("eventSourceARN", "")))
        return None if table is None else table.key_of(body["dynamodb"]["Keys"])


# ---------------------------------------------------------------- texts of the rules
def _refuse_formed_keys(rules: Rules, tables: Collection[str]) -> None:
    """Refuse tables whose keys form a field: no replacement has the order and length of digits, or two spellings."""
    for entity in rules.entities.values():
        formed = {field for template in entity.templates.values() for field, _ in (*template.pads, *template.cases)}
        if formed and entity.table.name in tables:
            raise UserError(
                f"--redact: the keys of entity {entity.name} hold {', '.join(sorted(formed))} padded or in one case: a "
                f"hash has neither. Record without --redact, or other tables than {entity.table.name} (--table), or "
                "with a rules file without this entity and the rules that name it"
            )


def _list_key_texts(rules: Rules) -> Iterator[str]:
    """The templates and separators from which the rules make composite texts."""
    kept = Provenance(rules)
    for entity in rules.entities.values():
        if not kept.is_ledger(entity):  # which is not recorded
            yield from (template.text for template in entity.templates.values())
    for rule in rules.rules.values():
        body = rule.body()
        yield from (text for name in ("as", "by", "formula") for text in _list_texts(body.get(name)) if "{" in text)
        yield from _list_texts(body.get("separator"))


def _list_templates(rules: Rules) -> dict[tuple[str, str], Template]:
    """The templates of attributes, by entity and name: of keys, and of the elements of sets."""
    found = {(one.name, name): template for one in rules.entities.values() for name, template in one.templates.items()}
    for rule in rules.rules.values():
        body = rule.body()
        text, into = body.get("as"), body.get("into")
        if isinstance(text, str) and isinstance(into, str) and "{" in text:
            found[rule.target.name, into] = parse_template(text)
    return found


def _list_compared_texts(rules: Rules) -> Iterator[str]:
    """The texts that values are compared with: literals in conditions, the values that weights and formats name."""
    for rule in rules.rules.values():
        for where in rule.filters.values():
            yield from _list_literals(jmespath.compile(where.text).parsed)
        body = rule.body()
        yield from (text for name in ("weights", "tables") for text in _list_texts(body.get(name)))


def _list_literals(node: Mapping[str, Any]) -> Iterator[str]:
    if node["type"] == "literal":
        yield from _list_texts(node["value"])
    for child in node["children"]:
        yield from _list_literals(child) if isinstance(child, Mapping) else ()


def _list_names(rules: Rules) -> Iterator[str]:
    for rule in rules.rules.values():
        for node in rule.nodes():
            for _, path in (node.writes, *node.reads, *node.deciding_paths):
                yield from path


def _list_texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _list_texts(name)
            yield from _list_texts(inner)
    elif isinstance(value, list | tuple | set | frozenset):
        for inner in value:
            yield from _list_texts(inner)
