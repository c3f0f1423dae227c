"""The section `patterns` of the rules file, and the sizes and numbers of items that its entities state."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from sync_rules.extras.design.patterns.declarations import Design, Volume, find_design
from sync_rules.extras.design.patterns.pattern_compiler import compile_patterns
from sync_rules.extras.design.patterns.pattern_forms import (
    EntityStatement,
    PatternEntry,
    find_form,
    suggest_option,
)
from sync_rules.extras.design.patterns.prover import prove
from sync_rules.language.compiler import Known
from sync_rules.language.kinds.options import Model
from sync_rules.language.problems import Problem
from sync_rules.language.schema import Name
from sync_rules.language.sections import Section
from sync_rules.language.yaml_source import Document
from sync_rules.model.sizes import ITEM_MAX_BYTES
from sync_rules.rules.ruleset import Rules

SIZE: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?(B|KB)")
BYTES: Final = {"B": 1, "KB": 1024}


def compile_volumes(known: Known, entities: Mapping[str, Model]) -> dict[str, Volume]:
    """Return the sizes and item counts that the file states, by entity. Report a size that no item can have."""
    found: dict[str, Volume] = {}
    stated = {name: one for name, one in entities.items() if isinstance(one, EntityStatement)}
    for name, entity in stated.items():
        size = entity.size
        if isinstance(size, str) and (written := SIZE.fullmatch(size)):
            size = round(float(written[1]) * BYTES[written[2]])
        if isinstance(size, int) and not 1 <= size <= ITEM_MAX_BYTES:
            location = known.document.value("entities", name, "size")
            message = f"expected 1B to 400KB, as an item may have; found {entity.size}"
            known.problems.add("SR106", location, message, "size: 1KB")
        elif size is not None or entity.items is not None:
            found[name] = Volume(size if isinstance(size, int) else None, entity.items)
    return found


def compile_design(known: Known, form: Any, rules: Rules) -> Design:
    """Compile the patterns of a file, and the volumes of its entities."""
    return Design(compile_patterns(known, form.section("patterns"), rules), compile_volumes(known, form.entities))


def lint_patterns(rules: Rules, document: Document) -> Iterator[Problem]:
    """Warn of access patterns that no request serves."""
    for answer in prove(rules).unserved_answers if find_design(rules).patterns else ():
        location = document.key("patterns", answer.pattern.name)
        titles = "; or ".join(cure.title for cure in answer.cures[:2])
        cure = f"{titles}. `sync-rules patterns` shows it as YAML" if titles else "ask by a field that a key holds"
        yield Problem("SR490", answer.reason, location, cure)


def list_entities(design: Design) -> Iterable[str]:
    """List the entities that patterns name."""
    return {name for pattern in design.patterns.values() for name in pattern.entities}


SECTION = Section(
    name="patterns",
    form=dict[Name, PatternEntry],
    default={},
    description="The access patterns, by name: what the application asks for, and how often.",
    compile=compile_design,
    lint=lint_patterns,
    entity=EntityStatement,
    entities_of=list_entities,
    form_of=find_form,
    meant=suggest_option,
    renamed={"returns": "attributes"},
)
