"""One run of the test: an engine, processes behind networks, somebody who kills them, and rounds that end in a check.

Invariant: all that is started listens on the loopback interface and ends with this process. A seed gives the schedule of
writes and faults; how the processes interleave is theirs.
"""

from __future__ import annotations

import json
import random
import re
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from tests.processes import checker
from tests.processes.network import AWAY, CALM, CLOSED, REGIMES, ROUGH, STORM, IndexLag, Network
from tests.processes.process import Process, preload
from tests.processes.product import OWN_FAULTS, PRELOADED, run_command
from tests.processes.writer import PARTS, USERS, make_client, write
from tests.support import engines
from tests.support.lying_proxy import lying_proxy

RULES = Path(__file__).with_name("rules.yaml")
RULE_NAMES = re.findall(r"^  ([\w-]+):", RULES.read_text().partition("\nrules:\n")[2], re.MULTILINE)
INDEXES = {("posts", "by_user"): ("user_id", "post_id"), ("parts", "by_parent"): ("parent_id", "part_id")}
MEMBERS = 450  # of a team: `run` does 200 of a fan-out at a time, and a message asks for the rest
IDLE_MAX_SECONDS = 180.0
LOOK_SECONDS = 0.1
TAIL_SECONDS = 16.0  # of faults after the last write: no later write repairs what they break


@dataclass(frozen=True)
class Plan:
    """The size, the seed and the fault of a run. `members`: of each team; fewer make it short."""

    seed: int = 1
    minutes: float = 10.0
    fault: str = "none"
    engine: str = "dynoxide"
    members: int = MEMBERS
    plots: int = 25  # of each writer in a round
    patient: bool = True  # wait a minute for parked work before a finding counts


class NotIdleError(Exception):
    """The processes did not come to rest: something is lost, or goes on for ever."""


@dataclass
class Streams:
    """The streams of all tables, read to their ends: the last position of each, and the states of users."""

    client: Any
    positions: dict[str, int] = field(default_factory=dict)
    history: checker.History = field(default_factory=checker.History)
    records: int = 0
    _iterators: dict[str, str] = field(default_factory=dict)

    def read(self) -> None:
        for stream in self.client.list_streams()["Streams"]:
            arn = stream["StreamArn"]
            [shard] = self.client.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]
            iterator = (
                self._iterators.get(arn)
                or self.client.get_shard_iterator(
                    StreamArn=arn, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
                )["ShardIterator"]
            )
            while True:
                answer = self.client.get_records(ShardIterator=iterator)
                iterator = answer["NextShardIterator"]
                for record in answer["Records"]:
                    change = record["dynamodb"]
                    self.positions[arn] = int(change["SequenceNumber"])
                    if "NewImage" in change:
                        self.history.note(stream["TableName"], change["NewImage"], change.get("OldImage", {}))
                self.records += len(answer["Records"])
                if not answer["Records"]:
                    break
            self._iterators[arn] = iterator


class World:
    """The processes, and what is done to them."""

    def __init__(self, plan: Plan, folder: Path, url: str, stack: ExitStack) -> None:
        self.plan, self.folder = plan, folder
        self._url, self._stack = url, stack
        self.rng = random.Random(plan.seed)
        self.client = make_client(url)
        self.streams = Streams(_streams_client(url))
        self.lag = IndexLag(self.client, INDEXES)
        self.counts: Counter[str] = Counter()
        self.processes: list[Process] = []
        self.runs = [self._add_product(f"run{number}", *self._run_options(number)) for number in (1, 2)]
        self.writers = [self._add_writer(name) for name in ("w0", "w1", "w2", "tx")]
        self.errands = {
            "backfill": self._add_product("backfill", "backfill", *_accepted(), "--state", "state.json", "--rate", "0"),
            "verify": self._add_product(
                "verify", "verify", "--repair", "--grace-seconds", "1", "--failures", "found.jsonl"
            ),
            "redrive": self._add_product("redrive", "redrive", *self._failure_files(), "--failures", "again.jsonl"),
        }
        self.plots = 0  # of each writer in this round
        self.unfinished = False  # a backfill was killed

    # ------------------------------------------------------------ processes
    def _run_options(self, number: int) -> list[str]:
        return ["run", *_accepted(), "--checkpoint", f"run{number}.json", "--failures", f"run{number}.jsonl",
                "--state", f"state{number}.json", "--parallelization", str(number), "--format", "jsonl"]  # fmt: skip

    def _failure_files(self) -> list[str]:
        names = [f"run{number}{suffix}" for number in (1, 2) for suffix in (".jsonl", ".batches.jsonl")]
        return [option for name in names for option in ("--file", name)]

    def _add_product(self, name: str, command: str, *options: str) -> Process:
        network = Network(f"{self.plan.seed}/{name}", self.lag)
        url, _ = self._proxy(network)

        def arguments(life: int) -> tuple[str, str, list[str]]:
            clock = f"{self.plan.seed}/{name}/{life}"
            more = ["--resume"] if command == "backfill" and self.unfinished else []
            return self.plan.fault, clock, [command, str(RULES), "--endpoint-url", url, *options, *more]

        return self._add(Process(name, run_command, arguments, network, self.folder))

    def _add_writer(self, name: str) -> Process:
        network = Network(f"{self.plan.seed}/{name}", self.lag, guarded=False)
        url, _ = self._proxy(network)
        rules = str(RULES) if name == "tx" else ""

        def arguments(life: int) -> tuple[Any, ...]:
            return name, life, url, self.plan.seed, self.plots, rules

        return self._add(Process(name, write, arguments, network, self.folder))

    def _proxy(self, network: Network) -> tuple[str, Any]:
        url, proxy = self._stack.enter_context(lying_proxy(self._url))
        proxy.lie = network
        return url, proxy

    def _add(self, process: Process) -> Process:
        self.processes.append(process)
        process.network.kill = partial(self._kill_run if process.name.startswith("run") else self._kill, process)
        self._stack.callback(process.kill)
        return process

    # ------------------------------------------------------------ the beginning
    def begin(self) -> None:
        """Put items that are there before the rules, start a run, and backfill them; kill both now and then."""
        team = {"team": {"S": "team 0"}}
        self._load("teams", [{**team, "member": {"S": "TEAM"}, "name": {"S": "first"}}])
        self._load("teams", [{**team, "member": {"S": f"M#{one:05}"}} for one in range(self.plan.members)])
        for writer in self.writers:
            users = [f"{writer.name}-{number:02}" for number in range(USERS)]
            user = {"SK": {"S": "PROFILE"}, "version": {"N": "0"}}
            self._load("shop", [{"PK": {"S": f"USER#{one}"}, **user, "name": {"S": f"name {one} 0"}} for one in users])
            names = [f"{writer.name}-{number:02}" for number in range(PARTS)]
            above = [None, *(self.rng.choice(names[:number]) for number in range(1, PARTS))]
            self._load(
                "parts",
                [
                    {"part_id": {"S": name}, **({"parent_id": {"S": one}} if one else {})}
                    for name, one in zip(names, above, strict=True)
                ],
            )
        self.streams.read()
        self.runs[0].start()
        self._finish_backfill(deaths=2)

    def _load(self, table: str, items: list[dict[str, Any]]) -> None:
        with (self.folder / "load.journal").open("a") as journal:
            for item in items:
                key = {name: item[name] for name in checker.KEYS[table]}
                entry = {"id": 0, "op": "put", "table": table, "key": key, "values": item}
                journal.write(json.dumps(entry) + "\n" + json.dumps({"ok": entry["id"]}) + "\n")
        for first in range(0, len(items), 25):
            requests = [{"PutRequest": {"Item": item}} for item in items[first : first + 25]]
            answer = self.client.batch_write_item(RequestItems={table: requests})
            assert not answer.get("UnprocessedItems")

    def _finish_backfill(self, deaths: int) -> None:
        backfill = self.errands["backfill"]
        for attempt in range(12):
            backfill.start(dies_at=self.rng.randint(20, 60) if attempt < deaths else 0)
            code = backfill.wait(IDLE_MAX_SECONDS)
            if code == 0:
                self.unfinished = False
                return
            self.unfinished = code != 2 or not self.unfinished  # 2: there is nothing to resume, or something
        raise NotIdleError("the backfill does not end")

    # ------------------------------------------------------------ a round
    def play_round(self, number: int) -> list[checker.Finding]:
        """Writers and faults for a while; then rest, redrive what failed, and check everything."""
        chosen = self.runs if number % 4 == 3 else self.runs[:1]  # of two, each repairs what the other lost
        errand = self.rng.choice((None, None, None, "backfill", "verify", "redrive")) if number else None
        self.plots = min(self.plan.plots, 8 * (number + 1))
        self._set_runs(chosen)
        for writer in self.writers:
            self._start(writer)
        self._make_faults(chosen, errand, stormy=number % 2 == 0)
        for process in self.processes:
            process.network.rates, process.network.until, process.network.dies_at = CALM, 0.0, 0
        for one in self.errands.values():
            self._kill(one)
        if self.unfinished:
            self._finish_backfill(deaths=0)
        self._rest(chosen)
        if any(path.stat().st_size for path in self._files_of_failures()):
            self.counts["redrives"] += 1
            self._redrive()
            self._rest(chosen)
        findings = self._check()
        if findings and self.plan.patient:  # the first look at what was parked is not a failure yet, the second is
            self._rest(chosen, attempts=2)
            findings = self._check()
        return findings

    def _set_runs(self, chosen: list[Process]) -> None:
        for run in self.runs:
            if run in chosen:
                self._kill(run)
                self._start(run)
            elif run not in chosen and run.is_alive():
                self._kill(run)

    def _make_faults(self, chosen: list[Process], errand: str | None, *, stormy: bool) -> None:
        """Do something to network and processes every moment, until some seconds after the writers have ended. `stormy`:
        once the first one has ended, each `run` lives, and none of its writes passes.
        """
        due: dict[str, float] = {}  # when a process that ended starts again
        last = time.monotonic()
        while time.monotonic() < last + TAIL_SECONDS:
            time.sleep(self.rng.uniform(0.1, 0.6))
            if not all(writer.ended_well() for writer in self.writers):
                last = time.monotonic()
            if stormy and self.writers[0].ended_well():  # the last that it does is to rename the team
                for network in (run.network for run in chosen):
                    network.rates, network.until, network.dies_at = STORM, last + TAIL_SECONDS, 0
            self._start_again((*chosen, *self.writers), due)
            what = self.rng.random()
            if what < 0.1:
                self.counts["pauses"] += 1
                self.rng.choice(chosen).pause(self.rng.uniform(0.2, 1.0))
            elif what < 0.9:
                self._change_network(self.rng.choice([*chosen, *(one for one in self.processes if one.is_alive())]))
            elif errand is not None and not self.errands[errand].is_alive():
                self.counts[errand] += 1
                self._start(self.errands[errand])
                self.unfinished |= errand == "backfill"

    def _start_again(self, processes: Iterable[Process], due: dict[str, float]) -> None:
        """Start processes that were killed, each a moment later."""
        for process in processes:
            if process.is_alive() or process.ended_well():
                continue
            at = due.setdefault(process.name, time.monotonic() + self.rng.uniform(0.0, 1.0))
            if at <= time.monotonic():
                self._start(process)
                del due[process.name]

    def _change_network(self, process: Process) -> None:
        """Give a process another network for a while: for longer than its retries, if nothing answers."""
        network, now = process.network, time.monotonic()
        if now >= network.until:
            network.rates = self.rng.choice((CALM, ROUGH) if process in self.writers else REGIMES)
            network.until = now + self.rng.uniform(0.5, 3.0 if network.rates in (CALM, ROUGH) else 8.0)

    def _start(self, process: Process) -> None:
        """Start a process that will be killed at one of its next requests, a writer seldom."""
        if process.network.rates in (AWAY, CLOSED):  # a command that no table answers ends at once
            process.network.rates, process.network.until = CALM, 0.0
        requests = 10 + int(self.rng.expovariate(1 / 200))
        lives_on = process in self.writers and self.rng.random() < 0.7
        process.start(dies_at=0 if lives_on else requests)

    def _kill(self, process: Process) -> None:
        if process.is_alive():
            process.kill()
            self.counts["kills"] += 1

    def _kill_run(self, run: Process) -> None:
        """Kill a run, and now and then all of them at the same moment."""
        for one in self.runs if self.rng.random() < 0.5 else [run]:
            self._kill(one)

    # ------------------------------------------------------------ rest
    def _rest(self, chosen: list[Process], attempts: int = 1) -> None:
        """Wait until these runs have read every stream to its end, and have no message left. Looks at what was parked
        count up to a number of attempts: they come a minute later, and what is right does not need them.
        """
        deadline = time.monotonic() + IDLE_MAX_SECONDS
        rested = 0
        while rested < 2:  # twice: their last writes have records of their own
            if time.monotonic() > deadline:
                raise NotIdleError(f"after {IDLE_MAX_SECONDS:g} s: {self._left(chosen, attempts)}")
            for run in chosen:
                if not run.is_alive():
                    self.counts["exits"] += 1
                    run.start()
            time.sleep(LOOK_SECONDS)
            left = self._left(chosen, attempts)
            rested = 0 if left else rested + 1

    def _left(self, chosen: list[Process], attempts: int) -> str:
        waiting = sum(process.network.in_flight for process in self.processes)
        if waiting:
            return f"{waiting} requests"
        self.streams.read()
        for run in chosen:
            try:
                found = json.loads((self.folder / f"{run.name}.json").read_text())
            except OSError:
                return f"{run.name} has no checkpoint"
            due = [one for one in found["messages"] if json.loads(one["body"]).get("attempt", 0) < attempts]
            if due:
                return f"{run.name} has {len(due)} messages: {due[0]}"
            for arn, position in self.streams.positions.items():
                after = [shard["after"] for shard in found["streams"].get(arn, [])]
                if not after or any(one is None or int(one) < position for one in after):
                    return f"{run.name} is at {after} of {arn}, whose end is {position}"
        return ""

    def _files_of_failures(self) -> list[Path]:
        return [path for path in (self.folder / name for name in self._failure_files()[1::2]) if path.exists()]

    def _redrive(self) -> None:
        redrive = self.errands["redrive"]
        for _ in range(3):
            redrive.start()
            if redrive.wait(IDLE_MAX_SECONDS) == 0:
                return

    # ------------------------------------------------------------ check
    def _check(self) -> list[checker.Finding]:
        tables = {table: self._scan(table) for table in checker.KEYS}
        self.streams.read()
        db = checker.read_database(tables, self.streams.history)
        checker.check_copies(db)
        journals = sorted(self.folder.glob("*.journal"))
        possible = checker.possible_states(path.read_text().splitlines() for path in journals)
        checker.check_writes(db, tables, possible)
        self.counts["checked"] += db.checked
        return db.findings

    def _scan(self, table: str) -> list[dict[str, Any]]:
        pages = self.client.get_paginator("scan").paginate(TableName=table, ConsistentRead=True)
        return [item for page in pages for item in page["Items"]]

    def summary(self) -> str:
        """Everything that happened, in counts."""
        network = sum((process.network.counts for process in self.processes), Counter[str]())
        writes = sum(path.read_text().count('"ok"') for path in self.folder.glob("*.journal"))
        parts = [f"{writes} acknowledged writes", f"{self.streams.records} stream records"]
        parts += [f"{number} {name}" for name, number in sorted((self.counts + network).items())]
        return ", ".join([*parts, f"{self.lag.hidden} rows hidden"])


def _accepted() -> list[str]:
    return [option for name in RULE_NAMES for option in ("--accept", name)]


def _streams_client(url: str) -> Any:
    from sync_rules.adapters import aws  # noqa: PLC0415

    return aws.dynamodbstreams(url)


@contextmanager
def world(plan: Plan, folder: Path) -> Iterator[World]:
    """The world of a plan, with an engine and tables of its own. Raises UserError when the engine is missing."""
    from sync_rules.language.load import load_rules  # noqa: PLC0415

    preload([*PRELOADED, *(["tests.simulation.mutants"] if plan.fault not in {"none", *OWN_FAULTS} else [])])
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with ExitStack() as stack:
        url = stack.enter_context(engines.started(plan.engine))
        engines.create(url, load_rules(RULES).tables)
        made = World(plan, folder, url, stack)
        made.lag.look()
        stack.enter_context(made.lag.watching())
        yield made


@dataclass(frozen=True)
class Verdict:
    """How a run ended: the first findings, after how many seconds, and the counts."""

    findings: tuple[str, ...]
    seconds: float
    rounds: int
    summary: str


def play(plan: Plan, folder: Path, say: Callable[[str], None] = lambda _text: None) -> Verdict:
    """Play rounds until the time is up or something is found."""
    with world(plan, folder) as made:
        started, number = time.monotonic(), 0
        findings: list[str] = []
        try:
            made.begin()
            while not findings and (number == 0 or time.monotonic() - started < plan.minutes * 60):
                findings = [str(finding) for finding in made.play_round(number)]
                number += 1
                say(f"{time.monotonic() - started:6.0f} s  round {number}: {made.summary()}")
        except NotIdleError as error:
            findings = [f"not idle: {error}"]
        return Verdict(tuple(findings), time.monotonic() - started, number, made.summary())
