"""`make facts`: compare the newest botocore with what code and documentation rely on.

It downloads the wheel into a temporary folder and reads its service models; nothing is installed. Each fact of
assumptions.toml with a `model` is compared, then each call in the code. Operations and members that are new since the
version in assumptions.toml are listed, and are no failure. Exit code: 0; 1 if a fact changed; 2 if nothing was compared.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from functools import cache, reduce
from importlib import import_module
from pathlib import Path
from typing import Any

import botocore

from sync_rules.extras.proof.probe import ASSUMPTIONS, SOURCE
from tests.facts.service_models import Calls, ServiceModels, compare_models, read_calls

ROOT = Path(__file__).parent.parent.parent
CALLS_FACT = 72
CODE = re.compile(r"(?:sync_rules|handlers)\.[\w.]+:\w+|[\w.]+\.yaml:\w+")
PIP_SECONDS = 300
REVIEW = "Read what is new, then write this version into assumptions.toml (botocore)."


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="make facts", description=__doc__)
    parser.add_argument("--wheel", type=Path, help="a wheel of botocore, instead of the newest")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="sync-rules-facts-") as folder:
        try:
            new = ServiceModels.of_wheel(given.wheel or download("botocore", Path(folder)))
            return report(new, find_reviewed(Path(folder)))
        except (OSError, subprocess.SubprocessError, LookupError, ValueError) as error:
            print(f"nothing was compared: {error}", file=sys.stderr)
            return 2


def download(requirement: str, folder: Path) -> Path:
    """Download a wheel. Raises ValueError with pip's last line when that fails."""
    options = ("--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary=:all:", "--dest", str(folder))
    command = [sys.executable, "-m", "pip", "download", *options, requirement]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PIP_SECONDS)
    if done.returncode:
        raise ValueError(
            f"pip cannot download {requirement}: {(done.stderr.strip().splitlines() or ['no reason'])[-1]}"
        )
    return max(folder.glob("*.whl"), key=lambda wheel: wheel.stat().st_mtime_ns)


def find_installed() -> ServiceModels:
    """The models of the botocore in .venv."""
    return ServiceModels(Path(botocore.__file__).parent / "data", botocore.__version__)


def find_reviewed(folder: Path) -> ServiceModels:
    """The models of the version whose operations people have read."""
    version = SOURCE["botocore"]
    if version == botocore.__version__:
        return find_installed()
    return ServiceModels.of_wheel(download(f"botocore=={version}", folder))


def report(new: ServiceModels, reviewed: ServiceModels) -> int:
    """Print the facts that changed, and what is new. Returns the exit code."""
    changed = [*list_changed_facts(new)]
    changes = [*compare_models(reviewed, new, read_product_calls())]
    changed += [(CALLS_FACT, one.text, one.files) for one in changes if one.files]
    for number, text, code in changed:
        print(f"fact {number} changed: {text}\n  {ASSUMPTIONS[number].fact}\n  Relied on by: {', '.join(code)}")
    notices = [f"new in {new.version}: {one.text}" for one in changes if not one.files]
    print(*notices, *([REVIEW] if notices else ()), sep="\n", end="\n" if notices else "")
    compared = sum(len(one.model) for one in ASSUMPTIONS.values())
    print(
        f"botocore {new.version}: {compared} statements about {len([1 for one in ASSUMPTIONS.values() if one.model])} "
        f"facts compared, {len(changed)} changed, {len(notices)} new since {reviewed.version}"
    )
    return 1 if changed else 0


def list_changed_facts(models: ServiceModels) -> Iterator[tuple[int, str, tuple[str, ...]]]:
    """List the facts that a model contradicts: number, difference, and the code that relies on each."""
    for one in ASSUMPTIONS.values():
        for path, expected in one.model.items():
            difference = find_difference(models, path, expected)
            if difference:
                yield one.number, difference, one.relied_on


def find_difference(models: ServiceModels, path: str, expected: int | str | list[str]) -> str:
    """Compare one value of a model with the expected one. Returns the difference, "" if there is none."""
    is_code = isinstance(expected, str) and CODE.fullmatch(expected)
    wanted = read_code(str(expected)) if is_code else expected
    origin = f" ({expected})" if is_code else ""
    try:
        found = models.find(path)
    except KeyError:
        return f"{path} is not in the model any more, expected {wanted}{origin}"
    if isinstance(found, int):
        return "" if found == wanted else f"{path} is {found}, expected {wanted}{origin}"
    if isinstance(found, str):
        text = " ".join(re.sub(r"<[^>]+>", " ", found).split()).replace(" .", ".").replace(" ,", ",")
        return "" if wanted in text else f"{path} no longer says {wanted!r}"
    names = {one["shape"] if isinstance(one, dict) else one for one in found}
    missing = sorted({wanted} - names if isinstance(wanted, str) else {*wanted} - names)
    return f"{path} has no {', '.join(missing)} any more{origin}" if missing else ""


def read_code(name: str) -> Any:
    """The value of MODULE:NAME, or the values of a key in a YAML file."""
    place, _, what = name.partition(":")
    if place.endswith(".yaml"):
        found = re.findall(rf"\b{what}: \[?([\w.]+)", (ROOT / place).read_text())
        assert found, name
        return sorted({*found})
    return reduce(getattr, what.split("."), import_module(place))


@cache
def read_product_calls() -> Calls:
    """The names in the product's source files."""
    return read_calls(read_sources())


def read_sources() -> Iterator[tuple[str, str]]:
    """The product's source files, path and text."""
    for folder in ("sync_rules", "handlers"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield str(path.relative_to(ROOT)), path.read_text()


if __name__ == "__main__":
    sys.exit(main())
