"""The music shop of the Chinook data: its tables, the rules over them, and the same values plainly computed.

Invariant: `truth` is computed from the application's own writes alone, in the plainest Python: dictionaries, Counter
and Decimal. It shares no line with the rules.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from tests.support.shared import rows

RULES = """
tables:
  artists:   {name: "${CHINOOK}artists", key: {ArtistId: N}}
  albums:    {name: "${CHINOOK}albums", key: {AlbumId: N}, indexes: {by_artist: {ArtistId: N, AlbumId: N}}}
  tracks:    {name: "${CHINOOK}tracks", key: {TrackId: N}, indexes: {by_album: {AlbumId: N}}}
  customers: {name: "${CHINOOK}customers", key: {CustomerId: N}}
  invoices:  {name: "${CHINOOK}invoices", key: {InvoiceId: N}, indexes: {by_customer: {CustomerId: N}}}
  lines:     {name: "${CHINOOK}lines", key: {InvoiceId: N, InvoiceLineId: N}}
  ledger:    {name: "${CHINOOK}ledger", key: {PK: S, SK: S}}
entities:
  artist: {table: artists}
  album: {table: albums}
  track: {table: tracks}
  customer: {table: customers}
  invoice: {table: invoices}
  line: {table: lines}
rules:
  artist-of-albums: {copy: artist.Name, into: album.ArtistName, on_delete: clear}
  artist-of-tracks: {copy: album.ArtistName, into: track.ArtistName, on_delete: clear}
  album-of-tracks: {copy: album.Title, into: track.AlbumTitle, on_delete: clear}
  albums-of-artists: {collect: album, into: artist.Albums, as: "{AlbumId}", numbers: true}
  tracks-of-albums: count track into album.Tracks
  tracks-of-artists: sum album.Tracks into artist.Tracks
  name-of-customers: {derive: customer.Name, join: [FirstName, LastName]}
  customer-of-invoices: {copy: customer.Name, into: invoice.CustomerName, on_delete: clear}
  invoices-of-customers: count invoice into customer.Invoices
  money-of-customers: sum invoice.Total into customer.Spent
  largest-of-customers: max invoice.Total into customer.Largest
  countries-of-customers: {count: invoice, into: customer.Countries, per: BillingCountry}
  lines-of-invoices: {embed: line, into: invoice.Lines, fields: [TrackId, UnitPrice], limit: {items: 20, bytes: 10KB}}
  last-lines-of-invoices:
    embed: line
    into: invoice.Last
    fields: {TrackId: Track}
    as: list
    order: -InvoiceLineId
    limit: {items: 3}
    on_overflow: oldest
  number-of-lines: {count: line, into: invoice.NumberOfLines, mode: recount}
  units-of-lines: {sum: line.Quantity, into: invoice.Units, mode: recount}
"""
TABLES: Mapping[str, tuple[str, tuple[str, ...]]] = {  # the file, and the key
    "artists": ("Artist", ("ArtistId",)),
    "albums": ("Album", ("AlbumId",)),
    "tracks": ("Track", ("TrackId",)),
    "customers": ("Customer", ("CustomerId",)),
    "invoices": ("Invoice", ("InvoiceId",)),
    "lines": ("InvoiceLine", ("InvoiceId", "InvoiceLineId")),
}
NUMBERS = frozenset({"Total", "UnitPrice", "Quantity", "Milliseconds", "Bytes"})

Record = dict[str, Any]  # an item in plain Python
Key = tuple[Decimal, ...]
Data = dict[str, dict[Key, Record]]  # by table and key


def key_of(table: str, item: Mapping[str, Any]) -> Key:
    """The key of an item."""
    return tuple(item[name] for name in TABLES[table][1])


def load() -> Data:
    """All of it, as its files have it: ids and amounts are numbers, the rest is text."""
    data: Data = {table: {} for table in TABLES}
    for table, (file, _) in TABLES.items():
        for row in rows("datasets", "chinook", f"{file}.csv"):
            item = {
                name: Decimal(text) if name.endswith("Id") or name in NUMBERS else text for name, text in row.items()
            }
            data[table][key_of(table, item)] = item
    return data


def some(data: Data, artists: int, customers: int) -> Data:
    """The first artists with their albums and tracks, the first customers with their invoices and lines."""
    few: Data = {
        "artists": _first(data, "artists", lambda item: item["ArtistId"] <= artists),
        "albums": _first(data, "albums", lambda item: item["ArtistId"] <= artists),
        "customers": _first(data, "customers", lambda item: item["CustomerId"] <= customers),
        "invoices": _first(data, "invoices", lambda item: item["CustomerId"] <= customers),
    }
    few["tracks"] = _first(data, "tracks", lambda item: (item["AlbumId"],) in few["albums"])
    few["lines"] = _first(data, "lines", lambda item: (item["InvoiceId"],) in few["invoices"])
    return few


def _first(data: Data, table: str, chosen: Callable[[Record], bool]) -> dict[Key, Record]:
    return {key: item for key, item in data[table].items() if chosen(item)}


def truth(data: Data) -> Data:
    """Every item with all that the rules must have made of it."""
    whole = {table: {key: dict(item) for key, item in items.items()} for table, items in data.items()}
    _music(whole)
    _sales(whole)
    return {
        t: {k: {n: v for n, v in i.items() if v is not None} for k, i in items.items()} for t, items in whole.items()
    }


def _music(whole: Data) -> None:
    artists, albums, tracks = whole["artists"], whole["albums"], whole["tracks"]
    on_album = Counter(track.get("AlbumId") for track in tracks.values())
    by_artist: dict[Decimal, list[Record]] = defaultdict(list)
    for album in albums.values():
        album["Tracks"] = on_album[album["AlbumId"]]
        album["ArtistName"] = artists.get((album.get("ArtistId"),), {}).get("Name")
        by_artist[album.get("ArtistId")].append(album)
    for artist in artists.values():
        artist["Albums"] = {album["AlbumId"] for album in by_artist[artist["ArtistId"]]} or None
        artist["Tracks"] = sum(album["Tracks"] for album in by_artist[artist["ArtistId"]])
    for track in tracks.values():
        album = albums.get((track.get("AlbumId"),), {})
        track["AlbumTitle"], track["ArtistName"] = album.get("Title"), album.get("ArtistName")


def _sales(whole: Data) -> None:
    customers, invoices, lines = whole["customers"], whole["invoices"], whole["lines"]
    bills: dict[Decimal, list[Record]] = defaultdict(list)
    sold: dict[Decimal, list[Record]] = defaultdict(list)
    for invoice in invoices.values():
        bills[invoice.get("CustomerId")].append(invoice)
    for line in lines.values():
        sold[line["InvoiceId"]].append(line)
    for customer in customers.values():
        mine = bills[customer["CustomerId"]]
        totals = [invoice["Total"] for invoice in mine if "Total" in invoice]
        customer["Name"] = " ".join(customer[n] for n in ("FirstName", "LastName") if n in customer) or None
        customer["Invoices"], customer["Spent"] = len(mine), sum(totals, Decimal(0))
        customer["Largest"] = max(totals, default=None)
        customer["Countries"] = dict(Counter(invoice["BillingCountry"] for invoice in mine))
    for invoice in invoices.values():
        mine = sorted(sold[invoice["InvoiceId"]], key=lambda line: line["InvoiceLineId"], reverse=True)
        invoice["CustomerName"] = customers.get((invoice.get("CustomerId"),), {}).get("Name")
        invoice["Lines"] = {str(one["InvoiceLineId"]): {n: one[n] for n in ("TrackId", "UnitPrice")} for one in mine}
        invoice["Last"] = [{"Track": line["TrackId"]} for line in mine[:3]]
        invoice["NumberOfLines"] = len(mine)
        invoice["Units"] = sum(line["Quantity"] for line in mine)
