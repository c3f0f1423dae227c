"""A search is served by a vector index that filters by all that a call gives; what others hold is copied first."""

from __future__ import annotations

import json
from itertools import combinations

import pytest

from sync_rules.extras.design.patterns.answers import merge_entries
from sync_rules.extras.design.patterns.declarations import find_design
from sync_rules.extras.design.patterns.prover import prove
from sync_rules.language.load import check_rules, parse_rules
from sync_rules.language.problems import Problems, list_errors
from sync_rules.language.yaml_source import read_document
from sync_rules.model.errors import UserError
from sync_rules.read import Patterns, Reader
from sync_rules.rules import compiled_file
from tests.support.depth import take_share
from tests.support.memory_client import MemoryClient

FILE = """
tables:
  shop:
    key: {PK: S, SK: S}
    indexes: {by_maker: {maker_id: S}}
    vectors:
      by_meaning: {vector: embedding, dimensions: 3, partition: {tenant: S}, filters: {brand: S, of: S}, projection: [title]}
      by_look: {vector: look, dimensions: 3, filters: {colour: S}}
  goods: {key: {ware_id: S}, vectors: {near: {vector: embedding, dimensions: 3}}}
  plain: {key: {id: S}}
entities:
  maker:   {table: shop, key: {PK: "MAKER#{maker_id}", SK: MAKER}}
  product: {table: shop, key: {PK: "PRODUCT#{product_id}", SK: PRODUCT}, required: [maker_id]}
  ware:    {table: goods, required: [maker_id]}
  thing:   {table: plain}
rules:
  origins: {copy: {maker.country: of}, into: product}
"""
FIELDS = ("tenant", "brand", "price", "colour", "maker.country", "maker.status")


def proved(patterns, text=FILE):
    document = read_document(text, Problems())
    return prove(parse_rules(json.dumps({**document.data, "patterns": patterns}))).answers


def asked():
    for entity in ("product", "ware"):
        for count in range(4):
            for by in combinations(FIELDS, count):
                yield {"search": entity, "by": [*by], "attributes": ["title", "maker.status"]}
                yield {"search": entity, "by": [*by], "top": 10}


def test_search_is_served_by_what_its_index_filters_by():
    """The condition names attributes of the item: the copy, where a call gives an attribute of another entity."""
    (answer,) = proved(
        {"p": {"search": "product", "by": ["tenant", "maker.country"], "top": 5, "attributes": ["title"]}}
    ).values()
    (step,) = answer.steps
    assert (step.request, step.place, step.limit) == ("SearchVectors", "shop/by_meaning", 5)
    assert step.condition == "tenant = {tenant} and of = {of}"
    assert answer.remarks == ("tenant: an item without it is in no search",)
    assert answer.units == 0
    document = read_document(FILE, Problems())
    rules = parse_rules(json.dumps({**document.data, "patterns": {"p": {"search": "product", "via": "by_look"}}}))
    assert prove(rules).idle == (("shop", "by_meaning"), ("goods", "near"))


def test_search_reads_what_its_index_does_not_project():
    """A second request has the items, and a third those of the other entity."""
    form = {"search": "product", "by": ["tenant"], "attributes": ["price", "maker.status"], "top": 5}
    (answer,) = proved({"p": form}).values()
    assert [(step.request, step.entity.name) for step in answer.steps] == [
        ("SearchVectors", "product"), ("BatchGetItem", "product"), ("BatchGetItem", "maker"),
    ]  # fmt: skip


def test_searches_are_served_by_each_of_their_cures():
    """Served are those alone whose filters one index has, with its partition; each other has a cure that serves it."""
    forms = {f"p{number}": form for number, form in enumerate(asked())}
    answers = proved(forms)
    copies = {"maker.country": "of"}
    document = read_document(FILE, Problems())
    for name, form in take_share(forms.items()):
        given = {copies.get(text, text) for text in form["by"]}
        fits = (
            [{"tenant"} <= given <= {"tenant", "brand", "of"}, given <= {"colour"}]
            if form["search"] == "product"
            else []
        )
        assert answers[name].is_served is any(fits or [not given]), form
        if answers[name].is_served:
            continue
        (cure,) = answers[name].cures
        rules, problems = check_rules(
            json.dumps(merge_entries({**document.data, "patterns": {name: form}}, cure.entries))
        )
        assert rules is not None, f"{form}: {cure.entries} {[one.message for one in list_errors(problems)]}"
        assert prove(rules).answers[name].is_served, f"{form}: {cure.entries}"


def test_search_says_why_no_cure_can_be_told():
    """Nothing knows the vector of a table without an index, or the link to an entity that items do not name."""
    without, nameless = proved({
        "p": {"search": "thing"},
        "q": {"search": "maker", "by": ["tenant", "product.price"]},
    }).values()  # fmt: skip
    assert without.reason == "table plain has no vector index: declare it under `vectors`, with its dimensions"
    assert nameless.reason == "maker has no product_id, which would name its product"
    assert (without.cures, nameless.cures) == ((), ())


def test_search_via_an_index_that_is_not_there_is_refused():
    """With the vector indexes of the table."""
    with pytest.raises(UserError, match=r"no vector index 'by_mean'.*by_meaning"):
        proved({"p": {"search": "product", "via": "by_mean"}})


def test_search_outlives_compilation_and_is_called_by_the_application():
    """Compiled rules have the pattern; the reader has no vector to search with, and says who calls."""
    rules = parse_rules(FILE + "patterns: {near: {search: product, by: [tenant], attributes: [title]}}\n")
    again = compiled_file.read(compiled_file.dump(rules, {}), "rules.compiled", {})
    assert find_design(again).patterns == find_design(rules).patterns
    with pytest.raises(UserError, match="pattern near is a search"):
        Patterns(rules, Reader(MemoryClient(rules.tables.values(), {}), raw=True)).plan("near")
