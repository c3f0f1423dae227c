"""The path kind by another attribute than the id: breadcrumbs of names, kept beside a path of ids."""

from __future__ import annotations

from collections.abc import Mapping

from sync_rules.audit.verifier import Verifier
from sync_rules.language.load import parse_rules
from sync_rules.model.items import ItemKey
from tests.support.builders import s
from tests.support.worlds import Scene

RULES = """
tables:
  categories: {key: {category_id: S}, indexes: {by_parent: {parent_id: S}, by_section: {section_id: S}}}
entities:
  category: {table: categories}
rules:
  trails: {path: category.trail, by: name, separator: " / ", parent: parent_id, depth: depth}
"""


def shop(text: str = RULES, **names: tuple[str, str | None]) -> Scene:
    """Categories by their ids, each with its name and its parent, at rest."""
    scene = Scene(parse_rules(text))
    for own, (name, parent) in names.items():
        put(scene, own, name=name, parent_id=parent)
    scene.rest()
    return scene


def put(scene: Scene, own: str, **values: str | None) -> None:
    given = {name: s(text) for name, text in values.items() if text is not None}
    kept = {k: v for k, v in (scene.memory.item(where(scene, own)) or {}).items() if k not in values}
    scene.put("categories", {**kept, "category_id": s(own), **given})


def where(scene: Scene, own: str) -> ItemKey:
    return scene.at("categories", own)


def column(scene: Scene, name: str = "trail") -> dict[str, str | None]:
    rows = scene.memory.items("categories")
    return {item["category_id"]["S"]: next(iter(item.get(name, {"": None}).values())) for item in rows}


TREE: Mapping[str, tuple[str, str | None]] = {
    "e": ("Electronics", None),
    "c": ("Cameras", "e"),
    "l": ("Lenses", "c"),
    "z": ("Zoom", "l"),
}


# ---------------------------------------------------------------- as a user meets them
def test_breadcrumb_below_an_orphan_that_never_had_one_is_reported():
    """A kept orphan gets no breadcrumb, and the items below wait for it. The pipeline and verify report them."""
    scene = shop(top=(None, None), mid=(None, "top"), low=("Z", "mid"))
    scene.memory.delete(where(scene, "top"))
    scene.rest()
    put(scene, "mid", name="N")
    put(scene, "low", name="Y")
    scene.rest()
    scene.receive()  # the second look
    assert column(scene)["low"] == "Z"
    assert ("ParentWithoutBreadcrumb", where(scene, "low")) in {(one.reason, one.key) for one in scene.parked.failures}
    found = [
        one.difference for one in Verifier(scene.rules, scene.world, scene.rules.keeper_names, grace_seconds=0).sweep()
    ]
    assert ("ParentWithoutBreadcrumb", where(scene, "low")) in {(one.reason, one.target) for one in found}


def test_breadcrumb_is_made_of_names_and_renamed_with_them():
    """The names from the root down; a rename reaches all below, a move too, and each item is written once."""
    scene = shop(**TREE)
    assert column(scene)["z"] == "Electronics / Cameras / Lenses / Zoom"
    assert column(scene, "trail_ids")["z"] == "e|c|l|z"
    assert column(scene, "depth")["z"] == "3"
    scene.tap.requests.clear()
    put(scene, "c", name="Photo / Film")
    scene.rest()
    assert column(scene)["z"] == "Electronics / Photo / Film / Lenses / Zoom"  # breadcrumbs are never parsed
    assert len(scene.tap.writes) == 3
    scene.tap.requests.clear()
    put(scene, "l", parent_id=None)
    scene.rest()
    assert column(scene) == {"e": "Electronics", "c": "Electronics / Photo / Film", "l": "Lenses", "z": "Lenses / Zoom"}
    assert len(scene.tap.writes) == 2
