"""The data set of a trade: a field service in one table.

It has what real data have beside its copies: numbers that close ranges share, dates that all items have, values of the
past, and values of a parent's own that its children seem to make. The function makes the same data set at each call.
"""

# fmt: off
# ruff: noqa: C901, PLR0912 - each data set is one list
from __future__ import annotations

from tests.extras.discover.datasets.careless import (
    collected,
    copied,
    counted,
    derived,
    formed,
    newest,
    rolled,
)
from tests.extras.discover.datasets.dataset import DataSet, Record
from tests.extras.discover.datasets.words import Words


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


TRADES = (field_service,)
