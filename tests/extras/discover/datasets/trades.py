"""Data sets of five trades: an order book, a film rental, a shop, a bill of materials, and a field service in one table.

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
    embedded,
    formed,
    listed,
    mirrored,
    newest,
    pathed,
    rolled,
    taken,
)
from tests.extras.discover.datasets.dataset import DataSet, Record
from tests.extras.discover.datasets.words import Words


def below(words: Words, records: list[Record], own: str, parent: str, roots: int = 4) -> None:
    """Hang records below earlier ones."""
    for at, record in enumerate(records[roots:], roots):
        record[parent] = records[words.number(min(at, 60))][own]


def order_book() -> DataSet:
    """Orders of companies, a table for each of twelve entities, numbers as ids that all begin at 1."""
    data, w = DataSet("order_book"), Words("order book")
    for name, key, indexes in (
        ("customers", ("customer_id",), {}), ("employees", ("employee_no",), {"by_boss": ("reports_to",)}), ("shippers", ("shipper_id",), {}),
        ("suppliers", ("supplier_id",), {}), ("categories", ("category_id",), {}), ("regions", ("region_id",), {}), ("territories", ("territory_id",), {"by_region": ("region_id",)}),
        ("products", ("product_id",), {"by_supplier": ("supplier_id",), "by_category": ("category_id",)}),
        ("orders", ("order_id",), {"by_customer": ("customer_id",), "by_employee": ("employee_no",), "by_shipper": ("ship_via",)}),
        ("lines", ("order_id", "product_id"), {"by_product": ("product_id",)}), ("days", ("day",), {}), ("notes", ("order_id", "written_at"), {}),
    ):
        data.table(name, *key, **indexes)
    make = data.entity
    customers, employees, shippers, suppliers = (make(name, f"{name}s", []) for name in ("customer", "employee", "shipper", "supplier"))
    categories, regions, territories = make("category", "categories", []), make("region", "regions", []), make("territory", "territories", [])
    products, orders, lines, days, notes = (make(name, f"{name}s", []) for name in ("product", "order", "line", "day", "note"))
    for at in range(1, 92):
        customers.append({"customer_id": f"{w.one('ABCDEFGH')}{w.one('AEIOU')}{at * 7919 % 997:03}", "company": f"{w.person()} & Sons {at}", "contact": w.person(), "city": w.place(), "country": w.one(["DE", "FR", "UK", "US", "BR"]), "credit_limit": 500 * w.number(9, 1)})
    for at in range(1, 41):
        employees.append({"employee_no": f"E{at:03}", "number": at, "first_name": w.person().split()[0], "last_name": f"{w.person().split()[1]} {at}", "hired": w.day(), "title": w.one(["Sales Rep", "Manager", "Clerk"])})
    below(w, employees, "employee_no", "reports_to")
    shippers += [{"shipper_id": at, "company": f"{w.place()} Express {at}", "phone": f"{w.number(10**8):08}"} for at in range(1, 9)]
    suppliers += [{"supplier_id": at, "company": f"{w.place()} {w.thing()} Ltd {at}", "city": w.place(), "country": w.one(["DE", "FR", "UK", "US", "BR"])} for at in range(1, 30)]
    categories += [{"category_id": at, "name": w.title(), "description": w.text()} for at in range(1, 13)]
    regions += [{"region_id": at, "name": name} for at, name in enumerate(("Eastern", "Western", "Northern", "Southern"), 1)]
    territories += [{"territory_id": f"{w.number(10**5):05}", "name": f"{w.place()} {at}", "region_id": w.number(5, 1)} for at in range(1, 54)]
    for at in range(1, 78):
        products.append({"product_id": at, "name": f"{w.thing()} {at}", "supplier_id": w.number(30, 1), "category_id": w.number(13, 1), "unit_price": w.price(), "in_stock": w.number(120), "reorder_level": 5 * w.number(7), "discontinued": w.yes(0.1)})
    for at in range(10248, 10248 + 830):
        placed = w.time(300)
        orders.append({"order_id": at, "customer_id": w.one(customers)["customer_id"], "employee_no": w.one(employees)["employee_no"], "ship_via": w.number(9, 1), "placed_at": placed, "freight": w.price(90), "status": w.one(["open", "sent", "void"])})
        for product in w.rng.sample(products, w.many(1, 6)):
            lines.append({"order_id": at, "product_id": product["product_id"], "quantity": w.number(60, 1), "discount": w.one([Decimal(0), Decimal("0.05"), Decimal("0.1")]), "_placed": placed})
        for _ in range(w.number(4)):
            notes.append({"order_id": at, "written_at": w.time(), "text": w.text(), "author": w.person()})
    days += [{"day": day, "weather": w.one(["sun", "rain"])} for day in sorted({order["placed_at"][:10] for order in orders})]
    keep = data.keep
    by_customer, by_employee, by_product, by_order = ({one: one} for one in ("customer_id", "employee_no", "product_id", "order_id"))
    keep(taken(data, "product.unit_price", "line.unit_price", by_product, "_placed"))
    keep(taken(data, "customer.city", "order.ship_city", by_customer, "placed_at"))
    keep(copied(data, "customer.company", "order.customer_name", by_customer))
    keep(copied(data, "employee.last_name", "order.sales_person", by_employee))
    keep(copied(data, "shipper.company", "order.shipper_name", {"shipper_id": "ship_via"}))
    keep(copied(data, "supplier.company", "product.supplier_name", {"supplier_id": "supplier_id"}))
    keep(copied(data, "category.name", "product.category_name", {"category_id": "category_id"}))
    keep(copied(data, "region.name", "territory.region_name", {"region_id": "region_id"}))
    keep(copied(data, "product.name", "line.product_name", by_product))
    keep(counted(data, "count", "order", "customer.order_count", by_customer))
    keep(counted(data, "count", "order", "customer.open_orders", by_customer, where=lambda order: order["status"] == "open"))
    keep(counted(data, "count", "product", "category.products", {"category_id": "category_id"}))
    keep(counted(data, "sum", "line.quantity", "product.units_sold", by_product))
    keep(counted(data, "sum", "line.quantity", "order.units", by_order))
    keep(counted(data, "max", "order.freight", "customer.highest_freight", by_customer))
    keep(formed(data, "line", "order.items", by_order, "product_id", "quantity"))
    keep(newest(data, "order", "customer.last_order", by_customer, ["order_id", "placed_at", "status"], order="placed_at"))
    keep(newest(data, "note", "order.last_note", by_order, "text", order="written_at"))
    keep(pathed(data, "employee.chain", "employee_no", "reports_to"))
    keep(derived(data, "employee.full_name", ["first_name", "last_name"], lambda e: f"{e['first_name']} {e['last_name']}"))
    keep(derived(data, "order.month", ["placed_at"], lambda order: order["placed_at"][:7]))
    keep(rolled(data, "count", "order", "day.orders", group=lambda order: order["placed_at"][:10], named=lambda day: day["day"]))
    keep(rolled(data, "sum", "order.freight", "day.freight", group=lambda order: order["placed_at"][:10], named=lambda day: day["day"]))
    return data


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


def web_shop() -> DataSet:
    """A shop with ids of many styles: binary keys, links within maps, categories as a tree with breadcrumbs."""
    data, w = DataSet("web_shop"), Words("web shop")
    for name, key, indexes in (
        ("users", ("id",), {}), ("products", ("product_key",), {"by_category": ("category",)}), ("categories", ("id",), {"by_parent": ("parent_id",)}), ("orders", ("id",), {"by_user": ("user_id",)}),
        ("lines", ("order_id", "line"), {"by_product": ("product_key",)}), ("reviews", ("product_key", "review"), {"by_author": ("author_id",)}), ("emails", ("email",), {}),
    ):
        data.table(name, *key, **indexes)
    users, products, categories, orders = data.entity("user", "users", []), data.entity("product", "products", []), data.entity("category", "categories", []), data.entity("order", "orders", [])
    lines, reviews, _ = data.entity("line", "lines", []), data.entity("review", "reviews", []), data.entity("email", "emails", [])
    for at in range(150):
        name = f"{w.person()} {at}"
        users.append({"id": w.uuid(), "name": name, "email": w.mail(name), "tier": w.one(["basic", "gold", "premium"]), "locale": w.one(["de", "en", "fr"]), "joined_at": w.time()})
    for at in range(40):
        categories.append({"id": f"cat-{at * 31 % 997:03}", "position": at * 31 % 997, "name": f"{w.one(['Home', 'Garden', 'Kitchen', 'Sports'])} {at}"})
    below(w, categories, "id", "parent_id")
    for at in range(120):
        products.append({"product_key": bytes(w.number(256) for _ in range(8)), "title": f"{w.thing()} {at}", "category": w.one(categories)["id"], "price": w.price(), "weight": w.number(900), "sku": f"SKU{w.number(10**5):05}"})
    for number in range(500):
        user = w.one(users)
        placed = w.time(300)
        orders.append({"id": w.uuid(), "user_id": user["id"], "placed_at": placed, "status": w.one(["OPEN", "PAID", "SENT"]), "gift": w.yes(0.1), "number": number + 1})
        for line, product in enumerate(w.rng.sample(products, w.many(1, 5)), 1):
            lines.append({"order_id": orders[-1]["id"], "line": line, "product_key": product["product_key"], "quantity": w.number(6, 1), "_placed": placed})
    for _ in range(420):
        reviews.append({"product_key": w.one(products)["product_key"], "review": w.ulid(), "author_id": w.one(users)["id"], "stars": w.number(6, 1), "written_at": w.time(), "text": w.text()})
    keep, by_user, by_product, by_order = data.keep, {"id": "user_id"}, {"product_key": "product_key"}, {"id": "order_id"}
    keep(taken(data, "product.price", "line.unit_price", by_product, "_placed"))
    for order in orders:
        order["customer"] = {"id": order["user_id"]}
    keep(copied(data, "user.name", "order.customer.name", by_user))
    keep(copied(data, "user.tier", "order.user_tier", by_user))
    keep(copied(data, "product.title", "line.title", by_product))
    keep(copied(data, "product.sku", "line.sku", by_product))
    keep(copied(data, "category.name", "product.category_name", {"id": "category"}))
    keep(copied(data, "user.name", "review.author", {"id": "author_id"}))
    keep(counted(data, "count", "review", "product.review_count", by_product))
    keep(counted(data, "sum", "review.stars", "product.stars_total", by_product))
    keep(counted(data, "sum", "line.quantity", "product.sold", by_product))
    keep(counted(data, "count", "line", "order.line_count", by_order))
    keep(counted(data, "count", "order", "user.orders", by_user))
    keep(counted(data, "count", "product", "category.product_count", {"id": "category"}))
    keep(formed(data, "line", "order.contents", by_order, "line", "sku"))
    keep(listed(data, "line.sku", "order.skus", by_order, "line"))
    keep(embedded(data, "line", "order.lines", by_order, ["title", "quantity"], by="line"))
    keep(newest(data, "review", "product.latest_review", by_product, ["author", "stars", "text"], order="written_at"))
    keep(newest(data, "order", "user.first_order_at", by_user, "placed_at", order="placed_at", first=True))
    keep(collected(data, "order.status", "user.order_states", by_user))
    keep(pathed(data, "category.path", "id", "parent_id", "/"))
    keep(pathed(data, "category.breadcrumb", "id", "parent_id", " > ", name="name"))
    keep(derived(data, "user.name_search", ["name"], lambda user: user["name"].lower()))
    for user in users:
        user["_id"] = user["id"]
    keep(mirrored(data, "user", "email", lambda user: {"email": user["email"], "_id": user["id"]}, attributes=["name", "locale"], key="_id"))
    for email in data.entities["email"]:
        email["owner"] = email["_id"]
    return data


def bill_of_materials() -> DataSet:
    """A maker of bicycles: nineteen tables with numbers as ids, a date of change everywhere, parts within parts."""
    data, w = DataSet("bill_of_materials"), Words("bill of materials")
    keys: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
        "category": (("CategoryID",), ()), "subcategory": (("SubcategoryID",), ("CategoryID",)), "model": (("ModelID",), ()), "unit": (("UnitCode",), ()), "location": (("LocationID",), ()),
        "product": (("ProductID",), ("SubcategoryID", "ModelID")), "component": (("ComponentID",), ("ParentID", "ProductID")), "stock": (("ProductID", "LocationID"), ("LocationID",)),
        "vendor": (("VendorID",), ()), "offer": (("ProductID", "VendorID"), ("VendorID",)), "purchase": (("PurchaseID",), ("VendorID",)), "purchase_line": (("PurchaseID", "LineID"), ("ProductID",)),
        "work": (("WorkID",), ("ProductID",)), "step": (("WorkID", "StepNo"), ("LocationID",)), "territory": (("TerritoryID",), ()), "customer": (("CustomerID",), ("TerritoryID",)),
        "sale": (("SaleID",), ("CustomerID",)), "sale_line": (("SaleID", "LineID"), ("ProductID",)), "price": (("ProductID", "StartDate"), ()),
    }
    for name, (key, links) in keys.items():
        data.table(name, *key, **{f"by_{link}": (link,) for link in links})
    e: dict[str, list[Record]] = {name: data.entity(name, name, []) for name in keys}

    def add(name: str, count: int, made: Any, start: int = 1) -> None:
        e[name] += [{keys[name][0][0]: start + at, **made(at), "ModifiedDate": w.one(["2008-04-30", "2008-04-30", "2013-07-31", w.day()])} for at in range(count)]

    add("category", 4, lambda at: {"Name": ("Bikes", "Components", "Clothing", "Accessories")[at]})
    add("subcategory", 30, lambda at: {"CategoryID": w.number(5, 1), "Name": f"{w.thing().title()} {at}"})
    add("model", 60, lambda at: {"Name": f"{w.place()}-{w.number(900, 100)} {at}", "Summary": w.text()})
    e["unit"] += [{"UnitCode": code, "Name": name} for code, name in (("EA", "Each"), ("BOX", "Boxes"), ("KG", "Kilogram"), ("CM", "Centimeter"), ("PAK", "Pack"))]
    add("location", 14, lambda at: {"Name": f"{w.one(['Paint', 'Frame', 'Final', 'Tool'])} Shop {at}", "CostRate": w.price(40)})
    add("product", 260, lambda at: {"Name": f"{w.thing().title()} {at}", "Number": f"{w.one(['BK', 'FR', 'HL'])}-{w.number(10**4):04}", "SubcategoryID": w.number(31, 1), "ModelID": w.number(61, 1), "ListPrice": w.price(900), "SafetyStock": w.one([100, 500, 800, 1000]), "Color": w.one(["Red", "Black", "Silver"]), "MakeFlag": w.yes()}, 316)
    add("component", 300, lambda at: {"ProductID": w.number(576, 316), "UnitCode": w.one(e["unit"])["UnitCode"], "Quantity": w.number(20, 1), "Tag": 893 + at}, 893)
    below(w, e["component"], "ComponentID", "ParentID")
    for product in e["product"]:
        for location in w.rng.sample(range(1, 15), w.number(4)):
            e["stock"].append({"ProductID": product["ProductID"], "LocationID": location, "Quantity": w.number(800, 1), "Shelf": w.one("ABCDEF"), "Bin": w.number(40)})
        e["price"] += [{"ProductID": product["ProductID"], "StartDate": day, "Price": w.price(900)} for day in ("2011-05-31", "2012-05-30")[: w.number(3, 1)]]
    add("vendor", 60, lambda at: {"Name": f"{w.person()} Cycles {at}", "AccountNumber": f"{w.person().split()[1].upper()}{at:04}", "CreditRating": w.number(6, 1), "Preferred": w.yes(0.8)}, 1492)
    for product in w.rng.sample(e["product"], 160):
        for vendor in w.rng.sample(e["vendor"], w.number(4, 1)):
            e["offer"].append({"ProductID": product["ProductID"], "VendorID": vendor["VendorID"], "LeadTime": w.one([15, 17, 19, 45]), "StandardPrice": w.price(90)})
    add("purchase", 500, lambda at: {"VendorID": w.one(e["vendor"])["VendorID"], "Status": w.number(5, 1), "OrderDate": w.time(300)})
    add("work", 400, lambda at: {"ProductID": w.number(576, 316), "OrderQty": w.number(90, 1), "ScrappedQty": w.number(3), "StartDate": w.time(300)})
    add("territory", 10, lambda at: {"Name": f"{w.place()} {at}", "Group": w.one(["Europe", "Pacific", "North America"])})
    add("customer", 220, lambda at: {"TerritoryID": w.number(11, 1), "Name": f"{w.person()} {at}"}, 11000)
    add("sale", 600, lambda at: {"CustomerID": w.number(11220, 11000), "OrderDate": w.time(300), "Status": w.one([1, 5, 5, 5]), "Freight": w.price(50)}, 43659)
    for purchase in e["purchase"]:
        e["purchase_line"] += [{"PurchaseID": purchase["PurchaseID"], "LineID": at, "ProductID": w.one(e["product"])["ProductID"], "OrderQty": w.number(550, 1), "Cost": w.price(80)} for at in range(1, w.number(5, 1) + 1)]
    for work in e["work"]:
        e["step"] += [{"WorkID": work["WorkID"], "StepNo": at, "LocationID": w.number(15, 1), "Hours": w.number(9, 1), "Began": w.time()} for at in range(1, w.number(5, 1) + 1)]
    for sale in e["sale"]:
        e["sale_line"] += [{"SaleID": sale["SaleID"], "LineID": at, "ProductID": w.one(e["product"])["ProductID"], "OrderQty": w.number(9, 1), "Discount": w.one([Decimal(0), Decimal("0.1")]), "_at": sale["OrderDate"]} for at in range(1, w.number(5, 1) + 1)]
    keep = data.keep

    def by(name: str) -> dict[str, str]:
        return {name: name}

    keep(taken(data, "product.ListPrice", "sale_line.UnitPrice", by("ProductID"), "_at"))
    keep(copied(data, "category.Name", "subcategory.CategoryName", by("CategoryID")))
    keep(copied(data, "subcategory.Name", "product.SubcategoryName", by("SubcategoryID")))
    keep(copied(data, "model.Name", "product.ModelName", by("ModelID")))
    keep(copied(data, "product.Name", "component.ProductName", by("ProductID")))
    keep(copied(data, "unit.Name", "component.UnitName", by("UnitCode")))
    keep(copied(data, "product.Name", "stock.ProductName", by("ProductID")))
    keep(copied(data, "location.Name", "stock.LocationName", by("LocationID")))
    keep(copied(data, "vendor.Name", "purchase.VendorName", by("VendorID")))
    keep(copied(data, "product.Number", "purchase_line.ProductNumber", by("ProductID")))
    keep(copied(data, "product.Name", "sale_line.ProductName", by("ProductID")))
    keep(copied(data, "location.Name", "step.LocationName", by("LocationID")))
    keep(copied(data, "territory.Name", "customer.Territory", by("TerritoryID")))
    keep(copied(data, "customer.Name", "sale.CustomerName", by("CustomerID")))
    keep(counted(data, "sum", "stock.Quantity", "product.TotalStock", by("ProductID")))
    keep(counted(data, "count", "product", "model.ProductCount", by("ModelID")))
    keep(counted(data, "count", "step", "work.StepCount", by("WorkID")))
    keep(counted(data, "sum", "step.Hours", "work.TotalHours", by("WorkID")))
    keep(counted(data, "sum", "sale_line.OrderQty", "product.SoldQty", by("ProductID")))
    keep(counted(data, "count", "purchase", "vendor.PurchaseCount", by("VendorID")))
    keep(counted(data, "min", "offer.StandardPrice", "product.LowestOffer", by("ProductID")))
    keep(counted(data, "count", "component", "component.Children", {"ComponentID": "ParentID"}))
    keep(pathed(data, "component.Path", "ComponentID", "ParentID", "."))
    keep(collected(data, "stock.Shelf", "product.Shelves", by("ProductID")))
    keep(embedded(data, "step", "work.Steps", by("WorkID"), ["LocationID", "Hours"], by="StepNo"))
    keep(newest(data, "purchase", "vendor.LastPurchase", by("VendorID"), ["PurchaseID", "OrderDate", "Status"], order="OrderDate"))
    keep(newest(data, "sale", "customer.LastOrderDate", by("CustomerID"), "OrderDate", order="OrderDate"))
    keep(derived(data, "product.Label", ["Number", "Color"], lambda p: f"{p['Number']} ({p['Color']})"))
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


TRADES = (order_book, film_rental, web_shop, bill_of_materials, field_service)
