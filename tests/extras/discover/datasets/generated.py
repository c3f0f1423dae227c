"""Generated data sets: a shop, a service of many tenants, a forum, a tree of files, devices, and one without any copy.

Each function makes its data set anew, always the same, so that drift of another share can be planted in each.
"""

from __future__ import annotations

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
from tests.extras.discover.datasets.dataset import DataSet, Record
from tests.extras.discover.datasets.words import Words

STATES = ("OPEN", "PAID", "SENT", "DONE", "CANCELLED")


def shop() -> DataSet:
    """A shop in one table: five entities, an index that is used by two of them, and ids that all begin at 1."""
    data, w = DataSet("shop"), Words("shop")
    data.table("shop", "PK", "SK", GSI1=("GSI1PK", "GSI1SK"))
    users = data.entity("user", "shop", [])
    products = data.entity("product", "shop", [])
    orders = data.entity("order", "shop", [])
    lines = data.entity("line", "shop", [])
    addresses = data.entity("address", "shop", [])
    for number in range(1, 181):
        name = w.person()
        users.append({"PK": f"USER#{number}", "SK": "PROFILE", "_user": str(number), "name": name, "email": w.mail(name), "status": w.one(["ACTIVE", "CLOSED"]), "created_at": w.time(), "vip": w.yes(0.2), "type": "USER", "v": 1})  # fmt: skip
        for at in range(1, w.many(1, 4) + 1):
            addresses.append({"PK": f"USER#{number}", "SK": f"ADDRESS#{at}", "_user": str(number), "_address": str(at), "street": f"{w.one(['Mill', 'High', 'Park', 'Lake'])} Road {w.number(300)}", "city": w.place(), "zip": f"{w.number(99999):05}", "type": "ADDRESS", "active": w.yes()})  # fmt: skip
    for number in range(1, 91):
        products.append({"PK": f"PRODUCT#{number}", "SK": "INFO", "_product": str(number), "title": f"{w.thing()} {number}", "price": w.price(), "stock": w.number(50), "status": w.one(["ACTIVE", "GONE"]), "created_at": w.time(), "type": "PRODUCT", "v": 1})  # fmt: skip
    for number in range(1, 621):
        user = w.one(users)["_user"]
        placed = w.time()
        orders.append({"PK": f"USER#{user}", "SK": f"ORDER#{number:06}", "_user": user, "_order": f"{number:06}", "GSI1PK": f"ORDER#{number:06}", "GSI1SK": "HEAD", "status": w.one(STATES), "placed_at": placed, "gift": w.yes(0.1), "type": "ORDER", "v": 1})  # fmt: skip
        for at in range(1, w.many(1, 5) + 1):
            product = w.one(products)["_product"]
            lines.append({"PK": f"ORDER#{number:06}", "SK": f"LINE#{at}", "_order": f"{number:06}", "_line": str(at), "product_id": product, "GSI1PK": f"PRODUCT#{product}", "GSI1SK": placed, "quantity": w.number(6, 1), "_placed": placed, "type": "LINE"})  # fmt: skip
    keep, by_user, by_product = data.keep, {"_user": "_user"}, {"_product": "product_id"}
    keep(copied(data, "user.name", "order.user_name", by_user))
    keep(copied(data, "user.email", "order.email", by_user))
    keep(copied(data, "product.title", "line.product_title", by_product))
    keep(taken(data, "product.price", "line.unit_price", by_product, "_placed"))
    keep(counted(data, "count", "line", "product.times_sold", by_product))
    keep(counted(data, "sum", "line.quantity", "product.sold", by_product))
    keep(counted(data, "count", "order", "user.order_count", by_user))
    keep(counted(data, "count", "order", "user.open_orders", by_user, where=lambda order: order["status"] == "OPEN"))
    keep(embedded(data, "address", "user.addresses", by_user, ["street", "city", "zip"], by="_address"))
    keep(collected(data, "order.status", "user.statuses", by_user))
    keep(derived(data, "user.name_lower", ["name"], lambda user: user["name"].lower()))
    return data


def tenants() -> DataSet:
    """A service of many tenants in one table: numbers of projects and tasks begin at 1 in each of them."""
    data, w = DataSet("tenants"), Words("tenants")
    data.table("app", "PK", "SK", GSI1=("GSI1PK", "GSI1SK"))
    tenants = data.entity("tenant", "app", [])
    members = data.entity("member", "app", [])
    projects = data.entity("project", "app", [])
    tasks = data.entity("task", "app", [])
    for number in range(28):
        tenant = f"t{w.number(10**6):06}"
        tenants.append({"PK": f"TENANT#{tenant}", "SK": "META", "_tenant": tenant, "company": f"{w.one(['North', 'South', 'Blue', 'Prime', 'Nova'])} {w.one(['Works', 'Labs', 'Foods', 'Tools'])} {number}", "plan": w.one(["free", "team", "business"]), "region": "eu-1", "created": w.time()})  # fmt: skip
        own_members = []
        for at in range(1, w.many(2, 14) + 1):
            name = w.person()
            own_members.append({"PK": f"TENANT#{tenant}", "SK": f"USER#{at}", "_tenant": tenant, "_member": str(at), "user_id": str(at), "display_name": name, "email": w.mail(name), "role": w.one(["admin", "editor", "reader"]), "active": w.yes(0.8), "created": w.time()})  # fmt: skip
        members.extend(own_members)
        for at in range(1, w.many(2, 9) + 1):
            projects.append({"PK": f"TENANT#{tenant}", "SK": f"PROJECT#{at}", "_tenant": tenant, "_project": str(at), "project_id": str(at), "title": w.title(), "state": w.one(["active", "archived"]), "owner_id": w.one(own_members)["_member"], "created": w.time()})  # fmt: skip
            for task in range(1, w.many(1, 16) + 1):
                who = w.one(own_members)["_member"]
                tasks.append({"PK": f"TENANT#{tenant}#PROJECT#{at}", "SK": f"TASK#{task}", "_tenant": tenant, "_project": str(at), "_task": str(task), "GSI1PK": f"TENANT#{tenant}#USER#{who}", "GSI1SK": f"TASK#{at}#{task}", "assignee": who, "title": w.title(), "state": w.one(["todo", "doing", "done"]), "points": w.number(9, 1), "due": w.day(), "created": w.time()})  # fmt: skip
    keep, tenant = data.keep, {"_tenant": "_tenant"}
    project = {**tenant, "_project": "_project"}
    keep(copied(data, "tenant.company", "member.company", tenant))
    keep(copied(data, "tenant.plan", "project.plan", tenant))
    keep(copied(data, "project.title", "task.project_title", project))
    keep(copied(data, "member.display_name", "task.assignee_name", {**tenant, "_member": "assignee"}))
    keep(copied(data, "member.display_name", "project.owner_name", {**tenant, "_member": "owner_id"}))
    keep(counted(data, "count", "task", "project.tasks", project))
    keep(counted(data, "count", "task", "project.done", project, where=lambda task: task["state"] == "done"))
    keep(counted(data, "sum", "task.points", "project.points", project))
    keep(counted(data, "count", "member", "tenant.seats", tenant))
    keep(derived(data, "task.state_due", ["state", "due"], lambda task: f"{task['state'].upper()}#{task['due']}"))
    return data


def forum() -> DataSet:
    """A forum in four tables, with random ids and counters."""
    data, w = DataSet("forum"), Words("forum")
    data.table("people", "id")
    data.table("boards", "slug")
    data.table("threads", "id", by_board=("board", "created"), by_author=("author_id",))
    data.table("posts", "thread_id", "id", by_author=("author_id", "created"))
    people = data.entity("person", "people", [])
    boards = data.entity("board", "boards", [])
    threads = data.entity("thread", "threads", [])
    posts = data.entity("post", "posts", [])
    for _ in range(140):
        name = w.person()
        people.append({"id": w.uuid(), "handle": f"{name.split()[0].lower()}{w.number(9999)}", "avatar": f"https://img.example.com/{w.ulid()}.png", "bio": w.text(), "joined": w.day(), "moderator": w.yes(0.1)})  # fmt: skip
    for at, topic in enumerate(
        ["news", "help", "offtopic", "builds", "markets", "events", "music", "garden", "travel", "food"]
    ):
        boards.append(
            {"slug": topic, "name": f"{topic.title()} board", "position": at, "public": True, "created": w.time()}
        )
    for _ in range(260):
        threads.append({"id": w.uuid(), "board": w.one(boards)["slug"], "author_id": w.one(people)["id"], "title": w.title(), "pinned": w.yes(0.05), "created": w.time(), "state": w.one(["open", "locked"])})  # fmt: skip
    for _ in range(1900):
        posts.append({"thread_id": w.one(threads)["id"], "id": w.ulid(), "author_id": w.one(people)["id"], "body": w.text(12), "likes": w.number(40), "created": w.time(), "state": w.one(["shown", "hidden"])})  # fmt: skip
    keep, author = data.keep, {"id": "author_id"}
    keep(copied(data, "person.handle", "post.author_handle", author))
    keep(copied(data, "person.avatar", "post.author.avatar", author))
    keep(copied(data, "person.handle", "thread.author", author))
    keep(copied(data, "board.name", "thread.board_name", {"slug": "board"}))
    keep(copied(data, "thread.title", "post.thread_title", {"id": "thread_id"}))
    keep(counted(data, "count", "thread", "board.threads", {"slug": "board"}))
    keep(counted(data, "count", "post", "thread.posts", {"id": "thread_id"}))
    keep(counted(data, "count", "post", "person.posts", author))
    keep(counted(data, "sum", "post.likes", "thread.likes", {"id": "thread_id"}))
    keep(counted(data, "max", "post.likes", "thread.best", {"id": "thread_id"}))
    keep(
        counted(
            data, "count", "post", "thread.hidden", {"id": "thread_id"}, where=lambda post: post["state"] == "hidden"
        )
    )
    keep(collected(data, "post.author_handle", "thread.voices", {"id": "thread_id"}))
    return data


def files() -> DataSet:
    """A tree of files and folders in one table: paths of ids and of names, depths, and totals of folders."""
    data, w = DataSet("files"), Words("files")
    data.table("nodes", "node_id", by_parent=("parent_id",))
    data.table("drives", "drive_id")
    drives = data.entity("drive", "drives", [])
    nodes = data.entity("node", "nodes", [])
    for at in range(1, 13):
        drives.append({"drive_id": f"d{at}", "label": f"{w.place()} {at}", "quota": 10 * w.number(9, 1), "created": w.time(), "encrypted": w.yes()})  # fmt: skip
    by_drive: dict[str, list[Record]] = {}
    for at in range(1, 1101):
        drive = w.one(drives)["drive_id"]
        mine = by_drive.setdefault(drive, [])
        folders = [node for node in mine if node["folder"]]
        node = {"node_id": f"n{at}", "drive_id": drive, "name": f"{w.one(['notes', 'plans', 'photos', 'drafts'])}{w.number(99)}", "folder": at < 300, "created": w.time(), "version": 1}  # fmt: skip
        if folders and w.yes(0.97):
            node["parent_id"] = w.one(folders)["node_id"]
        if not node["folder"]:
            node["bytes"] = w.number(90_000, 10)
        mine.append(node)
        nodes.append(node)
    keep, parent = data.keep, {"node_id": "parent_id"}
    keep(pathed(data, "node.path", "node_id", "parent_id", "/"))
    keep(pathed(data, "node.crumbs", "node_id", "parent_id", " / ", name="name"))
    keep(depth(data, "node.level", "node_id", "parent_id"))
    keep(copied(data, "node.name", "node.parent_name", parent))
    keep(copied(data, "drive.label", "node.drive_label", {"drive_id": "drive_id"}))
    keep(counted(data, "count", "node", "drive.nodes", {"drive_id": "drive_id"}))
    keep(counted(data, "sum", "node.bytes", "drive.bytes", {"drive_id": "drive_id"}))
    keep(derived(data, "node.sort", ["drive_id", "name"], lambda node: f"{node['drive_id'].upper()}#{node['name']}"))
    return data


def devices() -> DataSet:
    """Devices, sites and readings: dates, booleans and small numbers all over, of which few are copies."""
    data, w = DataSet("devices"), Words("devices")
    data.table("sites", "site_id")
    data.table("devices", "device_id", by_site=("site_id",))
    data.table("readings", "device_id", "at")
    sites = data.entity("site", "sites", [])
    devices = data.entity("device", "devices", [])
    readings = data.entity("reading", "readings", [])
    for at in range(1, 31):
        sites.append({"site_id": at, "name": f"{w.place()} {w.one(['plant', 'depot', 'office'])} {at}", "zone": w.one(["A", "B", "C"]), "online": w.yes(0.9), "opened": w.day(2000), "level": w.number(5)})  # fmt: skip
    for _ in range(220):
        devices.append({"device_id": f"dev-{w.number(10**8):08x}", "site_id": w.one(sites)["site_id"], "model": w.one(["TX-1", "TX-2", "RX-9"]), "serial": w.ulid(), "online": w.yes(0.9), "installed": w.day(2000), "level": w.number(5), "firmware": f"{w.number(4, 1)}.{w.number(10)}.{w.number(10)}"})  # fmt: skip
    for _ in range(2400):
        device = w.one(devices)
        readings.append({"device_id": device["device_id"], "at": f"{w.time()[:-1]}.{w.number(1000):03}Z", "value": w.price(90), "online": w.yes(0.9), "day": w.day(), "level": w.number(5), "unit": "C", "alarm": w.yes(0.05), "seq": w.number(100_000)})  # fmt: skip
    keep, device = data.keep, {"device_id": "device_id"}
    keep(copied(data, "site.name", "device.site_name", {"site_id": "site_id"}))
    keep(copied(data, "device.serial", "reading.serial", device))
    keep(taken(data, "device.firmware", "reading.firmware", device, "at"))
    keep(counted(data, "count", "device", "site.devices", {"site_id": "site_id"}))
    keep(counted(data, "count", "reading", "device.alarms", device, where=lambda reading: reading["alarm"]))
    keep(counted(data, "min", "reading.value", "device.lowest", device))
    keep(counted(data, "max", "reading.value", "device.highest", device))
    keep(derived(data, "reading.month", ["at"], lambda reading: reading["at"][:7]))
    keep(derived(data, "reading.seq_key", ["seq"], lambda reading: f"{reading['seq']:08}"))
    return data


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


def unrelated() -> DataSet:
    """Four tables whose columns have equal names, equal ranges and equal types, and of which nothing is a copy."""
    data, w = DataSet("unrelated"), Words("unrelated")
    for name, count in (("cars", 150), ("houses", 300), ("boats", 80), ("rents", 900)):
        data.table(name, "id")
        records = data.entity(name, name, [])
        for at in range(1, count + 1):
            records.append({"id": at, "name": w.person(), "city": w.place(), "status": w.one(["NEW", "USED", "SOLD"]), "active": w.yes(), "checked": w.yes(0.95), "created_at": w.day(200), "updated_at": w.time(), "rank": w.number(10), "position": at, "count": w.number(30), "version": 1, "region": "eu", "currency": w.one(["EUR", "EUR", "EUR", "USD"]), "price": w.price()})  # fmt: skip
            if name == "rents":
                records[-1] |= {"car_id": w.number(151, 1), "house_id": w.number(301, 1), "days": w.number(14, 1)}
    return data


GENERATED = {made.__name__: made for made in (shop, tenants, forum, files, devices, accounts, unrelated)}
