"""Sample data, made by arithmetic: the same every time, and nobody's.

Copies are left out on purpose. The first thing the demo shows is that they are filled in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sync_rules.model.values import AttributeValue, Item

FIRST = ("Ada", "Bea", "Cem", "Dee", "Eli", "Fay", "Gus", "Hal", "Ida", "Jon")
LAST = ("Ash", "Birch", "Cedar", "Elm", "Fir", "Hazel", "Larch", "Maple", "Oak", "Pine")

USERS, ORDERS_PER_USER = 50, 20
AUTHORS, BOOKS_PER_AUTHOR = 20, 10
CUSTOMERS, PURCHASES_PER_CUSTOMER = 5, 10


def text(value: str) -> AttributeValue:
    """A string attribute."""
    return {"S": value}


def name(number: int) -> str:
    """The name of the person with this number."""
    return f"{FIRST[number % len(FIRST)]} {LAST[number // len(FIRST) % len(LAST)]}"


def items() -> Iterator[tuple[str, Item]]:
    """Every item, with the table it belongs to as the rules name it."""
    for user in range(USERS):
        yield "shop", {"PK": text(f"USER#{user}"), "SK": text("PROFILE"), "name": text(name(user))}
        for order in range(ORDERS_PER_USER):
            yield "shop", order_item(user, order)
    for author in range(AUTHORS):
        bio = text(f"{name(author)} has written {BOOKS_PER_AUTHOR} books.")
        yield "authors", {"author_id": text(f"a{author}"), "name": text(name(author)), "bio": bio}
        for book in range(BOOKS_PER_AUTHOR):
            title = text(f"Volume {book + 1}")
            yield "books", {"book_id": text(f"a{author}-{book}"), "author_id": text(f"a{author}"), "title": title}
    for customer in range(CUSTOMERS):
        yield "customers", {"customer_id": text(f"c{customer}"), "name": text(name(customer))}
        for purchase in range(PURCHASES_PER_CUSTOMER):
            yield (
                "purchases",
                {"purchase_id": text(f"c{customer}-{purchase}"), "customer_id": text(f"c{customer}")},
            )


def order_item(user: int, order: int, more: Mapping[str, AttributeValue] | None = None) -> Item:
    """One order of a user."""
    total = {"N": str(10 + (user * 7 + order * 3) % 90)}
    key = {"PK": text(f"USER#{user}"), "SK": text(f"ORDER#{order:04}")}
    return {**key, "total": total, **(more or {})}
