"""The write function: `transact` for applications in other languages, by a direct call or through a Function URL.

It is deployed only where the rules file asks for it, and IAM authorises its callers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from sync_rules.adapters import aws
from sync_rules.functions.function_url import METHOD, METHOD_NOT_ALLOWED, document_of, is_request, method_of, response
from sync_rules.functions.logs import logger
from sync_rules.functions.runtime import Context, deadline, endpoint, invocation, rules, telemetry
from sync_rules.model.errors import StoreError, UserError
from sync_rules.write import Transact, TransactionCanceled, WriteError
from sync_rules.write.document import WriteDocument, answer_of, read_document, refusal_of, status_of

WRONG_METHOD: Final = WriteError("the method is not POST", f"send the document as the body of a {METHOD}")


def handler(event: dict[str, Any], context: Context) -> dict[str, Any]:
    """Make the transaction that a document asks for. What the caller can mend is an answer, and not raised."""
    with invocation(context):
        rules()  # what is wrong with the deployment is no mistake of the caller
        if not is_request(event):
            return _answered(lambda: event)
        if method_of(event) != METHOD:
            return response(METHOD_NOT_ALLOWED, refusal_of(WRONG_METHOD, raw=False))
        answer = _answered(lambda: document_of(event))
        return response(status_of(answer), answer)


def _answered(body: Callable[[], Any]) -> dict[str, Any]:
    """The result of the transaction, or the error. Log lines have entities, rules and counts, and no value."""
    raw, counted = False, {}
    try:
        document = _read(body)
        raw = document.raw
        tx = _begun(document)
        counted = dict(document.counted)  # it names entities of the rules file now
        result = tx.commit()
    except (WriteError, StoreError) as error:
        _log_refused(error, counted)
        return refusal_of(error, raw=raw)
    left = [one.rule for one in result.left]
    logger.info("transaction written", asked=counted, actions=result.actions, attempts=result.attempts, left=left)
    return answer_of(result)


def _read(body: Callable[[], Any]) -> WriteDocument:
    try:
        return read_document(body())
    except UserError as error:
        raise error if isinstance(error, WriteError) else WriteError(error.found, error.cure) from error


def _begun(document: WriteDocument) -> Transact:
    """A transaction that was told what to do, and ends in time to answer."""
    tx = Transact(
        rules(),
        aws.dynamodb(endpoint()),
        raw=document.raw,
        require=document.require,
        token=document.token,
        deadline_seconds=min(document.deadline_seconds, deadline.spare_seconds()),
    )
    document.add_to(tx)
    return tx


def _log_refused(error: WriteError | StoreError, counted: dict[str, int]) -> None:
    if isinstance(error, StoreError):
        telemetry.reasons[error.reason] += 1  # a missing table or permission counts as an error of the setup
        logger.error("transaction not written", asked=counted, error="StoreError", reason=error.reason)
        return
    codes = [one.code for one in error.reasons] if isinstance(error, TransactionCanceled) else []
    logger.info("transaction not written", asked=counted, error=type(error).__name__, codes=codes)
