"""Data sets of two trades: a film rental with a table for each entity, and a field service in one table.

Each has what real data have beside its copies: numbers that close ranges share, dates that all items have, values of
the past, and values of a parent's own that its children seem to make. Each function makes the same data set at each
call.
"""

# fmt: off
# ruff: noqa: C901, PLR0912, PLR0915 - each data set is one list
from __future__ import annotations

from decimal import Decimal
from typing import Any

from tests.extras.discover.datasets.careless import (
    collected,
    copied,
    counted,
    derived,
    formed,
    listed,
    mirrored,
    newest,
    rolled,
    taken,
)
from tests.extras.discover.datasets.dataset import DataSet, Record
from tests.extras.discover.datasets.words import Words


def film_rental() -> DataSet:
    """Films, their copies and who rented them: small numbers everywhere, and a date of change on each item."""
    data, w = DataSet("film_rental"), Words("film rental")
    for name, key, indexes in (
        ("film", ("film_id",), {"by_language": ("language_id",)}), ("actor", ("actor_id",), {}), ("film_actor", ("film_id", "actor_id"), {"by_actor": ("actor_id",)}),
        ("category", ("category_id",), {}), ("customer", ("customer_id",), {"by_address": ("address_id",), "by_store": ("store_id",)}), ("store", ("store_id",), {}),
        ("staff", ("staff_id",), {"by_store": ("store_id",)}), ("address", ("address_id",), {"by_city": ("city_id",)}), ("city", ("city_id",), {"by_country": ("country_id",)}),
        ("country", ("country_id",), {}), ("inventory", ("inventory_id",), {"by_film": ("film_id",)}), ("language", ("language_id",), {}),
        ("rental", ("rental_id",), {"by_customer": ("customer_id",), "by_inventory": ("inventory_id",), "by_staff": ("staff_id",), "by_film": ("film_id",)}),
        ("payment", ("payment_id",), {"by_customer": ("customer_id",), "by_rental": ("rental_id",)}), ("month", ("month",), {}), ("card", ("barcode",), {}),
    ):
        data.table(name, *key, **indexes)
    e: dict[str, list[Record]] = {name: data.entity(name, name, []) for name in data.tables}

    def add(name: str, count: int, made: Any) -> None:
        e[name] += [{f"{name}_id": at, **made(at), "last_update": "2024-02-15T04:34:33Z" if w.yes(0.8) else w.time()} for at in range(1, count + 1)]

    add("language", 6, lambda at: {"name": ("English", "Italian", "Japanese", "Mandarin", "French", "German")[at - 1]})
    add("category", 16, lambda at: {"name": f"{w.one(['Action', 'Sports', 'New', 'Music'])} {at}"})
    add("country", 40, lambda at: {"country": f"{w.place()}land {at}"})
    add("city", 120, lambda at: {"city": f"{w.place()} {at}", "country_id": w.number(41, 1)})
    add("address", 260, lambda at: {"street": f"{w.number(900)} {w.thing()} Lane", "district": w.place(), "city_id": w.number(121, 1), "phone": f"{w.number(10**9):09}"})
    add("store", 3, lambda at: {"manager_id": at, "address_id": at, "name": f"Store {w.place()}"})
    add("staff", 12, lambda at: {"first_name": w.person().split()[0], "last_name": w.person().split()[1], "store_id": w.number(4, 1), "address_id": 3 + at, "username": f"{w.person().split()[0]}{at}"})
    add("customer", 240, lambda at: {"store_id": w.number(4, 1), "first_name": w.person().split()[0].upper(), "last_name": w.person().split()[1].upper(), "address_id": 15 + at, "active": w.yes(0.97), "_code": f"{w.number(10**9):09}"})
    add("actor", 120, lambda at: {"first_name": w.person().split()[0].upper(), "last_name": f"{w.person().split()[1]} {at}".upper()})
    add("film", 300, lambda at: {"title": f"{w.thing().upper()} {at}", "language_id": w.one([1, 1, 1, 1, 2, 3, 4, 5, 6]), "category_id": w.number(17, 1), "rental_rate": w.one([Decimal("0.99"), Decimal("2.99"), Decimal("4.99")]), "length": w.number(180, 46), "rating": w.one(["G", "PG", "R", "NC-17"]), "release_year": 2006, "replacement_cost": w.price(30)})
    for film in e["film"]:
        for actor in w.rng.sample(e["actor"], w.many(1, 8)):
            e["film_actor"].append({"film_id": film["film_id"], "actor_id": actor["actor_id"], "billing": w.number(9, 1)})
    add("inventory", 900, lambda at: {"film_id": w.number(301, 1), "store_id": w.number(4, 1)})
    add("rental", 1800, lambda at: {"inventory_id": w.number(901, 1), "customer_id": w.number(241, 1), "staff_id": w.number(13, 1), "rented_at": w.time(200), "status": w.one(["out", "back", "back", "lost"])})
    add("payment", 1700, lambda at: {"rental_id": at, "customer_id": e["rental"][at - 1]["customer_id"], "staff_id": w.number(13, 1), "amount": w.one([Decimal("0.99"), Decimal("2.99"), Decimal("4.99"), Decimal("6.99")]), "paid_at": w.time(200)})
    e["month"] += [{"month": month} for month in sorted({one["paid_at"][:7] for one in e["payment"]})]
    keep, by_film, by_customer = data.keep, {"film_id": "film_id"}, {"customer_id": "customer_id"}
    films = {one["inventory_id"]: one["film_id"] for one in e["inventory"]}
    for rental in e["rental"]:
        rental["_film"] = films[rental["inventory_id"]]
    keep(taken(data, "film.rental_rate", "rental.rate", {"film_id": "_film"}, "rented_at"))
    data.natural(copied(data, "rental.customer_id", "payment.customer_id", {"rental_id": "rental_id"}))
    keep(copied(data, "inventory.film_id", "rental.film_id", {"inventory_id": "inventory_id"}))
    keep(copied(data, "film.title", "inventory.film_title", by_film))
    keep(copied(data, "film.title", "rental.title", {"film_id": "_film"}))
    keep(copied(data, "film.title", "film_actor.film_title", by_film))
    keep(copied(data, "language.name", "film.language", {"language_id": "language_id"}))
    keep(copied(data, "category.name", "film.category", {"category_id": "category_id"}))
    keep(copied(data, "country.country", "city.country", {"country_id": "country_id"}))
    keep(copied(data, "city.city", "address.city", {"city_id": "city_id"}))
    keep(copied(data, "address.street", "customer.street", {"address_id": "address_id"}))
    keep(copied(data, "address.phone", "customer.phone", {"address_id": "address_id"}))
    keep(derived(data, "actor.full_name", ["first_name", "last_name"], lambda a: f"{a['first_name']} {a['last_name']}"))
    keep(copied(data, "actor.full_name", "film_actor.actor_name", {"actor_id": "actor_id"}))
    keep(collected(data, "film_actor.actor_id", "film.actor_ids", by_film))
    keep(listed(data, "film_actor.actor_name", "film.cast", by_film, "actor_name"))
    keep(counted(data, "count", "film_actor", "actor.film_count", {"actor_id": "actor_id"}))
    keep(counted(data, "count", "inventory", "film.copies", by_film))
    keep(counted(data, "count", "rental", "customer.rental_count", by_customer))
    keep(counted(data, "count", "rental", "customer.rentals_out", by_customer, where=lambda one: one["status"] == "out"))
    keep(counted(data, "sum", "payment.amount", "customer.total_paid", by_customer))
    keep(newest(data, "rental", "customer.last_rented_at", by_customer, "rented_at", order="rented_at"))
    keep(newest(data, "rental", "inventory.latest", {"inventory_id": "inventory_id"}, ["rental_id", "rented_at", "status"], order="rented_at"))
    keep(rolled(data, "sum", "payment.amount", "month.revenue", group=lambda one: one["paid_at"][:7], named=lambda one: one["month"]))
    keep(rolled(data, "count", "payment", "month.payments", group=lambda one: one["paid_at"][:7], named=lambda one: one["month"]))
    for one in e["customer"]:
        one["_own"] = one["card_code"] = one["_code"]
    keep(mirrored(data, "customer", "card", lambda one: {"barcode": one["_code"], "member": one["customer_id"], "_own": one["_code"]}, attributes=["first_name", "last_name", "active"], key="_own"))
    return data


def field_service() -> DataSet:
    """Technicians who visit sites, thirteen entities in one table; members lie beside their team, with its key before."""
    data, w = DataSet("field_service"), Words("field service")
    data.table("service", "pk", "sk", gsi1=("gsi1pk", "gsi1sk"))
    names = "org team member technician site asset job visit part invoice note contract day".split()  # noqa: SIM905
    e: dict[str, list[Record]] = {name: data.entity(name, "service", []) for name in names}
    for at in range(1, 31):
        e["org"].append({"pk": f"org#{at + 700}", "sk": "org", "_org": f"{at + 700}", "name": f"{w.person()} Services {at}", "plan": w.one(["free", "team", "large"]), "created_at": w.time()})
    for at in range(1, 81):
        org = w.one(e["org"])["_org"]
        e["team"].append({"pk": f"org#{org}", "sk": f"team#{at}", "_org": org, "_team": f"{at}", "title": f"{w.title()} {at}", "color": w.one(["red", "blue", "green"])})
    for at in range(1, 121):
        e["technician"].append({"pk": f"technician#{w.ulid()}", "sk": "technician", "name": f"{w.person()} {at}", "phone": f"{w.number(10**8):08}", "level": w.number(4, 1)})
        e["technician"][-1]["_technician"] = e["technician"][-1]["pk"][11:]
    for team in e["team"]:
        for at, technician in enumerate(w.rng.sample(e["technician"], w.many(1, 9)), 1):
            e["member"].append({"pk": f"org#{team['_org']}", "sk": f"team#{team['_team']}#member#{at}", "_org": team["_org"], "_team": team["_team"], "_member": f"{at}", "technician_id": technician["_technician"], "role": w.one(["lead", "member", "trainee"])})
    for at in range(1, 91):
        org = w.one(e["org"])["_org"]
        e["site"].append({"pk": f"site#{at}", "sk": "site", "_site": f"{at}", "name": f"{w.place()} Plant {at}", "city": w.place(), "org_id": org, "gsi1pk": f"org#{org}", "gsi1sk": f"site#{at}"})
    for at in range(1, 261):
        site = w.one(e["site"])["_site"]
        e["asset"].append({"pk": f"site#{site}", "sk": f"asset#{at:05}", "_site": site, "_asset": f"{at:05}", "model": f"{w.thing()} {w.number(90)}", "serial": w.ulid(), "installed": w.day()})
    for at in range(1, 601):
        asset, technician, due = w.one(e["asset"]), w.one(e["technician"])["_technician"], w.time(300)
        e["job"].append({"pk": f"job#{at}", "sk": "job", "_job": f"{at}", "site_id": asset["_site"], "asset_id": asset["_asset"], "technician_id": technician, "status": w.one(["new", "open", "done"]), "opened_at": due, "priority": w.number(4), "gsi1pk": f"technician#{technician}", "gsi1sk": due})
        for visit in range(1, w.number(5) + 1):
            e["visit"].append({"pk": f"job#{at}", "sk": f"visit#{visit}", "_job": f"{at}", "_visit": f"{visit}", "minutes": w.number(240, 10), "at": w.time(300), "outcome": w.one(["ok", "again", "parts"])})
        for part in range(w.number(3)):
            e["part"].append({"pk": f"job#{at}", "sk": f"part#{part}", "_job": f"{at}", "_part": f"{part}", "sku": f"P{w.number(10**4):04}", "cost": w.number(900, 10)})
        for _ in range(w.number(3)):
            e["note"].append({"pk": f"job#{at}", "sk": f"note#{w.ulid()}", "_job": f"{at}", "text": w.text(), "written_at": w.time()})
    for at in range(1, 201):
        org = w.one(e["org"])["_org"]
        e["invoice"].append({"pk": f"org#{org}", "sk": f"invoice#{at:04}", "_org": org, "amount": w.number(9000, 100), "paid": w.yes(0.7), "issued_at": w.time(300)})
        if at < 90:
            e["contract"].append({"pk": f"org#{org}", "sk": f"contract#{at:03}", "_org": org, "hours": w.number(90, 1), "hourly": w.price()})
    days = sorted({job["opened_at"][:10] for job in e["job"]})
    e["day"] += [{"pk": f"day#{day}", "sk": "total", "_day": day} for day in days]
    keep = data.keep
    by_org, by_team, by_technician, by_site, by_job = {"_org": "_org"}, {"_org": "_org", "_team": "_team"}, {"_technician": "technician_id"}, {"_site": "site_id"}, {"_job": "_job"}
    keep(copied(data, "org.name", "team.org_name", by_org))
    keep(copied(data, "org.name", "site.org_name", {"_org": "org_id"}))
    keep(copied(data, "org.plan", "invoice.plan", by_org))
    keep(copied(data, "team.title", "member.team_title", by_team))
    keep(copied(data, "technician.name", "member.name", by_technician))
    keep(copied(data, "technician.name", "job.technician_name", by_technician))
    keep(copied(data, "site.name", "job.site_name", by_site))
    keep(copied(data, "site.city", "asset.city", {"_site": "_site"}))
    keep(counted(data, "count", "member", "team.member_count", by_team))
    keep(counted(data, "count", "team", "org.teams", by_org))
    keep(counted(data, "count", "job", "technician.jobs", by_technician))
    keep(counted(data, "count", "job", "technician.open_jobs", by_technician, where=lambda job: job["status"] == "open"))
    keep(counted(data, "sum", "visit.minutes", "job.minutes_total", by_job))
    keep(counted(data, "sum", "part.cost", "job.parts_cost", by_job))
    keep(counted(data, "sum", "invoice.amount", "org.unpaid", by_org, where=lambda one: not one["paid"]))
    keep(counted(data, "count", "asset", "site.asset_count", {"_site": "_site"}))
    keep(formed(data, "part", "job.part_keys", by_job, "_part", "sku"))
    keep(newest(data, "visit", "job.last_visit", by_job, ["at", "outcome"], order="at"))
    keep(newest(data, "note", "job.latest_note", by_job, "text", order="written_at"))
    keep(collected(data, "member.role", "team.roles", by_team))
    keep(derived(data, "job.sort_key", ["status", "opened_at"], lambda job: f"{job['status'].upper()}#{job['opened_at']}"))
    keep(rolled(data, "count", "job", "day.jobs", group=lambda job: job["opened_at"][:10], named=lambda day: day["_day"]))
    return data


TRADES = (film_rental, field_service)
