"""The kinds of keys that the items of a table have: keys of one kind have the same words in the same places.

Invariant: a word counts as a value in three cases. An item holds it as an attribute, many kinds differ in nothing else,
or, in a live table, only one item has it. Separators cut a key into pieces. A word is a piece that is the same for all
items of a kind, such as USER in `USER#7`. It comes first or after a value, or is written in capitals; the piece after
it is a value.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from sync_rules.extras.discover.imports.identifiers import join_words
from sync_rules.extras.discover.imports.imported_model import FoundTable

TYPE_NAMES: Final = (
    "entitytype", "entity", "et", "edbe", "typename", "itemtype", "recordtype", "objecttype", "modeltype", "type",
    "kind", "model",
)  # fmt: skip
ALIKE_MIN: Final = 3  # kinds that differ in one word, and hold the same: the word is a value
KINDS_MAX: Final = 60  # in one table: more are values that look like words
SEPARATORS: Final = ("#", "|", "::", "~", ";", ":", "/")  # the first that a text has splits it
FIRST_ONLY: Final = ("/",)  # what follows a word may be a path of any depth
WORD: Final = re.compile(r"[$@_]{0,2}[A-Za-z][A-Za-z_.]*|\$[A-Za-z][A-Za-z_]*_\d{1,3}")  # the last: ElectroDB's $user_1
CAPITALS: Final = re.compile(r"[$@_]?[A-Z][A-Z_]+")
DATED: Final = re.compile(r"\d{4}-\d\d|\d\d:\d\d")
ADDRESSED: Final = re.compile(r"[A-Za-z][A-Za-z+.-]*://")
BEGUN: Final = re.compile(r"([A-Za-z]{2,20}[_-])(.+)")
PREFIXED: Final = re.compile(r"([A-Za-z]{2,20}[_-])(?=.*\d)(.+)")
WORD_MAX: Final = 40
TOKENS_MAX: Final = 12


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of a key: a word if `word`, else a value; `before` is the separator in front of it."""

    text: str
    word: bool
    before: str = ""

    @property
    def kind(self) -> tuple[str, str | None]:
        """The separator and the word: keys of one kind have the same in each place."""
        return self.before, self.text if self.word else None

    def mark_as_value(self) -> Token:
        return Token(self.text, word=False, before=self.before)


Tokens = tuple[Token, ...]


def find_separator(text: str) -> str:
    """Return the separator that splits a key; "" if none does."""
    if ADDRESSED.match(text):
        return ""
    for separator in SEPARATORS:
        if separator in text:
            if separator in (":", "/") and (
                DATED.match(text) or not WORD.fullmatch(text.split(separator, maxsplit=1)[0])
            ):
                continue
            return separator
    return ""


def split_tokens(text: str) -> Tokens:
    """Split a key's text into pieces. A piece that looks like a word is a word; other keys show later whether it is a
    value.
    """
    separator = find_separator(text)
    if not separator:
        return (Token(text, word=bool(CAPITALS.fullmatch(text))),)
    pieces = text.split(separator, 1 if separator in FIRST_ONLY else TOKENS_MAX)
    made: list[Token] = []
    after_word = False
    for number, piece in enumerate(pieces):
        last = number == len(pieces) - 1
        word = not piece or (
            not after_word
            and len(piece) <= WORD_MAX
            and WORD.fullmatch(piece) is not None
            and (number == 0 or not last or CAPITALS.fullmatch(piece) is not None)
        )
        made.append(Token(piece, word, separator if number else ""))
        after_word = word and bool(piece)
    return tuple(made)


def split_prefix(text: str, starts: Collection[str]) -> Tokens:
    """Split a text such as user_7 after one of these words; return it whole if none fits."""
    match = BEGUN.fullmatch(text)
    if match is None or match[1] not in starts:
        return (Token(text, word=False),)
    return (Token(match[1], word=True), Token(match[2], word=False))


# ---------------------------------------------------------------- kinds
@dataclass(frozen=True)
class Sample:
    """An item, in DynamoDB's JSON. `facet` is its name in the model, `aliases` are the model's names of the key
    attributes.
    """

    item: Mapping[str, Mapping[str, Any]]
    facet: str = ""
    aliases: Mapping[str, str] = field(default_factory=dict)

    def text(self, attribute: str) -> str | None:
        """The text of an attribute; None where it is of another type or missing."""
        value = self.item.get(attribute, {}).get("S")
        return value if isinstance(value, str) and value else None

    def plain(self, attribute: str) -> str | None:
        """The text or the number of an attribute."""
        value = self.item.get(attribute, {})
        found = value.get("S", value.get("N"))
        return found if isinstance(found, str) and found else None


Shape = tuple[tuple[tuple[str, str | None], ...], ...]  # the kinds of the tokens of each key attribute


@dataclass(eq=False)
class Cluster:
    """The samples of one kind: their keys have the same words in the same places."""

    samples: list[Sample]
    keys: list[tuple[Tokens, ...]]

    @property
    def shape(self) -> Shape:
        return tuple(tuple(token.kind for token in tokens) for tokens in self.keys[0])


def list_clusters(table: FoundTable, samples: Sequence[Sample], *, live: bool) -> list[Cluster]:
    """Group the samples into kinds of items by the words in their keys. `live`: the samples come from a live table,
    where a word that only one item has may be a value.
    """
    keys = [tuple(_split_key(sample, one.name, one.type) for one in table.key) for sample in samples]
    for place in range(len(table.key)):
        keys = _split_prefixes(keys, place)
    keys = _mark_fields(table, samples, keys)
    keys = _mark_rare_words(keys) if live else _mark_endings(keys)
    clusters = _group(samples, keys)
    if len(clusters) > KINDS_MAX:
        first_only = [tuple(_keep_first_word(tokens) for tokens in key) for key in keys]
        clusters = _group(samples, first_only)
    if len(clusters) > KINDS_MAX:
        plain = [tuple((Token(join_tokens(tokens), word=False),) for tokens in key) for key in keys]
        clusters = _group(samples, plain)
    merged = _merge(table, clusters)
    spoken = {word for cluster in merged for part in cluster.shape for _, word in part if word}
    return [_mark_constants(cluster, spoken, live=live) for cluster in merged]


def join_tokens(tokens: Tokens) -> str:
    return "".join(token.before + token.text for token in tokens)


def _split_key(sample: Sample, name: str, kind: str) -> Tokens:
    text = sample.text(name) if kind == "S" else None
    return (Token("", word=False),) if text is None else split_tokens(text)


def _keep_first_word(tokens: Tokens) -> Tokens:
    if len(tokens) == 1:
        return tokens
    first, second, *_ = tokens
    rest = join_tokens(tokens[1:]).removeprefix(second.before)
    return first, Token(rest, word=False, before=second.before)


def _split_prefixes(keys: list[tuple[Tokens, ...]], place: int) -> list[tuple[Tokens, ...]]:
    """Split user_7 after the word where most keys of the column are so, and some begin alike."""
    single = [key[place][0] for key in keys if len(key[place]) == 1 and not key[place][0].word]
    starts = Counter(match[1] for token in single if (match := PREFIXED.fullmatch(token.text)))
    shared = {start for start, count in starts.items() if count > 1}
    if not shared or sum(starts[start] for start in shared) * 2 < len(single):
        return keys
    made = []
    for key in keys:
        single_value = len(key[place]) == 1 and not key[place][0].word
        tokens = split_prefix(key[place][0].text, shared) if single_value else key[place]
        made.append((*key[:place], tokens, *key[place + 1 :]))
    return made


def _mark_fields(
    table: FoundTable, samples: Sequence[Sample], keys: Sequence[tuple[Tokens, ...]]
) -> list[tuple[Tokens, ...]]:
    """Take a word for a value where most items with it hold it as an attribute too, which does not name their type."""
    seen: Counter[tuple[int, int, str]] = Counter()
    held: Counter[tuple[int, int, str]] = Counter()
    for sample, key in zip(samples, keys, strict=True):
        own = {
            sample.plain(name) for name in sample.item if name not in table.types and join_words(name) not in TYPE_NAMES
        }
        words = [
            (place, number, token.text)
            for place, tokens in enumerate(key)
            for number, token in enumerate(tokens)
            if token.word
        ]
        seen.update(words)
        held.update(word for word in words if word[2] in own)
    return _mark_values(keys, {word for word, count in held.items() if 2 * count >= seen[word]})


def _mark_values(
    keys: Sequence[tuple[Tokens, ...]], values: Collection[tuple[int, int, str]]
) -> list[tuple[Tokens, ...]]:
    """The keys, with words for values that are known by the attribute, their place in it, and their text."""
    return [
        tuple(
            tuple(
                token.mark_as_value() if token.word and (place, number, token.text) in values else token
                for number, token in enumerate(tokens)
            )
            for place, tokens in enumerate(key)
        )
        for key in keys
    ]


def _mark_endings(keys: list[tuple[Tokens, ...]]) -> list[tuple[Tokens, ...]]:
    """Take what follows a value for a word where several keys end so: u#7#follower."""

    def find_ending(tokens: Tokens) -> tuple[Any, ...] | None:
        last = tokens[-1]
        after_value = len(tokens) > 2 and not tokens[-2].word  # noqa: PLR2004 - a word, a value, and the end
        if last.word or not after_value or not last.text.isalpha():
            return None
        return (*(token.kind for token in tokens[:-1]), last.text)

    count = Counter((place, find_ending(tokens)) for key in keys for place, tokens in enumerate(key))
    return [
        tuple(
            (*tokens[:-1], replace(tokens[-1], word=True))
            if find_ending(tokens) and count[place, find_ending(tokens)] > 1
            else tokens
            for place, tokens in enumerate(key)
        )
        for key in keys
    ]


def _mark_rare_words(keys: list[tuple[Tokens, ...]]) -> list[tuple[Tokens, ...]]:
    """Take a word for a value where only one item has it: in a live table it may be one."""
    seen: dict[tuple[int, int, str], set[str]] = defaultdict(set)
    for key in keys:
        whole = "\0".join(join_tokens(tokens) for tokens in key)
        for place, tokens in enumerate(key):
            for number, token in enumerate(tokens):
                seen[place, number, token.text].add(whole)
    return _mark_values(keys, {word for word, wholes in seen.items() if word[2] and len(wholes) == 1})


def _group(samples: Iterable[Sample], keys: Iterable[tuple[Tokens, ...]]) -> list[Cluster]:
    found: dict[Shape, Cluster] = {}
    for sample, key in zip(samples, keys, strict=True):
        shape = tuple(tuple(token.kind for token in tokens) for tokens in key)
        cluster = found.setdefault(shape, Cluster([], []))
        cluster.samples.append(sample)
        cluster.keys.append(key)
    return list(found.values())


def _merge(table: FoundTable, clusters: list[Cluster]) -> list[Cluster]:
    """Kinds that differ in one word and hold the same attributes are one kind, and the word is a value."""
    keys = table.types
    alike: dict[tuple[Any, ...], list[Cluster]] = defaultdict(list)
    for cluster in clusters:
        held = frozenset(name for sample in cluster.samples for name in sample.item if name not in keys)
        facets = frozenset(sample.facet for sample in cluster.samples)
        types = frozenset(
            sample.text(name) for sample in cluster.samples for name in held if join_words(name) in TYPE_NAMES
        )
        for place, tokens in enumerate(cluster.shape):
            for number, (before, word) in enumerate(tokens):
                if word:
                    open_shape = [list(each) for each in cluster.shape]
                    open_shape[place][number] = (before, None)
                    alike[str(open_shape), place, number, held, facets, types].append(cluster)
    gone: set[int] = set()
    made: list[Cluster] = []
    for (_, place, number, held, *_), group in sorted(alike.items(), key=lambda one: -len(one[1])):
        free = [cluster for cluster in group if id(cluster) not in gone]
        if len(free) >= ALIKE_MIN and held:
            gone |= {id(cluster) for cluster in free}
            opened = [_mark_token(key, place, number, word=False) for cluster in free for key in cluster.keys]
            made.append(Cluster([sample for cluster in free for sample in cluster.samples], opened))
    return [*(cluster for cluster in clusters if id(cluster) not in gone), *made]


def _mark_constants(cluster: Cluster, spoken: Collection[str], *, live: bool) -> Cluster:
    """Take a value for a word where all items have it, several of them, and it looks like one."""
    if len({join_tokens(key[0]) for key in cluster.keys}) < (3 if live else 2):
        return cluster
    keys = cluster.keys
    for place, tokens in enumerate(keys[0]):
        for number, token in enumerate(tokens):
            same = {key[place][number].text for key in keys} == {token.text}
            like_one = CAPITALS.fullmatch(token.text) or (WORD.fullmatch(token.text) and not number)
            like_one = like_one or token.text in spoken
            if same and not token.word and like_one:
                keys = [_mark_token(key, place, number, word=True) for key in keys]
    return replace(cluster, keys=keys)


def _mark_token(key: tuple[Tokens, ...], place: int, number: int, *, word: bool) -> tuple[Tokens, ...]:
    """The key with one of its tokens as a word or as a value."""
    tokens = key[place]
    marked = replace(tokens[number], word=word)
    return (*key[:place], (*tokens[:number], marked, *tokens[number + 1 :]), *key[place + 1 :])
