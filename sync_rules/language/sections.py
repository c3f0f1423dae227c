"""Sections of a rules file besides tables, entities and rules: each has a name, a form, a compiler and lint.

`BUILT_IN` names the sections of this package. A section is imported when a file uses it, or for the JSON Schema. Entry
points of other packages (group `sync_rules.sections`) are read only for a top-level name that is not known here.

Invariant: compiled rules name no section, so no function imports one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final

from sync_rules.language.compiler import Known
from sync_rules.language.kinds.options import Model
from sync_rules.language.problems import Location, Problem, Problems
from sync_rules.language.yaml_source import Document
from sync_rules.model.errors import UserError
from sync_rules.rules.ruleset import Rules

GROUP: Final = "sync_rules.sections"
CORE: Final = ("tables", "entities", "rules")
UNPLUGGED: Final = (*CORE, "deploy")  # top-level names of the language itself


def _report_nothing(_rules: Rules, _document: Document) -> Iterator[Problem]:
    return iter(())


@dataclass(frozen=True, eq=False, kw_only=True)
class Section:
    """A section of the rules file.

    `form`: the type of its value; `default`: the value of a file without it; `entity`: the keys that it adds to each
    entity. `compile` takes the names of the file, its forms (`FileForm.section`) and the compiled rules; its result is
    in `Rules.sections`. `lint` takes compiled rules. `entities_of`: the entities that a result uses. `form_of`: the
    form of one entry. `meant`: the cure for a value of another type, by option, value, and True for an expected list.
    `renamed`: the present names of options by their former names, and `check` warns of these.
    """

    name: str
    form: Any
    default: Any
    description: str
    compile: Callable[[Known, Any, Rules], object]
    lint: Callable[[Rules, Document], Iterable[Problem]] = _report_nothing
    entity: type[Model] | None = None
    entities_of: Callable[[Any], Iterable[str]] = lambda _: ()
    form_of: Callable[[Any], type[Model] | None] = lambda _: None
    meant: Callable[[str, Any, bool], str | None] = lambda _name, _value, _as_list: None
    renamed: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class BuiltIn:
    """The place of a section of this package, and the keys of entities that need it."""

    place: str
    entity_keys: tuple[str, ...] = ()


BUILT_IN: Final[Mapping[str, BuiltIn]] = {
    "patterns": BuiltIn("sync_rules.extras.design.patterns.section:SECTION", ("size", "items")),
}
NAMES: Final = (*CORE, *BUILT_IN)
ENTITY_KEYS: Final = tuple(key for one in BUILT_IN.values() for key in one.entity_keys)


@dataclass(frozen=True)
class UsedSections:
    """The sections that a file uses, and the names of sections that cannot be loaded."""

    loaded: tuple[Section, ...] = ()
    broken: frozenset[str] = frozenset()

    def find_section(self, name: object) -> Section | None:
        """Find the section of this name; None for a section of the language itself."""
        return next((one for one in self.loaded if one.name == name), None)


def is_plugged(name: str) -> bool:
    """True if an installed package has a section of this name."""
    return bool(_list_entry_points(name))


def load_sections(document: Document, problems: Problems) -> UsedSections:
    """Load the sections that a file uses. A section that cannot be loaded is reported."""
    places: dict[str, tuple[Location, tuple[EntryPoint, ...] | None]] = {}
    for name, built_in in BUILT_IN.items():
        location = _find_first_use(document, name, built_in)
        if location is not None:
            places[name] = location, None
    for name in document.data:
        if name not in (*UNPLUGGED, *BUILT_IN) and (found := _list_entry_points(name)):
            places[name] = document.key(name), found
    loaded, broken = [], set[str]()
    for name, (location, points) in places.items():
        try:
            loaded.append(_load_built_in(name) if points is None else _load_plug_in(name, points))
        except UserError as error:
            problems.add("SR121", location, error.found, error.cure or None)
            broken.add(name)
    return UsedSections(tuple(loaded), frozenset(broken))


def load_all_sections() -> tuple[Section, ...]:
    """Load every section of this package and of installed packages. Raises UserError if a section cannot be loaded."""
    names = dict.fromkeys(point.name for point in entry_points(group=GROUP) if point.name not in NAMES)
    return (*map(_load_built_in, BUILT_IN), *(_load_plug_in(name, _list_entry_points(name)) for name in names))


def _find_first_use(document: Document, name: str, built_in: BuiltIn) -> Location | None:
    if name in document.data:
        return document.key(name)
    entities = document.data.get("entities")
    for entity, form in entities.items() if isinstance(entities, dict) else ():
        for key in built_in.entity_keys if isinstance(form, dict) else ():
            if key in form:
                return document.key("entities", entity, key)
    return None


def _list_entry_points(name: str) -> tuple[EntryPoint, ...]:
    return tuple(entry_points(group=GROUP, name=name))


def _load_built_in(name: str) -> Section:
    module, _, attribute = BUILT_IN[name].place.partition(":")
    return _load_section(name, lambda: getattr(import_module(module), attribute), "sync-rules")


def _load_plug_in(name: str, points: tuple[EntryPoint, ...]) -> Section:
    owners = [one.dist.name if one.dist is not None else one.value for one in points]
    if len(points) > 1:
        raise UserError(f"several packages have a section {name!r}: {', '.join(owners)}", "uninstall all but one")
    return _load_section(name, points[0].load, owners[0])


def _load_section(name: str, load: Callable[[], Any], owner: str) -> Section:
    """Load a section of this name. Raises UserError if that fails."""
    try:
        found = load()
    except ImportError as error:
        cure = f"install {error.name}" if error.name else f"install {owner} again, with all that it needs"
        raise UserError(f"section {name!r} of {owner} needs a package that is missing: {error}", cure) from error
    except Exception as error:
        raise UserError(f"section {name!r} of {owner} cannot be loaded: {error!r}", f"update {owner}") from error
    if not isinstance(found, Section) or found.name != name:
        raise UserError(f"section {name!r} of {owner} is not a Section of this name", f"update {owner}")
    return found
