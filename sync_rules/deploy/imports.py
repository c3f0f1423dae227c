"""Which modules a module reaches by import, read from the source, nothing run.

Law: an import inside a function counts; one for type checking alone does not, since it is never done. With a module
come the packages it is in.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Sources:
    """A folder of modules; `packages` are the names on top of it that count, all of them when none is given. Those
    `without` do not, whoever imports them.
    """

    root: Path
    packages: tuple[str, ...] = ()
    without: frozenset[str] = frozenset()

    def path_of(self, module: str) -> Path | None:
        """The file of a module, None when it is not in this folder."""
        parts = module.split(".")
        if module in self.without:
            return None
        if not all(parts) or (self.packages and parts[0] not in self.packages):
            return None
        place = self.root.joinpath(*parts)
        found = (path for path in (place / "__init__.py", place.with_name(f"{place.name}.py")) if path.is_file())
        return next(found, None)

    def name_of(self, path: Path) -> str:
        """The module in a file."""
        parts = path.relative_to(self.root).with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    def foreign(self, paths: Iterable[Path]) -> set[str]:
        """The packages that these files import and that are not in this folder."""
        return {
            name.split(".", maxsplit=1)[0]
            for path in paths
            for name in imports(path, self.name_of(path))
            if self.path_of(name.split(".", maxsplit=1)[0]) is None
        }


def reached(modules: Iterable[str], sources: Sources) -> list[Path]:
    """The files of these modules and of all in the same folder that they import, one by another, in order."""
    waiting, found = [*modules], dict[str, Path]()
    while waiting:
        name = waiting.pop()
        path = sources.path_of(name)
        if name in found or path is None:
            continue
        found[name] = path
        package = name.rpartition(".")[0]
        waiting += [package] if package else []
        waiting += imports(path, name)
    return sorted(found.values())


def imports(path: Path, module: str) -> Iterator[str]:
    """The names that a file imports: each a module, or a name in one, which is then not found."""
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in _run(ast.parse(path.read_bytes()).body):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, *([base] if base else [])])
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


def _run(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """All nodes but those that are for type checking alone."""
    for node in nodes:
        yield node
        if isinstance(node, ast.If) and ast.unparse(node.test).rpartition(".")[2] == "TYPE_CHECKING":
            yield from _run(node.orelse)
        else:
            yield from _run(ast.iter_child_nodes(node))
