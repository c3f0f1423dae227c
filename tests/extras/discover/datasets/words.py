"""Names, words, dates and noise for generated data sets, all from one seed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Final, TypeVar
from uuid import UUID

T = TypeVar("T")
LISTS: Final = """
Ada Ben Cleo Dev Eva Finn Gia Hugo Ines Jon Kai Lea Max Nia Omar Pia Quin Rosa Sam Tess Uma Vito Wren Yara Zeno
Abel Brandt Costa Dietz Engel Fuchs Gomez Hahn Ito Jansen Klein Lopez Meyer Novak Otto Peters Quast Ruiz Sato Toth Ulrich Vega Wolf Young Zeller
Aachen Bergen Como Delft Essen Faro Ghent Hanau Imola Jena Kiel Lyon Mainz Nantes Oslo Porto Riga Siena Turin Ulm Vigo Worms Ypres Zadar
lamp kettle chair ladder bucket mirror carpet hammer pillow teapot basket clock blanket candle drawer funnel grater helmet
red blue small large round plain heavy light oak steel linen amber folding quiet bright old narrow soft
backup billing export import login mobile network outage printer report search security spam startup sync update upload video
"""
FIRST, LAST, PLACES, THINGS, LOOKS, TOPICS = (line.split() for line in LISTS.split("\n")[1:-1])


class Words:
    """A random source of everything that items hold."""

    def __init__(self, seed: str) -> None:
        self.rng = random.Random(seed)

    def person(self) -> str:
        return f"{self.rng.choice(FIRST)} {self.rng.choice(LAST)}"

    def place(self) -> str:
        return self.rng.choice(PLACES)

    def thing(self) -> str:
        return f"{self.rng.choice(LOOKS)} {self.rng.choice(LOOKS)} {self.rng.choice(THINGS)}"

    def title(self) -> str:
        return " ".join(self.rng.sample(TOPICS, self.rng.randint(2, 5)))

    def text(self, words: int = 8) -> str:
        return " ".join(self.rng.choice(LOOKS + THINGS + TOPICS) for _ in range(words))

    def mail(self, name: str) -> str:
        return f"{name.lower().replace(' ', '.')}{self.rng.randrange(1000)}@example.com"

    def uuid(self) -> str:
        return str(UUID(int=self.rng.getrandbits(128), version=4))

    def ulid(self) -> str:
        return "01" + "".join(self.rng.choice("0123456789ABCDEFGHJKMNPQRSTVWXYZ") for _ in range(14))

    def price(self, most: int = 200) -> Decimal:
        return Decimal(self.rng.randrange(100, most * 100)) / 100

    def one(self, among: Sequence[T]) -> T:
        return self.rng.choice(among)

    def number(self, below: int, least: int = 0) -> int:
        return self.rng.randrange(least, below)

    def yes(self, chance: float = 0.5) -> bool:
        return self.rng.random() < chance

    def time(self, days: int = 700) -> str:
        """A moment of the last years, to the second."""
        moment = datetime(2024, 1, 1, tzinfo=UTC) + timedelta(seconds=self.rng.randrange(days * 86_400))
        return moment.strftime("%Y-%m-%dT%H:%M:%SZ")

    def day(self, days: int = 300) -> str:
        """A day: many items share it."""
        return (datetime(2024, 1, 1, tzinfo=UTC) + timedelta(days=self.rng.randrange(days))).strftime("%Y-%m-%d")

    def many(self, least: int, most: int) -> int:
        """A number of children, few more often than many."""
        return min(most, least + int(self.rng.expovariate(3 / max(most - least, 1))))
