"""The measures of the command line: `check` of many rules over many tables, and the start of short commands."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from typing import Final

from benchmarks import fresh
from benchmarks.bench import Bench
from benchmarks.counters import CPU_TIME
from benchmarks.figures import Figure
from benchmarks.ours import RULES_FILE
from sync_rules.language.load import check_rules

RULES: Final = 5_000
TABLES: Final = 2_000
MOST_SECONDS: Final = 5.0
START: Final = "from sync_rules.cli.main import main; main({words})"


def rules_text(rules: int, tables: int) -> str:
    """A sound rules file: tables in a row, and copies from each to the next."""
    lines = ["tables:"]
    lines += (f"  table{n}: {{key: {{id: S}}, indexes: {{by_up: {{up: S}}}}}}" for n in range(tables))
    lines += ["entities:", *(f"  item{n}: {{table: table{n}}}" for n in range(tables)), "rules:"]
    for n in range(rules):
        one = n % (tables - 1)
        lines.append(f"  rule{n}: {{copy: item{one}.a{n}, into: item{one + 1}.b{n}, link: {{id: up}}}}")
    return "\n".join(lines) + "\n"


def check(bench: Bench) -> Iterator[Figure]:
    """CPU seconds of one check, reading the YAML included."""
    text = rules_text(bench.size(RULES), bench.size(TABLES))
    seconds = []
    for _ in range(bench.rounds(1)):
        start = time.process_time()
        found, problems = check_rules(text, {})
        seconds.append(time.process_time() - start)
        assert found is not None, problems[0]
    what = f"check of {bench.size(RULES):,} rules over {bench.size(TABLES):,} tables"
    yield Figure(what, tuple(seconds), "s", CPU_TIME, at_most=MOST_SECONDS)


def shell(bench: Bench) -> Iterator[Figure]:
    """CPU milliseconds of a fresh process, its interpreter included: `--help`, and `check` of two rules."""
    url = bench.engine.url
    commands = {"--help": ["--help"], "check of two rules": ["check", str(RULES_FILE)]}
    costs = bench.in_turns(
        {
            name: partial(bench.counters.cost, partial(fresh.run, START.format(words=words), RULES_FILE, url))
            for name, words in commands.items()
        },
        rounds=15,
    )
    for name, most in (("--help", 100), ("check of two rules", 350)):
        milliseconds = tuple(cost.cpu_seconds * 1_000 for cost in costs[name])
        yield Figure(f"sync-rules {name}", milliseconds, "ms", CPU_TIME, at_most=most)
