"""Named data sets: accounts, employees, and one without any copy.

Each function makes the same data set at each call, so that a test can plant drift of another share in it.
"""

from __future__ import annotations

from decimal import Decimal

from tests.extras.discover.datasets.careless import (
    collected,
    copied,
    counted,
    depth,
    derived,
    embedded,
    mirrored,
    pathed,
)
from tests.extras.discover.datasets.dataset import DataSet, Record
from tests.extras.discover.datasets.words import Words
from tests.support import shared


def accounts() -> DataSet:
    """Accounts with look-up items under other keys, an edge seen from both ends, and lists of children."""
    data, w = DataSet("accounts"), Words("accounts")
    data.table("graph", "pk", "sk")
    accounts = data.entity("account", "graph", [])
    groups = data.entity("group", "graph", [])
    memberships = data.entity("membership", "graph", [])
    for _ in range(210):
        name, own = w.person(), w.ulid()
        accounts.append({"pk": f"ACCOUNT#{own}", "sk": f"ACCOUNT#{own}", "_account": own, "login": f"{name.split()[1].lower()}{w.number(10**5):05}", "full_name": name, "locale": w.one(["de", "en", "fr"]), "since": w.day()})  # fmt: skip
    for _ in range(45):
        own = w.ulid()
        groups.append({"pk": f"GROUP#{own}", "sk": f"GROUP#{own}", "_group": own, "title": w.title(), "public": w.yes(), "locale": w.one(["de", "en", "fr"])})  # fmt: skip
    for group in groups:
        for account in w.rng.sample(accounts, w.many(2, 18)):
            memberships.append({"pk": f"GROUP#{group['_group']}", "sk": f"MEMBER#{account['_account']}", "_group": group["_group"], "_account": account["_account"], "_both": f"{group['_group']} {account['_account']}", "role": w.one(["owner", "member", "guest"]), "joined": w.time()})  # fmt: skip
    data.entity("login", "graph", [])
    data.entity("membership_of", "graph", [])
    keep, group, account = data.keep, {"_group": "_group"}, {"_account": "_account"}
    keep(copied(data, "group.title", "membership.group_title", group))
    keep(copied(data, "account.full_name", "membership.member_name", account))
    keep(mirrored(data, "account", "login", lambda a: {"pk": f"LOGIN#{a['login']}", "sk": "LOGIN", "account_id": a["_account"], "_account": a["_account"], "_login": a["login"]}, attributes=["full_name", "locale"], key="_account"))  # fmt: skip
    keep(mirrored(data, "membership", "membership_of", lambda m: {"pk": f"ACCOUNT#{m['_account']}", "sk": f"IN#{m['_group']}", "_account": m["_account"], "_group": m["_group"], "_both": f"{m['_group']} {m['_account']}"}, attributes=["role", "joined"], key="_both"))  # fmt: skip
    keep(counted(data, "count", "membership", "group.size", group))
    keep(collected(data, "membership._account", "group.members", group))
    keep(embedded(data, "membership", "group.newest", group, ["member_name", "joined"], order="joined", last=3))
    keep(derived(data, "account.label", ["login", "locale"], lambda a: f"{a['login']}-{a['locale'].upper()}"))
    return data


def lookalikes() -> DataSet:
    """Orders that name customers, and nothing is copied: cities agree for most of them, by habit and not by a copy."""
    data, w = DataSet("lookalikes"), Words("lookalikes")
    data.table("customers", "id")
    data.table("orders", "id", by_customer=("customer_id",))
    data.table("cars", "id")
    customers, orders, cars = (data.entity(name, f"{name}s", []) for name in ("customer", "order", "car"))
    for at in range(1, 301):
        customers.append({"id": at, "name": w.person(), "city": w.place(), "country": "DE", "active": w.yes(0.95), "level": w.number(3), "created": w.day(60), "score": w.number(100), "language": w.one(["de", "de", "en"]), "number": at})  # fmt: skip
        cars.append({"id": at, "name": w.person(), "city": w.place(), "country": "DE", "active": True, "doors": w.number(6, 2), "created": w.day(60), "owner": w.number(301, 1), "number": at})  # fmt: skip
    for at in range(1, 1501):
        customer = w.one(customers)
        orders.append({"id": at, "customer_id": customer["id"], "city": customer["city"] if w.yes(0.55) else w.place(), "country": "DE", "active": w.yes(0.95), "level": w.number(3), "created": w.day(60), "count": w.number(9), "language": w.one(["de", "de", "en"]), "number": at, "total": w.price()})  # fmt: skip
    return data


NUMBERS = {"BusinessEntityID", "ManagerID", "OrganizationLevel"}


def adventureworks() -> DataSet:
    """Employees of the shared data, and who reports to whom; their levels came with the data."""
    data = DataSet("adventureworks")
    data.table("Employee", "BusinessEntityID", by_manager=("ManagerID",))
    records: list[Record] = shared.rows("datasets", "adventureworks", "Employee.csv")
    data.entity("employee", "Employee", records)
    keep, manager = data.keep, {"BusinessEntityID": "ManagerID"}
    for record in records:
        record |= {name: Decimal(record[name]) for name in NUMBERS & record.keys()}
        record["CurrentFlag"] = record["CurrentFlag"] == "1"
    data.natural(depth(data, "employee.OrganizationLevel", "BusinessEntityID", "ManagerID"))
    keep(pathed(data, "employee.Chain", "BusinessEntityID", "ManagerID", "/"))
    keep(pathed(data, "employee.Titles", "BusinessEntityID", "ManagerID", " > ", name="JobTitle"))
    keep(copied(data, "employee.JobTitle", "employee.ManagerTitle", manager))
    keep(copied(data, "employee.HireDate", "employee.ManagerSince", manager))
    keep(counted(data, "count", "employee", "employee.Reports", manager))
    keep(derived(data, "employee.Badge", ["JobTitle", "HireDate"], lambda e: f"{e['JobTitle'].replace(' ', '').upper()}-{e['HireDate'][:4]}"))  # fmt: skip
    return data


MADE = (accounts, adventureworks)
NO_RULE = (lookalikes,)  # it has no copies, so nothing can drift
