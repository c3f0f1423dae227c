"""The short form of a rule, `copy user.name into order.user_name`, read into a form.

It notes the locations of its parts, so that later messages point at the right word.
"""

from __future__ import annotations

import re

from sync_rules.language.compiler import RuleCompiler
from sync_rules.language.kinds.options import Model
from sync_rules.language.kinds.registry import kinds_with_sentences

PARTS = re.compile(r"\s*(?P<kind>\w+)\s+(?P<what>\S.*?)\s+into\s+(?P<into>\S.*?)\s*", re.DOTALL)
SOURCE = re.compile(r"[^\s,](?:[^,]*[^\s,])?")
WORD = re.compile(r'(?:"[^"]*"|[^\s"])+')
LONG = "; where, link and the like need the long form"


def read_sentence(compiler: RuleCompiler, text: str) -> Model | None:
    """The form that a sentence means; None if it is not a sentence, which is reported."""
    kinds = kinds_with_sentences()
    word = next(iter(text.split()), next(iter(kinds)))
    kind = kinds.get(word)
    if kind is None:
        message = f"{word!r} has no short form; it has: {', '.join(kinds)}"
        compiler.add("SR107", compiler.at(), message, f"write it as a map, with {word}: and its options")
        return None
    cure = kind.sentence + LONG
    match = PARTS.fullmatch(text)
    if match is None:
        compiler.add("SR107", compiler.at(), f"expected `{word} ... into ...`", cure)
        return None
    document, here = compiler.known.document, ("rules", compiler.name)
    if WORD.fullmatch(match["into"]) is None:
        rest = match["into"].split(None, 1)[-1]
        message = f"expected the sentence to end after one path, found {rest!r}"
        compiler.add("SR107", document.inside(match.start("into"), *here), message, cure)
        return None
    document.locations[(*here, "into")] = document.inside(match.start("into"), *here)
    sources = list(SOURCE.finditer(match["what"]))
    for index, source in enumerate(sources):
        location = document.inside(match.start("what") + source.start(), *here)
        document.locations.setdefault((*here, word), location)
        document.locations[(*here, word, index)] = location
    texts = [source[0] for source in sources]
    if not texts:
        compiler.add("SR107", compiler.at(), f"expected a path after `{word}`", cure)
        return None
    if not kind.several and (len(texts) > 1 or WORD.fullmatch(texts[0]) is None):
        compiler.add("SR107", word, f"expected one word between `{word}` and `into`", cure)
        return None
    what = texts[0] if len(texts) == 1 else texts
    return kind.form.model_validate({word: what, "into": match["into"]})
