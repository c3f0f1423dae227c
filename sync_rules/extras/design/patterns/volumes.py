"""Compile what a rules file states of its entities for estimates: the size of an item, and the number of items."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from sync_rules.extras.design.patterns.declarations import Volume
from sync_rules.extras.design.patterns.pattern_forms import EntityStatement
from sync_rules.language.compiler import Known
from sync_rules.language.kinds.options import Model
from sync_rules.model.sizes import ITEM_MAX_BYTES

SIZE: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?(B|KB)")
BYTES: Final = {"B": 1, "KB": 1024}


def volumes_of(known: Known, entities: Mapping[str, Model]) -> dict[str, Volume]:
    """The facts that the file states of its entities, by their names. A size that no item has is reported."""
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
