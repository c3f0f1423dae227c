"""The house: which room may import which, written down as data, and what every file owes its reader."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "sync_rules"
SOURCES = sorted([*PACKAGE.rglob("*.py"), *(ROOT / "handlers").glob("*.py")])
TWO_MEANINGS = {  # class names with two definitions, and why
    "Listing": "a listing that goes on as messages; the rows that an access pattern reads",
    "Page": "a page of a Query; a page that an application reads",
    "Pending": "a message that waits in the process; the port that says what waits",
    "Result": "the answer of a store; what `transact` returns to applications",
    "Rules": "the rules; what applications open a rules file by",
}
LINES_MAX = 400  # a longer module is looked at in review; it is no error

CORE = frozenset({"model", "rules", "pipeline"})
LOWER = CORE | {"adapters", "audit", "jobs"}
OPERATE = LOWER | {"language", "deploy", "lab", "write", "cli"}
# Each room, and the rooms it may import. Two rooms never import each other, so there is a floor for each.
RINGS: dict[str, dict[str, frozenset[str]]] = {
    "1 core": {
        "model": frozenset(),
        "rules": frozenset({"model"}),
        "language": frozenset({"rules", "model"}),
        "pipeline": frozenset({"rules", "model"}),
        "adapters": CORE,
        "functions": LOWER | {"language"},
    },
    "2 operate": {
        "audit": CORE,
        "jobs": LOWER,
        "deploy": CORE | {"adapters", "language"},
        "cli": LOWER | {"language", "lab", "read", "write", "deploy"},
    },
    "3 rehearse": {"lab": LOWER | {"language", "read"}},
    "beside": {
        "read": frozenset({"adapters", "rules", "model"}),
        "write": frozenset({"model", "rules", "pipeline", "adapters", "language"}),
        "extras.cdk": CORE | {"adapters", "language", "deploy"},
        "extras.design": OPERATE | {"read"},
        "extras.discover": OPERATE,
        "extras.proof": OPERATE,
    },
}
ROOMS = {room: may for ring in RINGS.values() for room, may in ring.items()}
EXPORTING = {"read", "write"}  # applications import its classes from the room itself
# Mouths: modules that stand for others, and import what their room may not.
MOUTHS = {
    "handlers": LOWER | {"functions", "write"},
    "__main__": frozenset({"cli"}),
    "read": ROOMS["read"] | {"extras.design"},  # `read/__init__.py` alone: `Patterns` is loaded when it is used
}
PURE = ("model", "rules", "pipeline")  # no clock, no file, no network, no thread
PURE_MAY_IMPORT = frozenset({
    "__future__", "abc", "base64", "binascii", "collections", "contextlib", "dataclasses", "datetime", "decimal", "difflib", "enum",
    "functools", "graphlib", "gzip", "hashlib", "heapq", "jmespath", "json", "math", "operator", "re", "types", "typing",
})  # fmt: skip
# Compiled rules are read and written here: bytes, handed in and out.
PURE_BUT = {"rules.compiled_file": frozenset({"copyreg", "importlib", "io", "os", "pathlib", "pickle", "sys"})}
KINDS_KNOWN_IN = frozenset({"rules", "language", "extras.design", "read"})
# They recompute what kinds keep, as their checkers.
KINDS_BUT = frozenset({"audit.ledger_balance", "lab.replay_tables", "lab.provenance", "lab.recompute"})
EXTRA = "Top-level `handlers` has one thin module for each Lambda function, and imports `functions` and below; `write.py` also imports `write`."
EXTRAS = ("extras.design", "extras.discover", "extras.proof")  # those with verbs
# Third-party packages, each with the rooms or modules that may import it.
ONLY_IN = {
    "boto3": {"adapters.aws"},
    "botocore": {"adapters.aws", "adapters.aws_errors", "adapters.answers"},
    "ruamel": {"language.yaml_source", "language.load", "deploy.yamltext"},
    "typer": {"cli", *EXTRAS},
    "rich": {"cli", *EXTRAS},
    "aws_lambda_powertools": {"functions", "adapters.function_calls"},
    "pytest": {"lab.pytest_plugin", "lab.pytest_scenarios"},
    "ministack": {"lab.engine_process"},
    "aws_cdk": {"extras.cdk.construct"},
    "duckdb": {"extras.discover.propose.database"},
}


def name_of(path: Path) -> str:
    """A module's dotted name without the package: `pipeline.consumer`, `handlers.stream`."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    parts = parts[:-1] if parts[-1] == "__init__" else parts
    return ".".join(parts[1:] if parts[0] == "sync_rules" else parts)


def room_of(dotted: str) -> str:
    """A module's room: `rules` of `rules.ruleset`, `extras.design` of `extras.design.costs.bill`."""
    return ".".join(dotted.split(".")[: 2 if dotted.startswith("extras.") else 1])


class Facts(NamedTuple):
    """The facts that these tests need of a file, so that each file is parsed once.

    `imports` has every module imported anywhere, functions and type-checking blocks included, by its full name.
    `docstrings` begins with that of the file. `participles` are the functions that a participle names.
    """

    imports: frozenset[str]
    docstrings: tuple[str, ...]
    classes: tuple[str, ...]
    participles: tuple[str, ...]


def list_statements(node: ast.AST) -> Iterator[ast.AST]:
    """The node and all statements in it. Most nodes of a file are expressions, which are left out."""
    yield node
    for part in ("body", "orelse", "finalbody", "handlers", "cases"):
        for inner in getattr(node, part, ()):
            yield from list_statements(inner)


@cache
def facts_of(path: Path) -> Facts:
    imports: set[str] = set()
    docstrings: list[str] = []
    classes: list[str] = []
    participles: list[str] = []
    for node in list_statements(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            imports |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imports |= set(imported_from(path, node))
        elif isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            docstrings.append(ast.get_docstring(node) or "")
        classes += [node.name] if isinstance(node, ast.ClassDef) else []
        participles += [node.name] if is_named_by_participle(node) else []
    return Facts(frozenset(imports), tuple(docstrings), tuple(classes), tuple(participles))


def imported_from(path: Path, node: ast.ImportFrom) -> Iterator[str]:
    assert node.level == 0, f"{path}: imports are absolute"
    base = node.module or ""
    inside = [name for alias in node.names if module_exists(name := f"{base}.{alias.name}")]
    yield from inside or [base]


@cache
def module_exists(dotted: str) -> bool:
    place = ROOT.joinpath(*dotted.split("."))
    return place.with_suffix(".py").exists() or (place / "__init__.py").exists()


def ours(path: Path) -> set[str]:
    """The modules of this package that a file imports, without the package's name."""
    names = facts_of(path).imports
    return {dotted.removeprefix("sync_rules.") for dotted in names if dotted.startswith("sync_rules.")} | {
        dotted for dotted in names if room_of(dotted) == "handlers"
    }


def foreign(path: Path) -> set[str]:
    """The packages of others that a file imports."""
    return {room_of(dotted) for dotted in facts_of(path).imports} - {"sync_rules", "handlers"}


def test_house_has_these_rooms():
    """`ls sync_rules` shows the rooms, and nothing else."""
    there = {path.name for path in PACKAGE.iterdir() if path.name != "__pycache__"}
    assert there == {*(room.split(".")[0] for room in ROOMS), "__init__.py", "__main__.py"}
    assert {f"extras.{path.name}" for path in (PACKAGE / "extras").iterdir() if path.is_dir()} - {
        "extras.__pycache__"
    } == {room for room in ROOMS if room.startswith("extras.")}


def test_house_a_room_imports_only_the_rooms_it_may():
    """The column of the table is the whole truth."""
    for path in SOURCES:
        name = name_of(path)
        may = {room_of(name), *(ROOMS | MOUTHS).get(name if name in MOUTHS else room_of(name), ())}
        assert not sorted(one for one in ours(path) if room_of(one) not in may), name


def floors() -> dict[str, int]:
    """Each room's floor: one above the highest room that it imports."""
    found: dict[str, int] = {}
    while len(found) < len(ROOMS):
        ready = [room for room, may in ROOMS.items() if room not in found and may - {room} <= found.keys()]
        assert ready, f"a circle among {sorted(ROOMS.keys() - found.keys())}"
        found |= {room: 1 + max((found[below] for below in ROOMS[room] - {room}), default=0) for room in ready}
    return found


def sentence_of(room: str) -> str:
    """The first sentence of a room's docstring."""
    docstring = facts_of(PACKAGE / room.replace(".", "/") / "__init__.py").docstrings[0]
    return docstring.partition("\n\n")[0].replace("\n", " ")


def test_house_has_no_arrow_up():
    """No two rooms import each other, directly or through others; there are at most eight floors."""
    assert max(floors().values()) <= 8


def test_house_has_no_circle():
    """No two modules import each other, directly or through others, in functions and for types neither."""
    TopologicalSorter({name_of(path): ours(path) for path in SOURCES}).prepare()


def test_house_the_core_touches_no_world():
    """Model, rules and pipeline import nothing that could read a clock, a file or a network."""
    for path in (one for one in SOURCES if room_of(name_of(one)) in PURE):
        assert foreign(path) <= PURE_MAY_IMPORT | PURE_BUT.get(name_of(path), frozenset()), path


def test_house_only_three_rooms_know_kinds():
    """Other modules ask a rule for what they need, and import no kind."""
    for path in SOURCES:
        if room_of(name_of(path)) not in KINDS_KNOWN_IN and name_of(path) not in KINDS_BUT:
            assert not sorted(one for one in ours(path) if one.startswith("rules.kinds")), path


@pytest.mark.parametrize("package", ONLY_IN)
def test_house_a_library_has_one_way_in(package):
    """Each of these libraries is imported by the rooms or modules named for it and by no other."""
    users = {name_of(path) for path in SOURCES if package in foreign(path)}
    assert not {name for name in users if not {name, room_of(name)} & ONLY_IN[package]}


@pytest.mark.parametrize("room", ROOMS)
def test_house_a_room_opens_with_one_sentence(room):
    """A room's `__init__` says what the room is and imports nothing: a cold start pays for each import."""
    tree = ast.parse((PACKAGE / room.replace(".", "/") / "__init__.py").read_text())
    docstring = ast.get_docstring(tree) or ""
    assert docstring.endswith(".")
    assert len(tree.body) == 1 or room in EXPORTING


def test_house_a_file_opens_with_what_it_is_for():
    """The first thing in a file is a sentence that says what it is for."""
    for path in SOURCES:
        assert facts_of(path).docstrings[0], path
        lines = len(path.read_text().splitlines())
        if lines > LINES_MAX:
            warnings.warn(f"{name_of(path)} has {lines} lines: is there a second job in it?", stacklevel=1)


def test_house_json_of_others_is_read_in_one_place():
    """JSON is read within bounds, by `json_bytes.parse_json`."""
    for path in (*(ROOT / "sync_rules").rglob("*.py"), *(ROOT / "handlers").rglob("*.py")):
        if not path.as_posix().endswith("model/json_bytes.py"):
            assert not re.search(r"\bjson\.loads?\b", path.read_text()), path


NO_BEGINNING = ("What", "Whether", "Where", "Of", "Those", "It", "Them")


@pytest.mark.parametrize("folder", ["sync_rules", "handlers", "benchmarks", "tests"])
def test_house_docstrings_begin_with_a_verb_or_the_thing(folder):
    """No docstring begins with a relative pronoun, a pronoun or `Of`, which readers cannot understand alone."""
    for path in (ROOT / folder).rglob("*.py"):
        for docstring in facts_of(path).docstrings:
            first = re.match(r"\w*", docstring)[0]
            assert first not in NO_BEGINNING, f"{path.relative_to(ROOT)}: {docstring.splitlines()[0]}"


def test_house_a_class_name_has_one_meaning():
    """Two classes share a name only with a reason, private ones too."""
    places: dict[str, list[str]] = {}
    for path in SOURCES:
        for name in facts_of(path).classes:
            places.setdefault(name, []).append(name_of(path))
    assert {name for name, found in places.items() if len(found) > 1} == set(TWO_MEANINGS)


def test_house_a_module_is_a_noun():
    """No module's name is a participle alone: `recording` and `mapping` are nouns."""
    names = {path.stem for path in SOURCES}
    assert {name for name in names if re.fullmatch(r"[a-z]+(ed|ing)", name)} == {
        "embed",
        "listing",
        "mapping",
        "recording",
    }


PARTICIPLE = re.compile(
    "begun|bound|broken|chosen|done|drawn|found|given|gone|held|kept|known|left|lost|made|said|seen|sent|shown|taken|told"
    "|took|unknown|won|written|wrote|[a-z]{2,}(ed|ing)"
)
NOUN = re.compile(
    ".*thing|beginning|bring|embed|encoding|ending|feed|finding|listing|mapping|need|reading|recording|seed|setting"
)
PARTICIPLES_MAX = {  # by room; a room that is not here has none
    "rules": 3,  # `_dated`, `_padded` and `_sharded` of `formula`: compiled rules store these names
    "extras.proof": 20,
}


def is_participle(name: str) -> bool:
    """True if the last word of a function's name is a participle, and not the noun that a verb takes."""
    last = name.rpartition("_")[2]
    return bool(PARTICIPLE.fullmatch(last)) and not NOUN.fullmatch(last)


def is_named_by_participle(node: ast.AST) -> bool:
    """True for a function or method that a participle names. Predicates and properties may end in one."""
    return (
        isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and is_participle(node.name)
        and not re.match(r"_?(is|has|can)_|__", node.name)
        and not any("property" in ast.unparse(one) for one in node.decorator_list)
    )


def test_house_a_function_is_a_verb():
    """A function's name is a verb with its object, never a participle: `told`, `kept`, `find_missing`."""
    found: dict[str, list[str]] = {}
    for path in SOURCES:
        found.setdefault(room_of(name_of(path)), []).extend(facts_of(path).participles)
    assert {room: names for room, names in found.items() if len(names) > PARTICIPLES_MAX.get(room, 0)} == {}


@pytest.mark.parametrize("name", ["told", "_kept", "find_missing", "names_listed"])
def test_house_sees_a_participle(name):
    """The check sees a participle, alone and after a verb."""
    assert is_participle(name)
    assert not is_participle("open_recording")
