"""The house: who may import whom, written down as data, and what every file owes its reader."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCES = sorted(path for package in ("sync_rules", "handlers", "infra") for path in (ROOT / package).rglob("*.py"))

# From the pure core outwards. A module may import modules of its own line and of the lines above it, none below.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("sync_rules", "backfilling", "lab", "planning", "pumping", "redriving", "reports"),  # its version; empty packages
    ("errors", "attributes", "limits"),
    ("numbers",),
    ("keys", "model", "expressions"),
    ("entities", "messages", "changes", "formula", "element"),
    ("finding", "sizes", "updates", "pace", "digests"),
    ("families",),
    ("lookedat",),
    # what is true, kind by kind
    ("ledger", "kinds", "kinds.indexkeys", "kinds.linked", "kinds.copy", "kinds.path", "kinds.derive"),
    ("kinds.gathered", "kinds.embed", "kinds.recount", "kinds.tally", "kinds.total", "kinds.rank"),
    ("kinds.collect", "kinds.mirror", "kinds.archive", "kinds.call"),
    # the road
    ("sieve",),
    ("rules", "store"),
    ("sources",),
    ("decide",),
    ("reconcile",),
    (
        "parts",
        "effects",
        "plan",
        "redriving.bykey",
        "listings",
        "handover",
        "fanout",
        "compare",
        "fingerprints",
        "reports.rulegraph",
    ),
    ("telemetry", "records", "cascade", "balance", "findings", "backfill", "repair"),
    ("batch", "verify", "prune", "explain"),
    ("whereused",),
    # the rules file: beside the pipeline, which never reads it
    (
        "errorcodes",
        "codes",
        "yamlspots",
        "problems",
        "forms",
        "groupforms",
        "schema",
        "shape",
        "variables",
        "links",
        "givenkey",
    ),
    ("compiling.desk", "compiling.sentences", "compiling.copying", "compiling.gathering", "compiling.own"),
    ("compiling.mirroring", "compiling.counting", "compiling.effects"),
    ("compiling", "lint", "rulefile", "compiled", "asked"),
    # the world
    ("quickjson",),
    ("aws", "conditions", "statements", "ownfile", "failures", "redriving.failed", "backfilling.rate"),
    (
        "rows",
        "memory",
        "pressure",
        "batches",
        "writer",
        "dynamodb",
        "sqs",
        "preflight",
        "s3",
        "caller",
        "backfilling.units",
        "backfilling.waits",
        "backfilling.iterator_age",
    ),
    (
        "outside",
        "backfilling.metered",
        "planning.overlay",
        "planning.dry",
        "planning.heaviest",
        "planning.prices",
        "planning.planned",
    ),
    ("backfilling.budget",),
    # for applications
    ("read.values", "read.declared"),
    ("read.reader",),
    ("read.listing",),
    ("read.neighbours",),
    ("read", "read.graph", "read.hierarchy"),
    # the pump
    ("lab.scenario", "lab.delivery"),
    ("lab.scenarioform", "lab.faulty"),
    ("lab.scenarioreader", "lab.rehearsal"),
    ("lab.scenariofile",),
    ("lab.trial",),
    ("lab.plain",),
    ("pumping.streams", "pumping.shards", "pumping.attempts", "failure_log", "pumping.local_queue", "redriving.again"),
    ("redriving.span", "redriving.atwork"),
    ("redriving.redriver",),
    ("pumping.mapping", "pumping.checkpoint", "backfilling.state", "reports.drift_report", "reports.drift_display"),
    ("reports.wholefile", "reports.picture", "reports.pagestyle"),
    ("reports.htmlreport",),
    ("lab.recording", "lab.redact", "lab.kept", "lab.history"),
    (
        "pumping.pump",
        "backfilling.totals",
        "backfilling.picked",
        "backfilling.place",
        "backfilling.page",
        "backfilling.head",
        "backfilling.segment",
        "backfilling.run",
        "backfilling.export",
    ),
    ("lab.recompute", "lab.minimise"),
    ("lab.replay",),
    ("backfilling.scope", "backfilling.job", "backfilling.display"),
    ("pumping.local_run", "engine", "planning.planner", "planning.display"),
    ("display", "demo", "demo.samples", "demo.story", "demo.pipeline"),
    ("demo.example",),
    # the mouths
    (
        "infra",
        "sync_rules.deploy.tables",
        "sync_rules.deploy.deployment",
        "sync_rules.deploy.blocks",
        "sync_rules.deploy.yamltext",
        "sync_rules.deploy.imports",
        "sync_rules.deploy.uses",
    ),
    ("sync_rules.deploy.handwritten",),
    ("sync_rules.deploy.filters",),
    ("sync_rules.deploy.resources", "sync_rules.deploy.measures"),
    ("sync_rules.deploy.permissions",),
    ("sync_rules.deploy.roles",),
    ("sync_rules.deploy.explain_iam", "sync_rules.deploy.alarms", "sync_rules.deploy.dashboard"),
    ("sync_rules.deploy.names",),
    ("sync_rules.deploy.template",),
    ("sync_rules.deploy.bundle",),
    ("remote", "remote.documents", "remote.protocol"),
    ("remote.figures", "remote.reports", "remote.stack"),
    ("remote.wholereport",),
    ("remote.oneunit",),
    ("remote.sample",),
    ("remote.backfill", "remote.verify", "remote.redrive"),
    (
        "handlers",
        "sync_rules.functions.logs",
        "sync_rules.functions.metrics",
        "sync_rules.functions.runtime",
        "handlers.stream",
        "handlers.fanout",
    ),
    ("sync_rules.functions.inaccount",),
    ("handlers.backfill", "handlers.verify", "handlers.redrive"),
    (
        "commands",
        "commands.inaccount",
        "commands.inaccount_backfill",
        "commands.inaccount_verify",
        "commands.inaccount_redrive",
        "commands.check",
        "commands.schema",
        "commands.run",
        "commands.verify",
        "commands.prune",
        "commands.test",
        "commands.graph",
        "commands.infra",
    ),
    ("commands.demo", "commands.explain", "commands.failures", "commands.record", "commands.replay"),
    ("commands.redrive", "commands.backfill"),
    ("commands.plan",),
    ("pytest_scenarios",),
    ("pytest_plugin",),
    ("cli", "__main__"),
)
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}

# The core decides; it reads no store, no file, no clock. What it may import beside itself:
PURE = [name for names in LAYERS for name in names if RANK[name] <= RANK["prune"] and name not in ("batch", "verify")]
PURE_MAY_IMPORT = frozenset({
    "__future__", "abc", "base64", "binascii", "collections", "dataclasses", "datetime", "decimal", "difflib", "enum",
    "functools", "gzip", "hashlib", "jmespath", "json", "math", "re", "types", "typing",
})  # fmt: skip

# Third-party packages with one way in.
ONLY_IN = {
    "boto3": set(),
    "botocore": {"aws"},
    "ruamel": {"yamlspots", "rulefile", "sync_rules.deploy.yamltext"},
    "typer": {"cli", *(name for name in RANK if name.startswith("commands."))},
    "aws_lambda_powertools": {"sync_rules.functions.logs", "sync_rules.functions.metrics", "caller"},
    "pytest": {"pytest_scenarios", "pytest_plugin"},
    "pygraphviz": {"reports.picture"},
    "rich": {
        "display",
        "planning.display",
        "commands.plan",
        "backfilling.display",
        "commands.backfill",
        "reports.drift_display",
        "commands.run",
        "commands.verify",
        "commands.prune",
        "commands.demo",
        "commands.failures",
        "commands.redrive",
        "commands.record",
        "commands.replay",
        "commands.inaccount_backfill",
        "commands.inaccount_verify",
        "commands.inaccount_redrive",
    },
}


def name_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    parts = parts[:-1] if parts[-1] == "__init__" else parts
    return ".".join(parts[1:] if parts[0] == "sync_rules" and len(parts) > 1 else parts)


def imports_of(path: Path) -> set[str]:
    """Every module imported anywhere in a file, functions and type-checking blocks included, by its full name."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            base = node.module or ""
            inside = {f"{base}.{alias.name}" for alias in node.names if module_exists(f"{base}.{alias.name}")}
            found |= inside or {base}
    return found


def module_exists(dotted: str) -> bool:
    place = ROOT.joinpath(*dotted.split("."))
    return place.with_suffix(".py").exists() or (place / "__init__.py").exists()


def ours(dotted: str) -> str | None:
    if dotted.split(".", maxsplit=1)[0] in ("handlers", "infra"):
        return dotted
    return dotted.removeprefix("sync_rules.") if dotted.startswith("sync_rules") else None


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_house_a_module_imports_only_what_stands_above_it(path):
    """Left never imports right: the table above is the whole truth, and every module is in it."""
    name = name_of(path)
    assert name in RANK, f"{name} is in no layer of the import table"
    below = sorted(m for m in map(ours, imports_of(path)) if m is not None and RANK[m] > RANK[name])
    assert not below, f"{name} imports {below}, which stand below it"


@pytest.mark.parametrize("path", [path for path in SOURCES if name_of(path) in PURE], ids=name_of)
def test_house_the_core_touches_no_world(path):
    """The core imports nothing that could read a clock, a file or a network."""
    foreign = {dotted.split(".")[0] for dotted in imports_of(path) if ours(dotted) is None}
    assert foreign <= PURE_MAY_IMPORT


@pytest.mark.parametrize("package", ONLY_IN)
def test_house_a_library_has_one_way_in(package):
    """Each of these libraries is imported by the modules named for it and by no other."""
    users = {name_of(path) for path in SOURCES if any(m.split(".")[0] == package for m in imports_of(path))}
    assert users <= ONLY_IN[package]


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_house_a_file_opens_with_what_it_is_for(path):
    """The first thing in a file is a sentence that says what it is for."""
    docstring = ast.get_docstring(ast.parse(path.read_text()))
    assert docstring
    assert docstring.splitlines()[0].rstrip().endswith((".", ":", ",", "?")) or len(docstring.splitlines()) > 1


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_house_a_module_stays_small(path):
    """A module over 300 lines has a room that wants to be split off."""
    assert len(path.read_text().splitlines()) <= 300


def test_house_every_layer_entry_exists():
    """The import table names no module that is gone."""
    assert set(RANK) == {name_of(path) for path in SOURCES}
