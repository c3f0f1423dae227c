"""The template: what is generated into it for a rules file, and what it refuses."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from sync_rules.deploy import sam_template
from sync_rules.deploy import template as templates
from sync_rules.deploy.deployment import read_deployment
from sync_rules.deploy.sam_template import list_sam_resources
from sync_rules.deploy.template import fill_template, find_rules_file, warn_of_indexes, warn_of_limits
from sync_rules.model.errors import UserError
from tests.support.cloudformation import read_template
from tests.support.every_kind import EFFECTS, RULES, text_of
from tests.test_house import ROOT

TEMPLATE = ROOT / "template.yaml"
TEXT = TEMPLATE.read_text()
EXAMPLES = sorted(ROOT.glob("examples/*/rules.yaml"))
SMALL = """
tables:
  {name}
entities:
  user:  {{table: shop, key: {{PK: "USER#{{user_id}}", SK: PROFILE}}}}
  order: {{table: shop, key: {{PK: "USER#{{user_id}}", SK: "ORDER#{{order_id}}"}}}}
rules:
  names: copy user.name into order.user_name
"""


def template_of(path, text=TEXT):
    """The template for a rules file, read."""
    return read_template(fill_template(text, read_deployment(path), path, TEMPLATE))


@pytest.fixture
def made(tmp_path):
    """The template for a text of rules, and for a template before it was written."""

    def of(text, template=TEXT):
        path = tmp_path / "rules.yaml"
        path.write_text(text)
        return template_of(path, template)

    return of


@pytest.fixture
def small(made):
    def of(table):
        return made(SMALL.format(name=table))

    return of


ONE = SMALL.format(name="shop: {key: {PK: S, SK: S}}")


def list_warnings(folder, before, after):
    """The warnings when the template of some rules becomes that of others."""
    path = folder / "rules.yaml"

    def text_of_rules(rules):
        path.write_text(rules)
        return fill_template(TEXT, read_deployment(path), path, TEMPLATE)

    return list(warn_of_indexes(text_of_rules(before), text_of_rules(after), TEMPLATE))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.parent.name)
def test_template_of_every_example_has_all_that_it_speaks_of(path):
    """Every resource, parameter and condition that a template refers to exists."""
    whole = template_of(path)
    known = whole["Resources"].keys() | whole["Parameters"].keys()

    def check(value):
        match value:
            case {"Ref": name} if len(value) == 1:
                assert name in known or name.startswith(("AWS::", "StreamFunction", "FanoutFunction")), name
            case {"Fn::GetAtt": [name, *_]} if not name.endswith("Role"):
                assert name in known, name
            case {"Fn::If": [condition, *_]}:
                assert condition in whole["Conditions"]
        if isinstance(value, dict):
            for inner in value.values():
                check(inner)
        elif isinstance(value, list):
            for inner in value:
                check(inner)

    check(whole)
    tables = {name for name, resource in whole["Resources"].items() if "Condition" in resource}
    assert {whole["Resources"][name]["Condition"] for name in tables} <= whole["Conditions"].keys()


def test_template_in_the_repo_is_that_of_its_rules_file():
    """The template in the repository is up to date with its rules file, as `sync-rules infra --check` says."""
    path = find_rules_file(TEXT, TEMPLATE)
    assert path.parent.name == "organisations-users-tickets"
    assert fill_template(TEXT, read_deployment(path), path, TEMPLATE) == TEXT


def test_template_reads_each_stream_with_the_settings_that_lose_nothing(made):
    """One mapping per streamed table: from the oldest record, in part again, to the bucket in the end."""
    whole = made(text_of(RULES | EFFECTS))
    events = whole["Resources"]["StreamFunction"]["Properties"]["Events"]
    assert events.keys() == {"Shop", "Posts", "Parts", "Ledger"}
    for name, event in events.items():
        properties = event["Properties"]
        table = {"Fn::GetAtt": [f"{name}Table", "StreamArn"]}
        assert properties["Stream"] == {"Fn::If": [f"Creates{name}", table, {"Ref": f"{name}StreamArn"}]}
        assert properties["StartingPosition"] == "TRIM_HORIZON"
        assert properties["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
        assert properties["BisectBatchOnFunctionError"] is True
        assert properties["MaximumRetryAttempts"] > 0
        assert 3_600 < properties["MaximumRecordAgeInSeconds"] < 86_400
        bucket = {"Fn::GetAtt": ["Bucket", "Arn"]}
        assert properties["DestinationConfig"] == {"OnFailure": {"Type": "S3", "Destination": bucket}}
    assert "FilterCriteria" in events["Ledger"]["Properties"]
    assert "FilterCriteria" not in events["Posts"]["Properties"]  # posts have no text in their keys


def test_template_creates_tables_that_outlive_it(small):
    """Kept when the stack goes, recoverable, encrypted, protected, with both images in the stream."""
    table = small('shop: {name: "${STAGE:-dev}-shop", key: {PK: S, SK: S}}')["Resources"]["ShopTable"]
    assert table["Condition"] == "CreatesShop"
    assert table["DeletionPolicy"] == table["UpdateReplacePolicy"] == "Retain"
    properties = table["Properties"]
    assert properties["TableName"] == {"Fn::Sub": "${StageVariable}-shop"}
    assert properties["BillingMode"] == "PAY_PER_REQUEST"
    assert properties["StreamSpecification"] == {"StreamViewType": "NEW_AND_OLD_IMAGES"}
    assert properties["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
    assert properties["DeletionProtectionEnabled"] is True


def test_template_has_a_parameter_for_each_variable_and_gives_it_to_the_functions(small):
    """The functions load the same rules file, and find its variables set."""
    whole = small('shop: {name: "${STAGE:-dev}-${TEAM}", key: {PK: S, SK: S}}')
    assert whole["Parameters"]["StageVariable"]["Default"] == "dev"
    assert "Default" not in whole["Parameters"]["TeamVariable"]
    variables = whole["Globals"]["Function"]["Environment"]["Variables"]
    assert (variables["STAGE"], variables["TEAM"]) == ({"Ref": "StageVariable"}, {"Ref": "TeamVariable"})


def test_template_refuses_two_defaults_of_one_variable(made):
    """A parameter has one default; the other would be lost without a word. None beside one is none too many."""
    one = """shop:  {name: "users-${STAGE:-a}", key: {PK: S, SK: S}}
  other: {name: "orders-${STAGE}", key: {id: S}}"""
    assert made(SMALL.format(name=one))["Parameters"]["StageVariable"]["Default"] == "a"
    with pytest.raises(UserError, match=r"rules.yaml:4: variable STAGE has the default 'b', and 'a' in line 3"):
        made(SMALL.format(name=one.replace("${STAGE}", "${STAGE:-b}")))


def ids_of(whole):
    """Every logical id that CloudFormation will see."""
    made = (one for name, resource in whole["Resources"].items() for one in list_sam_resources(name, resource))
    return Counter([*whole["Parameters"], *whole["Resources"], *made])


@pytest.mark.parametrize(
    "name", ["BUCKET", "STREAM_ROLE", "FANOUT_FUNCTION_QUEUE", "SHOP_TABLE", "STREAM_FUNCTION_SHOP"]
)
def test_template_has_a_variable_of_any_name(small, name):
    """None of them is a resource of ours, nor of SAM's, nor another parameter."""
    whole = small(f'shop: {{name: "${{{name}:-shop}}", key: {{PK: S, SK: S}}}}')
    assert ids_of(whole).most_common(1)[0][1] == 1


def test_template_takes_the_stream_of_its_table_alone(small, made):
    """The ARN of another table's stream is refused before anything is deployed, where the table's name is known."""
    fixed = small("shop: {name: my.shop, key: {PK: S, SK: S}}")["Parameters"]["ShopStreamArn"]["AllowedPattern"]
    begun = "arn:aws:dynamodb:eu-west-1:123456789012:table"
    assert re.fullmatch(fixed, f"{begun}/my.shop/stream/2026-01-01T00:00:00.000")
    assert re.fullmatch(fixed, "")
    for other in ("myxshop", "my.shops", "orders"):
        assert not re.fullmatch(fixed, f"{begun}/{other}/stream/2026-01-01T00:00:00.000")
    varied = small('shop: {name: "${STAGE}-shop", key: {PK: S, SK: S}}')["Parameters"]["ShopStreamArn"]
    assert re.fullmatch(varied["AllowedPattern"], f"{begun}/dev-shop/stream/2026-01-01T00:00:00.000")
    known = small(f'shop: {{name: "{begun}/shop", key: {{PK: S, SK: S}}}}')["Parameters"]["ShopStreamArn"]
    assert re.fullmatch(known["AllowedPattern"], f"{begun}/shop/stream/1")
    assert not re.fullmatch(known["AllowedPattern"], f"{begun}/shops/stream/1")
    assert not re.fullmatch(known["AllowedPattern"], "")


@pytest.mark.parametrize(
    ("table", "told"),
    [
        (
            'shop: {name: "${SYNC_RULES_FILE}", key: {PK: S, SK: S}}',
            "rules.yaml:3: variable SYNC_RULES_FILE would be given to the functions of .*, and the template itself has",
        ),
        (
            'shop: {name: "${stage}-${STAGE}", key: {PK: S, SK: S}}',
            r"rules.yaml:3: variable STAGE would be StageVariable in .*, and variable stage \(line 3\) has that name",
        ),
        (
            'shop: {name: "${AWS_REGION}-shop", key: {PK: S, SK: S}}',
            "Lambda reserves variables that begin with .*: give AWS_REGION another name",
        ),
        (
            'shop: {name: "${_STAGE}-shop", key: {PK: S, SK: S}}',
            "yaml:3: Lambda reserves variables .*: give _STAGE another name",
        ),
    ],
    ids=["of-the-template", "of-another", "lambdas", "underscore"],
)
def test_template_refuses_names_that_are_taken(small, table, told):
    """A parameter is never two things at once, and no deployment fails for the name of a variable."""
    with pytest.raises(UserError, match=told):
        small(table)


def test_template_refuses_two_tables_of_one_name_and_a_table_like_its_own(made):
    """Table names that would share a logical id, or take the template's own, are refused."""
    text = ONE
    with pytest.raises(
        UserError, match=r"rules.yaml:3: table state would be StateTable in .*, and the template itself"
    ):
        made(text.replace("table: shop", "table: state").replace("  shop:", "  state:"))
    two = text.replace("  shop:", "  Shop: {key: {PK: S, SK: S}}\n  shop:").replace(
        "user:  {table: shop", "user: {table: Shop"
    )
    with pytest.raises(
        UserError, match=r"rules.yaml:4: table shop would be .*, and table Shop \(line 3\) has that name"
    ):
        made(two)


def test_template_refuses_a_rule_whose_alarm_is_the_mapping_of_a_table(made):
    """A rule whose alarm would have the logical id of a SAM mapping is refused with both lines."""
    text = ONE.replace("shop", "lagAlarm")
    with pytest.raises(UserError, match=r"yaml:8: rule stream-function would be .*, and table lagAlarm \(line 3\)"):
        made(text.replace("names:", "stream-function:"))


def test_template_refuses_a_queue_that_gives_out_what_is_worked_on(made):
    """A function timeout too long for the queue's visibility is refused with the visibility needed."""
    raised = TEXT.replace("Timeout: 180 ", "Timeout: 300 ")
    with pytest.raises(
        UserError, match=r"FanoutFunction may take 300 seconds .* for 1080 .*: set that to 1800 or more"
    ):
        made(ONE, raised)
    made(ONE, raised.replace("VisibilityTimeout: 1080", "VisibilityTimeout: 1800"))


def test_template_lets_functions_run_for_as_long_as_their_state_machine_waits(made):
    """A state machine waits a minute longer than Lambda runs a function; a longer Timeout is refused."""
    waits = re.findall(r'"TimeoutSeconds": (\d+),\n +"ResultPath', (ROOT / "infra/machine.asl.json").read_text())
    assert waits == [str(sam_template.MACHINE_WAITS_SECONDS)] * 3
    made(ONE, TEXT.replace("Timeout: 900", "Timeout: 1800"))
    with pytest.raises(UserError, match=r"BackfillFunction may take 1801 seconds .*: set Timeout to 1800 or less"):
        made(ONE, TEXT.replace("Timeout: 900", "Timeout: 1801"))


@pytest.mark.parametrize(
    ("name", "found", "expected"),
    [
        ("Runtime", "python3.10", "python3.11, python3.12, python3.13, python3.14, python3.15"),
        ("Runtime", "nodejs26.x", "python3.11"),
        ("Architectures", "[riscv64]", "arm64, x86_64"),
    ],
)
def test_template_refuses_a_machine_that_sync_rules_does_not_run_on(made, name, found, expected):
    """A Runtime or a processor of the template that no build is for is refused with the possible ones."""
    wrong = re.sub(rf"^( +{name}: ).*", rf"\g<1>{found}", TEXT, flags=re.MULTILINE)
    with pytest.raises(
        UserError, match=f"{name} of the functions: expected one of {expected}.*found {found.strip('[]')}"
    ):
        made(ONE, wrong)
    mixed = TEXT.replace("      Timeout: 180 ", "      Runtime: python3.13\n      Timeout: 180 ")
    with pytest.raises(UserError, match=r"the same for all, found python3\.13, python3\.14"):
        made(ONE, mixed)


INDEXED = "shop: {{key: {{PK: S, SK: S}}, indexes: {{{}}}}}"


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("by_a: {a: S}", "by_a: {a: S}", []),
        ("by_a: {a: S}", "by_a: {a: S}, by_b: {b: S}", []),
        ("by_a: {a: S}, by_b: {b: S}", "by_a: {a: S}", ["ShopTable is left without index by_b"]),
        ("by_a: {a: S}", "by_a: {c: S}", ["index by_a of ShopTable has changed"]),
        (
            "by_a: {a: S}",
            "by_a: {a: S}, mine: {partition: {PK: S}, sort: {a: S}, local: true}",
            ["makes a new, empty table"],
        ),
        ("by_a: {a: S}", "by_b: {b: S}", ["left without index by_a", r"2 indexes more or less \(by_a, by_b\)"]),
    ],
    ids=["same", "one-more", "gone", "changed", "local", "two-at-once"],
)
def test_template_warns_of_what_becomes_of_indexes(before, after, told, tmp_path):
    """An index that the rules no longer have is deleted by the next deployment, and two are more than one makes."""
    found = list_warnings(tmp_path, *(SMALL.format(name=INDEXED.format(indexes)) for indexes in (before, after)))
    assert len(found) == len(told)
    assert all(re.search(one, warning) for one, warning in zip(told, found, strict=True))


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("gone", "gone", []),
        (None, "gone", []),
        ("gone", "ends", ["goes from gone to ends"]),
        ("gone", None, ["left without Time to Live on gone"]),
    ],
    ids=["same", "new", "another", "none"],
)
def test_template_warns_of_what_becomes_of_a_time_to_live(before, after, told, tmp_path):
    """CloudFormation refuses another attribute, and may leave on what the rules no longer have."""

    def rules(ttl):
        rule = f"derive: game.{ttl or 'label'}, as: '{'ttl(ended_at, 60d)' if ttl else '{ended_at}'}'"
        return (
            f"tables: {{games: {{key: {{id: S}}}}}}\nentities: {{game: {{table: games}}}}\nrules: {{x: {{{rule}}}}}\n"
        )

    found = list_warnings(tmp_path, rules(before), rules(after))
    assert len(found) == len(told)
    assert all(one in warning for one, warning in zip(told, found, strict=True))


def test_template_warns_near_the_limits_of_cloudformation(monkeypatch):
    """Before a deployment fails for it."""
    assert not list(warn_of_limits(TEXT, TEMPLATE))
    monkeypatch.setattr(templates, "RESOURCES_MAX", 100)
    (warning,) = warn_of_limits(TEXT, TEMPLATE)
    assert "CloudFormation takes 100" in warning


def test_template_creates_tables_with_time_to_live(made):
    """The table of a rule that makes the attribute has Time to Live on it, and no other table."""
    whole = made("""
tables: {games: {key: {game_id: S}}, users: {key: {user_id: S}}}
entities: {game: {table: games}, user: {table: users}}
rules:
  expiry: {derive: game.expires_at, as: "ttl(ended_at, 60d)"}
  users: {derive: user.label, as: "{user_id}"}
""")
    resources = whole["Resources"]
    ttl = {name: resources[name]["Properties"].get("TimeToLiveSpecification") for name in ("GamesTable", "UsersTable")}
    assert ttl == {"GamesTable": {"AttributeName": "expires_at", "Enabled": True}, "UsersTable": None}
