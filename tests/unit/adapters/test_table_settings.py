"""Settings of tables beside what DescribeTable says: each difference with the UpdateTable that makes it go."""

from __future__ import annotations

import copy
import json
import shlex

import pytest

from sync_rules.adapters import table_settings
from sync_rules.deploy.tables import table_parameters
from sync_rules.language.load import parse_rules
from sync_rules.model.capacity import NO_SETTINGS, Provisioned
from tests.support import capacities

RULES = parse_rules(capacities.text())


def described(name):
    """A table as AWS describes it that was created as the rules say."""
    made = table_parameters(RULES.tables[name], RULES.settings[name], stream=True)
    made["BillingModeSummary"] = {"BillingMode": made.pop("BillingMode")}
    made["TableClassSummary"] = {"TableClass": made.pop("TableClass", "STANDARD")}
    made.setdefault("ProvisionedThroughput", {"ReadCapacityUnits": 0, "WriteCapacityUnits": 0})
    return made


def found(name, description, **how):
    return list(table_settings.problems(RULES.tables[name], RULES.settings[name], description, **how))


def updated(description, problem):
    """The description after the UpdateTable of a cure."""
    (command,) = [part for part in problem.cure.split("`") if part.startswith("aws ")]
    update = json.loads(shlex.split(command)[4])
    assert update.pop("TableName") == description["TableName"]
    after = copy.deepcopy(description)
    for one in update.pop("GlobalSecondaryIndexUpdates", ()):
        change = one["Update"]
        (index,) = [i for i in after["GlobalSecondaryIndexes"] if i["IndexName"] == change["IndexName"]]
        index.update(change, WarmThroughput={**index.get("WarmThroughput", {}), **change.get("WarmThroughput", {})})
    if "BillingMode" in update:
        after["BillingModeSummary"] = {"BillingMode": update.pop("BillingMode")}
    if "TableClass" in update:
        after["TableClassSummary"] = {"TableClass": update.pop("TableClass")}
    warm = {**after.get("WarmThroughput", {}), **update.pop("WarmThroughput", {})}  # what is not named stays
    after.update(update, WarmThroughput=warm)
    return after


def change(*road, become):
    def changing(it):
        for step in road[:-1]:
            it = it[step]
        it[road[-1]] = become

    return changing


def on_demand(it):
    """The table and its indexes, billed by request."""
    it["BillingModeSummary"] = {"BillingMode": "PAY_PER_REQUEST"}
    for one in (it, *it["GlobalSecondaryIndexes"]):
        one["ProvisionedThroughput"] = {"ReadCapacityUnits": 0, "WriteCapacityUnits": 0}


def gone(*names):
    def removing(it):
        for name in names:
            del it[name]

    return removing


FIRST = ("GlobalSecondaryIndexes", 0)
DIFFERENCES = {
    "billing": ("shop", on_demand, "it is billed on demand, and the rules file says by provisioned units"),
    "units": (
        "shop",
        change("ProvisionedThroughput", become={"ReadCapacityUnits": 10, "WriteCapacityUnits": 51}),
        "its units a second are 10 read, 51 write, and the rules file says 5 to 500 read, 5 to 50 write",
    ),
    "units of an index": (
        "shop",
        change("GlobalSecondaryIndexes", 1, "ProvisionedThroughput", "ReadCapacityUnits", become=9),
        "the units a second of index by_day are 9 read, 2 write, and the rules file says 1 read, 2 write",
    ),
    "warm": (
        "shop",
        change("WarmThroughput", "WriteUnitsPerSecond", become=4000),
        "its warm units a second are 15,000 read, 4,000 write, and the rules file says 15,000 read, 5,000 write",
    ),
    "warm of an index": (
        "shop",
        change("GlobalSecondaryIndexes", 1, "WarmThroughput", become={}),
        "the warm units a second of index by_day are 0 read, 0 write, and the rules file says any read, 9,000 write",
    ),
    "class": ("shop", gone("TableClassSummary"), "its class is standard, and the rules file says infrequent-access"),
    "protection": ("shop", gone("DeletionProtectionEnabled"), "its deletion protection is off, and the rules file"),
    "provisioned": (
        "users",
        change("BillingModeSummary", become={"BillingMode": "PROVISIONED"}),
        "it is billed by provisioned units, and the rules file says on demand",
    ),
    "maximum": (
        "users",
        gone("OnDemandThroughput"),
        "its maximum units a second are none read, none write, and the rules file says 1,000 read, 500 write",
    ),
    "maximum of an index": (
        "users",
        change(*FIRST, "OnDemandThroughput", become={"MaxReadRequestUnits": 7}),
        "the maximum units a second of index by_mail are 7 read, none write, and the rules file says 1,000 read",
    ),
    "a maximum too many": (
        "users",
        change(
            "GlobalSecondaryIndexes",
            1,
            "OnDemandThroughput",
            become={"MaxReadRequestUnits": 100, "MaxWriteRequestUnits": 9},
        ),
        "of index by_town are 100 read, 9 write, and the rules file says 100 read, none write",
    ),
}


@pytest.mark.parametrize("name", DIFFERENCES)
def test_each_difference_is_found_and_cured(name):
    """One finding for one difference, and none after its cure."""
    table, changing, text = DIFFERENCES[name]
    description = described(table)
    assert found(table, description) == []
    changing(description)
    (problem,) = found(table, description)
    assert text in problem.found
    after = updated(description, problem)
    assert found(table, after) == []


def test_units_within_the_bounds_of_autoscaling_are_no_difference():
    """Autoscaling has changed them; warm throughput has grown by itself."""
    description = described("shop")
    description["ProvisionedThroughput"] = {"ReadCapacityUnits": 500, "WriteCapacityUnits": 5}
    description["WarmThroughput"] = {"ReadUnitsPerSecond": 90_000, "WriteUnitsPerSecond": 90_000}
    assert found("shop", description) == []


def test_what_an_emulator_does_not_describe_is_no_difference():
    """An emulator may not know a parameter, or describe zeros."""
    description = described("shop")
    for one in (description, *description["GlobalSecondaryIndexes"]):
        one["WarmThroughput"] = {"ReadUnitsPerSecond": 0, "WriteUnitsPerSecond": 0}
    del description["TableClassSummary"], description["DeletionProtectionEnabled"], description["BillingModeSummary"]
    assert found("shop", description, emulated=True) == []
    users = described("users")
    for one in (users, *users["GlobalSecondaryIndexes"]):
        del one["OnDemandThroughput"]
    assert found("users", users, emulated=True) == []


def test_a_table_of_which_the_file_says_nothing_is_as_it_should_be():
    """A provisioned table in another class, protected or not."""
    rules = parse_rules("tables: {shop: {key: {PK: S, SK: S}}}\nentities: {}\nrules: {}\n")
    description = described("shop")
    settings = rules.settings.get("shop", NO_SETTINGS)
    assert list(table_settings.problems(rules.tables["shop"], settings, description)) == []


def test_cure_to_provisioned_has_figures_for_every_index_of_the_table():
    """AWS refuses the change without them: an index that the file lacks has those of its table."""
    rules = parse_rules(capacities.text())
    name, settings = next((name, one) for name, one in rules.settings.items() if isinstance(one.billing, Provisioned))
    before = described(name)
    before["BillingModeSummary"] = {"BillingMode": "PAY_PER_REQUEST"}
    before["GlobalSecondaryIndexes"] = [*before["GlobalSecondaryIndexes"], {"IndexName": "not-in-the-file"}]
    problem = next(one for one in found(name, before) if "is billed" in one.found)
    (command,) = [part for part in problem.cure.split("`") if part.startswith("aws ")]
    updates = [one["Update"] for one in json.loads(shlex.split(command)[4])["GlobalSecondaryIndexUpdates"]]
    assert {one["IndexName"] for one in updates} == {one["IndexName"] for one in before["GlobalSecondaryIndexes"]}
    (added,) = [one["ProvisionedThroughput"] for one in updates if one["IndexName"] == "not-in-the-file"]
    assert added["ReadCapacityUnits"] == settings.billing.read.number
