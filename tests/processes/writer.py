"""An application: a process that writes items, plainly or by `transact`, and keeps a journal of what was acknowledged.

Each writer has its own users, posts and parts, so that the order of the writes of an item is that of its journal. A
line is written before a request, and another once it was acknowledged.
"""

from __future__ import annotations

import json
import random
import time
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

USERS = 32  # of each writer
ACTIVE_USERS = 3  # at a time: later ones do not repair what was lost of others
PARTS = 12
PAUSES = (0.0, 0.0, 0.02, 0.05, 0.2, 0.6)
TABLES = {"user": "shop", "order": "shop", "post": "posts", "part": "parts", "team": "teams"}
Values = dict[str, Any]


def make_client(url: str, attempts: int = 4) -> Any:
    config = Config(
        retries={"mode": "standard", "total_max_attempts": attempts}, connect_timeout=5, read_timeout=20,
        parameter_validation=False,
    )  # fmt: skip
    keys = {"region_name": "us-east-1", "aws_access_key_id": "local", "aws_secret_access_key": "local"}
    return boto3.client("dynamodb", endpoint_url=url, config=config, **keys)


def s(text: str) -> Values:
    return {"S": text}


def n(number: int) -> Values:
    return {"N": str(number)}


class Writer:
    """Plays short plots around a user. `number` of the process's life makes its values unique."""

    def __init__(self, name: str, life: int, client: Any, seed: int, journal: Any) -> None:
        self._name, self._client, self._journal = name, client, journal
        self._rng = random.Random(f"{seed}/{name}/{life}")
        self._count = life * 100_000
        self._first = self._rng.randrange(USERS)  # of the active users
        self.rules: Any = None  # of a writer by `transact`

    def play(self, count: int) -> None:
        """Play plots. A plot is abandoned at its first failure. The last ones change what most is copied from."""
        renames = [self.rename_team] if self._name == "w0" else []
        plots = (self.edit_user, self.edit_orders, self.edit_posts, self.edit_parts, self.meddle, *renames)
        chosen = self._rng.choices(plots, (5, 5, 6, 3, 4, *(1 for _ in renames)), k=count)
        for plot in (*chosen, self.edit_posts, self.edit_posts, *renames):
            self._first += 1
            try:
                plot(self._choose_user())
            except (ClientError, BotoCoreError):
                continue
            except Exception as error:  # noqa: BLE001 - of `transact`: what it raises is not known to have happened
                print(f"{type(error).__name__}: {error}"[:300], flush=True)

    def _choose_user(self) -> str:
        return f"{self._name}-{(self._first + self._rng.randrange(ACTIVE_USERS)) % USERS:02}"

    # ------------------------------------------------------------ plots
    def edit_user(self, user: str) -> None:
        """Put, rename, delete or put back a user, now and then over copies that are stale."""
        key = {"PK": s(f"USER#{user}"), "SK": s("PROFILE")}
        there = "Item" in self._client.get_item(TableName="shop", Key=key, ConsistentRead=True)
        for _ in range(self._rng.randint(1, 3)):
            what = self._rng.random()
            number = self._next()
            values = {"name": s(f"name {user} {number}"), "version": n(number)}
            if there and what < 0.15:
                self._write("delete", "user", key, {})
                there = False
            elif what < 0.4 or not there:
                stale = {"counted": n(77), "orders": {"SS": ["stale"]}} if self._rng.random() < 0.3 else {}
                mail = {"email": s(f"{user}.{number}")} if self._rng.random() < 0.8 else {}
                self._write("put", "user", key, {**values, **mail}, stale)
                there = True
            else:
                mail = {"email": s(f"{user}.{number}")} if self._rng.random() < 0.3 else {}
                self._write("set", "user", key, {**values, **mail})
            self._pause()

    def edit_orders(self, user: str) -> None:
        for _ in range(self._rng.randint(1, 3)):
            key = {"PK": s(f"USER#{user}"), "SK": s(f"ORDER#{self._rng.randrange(3)}")}
            what = self._rng.random()
            if what < 0.25:
                self._write("delete", "order", key, {})
            else:
                state, total = self._rng.choice(("OPEN", "OPEN", "DONE", "VOID")), self._rng.randint(1, 99)
                stale = {"user_name": s("stale")} if self._rng.random() < 0.3 else {}
                self._write("put", "order", key, {"status": s(state), "total": n(total)}, stale)
            self._pause()
            if self._rng.random() < 0.3:
                self.edit_user(user)

    def edit_posts(self, user: str) -> None:
        """Put, move or delete a post some times, and rename its user when its index may not have it yet."""
        key, owner = {"post_id": s(f"{user}-p{self._rng.randrange(3)}")}, user
        for _ in range(self._rng.randint(1, 3)):
            if self._rng.random() < 0.2:
                self._write("delete", "post", key, {})
            else:
                owner = self._rng.choice((user, self._choose_user()))
                stale = {"author": s("stale")} if self._rng.random() < 0.2 else {}
                values = {"user_id": s(owner), "title": s(f"title {self._next()}")}
                self._write(*self._rng.choice((("put", "post", key, values, stale), ("set", "post", key, values))))
            self._pause()
        if self._rng.random() < 0.6:
            time.sleep(self._rng.uniform(0.1, 2.5))
            number = self._next()
            values = {"name": s(f"name {owner} {number}"), "version": n(number)}
            self._write("set", "user", {"PK": s(f"USER#{owner}"), "SK": s("PROFILE")}, values)
        for _ in range(self._rng.choice((0, 0, 8))):  # faster than names are copied
            self._write("set", "post", key, {"user_id": s(self._choose_user())})
            time.sleep(self._rng.uniform(0.0, 0.3))

    def edit_parts(self, _user: str) -> None:
        for _ in range(self._rng.randint(1, 3)):
            part = self._rng.randrange(PARTS)
            above = {} if part == 0 else {"parent_id": s(f"{self._name}-{self._rng.randrange(part):02}")}
            stale = {"path": s("stale")} if self._rng.random() < 0.3 else {}
            self._write("put", "part", {"part_id": s(f"{self._name}-{part:02}")}, above, stale)
            self._pause()

    def meddle(self, user: str) -> None:
        """Change copies as a careless script does; an item that is not there stays so."""
        user_key = {"PK": s(f"USER#{user}"), "SK": s("PROFILE")}
        table, key, name, value = self._rng.choice(
            (
                ("shop", {"PK": s(f"USER#{user}"), "SK": s(f"ORDER#{self._rng.randrange(3)}")}, "user_name", s("bad")),
                ("posts", {"post_id": s(f"{user}-p{self._rng.randrange(3)}")}, "author", s("bad")),
                ("shop", user_key, "counted", n(99)),
                ("shop", user_key, "orders", {"SS": ["bad", "0"]}),
                ("shop", user_key, "last", s("bad")),
                ("shop", {"PK": s(f"USER#{user}"), "SK": s("STATE#OPEN")}, "orders", n(99)),
                ("parts", {"part_id": s(f"{self._name}-{self._rng.randrange(PARTS):02}")}, "path", s("bad")),
            )
        )
        self._client.update_item(
            TableName=table, Key=key, UpdateExpression="SET #n = :v",
            ConditionExpression=f"attribute_exists({next(iter(key))})",
            ExpressionAttributeNames={"#n": name}, ExpressionAttributeValues={":v": value},
        )  # fmt: skip

    def rename_team(self, _user: str) -> None:
        """Rename a team, whose members are more than one worker handles."""
        key = {"team": s("team 0"), "member": s("TEAM")}
        self._write("set", "team", key, {"name": s(f"team {self._next()}")})
        self._pause()

    # ------------------------------------------------------------ writes
    def _write(self, op: str, entity: str, key: Values, values: Values, stale: Values | None = None) -> None:
        """Make a write with its two lines in the journal. `stale` are values of copies, which are not ours."""
        number, table = self._next(), TABLES[entity]
        self._note({"id": number, "op": op, "table": table, "key": key, "values": values})
        whole = {**key, **values, **(stale or {})}
        if self.rules is not None:
            self._transact(op, entity, key, values)
        elif op == "put":
            self._client.put_item(TableName=table, Item=whole)
        elif op == "delete":
            self._client.delete_item(TableName=table, Key=key)
        else:
            names = {f"#{i}": name for i, name in enumerate(values)}
            marks = {f":{i}": value for i, value in enumerate(values.values())}
            sets = ", ".join(f"#{i} = :{i}" for i in range(len(values)))
            self._client.update_item(
                TableName=table, Key=key, UpdateExpression=f"SET {sets}", ExpressionAttributeNames=names,
                ExpressionAttributeValues=marks,
            )  # fmt: skip
        self._note({"ok": number})

    def _transact(self, op: str, entity: str, key: Values, values: Values) -> None:
        from sync_rules.write import transact  # noqa: PLC0415 - only this writer uses the product

        with transact(self.rules, self._client, raw=True) as tx:
            if op == "put":
                tx.put(entity, {**key, **values})
            elif op == "delete":
                tx.delete(entity, key)
            else:
                tx.update(entity, key, set=values)

    def _note(self, entry: Values) -> None:
        self._journal.write(json.dumps(entry) + "\n")
        self._journal.flush()

    def _next(self) -> int:
        self._count += 1
        return self._count

    def _pause(self) -> None:
        time.sleep(self._rng.choice(PAUSES))


def write(name: str, life: int, url: str, seed: int, plots: int, rules: str) -> None:  # noqa: PLR0917
    """Be a writer, by `transact` where there are rules."""
    client = make_client(url, attempts=1 if rules else 4)
    with Path(f"{name}.journal").open("a") as file:
        file.write("\n")  # after a line that a life before could not finish
        writer = Writer(name, life, client, seed, file)
        if rules:
            from sync_rules.write import Rules  # noqa: PLC0415 - only this writer uses the product

            writer.rules = Rules.load(rules)
        writer.play(plots)
