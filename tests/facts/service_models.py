"""The service models of one botocore, and the comparison of two: what our calls name, and what is new."""

from __future__ import annotations

import ast
import gzip
import json
import re
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from botocore import xform_name

SERVICES = (
    "dynamodb", "dynamodbstreams", "sqs", "lambda", "stepfunctions", "s3", "cloudformation", "iam", "cloudwatch", "sts",
)  # fmt: skip
VERSION = re.compile(r"botocore-([\d.]+?)-")


class ServiceModels:
    """The service models of a folder botocore/data, or of a wheel."""

    def __init__(self, data: Path | zipfile.Path, version: str) -> None:
        self.data, self.version = data, version
        self.service: Callable[[str], dict[str, Any]] = cache(self._read)

    @classmethod
    def of_wheel(cls, wheel: Path) -> ServiceModels:
        """The models in a wheel; it is not installed."""
        found = VERSION.match(wheel.name)
        assert found, wheel
        return cls(zipfile.Path(wheel, "botocore/data/"), found[1])

    def _read(self, service: str) -> dict[str, Any]:
        latest = max((one for one in (self.data / service).iterdir() if one.is_dir()), key=lambda one: one.name)
        (file,) = (one for one in latest.iterdir() if one.name.startswith("service-2.json"))
        content = file.read_bytes()
        found: dict[str, Any] = json.loads(gzip.decompress(content) if file.name.endswith(".gz") else content)
        return found

    def find(self, path: str) -> Any:
        """The value at SERVICE.SHAPE.KEY or SERVICE.SHAPE.MEMBER.KEY; an operation is looked up like a shape. Raises
        KeyError when there is none.
        """
        service, name, *steps = path.split(".")
        model = self.service(service)
        node = model["shapes"].get(name) or model["operations"][name]
        for step in steps:
            node = node[step] if step in node else node["members"][step]
        return node


# ---------------------------------------------------------------- calls
@dataclass(frozen=True)
class Calls:
    """The files that name an operation, as boto3 spells it, and all names in the code."""

    files: dict[str, list[str]]
    names: frozenset[str]


def read_calls(files: Iterable[tuple[str, str]]) -> Calls:
    """Read the names in source files, each given as path and text."""
    attributes: dict[str, list[str]] = defaultdict(list)
    names: set[str] = set()
    for path, text in files:
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Attribute) and path not in attributes[node.attr]:
                attributes[node.attr].append(path)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                names.add(node.value)
            elif isinstance(node, ast.keyword) and node.arg:
                names.add(node.arg)
    return Calls(dict(attributes), frozenset(names))


@dataclass(frozen=True)
class ModelChange:
    """A difference between two models. `files` rely on it; there are none for something new."""

    text: str
    files: tuple[str, ...] = ()


def compare_models(old: ServiceModels, new: ServiceModels, calls: Calls) -> Iterator[ModelChange]:
    """List what is new, and what our calls name and is gone or of another type."""
    for service in SERVICES:
        before, after = old.service(service)["operations"], new.service(service)["operations"]
        for operation in sorted(after.keys() - before.keys()):
            yield ModelChange(f"{service} {operation}")
        for operation in sorted(before):
            files = tuple(calls.files.get(xform_name(operation), ()))
            if files and operation not in after:
                yield ModelChange(f"{service} {operation} is gone", files)
            elif files:
                yield from _Comparison(old.service(service), new.service(service), calls.names, files).compare(
                    f"{service} {operation}", before[operation], after[operation]
                )


class _Comparison:
    """The shapes of one operation in two models."""

    def __init__(self, old: Any, new: Any, names: frozenset[str], files: tuple[str, ...]) -> None:
        self._old, self._new, self._names, self._files = old["shapes"], new["shapes"], names, files
        self._seen: set[str] = set()

    def compare(self, where: str, before: Any, after: Any) -> Iterator[ModelChange]:
        for side in ("input", "output"):
            if side in before and side in after:
                yield from self._shape(where, before[side]["shape"], after[side]["shape"], request=side == "input")
            elif side in before:
                yield ModelChange(f"{where} has no {side} any more", self._files)

    def _shape(self, where: str, old_name: str, new_name: str, *, request: bool) -> Iterator[ModelChange]:
        if old_name in self._seen:
            return
        self._seen.add(old_name)
        old, new = self._old[old_name], self._new[new_name]
        if old["type"] != new["type"]:
            if where.rpartition(".")[2] in self._names:
                yield ModelChange(f"{where} is a {new['type']}, and was a {old['type']}", self._files)
            return
        yield from self._values(where, old.get("enum"), new.get("enum"))
        if request:
            for member in sorted({*new.get("required", ())} - {*old.get("required", ())}):
                yield ModelChange(f"{where} now requires {member}", self._files)
        yield from self._members(where, old, new, request=request)
        for part in ("member", "key", "value"):  # of a list, of a map
            if part in old:
                yield from self._shape(where, old[part]["shape"], new[part]["shape"], request=request)

    def _values(self, where: str, old: list[str] | None, new: list[str] | None) -> Iterator[ModelChange]:
        if old is None or new is None:
            return
        for value in sorted(({*old} - {*new}) & self._names):
            yield ModelChange(f"{where} has no value {value} any more", self._files)
        for value in sorted({*new} - {*old}):
            yield ModelChange(f"{where}: value {value}")

    def _members(self, where: str, old: Any, new: Any, *, request: bool) -> Iterator[ModelChange]:
        members, others = old.get("members", {}), new.get("members", {})
        for member in sorted(others.keys() - members.keys()):
            yield ModelChange(f"{where}: member {member}")
        for member in sorted(members):
            if member in others:
                inner = members[member]["shape"], others[member]["shape"]
                yield from self._shape(f"{where}.{member}", *inner, request=request)
            elif member in self._names:
                yield ModelChange(f"{where} has no member {member} any more", self._files)
