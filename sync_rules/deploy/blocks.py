"""Write the generated blocks of a file, between `# >>> sync-rules: NAME` and `# <<< sync-rules: NAME`.

Invariant: outside of its blocks a file stays as it is, byte for byte. A missing, repeated or unclosed mark is an error
that names file and mark. Then nothing is written.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sync_rules.deploy.yamltext import format_yaml
from sync_rules.model.errors import UserError

MARK = re.compile(r"^(?P<indent>[ \t]*)# (?P<side>>>>|<<<) sync-rules: (?P<name>\S+)[ \t]*\r?$", re.MULTILINE)


@dataclass(frozen=True)
class TemplateBlock:
    """The start and end of a block's content in its text, and its indentation."""

    start: int
    end: int
    indent: int


def find_blocks(text: str, file: str) -> dict[str, TemplateBlock]:
    """Find the blocks of a text by name; messages name `file`.

    Raises:
        UserError: if the marks are not in pairs, or a name comes twice.
    """
    found: dict[str, TemplateBlock] = {}
    opened: re.Match[str] | None = None
    for mark in MARK.finditer(text):
        name, at = mark["name"], f"{file}:{text.count(chr(10), 0, mark.start()) + 1}"
        if mark["side"] == ">>>":
            if opened is not None:
                raise UserError(f"{at}: block {name} begins before block {opened['name']} ends")
            if name in found:
                raise UserError(f"{at}: block {name} appears twice")
            opened = mark
        else:
            if opened is None or opened["name"] != name:
                raise UserError(f"{at}: block {name} ends here, but did not begin")
            found[name] = TemplateBlock(min(opened.end() + 1, mark.start()), mark.start(), len(opened["indent"]))
            opened = None
    if opened is not None:
        raise UserError(f"{file}: block {opened['name']} begins but does not end: `# <<< sync-rules: {opened['name']}`")
    return found


def read_block(text: str, name: str, file: str) -> str:
    """Return the content of a block.

    Raises:
        UserError: if the text has no such block, or its marks are not in order.
    """
    block = _require_block(find_blocks(text, file), name, file)
    return text[block.start : block.end]


def replace_blocks(text: str, blocks: Mapping[str, Mapping[str, Any]], file: str) -> str:
    """Replace the content of these blocks by YAML; line endings follow the block's mark.

    Raises:
        UserError: if the text lacks one of the blocks, has an unknown block, or its marks are not in order.
    """
    places = find_blocks(text, file)
    for name in places.keys() - blocks.keys():
        raise UserError(f"{file}: block {name} is not known, remove its marks. Known: {', '.join(sorted(blocks))}")
    for name, content in sorted(blocks.items(), key=lambda one: -_require_block(places, one[0], file).start):
        place = places[name]  # from the last to the first, so that earlier positions stay valid
        made = format_yaml(content, place.indent)
        if text.endswith("\r\n", 0, place.start):
            made = made.replace("\n", "\r\n")
        text = text[: place.start] + made + text[place.end :]
    return text


def compare_blocks(old: str, new: str, file: str) -> Iterator[tuple[str, str]]:
    """Yield the blocks that differ between two versions of a file, line endings aside, each with a unified diff."""
    before, after = find_blocks(old, file), find_blocks(new, file)
    for name, place in before.items():
        if name not in after:
            continue  # of a version whose template has no such block
        was, now = old[place.start : place.end], new[after[name].start : after[name].end]
        was_lines, now_lines = was.splitlines(), now.splitlines()
        if was_lines != now_lines:
            lines = difflib.unified_diff(
                was_lines, now_lines, f"{file} ({name})", f"{file} ({name}, from the rules)", lineterm=""
            )
            yield name, "\n".join(lines)


def _require_block(places: Mapping[str, TemplateBlock], name: str, file: str) -> TemplateBlock:
    if name not in places:
        raise UserError(
            f"{file}: no block {name}. Put `# >>> sync-rules: {name}` and `# <<< sync-rules: {name}` where it belongs"
        )
    return places[name]
