"""Probes of items: sizes, keys, numbers, depth, sets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sync_rules.extras.proof.probe import make_probe, require, require_refused
from sync_rules.extras.proof.proof_stack import ProofSite, make_item, make_new_key
from sync_rules.model.sizes import ITEM_MAX_BYTES, count_item_bytes
from sync_rules.model.values import AttributeValue, Item

INVALID: Final = "ValidationException"
PARTITION_KEY_MAX_BYTES: Final = 2_048
SORT_KEY_MAX_BYTES: Final = 1_024
LEVELS_MAX: Final = 32
EXPRESSION_MAX_BYTES: Final = 4_096
OPERATORS_MAX: Final = 300


def require_invalid(site: ProofSite, said: str, item: Item) -> None:
    """Raise RefutedError unless DynamoDB refuses an item as invalid."""
    require_refused(site.db.put_item, INVALID, said, TableName=site.table("items"), Item=item)


@make_probe(46)
def probe_sizes(site: ProofSite) -> str:
    pk = make_new_key("46#")
    shapes: Mapping[str, AttributeValue] = {
        "plain": {"S": "x"},
        "letters": {"S": "äöü€"},
        "map": {"M": {"a": {"S": "x"}, "b": {"M": {}}}},
        "list": {"L": [{"S": "x"}, {"BOOL": True}, {"L": []}]},
    }
    for sk, shape in shapes.items():
        item = {**make_item(pk, sk), "it": shape, "fill": {"S": ""}}
        room = ITEM_MAX_BYTES - count_item_bytes(item)
        require_invalid(
            site, f"an item with a {sk} and one byte over 400 KB", {**item, "fill": {"S": "x" * (room + 1)}}
        )
        site.put({**item, "fill": {"S": "x" * room}})
    return f"items of exactly 400 KB accepted, of one byte more refused: {', '.join(shapes)}"


@make_probe(47)
def probe_numbers(site: ProofSite) -> str:
    pk = make_new_key("47#")
    spelt = {"1.0": "1", "1.50": "1.5", "007": "7", "9" * 38: "9" * 38}
    for sk, (given, wanted) in enumerate(spelt.items()):
        site.put({**make_item(pk, str(sk)), "n": {"N": given}})
        found = site.get(make_item(pk, str(sk)))["n"]["N"]
        require(found == wanted, f"the number {given} came back as {found}, expected {wanted}")
    for text in ("1E-130", "9.9E+125", "-9.9E+125"):
        site.put({**make_item(pk, text), "n": {"N": text}})
    for text in ("1" * 39, "1E-131", "1E+126"):
        require_invalid(site, f"the number {text}", {**make_item(pk, "no"), "n": {"N": text}})
    return "38 digits and both ends accepted, one more refused; 1.0 is 1"


@make_probe(48)
def probe_key_sizes(site: ProofSite) -> str:
    start = make_new_key("48#")
    pk = start + "x" * (PARTITION_KEY_MAX_BYTES - len(start))
    sk = "x" * SORT_KEY_MAX_BYTES
    site.put(make_item(pk, sk))
    require_invalid(site, "a partition key of 2,049 bytes", make_item(pk + "x"))
    require_invalid(site, "a sort key of 1,025 bytes", make_item(start, sk + "x"))
    require_invalid(site, "an empty partition key", make_item(""))
    require_invalid(site, "an empty sort key", make_item(start, ""))
    return "2,048 and 1,024 bytes accepted; one more, and none, refused"


@make_probe(49)
def probe_index_types(site: ProofSite) -> str:
    key = make_item(make_new_key("49#"))
    require_invalid(site, "a number where an index has a string", {**key, "link": {"N": "1"}})
    require_invalid(site, "an empty string where an index has a key", {**key, "link": {"S": ""}})
    require(not site.get(key), "a refused item is there")
    site.put(key)
    update = site.update_of(key, "SET link = :v", {":v": {"N": "1"}})
    require_refused(site.db.update_item, INVALID, "an update to another type than the index's", **update)
    return "refused by put and update, nothing written"


@make_probe(50)
def probe_depths(site: ProofSite) -> str:
    key = make_item(make_new_key("50#"))

    def nested(levels: int) -> AttributeValue:
        value: AttributeValue = {"S": "x"}
        for _ in range(levels):
            value = {"M": {"a": value}}
        return value

    site.put({**key, "deep": nested(LEVELS_MAX - 1)})
    require_invalid(site, "a value of more than 32 levels", {**key, "deep": nested(LEVELS_MAX + 1)})

    def expressed(condition: str) -> dict[str, Any]:
        return site.update_of(key, "SET a = :v", {":v": {"S": "x"}}, ConditionExpression=condition)

    tests = " AND ".join(["attribute_exists(pk)"] * 100)  # 199 operators, 2,496 bytes
    site.ask(site.db.update_item, **expressed(tests))
    long = "attribute_exists(" + "x" * EXPRESSION_MAX_BYTES + ")"
    require_refused(site.db.update_item, INVALID, "an expression of more than 4 KB", **expressed(long))
    many = " AND ".join(["a=:v"] * OPERATORS_MAX)  # 599 operators, 2,695 bytes
    require_refused(site.db.update_item, INVALID, "an expression of 599 operators", **expressed(many))
    return "32 levels and 199 operators accepted; 33, 4,114 bytes and 599 operators refused"


@make_probe(51)
def probe_sets(site: ProofSite) -> str:
    key, names = make_item(make_new_key("51#")), {"ExpressionAttributeNames": {"#s": "set"}}
    site.put({**key, "set": {"SS": ["a", "b"]}})
    same = {"ConditionExpression": "#s = :same", "ExpressionAttributeValues": {":same": {"SS": ["b", "a"]}}}
    site.put({**key, "set": {"SS": ["b", "a"]}}, more={**names, **same})
    require_invalid(site, "a set with an element twice", {**key, "set": {"SS": ["a", "a"]}})
    require_invalid(site, "an empty set", {**key, "set": {"SS": []}})

    def changed(verb: str, *elements: str) -> None:
        site.update(key, f"{verb} #s :e", {":e": {"SS": list(elements)}}, **names)

    changed("ADD", "a", "c")
    found = sorted(site.get(key)["set"]["SS"])
    require(found == ["a", "b", "c"], f"ADD of one old and one new element to a and b makes {found}")
    changed("DELETE", "a", "b", "c")
    require("set" not in site.get(key), "a set without elements is still there")
    return "equal in any order; twice and empty refused; the last element takes the set with it"
