"""`make mutants`: random edits of the core, and those that no test notices.

Each edit is given to the tests of its room that call the edited function, then to the simulator. What survives that, and is
not named in harmless.toml with the reason, wants a test, or its code wants to go.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict
from functools import cache
from hashlib import sha256
from pathlib import Path

from tests.mutation.edits import Edit, edits_of

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
CORE = (
    "model/*.py", "rules/**/*.py", "pipeline/*.py", "read/*.py", "audit/*.py", "jobs/backfill/*.py",
    "jobs/redrive/*.py", "jobs/consume/*.py", "adapters/[befmpsw]*.py", "adapters/dynamodb.py",
)  # fmt: skip
PRODUCT = ("[!e_]*/**/*.py", "extras/*/**/*.py")  # every room
ELSEWHERE = {  # tests of other folders that are about a room too
    "adapters": ("tests/contract",),
    "audit": (
        "tests/unit/cli/test_explain.py",
        "tests/unit/cli/test_verify_command.py",
        "tests/unit/jobs/test_remote_verify.py",
        "tests/unit/pipeline/test_books.py",
    ),
    "jobs": (
        "tests/unit/cli/test_backfill_command.py",
        "tests/unit/cli/test_plan_command.py",
        "tests/unit/cli/test_redrive_command.py",
    ),
    "model": ("tests/unit/language",),
    "rules": (
        "tests/unit/pipeline/test_unlisted.py",
        "tests/unit/deploy/test_permissions.py",
        "tests/unit/cli/test_rule_graph.py",
        "tests/golden",
    ),
}
SURVIVORS_MAX_SHARE = 0.02
ENVIRONMENT = {"CI": "1", "TEST_ENGINE": "memory", "PYTHONHASHSEED": "0"}  # CI: Hypothesis takes the same examples


def main() -> int:
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument("--edits", type=int, default=300)
    parser.add_argument("--seed", default="1", help="the same seed makes the same edits of the same files")
    parser.add_argument("--only", default="", help="a file, or the beginning of its path")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no edit after so many")
    parser.add_argument(
        "--quick", action="store_true", help="only the tests that import the module: others may notice what survives"
    )
    parser.add_argument(
        "--again", type=Path, metavar="LOG", help="only the edits that survived in this output of an earlier run"
    )
    parser.add_argument(
        "--killers", type=Path, metavar="FOLDER",
        help="evenly over all rooms, each test that notices an edit: one JSON line for each edit, in FOLDER/ROOM.jsonl",
    )  # fmt: skip
    parser.add_argument("--same", type=Path, metavar="FOLDER", help="only the edits of an earlier run with --killers")
    options = parser.parse_args()
    if options.killers:
        return note_killers(options)
    chosen = sampled(options.only, options.edits, options.seed)
    if options.again:
        chosen = survivors_in(options.again)
    rooms = {room_of(edit.path) for edit in chosen}
    until, found = time.monotonic() + options.seconds, Counter[str]()
    survivors: list[Edit] = []
    with ThreadPoolExecutor(options.workers) as pool:
        shares = [chosen[number :: options.workers] for number in range(options.workers)]
        for edit, answer in (
            one for some in pool.map(lambda share: [*tried(share, until, quick=options.quick)], shares) for one in some
        ):
            found[answer] += 1
            survivors += [edit] if answer == "survived" else []
    known = harmless()
    for edit in sorted(survivors, key=lambda one: (one.path, one.line)):
        mark = "harmless" if edit.name in known else "SURVIVED"
        print(f"{mark} line {edit.line} of {edit.name}")
    wanted = sum(edit.name not in known for edit in survivors)
    made = found.total() - found["unmade"]
    print(f"{made} edits in {len(rooms)} rooms, seed {options.seed}: {dict(found)}; {wanted} want a test")
    return int(wanted > SURVIVORS_MAX_SHARE * made)


def note_killers(options: argparse.Namespace) -> int:
    """Write which tests notice each edit. Returns 0."""
    rooms: dict[str, list[Edit]] = defaultdict(list)
    for edit in every_edit(options.only, PRODUCT):
        rooms[room_of(edit.path)].append(edit)
    options.killers.mkdir(parents=True, exist_ok=True)
    share = -(-options.edits // len(rooms))
    found: Counter[str] = Counter()
    with ThreadPoolExecutor(options.workers) as pool:

        def note_room(room: str) -> None:
            chosen = (
                edits_like(options.same / file_of(room), rooms[room])
                if options.same
                else drawn(rooms[room], share, options.seed)
            )
            with (options.killers / file_of(room)).open("w") as file:
                for edit, answer in tried(chosen, float("inf"), quick=options.quick, every=True):
                    word, _, killers = answer.partition(" ")
                    found[word] += 1
                    line = {"word": word, "killers": json.loads(killers or "[]"), **asdict(edit)}
                    file.write(json.dumps(line) + "\n")
                    file.flush()

        list(pool.map(note_room, sorted(rooms, reverse=True)))  # the rings before the extras
    print(f"{found.total()} edits in {len(rooms)} rooms, seed {options.seed}: {dict(found)}")
    return 0


def file_of(room: str) -> str:
    return f"{room.rpartition('/')[2]}.jsonl"


def edits_like(file: Path, edits: list[Edit]) -> list[Edit]:
    """The edits of an earlier run, by their place in the syntax tree, else by their text."""
    places = {(edit.path, edit.function, edit.number): edit for edit in edits}
    texts = {(edit.before, edit.after): edit for edit in edits}
    found = []
    for line in file.read_text().splitlines():
        old = json.loads(line)
        text = (old["before"], old["after"])
        edit = places.get((old["path"], old["function"], old["number"]))
        edit = edit if edit and (edit.before, edit.after) == text else texts.get(text, edit)
        if edit is None:
            print(f"gone     {old['path']} {old['function']}: {old['before']} -> {old['after']}")
        else:
            found.append(edit)
    return sorted(found, key=lambda one: (one.path, one.line, one.after))


def harmless() -> dict[str, str]:
    """The edits that no test could notice, and why."""
    return {one["edit"]: one["why"] for one in tomllib.loads((HERE / "harmless.toml").read_text())["harmless"]}


@cache
def every_edit(only: str = "", patterns: tuple[str, ...] = CORE) -> list[Edit]:
    """Every edit of the core, or of some of its files."""
    files = sorted({file for pattern in patterns for file in (ROOT / "sync_rules").glob(pattern)})
    paths = [(file.relative_to(ROOT).as_posix(), file) for file in files]
    return [edit for path, file in paths if path.startswith(only) for edit in edits_of(path, file.read_text())]


def sampled(only: str, count: int, seed: str) -> list[Edit]:
    """Some edits, room by room: tests of a room are imported once. A change of the code changes few of them: each edit is
    drawn by its name.
    """
    return drawn(every_edit(only), count, seed)


def drawn(edits: list[Edit], count: int, seed: str) -> list[Edit]:
    """Draw some edits by their names."""
    met: Counter[str] = Counter()

    def place(edit: Edit) -> bytes:
        met[edit.name] += 1
        return sha256(f"{seed} {met[edit.name]} {edit.name}".encode()).digest()

    return sorted(sorted(edits, key=place)[:count], key=lambda one: (one.path, one.line, one.after))


def survivors_in(log: Path) -> list[Edit]:
    """The edits that survived in the output of an earlier run, as far as the code still has them."""
    names = {line.partition(" ")[2].strip() for line in log.read_text().splitlines() if line.startswith("survived ")}
    return [edit for edit in every_edit() if edit.name in names]


def room_of(path: str) -> str:
    """The folder of the unit tests of a module."""
    _, room, name, *_ = path.split("/")
    return f"tests/extras/{name}" if room == "extras" else f"tests/unit/{room}"


def near(path: str) -> list[str]:
    """The test files of the room that import a module, or have its name or its folder's; all of them if none does."""
    module = path.removesuffix(".py").replace("/", ".")
    package, _, name = module.rpartition(".")
    stems = {f"test_{name}", f"test_{package.rpartition('.')[2]}"}
    names = (f"from {module} import", f"from {package} import {name}", f"import {module}")
    tests = sorted((ROOT / room_of(path)).rglob("test_*.py"))
    importing = [test for test in tests if test.stem in stems or any(n in test.read_text() for n in names)]
    return [test.relative_to(ROOT).as_posix() for test in importing or tests]


def tried(edits: list[Edit], until: float, *, quick: bool = False, every: bool = False) -> Iterator[tuple[Edit, str]]:
    """Try edits. Yields what noticed each: tests, simulator, hang; "survived", or "unmade"."""
    with copied() as tree:
        worker, room = None, ""
        for edit in edits:
            if time.monotonic() > until:
                break
            if worker is None or room_of(edit.path) != room or worker.poll() is not None:
                stop(worker)
                room = room_of(edit.path)
                worker = started(tree, room)
            task = json.dumps({"edit": asdict(edit), "near": near(edit.path), "quick": quick, "every": every})
            worker.stdin.write(task + "\n")
            worker.stdin.flush()
            answer = worker.stdout.readline().strip() or "hang"
            print(f"{answer.partition(' ')[0]:9} {edit.name}", flush=True)
            yield edit, answer
        stop(worker)


@contextmanager
def copied() -> Iterator[Path]:
    """A copy of the files that git knows, and of those that it does not ignore."""
    names = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    ).stdout.split("\0")  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        tree = Path(folder)
        for name in filter(None, names):
            if (ROOT / name).is_file() and not (ROOT / name).is_symlink():
                (tree / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, tree / name)
        yield tree


def environment(tree: Path) -> dict[str, str]:
    return {**os.environ, **ENVIRONMENT, "PYTHONPATH": str(tree), "TMPDIR": str(tree)}


def started(tree: Path, room: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.mutation.worker", room, *ELSEWHERE.get(room.rpartition("/")[2], ())],
        cwd=tree, env=environment(tree), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        text=True, start_new_session=True,
    )  # fmt: skip


def stop(worker: subprocess.Popen[str] | None) -> None:
    if worker is not None:
        worker.stdin.close()
        worker.wait()


if __name__ == "__main__":
    sys.exit(main())
