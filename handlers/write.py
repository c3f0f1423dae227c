"""The write function: `transact` for applications in other languages, by a direct call or through a Function URL.

It is deployed only where the rules file asks for it, and IAM authorises its callers.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final

from sync_rules.adapters import aws
from sync_rules.functions.logs import logger
from sync_rules.functions.runtime import Context, deadline, read_endpoint, read_rules, run_invocation, telemetry
from sync_rules.model import json_bytes
from sync_rules.model.errors import StoreError, UserError
from sync_rules.write import Transact, TransactionCanceled, WriteError
from sync_rules.write.document import WriteDocument, choose_status, make_answer, make_refusal, parse_document

METHOD: Final = "POST"
METHOD_NOT_ALLOWED: Final = 405
WRONG_METHOD: Final = WriteError("the method is not POST", f"send the document as the body of a {METHOD}")


def handler(event: dict[str, Any], context: Context) -> dict[str, Any]:
    """Make the transaction that a document asks for. Return its result, or the caller's error as a document. Raise only
    if the deployment is wrong.
    """
    with run_invocation(context):
        read_rules()  # an error of the deployment is raised
        if not _is_request(event):
            return _answer(lambda: event)
        if _read_method(event) != METHOD:
            return _respond(METHOD_NOT_ALLOWED, make_refusal(WRONG_METHOD, raw=False))
        answer = _answer(lambda: _read_body(event))
        return _respond(choose_status(answer), answer)


def _answer(body: Callable[[], Any]) -> dict[str, Any]:
    """The result of the transaction, or the error. Log lines have entities, rules and counts, and no value."""
    raw, counted = False, {}
    try:
        document = _read(body)
        raw = document.raw
        tx = _make_transaction(document)
        counted = dict(document.counted)  # it names entities of the rules file now
        result = tx.commit()
    except (WriteError, StoreError) as error:
        _log_refusal(error, counted)
        return make_refusal(error, raw=raw)
    left = [one.rule for one in result.left]
    logger.info("transaction written", asked=counted, actions=result.actions, attempts=result.attempts, left=left)
    return make_answer(result)


def _read(body: Callable[[], Any]) -> WriteDocument:
    try:
        return parse_document(body())
    except UserError as error:
        raise error if isinstance(error, WriteError) else WriteError(error.found, error.cure) from error


def _make_transaction(document: WriteDocument) -> Transact:
    """The transaction of a document, with a deadline that leaves time to answer."""
    tx = Transact(
        read_rules(),
        aws.dynamodb(read_endpoint()),
        raw=document.raw,
        require=document.require,
        token=document.token,
        deadline_seconds=min(document.deadline_seconds, deadline.spare_seconds()),
    )
    document.add_to(tx)
    return tx


def _log_refusal(error: WriteError | StoreError, counted: dict[str, int]) -> None:
    if isinstance(error, StoreError):
        telemetry.reasons[error.reason] += 1  # a missing table or permission counts as an error of the setup
        logger.error("transaction not written", asked=counted, error="StoreError", reason=error.reason)
        return
    codes = [one.code for one in error.reasons] if isinstance(error, TransactionCanceled) else []
    logger.info("transaction not written", asked=counted, error=type(error).__name__, codes=codes)


# ---------------------------------------------------------------- the Function URL
# https://docs.aws.amazon.com/lambda/latest/dg/urls-invocation.html: the payload of version 2.0
def _is_request(event: object) -> bool:
    """Tell an event of a Function URL from the document of a direct call."""
    return isinstance(event, Mapping) and isinstance(event.get("requestContext"), Mapping)


def _read_method(event: Mapping[str, Any]) -> str:
    """The method of a request; empty if the event names none."""
    http = event["requestContext"].get("http")
    return str(http.get("method", "")) if isinstance(http, Mapping) else ""


def _read_body(event: Mapping[str, Any]) -> Any:
    """The JSON document in the body of a request; its numbers are exact.

    Raises:
        UserError: when the body is not JSON.
    """
    body = event.get("body") or ""
    try:
        given = base64.b64decode(body, validate=True) if event.get("isBase64Encoded") else body
        return json_bytes.parse_json(given, parse_float=Decimal)
    except (ValueError, TypeError) as error:
        raise UserError("the body is not JSON", "send the document as JSON in UTF-8") from error


def _respond(status: int, document: Mapping[str, Any]) -> dict[str, Any]:
    """The answer to a request."""
    headers = {"content-type": "application/json"}
    return {
        "statusCode": status,
        "headers": headers,
        "body": json_bytes.format_compact_json(document),
        "isBase64Encoded": False,
    }
