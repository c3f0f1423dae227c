"""The benchmarks: what they compare is comparable, and what gates is what must. Nothing here is timed."""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from decimal import Decimal
from unittest import mock

import boto3
import pytest

from benchmarks import __main__, baselines, fanouts, scale
from benchmarks.answering import AFTER, BEFORE, Bucket, Engine, target
from benchmarks.bench import Bench
from benchmarks.counters import CPU_TIME, Cost, Counters
from benchmarks.figures import ENGINE, TABLE_HEAD, WALL, Figure, ratios
from benchmarks.ours import consumer_of, copied, handled, idle_consumer, renamed
from benchmarks.records import _records, _rules
from benchmarks.running import ENVIRONMENT, answering, child
from sync_rules.adapters import aws
from sync_rules.deploy.yamltext import read_yaml
from sync_rules.extras.design.costs import pipeline_costs
from sync_rules.language.load import parse_rules
from sync_rules.model.limits import Limits

TARGETS = 60  # more than two batches of statements
TABLES = ("together", "apart")


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    """The environment of the measured clients, and no client of another test."""
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
    for kept in (aws._client, aws._session):
        kept.cache_clear()
    yield
    for kept in (aws._client, aws._session):
        kept.cache_clear()


# ---------------------------------------------------------------- the engine
@pytest.fixture
def engine():
    """An engine with a few targets, in this process."""
    found = Engine()
    found.set(targets=TARGETS)
    return found


def ask(engine, operation, **parameters):
    status, body = engine.answer(operation, json.dumps(parameters).encode())
    return status, json.loads(body)


def key_of(table, number):
    item = target(table, number)
    return {"PK": item["PK"], "SK": item["SK"]}


def statement(number):
    values = [{"S": AFTER}, *key_of("together", number).values()]
    return {"Statement": 'UPDATE "together" SET "user_name"=? WHERE "PK"=? AND "SK"=?', "Parameters": values}


@pytest.mark.parametrize("operation", ["Query", "Scan"])
def test_engine_gives_each_target_once_page_by_page(engine, operation):
    """Each target is on one page, and the last page has no cursor."""
    found, cursor = [], {}
    while True:
        _, page = ask(engine, operation, TableName="together", Limit=7, **cursor)
        assert page["Count"] == len(page["Items"]) <= 7
        found += page["Items"]
        if "LastEvaluatedKey" not in page:
            break
        cursor = {"ExclusiveStartKey": page["LastEvaluatedKey"]}
        assert page["LastEvaluatedKey"].keys() == {"PK", "SK"}
    assert found == [target("together", number) for number in range(TARGETS)]


def test_engine_pages_end_at_a_megabyte(engine):
    """Pages without a limit end at a megabyte, as DynamoDB's do."""
    engine.set(targets=2_000)
    _, page = ask(engine, "Query", TableName="together")
    assert 900 < page["Count"] < 1_200


def test_engine_lists_keys_alone_through_the_index(engine):
    """The row of a keys-only index has the keys of the table and its own."""
    _, page = ask(engine, "Query", TableName="apart", IndexName="GSI1", Limit=1)
    assert page["Items"][0].keys() == {"PK", "SK", "GSI1PK", "GSI1SK"} == page["LastEvaluatedKey"].keys()


def test_engine_gives_what_a_projection_asks_for(engine):
    """Named by placeholders or not."""
    asked = {"ProjectionExpression": "PK, #n", "ExpressionAttributeNames": {"#n": "user_name"}}
    _, page = ask(engine, "Query", TableName="together", Limit=1, **asked)
    assert page["Items"] == [{"PK": {"S": "U#1"}, "user_name": {"S": BEFORE}}]


def test_engine_reads_by_key(engine):
    """Targets and their source, one or many."""
    _, one = ask(engine, "GetItem", TableName="apart", Key=key_of("apart", 5))
    assert one["Item"] == target("apart", 5)
    keys = [key_of("apart", 5), {"PK": {"S": "U#1"}, "SK": {"S": "USER"}}]
    _, many = ask(engine, "BatchGetItem", RequestItems={"apart": {"Keys": keys}})
    assert [item.get("name", {}).get("S") for item in many["Responses"]["apart"]] == [None, AFTER]
    assert many["UnprocessedKeys"] == {}


def test_engine_refuses_what_dynamodb_refuses(engine):
    """The engine refuses 26 statements, the same item twice, and an unknown operation."""
    for statements in ([statement(n) for n in range(26)], [statement(1), statement(1)]):
        status, error = ask(engine, "BatchExecuteStatement", Statements=statements)
        assert (status, error["__type"].rpartition("#")[2]) == (400, "ValidationException")
    assert ask(engine, "DeleteTable")[0] == 400
    assert engine.report()["distinct"] == 0


def test_engine_throttles_each_statement_by_itself(engine):
    """A batch is answered with 200, and says of each statement whether it was written."""
    engine.set(targets=TARGETS, writes_per_second=3)
    status, answer = ask(engine, "BatchExecuteStatement", Statements=[statement(n) for n in range(5)])
    codes = [one.get("Error", {}).get("Code") for one in answer["Responses"]]
    assert (status, codes) == (200, [None] * 3 + ["ProvisionedThroughputExceeded"] * 2)
    assert ask(engine, "UpdateItem", TableName="together", Key=key_of("together", 9))[0] == 400
    assert {name: engine.report()[name] for name in ("written", "throttled", "distinct")} == {
        "written": 3, "throttled": 3, "distinct": 3,
    }  # fmt: skip


def test_bucket_fills_with_time_and_holds_a_second(monkeypatch):
    """A bucket starts with one second's rate, refills with time, and never holds more."""
    now = [0.0]
    bucket = Bucket(2, lambda: now[0])
    assert [bucket.take() for _ in range(3)] == [True, True, False]
    now[0] = 0.5
    assert [bucket.take() for _ in range(2)] == [True, False]
    now[0] = 100
    assert [bucket.take() for _ in range(3)] == [True, True, False]


# ---------------------------------------------------------------- contenders
@pytest.fixture(scope="module")
def running():
    """The engine in its own process."""
    with answering() as engine:
        yield engine


@pytest.mark.parametrize("name", TABLES)
def test_contenders_make_the_same_copies(running, name):
    """Fan-outs by hand and the pipeline write each target once, and all send a session token."""
    by_hand = baselines.table_of(running.url, name)
    one_by_one = (lambda: baselines.loop(by_hand, "1", AFTER), lambda: baselines.pool(by_hand, "1", AFTER))
    hands = fanouts.by_hand(running.url, threads=2).values() if name == "together" else one_by_one
    for work in (*hands, lambda: handled(consumer_of(running.url), renamed(name))):
        running.set(targets=TARGETS)
        work()
        counts = running.counts()
        assert (counts["written"], counts["distinct"]) == (TARGETS, TARGETS)
        assert counts["with_token"] == counts["requests"]


def test_contenders_are_throttled_alike_and_lose_nothing(running):
    """All but the thread pool, which gives up, retry a throttled write until every target is written."""
    hands = fanouts.by_hand(running.url)
    del hands["pool"]
    for work in (*hands.values(), lambda: handled(consumer_of(running.url), renamed("together"))):
        running.set(targets=TARGETS, writes_per_second=TARGETS - 10)
        work()
        assert running.counts()["distinct"] == TARGETS


def test_ours_writes_nothing_that_is_right(running):
    """A fan-out over targets that are right writes none of them."""
    running.set(targets=TARGETS, right=True)
    handled(consumer_of(running.url), renamed("together"))
    assert (running.counts()["written"], running.counts()["fan_outs"]) == (0, 1)


def test_guard_by_hand_compares_what_was_read(running):
    """The guard names the user and the name that was read, or that there was none; a copy that is right is left."""
    order = target("together", 1)
    seen = baselines.compared(order, {"S": AFTER})
    assert seen["Parameters"] == [{"S": AFTER}, order["PK"], order["SK"], order["user_id"], {"S": BEFORE}]
    del order["user_name"]
    assert "IS MISSING" in baselines.compared(order, {"S": AFTER})["Statement"]
    running.set(targets=TARGETS, right=True)
    assert baselines.guarded(baselines.client_of(running.url), "1", AFTER) == running.counts()["written"] == 0


def test_engine_counts_read_units(engine):
    """A page by the sum of its items, half for what may be stale; each item by itself."""
    ask(engine, "Query", TableName="together", Limit=40)
    assert engine.report()["read_units"] == 5  # 40 KB
    ask(engine, "Query", TableName="together", Limit=40, ConsistentRead=True)
    assert engine.report()["read_units"] == 15
    ask(engine, "BatchGetItem", RequestItems={"apart": {"Keys": [key_of("apart", n) for n in range(4)]}})
    assert engine.report()["read_units"] == 17


def test_ours_reads_the_source_of_its_own_copies(running):
    """Records of copies that are right cause reads, but no writes."""
    running.set(targets=TARGETS)
    handled(consumer_of(running.url), copied("together", TARGETS))
    assert running.counts()["written"] == running.counts()["fan_outs"] == 0
    assert running.counts()["requests"] > 0


@pytest.mark.parametrize("sort_key", ["LOG#{}", "S3"], ids=["of no entity", "of a source"])
def test_records_that_ask_for_nothing_ask_for_nothing(sort_key):
    """No request, by the pipeline; and what the handler by hand finds is what it should."""
    event = _records(sort_key)
    handled(idle_consumer(parse_rules(_rules(5))), event)
    assert baselines.handle(event, ["S3"]) == (["S3"] * len(event["Records"]) if sort_key == "S3" else [])


# ---------------------------------------------------------------- counting
def test_cost_is_subtracted_and_shared_out():
    """Each of its counts."""
    cost = Cost(900, 9.0, 12.0) - Cost(300, 3.0, 6.0)
    assert cost.per(3) == Cost(200, 2.0, 2.0)
    assert (cost.work, Cost(0, 2.0, 3.0).work) == (600, 2.0)


def test_counters_count_this_process_and_its_children():
    """Counters measure the work of this process and of its children."""
    counters = Counters()
    here = counters.cost(lambda: sum(range(100_000)))
    there = counters.cost(lambda: child("-c", "import time\nwhile time.process_time() < 0.2: pass"))
    assert min(here.work, here.cpu_seconds) > 0
    assert there.cpu_seconds >= 0.2
    assert (here.instructions > 0) == (counters.kind != CPU_TIME)
    counters.close()


def test_bench_runs_contenders_in_turns_and_forgets_the_first_round():
    """Contenders run in alternating order, and the first round does not count."""
    order = []
    contenders = {name: lambda name=name: order.append(name) or Cost(len(order), 0, 0) for name in "ab"}
    costs = Bench(None, None).in_turns(contenders, rounds=2)
    assert "".join(order) == "baabba"
    assert [cost.instructions for cost in costs["a"]] == [3, 6]


# ---------------------------------------------------------------- figures
def figure(value, counted_by=ENGINE, *, gated=True, **goal):
    return Figure("a measure", (value,) * 3, "%", counted_by, gated=gated, **(goal or {"at_most": 0.06}))


@pytest.mark.parametrize(
    ("shown", "reached", "passes"),
    [
        (figure(0.06), True, True),
        (figure(0.061), False, False),
        (figure(0.061, gated=False), False, True),
        (figure(0.061, CPU_TIME), False, True),
        (figure(0.08, CPU_TIME), False, False),
        (figure(0.9, WALL, at_least=0.95), False, False),
        (figure(2.0, at_most=1, at_least=1), False, False),
        (figure(0.0, at_most=1, at_least=1), False, False),
        (figure(0.061, "instructions"), False, False),
    ],
)
def test_figure_gates_by_what_its_counter_can_tell(shown, reached, passes):
    """A figure fails by counts and instructions strictly, by CPU time with tolerance, and never if only shown."""
    assert (shown.reached, shown.passes) == (reached, passes)


def test_figure_is_the_median_with_quartiles():
    """Round by round, so that what slows both down slows neither figure."""
    rounds = ratios([1.0, 4.0, 3.0, 10.0, 5.0], [1.0, 2.0, 1.0, 2.0, 1.0])
    assert rounds == (1.0, 2.0, 3.0, 5.0, 5.0)
    one = Figure("m", rounds, "x", WALL, at_most=4, note="n")
    assert (one.value, one.quartiles) == (3.0, (2.0, 5.0))
    assert one.row() == "| m (n) | at most 4.00x | 3.00x | 2.00x to 5.00x | yes | the clock |"


@pytest.fixture
def measured(monkeypatch, tmp_path):
    """Runs the command on figures that are given; its exit code and what it wrote."""

    def run(*figures, arguments=()):
        monkeypatch.setattr(__main__, "MEASURES", {"mine": lambda _bench: iter(figures)})
        with mock.patch.dict(os.environ):
            code = __main__.main(["--results", str(tmp_path / "results.json"), *arguments])
        return code, json.loads((tmp_path / "results.json").read_text())

    return run


@pytest.fixture
def commanded(monkeypatch, tmp_path):
    """Runs the command with a work to measure; its exit code. A full run's results are in the test's folder."""
    monkeypatch.setattr(__main__, "RESULTS", tmp_path / "full.json")

    def run(*arguments, work=lambda: None):
        monkeypatch.setattr(__main__, "MEASURES", {"mine": lambda _bench: [work(), figure(0.05)][1:]})
        with mock.patch.dict(os.environ):
            return __main__.main(list(arguments))

    return run


@pytest.mark.parametrize(
    ("figures", "arguments", "code"),
    [
        ([figure(0.05)], ["--check"], 0),
        ([figure(0.05), figure(0.07)], ["--check"], 1),
        ([figure(0.07)], [], 0),
        ([figure(0.07, gated=False)], ["--check"], 0),
    ],
    ids=["reached", "missed", "not checked", "told only"],
)
def test_check_fails_when_a_gated_figure_is_out(measured, capsys, figures, arguments, code):
    """--check fails for a gated figure out of its bound and names it; without --check it is only printed."""
    assert measured(*figures, arguments=arguments)[0] == code
    shown = capsys.readouterr()
    assert "\n".join([TABLE_HEAD, *(one.row() for one in figures)]) in shown.out
    assert ("missed: a measure: at most 6.0%, measured 7.0%\n" in shown.err) == any(not one.passes for one in figures)


def test_figures_before_a_crash_are_printed(capsys, monkeypatch):
    """A measure that crashes after minutes loses none of the figures before it."""

    def crashing(_bench):
        yield figure(0.05)
        raise RuntimeError

    monkeypatch.setattr(__main__, "answering", mock.MagicMock())
    monkeypatch.setattr(__main__, "MEASURES", {"mine": crashing})
    with mock.patch.dict(os.environ), pytest.raises(RuntimeError):
        __main__.measure(["mine"], quick=False)
    assert figure(0.05).row() in capsys.readouterr().out


def test_smoke_runs_a_measure_without_its_goals(commanded, capsys):
    """A smoke run fails for a measure that crashes, never for the figures of a few targets; it keeps no results."""
    assert commanded("--smoke", "--check") == 0
    bench = Bench(mock.Mock(), mock.Mock(), smoke=True)
    assert (bench.size(1_000_000), bench.fixed(10_000), bench.fixed(7), bench.rounds(9)) == (100, 100, 7, 2)
    with pytest.raises(ZeroDivisionError):
        commanded("--smoke", work=lambda: 1 / 0)
    assert "missed" not in capsys.readouterr().err


def test_results_say_what_they_were_made_with(measured):
    """Python and its build, versions, and what counted."""
    _, body = measured(figure(0.05))
    assert body["made_with"].keys() >= {"work counted by", "Python", "build flags", "packages", "awscrt"}
    assert body["figures"][0]["rounds"] == [0.05] * 3


@pytest.mark.parametrize(
    ("arguments", "written"),
    [
        ([], {"full.json"}),
        (["--quick"], set()),
        (["--only", "mine"], set()),
        (["--quick", "--only", "mine", "--results", "part.json"], {"part.json"}),
    ],
    ids=" ".join,
)
def test_results_of_a_part_are_not_taken_for_those_of_all(commanded, monkeypatch, tmp_path, arguments, written):
    """A quick run, or one of some measures, leaves a full one's results alone."""
    monkeypatch.chdir(tmp_path)
    assert commanded(*arguments) == 0
    assert {path.name for path in tmp_path.iterdir()} == written


def test_results_that_cannot_be_written_are_told_before_anything_is_measured(commanded, capsys, tmp_path):
    """A results file that cannot be written is refused in one line before any measurement."""
    for file in (tmp_path, tmp_path / "nowhere" / "results.json"):
        assert commanded("--results", str(file), work=pytest.fail) == 2
        shown = capsys.readouterr()
        assert (shown.out, shown.err.count("\n")) == ("", 1)
        assert shown.err.startswith(f"{file} cannot be written: ")
    assert list(tmp_path.iterdir()) == []


def test_interrupt_ends_in_a_line_and_leaves_results_as_they_were(commanded, capsys, tmp_path):
    """An interrupt exits with 130 and leaves earlier results as they were."""

    def interrupted():
        raise KeyboardInterrupt

    assert commanded(work=interrupted) == 130
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "full.json").write_text("earlier")
    assert commanded(work=interrupted) == 130
    assert (tmp_path / "full.json").read_text() == "earlier"
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == (2 * f"{TABLE_HEAD}\n", 2 * "interrupted: nothing was written\n")


@pytest.mark.parametrize("kind", ["instructions", CPU_TIME])
def test_instructions_are_told_where_they_are_counted(monkeypatch, kind):
    """CPU time goes by its own name, once."""
    costs = {name: [Cost(1, 1.0, 1.0)] for name in ("four", *fanouts.WORDS)}
    monkeypatch.setattr(Bench, "in_turns", lambda *_args, **_kwargs: costs)
    engine = mock.Mock(url="http://127.0.0.1:1", counts=lambda: Counter(requests=1))
    bench = Bench(engine, mock.Mock(kind=kind))
    figures = [one for measure in (fanouts.base, fanouts.index) for one in measure(bench)]
    assert any("instructions" in one.measure for one in figures) is (kind != CPU_TIME)
    assert [one.gated for one in figures if one.measure.startswith("client CPU per copy, against")] == [True]


@pytest.mark.parametrize(("alone", "meets"), [(601, True), (599, False)])
def test_limit_has_a_goal_where_a_machine_meets_it(monkeypatch, alone, meets):
    """One that is hardly faster proves nothing; and what the clock decides gates nowhere, only lost copies do."""
    monkeypatch.setattr(Bench, "copying", lambda *_args, **_kwargs: Cost(0, 0, 1 / alone))
    monkeypatch.setattr(fanouts, "consumer_of", mock.Mock())
    monkeypatch.setattr(baselines, "pool", lambda *_: 0)
    engine = mock.Mock(url="http://127.0.0.1:1", counts=lambda: Counter(throttled=1, distinct=3_000))
    counters = mock.Mock(cost=lambda _work: Cost(0, 0, 1.0))
    figures = [one for one in fanouts.limited(Bench(engine, counters)) if "400/s, one partition" in one.measure]
    assert {one.gated for one in figures if "lost" in one.measure} == {True}
    assert {(one.gated, one.goal != "reported") for one in figures if "lost" not in one.measure} == {(False, meets)}


# ---------------------------------------------------------------- scale
PAGE = scale.PAGE.read_text()
ESTIMATES = {
    layout.title: [scale.estimate(pipeline_costs, layout) for pipeline_costs in scale.COPIES]
    for layout in scale.LAYOUTS
}


def test_scale_page_has_the_tables_of_the_code():
    """`python -m benchmarks.scale` writes them."""
    assert scale.page_with(PAGE) == PAGE


@pytest.mark.parametrize("layout", scale.LAYOUTS, ids=lambda layout: layout.name)
def test_scale_no_limit_is_passed(layout):
    """No estimate exceeds the write or read limits, and more copies never take less time or money."""
    estimates = ESTIMATES[layout.title]
    for one in estimates:
        assert scale.write_units(one.copies) / one.seconds <= max(layout.write_units) * 1.001
        assert scale.read_units(one.copies, layout) / one.seconds <= scale.TABLE_READS * 1.001
    assert [one.seconds for one in estimates] == sorted(one.seconds for one in estimates)
    assert [one.money for one in estimates] == sorted(one.money for one in estimates)


def test_scale_a_million_copies_by_hand():
    """Computed on paper: 16.7 minutes in a partition, 4.2 in a new table, a minute where listing binds; 62.5 cents of writes wherever."""
    million = scale.COPIES.index(10**6)
    partition, new, warm = (ESTIMATES[layout.title][million] for layout in scale.LAYOUTS)
    assert (round(partition.seconds), round(new.seconds), round(warm.seconds)) == (1_000, 250, 56)
    assert {one.writes for one in (partition, new, warm)} == {Decimal("0.625")}
    assert (partition.binds, new.binds) == ("partition, writes", "new table, writes")


def test_scale_page_says_what_the_numbers_say():
    """The sentences above the tables."""
    billion = ESTIMATES["Spread, in a warm table"][-1]
    new = ESTIMATES["Spread, in a new on-demand table"][scale.COPIES.index(10**6)]
    assert (new.workers, billion.workers, billion.binds) == (2, 8, "listing")
    assert math.ceil(scale.TABLE_WRITES / scale.WORKER_COPIES_SECOND) == 16
    assert f"at {scale.LISTED_COPIES_SECOND:,} a second" in PAGE
    assert "eight workers keep up" in PAGE
    assert "Two processes saturate a new table, and sixteen saturate a table at its default" in PAGE
    assert math.floor(scale.TABLE_WRITES / scale.LOOP_COPIES_SECOND / 100) == 3
    assert 0.75 < billion.writes / billion.money < 0.85
    assert scale.NEW_TABLE_WRITES * scale.DOUBLES_SECONDS // 10**6 == 7


def test_costs_know_the_limits_of_the_pipeline():
    """The numbers of copies that costs are computed with are those of the pipeline."""
    limits = Limits()
    assert limits.fan_out_inline_max_items == pipeline_costs.INLINE_COPIES
    assert limits.fan_out_relay_max_items == pipeline_costs.PAGE_COPIES
    assert limits.fan_out_chunk_max_items == pipeline_costs.CHUNK_COPIES


def test_scale_page_says_what_the_template_writes(monkeypatch):
    """Its default and its pace, and what workers that wait add to the price."""
    template = read_yaml((scale.PAGE.parent.parent / "template.yaml").read_text(), "template.yaml")
    default = template["Parameters"]["WriteUnitsPerSecond"]["Default"]
    pace = {
        int(units): (one["Workers"], int(one["UnitsOfEach"]))
        for units, one in template["Mappings"]["FanoutPace"].items()
    }
    assert (default, pace[default], pace[40_000]) == (500, (4, 125), (160, 250))
    assert {each for units, (_, each) in pace.items() if units >= 1_000} == {250}
    assert round(10**6 / default / 60) == 33
    shown = scale.compute(10**6, scale.LAYOUTS[1])
    dearer = []
    for units in (125, 250):
        monkeypatch.setattr(scale, "WORKER_COPIES_SECOND", units)
        dearer.append(round(scale.compute(10**6, scale.LAYOUTS[1]) / shown))
    assert dearer == [10, 5]
    said = " ".join(PAGE.split())
    for words in (
        "by default 500",
        "33 minutes at the default",
        "125 write units a second per worker",
        "ten times",
        "At 250",
        "five times",
        "160",
    ):
        assert words in said


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.26, "0.26 s"), (90, "1.5 min"), (7_200, "2.0 h"), (10**6, "11.6 days")]
)
def test_scale_durations_read_well(seconds, words):
    """A duration is printed in the largest unit of which there is at least one."""
    assert scale.duration(seconds) == words
