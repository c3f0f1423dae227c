"""Answers CloudFormation when a stack is created or updated: it restarts books that were not kept so far, and completes
books over empty tables at once.

Resource `Books` asks before the stream function has the new rules, `EmptyBooks` after. Both list the books that the
rules keep; CloudFormation adds the list of the deployment before. New books in the list may be old ones that come back
with a mark that says complete. A rollback asks with both lists swapped, and restarts what the failed update did not
keep.

Invariant: the answer is always SUCCESS, within the time of the call. A failure is logged with its cure: no deployment
fails because of a number.
https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/crpg-ref.html
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.request import Request, urlopen

from sync_rules.functions.logs import log_waiting_rule, logger
from sync_rules.pipeline.books import find_books, finish_empty, list_rules_by_identity, restart_books
from sync_rules.pipeline.requests import World, run_work
from sync_rules.rules.ruleset import Rules

RESPONSE_URL: Final = "ResponseURL"  # only a request of CloudFormation has it
COPIED: Final = ("StackId", "RequestId", "LogicalResourceId")
KEPT: Final = "Kept"  # the property with the identities of all books
AFTER: Final = "Custom::SyncRulesEmptyBooks"  # the resource that asks when the stream function has the new rules
NAME: Final = "books"  # of a resource, which is nothing that could be named
ANSWER_MAX_SECONDS: Final = 20.0


def is_stack_request(event: Mapping[str, Any]) -> bool:
    return RESPONSE_URL in event


def answer_stack(event: Mapping[str, Any], place: Callable[[], tuple[Rules, World]]) -> None:
    """Do the work of a request and answer it. `place` returns the rules of this function, and the world of its stack.
    Raises OSError if the answer cannot be delivered: Lambda then calls again.
    """
    if event.get("RequestType") != "Delete":
        try:
            rules, world = place()
            _restart(_list_new(event), rules, world)
            for rule in run_work(finish_empty(rules), world) if event.get("ResourceType") == AFTER else ():
                log_waiting_rule(rule.title)
        except Exception as error:  # noqa: BLE001 - whatever it is, the stack goes on without it
            logger.error("books were not checked", error=type(error).__name__, reason=str(error))
    body = {"Status": "SUCCESS", "PhysicalResourceId": NAME, **{name: event.get(name) for name in COPIED}}
    _put(event[RESPONSE_URL], json.dumps(body).encode())


def _list_new(event: Mapping[str, Any]) -> list[str]:
    """The identities of the books that the deployment before did not keep, or not by these rules."""
    kept = _read_identities(event, "ResourceProperties")
    if event.get("RequestType") == "Create":  # EmptyBooks is created with Books, or after it
        return [] if event.get("ResourceType") == AFTER else kept or []
    before = _read_identities(event, "OldResourceProperties")
    if before is None:
        logger.warning("books are taken as they are", reason="the previous deployment did not list its books")
    return [one for one in kept or () if before is not None and one not in before]


def _read_identities(event: Mapping[str, Any], properties: str) -> list[str] | None:
    return (event.get(properties) or {}).get(KEPT)


def _restart(new: list[str], rules: Rules, world: World) -> None:
    """Restart books. In a rollback this function may still have, or have again, other rules than those asked for."""
    own = list_rules_by_identity(rules)
    found = {one: rule.books if (rule := own.get(one)) else find_books(rules, one) for one in new}
    failed = run_work(restart_books(books for books in found.values() if books is not None), world)
    for identity, books in found.items():
        title = own[identity].title if identity in own else identity.split(" ")[1].partition("/")[0]
        reason = "these rules do not have its ledger" if books is None else failed.get(books)
        if reason is None:
            logger.info("books restarted", rule=title)
        else:
            cure = f"sync-rules verify --remote --repair --rule {title}"
            logger.error("books were not restarted", rule=title, reason=str(reason), cure=cure)


def _put(url: str, body: bytes) -> None:
    """Put the answer where CloudFormation waits for it: an address that is signed without a content type."""
    request = Request(url, data=body, headers={"Content-Type": ""}, method="PUT")  # noqa: S310 - CloudFormation's own
    with urlopen(request, timeout=ANSWER_MAX_SECONDS):  # noqa: S310
        pass
