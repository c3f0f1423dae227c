"""Fills the bundle of the functions: `python -m sync_rules.deploy.bundle DIRECTORY`, which `sam build` calls by make. A
bundle holds `handlers` and `sync_rules` without LEFT_OUT, the compiled rules, and the locked packages for Lambda's
machine. It also holds the modules that `call` rules name, with their imports from the rules file's folder. Modules
are compiled if this machine has the functions' Python version. Lambda has boto3 already. A clone and the installed
package fill it alike.
"""

from __future__ import annotations

import argparse
import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from sync_rules.adapters.files import read_if_there
from sync_rules.deploy import files
from sync_rules.deploy.deployment import read_deployment
from sync_rules.deploy.sam_template import read_machine
from sync_rules.deploy.template import empty_any_blocks, find_rules_file
from sync_rules.deploy.yamltext import read_yaml
from sync_rules.model.errors import UserError
from sync_rules.rules import compiled_file
from sync_rules.rules.ruleset import Rules

BESIDE: Final = ("requirements.txt", files.REQUIREMENTS)  # the template: the locks of a project, of a clone
RULES_NAME: Final = "rules.yaml"  # the functions' name for the rules file, wherever it came from
OURS: Final = ("handlers", "sync_rules")
LEFT_OUT: Final = {  # modules and folders of sync_rules that no function uses, each with the reason
    "__main__.py": "starts the command line",
    "cli": "the command line; needs typer and rich",
    "deploy": "builds what is deployed",
    "extras": "design, discovery and proof, for people; need pydantic and duckdb",
    "jobs/consume": "`sync-rules run`, which consumes streams without Lambda; needs pydantic",
    "jobs/dryrun": "`sync-rules plan`; needs pydantic",
    "lab": "scenarios, replays and the demo",
    "language": "reads rules.yaml; a function gets compiled rules; needs pydantic and ruamel.yaml",
    "read": "what applications import to read",
}
OF_THE_WRITE_FUNCTION: Final = ("handlers/write.py", "sync_rules/write")  # left out where it is not deployed
PYTHON: Final = "BUNDLE_PYTHON"  # overrides `Runtime` of the template
HERE: Final = "{}.{}".format(*sys.version_info)
IN_LAMBDA: Final = "/var/task"  # where Lambda unpacks a bundle: tracebacks name it
PLATFORM: Final = "BUNDLE_PLATFORM"  # overrides `Architectures`
GLIBC: Final = "manylinux_2_28"  # Amazon Linux 2023 has 2.34
CERTIFICATE: Final = "certificate"  # in what uv and pip say of a registry whose authority they do not know
SYSTEM_CERTIFICATES: Final = {"UV_SYSTEM_CERTS": "true", "UV_NATIVE_TLS": "true"}  # as newer and older uv call it

MANYLINUX: Final = re.compile(r"(?P<machine>\w+?)-manylinux_2_(?P<glibc>\d+)")  # as uv calls a platform
OLDEST_GLIBC: Final = 17  # of manylinux2014; no wheel for aarch64 is older
LEFTOVERS: Final = ("bin", ".lock", "CACHEDIR.TAG", ".gitignore")  # an installer leaves these beside the packages
SCRIPT: Final = re.compile(r"(\.\./)*bin/")  # a line of RECORD, by uv and by pip
LOCKED: Final = ("--quiet", "--no-deps", "--require-hashes", "--only-binary", ":all:")


def fill_bundle(directory: Path, template: Path) -> None:
    """Fill a directory with what the functions of a template need.

    Raises:
        UserError: if the rules are wrong or name a missing module, packages cannot be installed, or the template's
            folder has no locked requirements.
    """
    text = read_template(template)
    rules_file = find_rules_file(text, template)
    python, platform = find_platform(text, template)
    deployment = read_deployment(rules_file)
    locked = find_lock(template)
    directory.mkdir(parents=True, exist_ok=True)
    for folder, modules in list_own_modules(write=bool(deployment.write)).items():
        _copy(folder, modules, directory)
    _copy(rules_file.parent, list_called_files(deployment.rules, rules_file), directory)
    marks = {variable.mark: (variable.name, variable.default) for variable in deployment.variables}
    compiled = compiled_file.dump(deployment.rules, marks, python, source=rules_file.read_bytes())
    compiled_file.name_compiled_file(directory / RULES_NAME).write_bytes(compiled)
    install(locked, directory, python, platform)
    precompile(directory, python)


def read_template(template: Path) -> str:
    """Return the text of a template. Raises UserError if the file does not exist."""
    found = read_if_there(template, "the template")
    if found is None:
        raise UserError(f"{template}: no such file: build in the folder of template.yaml, or name it with --template")
    return found.decode(errors="replace")


def find_lock(template: Path) -> Path:
    """Return the path of the functions' locked requirements. Raises UserError if there are none."""
    for name in BESIDE:
        if (template.parent / name).is_file():
            return template.parent / name
    raise UserError(
        f"{template.parent / BESIDE[0]}: no such file. It has the packages of the functions, with hashes:"
        " `sync-rules init` in an empty folder writes one to copy"
    )


def list_own_modules(*, write: bool = True) -> dict[Path, list[Path]]:
    """List the modules of this project that the functions need, by the folder from which they are imported. `write`:
    include the write function.
    """
    of_write = [root / name for name in OF_THE_WRITE_FUNCTION for root in (files.ROOT, files.PACKAGE.parent)]
    out = [] if write else of_write
    found: dict[Path, list[Path]] = {}
    # the handlers of an installed package lie in a folder of it that is left out
    for folder, left_out in (
        (files.HANDLERS, out),
        (files.PACKAGE, [*(files.PACKAGE / name for name in LEFT_OUT), *out]),
    ):
        modules = [path for path in sorted(folder.rglob("*.py")) if not any(map(path.is_relative_to, left_out))]
        found.setdefault(folder.parent, []).extend(modules)
    return found


def list_called_files(rules: Rules, rules_file: Path) -> list[Path]:
    """List the modules in the rules file's folder that its `call` rules name, and the modules there that these import.

    Raises:
        UserError: if the folder of the rules file has no such module.
    """
    folder = rules_file.parent
    modules: dict[str, None] = {}
    for rule, function in rules.functions.items():
        module = function.rpartition(".")[0]
        if find_module(folder, module) is None:
            raise UserError(
                f"{rules_file}: rule {rule} calls {function}, and there is no module {module} beside the rules file:"
                f" put it into {folder}, as only modules in that folder are deployed"
            )
        if module.split(".", maxsplit=1)[0] in (*OURS, "infra"):
            raise UserError(f"{rules_file}: rule {rule} calls {function}: sync-rules has a package of that name")
        modules[module] = None
    return list_imported_files(modules, folder)


def find_platform(text: str, template: Path) -> tuple[str, str]:
    """Return the Python version, such as 3.14, and the platform of a template's functions. Raises UserError."""
    python, machine = read_machine(read_yaml(empty_any_blocks(text, template), str(template)), template)
    python = os.environ.get(PYTHON) or python
    return ".".join(python.split(".")[:2]), os.environ.get(PLATFORM) or f"{machine}-{GLIBC}"


def install(locked: Path, directory: Path, python: str, platform: str) -> None:
    """Install locked packages for the machine that runs the functions, not for this one.

    Raises:
        UserError: with the installer's message, when it fails.
    """
    done = _run(make_install_command(locked, directory, python, platform), {})
    if (
        done.returncode and CERTIFICATE in done.stderr
    ):  # uv knows public authorities; an option adds those of the system
        done = _run(make_install_command(locked, directory, python, platform), SYSTEM_CERTIFICATES)
    if done.returncode:
        raise UserError(f"packages for Python {python} on {platform} cannot be installed: {done.stderr.strip()}")
    remove_leftovers(directory)


def make_install_command(locked: Path, directory: Path, python: str, platform: str) -> list[str]:
    """Make the command that installs locked packages for Lambda's machine, with hashes and without source
    distributions. It uses uv if installed, else the pip of this Python.

    Raises:
        UserError: if this Python has neither uv nor pip, or has only pip and the platform needs uv.
    """
    what = ["--python-version", python, "--target", str(directory), "--requirement", str(locked)]
    uv = [sys.executable, "-m", "uv"] if find_spec("uv") else [found] if (found := shutil.which("uv")) else []
    if uv:
        to = ("--link-mode", "copy", "--python", sys.executable, "--python-platform", platform)
        return [*uv, "pip", "install", *LOCKED, *to, *what]
    if not find_spec("pip"):
        raise UserError(f"{sys.executable} has neither uv nor pip to install the packages of the functions: install uv")
    tags = [word for tag in list_tags(platform) for word in ("--platform", tag)]
    pip = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--no-compile"]
    return [*pip, *LOCKED, *tags, *what]


def list_tags(platform: str) -> list[str]:
    """List the tags of the wheels that fit a platform, in pip's spelling, best first.

    Raises:
        UserError: if it is not a manylinux platform.
    """
    match = MANYLINUX.fullmatch(platform)
    if match is None:
        raise UserError(
            f"pip cannot install for {platform}: expected a platform such as aarch64-manylinux_2_28 in BUNDLE_PLATFORM."
            " Or install uv, which knows others"
        )
    machine = match["machine"]
    newest_first = [f"manylinux_2_{glibc}_{machine}" for glibc in range(int(match["glibc"]), OLDEST_GLIBC - 1, -1)]
    return [*newest_first, f"manylinux2014_{machine}"]


def remove_leftovers(directory: Path) -> None:
    """Remove the files and folders that an installer leaves beside the packages, such as `bin`. Remove the lines of
    scripts from each RECORD, the list of a package's files. Digests of scripts depend on the path of this Python:
    another machine would build another bundle.
    """
    for name in LEFTOVERS:
        path = directory / name
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    for record in directory.glob("*.dist-info/RECORD"):
        lines = record.read_text(encoding="utf-8").splitlines(keepends=True)
        record.write_text("".join(one for one in lines if not SCRIPT.match(one)), encoding="utf-8")


def precompile(directory: Path, python: str) -> None:
    """Compile the modules if this machine has the functions' Python version. A function cannot keep compiled modules,
    and would compile them at each start. Python compiles a module again if its content differs.
    """
    interpreter = sys.executable if python == HERE else shutil.which(f"python{python}")
    command = [interpreter or "", "-m", "compileall", "-q", "-s", str(directory), "-p", IN_LAMBDA]
    command += ["--invalidation-mode", "checked-hash", str(directory)]
    if interpreter is None or subprocess.run(command, capture_output=True, check=False).returncode:  # noqa: S603 -- a Python
        print(
            f"modules are not compiled: no python{python} here. A function compiles them at each start", file=sys.stderr
        )


def _run(command: list[str], more: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, env=os.environ | more, capture_output=True, text=True, check=False)  # noqa: S603


def _copy(root: Path, paths: Iterable[Path], directory: Path) -> None:
    for path in paths:
        copy = directory / path.relative_to(root)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)


# ---------------------------------------------------------------- imports, from the source: no module runs
def find_module(folder: Path, module: str) -> Path | None:
    """Return the file of a module, or None if it is not in this folder."""
    parts = module.split(".")
    if not all(parts):
        return None
    place = folder.joinpath(*parts)
    return next(filter(Path.is_file, (place / "__init__.py", place.with_name(f"{place.name}.py"))), None)


def list_imported_files(modules: Iterable[str], folder: Path) -> list[Path]:
    """The files of these modules, with the packages they are in, and of all modules in the folder that they import,
    directly or through others.
    """
    waiting, found = [*modules], dict[str, Path]()
    while waiting:
        name = waiting.pop()
        path = find_module(folder, name)
        if name in found or path is None:
            continue
        found[name] = path
        package = name.rpartition(".")[0]
        waiting += [package] if package else []
        waiting += list_imports(path, name)
    return sorted(found.values())


def list_imports(path: Path, module: str) -> Iterator[str]:
    """List the names that a file imports: modules, and names in modules, which have no file. Imports inside functions
    count; imports only for type checking do not.
    """
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in _list_runtime_nodes(ast.parse(path.read_bytes()).body):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, *([base] if base else [])])
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


def _list_runtime_nodes(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """All nodes except those for type checking alone."""
    for node in nodes:
        yield node
        if isinstance(node, ast.If) and ast.unparse(node.test).rpartition(".")[2] == "TYPE_CHECKING":
            yield from _list_runtime_nodes(node.orelse)
        else:
            yield from _list_runtime_nodes(ast.iter_child_nodes(node))


# ---------------------------------------------------------------- the command
def main(arguments: Sequence[str] | None = None) -> int:
    """Fill a directory."""
    parser = argparse.ArgumentParser(
        prog="python -m sync_rules.deploy.bundle", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("directory", type=Path)
    parser.add_argument("--template", type=Path, default=Path("template.yaml"))
    given = parser.parse_args(arguments)
    try:
        fill_bundle(given.directory, given.template)
    except UserError as error:
        print(f"sync_rules.deploy.bundle: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
