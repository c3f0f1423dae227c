"""Every code of `sync-rules check`: those of errors, and here SR4xx, the warnings.

Law: a code never changes its meaning and is never used again. The documentation is generated from this table.
"""

from __future__ import annotations

from sync_rules.language.codes import ERRORS, Code


def warning(title: str, why: str, cure: str) -> Code:
    """A code that is reported but lets the rules run."""
    return Code(title, why, cure, "warning")


WARNINGS: dict[str, Code] = {
    "SR401": warning(
        "a copied attribute in an index",
        "Every copy then costs a second write, in the index, and all targets of a source heat one index key.",
        "leave the attribute out of the projection unless queries of the index need it",
    ),
    "SR402": warning(
        "no second look behind an index",
        "A target that is attached while the index lags may keep a stale copy until the next verify.",
        "leave settle_seconds at 60",
    ),
    "SR403": warning(
        "a copy into the key of an index",
        "Each copy moves the item within the index: a delete and a put there, and an item without it is not listed.",
        "make sure that the index is meant to follow the copy",
    ),
    "SR404": warning(
        "a strict rule",
        "A transaction costs four times as much, and the application's own writes to a busy source conflict with it.",
        "use strict only where a copy must be exact at the moment it is written",
    ),
    "SR405": warning(
        "an environment variable that is not set here",
        "The rules cannot run without it; this check used a name of its own instead.",
        "set the variable where the rules run, or give a default: ${VAR:-name}",
    ),
    "SR406": warning(
        "an entity that no rule uses",
        "It is harmless, and may be the sign of a rule that was forgotten.",
        "write a rule for it, or remove it",
    ),
    "SR407": warning(
        "a table that no entity uses",
        "It is harmless, and may be the sign of an entity that was forgotten.",
        "declare its entities, or remove it",
    ),
    "SR408": warning(
        "a where that reads the target by its entity's name",
        "Bare names are attributes of the target; before a dot stands the source's entity, or a map of the target.",
        "write status, not order.status",
    ),
    "SR409": warning(
        "a push that lists the targets of all sources",
        "Each change of one source then reads the whole partition and skips what points elsewhere.",
        "add an index whose partition key the link fills",
    ),
    "SR410": warning(
        "a quoted name in a where",
        "In JMESPath double quotes name an attribute; text stands in single quotes.",
        "write status == 'OPEN', not status == \"OPEN\"",
    ),
    "SR411": warning(
        "a name in a where that is nearly the source's",
        "Before a dot, only the source's entity is an item of its own; any other name is a map of the target.",
        "correct the name, if the source is meant",
    ),
    "SR412": warning(
        "a where that reads its item by its entity's name",
        "The condition is about one item, and bare names are its attributes.",
        "write status, not order.status",
    ),
    "SR413": warning(
        "an order that is not said",
        "What comes first, and what is left out first, then depends on the entries' names.",
        "say order: created_at, or -created_at for the newest first",
    ),
    "SR414": warning(
        "a where that reads another item",
        "Only the `where` of copy sees two items; here an attribute that the item does not have is false for ever.",
        "copy what decides onto the item by a rule of its own, and read that; no harm if it is a map of the item",
    ),
    "SR415": warning(
        "an index by what stands only inside a key",
        "The index holds only items that have it as an attribute too; all others are not found, nor missed by verify.",
        "let your application write the attribute, and say so in the entity's key",
    ),
}

CODES: dict[str, Code] = {**ERRORS, **WARNINGS}
