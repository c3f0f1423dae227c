"""Lists the modules that a user's `call` module imports, from the source; no module is run.

An import inside a function counts; one for type checking alone does not. With a module come the packages it is in.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Sources:
    """A folder of modules."""

    root: Path

    def path_of(self, module: str) -> Path | None:
        """The file of a module, None when it is not in this folder."""
        parts = module.split(".")
        if not all(parts):
            return None
        folder = self.root.joinpath(*parts)
        return next(filter(Path.is_file, (folder / "__init__.py", folder.with_name(f"{folder.name}.py"))), None)

    def name_of(self, path: Path) -> str:
        """The module in a file."""
        parts = path.relative_to(self.root).with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    def foreign(self, paths: Iterable[Path]) -> set[str]:
        """The packages that these files import from outside of this folder."""
        return {
            name.split(".", maxsplit=1)[0]
            for path in paths
            for name in imports(path, self.name_of(path))
            if self.path_of(name.split(".", maxsplit=1)[0]) is None
        }


def reached(modules: Iterable[str], sources: Sources) -> list[Path]:
    """The files of these modules and of all modules in the folder that they import, directly or through others."""
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
    """The names that a file imports: modules, and names in modules, for which `path_of` finds no file."""
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
    """All nodes except those for type checking alone."""
    for node in nodes:
        yield node
        if isinstance(node, ast.If) and ast.unparse(node.test).rpartition(".")[2] == "TYPE_CHECKING":
            yield from _run(node.orelse)
        else:
            yield from _run(ast.iter_child_nodes(node))
