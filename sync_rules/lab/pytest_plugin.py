# ruff: noqa: PLC0415 - a module imported at the top is imported in every test run where the package is installed
"""The pytest plugin: `pytest --sync-rules` plays scenario files; `sync_rules_engine`, `replay` and
`sync_rules_requests` are fixtures.

Invariant: unused, it costs nothing and changes nothing: no hook looks at files, and the pipeline is imported only when
a scenario is collected or a fixture is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from sync_rules.lab.plain_rehearsal import PlainRehearsal
    from sync_rules.read import Requests


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("sync-rules", "scenarios of sync-rules")
    group.addoption("--sync-rules", action="store_true", help="play scenario files, each under every way of delivery")
    group.addoption(
        "--sync-rules-variant",
        action="append",
        default=[],
        metavar="NAME",
        help="only this way of delivery; repeat it for several (see `sync-rules test --list-variants`)",
    )
    group.addoption("--sync-rules-seed", type=int, default=0, metavar="N", help="random seed of each way of delivery")
    parser.addini(
        "sync_rules_files", type="args", default=[], help="names of scenario files: scenario.yaml *.scenario.yaml"
    )


def pytest_configure(config: pytest.Config) -> None:
    """With --sync-rules, collect scenario files."""
    if config.getoption("--sync-rules"):
        from sync_rules.lab.pytest_scenarios import Collecting

        config.pluginmanager.register(Collecting(config), "sync-rules-scenarios")


@pytest.fixture
def sync_rules_engine(request: pytest.FixtureRequest) -> Callable[..., PlainRehearsal]:
    """`sync_rules_engine("rules.yaml", delivery="crashing", seed=1, call=function)` gives a `PlainRehearsal`: tables in
    memory with the pipeline behind them. Files are searched beside the test, then from pytest's root.
    """
    from sync_rules.lab.pytest_scenarios import make_engine

    return partial(make_engine, partial(_find_file, request))


@pytest.fixture
def sync_rules_requests() -> Iterator[Callable[[Any], Requests]]:
    """Count the requests of a boto3 client, or of a resource or one of its tables, until the test ends:
    `requests = sync_rules_requests(client)`, then `assert requests.by_operation == {"Query": 1, "GetItem": 1}`.
    """
    from sync_rules.read import requests_of

    with ExitStack() as counting:
        yield lambda client: counting.enter_context(requests_of(client))


@pytest.fixture
def replay(request: pytest.FixtureRequest) -> Callable[..., None]:
    """`replay("monday.jsonl", "rules.yaml", deliveries=["crashing"], seed=1)` fails with the first difference after the
    recorded changes, under every way of delivery unless some are named.
    """
    from sync_rules.lab.pytest_scenarios import replay_file

    return partial(replay_file, partial(_find_file, request))


def _find_file(request: pytest.FixtureRequest, name: str | Path) -> Path:
    """A file beside the test, or else from pytest's root."""
    beside: Path = request.path.parent / name
    return beside if beside.exists() else request.config.rootpath / name
