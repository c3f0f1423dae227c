"""Packages that a browser needs only for the names of their exceptions: any name of theirs is an exception."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Final

ABSENT: Final = "botocore"


class AbsentModule(ModuleType):
    """A module that has an exception under each public name."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self.__dict__.setdefault(name, type(name, (Exception,), {}))


class AbsentFinder(MetaPathFinder, Loader):
    """Finds every module of the absent packages."""

    def find_spec(self, name: str, _path: Sequence[str] | None, _target: ModuleType | None = None) -> ModuleSpec | None:
        return ModuleSpec(name, self, is_package=True) if name.partition(".")[0] == ABSENT else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return AbsentModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Leave the module empty."""


def install() -> None:
    """Stand in for the absent packages."""
    sys.meta_path.append(AbsentFinder())
