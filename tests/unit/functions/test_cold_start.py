"""A cold start: what a function imports until it can take its first record, and no more, for each package is time."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from sync_rules.deploy.deployment import read_deployment
from sync_rules.rules import compiled_file
from tests.deploy.tools import environment
from tests.support.every_kind import RULES, text_of
from tests.test_house import ROOT

# botocore with what it needs (certifi where it is there), and neither boto3's resources nor its transfers of S3;
# Powertools; retries. Nothing that reads a rules file (pydantic, ruamel), and nothing of the command line (typer, rich).
PACKAGES = {
    *("botocore", "dateutil", "jmespath", "six", "urllib3"),
    *("aws_lambda_powertools", "typing_extensions"),
    "tenacity",
}
NOT_PACKAGES = {
    "handlers",
    "sync_rules",
    "certifi",
    "_missing_stdlib_info",  # of Python 3.15 in Debian
    "backports",  # an empty namespace, of twine in .venv: urllib3 looks into it
    "__mp_main__",
}  # the last is a name of multiprocessing for `__main__`
# Of ours: what the other functions, the command line and few rules need.
NOT_YET = (
    *("audit", "cli", "deploy", "extras", "jobs", "lab", "language", "read"),
    *("rules.fingerprints", "pipeline.failure_records", "jobs.failure_log"),
    *("adapters.effects", "adapters.function_calls", "adapters.s3"),
    *("rules.kinds.call", "rules.kinds.mirror", "rules.formula"),
)
READY = """
import json, sys
before = set(sys.modules)
from {handler} import make_consumer
assert make_consumer().rules.rules
print(json.dumps(sorted(set(sys.modules) - before)))
"""


def imported(handler: str, folder, text: str, *, ready: str = READY, **more: str) -> set[str]:
    """The modules that a fresh interpreter has once a handler is ready, with the rules as the build leaves them."""
    file = folder / "rules.yaml"
    file.write_text(text)
    compiled_file.name_compiled_file(file).write_bytes(compiled_file.dump(read_deployment(file).rules, {}))
    file.unlink()
    given = {"SYNC_RULES_FILE": str(file), "SYNC_RULES_QUEUE_URL": "https://sqs.us-east-1.amazonaws.com/1/later"}
    done = subprocess.run(
        [sys.executable, "-c", ready.format(handler=handler)],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env=environment(PYTHONPATH=str(ROOT), **given, **more),
    )
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout))


def packages(modules: set[str]) -> set[str]:
    """The third-party packages among modules."""
    return {name.partition(".")[0] for name in modules} - sys.stdlib_module_names - NOT_PACKAGES


def ours(modules: set[str]) -> set[str]:
    return {name.removeprefix("sync_rules.") for name in modules if name.startswith("sync_rules.")}


@pytest.mark.parametrize("handler", ["handlers.stream", "handlers.fanout"])
def test_cold_start_imports_these_packages(handler, tmp_path):
    """With rules that copy, as most do: exactly those. Of ours, backfill, verify, redrive, and kinds that no rule is of,
    are left where they are.
    """
    found = imported(handler, tmp_path, (ROOT / "benchmarks/rules.yaml").read_text())
    assert packages(found) == PACKAGES
    assert {"pipeline.consumer", "rules.compiled_file", "adapters.sqs", "rules.kinds.copy"} <= ours(found)
    assert not {name for name in ours(found) if name.startswith(NOT_YET)}


def test_cold_start_of_the_write_function_reads_no_rules_file(tmp_path):
    """The write function has the packages of the other functions, and neither pydantic nor a reader of YAML."""
    ready = READY.replace("make_consumer().rules", "read_rules()").replace("make_consumer", "read_rules")
    found = imported("handlers.write", tmp_path, text_of(RULES), ready=ready)
    assert packages(found) == PACKAGES
    assert not {name for name in ours(found) if name.startswith(("language", "audit", "jobs", "lab", "read."))}
