"""Rules as functions read them: the YAML of a text is read once, and each reader gets rules of its own, quickly."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from sync_rules.deploy.deployment import Deployment, read_deployment
from sync_rules.rules import compiled_file
from sync_rules.rules.ruleset import Rules


@cache
def deployed(text: str) -> tuple[Deployment, bytes]:
    """The deployment of a rules file, which tests must not change, and its rules as the build leaves them."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rules.yaml"
        file.write_text(text)
        deployment = read_deployment(file)
    marks = {variable.mark: (variable.name, variable.default) for variable in deployment.variables}
    return deployment, compiled_file.dump(deployment.rules, marks)


def rules_of(text: str, environ: Mapping[str, str]) -> Rules:
    """The rules of a text, with what only this reader has in its variables."""
    return compiled_file.read(deployed(text)[1], "rules.compiled", environ)
