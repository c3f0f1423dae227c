"""stamp: one text on an attribute of every item of an entity. The whole kind in one file, and silent where it may be.

`monkeypatch.setitem(registry.KINDS, KIND.name, KIND)` is all that makes it known.
"""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import Field

from sync_rules.language.kinds.options import Kind, Model
from sync_rules.model.values import Path
from sync_rules.rules.families import TargetRule
from sync_rules.rules.rule import Node

RULES = """
tables:
  shop: {key: {PK: S, SK: S}}
entities:
  order: {table: shop, key: {PK: "ORDER#{order_id}", SK: ORDER}}
rules:
  stamped: stamp order into order.source
  stamped-more: {stamp: order, into: order.version, text: v2}
"""


@dataclass(frozen=True, eq=False, kw_only=True)
class StampRule(TargetRule):
    """Source and target are one item; `path` holds `text`."""

    path: Path
    text: str
    kind = "stamp"
    deciding_paths = ()

    @property
    def copies(self):
        return (self.path,)

    @property
    def watches_in_source(self):
        return ()

    def nodes(self):
        return (Node(self, (self.target, self.path), ()),)

    def body(self):
        return {"path": self.path, "text": self.text}

    def compute_values(self, sources, target):
        return {self.path: {"S": self.text}}


class StampForm(Model):
    """stamp: one text on every item."""

    stamp: str = Field(description="The entity.", examples=["order"])
    into: str = Field(description="The attribute.", examples=["order.source"])
    text: str = Field(default="sync-rules", description="The text.")


def compile_stamp(compiler, form):
    entity, into = compiler.entity(form.stamp, "stamp"), compiler.into(form.into)
    if entity is None or into is None:
        return ()
    return (StampRule(name=compiler.name, source=entity, target=entity, path=into.path, text=form.text),)


KIND = Kind(
    "stamp",
    StampForm,
    compile_stamp,
    sentence="stamp ENTITY into ENTITY.ATTRIBUTE",
    missing={"into": "name the attribute: into: order.source"},
)
