"""Makes what a construct of the AWS CDK deploys: `python -m sync_rules.extras.cdk.inputs FOLDER --rules FILE`.

The folder gets the template that `sync-rules infra` writes, as JSON, and the bundle. Standard input has the construct's
tables and parameters. The output names the inputs, and the parameters of each table. In a project (`sync-rules init`),
the command uses the files beside the rules file, and otherwise those of this package.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from sync_rules.adapters.preflight import IMAGES
from sync_rules.deploy import files
from sync_rules.deploy.blocks import find_blocks
from sync_rules.deploy.bundle import fill_bundle
from sync_rules.deploy.deployment import Deployment, read_deployment
from sync_rules.deploy.project import LOCK, make_current_files
from sync_rules.deploy.resources import format_stream_parameter
from sync_rules.deploy.template import fill_template, warn_of_limits, warn_of_settings
from sync_rules.deploy.yamltext import read_yaml
from sync_rules.model import json_bytes
from sync_rules.model.entities import Table
from sync_rules.model.errors import UserError

USED: Final = (files.TEMPLATE, files.MACHINE, LOCK)  # of a project
REFERENCE: Final = re.compile(r"\$\{(\w+)\}")


@dataclass(frozen=True)
class GivenTable:
    """A table of the app. `view`: what its stream holds, "" without a stream. `name`: its name in DynamoDB, "" if
    CloudFormation makes one. None: the app does not know.
    """

    view: str | None
    name: str | None


def make_inputs(
    folder: Path, rules_file: Path, tables: Mapping[str, GivenTable], parameters: Mapping[str, str]
) -> dict[str, Any]:
    """Fill a folder; return the paths of the inputs, and the parameters for the stream and the name of each table.

    Raises:
        UserError: if the rules are wrong, a table or a parameter does not fit them, or the bundle cannot be made.
    """
    used = {**make_current_files(), **read_project_files(rules_file.parent)}
    for name in USED:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(used[name], encoding="utf-8")
    template, deployment = folder / files.TEMPLATE, read_deployment(rules_file)
    text = fill_template(template.read_text(encoding="utf-8"), deployment, rules_file, template)
    for warning in (*warn_of_limits(text, template), *warn_of_settings(deployment, rules_file)):
        print(warning, file=sys.stderr)
    whole = read_yaml(text, str(template))
    streams, names = wire_tables(deployment, rules_file, tables, parameters, whole["Parameters"])
    template.write_text(text, encoding="utf-8")
    fill_bundle(folder / "code", template)
    whole["Metadata"]["SyncRules"]["Rules"] = rules_file.name  # the same on every machine
    as_json = template.with_suffix(".json")
    as_json.write_text(json.dumps(whole), encoding="utf-8")
    paths = {"template": as_json, "code": folder / "code", "machine": folder / files.MACHINE}
    return {**{part: str(path) for part, path in paths.items()}, "streams": streams, "names": names}


def read_project_files(folder: Path) -> dict[str, str]:
    """Return the used files of a project, by name; none if the folder has no template with blocks. An app of the CDK
    may have a `requirements.txt` for other packages.
    """
    found = {name: path.read_text(encoding="utf-8") for name in USED if (path := folder / name).is_file()}
    return found if find_blocks(found.get(files.TEMPLATE, ""), str(folder / files.TEMPLATE)) else {}


def wire_tables(
    deployment: Deployment,
    rules_file: Path,
    tables: Mapping[str, GivenTable],
    parameters: Mapping[str, str],
    declared: Mapping[str, Any],
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the parameters for the streams, and for the names, of the given tables.

    Raises:
        UserError: if the rules do not follow a table, its stream or its name is not as they need it, or the template
            has no such parameter.
    """
    followed = {table.name: table for table in deployment.rules.streamed_tables}
    _refuse_unknown_names(f"{rules_file}: tables", tables, followed)
    _refuse_unknown_names(f"{rules_file}: parameters", parameters, declared)
    for parameter, value in parameters.items():
        if not isinstance(value, str):
            raise UserError(f"{rules_file}: parameter {parameter}: expected a text, found {value!r}. Put it in quotes")
    defaults = {name: str(one.get("Default", "")) for name, one in declared.items()}
    streams, names = {}, {}
    for name, given in tables.items():
        if given.view not in (None, IMAGES):
            raise UserError(
                f"{rules_file}: table {name}: expected a stream of {IMAGES}, found {given.view or 'no stream'}. Set the"
                f" table's stream to {IMAGES} (`stream` of Table, `dynamoStream` of TableV2)"
            )
        streams[name] = format_stream_parameter(followed[name])
        own = _wire_name(deployment, followed[name], given, {**defaults, **parameters}, rules_file)
        if own is not None and own not in parameters:
            names[name] = own
        elif own is not None and "${" not in parameters[own] and given.name not in (None, parameters[own]):
            raise UserError(
                f"{rules_file}: table {name}: expected the name {parameters[own]} of the parameter {own}, found"
                f" {given.name or 'a generated name'}. Leave {own} out: the construct gives the table's own name"
            )
    return streams, names


def _wire_name(
    deployment: Deployment, table: Table, given: GivenTable, values: Mapping[str, str], rules_file: Path
) -> str | None:
    """Return the parameter that is the whole name of a table, or None if the rules fix the name."""
    name = deployment.fill(table.physical_name)
    if whole := REFERENCE.fullmatch(name):
        return whole[1]
    missing = [one for one in REFERENCE.findall(name) if not values[one]]
    if missing:
        raise UserError(
            f"{rules_file}: table {table.name}: expected a value of {missing[0]} for the name {name}, found none. Give"
            f" the construct the parameter {missing[0]}"
        )
    expected = REFERENCE.sub(lambda match: values[match[1]], name)
    found = given.name
    if found is not None and "${" not in expected and not expected.startswith("arn:") and found != expected:
        raise UserError(
            f"{rules_file}: table {table.name}: expected the name {expected}, found {found or 'a generated name'}. Give"
            f" the table that name, or name it by a variable alone in the rules file, such as ${{{table.name.upper()}}}"
        )
    return None


def _refuse_unknown_names(place: str, given: Iterable[str], known: Iterable[str]) -> None:
    for name in given:
        if name not in known:
            raise UserError(
                f"{place}: expected one of {', '.join(known)}, found {name}. Remove it, or correct the name"
            )


def main(arguments: Sequence[str] | None = None) -> int:
    """Fill a folder for a construct, and print its inputs."""
    parser = argparse.ArgumentParser(prog="python -m sync_rules.extras.cdk.inputs")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rules", type=Path, required=True)
    options = parser.parse_args(arguments)
    given = json_bytes.parse_json(sys.stdin.read())
    tables = {name: GivenTable(one["view"], one["name"]) for name, one in given["tables"].items()}
    try:
        inputs = make_inputs(options.folder, options.rules, tables, given["parameters"])
    except UserError as error:
        print(error, file=sys.stderr)
        return 2
    print(json.dumps(inputs))
    return 0


if __name__ == "__main__":
    sys.exit(main())
