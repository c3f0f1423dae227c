"""The template: what is generated into it for a rules file, and what it refuses."""

from __future__ import annotations

import pytest

from infra import template as templates
from infra.deployment import deployment_of
from infra.template import rules_noted, warnings, written
from infra.yamltext import read_yaml
from sync_rules.errors import UserError
from tests.every_kind import EFFECTS, RULES, text_of
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


def template_of(path):
    """The template for a rules file, read."""
    return read_yaml(written(TEXT, deployment_of(path), path, TEMPLATE), "template.yaml")


@pytest.fixture
def made(tmp_path):
    """The template for a text of rules."""

    def of(text):
        path = tmp_path / "rules.yaml"
        path.write_text(text)
        return template_of(path)

    return of


@pytest.fixture
def small(made):
    def of(table):
        return made(SMALL.format(name=table))

    return of


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.parent.name)
def test_template_of_every_example_has_all_that_it_speaks_of(path):
    """Whatever is referred to is there: resources, parameters, conditions."""
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
    """What `sync-rules infra --check` says in CI."""
    path = rules_noted(TEXT, TEMPLATE)
    assert path.parent.name == "organisations-users-tickets"
    assert written(TEXT, deployment_of(path), path, TEMPLATE) == TEXT


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
    assert properties["TableName"] == {"Fn::Sub": "${Stage}-shop"}
    assert properties["BillingMode"] == "PAY_PER_REQUEST"
    assert properties["StreamSpecification"] == {"StreamViewType": "NEW_AND_OLD_IMAGES"}
    assert properties["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
    assert properties["DeletionProtectionEnabled"] is True


def test_template_has_a_parameter_for_each_variable_and_gives_it_to_the_functions(small):
    """The functions load the same rules file, and find its variables set."""
    whole = small('shop: {name: "${STAGE:-dev}-${TEAM}", key: {PK: S, SK: S}}')
    assert whole["Parameters"]["Stage"]["Default"] == "dev"
    assert "Default" not in whole["Parameters"]["Team"]
    variables = whole["Globals"]["Function"]["Environment"]["Variables"]
    assert (variables["STAGE"], variables["TEAM"]) == ({"Ref": "Stage"}, {"Ref": "Team"})


def test_template_creates_no_table_that_is_named_by_its_arn(small):
    """It is somebody else's: its stream must be given."""
    whole = small('shop: {name: "arn:aws:dynamodb:eu-west-1:123456789012:table/shop", key: {PK: S, SK: S}}')
    assert "ShopTable" not in whole["Resources"]
    assert "CreatesShop" not in whole["Conditions"]
    assert "Default" not in whole["Parameters"]["ShopStreamArn"]
    events = whole["Resources"]["StreamFunction"]["Properties"]["Events"]
    assert events["Shop"]["Properties"]["Stream"] == {"Ref": "ShopStreamArn"}


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ('shop: {name: "${LOG_RETENTION_DAYS}", key: {PK: S, SK: S}}', "would have LogRetentionDays twice"),
        ('shop: {name: "${SHOP_STREAM_ARN}", key: {PK: S, SK: S}}', "SHOP_STREAM_ARN and a table's stream"),
        ('shop: {name: "${AWS_REGION}-shop", key: {PK: S, SK: S}}', "Lambda lets nobody set a variable AWS_REGION"),
        ('shop: {name: "${_STAGE}-shop", key: {PK: S, SK: S}}', "Lambda lets nobody set a variable _STAGE"),
    ],
    ids=["of-the-template", "of-a-table", "lambdas", "underscore"],
)
def test_template_refuses_names_that_are_taken(small, table, told):
    """A parameter is never two things at once, and no deployment fails for the name of a variable."""
    with pytest.raises(UserError, match=told):
        small(table)


def test_template_refuses_two_tables_of_one_name_and_a_table_like_its_own(made):
    """Names that CloudFormation cannot tell apart are told before anything is written."""
    text = SMALL.format(name="shop: {key: {PK: S, SK: S}}")
    with pytest.raises(UserError, match="StateTable twice"):
        made(text.replace("table: shop", "table: state").replace("  shop:", "  state:"))
    two = text.replace("  shop:", "  Shop: {key: {PK: S, SK: S}}\n  shop:").replace(
        "user:  {table: shop", "user: {table: Shop"
    )
    with pytest.raises(UserError, match="tables Shop and shop are the same"):
        made(two)


def test_template_of_rules_that_say_nothing_is_refused(made):
    """There is nothing to deploy."""
    with pytest.raises(UserError, match="has no rules"):
        made(text_of({}))


def test_template_paces_the_workers_by_the_parameter():
    """For each allowed value, the workers and the units of each multiply to it; Lambda takes 2 to 1,000 workers."""
    whole = read_yaml(TEXT, "template.yaml")
    pace = whole["Mappings"]["FanoutPace"]
    allowed = whole["Parameters"]["WriteUnitsPerSecond"]["AllowedValues"]
    assert [str(value) for value in allowed] == list(pace)
    assert whole["Parameters"]["WriteUnitsPerSecond"]["Default"] in allowed
    for units, one in pace.items():
        assert one["Workers"] * int(one["UnitsOfEach"]) == int(units)
        assert 2 <= one["Workers"] <= 1_000


def test_template_hides_a_message_for_six_times_as_long_as_it_may_take():
    """As Lambda's guide asks for, or a message is given out twice while it is worked on."""
    resources = read_yaml(TEXT, "template.yaml")["Resources"]
    timeout = resources["FanoutFunction"]["Properties"]["Timeout"]
    assert resources["FanoutQueue"]["Properties"]["VisibilityTimeout"] >= 6 * timeout


def test_template_warns_near_the_limits_of_cloudformation(monkeypatch):
    """Before a deployment fails for it."""
    assert not list(warnings(TEXT, TEMPLATE))
    monkeypatch.setattr(templates, "RESOURCES_MAX", 100)
    (warning,) = warnings(TEXT, TEMPLATE)
    assert "CloudFormation takes 100" in warning


def test_template_for_no_rules_file_says_how_to_name_one():
    """Nothing is guessed."""
    text = TEXT.replace("  SyncRules: {Rules: examples/organisations-users-tickets/rules.yaml}\n", "")
    with pytest.raises(UserError, match="sync-rules infra --rules FILE"):
        rules_noted(text, TEMPLATE)
