"""The short form of a rule: `copy user.name into order.user_name`, read word by word into the form it stands for.

Law: where the parts of a sentence stand is noted, so that whatever is found later is said at the word it is about.
"""

from __future__ import annotations

import re

from sync_rules.language.compiler import RuleCompiler
from sync_rules.language.kinds.registry import FORMS, RuleForm

PARTS = re.compile(r"\s*(?P<kind>\w+)\s+(?P<what>\S.*?)\s+into\s+(?P<into>\S.*?)\s*", re.DOTALL)
SOURCE = re.compile(r"[^\s,](?:[^,]*[^\s,])?")
WORD = re.compile(r'(?:"[^"]*"|[^\s"])+')
LONG = "; where, link and the like need the long form"
CURES = {
    "copy": f"copy ENTITY.ATTRIBUTE into ENTITY.ATTRIBUTE{LONG}",
    "count": f"count ENTITY into ENTITY.ATTRIBUTE{LONG}",
    "sum": f"sum ENTITY.ATTRIBUTE into ENTITY.ATTRIBUTE{LONG}",
    "min": f"min ENTITY.ATTRIBUTE into ENTITY.ATTRIBUTE{LONG}",
    "max": f"max ENTITY.ATTRIBUTE into ENTITY.ATTRIBUTE{LONG}",
    "mirror": f"mirror ENTITY into ENTITY{LONG}",
}


def read_sentence(compiler: RuleCompiler, text: str) -> RuleForm | None:
    """The form that a sentence stands for; None, with the reason reported, when it is none."""
    kind = next(iter(text.split()), "copy")
    if kind not in CURES:
        message = f"{kind!r} has no short form; it has: {', '.join(CURES)}"
        compiler.add("SR107", compiler.at(), message, f"write it as a map, with {kind}: and its options")
        return None
    match = PARTS.fullmatch(text)
    if match is None:
        compiler.add("SR107", compiler.at(), f"expected `{kind} ... into ...`", CURES[kind])
        return None
    document, here = compiler.known.document, ("rules", compiler.name)
    if WORD.fullmatch(match["into"]) is None:
        rest = match["into"].split(None, 1)[-1]
        message = f"expected the sentence to end after one path, found {rest!r}"
        compiler.add("SR107", document.inside(match.start("into"), *here), message, CURES[kind])
        return None
    document.locations[(*here, "into")] = document.inside(match.start("into"), *here)
    sources = list(SOURCE.finditer(match["what"]))
    for index, source in enumerate(sources):
        location = document.inside(match.start("what") + source.start(), *here)
        document.locations.setdefault((*here, kind), location)
        document.locations[(*here, kind, index)] = location
    texts = [source[0] for source in sources]
    if not texts:
        compiler.add("SR107", compiler.at(), f"expected a path after `{kind}`", CURES[kind])
        return None
    if kind != "copy" and (len(texts) > 1 or WORD.fullmatch(texts[0]) is None):
        compiler.add("SR107", compiler.at(kind), f"expected one word between `{kind}` and `into`", CURES[kind])
        return None
    what = texts[0] if len(texts) == 1 else texts
    form: RuleForm = FORMS[kind].model_validate({kind: what, "into": match["into"]})  # type: ignore[assignment]
    return form
