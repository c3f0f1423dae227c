"""The write function in the template: there only where the rules file asks for it, by `deploy: {write: true}` or `url`.

Invariant: IAM authorises every caller; no resource policy lets anybody in.
"""

from __future__ import annotations

from typing import Any, Final

from sync_rules.deploy.deployment import Deployment
from sync_rules.deploy.permissions import WRITE
from sync_rules.deploy.roles import role_of

TIMEOUT_SECONDS: Final = 30
AUTHORISED: Final = "AWS_IAM"
LOGS: Final = "WriteLogs"
URL: Final = f"{WRITE}Url"  # the name that SAM gives to the Function URL


def resources(deployment: Deployment) -> dict[str, Any]:
    """The function and its log group."""
    if not deployment.write:
        return {}
    url = {"FunctionUrlConfig": {"AuthType": AUTHORISED}} if deployment.write == "url" else {}
    group = {"Fn::Sub": "/aws/lambda/${AWS::StackName}/write"}
    return {
        WRITE: {
            "Type": "AWS::Serverless::Function",
            "Metadata": {"BuildMethod": "makefile"},
            "Properties": {
                "Handler": "handlers.write.handler",
                "Timeout": TIMEOUT_SECONDS,
                "Role": {"Fn::GetAtt": [role_of(WRITE), "Arn"]},
                "LoggingConfig": {"LogGroup": {"Ref": LOGS}},
                **url,
            },
        },
        LOGS: {
            "Type": "AWS::Logs::LogGroup",
            "Properties": {"LogGroupName": group, "RetentionInDays": {"Ref": "LogRetentionDays"}},
        },
    }


def timeouts(deployment: Deployment) -> dict[str, int]:
    """The timeout of the function, by its logical id."""
    return {WRITE: TIMEOUT_SECONDS} if deployment.write else {}


def outputs(deployment: Deployment) -> dict[str, Any]:
    """The function's name, and the address of its Function URL."""
    found: dict[str, Any] = {}
    if deployment.write:
        found["WriteFunctionName"] = {"Description": "The function that writes by transact.", "Value": {"Ref": WRITE}}
    if deployment.write == "url":
        address = {"Fn::GetAtt": [URL, "FunctionUrl"]}
        found["WriteUrl"] = {"Description": "The address of that function, for signed requests.", "Value": address}
    return found
