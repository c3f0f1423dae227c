"""Small worlds in which one source has nearly all targets, and changes several times in a row: its fan-outs wait."""

from __future__ import annotations

from dataclasses import replace

from tests.simulation.facts import Configuration
from tests.simulation.worlds_many import two
from tests.simulation.worlds_one import base, listed

OFTEN = ("s0", "s0", "s0", "s1")  # what targets name


def often(name: str, one: Configuration) -> Configuration:
    """The same world with two sources, one of which is named by most."""
    kinds = tuple(
        replace(kind, link_values=OFTEN, first_links=("s0",) * len(kind.keys))
        if kind.links
        else replace(kind, keys=kind.keys[:2])
        for kind in one.kinds
    )
    return replace(one, name=f"often-{name}", kinds=kinds)


WORLDS: tuple[Configuration, ...] = (
    often("base", base("base", "on_delete: clear")),
    often("index", listed("index", "on_delete: clear")),
    often("strict", base("strict", "on_delete: clear, strict: true", strict=True)),
    often("keep", base("keep", "on_delete: keep", on_delete="keep")),
    often("delete", base("delete", "on_delete: delete", on_delete="delete")),
    often("delete-index", listed("delete-index", "on_delete: delete", on_delete="delete")),
    often("two", two("two", "clear", "clear", indexed=False)),
)
