"""`python -m tests.mutation.worker ROOM ELSEWHERE...`: tries edits of one room, one JSON line in, one word out.

The tests of the room are imported once, and run once without an edit, to see which test calls which function. Each edit is
tried in a fork, which gives the edited function its new code, runs the tests that call it, the fastest first, and then the
simulator. A quick try leaves out the first run, and takes the tests nearest to the module. The files are never changed:
this process runs in a copy all the same, because an edited program may write anywhere.
"""

from __future__ import annotations

import contextlib
import gc
import io
import json
import os
import resource
import signal
import sys
import tempfile
import threading
import time
import types
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.mutation.edits import Edit
from tests.simulation.runs import failures_in
from tests.simulation.worlds import ALL
from tests.support.engines import Endpoints, started

SIMULATED_HISTORIES = 200
SIMULATED = frozenset(sys.modules)  # what the simulator imports: it notices no edit of another module
CPU_SECONDS, WALL_SECONDS = 300, 1_500  # of one edit: what takes longer hangs
KILLERS_SECONDS = 60  # of one edit, if each test that notices it is wanted: CPU seconds
ALL_SECONDS = 3_600  # of all tests of a room, once
FIRST_TESTS = 40  # are run before the others, which take longer to import
QUIET = ["-q", "--no-header", "--tb=no", "-p", "no:cacheprovider", "--timeout=120"]
NOTICED = {1: "tests", 2: "simulator", 3: "survived", 4: "unmade"}


def main() -> int:
    room, *elsewhere = sys.argv[1:]
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    collected = Collected()
    run_tests(["--collect-only", room], collected)
    with collected.engine():
        for line in sys.stdin:
            print(answer_for(**json.loads(line), folders=(room, *elsewhere)), file=answers, flush=True)
    return 0


def answer_for(edit: dict[str, Any], near: Sequence[str], *, quick: bool, every: bool, folders: tuple[str, ...]) -> str:
    """Try an edit. Returns a word of NOTICED, or "hang". With `every`: also each test that fails, as JSON."""
    one = Edit(**edit)
    return (
        killers_of(one, near if quick else (), folders) if every else word_for(one, near, quick=quick, folders=folders)
    )


def killers_of(edit: Edit, near: Sequence[str], folders: tuple[str, ...]) -> str:
    """Run all tests that call the edited function, the fastest first, for KILLERS_SECONDS. Returns those that fail. With
    `near`: run these files, up to the first test that fails.
    """
    tests = [] if near else callers(folders).get(place_of(edit), [])
    with tempfile.NamedTemporaryFile("r") as file:

        def noticed() -> int:
            failed = Failed(Path(file.name))
            if near:
                run_tests(["-x", *near], failed)
            for first in range(0, len(tests), FIRST_TESTS):
                run_some(tests[first : first + FIRST_TESTS], failed)
            return 1 if failed.tests else 3

        word = tried(edit, noticed, KILLERS_SECONDS)
        killers = file.read().split("\n")[:-1]
    return f"{'tests' if killers else word} {json.dumps(killers)}"


def word_for(one: Edit, near: Sequence[str], *, quick: bool, folders: tuple[str, ...]) -> str:
    """Try an edit. Returns a word of NOTICED, or "hang"."""
    tests = [] if quick else callers(folders).get(place_of(one), [])

    def noticed() -> int:
        if run_tests(["-x", *near]) if quick else run_some(tests[:FIRST_TESTS]) or run_some(tests[FIRST_TESTS:]):
            return 1
        return 2 if simulated(one) else 3

    return tried(one, noticed)


def run_tests(arguments: Sequence[str], *plugins: object) -> bool:
    """Run tests. Returns True if one failed; tests that cannot be collected fail too."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        code = pytest.main([*QUIET, *arguments], plugins=[one for one in plugins if one])
    return code not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)


def run_some(tests: Sequence[str], failed: Failed | None = None) -> bool:
    """Run some tests, in their order. Returns True if one failed: the first, or all of them are noted in `failed`."""
    if not tests:
        return False
    chosen = Chosen({test: n for n, test in enumerate(tests)})
    return run_tests([*([] if failed else ["-x"]), *dict.fromkeys(map(file_of, tests))], chosen, failed)


def file_of(test: str) -> str:
    return test.partition("::")[0]


class Collected:
    """A plugin of pytest that knows whether a test needs an engine."""

    def __init__(self) -> None:
        self._needs_engine = False

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Look at the fixtures of all tests."""
        self._needs_engine = any("engine" in getattr(it, "fixturenames", ()) for it in items)

    @contextlib.contextmanager
    def engine(self) -> Iterator[None]:
        """Start the engine once, for all edits: each fork has a session of its own, which would start one."""
        if not self._needs_engine:
            yield
            return
        with started("ministack") as url:
            Endpoints.of = lambda _self, name: url if name == "ministack" else pytest.skip(name)  # type: ignore[method-assign]
            yield


class Chosen:
    """A plugin of pytest that leaves out all tests but some."""

    def __init__(self, order: dict[str, int]) -> None:
        self._order = order

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave the wanted tests, in the wanted order."""
        items[:] = sorted((it for it in items if it.nodeid in self._order), key=lambda it: self._order[it.nodeid])


class Failed:
    """A plugin of pytest that notes each test that fails, in a file too: the process may be stopped."""

    def __init__(self, file: Path) -> None:
        self.tests: list[str] = []
        self._file = file

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a failed test once."""
        if report.failed and report.nodeid not in self.tests:
            self.tests.append(report.nodeid)
            with self._file.open("a") as file:
                file.write(f"{report.nodeid}\n")


class Callers:
    """A plugin of pytest that notes which functions each test calls that passes, and how long it takes."""

    def __init__(self) -> None:
        self.tests: dict[str, list[tuple[float, str]]] = defaultdict(list)
        self._called: set[types.CodeType] = set()
        self._passed = True

    def note(self, frame: types.FrameType, _event: str, _argument: object) -> None:
        """Note a call, as the tracer of a thread."""
        self._called.add(frame.f_code)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Start over for each test, and keep what it called."""
        self._called, self._passed, since = set(), True, time.monotonic()
        threading.settrace(self.note)
        sys.settrace(self.note)
        result = yield
        sys.settrace(None)
        if self._passed:
            core = (code for code in tuple(self._called) if "/sync_rules/" in code.co_filename)
            for name in {f"{code.co_filename} {code.co_qualname.partition('.<locals>')[0]}" for code in core}:
                self.tests[name].append((time.monotonic() - since, item.nodeid))
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Remember that a test fails without any edit."""
        self._passed &= not report.failed


@cache
def callers(folders: tuple[str, ...]) -> dict[str, list[str]]:
    """The tests that call each function, the fastest first. They run in a fork: what they leave behind is in no edit."""
    run_tests(["--collect-only", *folders])
    with tempfile.NamedTemporaryFile() as file:

        def write() -> int:
            noted = Callers()
            run_tests(folders, noted)
            tests = {name: [test for _, test in sorted(some)] for name, some in noted.tests.items()}
            Path(file.name).write_text(json.dumps(tests))
            return 0

        forked(write, ALL_SECONDS)
        return json.loads(Path(file.name).read_text() or "{}")


def place_of(edit: Edit) -> str:
    """A function as `callers` names it."""
    return f"{Path(edit.path).absolute()} {edit.function}"


def tried(edit: Edit, noticed: Callable[[], int], cpu_seconds: int = CPU_SECONDS) -> str:
    """Name what noticed the edit: tests, simulator or hang; "survived", or "unmade" if its function is not in use."""
    return NOTICED.get(forked(lambda: noticed() if put_in(edit) else 4, cpu_seconds, failed=1), "hang")


def forked(do: Callable[[], int], cpu_seconds: int, failed: int = 9) -> int:
    """Run this in a fork. Returns its answer: `failed` for an exception, less than 0 or 9 if it was stopped."""
    child = os.fork()
    if child == 0:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds))
        signal.alarm(max(WALL_SECONDS, cpu_seconds))
        code = 9
        try:
            code = do()
        except BaseException:  # noqa: BLE001 - whatever an edit breaks was noticed
            code = failed
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(status)


def simulated(edit: Edit) -> bool:
    """Run the simulator. Returns True if some history goes wrong."""
    module = edit.path.removesuffix(".py").replace("/", ".")
    return module in SIMULATED and next(failures_in(ALL, 1, SIMULATED_HISTORIES), None) is not None


def put_in(edit: Edit) -> bool:
    """Give the edited function its new code, wherever this process holds it."""
    file = str(Path(edit.path).absolute())
    new = {place(code): code for code in codes(compile(edit.made_in(Path(file).read_text()), file, "exec"))}
    found = [
        one
        for one in gc.get_objects()
        if isinstance(one, types.FunctionType)
        and one.__code__.co_filename == file
        and one.__code__.co_qualname == edit.function
    ]
    for function in found:
        code = new[place(function.__code__)]
        if code.co_freevars != function.__code__.co_freevars:
            return False
        function.__code__ = code
    return bool(found)


def place(code: types.CodeType) -> tuple[str, int]:
    return code.co_qualname, code.co_firstlineno


def codes(code: types.CodeType) -> Iterator[types.CodeType]:
    for one in code.co_consts:
        if isinstance(one, types.CodeType):
            yield one
            yield from codes(one)


if __name__ == "__main__":
    sys.exit(main())
