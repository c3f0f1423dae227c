"""The runbook: a section for each alarm and no other, queries that fit our log lines, graphs that are on the dashboard."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from sync_rules.audit.verify_tally import Tally
from sync_rules.deploy.dashboard import list_rows
from sync_rules.deploy.deployment import read_deployment
from sync_rules.deploy.measures import link_section, list_sections, make_alarms
from sync_rules.deploy.sam_template import read_timeouts_seconds
from sync_rules.functions import logs, metrics
from sync_rules.model.items import ItemKey, Outcome
from sync_rules.pipeline.messages import ChunkMessage
from sync_rules.pipeline.telemetry import Telemetry
from tests.support.cloudformation import read_template
from tests.support.worlds import Stdout

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs/runbook.md").read_text()
SECTIONS = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
QUERIES = [body for body in re.findall(r"^```text\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL) if "filter" in body]
SOURCE = "\n".join(
    path.read_text() for folder in (ROOT / "sync_rules/functions", ROOT / "handlers") for path in folder.glob("*.py")
)
DEPLOYMENT = read_deployment(ROOT / "examples/organisations-users-tickets/rules.yaml")
TIMEOUTS = read_timeouts_seconds(read_template((ROOT / "template.yaml").read_text()), "template.yaml")
WORDS = {
    "fields", "filter", "sort", "stats", "count", "by", "desc", "and", "or", "not", "like", "timestamp", "message", "i",
}  # fmt: skip


def test_runbook_has_a_section_for_each_alarm_and_no_other():
    """Every alarm leads to a section, and every section is led to."""
    assert list(SECTIONS) == list(list_sections())
    led_to = {
        alarm["Properties"]["AlarmDescription"].split()[-1] for alarm in make_alarms(DEPLOYMENT, TIMEOUTS).values()
    }
    assert led_to == {link_section(section) for section in SECTIONS}


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.splitlines()[0][:40])
def test_runbook_queries_ask_for_fields_that_are_logged(query):
    """Each field of a query, and each message it filters by, is one that the handlers log."""
    for message in re.findall(r'message = "([^"]+)"', query):
        assert f'"{message}"' in SOURCE
    fields = set(re.findall(r"(?<![.a-z_])[a-z_]+", re.sub(r'"[^"]*"|/[^/]+/', "", query))) - WORDS
    assert fields or "@message" in query
    assert not {
        field for field in fields if not re.search(rf'"{field}"|\b{field}=|^    {field}:', SOURCE, re.MULTILINE)
    }


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.splitlines()[0][:40])
def test_runbook_queries_ask_for_no_field_that_logs_insights_has_only_in_parts(query, nested):
    """A list or a map in a line has fields of its parts, such as `rules.0`, and none of its own."""
    assert nested >= {"rules", "outcomes", "drift", "throttles"}
    asked = re.findall(rf"\b({'|'.join(nested)})\b(?!\.\w)", re.sub(r'"[^"]*"|/[^/]+/', "", query))
    assert not asked


@pytest.fixture
def nested(monkeypatch, capsys):
    """The fields of our log lines that are lists or maps, as handlers write them."""
    monkeypatch.setattr(logs.logger.registered_handler, "stream", Stdout())
    source, telemetry = ItemKey("shop", (("PK", "S", "USER#7"),)), Telemetry()
    telemetry.outcomes["names", Outcome.COPIED] = 1
    logs.notes.count_throttle("Other")
    logs.notes.count_message(ChunkMessage(("names",), source, (source,)))
    metrics.emit(telemetry)
    metrics.emit_drift(Tally(drift=Counter({"names": 1})), ["names"])
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return {
        name for line in lines if "_aws" not in line for name, value in line.items() if isinstance(value, list | dict)
    }


def test_runbook_explains_each_log_line():
    """The table of lines has every message of the handlers' log."""
    said = set(re.findall(r"^\| `([a-z, ]+)` \|", PAGE, re.MULTILINE))
    logged = set(re.findall(r'(?:logger\.(?:info|warning|error)[,(]|\blog\()\s*"([^"]+)"', SOURCE))
    assert said == logged


def test_runbook_names_graphs_of_the_dashboard():
    """Every graph that the runbook names in quotes is on the dashboard."""
    titles = " | ".join(graph.title for row in list_rows(DEPLOYMENT) for graph in row)
    for section in SECTIONS.values():
        for look in re.findall(r"^- Look at:.*?(?=^- |\Z)", section, re.MULTILINE | re.DOTALL):
            for graph in re.findall(r'"([^"]+)"', " ".join(look.split())):
                assert graph in titles, graph


def test_runbook_retries_by_commands_that_work_with_every_rule():
    """With a rule that calls a function, a retry outside of the account must know which calls were made."""
    retries = re.findall(r"^sync-rules redrive .*$", PAGE, re.MULTILINE)
    assert retries
    assert [one for one in retries if not re.search("--remote|--dry-run|--calls-table", one)] == []
