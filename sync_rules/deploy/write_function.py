"""The write function in the template: there only where the rules file asks for it, by `deploy: {write: true}` or `url`.

Invariant: IAM authorises every caller; no resource policy lets anybody in.
"""

from __future__ import annotations

from typing import Any, Final

from sync_rules.deploy import files
from sync_rules.deploy.deployment import Deployment
from sync_rules.deploy.permissions import WRITE

AUTHORISED: Final = "AWS_IAM"
URL: Final = f"{WRITE}Url"  # the name that SAM gives to the Function URL


def resources(deployment: Deployment) -> dict[str, Any]:
    """The function and its log group."""
    made: dict[str, Any] = files.read_part("write") if deployment.write else {}
    if deployment.write == "url":
        made[WRITE]["Properties"]["FunctionUrlConfig"] = {"AuthType": AUTHORISED}
    return made


def timeouts(deployment: Deployment) -> dict[str, int]:
    """The timeout of the function, by its logical id."""
    return {name: one["Properties"]["Timeout"] for name, one in resources(deployment).items() if name == WRITE}


def outputs(deployment: Deployment) -> dict[str, Any]:
    """The function's name, and the address of its Function URL."""
    found: dict[str, Any] = files.read_part("write-outputs") if deployment.write else {}
    return {name: one for name, one in found.items() if name != "WriteUrl" or deployment.write == "url"}
