"""Fills the bundle of the functions: `python -m sync_rules.deploy.bundle DIRECTORY`, which `sam build` calls by make.

Law: exactly what runs. The modules that handlers reach by import, the rules as they are compiled here, the modules that
its `call` rules name and what those import beside the rules file, and the locked packages that all of these need, for
the machine that Lambda has. boto3 is there already, and what reads a rules file is no longer wanted.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Sequence
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any, Final

from sync_rules.deploy.deployment import deployment_of
from sync_rules.deploy.imports import Sources, reached
from sync_rules.deploy.template import rules_noted
from sync_rules.model.errors import UserError
from sync_rules.rules import compiled_file
from sync_rules.rules.kinds.call import functions_of
from sync_rules.rules.ruleset import Rules

ROOT: Final = Path(__file__).resolve().parent.parent.parent
REQUIREMENTS: Final = "infra/requirements.txt"
RULES_NAME: Final = "rules.yaml"  # what the functions call the rules file, wherever it came from
AT_BUILD: Final = frozenset({"sync_rules.language.load"})  # read here, so that no function has to
OURS: Final = ("handlers", "sync_rules")
OF_LAMBDA: Final = frozenset({"boto3", "botocore", "s3transfer"})  # in its Python runtimes
PYTHON: Final = "BUNDLE_PYTHON", "3.13"  # as `Runtime` in the template
PLATFORM: Final = "BUNDLE_PLATFORM", "aarch64-manylinux_2_28"  # as `Architectures`; Amazon Linux 2023 has glibc 2.34
NOT_WANTED: Final = ("bin", ".lock", "CACHEDIR.TAG", ".gitignore")  # what the installer leaves beside the packages


def bundle(directory: Path, template: Path) -> None:
    """Fill a directory with what the functions of a template need.

    Raises:
        UserError: when the rules are wrong, or name a module that is not there; when packages cannot be installed.
    """
    rules_file = rules_noted(template.read_text(encoding="utf-8"), template)
    deployment = deployment_of(rules_file)
    directory.mkdir(parents=True, exist_ok=True)
    _copy(ROOT, ours(), directory)
    _copy(rules_file.parent, called(deployment.rules, rules_file), directory)
    marks = {variable.mark: (variable.name, variable.default) for variable in deployment.variables}
    python, _ = wanted()
    compiled_file.beside(directory / RULES_NAME).write_bytes(compiled_file.written(deployment.rules, marks, python))
    install(ROOT / REQUIREMENTS, directory)


def ours() -> list[Path]:
    """The modules of this project that the functions need: compiled rules bring their kinds with them."""
    sources = Sources(ROOT, OURS, AT_BUILD)
    folders = (ROOT / "handlers", ROOT / "sync_rules" / "rules" / "kinds")
    return reached((sources.name_of(path) for folder in folders for path in sorted(folder.glob("*.py"))), sources)


def called(rules: Rules, rules_file: Path) -> list[Path]:
    """The modules beside a rules file that its `call` rules name, with what these import beside it.

    Raises:
        UserError: when there is no such module beside the rules file.
    """
    folder = rules_file.parent
    sources = Sources(folder)
    wanted: dict[str, None] = {}
    for rule, function in functions_of(rules.rules.values()).items():
        module = function.rpartition(".")[0]
        if sources.path_of(module) is None:
            raise UserError(
                f"{rules_file}: rule {rule} calls {function}, and there is no module {module} beside the rules file:"
                f" put it into {folder}, for only that is deployed"
            )
        if module.split(".", maxsplit=1)[0] in (*OURS, "infra"):
            raise UserError(f"{rules_file}: rule {rule} calls {function}: a module of that name is one of ours")
        wanted[module] = None
    return reached(wanted, sources)


def requirements() -> list[str]:
    """The dependencies of the project that the functions import, as pyproject.toml has them."""
    project: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    foreign = Sources(ROOT, OURS).foreign(ours())
    of_package = packages_distributions()
    needed = {_name(name) for package in foreign for name in of_package.get(package, ())} - OF_LAMBDA
    return [line for line in project["dependencies"] if _name(line) in needed]


def wanted() -> tuple[str, str]:
    """The version of Python, such as 3.13, and the platform that the functions run on."""
    python, platform = (os.environ.get(name) or default for name, default in (PYTHON, PLATFORM))
    return ".".join(python.split(".")[:2]), platform


def install(locked: Path, directory: Path) -> None:
    """Install locked packages for the machine that runs the functions, not for this one.

    Raises:
        UserError: with what the installer says, when it cannot.
    """
    python, platform = wanted()
    command = [
        *(sys.executable, "-m", "uv", "pip", "install", "--quiet", "--no-deps", "--require-hashes"),
        *("--only-binary", ":all:", "--link-mode", "copy", "--python", sys.executable),
        *("--python-version", python, "--python-platform", platform),
        *("--target", str(directory), "--requirement", str(locked)),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 -- our own interpreter
    if done.returncode:
        raise UserError(f"packages for Python {python} on {platform} cannot be installed: {done.stderr.strip()}")
    for name in NOT_WANTED:
        place = directory / name
        shutil.rmtree(place) if place.is_dir() else place.unlink(missing_ok=True)


def _copy(root: Path, paths: Iterable[Path], directory: Path) -> None:
    for path in paths:
        place = directory / path.relative_to(root)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, place)


def _name(requirement: str) -> str:
    """The name of a distribution in a requirement such as `pydantic>=2.11`, spelled in one way."""
    return re.sub(r"[-_.]+", "-", (re.match(r"[\w.-]+", requirement) or [""])[0]).lower()


def main(arguments: Sequence[str] | None = None) -> int:
    """Fill a directory, or with --requirements print what to lock."""
    parser = argparse.ArgumentParser(
        prog="python -m sync_rules.deploy.bundle", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("directory", type=Path, nargs="?")
    parser.add_argument("--template", type=Path, default=ROOT / "template.yaml")
    parser.add_argument("--requirements", action="store_true", help="print the dependencies that the functions need")
    given = parser.parse_args(arguments)
    if given.requirements:
        print("\n".join(requirements()))
        return 0
    if given.directory is None:
        parser.error("a directory to fill")
    try:
        bundle(given.directory, given.template)
    except UserError as error:
        print(f"sync_rules.deploy.bundle: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
