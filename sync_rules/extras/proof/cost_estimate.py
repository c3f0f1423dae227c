"""The cost of a self-test, estimated before it begins: parts, each with an upper limit of its quantity, and its price.

Invariant: the quantities are upper limits, with room for the waits on AWS. They exceed the counts of a run on an
emulator; a test compares them. Prices are on-demand prices of us-east-1 without free tier. Regions differ by less than
the factor that the limit leaves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from sync_rules.jobs.dryrun.money import MILLION, MONTH_HOURS
from sync_rules.jobs.dryrun.prices import read_own_prices

PRICES_REGION: Final = "us-east-1"


@dataclass(frozen=True, slots=True)
class CostPart:
    """A quantity, and its USD price per `per` units."""

    what: str
    quantity: int
    usd: Decimal
    per: int
    source: str

    @property
    def cost(self) -> Decimal:
        return self.quantity * self.usd / self.per


def list_parts() -> Iterator[CostPart]:
    """List everything that costs something."""
    prices = read_own_prices().regions[PRICES_REGION]
    functions, queues, streams, watched = prices.functions, prices.queues, prices.streams, prices.watch
    if functions is None or queues is None or streams is None or watched is None:
        raise LookupError(PRICES_REGION)
    table, pricing = prices.on_demand, "https://aws.amazon.com/dynamodb/pricing/on-demand/"
    thousand = 1_000
    yield CostPart("DynamoDB write units", 40_000, table.write_units_million, MILLION, pricing)
    yield CostPart("DynamoDB read units", 150_000, table.read_units_million, MILLION, pricing)
    small = prices.provisioned.write_unit_hour + prices.provisioned.read_unit_hour
    yield CostPart(
        "DynamoDB table of one unit, hours", 1, small, 1, "https://aws.amazon.com/dynamodb/pricing/provisioned/"
    )
    yield CostPart("DynamoDB export and recovery, MB", 50, Decimal("0.30"), 1_024, pricing)
    # Its price is not in our price file: an upper limit, as if the one item were 512 MB of an import.
    yield CostPart("DynamoDB bulk load, MB (assumed)", 512, Decimal("0.15"), 1_024, pricing)
    yield CostPart("DynamoDB Streams reads", 20_000, streams.reads_million, MILLION, pricing)
    compute = "https://aws.amazon.com/lambda/pricing/"
    yield CostPart("Lambda requests", 3_000, functions.requests_million, MILLION, compute)
    yield CostPart("Lambda GB-seconds", 750, functions.x86_gb_second, 1, compute)
    yield CostPart("SQS requests", 5_000, queues.requests_million, MILLION, "https://aws.amazon.com/sqs/pricing/")
    yield CostPart(
        "Step Functions transitions", 200, Decimal("0.025"), thousand, "https://aws.amazon.com/step-functions/pricing/"
    )
    yield CostPart("S3 lists and puts", 2_500, Decimal("0.005"), thousand, "https://aws.amazon.com/s3/pricing/")
    watch = "https://aws.amazon.com/cloudwatch/pricing/"
    yield CostPart("CloudWatch requests", 1_000, Decimal("0.01"), thousand, watch)
    yield CostPart("CloudWatch metric, hours", 1, watched.metric_month / MONTH_HOURS, 1, watch)
    yield CostPart("CloudWatch logs, MB", 2, Decimal("0.50"), 1_024, watch)


def compute_total() -> Decimal:
    return sum((part.cost for part in list_parts()), Decimal(0))


def list_lines() -> list[str]:
    """List the parts of the estimate as lines for people."""
    return [f"{part.what:<34} {part.quantity:>8,}  {part.cost:.4f} USD" for part in list_parts()]
