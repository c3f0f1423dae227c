"""`python -m tests.mutation.worker ROOM`: tries edits of one room, one JSON line in, one word out.

The tests of the room are imported once. Each edit is tried in a fork, which gives the edited function its new code, runs
the tests nearest to its module, then the simulator. The files are never changed: this process runs in a copy all the same,
because an edited program may write anywhere.
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
import types
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.mutation.edits import Edit
from tests.simulation.runs import failures

SIMULATED_HISTORIES = 200
CPU_SECONDS, WALL_SECONDS = 150, 1_500  # of one edit: what takes longer hangs
QUIET = ["-q", "-x", "--no-header", "--tb=no", "-p", "no:cacheprovider", "--timeout=120"]


def main() -> int:
    room = sys.argv[1]
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    run_tests(["--collect-only", room])
    for line in sys.stdin:
        task = json.loads(line)
        print(tried(Edit(**task["edit"]), task["near"]), file=answers, flush=True)
    return 0


def run_tests(arguments: list[str]) -> bool:
    """Run tests. Returns True if one failed; tests that cannot be collected fail too."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        return pytest.main([*QUIET, *arguments]) not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)


def tried(edit: Edit, near: list[str]) -> str:
    """Name what noticed the edit: tests, simulator or hang; "survived", or "unmade" if its function is not in use."""
    child = os.fork()
    if child == 0:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
        signal.alarm(WALL_SECONDS)
        code = 9
        try:
            code = 4 if not put_in(edit) else 1 if run_tests(near) else 2 if simulated() else 3
        except BaseException:  # noqa: BLE001 - whatever an edit breaks was noticed
            code = 1
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    words = {1: "tests", 2: "simulator", 3: "survived", 4: "unmade"}
    return words.get(os.waitstatus_to_exitcode(status), "hang")


def simulated() -> bool:
    """Run the simulator. Returns True if some history goes wrong."""
    return next(failures(SIMULATED_HISTORIES, 1), None) is not None


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
