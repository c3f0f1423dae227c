"""Fixtures for every test: the engines of the session, and the marker for what an engine is known not to do."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from functools import lru_cache
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from sync_rules.deploy import blocks
from sync_rules.deploy.yamltext import format_yaml
from sync_rules.language import yaml_source
from tests.support.depth import deep
from tests.support.engines import Endpoints

os.environ.setdefault("AWS_EC2_METADATA_DISABLED", "true")  # a machine without credentials must not look for a network
for configured in ("PROFILE", "REGION", "DEFAULT_REGION", "ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "SESSION_TOKEN"):
    os.environ.pop(f"AWS_{configured}", None)  # engines keep tables apart by Region and account
os.environ |= {"AWS_CONFIG_FILE": os.devnull, "AWS_SHARED_CREDENTIALS_FILE": os.devnull}

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in a shell's background: what tests start would inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)

# how fast a machine is decides about no test
settings.register_profile("suite", deadline=None, max_examples=deep(100), suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("suite")

gc.set_threshold(100_000, 50, 100)  # tests make few cycles, and looking for them took a sixth of the time

# Tests read the same few texts many thousand times. The nodes of a text are never changed, so they may be kept.
yaml_source.compose_nodes = lru_cache(maxsize=200)(yaml_source.compose_nodes)


# Tests fill many templates that have most entries in common, and writing YAML is slow.
written: dict[tuple[str, int], str] = {}


def write_entries(value: Mapping[str, Any], indent: int = 0) -> str:
    """Format a map as `format_yaml` does, each entry of the same text once. The golden template proves it equal."""
    for entry in value.items():
        if (repr(entry), indent) not in written:
            written[repr(entry), indent] = format_yaml(dict([entry]), indent)
    return "".join(written[repr(entry), indent] for entry in value.items())


blocks.format_yaml = write_entries


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[object]) -> Iterator[object]:
    """Refuse a shared fixture that changes the environment: which tests see the change depends on their order."""
    before = dict(os.environ)
    value = yield
    if fixturedef.scope != "function":
        changed = sorted(name for name, _ in before.items() ^ os.environ.items())
        assert not changed, f"the fixture {fixturedef.argname} is shared and changes {changed}: set them for each test"
    return value


@pytest.fixture(scope="session")
def endpoints() -> Iterator[Endpoints]:
    """The engines of this session (each xdist worker has its own), started when first asked for."""
    with ExitStack() as stack:
        yield Endpoints(stack)


@pytest.fixture(scope="session")
def engine(endpoints: Endpoints) -> str:
    """The endpoint URL of the embedded engine."""
    return endpoints.of("ministack")
