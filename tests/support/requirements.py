"""`python -m tests.support.requirements`: the dependencies in pyproject.toml that the functions import, and Lambda lacks.

`make requirements` locks them for the bundles of the functions.
"""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Final

from sync_rules.deploy.bundle import list_imports, list_own_modules
from tests.test_house import ROOT

OF_LAMBDA: Final = frozenset({"boto3", "botocore", "s3transfer"})  # in its Python runtimes


def list_requirements() -> list[str]:
    """The requirements, as pyproject.toml has them."""
    imported = {
        name.split(".", maxsplit=1)[0]
        for folder, modules in list_own_modules().items()
        for path in modules
        for name in list_imports(path, name_of(folder, path))
    }
    of_package = packages_distributions()
    needed = {distribution_of(name) for package in imported for name in of_package.get(package, ())} - OF_LAMBDA
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [line for line in project["dependencies"] if distribution_of(line) in needed]


def name_of(folder: Path, path: Path) -> str:
    """The module in a file of a folder."""
    parts = path.relative_to(folder).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def distribution_of(requirement: str) -> str:
    """The name of a distribution in a requirement such as `pydantic>=2.11`, spelled in one way."""
    return re.sub(r"[-_.]+", "-", (re.match(r"[\w.-]+", requirement) or [""])[0]).lower()


if __name__ == "__main__":
    print("\n".join(list_requirements()))
