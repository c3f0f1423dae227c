"""The shared NoSQL Workbench models: imported, with the access patterns that their authors list for each step in words."""

from __future__ import annotations

import pytest

from sync_rules.extras.discover.imports.importer import rules_from
from tests.extras.design.patterns.test_own_words import Told, proved
from tests.support.shared import case

# Each pattern with the step of the model from which it is answered.
# https://github.com/aws-samples/amazon-dynamodb-design-patterns
SHOP = "AnOnlineShop"
DEVICES = "DeviceStateLog"
OF_SHOP = [
    (2, "{get: customer, by: [customer_id]}", "GetItem online_shop: PK = c#{customer_id} and SK = c#{customer_id}"),
    (3, "{get: product, by: [product_id]}", "GetItem online_shop: PK = p#{product_id} and SK = p#{product_id}"),
    (4, "{get: warehouse, by: [warehouse_id]}", "GetItem online_shop: PK = w#{warehouse_id} and SK = w#{warehouse_id}"),
    (5, "{get: warehouseItem, by: [product_id]}", "Query online_shop: PK = p#{product_id} and begins_with(SK, w#)"),
    (7, "{get: order, by: [order_id]}", "Query online_shop: PK = o#{order_id} and begins_with(SK, c#)"),
    (7, "{get: orderItem, by: [order_id]}", "Query online_shop: PK = o#{order_id} and begins_with(SK, p#)"),
    (8, "{get: invoice, by: [order_id]}", "Query online_shop: PK = o#{order_id} and begins_with(SK, i#)"),
    (9, "{get: shipment, by: [order_id]}", "Query online_shop: PK = o#{order_id} and begins_with(SK, sh#)"),
]
LATER = {  # of step 10 and above, which need indexes that step 9 does not have
    "{get: orderItem, by: [product_id], between: Date}": "orderItem by product_id: table online_shop by o#{order_id}",
    "{get: invoice, by: [invoice_id]}": "invoice by invoice_id: table online_shop by o#{order_id}",
    "{get: shipment, by: [shipment_id]}": "shipment by shipment_id: table online_shop by o#{order_id}",
    "{get: shipment, by: [WarehouseId]}": "shipment by WarehouseId: table online_shop by o#{order_id}",
    "{get: warehouseItem, by: [warehouse_id]}": "warehouseItem by warehouse_id: table online_shop by p#{product_id}",
    "{get: invoice, by: [CustomerId], between: Date}": "invoice by CustomerId: table online_shop by o#{order_id}",
    "{get: orderItem, by: [CustomerId], between: Date}": "orderItem by CustomerId: table online_shop by o#{order_id}",
}
OF_STATE = "{get: device_state_log, by: [device_id], where: \"State == 'WARNING1'\", order: Date desc}"
BY_STATE = "Query device_state_log: DeviceID = d#{device_id} and begins_with(State#Date, {State}#) desc"
ESCALATED = "Query device_state_log/GSI2: EscalatedTo = {EscalatedTo}"
OF_DEVICES = [
    (1, OF_STATE, "Query device_state_log: DeviceID = d#{device_id} desc filter State == 'WARNING1'"),
    (3, OF_STATE, BY_STATE.replace("{State}", "WARNING1")),
    (3, "{get: device_state_log, by: [device_id, State], order: Date desc}", BY_STATE),
    (
        5,
        "{get: device_state_log, by: [Operator], between: Date}",
        "Query device_state_log/GSI1: Operator = {Operator} and Date between {Date from} and {Date to}",
    ),
    (7, "{get: device_state_log, by: [EscalatedTo]}", ESCALATED),
    (7, "{get: device_state_log, by: [EscalatedTo, State]}", f"{ESCALATED} and begins_with(State#Date, {{State}}#)"),
    (
        7,
        "{get: device_state_log, by: [EscalatedTo, State], begins_with: Date}",
        f"{ESCALATED} and begins_with(State#Date, {{State}}#{{Date}})",
    ),
]
STEPS = [*((SHOP, step) for step in range(2, 10)), *((DEVICES, step) for step in range(1, 8))]


def model(name: str, step: int) -> str:
    """The made rules file of a model, up to where patterns stand."""
    return rules_from(case("models", "aws-design-patterns", f"{name}_{step}.json")).text


def declared(name: str, step: int) -> dict[str, str]:
    """The patterns of a step, each with its request; a later step's request takes the place of an earlier one's."""
    listed = OF_SHOP if name == SHOP else OF_DEVICES
    return {pattern: request for first, pattern, request in listed if first <= step}


def answered(name: str, step: int, patterns: list[str]) -> list[Told]:
    return [*proved(model(name, step), {f"p{number}": one for number, one in enumerate(patterns)}).values()]


@pytest.mark.parametrize(("name", "step"), STEPS)
def test_shared_models_answer_what_their_authors_list(name, step):
    """Each pattern of a step has one request: that of the authors' list."""
    patterns = declared(name, step)
    assert answered(name, step, [*patterns]) == [(1, [request]) for request in patterns.values()]


def test_shared_models_refuse_what_only_later_steps_answer():
    """The reason names the key that is there, and what it does not find."""
    found = answered(SHOP, 9, [*LATER])
    assert found == [(0, [f"no key finds {reason}"]) for reason in LATER.values()]
