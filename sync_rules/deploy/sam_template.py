"""Read the parts of the hand-written template on which generated parts depend: timeouts, and names that SAM makes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from sync_rules.model.errors import UserError

FUNCTION: Final = "AWS::Serverless::Function"
MACHINE: Final = "AWS::Serverless::StateMachine"
TIMEOUT_SECONDS: Final = 3  # https://docs.aws.amazon.com/lambda/latest/dg/configuration-timeout.html
VISIBILITY_SECONDS: Final = 30  # SQS's own default
RUNTIMES: Final = tuple(f"python3.{minor}" for minor in range(11, 16))
MACHINES: Final = {"arm64": "aarch64", "x86_64": "x86_64"}  # a processor's name in `Architectures`, in a wheel
MACHINES_CALL: Final = ("BackfillFunction", "VerifyFunction", "RedriveFunction")
MACHINE_WAITS_SECONDS: Final = 1_860  # `TimeoutSeconds` of infra/machine.asl.json
SPARE_SECONDS: Final = 60  # from the end of a call until the machine misses its answer
VISIBILITY_FACTOR: Final = 6  # https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html

Whole = Mapping[str, Any]


def read_timeouts_seconds(whole: Whole, template: object, more: Whole | None = None) -> dict[str, int]:
    """Return the timeout of each function by its logical id, also of those among `more` resources.

    Raises:
        UserError: if a timeout is not a number, so its alarm has no threshold; or if a function may still work
            while the fan-out queue delivers its message again, or a state machine calls it again.
    """
    fallback = find_value(whole, "Globals", "Function", "Timeout")
    found: dict[str, int] = {}
    for name, resource in {**(more or {}), **(whole.get("Resources") or {})}.items():
        if resource.get("Type") == FUNCTION:
            timeout = find_value(resource, "Properties", "Timeout") or fallback or TIMEOUT_SECONDS
            if not isinstance(timeout, int):
                raise UserError(f"{template}: Timeout of {name} must be a number of seconds: its alarm depends on it")
            found[name] = timeout
    _require_visibility_timeout(whole, found.get("FanoutFunction", 0), template)
    for name in MACHINES_CALL:
        if found.get(name, 0) > MACHINE_WAITS_SECONDS - SPARE_SECONDS:
            raise UserError(
                f"{template}: {name} may take {found[name]} seconds (Timeout), and its state machine calls it again"
                f" after {MACHINE_WAITS_SECONDS}: set Timeout to {MACHINE_WAITS_SECONDS - SPARE_SECONDS} or less"
            )
    return found


def read_machine(whole: Whole, template: object) -> tuple[str, str]:
    """Return the Python version and the processor of all functions, such as 3.14 and aarch64: `Runtime` and
    `Architectures`.

    Raises:
        UserError: if functions differ, or sync-rules does not run there.
    """
    functions = [one for one in (whole.get("Resources") or {}).values() if one.get("Type") == FUNCTION]
    found: list[str] = []
    for name, possible in (("Runtime", RUNTIMES), ("Architectures", MACHINES)):
        fallback = find_value(whole, "Globals", "Function", name)
        given = [find_value(one, "Properties", name) or fallback for one in functions]
        texts = {one[0] if isinstance(one, list) and len(one) == 1 else str(one) for one in given}
        if len(texts) != 1 or not texts <= set(possible):
            raise UserError(
                f"{template}: {name} of the functions: expected one of {', '.join(possible)}, the same for all, found"
                f" {', '.join(sorted(texts))}. One build makes the rules and packages of all functions"
            )
        found += texts
    return found[0].removeprefix("python"), MACHINES[found[1]]


def _require_visibility_timeout(whole: Whole, timeout: int, template: object) -> None:
    queue = find_value(whole, "Resources", "FanoutQueue")
    hidden = find_value(queue, "Properties", "VisibilityTimeout") or VISIBILITY_SECONDS
    if queue is not None and isinstance(hidden, int) and hidden < VISIBILITY_FACTOR * timeout:
        raise UserError(
            f"{template}: FanoutFunction may take {timeout} seconds (Timeout), and FanoutQueue hides its message for"
            f" {hidden} (VisibilityTimeout): set that to {VISIBILITY_FACTOR * timeout} or more, six times as long, as"
            " Lambda requires, or SQS delivers a message again while it is being processed"
        )


def list_sam_resources(name: str, resource: Whole) -> Iterator[str]:
    """List the logical ids of the resources that SAM adds to a resource: mappings of a function, roles, the schedule.

    https://docs.aws.amazon.com/serverless-application-model/latest/developerguide/sam-specification-generated-resources.html
    """
    properties = resource.get("Properties") or {}
    if resource.get("Type") not in (FUNCTION, MACHINE):
        return
    yield from (f"{name}{event}" for event in properties.get("Events") or {})
    if "FunctionUrlConfig" in properties:
        yield f"{name}Url"
    if "EventInvokeConfig" in properties:
        yield f"{name}EventInvokeConfig"
    if "Role" not in properties:
        yield f"{name}Role"


def find_value(whole: Any, *path: str) -> Any:
    """Return the value at a path of keys, or None."""
    for name in path:
        whole = whole.get(name) if isinstance(whole, Mapping) else None
    return whole
