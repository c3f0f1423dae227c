"""The words of `sync-rules propose` on a small shop, for the page about it. Each run makes them from the items here."""

from __future__ import annotations

import gzip
import io
import json
import tempfile
from contextlib import chdir, redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path

from sync_rules.cli import main

FIRST = ("Ada", "Ben", "Chloe", "Dan", "Eva", "Finn", "Grace", "Hugo")
LAST = ("Arendt", "Bell", "Curie", "Dirac", "Euler", "Franklin", "Gauss")
GOODS = ("lamp", "chair", "desk", "shelf", "sofa", "rug", "mirror", "clock")
COLOURS = ("red", "green", "blue", "white", "black")
PLACES = "--from-export export/shop --from-export export/products"
COMMAND = f"propose {PLACES} --out rules.yaml"
WHY = f"propose {PLACES} --why order.user_name"


def items() -> dict[str, list[dict[str, dict[str, str]]]]:
    """A shop in one table, and its products in another one. Some copies are old."""
    users, orders, products = [], [], []
    for number in range(56):
        name = f"{FIRST[number % 8]} {LAST[number % 7]}"
        users.append(
            {"PK": f"USER#{1000 + number}", "SK": "PROFILE", "name": name, "plan": ("free", "pro")[number % 2]}
        )
    for number in range(40):
        name = f"{COLOURS[number % 5]} {GOODS[number % 8]}"
        products.append({"product_id": f"P-{300 + 7 * number}", "name": name, "stock": number * 37 % 50})
    for number in range(420):
        user, product = users[number * number % 56], products[(number * 17 + number // 9) % 40]
        orders.append({
            "PK": user["PK"],
            "SK": f"ORDER#{10_000 + number}",
            "user_name": "Anna Ohm" if number % 60 == 7 else user["name"],
            "product_id": product["product_id"],
            "product": product["name"],
            "quantity": number * number * 7 % 5 + 1,
            "status": ("OPEN", "PAID", "SENT")[number * 11 % 17 % 3],
        })  # fmt: skip
    tables = {"shop": [*users, *orders], "products": products}
    return {name: [{k: typed(value) for k, value in one.items()} for one in some] for name, some in tables.items()}


def typed(value: object) -> dict[str, str]:
    return {"N": str(value)} if isinstance(value, int) else {"S": str(value)}


@cache
def outputs() -> tuple[str, str, str]:
    """The summary of a first run, the rules file that it wrote, and what a second one says of an attribute."""
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        for name, some in items().items():
            place = Path("export", name)
            place.mkdir(parents=True)
            lines = b"".join(json.dumps({"Item": item}).encode() + b"\n" for item in some)
            (place / "part.json.gz").write_bytes(gzip.compress(lines))
        summary = said(COMMAND)
        return summary, Path("rules.yaml").read_text(), said(WHY)


def said(command: str) -> str:
    """The standard output of a command that ends well."""
    printed = io.StringIO()
    with redirect_stdout(printed), redirect_stderr(io.StringIO()) as mistakes:
        code = main.main(command.split())
    assert code == 0, mistakes.getvalue()
    return "\n".join(line.rstrip() for line in printed.getvalue().strip().splitlines())
