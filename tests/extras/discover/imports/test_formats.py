"""Each format by a document of its real shape: what is taken of it, what is left to check, what is refused and where."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sync_rules.extras.design.patterns.declarations import find_design
from sync_rules.extras.discover.imports.foreign_document import ImportedFileError
from sync_rules.extras.discover.imports.imported_model import RulesDraft
from sync_rules.extras.discover.imports.importer import rules_from, rules_from_text
from sync_rules.language.load import check_rules, parse_rules
from sync_rules.model.python_values import make_raw_value
from sync_rules.rules.ruleset import Rules
from tests.support.shared import case
from tests.support.worlds import Scene

FIXTURES = Path(__file__).parent / "fixtures"
ENVIRON = {"ORDERS_NAME": "orders-x", "STACK_NAME": "stack", "TEAM": "red"}


def fixture(name: str) -> tuple[RulesDraft, Rules]:
    found = rules_from(FIXTURES / name)
    return found, parse_rules(found.text, environ=ENVIRON)


def keys(rules: Rules) -> dict[str, dict[str, str]]:
    return {name: {a: t.text for a, t in entity.templates.items()} for name, entity in rules.entities.items()}


def refused(text: str, file: str = "given.json") -> ImportedFileError:
    with pytest.raises(ImportedFileError) as caught:
        rules_from_text(text, file)
    return caught.value


# ---------------------------------------------------------------- Workbench
def test_workbench_models_of_others_all_import():
    """Every shared model gives a rules file that passes, with its tables, and with entities that its items belong to."""
    models = sorted(case("models").glob("aws-design-patterns/*.json"))
    assert len(models) == 16
    for path in models:
        rules = parse_rules(rules_from(path).text, environ={})
        assert [table.physical_name for table in rules.tables.values()] in (["OnlineShop"], ["DeviceStateLog"])


def test_workbench_reads_entities_off_keys_and_types():
    """A model whose prefixes are single letters, named by its EntityType attribute."""
    rules = parse_rules(rules_from(case("models/aws-design-patterns/AnOnlineShop_9.json")).text, environ={})
    assert keys(rules) == {
        "customer": {"PK": "c#{customer_id}", "SK": "c#{customer_id}"},
        "product": {"PK": "p#{product_id}", "SK": "p#{product_id}"},
        "warehouse": {"PK": "w#{warehouse_id}", "SK": "w#{warehouse_id}"},
        "warehouseItem": {"PK": "p#{product_id}", "SK": "w#{warehouse_id}"},
        "orderItem": {"PK": "o#{order_id}", "SK": "p#{product_id}"},
        "order": {"PK": "o#{order_id}", "SK": "c#{customer_id}"},
        "invoice": {"PK": "o#{order_id}", "SK": "i#{invoice_id}"},
        "shipment": {"PK": "o#{order_id}", "SK": "sh#{shipment_id}"},
    }


def test_workbench_finds_attributes_inside_an_odd_key():
    """The parts of State#Date are the attributes State and Date of the same item. A note names a sparse index key."""
    found = rules_from(case("models/aws-design-patterns/DeviceStateLog_7.json"))
    rules = parse_rules(found.text, environ={})
    assert keys(rules) == {"device_state_log": {"DeviceID": "d#{device_id}", "State#Date": "{State}#{Date}"}}
    assert any("EscalatedTo is on 1 of 11 items" in note for note in found.notes)


def test_workbench_facets_name_entities_and_fields():
    """Facets with sample data, a facet with aliases alone, and a table of one kind of items."""
    _, rules = fixture("workbench.json")
    assert keys(rules) == {
        "accounts": {"PK": "ACCT#{AccountId}", "SK": "ACCT#{AccountId}"},
        "transactions": {
            "PK": "ACCT#{AccountId}",
            "SK": "TRAN#{tran_at}#{tran_id}",
            "GSI1PK": "MERCHANT#{merchant_id}",
        },
        "cards": {"PK": "ACCT#{account_id}", "SK": "CARD#{card_id}"},
        "employee": {"LoginAlias": "{LoginAlias}"},
    }


# ---------------------------------------------------------------- templates
def test_template_functions_become_variables():
    """Parameters keep their defaults, mappings and conditions are worked out, other names are variables to set."""
    found, rules = fixture("template.yaml")
    assert {name: table.physical_name for name, table in rules.tables.items()} == {
        "shop": "dev-shop",
        "orders": "orders-x",
        "users": "stack-users-red",
        "audit": "audit-dev",
        "sessions": "sessions",
        "unnamed": "unnamed",
    }
    assert 'name: "${STAGE:-dev}-shop"' in found.text
    assert [index.name for index in rules.tables["shop"].indexes] == ["GSI1", "by_created", "local"]
    assert [index.local for index in rules.tables["shop"].indexes] == [False, False, True]
    assert rules.tables["audit"].partition.type == "B"


def test_template_notes_say_which_streams_are_missing():
    """There is one note for each table without a stream of both images, and none for the others."""
    found, _ = fixture("template.yaml")
    told = {note.split(":")[0] for note in found.notes if "stream" in note and "NEW_AND_OLD_IMAGES" in note}
    assert told == {"table orders", "table audit", "table unnamed"}
    assert any(note.startswith("table sessions: a SimpleTable has no stream") for note in found.notes)
    assert any("nested stack 'Nested'" in note for note in found.notes)


def test_template_of_the_cdk_is_named_by_its_path():
    """Logical ids have a hash at the end; the path has not."""
    _, rules = fixture("cdk.template.json")
    (index,) = rules.tables["orders"].indexes
    assert [one.name for one in index.partition] == ["tenant", "region"]
    assert [one.name for one in index.sort] == ["day", "order_id"]


def test_terraform_state_and_plan():
    """Modules are searched, data sources are not tables, unknown names are variables, streams are looked at."""
    found, rules = fixture("terraform-state.json")
    assert [table.physical_name for table in rules.tables.values()] == ["shop-prod", "orders-prod"]
    assert any("table orders: it has no stream" in note for note in found.notes)
    assert rules.tables["orders"].indexes[0].sort[0].name == "day"
    plan, _ = fixture("terraform-plan.json")
    assert 'name: "${USERS_TABLE:-users}"' in plan.text
    assert any("table users: its stream does not show both images" in note for note in plan.notes)


def test_terraform_s_own_language_is_refused_with_the_command():
    """The cure is a command that gives what can be read."""
    synthesised = json.dumps({"resource": {"aws_dynamodb_table": {"shop": {"name": "shop"}}}, "terraform": {}})
    for text in ((FIXTURES / "tables.tf").read_text(), synthesised):
        assert "terraform show -json" in refused(text).cure


# ---------------------------------------------------------------- schemas
def test_modelling_schema_has_templates_types_and_patterns():
    """A key of one number alone is a number, and a note says so. The importer reads access patterns."""
    _, rules = fixture("schema.json")
    assert keys(rules) == {
        "organization": {"pk": "ORG#{org_id}", "sk": "DETAILS"},
        "organization_member": {
            "pk": "ORG#{org_id}",
            "sk": "MEMBER#{user_id}",
            "gsi1_pk": "STATUS#{status}",
            "gsi1_sk": "{joined_at}",
        },
        "leaderboard_entry": {"game_id": "{game_id}", "score": "{score}"},
    }
    assert [one.type for one in rules.tables["leaderboard"].key] == ["S", "N"]
    assert list(find_design(rules).patterns) == ["get_organization", "get_organization_members"]


@pytest.mark.parametrize("shared", ["{sort_key}", "MENU#{category}"])
def test_modelling_schema_keeps_the_key_of_a_table_that_an_index_shares(shared):
    """The template of the table's own sort key is kept, whatever the mapping of an index says of the same attribute."""
    fields = [{"name": name, "type": "string", "required": True} for name in ("id", "category", "rating_id", "at")]
    mapping = {"name": "by_category", "pk_template": "{category}", "sk_template": shared}
    templates = {"Rating": "REVIEW#{at}#{rating_id}", "Product": "MENU#{category}#{id}"}
    entities = {
        name: {"pk_template": "{warehouse_id}", "sk_template": text, "fields": fields, "gsi_mappings": [mapping]}
        for name, text in templates.items()
    }
    table = {
        "table_config": {"table_name": "Warehouses", "partition_key": "warehouse_id", "sort_key": "sort_key"},
        "gsi_list": [{"name": "by_category", "partition_key": "category", "sort_key": "sort_key"}],
        "entities": entities,
    }
    found = keys(parse_rules(rules_from_text(json.dumps({"tables": [table]}), "x.json").text, environ={}))
    assert {name: one["sort_key"] for name, one in found.items()} == {
        "rating": templates["Rating"],
        "product": templates["Product"],
    }


def test_electrodb_keys_are_composed_as_it_composes_them():
    """Prefixes, labels, collections, clusters, casing, templates, renamed attributes and sparse indexes."""
    found, rules = fixture("electrodb.json")
    by_author = "$library#authorlastname_{authorLastName:lower}#authorfirstname_{authorFirstName:lower}"
    assert keys(rules) == {
        "author": {
            "pk": "$library#authorlastname_{authorLastName:lower}",
            "sk": "$author_1#authorfirstname_{authorFirstName:lower}#birthday_{birthday:lower}",
            "gsi2pk": by_author,
            "gsi2sk": "$works#author_1",
        },
        "book": {
            "pk": "$library#isbn_{i:lower}",
            "sk": "$detail#book_1#bookid_{bookId:lower}",
            "gsi2pk": by_author,
            "gsi2sk": "$works#bookid_{bookId:lower}#book_1",
        },
        "counter": {"pk": "COUNTER#{name}", "sk": "$COUNTER_2#SHARD_{shard}"},
    }
    assert any("gsi1pk is there only on items with memberId" in note for note in found.notes)
    flat = rules.tables["library"].index("flat-index")
    assert [(one.name, one.type) for one in flat.attributes] == [("name", "S"), ("shard", "N")]


def test_electrodb_keeps_the_key_of_a_table_that_an_index_shares():
    """The template of the table's own sort key is kept, also if the model lists the index first."""
    document = json.loads((FIXTURES / "electrodb-items.json").read_text())
    user = next(one for one in document["entities"] if one["model"]["entity"] == "User")
    own, emails = user["indexes"]["primary"], user["indexes"]["emails"]
    user["indexes"] = {"emails": emails | {"sk": {"field": "sk", "composite": ["email"]}}, "primary": own}
    found = rules_from_text(json.dumps({"entities": [user], "table": "shop"}), "x.json")
    assert keys(parse_rules(found.text, environ={}))["user"]["sk"] == "$user_1"
    assert any("sk is made in two ways: '$user_1' was taken" in note for note in found.notes)


def test_electrodb_padding_of_a_text_has_no_template_and_no_rule_makes_its_items():
    """Zeros before a number are `pad`, and before a text they are not. A mirror into such an entity is refused."""
    document = json.loads((FIXTURES / "electrodb-items.json").read_text())
    held = [one for one in document["entities"] if one["model"]["entity"] in ("User", "invoice")]
    held[1]["attributes"]["number"]["type"] = "string"
    found = rules_from_text(json.dumps({"entities": held, "table": "shop"}), "x.json")
    assert any("invoice: sk holds what a template cannot write: write another" in note for note in found.notes)
    taken_in = found.text.replace("  # invoice:", "  invoice:").replace("  #   ", "    ")
    lines = taken_in.replace("rules: {}", "rules: {m: {mirror: user, into: invoice}}")
    _, problems = check_rules(lines, environ={})
    assert "SR306" in [one.code for one in problems if one.severity == "error"]


def recorded() -> tuple[RulesDraft, dict[str, list[dict[str, Any]]]]:
    """The models of a fixture, and the items that ElectroDB itself makes of them: see record_electrodb.js."""
    path = FIXTURES / "electrodb-items.json"
    items = json.loads(path.read_text())["items"]
    return rules_from(path), {
        name: [{a: make_raw_value(v) for a, v in one.items()} for one in ones] for name, ones in items.items()
    }


def test_electrodb_items_have_the_keys_of_their_entities():
    """ElectroDB's own items: entity and fields of each key are right, and the attributes make exactly these keys."""
    found, items = recorded()
    rules = parse_rules(found.text, environ={})
    for name in items.keys() - {"bare", "flag"}:  # a comment, for its keys tell nothing; a boolean, which makes no key
        entity = rules.entities[name]
        for item in items[name]:
            assert rules.entity_of(entity.table.key_of(item)) is entity
            fields = {
                one: entity.ref(one).read(item) for template in entity.templates.values() for one in template.fields
            }
            made = {attribute: template.build(fields, "S") for attribute, template in entity.templates.items()}
            assert made == {attribute: item[attribute] for attribute in entity.templates}


def test_electrodb_reads_mirrors_as_its_own_items():
    """A mirror is the item that ElectroDB itself would put: padding, letters, marks, and the values as they were."""
    found, items = recorded()
    rules = """rules:
  by-email: {mirror: user, into: userByEmail, attributes: [email, name]}
  by-number: {mirror: invoice, into: invoiceByNumber, attributes: [number]}
  mark-1: {derive: userByEmail.__edb_e__, as: userByEmail}
  mark-2: {derive: userByEmail.__edb_v__, as: "1"}
  mark-3: {derive: invoiceByNumber.__edb_e__, as: invoiceByNumber}
  mark-4: {derive: invoiceByNumber.__edb_v__, as: "1"}
"""
    scene = Scene(parse_rules(found.text.replace("rules: {}\n", rules), environ={}))
    scene.put("shop", items["user"][0])
    scene.put("shop", items["invoice"][0])
    scene.rest()
    stored = [item for item in scene.memory.items("shop") if item["__edb_e__"]["S"] not in ("User", "invoice")]
    made = sorted(stored, key=lambda item: item["__edb_e__"]["S"])
    assert made == [*items["invoiceByNumber"], *items["userByEmail"]]
    assert scene.parked.failures == []


def test_onetable_values_become_templates():
    """Mapped attributes by their stored name, the type field by its value, a sparse index key left out, padding taken."""
    _, rules = fixture("onetable.json")
    assert keys(rules) == {
        "account": {"pk": "account#{id}", "sk": "account#", "gs1pk": "account#", "gs1sk": "account#{name}#{id}"},
        "user": {"pk": "account#{accountId}", "sk": "User#{em}"},
        "invoice": {"pk": "account#{accountId}", "sk": "invoice#{number:pad(10)}"},
    }
    padded = (FIXTURES / "onetable.json").read_text().replace("number:10:0", "number:10:x")
    other = rules_from_text(padded, "x.json")
    assert any("number is padded in 'sk' as no template can" in note for note in other.notes)
    assert "invoice#" not in other.text


def test_entities_that_keys_do_not_tell_apart_are_comments():
    """The second one stands as a comment with the reason, and taking it in is the user's choice."""
    models = {name: {"pk": {"type": "string"}} for name in ("one", "two")}
    made = {"format": "onetable:1.1.0", "table": "t-1", "indexes": {"primary": {"hash": "pk"}}, "models": models}
    found = rules_from_text(json.dumps(made), "x.json")
    assert "  # two: {table: t_1}" in found.text
    assert any(
        "entity two is written as a comment: a key of table t_1 may be of one and of two" in n for n in found.notes
    )


# ---------------------------------------------------------------- foreign files
@pytest.mark.parametrize(
    ("text", "place", "expected"),
    [
        ('{"DataModel": [{"TableName": "abc", "KeyAttributes": []}]}', "/DataModel/0/KeyAttributes", "PartitionKey"),
        ('{"DataModel": [{"TableName": "a b"}]}', "/DataModel/0/KeyAttributes", "the key"),
        ('{"DataModel": []}', "", "a table"),
        ('{"Resources": {"A": {"Type": "AWS::S3::Bucket"}}}', "/Resources", "AWS::DynamoDB::Table"),
        ("Resources:\n  A:\n    Type: AWS::DynamoDB::Table\n    Properties:\n      KeySchema: 7\n", "5:18 · /Resources/A/Properties/KeySchema", "key attributes"),
        ('{"a/b": 1, "c~d": 2}', "", "one of: NoSQL Workbench model"),
        ('{"DataModel": [\n  1,\n  }', "3:3", "JSON"),
        ("a: [", "1:5", "JSON or YAML"),
        ("", "", "JSON or YAML"),
        ('{"values": {}, "format_version": "1.0"}', "", "aws_dynamodb_table"),
        ('{"tables": [{"table_config": {"table_name": "abc"}}]}', "/tables/0/table_config/partition_key", "a partition key"),
    ],
)  # fmt: skip
def test_foreign_files_are_refused_with_place_and_cure(text, place, expected):
    """The error says where it is, what was expected, what was found, and what to do."""
    error = refused(text)
    assert error.place == place
    assert expected in error.expected
    assert error.found
    assert error.cure
    assert str(error).startswith(f"given.json · {place}" if place else "given.json\n")


def test_foreign_files_that_cannot_be_read_are_refused(tmp_path):
    """A missing file, a directory, bytes that are no text, and data that is no model."""
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff\xfe\x00")
    for path, found in (
        (tmp_path, "a directory"),
        (tmp_path / "none", "no such file"),
        (binary, "bytes that are not UTF-8"),
    ):
        with pytest.raises(ImportedFileError) as caught:
            rules_from(path)
        assert caught.value.found == found
    with pytest.raises(ImportedFileError, match="given-name"):
        rules_from(tmp_path / "none", name="given-name")


def test_foreign_data_is_no_model():
    """The importer distinguishes a list of items from a model, and shows none of its values."""
    with pytest.raises(ImportedFileError) as caught:
        rules_from(case("models/amazon-dynamodb-tools/persons.ddb.json"))
    assert "a list of maps with 'id', 'first_name'" in caught.value.found
    assert "Smith" not in str(caught.value)


# ---------------------------------------------------------------- keys of items
def read_off(*pairs: tuple[str, str], **more: str) -> dict[str, dict[str, str]]:
    """The entities that are read off items with these keys."""
    items = [{"PK": {"S": pk}, "SK": {"S": sk}, **{k: {"S": v} for k, v in more.items()}} for pk, sk in pairs]
    key = {"PK": "HASH", "SK": "RANGE"}
    table = {
        "TableName": "app",
        "AttributeDefinitions": [{"AttributeName": name, "AttributeType": "S"} for name in key],
        "KeySchema": [{"AttributeName": name, "KeyType": kind} for name, kind in key.items()],
    }
    found = rules_from_text(json.dumps({"tables": [table], "items": {"app": items}}), "x.json")
    return keys(parse_rules(found.text, environ={}))


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        # a word before a value, a word alone, both with other separators
        ([("user:1", "info:"), ("user:2", "info:")], {"user": {"PK": "user:{user_id}", "SK": "info:"}}),
        ([("ORG|1", "A"), ("ORG|2", "A")], {"org": {"PK": "ORG|{org_id}", "SK": "A"}}),
        ([("user_1", "PROFILE"), ("user_2", "PROFILE")], {"user": {"PK": "user_{user_id}", "SK": "PROFILE"}}),
        # words after values, and two words in a row that others begin with
        (
            [("u#1#follower", "u#2"), ("u#1#follower", "u#3"), ("u#1#post", "p#2"), ("u#2#post", "p#3"), ("u#1", "INFO")],
            {
                "follower": {"PK": "u#{u_id}#follower", "SK": "u#{u_id_2}"},
                "post": {"PK": "u#{u_id}#post", "SK": "p#{post_id}"},
                "app": {"PK": "u#{u_id}", "SK": "INFO"},
            },
        ),
        # dates, padded numbers and addresses are values; a path of any depth is one
        ([("LOG#1", "2026-01-01T10:00:00"), ("LOG#2", "2026-01-02T10:00:00")], {"log": {"PK": "LOG#{log_id}"}}),
        ([("https://a.example/x", "1"), ("https://a.example/y", "2")], {"app": {}}),
        ([("dir/a/b/c", "X1"), ("dir/d", "X2")], {"dir": {"PK": "dir/{dir_id}"}}),
        # one item of a kind: what its metadata repeats is the same field
        ([("GAME#9", "#METADATA#9")], {"game": {"PK": "GAME#{game_id}", "SK": "#METADATA#{game_id}"}}),
        # four values that look like words, and nothing else differs
        ([(f"{name}#1", "LOGIN#1") for name in ("ALICE", "BOB", "CAROL", "DAVE")], {"login": {"PK": "{pk_part}#{pk_part_2}", "SK": "LOGIN#{login_id}"}}),
    ],
)  # fmt: skip
def test_items_are_told_by_the_form_of_their_keys(pairs, expected):
    """Separators, words, values, and what only looks like either."""
    found = read_off(*pairs, title="t")
    named = {name: {a: t for a, t in key.items() if t != f"{{{a}}}"} for name, key in found.items()}
    assert named == expected


def test_items_of_one_type_with_several_keys_have_names_of_their_own():
    """The root keeps the type's name, the others add a word of their keys."""
    found = read_off(("VIN#1", "#META#"), ("VIN#1", "FEATURE#a"), ("VIN#2", "FEATURE#b"), type="vehicle")
    assert set(found) == {"vehicle", "vehicle_feature"}


def test_items_that_a_general_key_would_swallow_keep_their_entities():
    """If keys fit two entities, the one that says less is the comment."""
    found = read_off(("u#1", "a1"), ("u#2", "b2"), ("u#1#follower", "u#2"), ("u#2#follower", "u#1"))
    assert found == {"follower": {"PK": "u#{u_id}#follower", "SK": "u#{u_id_2}"}}
