"""Probes of PartiQL: the forms of the statements that are sent, and the answers to each statement of a batch."""

from __future__ import annotations

import json
from typing import Any, Final

from sync_rules.extras.proof.probe import RefutedError, make_probe, require
from sync_rules.extras.proof.probes.write_facts import PREPARED_BYTES, RETURN_OLD
from sync_rules.extras.proof.proof_stack import ProofSite, make_item, make_new_key
from sync_rules.model import json_bytes
from sync_rules.model.values import Item

KEY: Final = '"pk"=? AND "sk"=?'
FAILED: Final = "ConditionalCheckFailed"
INVALID: Final = "ValidationError"


def make_statement(
    site: ProofSite, key: Item, clauses: str, *values: str, where: str = "", seen: tuple[str, ...] = ()
) -> Any:
    """Make an UPDATE statement of one item; a refusal returns the item."""
    text = f'UPDATE "{site.table("items")}" {clauses} WHERE {KEY}{where and " AND "}{where}'
    marks = [*({"S": value} for value in values), key["pk"], key["sk"], *({"S": value} for value in seen)]
    return {"Statement": text, "Parameters": marks, **RETURN_OLD}


def send_statements(site: ProofSite, *statements: Any, **more: Any) -> list[dict[str, Any]]:
    """Send statements in one request. Return their answers, in the order of the request."""
    answer = site.ask(site.db.batch_execute_statement, Statements=list(statements), **more)
    found: list[dict[str, Any]] = answer["Responses"]
    require(len(found) == len(statements), f"{len(statements)} statements have {len(found)} answers")
    return found


def list_codes(answers: list[dict[str, Any]]) -> list[str]:
    """List the error code of each answer, "" for a statement that succeeded."""
    return [(one.get("Error") or {}).get("Code", "") for one in answers]


@make_probe(38)
def probe_each_alone(site: ProofSite) -> str:
    pk = make_new_key("38#")
    keys = [make_item(pk, str(n)) for n in range(4)]
    for key in keys:
        site.put({**key, "v": {"S": f"v{key['sk']['S']}"}})
    wheres = ["v0", "other", "v2", "other"]
    asked = [
        make_statement(site, k, 'SET "w"=?', "new", where='"v"=?', seen=(w,)) for k, w in zip(keys, wheres, strict=True)
    ]
    found = list_codes(send_statements(site, *asked))
    require(found == ["", FAILED, "", FAILED], f"the answers are {found}, expected '', {FAILED}, '', {FAILED}")
    made = ["w" in item for item in site.query(pk)]
    require(made == [True, False, True, False], f"the items written are {made}, the answers are {found}")
    return "of four statements two were written and two refused, in the order of the request"


@make_probe(39)
def probe_malformed(site: ProofSite) -> str:
    pk = make_new_key("39#")
    keys = [make_item(pk, str(n)) for n in range(3)]
    for key in keys:
        site.put(key)
    asked = [make_statement(site, key, 'SET "w"=?', "new") for key in keys]
    asked[1] = {**asked[1], "Statement": asked[1]["Statement"].replace("SET", "SETT")}
    found = list_codes(send_statements(site, *asked))
    require(found == ["", INVALID, ""], f"the answers are {found}, expected '', {INVALID}, ''")
    made = ["w" in item for item in site.query(pk)]
    require(made == [True, False, True], f"the items written are {made}, the answers are {found}")
    return "a malformed statement between two others failed alone"


@make_probe(40)
def probe_same_item(site: ProofSite) -> str:
    key = make_item(make_new_key("40#"))
    site.put(key)
    found = list_codes(
        send_statements(site, make_statement(site, key, 'SET "a"=?', "1"), make_statement(site, key, 'SET "b"=?', "2"))
    )
    require(found == ["", ""], f"two statements for one item are answered {found}")
    require({"a", "b"} <= site.get(key).keys(), "two statements for one item were accepted, and one was not written")
    return "both statements for one item were written"


@make_probe(41)
def probe_never_creates(site: ProofSite) -> str:
    absent, key = make_item(make_new_key("41#")), make_item(make_new_key("41#"))
    stands = {**key, "v": {"S": "stands"}}
    site.put(stands)
    update = make_statement(site, key, 'SET "v"=?', "new", where='"v"=?', seen=("other",))
    found = send_statements(site, make_statement(site, absent, 'SET "v"=?', "new"), update)
    require(list_codes(found) == [FAILED, FAILED], f"without an item, and with a false WHERE: {list_codes(found)}")
    require(not site.get(absent), "UPDATE made an item")
    require(site.get(key) == stands, "an UPDATE with a false WHERE was written")
    require(found[1]["Error"].get("Item") == stands, "a false WHERE is answered without the item")
    return "no item was made, and the refusal has the item"


@make_probe(42)
def probe_comparisons(site: ProofSite) -> str:
    pk = make_new_key("42#")
    keys = [make_item(pk, str(n)) for n in range(6)]
    for key in keys:
        site.put({**key, "v": {"S": "here"}, "m": {"M": {"in": {"S": "deep"}}}})
    tests: list[tuple[str, tuple[str, ...], str]] = [
        ('"v"=? AND "m"."in"=?', ("here", "deep"), ""),
        ('"m"."in"=?', ("other",), FAILED),
        ('"none" IS MISSING', (), ""),
        ('"v" IS MISSING', (), FAILED),
        ('"v" IS NOT MISSING', (), ""),
        ('"none" IS NOT MISSING', (), FAILED),
    ]
    asked = [
        make_statement(site, k, 'SET "w"=?', "x", where=t, seen=s) for k, (t, s, _) in zip(keys, tests, strict=True)
    ]
    found, wanted = list_codes(send_statements(site, *asked)), [expected for _, _, expected in tests]
    require(found == wanted, f"the answers are {found}, expected {wanted}")
    made = ["w" in item for item in site.query(pk)]
    require(made == [not expected for expected in wanted], "what was written is not what the answers say")
    return "=, IS MISSING and IS NOT MISSING decide as written, also on a nested attribute"


@make_probe(43)
def probe_forms(site: ProofSite) -> str:
    key = make_item(make_new_key("43#"))
    before = {**key, "a": {"S": "1"}, "b": {"S": "2"}, "m": {"M": {"in": {"S": "3"}}}}
    site.put(before)
    answers = send_statements(site, make_statement(site, key, 'SET "a"=?, "m"."in"=?, "q""uote"=?', "x", "y", "z"))
    require(list_codes(answers) == [""], f"SET with commas is answered {list_codes(answers)}")
    answers = send_statements(site, make_statement(site, key, 'SET "c"=? REMOVE "a" REMOVE "b"', "w"))
    require(list_codes(answers) == [""], f"SET with two REMOVE is answered {list_codes(answers)}")
    wanted = {**key, "m": {"M": {"in": {"S": "y"}}}, 'q"uote': {"S": "z"}, "c": {"S": "w"}}
    require(site.get(key) == wanted, "the statements were accepted, and the item is not what they say")
    return "SET with commas, SET with two REMOVE, and a quoted quote did what they say"


@make_probe(44)
def probe_statement_costs(site: ProofSite) -> str:
    key = make_item(make_new_key("44#"))
    site.put({**key, "big": {"S": "x" * PREPARED_BYTES}})
    asked = make_statement(site, key, 'SET "v"=?', "new")
    answer = site.ask(site.db.batch_execute_statement, Statements=[asked], ReturnConsumedCapacity="TOTAL")
    batch = sum(one["CapacityUnits"] for one in answer["ConsumedCapacity"])
    answer = site.update(key, "SET v = :v", {":v": {"S": "newer"}}, ReturnConsumedCapacity="TOTAL")
    update = answer["ConsumedCapacity"]["CapacityUnits"]
    require(batch == update, f"a statement costs {batch} units, the same UpdateItem {update}")
    return f"both cost {update:g} units"


@make_probe(45)
def probe_own_permission(site: ProofSite) -> str:
    key = make_item(make_new_key("45#"))
    site.put({**key, "v": {"S": "old"}})
    event = {"statements": [make_statement(site, key, 'SET "v"=?', "new", where='"v"=?', seen=("old",))]}
    answer = site.ask(
        site.clients.lambdas.invoke, FunctionName=site.table("limited"), Payload=json.dumps(event).encode()
    )
    said = json_bytes.parse_json(answer["Payload"].read())
    if answer.get("FunctionError"):
        raise RefutedError(
            f"the Lambda function that sends the PartiQL statements fails with {answer['FunctionError']}"
        )
    require(not said["error"], f"a role with PartiQLUpdate alone is refused with {said['error']}")
    require(said["codes"] == [""], f"a role with PartiQLUpdate alone has its statement answered {said['codes']}")
    require(site.get(key)["v"] == {"S": "new"}, "the statement was accepted, and not written")
    return "a role with dynamodb:PartiQLUpdate alone wrote"
