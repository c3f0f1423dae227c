"""The autoscaling of the tables that the stack creates, and of their indexes.

A target and a policy for each read and write capacity that the rules file lets scale. They go when the stack is
deleted, and the tables stay, with the units that they have then.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sync_rules.deploy.deployment import Deployment, logical
from sync_rules.deploy.resources import condition_id, created_tables, table_id
from sync_rules.deploy.tables import settings_of
from sync_rules.model.capacity import Provisioned, Scaling
from sync_rules.model.entities import Index, Table


@dataclass(frozen=True)
class Scaled:
    """A capacity that scales: `way` is Read or Write, of a table or of one of its indexes."""

    table: Table
    index: Index | None
    way: str
    scaling: Scaling

    @property
    def title(self) -> str:
        """The table or the index in words."""
        return f"table {self.table.name}" if self.index is None else f"index {self.index.name} of {self.table.name}"

    @property
    def ids(self) -> tuple[str, str]:
        """The logical ids of the target and of the policy."""
        target = f"{table_id(self.table)}{self._of_index}{self.way}Scaling"
        return target, f"{target}Policy"

    @property
    def _of_index(self) -> str:
        """The index in an id; with a digest of its name where another index of the table would be called the same."""
        if self.index is None:
            return ""
        name = logical(self.index.name)
        alike = [one for one in self.table.indexes if logical(one.name) == name]
        return name if len(alike) == 1 else f"{name}{hashlib.sha256(self.index.name.encode()).hexdigest()[:8]}"


def scaled(deployment: Deployment) -> Iterator[Scaled]:
    """The capacities that scale, of the tables that the stack creates."""
    for table in created_tables(deployment):
        settings = settings_of(deployment.rules, table)
        subjects = [(None, settings.billing), *((index, settings.of(index).billing) for index in table.indexes)]
        for index, billing in subjects:
            if isinstance(billing, Provisioned):
                for way, units in (("Read", billing.read), ("Write", billing.write)):
                    if units.scaling is not None:
                        yield Scaled(table, index, way, units.scaling)


def scaling_resources(deployment: Deployment) -> dict[str, Any]:
    """The resources of Application Auto Scaling, by logical id."""
    return {name: one for each in scaled(deployment) for name, one in _resources(each).items()}


def _resources(scaled: Scaled) -> dict[str, Any]:
    target, policy = scaled.ids
    created = {"Condition": condition_id(scaled.table)}
    within = "" if scaled.index is None else f"/index/{scaled.index.name}"
    kind = "table" if scaled.index is None else "index"
    bounds = {
        "ServiceNamespace": "dynamodb",
        "ResourceId": {"Fn::Sub": f"table/${{{table_id(scaled.table)}}}{within}"},
        "ScalableDimension": f"dynamodb:{kind}:{scaled.way}CapacityUnits",
        "MinCapacity": scaled.scaling.min,
        "MaxCapacity": scaled.scaling.max,
    }
    tracking = {
        "TargetValue": scaled.scaling.target,
        "PredefinedMetricSpecification": {"PredefinedMetricType": f"DynamoDB{scaled.way}CapacityUtilization"},
    }
    properties = {
        "PolicyName": policy,
        "PolicyType": "TargetTrackingScaling",
        "ScalingTargetId": {"Ref": target},
        "TargetTrackingScalingPolicyConfiguration": tracking,
    }
    return {
        target: {"Type": "AWS::ApplicationAutoScaling::ScalableTarget", **created, "Properties": bounds},
        policy: {"Type": "AWS::ApplicationAutoScaling::ScalingPolicy", **created, "Properties": properties},
    }
