"""Probes of writes: conditions, refusals, transactions, costs, throttles."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from sync_rules.adapters import aws_errors
from sync_rules.extras.proof.probe import UnseenError, is_blocked, make_probe, require, require_refused
from sync_rules.extras.proof.proof_stack import ProofSite, make_item, make_new_key
from sync_rules.model.values import Item

WORKERS: Final = 8
FAILED: Final = "ConditionalCheckFailed"
RETURN_OLD: Final = {"ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
PREPARED_BYTES: Final = 2_500  # more than two write units, less than three
HEAVY_BYTES: Final = 350_000
THROTTLING_WRITES: Final = 40
CONTENDED: Final = 200


def make_counting_update(site: ProofSite, key: Item) -> dict[str, Any]:
    """Make the parameters of an update that adds one to `n`."""
    return site.update_of(key, "ADD n :by", {":by": {"N": "1"}})


def make_guarded_update(site: ProofSite, key: Item, seen: str, value: str) -> dict[str, Any]:
    """Make the parameters of an update that sets `v` if it still has the value `seen`."""
    values = {":new": {"S": value}, ":seen": {"S": seen}}
    return site.update_of(key, "SET v = :new", values, ConditionExpression="v = :seen")


@make_probe(28)
def probe_conditions(site: ProofSite) -> str:
    key = make_item(make_new_key("28#"))
    site.put({**key, "v": {"S": "old"}})

    def won(who: int) -> bool:
        try:
            site.db.update_item(**make_guarded_update(site, key, "old", str(who)))  # sent once: see reads.one_claim
        except site.db.exceptions.ConditionalCheckFailedException:
            return False
        return True

    with ThreadPoolExecutor(WORKERS) as pool:
        winners = [who for who, well in enumerate(pool.map(won, range(WORKERS))) if well]
    require(len(winners) == 1, f"{len(winners)} of {WORKERS} guarded writes of one value were accepted")
    require(site.get(key)["v"] == {"S": str(winners[0])}, "the item has not the value of the accepted write")
    absent = make_item(make_new_key("28#"))
    call = site.db.update_item
    said = "a condition on an item that does not exist"
    require_refused(call, f"{FAILED}Exception", said, **make_guarded_update(site, absent, "old", "new"))
    require(not site.get(absent), "a refused update made an item")
    return f"of {WORKERS} guarded writes one was accepted; none where there is no item"


@make_probe(29)
def probe_refusals(site: ProofSite) -> str:
    key, name = make_item(make_new_key("29#")), site.table("items")
    stands = {**key, "v": {"S": "stands"}}
    site.put(stands)
    update = {**make_guarded_update(site, key, "other", "new"), **RETURN_OLD}
    error = require_refused(site.db.update_item, f"{FAILED}Exception", "an update with a false guard", **update)
    require(error.response.get("Item") == stands, "UpdateItem was refused without the item as it was")
    call, code = site.db.transact_write_items, "TransactionCanceledException"
    error = require_refused(call, code, "a transaction with a false guard", TransactItems=[{"Update": update}])
    reason = aws_errors.list_cancellations(error)[0]
    require(reason.get("Item") == stands, "TransactWriteItems was refused without the item as it was")
    text = f'UPDATE "{name}" SET "v"=? WHERE "pk"=? AND "sk"=? AND "v"=?'  # noqa: S608 - the table is its own
    parameters = [{"S": "new"}, key["pk"], key["sk"], {"S": "other"}]
    statement = {"Statement": text, "Parameters": parameters, **RETURN_OLD}
    (one,) = site.ask(site.db.batch_execute_statement, Statements=[statement])["Responses"]
    require(one.get("Error", {}).get("Item") == stands, "a statement was refused without the item as it was")
    return "UpdateItem, TransactWriteItems and a statement return the item"


@make_probe(31)
def probe_tokens(site: ProofSite) -> str:
    key, token = make_item(make_new_key("31#")), make_new_key("selftest-")
    for _ in range(3):
        actions = [{"Update": make_counting_update(site, key)}]
        site.ask(site.db.transact_write_items, TransactItems=actions, ClientRequestToken=token)
    n = site.get(key)["n"]["N"]
    require(n == "1", f"three sends of one token added {n}")
    return "three sends with one token added once"


@make_probe(32)
def probe_transactions(site: ProofSite) -> str:
    pk, name = make_new_key("32#"), site.table("items")
    call, cancelled = site.db.transact_write_items, "TransactionCanceledException"
    exists = {"TableName": name, "Key": make_item(pk, "none"), "ConditionExpression": "attribute_exists(pk)"}
    put = {"TableName": name, "Item": make_item(pk, "c")}
    actions = [{"ConditionCheck": exists}, {"Update": make_counting_update(site, make_item(pk, "a"))}, {"Put": put}]
    error = require_refused(call, cancelled, "a transaction with one false condition", TransactItems=actions)
    codes = [reason.get("Code") for reason in aws_errors.list_cancellations(error)]
    require(codes == [FAILED, "None", "None"], f"the reasons are {codes}, expected {FAILED}, None, None")
    require(not site.query(pk), "a cancelled transaction wrote a part")
    puts = [{"Put": {"TableName": name, "Item": make_item(pk, f"{n:03d}")}} for n in range(101)]
    site.ask(call, TransactItems=puts[:100])
    found = len(site.query(pk))
    require(found == 100, f"a transaction of 100 puts wrote {found}")  # noqa: PLR2004
    require_refused(call, f"ValidationException {cancelled}", "101 actions", TransactItems=puts)
    require_refused(call, "ValidationException", "two actions on one item", TransactItems=[puts[0], puts[0]])
    return "100 actions in one step, 101 and one item twice refused, reasons in order"


@make_probe(33)
def probe_conflicts(site: ProofSite) -> str:
    key = make_item(make_new_key("33#"))

    def tried(n: int) -> str:
        """The code of a conflict; "" when the write was made."""
        call: Callable[..., Any] = site.db.transact_write_items if n % 2 else site.db.update_item
        asked = (
            {"TransactItems": [{"Update": make_counting_update(site, key)}]}
            if n % 2
            else make_counting_update(site, key)
        )
        try:
            call(**asked)
        except aws_errors.ERRORS as error:
            if aws_errors.read_code(error) == "TransactionCanceledException":
                return str(next(one["Code"] for one in aws_errors.list_cancellations(error) if one["Code"] != "None"))
            return aws_errors.read_code(error)
        return ""

    with ThreadPoolExecutor(WORKERS) as pool:
        codes = list(pool.map(tried, range(CONTENDED)))
    met = {code for code in codes if code} - aws_errors.THROTTLED
    known = {"TransactionConflict", "TransactionConflictException", "TransactionInProgressException"}
    require(met <= known, f"writes that met a transaction failed with {sorted(met - known)}")
    made = int(site.get(key)["n"]["N"])
    require(made >= codes.count(""), f"{codes.count('')} writes were acknowledged, and {made} were made")
    for n in range(2):
        tried_again = tried(n)
        require(not tried_again, f"another try failed with {tried_again}")
    if not met:
        raise UnseenError(f"no conflict was met in {CONTENDED} writes of one item at once")
    return f"{len(codes) - codes.count('')} of {CONTENDED} writes met a conflict, with its own error"


def _read_units(answer: Mapping[str, Any], index: str = "") -> float:
    consumed = answer["ConsumedCapacity"]
    consumed = consumed[0] if isinstance(consumed, list) else consumed
    if index:
        return float(consumed.get("GlobalSecondaryIndexes", {}).get(index, {}).get("CapacityUnits", 0))
    return float(consumed.get("Table", consumed)["CapacityUnits"])


@make_probe(34)
def probe_costs(site: ProofSite) -> str:
    key, told = make_item(make_new_key("34#")), {"ReturnConsumedCapacity": "TOTAL"}
    put = site.put({**key, "big": {"S": "x" * PREPARED_BYTES}}, more=told)
    update = site.ask(site.db.update_item, **make_counting_update(site, key), **told)
    delete = site.delete(key, **told)
    units = [_read_units(answer) for answer in (put, update, delete)]
    require(units == [3, 3, 3], f"put, small update and delete of an item of 2.6 KB cost {units}, expected 3 each")
    return "put, update and delete of an item of 2.6 KB cost 3 units each"


@make_probe(35)
def probe_index_costs(site: ProofSite) -> str:
    pk = make_new_key("35#")

    def cost(text: str, value: str = "") -> float:
        values = {":v": {"S": value}} if value else None
        return _read_units(site.update(make_item(pk), text, values, ReturnConsumedCapacity="INDEXES"), "by_link")

    steps = {
        "comes": cost("SET link = :v", f"{pk}a"),
        "moves": cost("SET link = :v", f"{pk}b"),
        "stays": cost("SET w = :v", "x"),
        "goes": cost("REMOVE link"),
    }
    require(steps == {"comes": 1, "moves": 2, "stays": 0, "goes": 1}, f"a row's units are {steps}, expected 1, 2, 0, 1")
    return "a row that comes or goes costs 1 unit, one that moves 2, one that stays 0"


@make_probe(37)
def probe_throttles(site: ProofSite) -> str:
    heavy = {**make_item(make_new_key("37#")), "big": {"S": "x" * HEAVY_BYTES}}
    for _ in range(THROTTLING_WRITES):
        try:
            site.db.put_item(
                TableName=site.table("small"), Item=heavy
            )  # not sent again: the error is what is looked for
        except aws_errors.ERRORS as error:
            code = aws_errors.read_code(error)
            if aws_errors.list_throttles(error):
                return f"a table of 1 write unit throttles with {code}"
            require(is_blocked(error), f"a table of 1 write unit refuses with {code}, unknown here")
    raise UnseenError(f"{THROTTLING_WRITES} writes of 342 units each were not throttled by a table of 1 unit")
