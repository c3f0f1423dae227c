"""The shared data, loaded as a careless team would have it: Chinook, its invoices in one table, employees, games, ZIP
codes, geography, and the model of an online shop with more items.

Invariant: what is copied in the data themselves, such as a billing address, is a truth like those that a script wrote,
or a natural one where a rule for it is right and nobody would miss it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from tests.extras.discover.datasets.careless import (
    collected,
    copied,
    counted,
    depth,
    derived,
    embedded,
    mirrored,
    pathed,
    taken,
)
from tests.extras.discover.datasets.dataset import DataSet, Record, get
from tests.extras.discover.datasets.words import Words
from tests.support import shared

NUMBERS = frozenset({"Total", "UnitPrice", "Quantity", "Milliseconds", "Bytes", "OrganizationLevel"})


def typed(rows: list[dict[str, str]], *numbers: str) -> list[Record]:
    """The rows of a file: ids and amounts are numbers, the rest is text."""
    return [
        {
            name: Decimal(text) if name in numbers or name in NUMBERS or name.endswith(("Id", "ID")) else text
            for name, text in row.items()
        }
        for row in rows
    ]


def chinook() -> DataSet:
    """The music shop: a table for each file, and ids that begin at 1 in all of them."""
    data = DataSet("chinook")
    files = {"artist": "Artist", "album": "Album", "track": "Track", "genre": "Genre", "format": "MediaType", "customer": "Customer", "staff": "Employee", "invoice": "Invoice", "line": "InvoiceLine"}  # fmt: skip
    indexes = {"album": {"by_artist": ("ArtistId",)}, "invoice": {"by_customer": ("CustomerId", "InvoiceDate")}}
    for entity, file in files.items():
        data.table(
            file, *(["InvoiceId", "InvoiceLineId"] if entity == "line" else [f"{file}Id"]), **indexes.get(entity, {})
        )
        data.entity(entity, file, typed(shared.rows("datasets", "chinook", f"{file}.csv")))
    keep, natural = data.keep, data.natural
    artist, album, track = {"ArtistId": "ArtistId"}, {"AlbumId": "AlbumId"}, {"TrackId": "TrackId"}
    customer, invoice, manager = {"CustomerId": "CustomerId"}, {"InvoiceId": "InvoiceId"}, {"EmployeeId": "ReportsTo"}
    for name in ("Address", "City", "State", "Country", "PostalCode"):
        keep(copied(data, f"customer.{name}", f"invoice.Billing{name}", customer))
    natural(copied(data, "track.UnitPrice", "line.UnitPrice", track))
    natural(counted(data, "sum", "line.UnitPrice", "invoice.Total", invoice))
    keep(copied(data, "artist.Name", "album.ArtistName", artist))
    keep(copied(data, "album.Title", "track.AlbumTitle", album))
    keep(copied(data, "album.ArtistName", "track.ArtistName", album, "artist.Name"))
    keep(copied(data, "genre.Name", "track.Genre", {"GenreId": "GenreId"}))
    keep(copied(data, "format.Name", "track.Format", {"MediaTypeId": "MediaTypeId"}))
    keep(copied(data, "track.Name", "line.TrackName", track))
    keep(copied(data, "customer.Email", "invoice.Email", customer))
    keep(derived(data, "customer.FullName", ["FirstName", "LastName"], lambda c: f"{c['FirstName']} {c['LastName']}"))
    keep(copied(data, "customer.FullName", "invoice.CustomerName", customer))
    keep(derived(data, "staff.FullName", ["FirstName", "LastName"], lambda c: f"{c['FirstName']} {c['LastName']}")).natural = True  # fmt: skip
    keep(copied(data, "staff.Phone", "customer.RepPhone", {"EmployeeId": "SupportRepId"}))
    keep(copied(data, "staff.LastName", "staff.ManagerName", manager)).natural = True  # 7 items prove nothing
    keep(collected(data, "album.AlbumId", "artist.Albums", artist))
    keep(counted(data, "count", "track", "album.Tracks", album))
    keep(counted(data, "sum", "track.Milliseconds", "album.Milliseconds", album))
    keep(counted(data, "max", "invoice.Total", "customer.Largest", customer))
    keep(counted(data, "sum", "invoice.Total", "customer.Spent", customer))
    keep(embedded(data, "line", "invoice.Lines", invoice, ["TrackId", "UnitPrice"], order="InvoiceLineId"))
    keep(counted(data, "count", "line", "invoice.NumberOfLines", invoice, kinds=["sum"]))
    return data


def invoices() -> DataSet:
    """Customers, invoices and lines in one table, in the partition of their customer."""
    data = DataSet("invoices")
    data.table("billing", "PK", "SK")
    customers, invoices, lines = (data.entity(name, "billing", []) for name in ("customer", "invoice", "line"))
    read = {file: shared.rows("datasets", "chinook", f"{file}.csv") for file in ("Customer", "Invoice", "InvoiceLine")}
    for row in read["Customer"]:
        own = row["CustomerId"]
        customers.append({"PK": f"CUSTOMER#{own}", "SK": "PROFILE", "_customer": own, "Type": "customer", "first_name": row["FirstName"], "last_name": row["LastName"], "email": row["Email"], "city": row["City"], "country": row["Country"], "phone": row.get("Phone")})  # fmt: skip
    for row in read["Invoice"]:
        own, customer = row["InvoiceId"].zfill(5), row["CustomerId"]
        invoices.append({"PK": f"CUSTOMER#{customer}", "SK": f"INVOICE#{own}", "_customer": customer, "_invoice": own, "Type": "invoice", "issued": row["InvoiceDate"], "total": Decimal(row["Total"]), "paid": int(own) % 3 > 0, "state": ("DRAFT", "SENT", "SENT", "PAID")[int(own) * 7 % 4]})  # fmt: skip
    customers_of = {invoice["_invoice"]: invoice["_customer"] for invoice in invoices}
    for row in read["InvoiceLine"]:
        invoice, own = row["InvoiceId"].zfill(5), row["InvoiceLineId"]
        customer = customers_of[invoice]
        lines.append({"PK": f"CUSTOMER#{customer}", "SK": f"LINE#{invoice}#{own}", "_customer": customer, "_invoice": invoice, "_line": own, "Type": "line", "track": int(row["TrackId"]), "price": Decimal(row["UnitPrice"]), "units": 1 + int(own) * 5 % 3})  # fmt: skip
    keep, customer, invoice = data.keep, {"_customer": "_customer"}, {"_customer": "_customer", "_invoice": "_invoice"}
    for one in invoices:
        one["country"] = next(c["country"] for c in customers if c["_customer"] == one["_customer"])
    data.natural(counted(data, "sum", "line.price", "invoice.total", invoice))
    keep(copied(data, "customer.country", "invoice.country", customer))
    keep(copied(data, "customer.email", "invoice.send_to", customer))
    keep(copied(data, "invoice.issued", "line.issued", invoice))
    keep(counted(data, "sum", "line.units", "invoice.units", invoice))
    keep(counted(data, "count", "line", "invoice.lines", invoice))
    keep(counted(data, "count", "invoice", "customer.unpaid", customer, where=lambda one: not one["paid"]))
    turnover = keep(counted(data, "sum", "invoice.total", "customer.turnover", customer))
    turnover.reads |= {"line.price"}  # the sum of the sums
    keep(embedded(data, "line", "invoice.items", invoice, ["track", "price"], by="_line"))
    keep(derived(data, "customer.sort_name", ["last_name", "first_name"], lambda c: f"{c['last_name'].upper()}, {c['first_name']}"))  # fmt: skip
    keep(derived(data, "invoice.month", ["issued"], lambda one: one["issued"][:7]))
    return data


def adventureworks() -> DataSet:
    """Employees and who reports to whom."""
    data = DataSet("adventureworks")
    data.table("Employee", "BusinessEntityID", by_manager=("ManagerID",))
    records = data.entity("employee", "Employee", typed(shared.rows("datasets", "adventureworks", "Employee.csv")))
    keep, manager = data.keep, {"BusinessEntityID": "ManagerID"}
    for record in records:
        record["CurrentFlag"] = record["CurrentFlag"] == "1"
    data.natural(depth(data, "employee.OrganizationLevel", "BusinessEntityID", "ManagerID"))
    keep(pathed(data, "employee.Chain", "BusinessEntityID", "ManagerID", "/"))
    keep(pathed(data, "employee.Titles", "BusinessEntityID", "ManagerID", " > ", name="JobTitle"))
    keep(copied(data, "employee.JobTitle", "employee.ManagerTitle", manager))
    keep(copied(data, "employee.HireDate", "employee.ManagerSince", manager))
    keep(counted(data, "count", "employee", "employee.Reports", manager))
    keep(derived(data, "employee.Badge", ["JobTitle", "HireDate"], lambda e: f"{e['JobTitle'].replace(' ', '').upper()}-{e['HireDate'][:4]}"))  # fmt: skip
    return data


def employees() -> DataSet:
    """The employees of the labs, with their departments and towns."""
    data, w = DataSet("employees"), Words("employees")
    names = ("id", "name", "title", "dept", "city", "state", "dob", "hire_date", "previous_title", "previous_date")
    data.table("employees", "id", by_dept=("dept", "hire_date"))
    data.table("departments", "dept")
    data.table("towns", "city")
    text = shared.case("models", "dynamodb-labs", "employees.csv").read_text(encoding="utf-8")
    rows = [dict(zip(names, line.split(","), strict=False)) for line in text.splitlines()]
    people = data.entity("employee", "employees", rows)
    data.entity("department", "departments", [{"dept": dept, "head": w.person(), "phone": f"+1 555 {w.number(9999):04}", "floor": at + 1, "opened": w.day()} for at, dept in enumerate(sorted({row["dept"] for row in rows}))])  # fmt: skip
    states = {row["city"]: row["state"] for row in rows}
    data.entity("town", "towns", [{"city": city, "state": states[city], "airport": f"{city[:2].upper()}{w.number(9)}", "office": w.yes(), "opened": w.day()} for city in sorted(states)])  # fmt: skip
    keep, dept, town = data.keep, {"dept": "dept"}, {"city": "city"}
    keep(copied(data, "town.state", "employee.state", town))
    keep(copied(data, "town.airport", "employee.airport", town))
    keep(copied(data, "department.head", "employee.dept_head", dept))
    keep(copied(data, "department.phone", "employee.dept_phone", dept))
    keep(counted(data, "count", "employee", "department.employees", dept))
    keep(counted(data, "count", "employee", "town.employees", town))
    keep(counted(data, "count", "employee", "town.developers", town, where=lambda e: e["dept"] == "Development"))
    keep(derived(data, "employee.place", ["state", "city", "dept"], lambda e: f"{e['state']}#{e['city']}#{e['dept']}" if get(e, "state") else None))  # fmt: skip
    keep(derived(data, "employee.hired", ["hire_date"], lambda e: e["hire_date"][:4]))
    assert len(people) == 1000
    return data


def games() -> DataSet:
    """Players and games in one table, as the lab has them, and a second item for each membership."""
    data = DataSet("games")
    data.table("battle", "PK", "SK", inverted=("SK", "PK"))
    text = shared.case("models", "dynamodb-labs", "game-player-items.jsonl").read_text(encoding="utf-8")
    for name in ("user", "game", "player", "played"):
        data.entity(name, "battle", [])
    for line in text.splitlines():
        item = json.loads(line)
        kind = "player" if item["SK"].startswith("USER#") else "user" if item["PK"].startswith("USER#") else "game"
        item["_pair"] = f"{item.get('game_id')} {item.get('username')}"
        data.entities[kind].append(item)
    known = {user["username"] for user in data.entities["user"]}
    data.entities["player"] = [player for player in data.entities["player"] if player["username"] in known]
    for player in data.entities["player"]:
        player["score"] = sum(map(ord, player["_pair"])) % 97
    for game in data.entities["game"]:
        del game["people"]
    keep, user, game = data.keep, {"username": "username"}, {"game_id": "game_id"}
    data.natural(derived(data, "game.open_timestamp", ["create_time"], lambda one: one["create_time"] if "open_timestamp" in one else None))  # fmt: skip
    keep(counted(data, "count", "player", "game.people", game)).natural = True  # 15 games of 50
    keep(copied(data, "user.email", "player.email", user))
    keep(copied(data, "user.name", "player.full_name", user))
    keep(copied(data, "game.map", "player.map", game))
    keep(counted(data, "count", "player", "user.games", user))
    keep(counted(data, "sum", "player.score", "user.score", user))
    keep(collected(data, "player.username", "game.usernames", game)).natural = True
    keep(mirrored(data, "player", "played", lambda p: {"PK": p["SK"], "SK": f"PLAYED#{p['game_id']}", "username": p["username"], "game_id": p["game_id"], "_pair": p["_pair"]}, attributes=["map", "score"], key="_pair"))  # fmt: skip
    return data


def zips() -> DataSet:
    """ZIP codes of four states, with their counties and states."""
    data, w = DataSet("zips"), Words("zips")
    names = {"VT": "Vermont", "NH": "New Hampshire", "ME": "Maine", "CT": "Connecticut", "MA": "Massachusetts", "NJ": "New Jersey", "WY": "Wyoming", "NV": "Nevada", "UT": "Utah", "ID": "Idaho"}  # fmt: skip
    data.table("zips", "zip", by_county=("state", "county"))
    data.table("counties", "state", "county")
    data.table("states", "state")
    rows: list[dict[str, Any]] = [
        row for row in shared.rows("datasets", "us-zipcodes", "zips.csv") if row["state"] in names
    ]
    rows = [row for row in rows if row.get("county")]
    for row in rows:
        row["active"] = row["active"] == "True"
        row.pop("acceptable_cities", None)
    data.entity("zip", "zips", rows)
    pairs = sorted({(row["state"], row["county"]) for row in rows})
    data.entity("county", "counties", [{"state": state, "county": county, "fips": f"{w.number(99999):05}", "sheriff": w.person(), "active": True, "type": w.one(["URBAN", "RURAL"])} for state, county in pairs])  # fmt: skip
    data.entity("state", "states", [{"state": state, "name": name, "governor": w.person(), "active": True, "country": "US"} for state, name in names.items()])  # fmt: skip
    keep, county, state = data.keep, {"state": "state", "county": "county"}, {"state": "state"}
    keep(copied(data, "state.name", "zip.state_name", state))
    keep(copied(data, "state.name", "county.state_name", state))
    data.truths[0].reads |= {"county.state_name"}
    keep(copied(data, "county.fips", "zip.fips", county))
    keep(copied(data, "county.sheriff", "zip.sheriff", county))
    keep(counted(data, "count", "zip", "county.zips", county))
    keep(counted(data, "count", "zip", "county.boxes", county, where=lambda z: z["type"] == "PO BOX"))
    keep(counted(data, "count", "county", "state.counties", state))
    keep(derived(data, "zip.place", ["state", "city", "zip"], lambda z: f"{z['state']}#{z['city'].replace(' ', '').upper()}#{z['zip']}"))  # fmt: skip
    keep(derived(data, "zip.city_lower", ["city"], lambda z: z["city"].lower()))
    return data


def geography() -> DataSet:
    """Countries and their states; states have states below them."""
    data = DataSet("geography")
    data.table("countries", "id")
    data.table("states", "id", by_country=("country_id",), by_parent=("parent_id",))
    data.entity("country", "countries", typed(shared.rows("datasets", "geo-dr5hn", "countries.csv"), "id"))
    data.entity("state", "states", typed(shared.rows("datasets", "geo-dr5hn", "states.csv"), "id", "country_id", "parent_id", "level"))  # fmt: skip
    _without_rings(data.entities["state"], "id", "parent_id")
    keep, country, parent = data.keep, {"id": "country_id"}, {"id": "parent_id"}
    keep(copied(data, "country.iso2", "state.country_code", country))
    keep(copied(data, "country.name", "state.country_name", country))
    keep(copied(data, "country.region", "state.region", country))
    keep(copied(data, "country.currency", "state.money", country))
    keep(copied(data, "state.name", "state.parent_name", parent))
    keep(pathed(data, "state.path", "id", "parent_id", "/"))
    keep(counted(data, "count", "state", "country.states", country))
    keep(derived(data, "state.code", ["country_code", "iso2"], lambda s: f"{s['country_code']}-{s['iso2']}" if get(s, "country_code") and get(s, "iso2") else None))  # fmt: skip
    keep(derived(data, "country.slug", ["subregion", "name"], lambda c: f"{c['subregion'].lower()}/{c['name'].lower()}" if get(c, "subregion") else None))  # fmt: skip
    return data


def _without_rings(records: list[Record], own: str, parent: str) -> None:
    above = {record[own]: record.get(parent) for record in records}
    for record in records:
        seen, at = {record[own]}, above[record[own]]
        while at is not None and at not in seen:
            seen.add(at)
            at = above.get(at)
        if at is not None:
            record.pop(parent)
            above[record[own]] = None


def online_shop() -> DataSet:
    """The design pattern of an online shop: the entities of its model in one table, with some hundred items of each."""
    data, w = DataSet("online_shop"), Words("online_shop")
    model = json.loads(shared.case("models", "aws-design-patterns", "AnOnlineShop_9.json").read_text(encoding="utf-8"))
    cities = [item["Address"]["M"]["City"]["S"] for item in model["DataModel"][0]["TableData"] if "Address" in item]
    data.table("OnlineShop", "PK", "SK", GSI1=("SK", "PK"))
    customers, products, warehouses, stocks, orders, lines, shipments = (
        data.entity(name, "OnlineShop", [])
        for name in ("customer", "product", "warehouse", "stock", "order", "line", "shipment")
    )

    def own(letters: str, number: int) -> dict[str, str]:
        return {"PK": f"{letters}#{number}", "SK": f"{letters}#{number}", f"_{letters}": str(number)}

    for at in range(140):
        name = w.person()
        customers.append({**own("c", 12000 + at), "EntityType": "customer", "Email": w.mail(name), "Name": name})
    for at in range(85):
        products.append({**own("p", 12000 + at), "EntityType": "product", "Detail": {"Name": f"{w.thing()} {at}", "Description": w.text()}, "Price": w.price()})  # fmt: skip
    for at in range(12):
        warehouses.append({**own("w", 12000 + at), "EntityType": "warehouse", "Address": {"Country": "Sweden", "City": w.one([*cities, w.place()]), "Street": f"{w.text(1)}gatan {at}", "Number": str(w.number(99))}})  # fmt: skip
        for product in w.rng.sample(products, 40):
            stocks.append({"PK": product["PK"], "SK": f"w#{12000 + at}", "_p": product["_p"], "_w": str(12000 + at), "EntityType": "warehouseItem", "Quantity": w.number(60)})  # fmt: skip
    for at in range(430):
        customer, placed = w.one(customers)["_c"], w.time()
        orders.append({"PK": f"o#{12000 + at}", "SK": f"c#{customer}", "_o": str(12000 + at), "_c": customer, "EntityType": "order", "Date": placed})  # fmt: skip
        for product in w.rng.sample(products, w.many(1, 5)):
            lines.append({"PK": f"o#{12000 + at}", "SK": product["PK"], "_o": str(12000 + at), "_p": product["_p"], "_placed": placed, "EntityType": "orderItem", "Quantity": w.number(7, 1)})  # fmt: skip
        for _ in range(w.many(1, 2)):
            shipments.append({"PK": f"o#{12000 + at}", "SK": f"sh#{w.number(10**7)}", "EntityType": "shipment", "Type": w.one(["Express", "Standard"]), "Date": w.time(), "Address": {"Country": "Sweden", "City": w.one(cities), "Street": w.text(1), "Number": str(w.number(99))}})  # fmt: skip
    keep, customer, product, warehouse = data.keep, {"_c": "_c"}, {"_p": "_p"}, {"_w": "_w"}
    keep(copied(data, "customer.Name", "order.CustomerName", customer))
    keep(copied(data, "product.Detail.Name", "line.ProductName", product))
    keep(copied(data, "product.Detail.Name", "stock.ProductName", product))
    keep(taken(data, "product.Price", "line.Price", product, "_placed"))
    keep(copied(data, "warehouse.Address.Street", "stock.Street", warehouse))
    keep(counted(data, "sum", "stock.Quantity", "product.InStock", product))
    keep(counted(data, "count", "line", "product.Ordered", product))
    keep(counted(data, "count", "order", "customer.Orders", customer))
    keep(counted(data, "max", "stock.Quantity", "product.MostInOnePlace", product))
    keep(derived(data, "order.Month", ["Date"], lambda one: one["Date"][:7]))
    return data


SHARED: dict[str, Callable[[], DataSet]] = {
    made.__name__: made for made in (chinook, invoices, adventureworks, employees, games, zips, geography, online_shop)
}
