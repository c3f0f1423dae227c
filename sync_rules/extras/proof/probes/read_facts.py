"""Probes of reads: consistency, batches, pages, segments, indexes."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final

from sync_rules.extras.proof.probe import make_probe, require, require_refused
from sync_rules.extras.proof.proof_stack import ProofSite, make_item, make_length_test, make_new_key
from sync_rules.model.values import Item

ROUNDS: Final = 20
PAGE_ITEMS: Final = 8
BIG_BYTES: Final = 180_000  # six such items are more than a page
SEGMENTS: Final = 4
SECOND_LOOK_SECONDS: Final = 60  # the first one that a fan-out through an index takes
INDEX: Final = "by_link"


@make_probe(21)
def probe_consistent_reads(site: ProofSite) -> str:
    key = make_item(make_new_key("21#"))
    name = site.table("items")
    for n in range(ROUNDS):
        wanted = {**key, "n": {"N": str(n)}}
        site.put(wanted)
        batch = site.ask(site.db.batch_get_item, RequestItems={name: {"Keys": [key], "ConsistentRead": True}})
        seen = {
            "GetItem": site.get(key),
            "BatchGetItem": next(iter(batch["Responses"].get(name, ())), {}),
            "Query": next(iter(site.query(key["pk"]["S"])), {}),
        }
        for read, found in seen.items():
            require(found == wanted, f"{read} did not show the write that was acknowledged before it")
    return f"{ROUNDS} writes, each seen by GetItem, BatchGetItem and Query"


@make_probe(22)
def probe_table_names(site: ProofSite) -> str:
    key = make_item(make_new_key("22#"))
    site.put(key)
    for name in (site.table("items"), site.outputs["ItemsArn"]):
        answer = site.ask(site.db.batch_get_item, RequestItems={name: {"Keys": [key], "ConsistentRead": True}})
        said = "ARN" if name.startswith("arn:") else "name"
        require(answer["Responses"].get(name) == [key], f"asked by {said}, the answer has another name for the table")
    return "the answer has the name, or the ARN, that the request had"


@make_probe(23)
def probe_batch_get(site: ProofSite) -> str:
    pk, name, numbers = make_new_key("23#"), site.table("items"), site.table("numbers")
    keys = [make_item(pk, f"{n:03d}") for n in range(101)]

    def asked(table: str, wanted: list[Item]) -> dict[str, Any]:
        return {"RequestItems": {table: {"Keys": wanted, "ConsistentRead": True}}}

    site.put_all(keys[:100])
    found: list[Item] = []
    left: dict[str, Any] = {name: {"Keys": keys[:100], "ConsistentRead": True}}
    while left:
        answer = site.ask(site.db.batch_get_item, RequestItems=left)
        found += answer["Responses"].get(name, [])
        left = answer["UnprocessedKeys"]
    require(len(found) == 100, f"of 100 keys, {len(found)} were answered and none was unprocessed")  # noqa: PLR2004
    call = site.db.batch_get_item
    require_refused(call, "ValidationException", "101 keys", **asked(name, keys))
    require_refused(call, "ValidationException", "a key twice", **asked(name, [keys[0], keys[0]]))
    spelt: list[Item] = [{"pk": {"N": "1"}}, {"pk": {"N": "1.0"}}]
    require_refused(call, "ValidationException", "a number as 1 and as 1.0", **asked(numbers, spelt))
    return "100 keys answered; 101, a key twice, and one number in two spellings refused"


@make_probe(24)
def probe_pages(site: ProofSite) -> str:
    pk = make_new_key("24#")
    items = [make_item(pk, str(n)) for n in range(PAGE_ITEMS)]
    for item in items:
        site.put({**item, "big": {"S": "x" * BIG_BYTES}})

    def page(**more: Any) -> tuple[list[str], Any]:
        answer = site.ask(site.db.query, **site.query_of(pk), **more)
        return [item["sk"]["S"] for item in answer["Items"]], answer.get("LastEvaluatedKey")

    by_size, more = page()
    require(0 < len(by_size) < PAGE_ITEMS and more, f"a page of 1.4 MB: {len(by_size)} of 8 items, more: {bool(more)}")
    seen, start = 0, dict[str, Any]()
    while True:
        found, more = page(Limit=3, **start)
        seen += len(found)
        if not more:
            break
        require(len(found) == 3, f"a page with Limit 3 has {len(found)} items and is not the last")  # noqa: PLR2004
        start = {"ExclusiveStartKey": more}
    require(seen == PAGE_ITEMS, f"pages with Limit 3 have {seen} of {PAGE_ITEMS} items")
    site.delete(items[3])
    after, _ = page(ExclusiveStartKey=items[3], ProjectionExpression="pk, sk")
    require(after[:1] == ["4"], "the key of a deleted item does not begin a page at the item after it")
    return "pages end at 1 MB and at Limit; the key of a deleted item begins a page"


@make_probe(25)
def probe_segments(site: ProofSite) -> str:
    mine = {make_new_key("25#") for _ in range(40)}
    for pk in mine:
        site.put(make_item(pk))
    found: list[str] = []
    for segment in range(SEGMENTS):
        scanned = site.pages(
            site.db.scan,
            TableName=site.table("items"),
            Segment=segment,
            TotalSegments=SEGMENTS,
            ConsistentRead=True,
            ProjectionExpression="pk",
        )
        found += [item["pk"]["S"] for page in scanned for item in page["Items"] if item["pk"]["S"] in mine]
    require(len(found) == len(set(found)), f"{len(found) - len(set(found))} items are in two segments")
    require(set(found) == mine, f"{len(mine - set(found))} of {len(mine)} items are in no segment")
    return f"{len(mine)} items, each once in {SEGMENTS} segments"


def _make_index_query(site: ProofSite, link: str) -> dict[str, Any]:
    return {
        "TableName": site.table("items"),
        "IndexName": INDEX,
        "KeyConditionExpression": "link = :link",
        "ExpressionAttributeValues": {":link": {"S": link}},
    }


def _list_rows(site: ProofSite, link: str) -> list[str]:
    return [item["sk"]["S"] for item in site.ask(site.db.query, **_make_index_query(site, link))["Items"]]


@make_probe(26)
def probe_index_lag(site: ProofSite) -> str:
    pk, lags = make_new_key("26#"), []
    for n in range(ROUNDS):
        began = time.monotonic()
        site.put(make_item(pk, str(n), link=pk))
        _, there = site.waiting.until(lambda: _list_rows(site, pk), make_length_test(n))
        lags.append(time.monotonic() - began)
        require(there and lags[-1] < SECOND_LOOK_SECONDS, f"a row was not in the index after {lags[-1]:.0f} s")
    asked = {**_make_index_query(site, pk), "ConsistentRead": True}
    require_refused(site.db.query, "ValidationException", "a consistent read of an index", **asked)
    return f"{ROUNDS} rows, the last of them seen after {max(lags) * 1000:.0f} ms with the way there and back"


@make_probe(27)
def probe_sparse_index(site: ProofSite) -> str:
    pk = make_new_key("27#")
    site.put(make_item(pk, "with", link=pk))
    site.put(make_item(pk, "without"))
    site.put(make_item(pk, "lost", link=pk))
    site.update(make_item(pk, "lost"), "REMOVE link")
    found, right = site.waiting.until(lambda: _list_rows(site, pk), lambda found: found == ["with"])
    require(right, f"the index has {sorted(found)}, expected only the item with its key")
    scanned = site.pages(site.db.scan, TableName=site.table("items"), IndexName=INDEX)
    listed = [item["sk"]["S"] for page in scanned for item in page["Items"] if item["pk"]["S"] == pk]
    require(listed == ["with"], f"a scan of the index lists {sorted(listed)}")
    return "items without the index's key are not in it"


@make_probe(58)
def probe_one_claim(site: ProofSite) -> str:
    name = site.table("items")
    for _ in range(5):
        key = make_item(make_new_key("58#"))
        with ThreadPoolExecutor(8) as pool:
            accepted = list(pool.map(partial(_has_claimed, site, name, key), range(8)))
        won = [who for who, well in enumerate(accepted) if well]
        require(len(won) == 1, f"{len(won)} of 8 claims of one unit were accepted")
        require(site.get(key).get("by") == {"S": str(won[0])}, "the item names another than the winner")
    return "of 8 claims at once one was accepted, five times"


def _has_claimed(site: ProofSite, name: str, key: Item, who: int) -> bool:
    try:
        site.db.put_item(  # sent once: a claim whose answer is lost would be refused the second time
            TableName=name,
            Item={**key, "by": {"S": str(who)}},
            ConditionExpression="attribute_not_exists(pk)",
        )
    except site.db.exceptions.ConditionalCheckFailedException:
        return False
    return True
