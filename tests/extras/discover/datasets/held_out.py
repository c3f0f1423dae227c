"""Data sets that were held out while the search was written: other fields, other styles, other careless habits.

Ids of one data set are all texts, keys are all called `id`, maps and dates and ids are copied, two attributes name items
of one entity, some items name others that are gone, and some attributes are NULL.
"""

from __future__ import annotations

from decimal import Decimal

from tests.extras.discover.datasets.careless import (
    collected,
    copied,
    counted,
    derived,
    embedded,
    mirrored,
    pathed,
    taken,
)
from tests.extras.discover.datasets.dataset import DataSet, Record
from tests.extras.discover.datasets.words import Words
from tests.support import shared


def music() -> DataSet:
    """Chinook as a script without types loads it: every value is a text, each key is `id`, references are words."""
    data = DataSet("music")
    names = {"artist": "Artist", "album": "Album", "track": "Track", "genre": "Genre", "buyer": "Customer", "sale": "Invoice", "item": "InvoiceLine"}  # fmt: skip
    called = {"ArtistId": "artist", "AlbumId": "album", "TrackId": "track", "GenreId": "genre", "CustomerId": "buyer", "InvoiceId": "sale", "MediaTypeId": "media", "SupportRepId": "rep"}  # fmt: skip
    for entity, file in names.items():
        data.table(f"{entity}s", "id")
        rows = shared.rows("datasets", "chinook", f"{file}.csv")
        records: list[Record] = [
            {"id": row[f"{file}Id"]}
            | {called.get(name, name[0].lower() + name[1:]): text for name, text in row.items() if name != f"{file}Id"}
            for row in rows
        ]
        data.entity(entity, f"{entity}s", records)
    for track in data.entities["track"]:
        track["seconds"] = int(track.pop("milliseconds")) // 1000
    for record in data.entities["sale"]:
        record["total"] = Decimal(record["total"])
    keep, natural = data.keep, data.natural
    artist, album, track_, genre = ({"id": name} for name in ("artist", "album", "track", "genre"))
    buyer, sale = {"id": "buyer"}, {"id": "sale"}
    for name in ("Address", "City", "State", "Country", "PostalCode"):
        keep(copied(data, f"buyer.{name[0].lower()}{name[1:]}", f"sale.billing{name}", buyer))
    natural(copied(data, "track.unitPrice", "item.unitPrice", track_))
    keep(copied(data, "artist.name", "album.artistName", artist))
    keep(copied(data, "album.title", "track.onAlbum", album))
    keep(copied(data, "album.artist", "track.artist", album))  # an id
    keep(copied(data, "artist.name", "track.by", artist, "album.artistName"))
    keep(copied(data, "genre.name", "track.style", genre))
    keep(copied(data, "track.name", "item.title", track_))
    keep(copied(data, "sale.invoiceDate", "item.soldAt", sale))
    keep(copied(data, "buyer.email", "sale.receiptTo", buyer))
    keep(counted(data, "count", "album", "artist.albumCount", artist))
    keep(counted(data, "count", "track", "artist.trackCount", artist))
    keep(counted(data, "sum", "track.seconds", "album.seconds", album))
    keep(counted(data, "max", "track.seconds", "album.longest", album))
    keep(counted(data, "sum", "sale.total", "buyer.lifetime", buyer))
    keep(counted(data, "count", "item", "sale.items", sale))
    keep(embedded(data, "item", "sale.lines", sale, ["title", "unitPrice"], by="id"))
    keep(collected(data, "track.style", "album.styles", album))
    keep(derived(data, "buyer.fullName", ["firstName", "lastName"], lambda b: f"{b['firstName']} {b['lastName']}"))
    keep(derived(data, "track.sortName", ["name"], lambda t: t["name"].upper()))
    return data


def helpdesk() -> DataSet:
    """Tickets with a reporter and an agent, both people; maps, dates and ids are copied, and some people are gone."""
    data, w = DataSet("helpdesk"), Words("helpdesk")
    data.table("people", "personId")
    data.table("tickets", "ticketId", byAgent=("agentId",))
    data.table("replies", "ticketId", "replyId")
    data.table("teams", "teamId")
    teams, people = data.entity("team", "teams", []), data.entity("person", "people", [])
    tickets, replies = data.entity("ticket", "tickets", []), data.entity("reply", "replies", [])
    for at in range(1, 16):
        teams.append({"teamId": at, "name": f"{w.one(['Field', 'Phone', 'Chat', 'Night'])} {at}", "since": w.day(2000), "queue": f"q-{w.ulid()}", "open": w.yes()})  # fmt: skip
    for at in range(1, 231):
        name = w.person()
        people.append({"personId": at, "name": name, "contact": {"mail": w.mail(name), "phone": f"+49 {w.number(10**7):07}"}, "teamId": w.one(teams)["teamId"], "hiredAt": w.time(2500), "photo": None if w.yes(0.3) else f"/p/{w.ulid()}.jpg", "active": w.yes(0.9)})  # fmt: skip
    for at in range(1, 801):
        agent = w.one(people)
        gone = w.yes(0.03)
        tickets.append({"ticketId": f"T-{at:05}", "reporterId": w.number(900, 600) if gone else w.one(people)["personId"], "agentId": agent["personId"], "subject": w.title(), "state": w.one(["new", "open", "waiting", "closed"]), "minutes": w.number(300), "openedAt": w.time(), "priority": w.number(4, 1), "reporterName": "Former Colleague" if gone else ""})  # fmt: skip
        for reply in range(w.many(0, 7)):
            replies.append({"ticketId": f"T-{at:05}", "replyId": reply + 1, "authorId": w.one(people)["personId"], "text": w.text(15), "at": w.time(), "internal": w.yes()})  # fmt: skip
    keep, team = data.keep, {"teamId": "teamId"}
    reporter, agent, ticket, author = {"personId": "reporterId"}, {"personId": "agentId"}, {"ticketId": "ticketId"}, {"personId": "authorId"}  # fmt: skip
    keep(copied(data, "person.name", "ticket.reporterName", reporter))
    keep(copied(data, "person.name", "ticket.agentName", agent))
    keep(copied(data, "person.contact", "ticket.agentContact", agent))
    keep(copied(data, "person.teamId", "ticket.teamId", agent))
    keep(copied(data, "team.name", "person.team.name", team))
    keep(copied(data, "team.queue", "person.team.queue", team))
    keep(copied(data, "person.hiredAt", "reply.authorSince", author))
    keep(copied(data, "person.name", "reply.author", author))
    keep(copied(data, "ticket.subject", "reply.subject", ticket))
    keep(copied(data, "ticket.openedAt", "reply.ticketOpenedAt", ticket))
    keep(counted(data, "count", "reply", "ticket.replies", ticket))
    keep(counted(data, "count", "reply", "ticket.notes", ticket, where=lambda reply: reply["internal"]))
    keep(counted(data, "count", "ticket", "person.assigned", agent))
    keep(counted(data, "sum", "ticket.minutes", "person.minutes", agent))
    keep(counted(data, "count", "ticket", "person.waiting", agent, where=lambda one: one["state"] == "waiting"))
    keep(counted(data, "count", "person", "team.size", team))
    keep(embedded(data, "reply", "ticket.thread", ticket, ["author", "text"], order="replyId"))
    keep(derived(data, "ticket.key", ["state", "openedAt"], lambda t: f"{t['state']}#{t['openedAt']}"))
    keep(derived(data, "ticket.rank", ["priority", "minutes"], lambda t: f"P{t['priority']}-{t['minutes']:06}"))
    return data


def library() -> DataSet:
    """Branches, books, copies and loans in one table of a library, with an index that all of them share."""
    data, w = DataSet("library"), Words("library")
    data.table("library", "pk", "sk", gsi=("gsi_pk", "gsi_sk"))
    kinds = ("branch", "book", "reader", "loan", "shelf")
    branches, books, readers, loans, shelves = (data.entity(kind, "library", []) for kind in kinds)
    for at in range(24):
        own = f"{w.place().lower()}-{at}"
        branches.append({"pk": f"BRANCH#{own}", "sk": "A", "_branch": own, "kind": "branch", "label": f"{w.place()} {at}", "street": f"{w.text(1)} way {w.number(99)}", "open": w.yes(0.8)})  # fmt: skip
        for shelf in range(w.many(1, 9)):
            shelves.append({"pk": f"BRANCH#{own}", "sk": f"SHELF#{shelf:02}", "_branch": own, "_shelf": f"{shelf:02}", "kind": "shelf", "metres": w.number(20, 2), "topic": w.one(["art", "law", "maps"]), "checked_on": w.day()})  # fmt: skip
    for _ in range(260):
        isbn = f"978{w.number(10**10):010}"
        books.append({"pk": f"BOOK#{isbn}", "sk": "A", "_book": isbn, "kind": "book", "title": w.title().title(), "writer": w.person(), "pages": w.number(900, 40), "fee": w.price(9), "language": w.one(["de", "en"])})  # fmt: skip
    for at in range(190):
        readers.append({"pk": f"READER#{at + 1}", "sk": "A", "_reader": str(at + 1), "kind": "reader", "name": w.person(), "card": w.ulid(), "joined_on": w.day(1500), "branch": w.one(branches)["_branch"]})  # fmt: skip
    for at in range(1150):
        reader, book, taken_at = w.one(readers)["_reader"], w.one(books)["_book"], w.time()
        loans.append({"pk": f"READER#{reader}", "sk": f"LOAN#{at + 1}", "_reader": reader, "_loan": str(at + 1), "_book": book, "gsi_pk": f"BOOK#{book}", "gsi_sk": taken_at, "kind": "loan", "isbn": book, "taken_at": taken_at, "back": w.yes(0.7), "fine": w.number(12), "days": w.number(40, 1)})  # fmt: skip
    keep, reader, book, branch = data.keep, {"_reader": "_reader"}, {"_book": "_book"}, {"_branch": "_branch"}
    keep(taken(data, "book.fee", "loan.fee", book, "taken_at"))
    keep(copied(data, "reader.name", "loan.reader_name", reader))
    keep(copied(data, "reader.card", "loan.card", reader))
    keep(copied(data, "book.title", "loan.book.title", book))
    keep(copied(data, "book.writer", "loan.book.writer", book))
    keep(copied(data, "branch.label", "reader.home", {"_branch": "branch"}))
    keep(copied(data, "branch.street", "shelf.address", branch))
    keep(counted(data, "count", "loan", "reader.loans", reader))
    keep(counted(data, "count", "loan", "reader.out", reader, where=lambda loan: not loan["back"]))
    keep(counted(data, "sum", "loan.fine", "reader.fines", reader))
    keep(counted(data, "max", "loan.days", "book.longest", book))
    keep(counted(data, "sum", "shelf.metres", "branch.metres", branch))
    keep(embedded(data, "shelf", "branch.shelves", branch, ["topic", "metres"], by="_shelf"))
    keep(collected(data, "loan.isbn", "reader.isbns", reader))
    keep(derived(data, "book.catalogue", ["language", "writer", "title"], lambda b: f"{b['language'].upper()}/{b['writer']}/{b['title']}"))  # fmt: skip
    keep(derived(data, "loan.week", ["taken_at"], lambda loan: loan["taken_at"][:10]))
    return data


def company() -> DataSet:
    """Staff below each other, and look-ups by badge: a path, its breadcrumb, a mirror, and a number of reports."""
    data, w = DataSet("company"), Words("company")
    data.table("staff", "PK", "SK")
    staff = data.entity("staff", "staff", [])
    for at in range(420):
        record = {"PK": f"EMP|{at + 100}", "SK": "EMP", "_staff": str(at + 100), "fullName": w.person(), "jobTitle": w.one(["Clerk", "Lead", "Buyer", "Welder", "Nurse"]), "badge": w.ulid(), "grade": w.number(9, 1), "startedOn": w.day(3000), "remote": w.yes(), "salary": w.number(9000, 2000)}  # fmt: skip
        if at:
            record["bossId"] = str(w.number(max(at // 4, 1)) + 100)
        staff.append(record)
    keep, boss = data.keep, {"_staff": "bossId"}
    data.entity("badge", "staff", [])
    keep(copied(data, "staff.fullName", "staff.bossName", boss))
    keep(copied(data, "staff.jobTitle", "staff.bossTitle", boss))
    keep(pathed(data, "staff.chain", "_staff", "bossId", "."))
    keep(counted(data, "count", "staff", "staff.reports", boss))
    keep(counted(data, "sum", "staff.salary", "staff.reportsCost", boss))
    keep(derived(data, "staff.sortName", ["fullName"], lambda s: s["fullName"].lower()))
    keep(derived(data, "staff.gradeKey", ["grade", "startedOn"], lambda s: f"{s['grade']:02}#{s['startedOn'][:4]}"))
    keep(mirrored(data, "staff", "badge", lambda s: {"PK": f"BADGE|{s['badge']}", "SK": "BADGE", "_staff": s["_staff"], "empId": s["_staff"]}, attributes=["fullName", "grade"], key="_staff"))  # fmt: skip
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


HELD_OUT = {made.__name__: made for made in (music, helpdesk, library, company, lookalikes)}
