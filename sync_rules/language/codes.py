"""The codes of problems in a rules file: what each is called, why it is a problem, and what cures it.

SR0xx the file, SR1xx names and shapes, SR2xx links and lookups, SR3xx writers, cycles and keys, SR4xx warnings.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Code:
    """One kind of problem."""

    title: str
    why: str
    cure: str


CODES: dict[str, Code] = {
    # ------------------------------------------------------------ the file
    "SR001": Code(
        "not YAML",
        "The file is read as one YAML 1.2 document.",
        "mend the syntax at the place shown; quote text that holds braces, colons or #",
    ),
    "SR002": Code(
        "the same key twice",
        "Of two equal keys one would silently win.",
        "rename or remove one of them",
    ),
    "SR003": Code(
        "too much YAML",
        "Aliases can stand for any number of values, or for themselves.",
        "write the values out, or split the rules among several files",
    ),
    "SR004": Code(
        "a key that is not a word",
        "Names of tables, entities, rules and attributes are text.",
        'quote a template that is meant as text, such as "{user_id}"',
    ),
    "SR005": Code(
        "an environment variable that is not set",
        "A table's or a bucket's name is taken from it.",
        "set the variable, or give a default: ${VAR:-name}",
    ),
    "SR006": Code(
        "not a name of a DynamoDB table",
        "DynamoDB takes 3 to 255 letters, digits, _ - and . (or a table's ARN).",
        "give a name that DynamoDB takes",
    ),
    "SR007": Code(
        "two tables of one name in DynamoDB",
        "A stream record could not be told to which of them it belongs.",
        "use one table with several entities, or give each table its own name",
    ),
    # ------------------------------------------------------------ names and shapes
    "SR101": Code("an unknown key", "A misspelled key would silently do nothing.", "remove it or correct its spelling"),
    "SR102": Code("an unknown name", "It must be declared in this file.", "declare it or correct its spelling"),
    "SR103": Code("a missing key", "There is no sensible default for it.", "add it"),
    "SR104": Code("a value of the wrong type", "See what was expected.", "write it in the form shown"),
    "SR105": Code(
        "not a name",
        "Names stand in paths, metrics, log lines and alarms.",
        "start with a letter; then letters, digits, _ and -, at most 64 in all",
    ),
    "SR106": Code("a value out of its range", "See what is allowed.", "use one of the values shown"),
    "SR107": Code(
        "not a sentence",
        "The short form of a rule is read word by word.",
        "copy ENTITY.ATTRIBUTE into ENTITY.ATTRIBUTE, count ENTITY into ENTITY.ATTRIBUTE, and the like",
    ),
    "SR108": Code(
        "not a path",
        "A path names an entity, then attributes and map keys, joined by dots.",
        'write entity.attribute; quote a name that holds a dot: book."full.name"',
    ),
    "SR109": Code(
        "not a key template",
        "A template must parse every key in one way only.",
        "put text between two fields, and balance the braces",
    ),
    "SR110": Code(
        "a composite template for a number or binary key",
        "Only a string can hold more than one field's value.",
        "use exactly one field, such as {order_no}",
    ),
    # SR111 was a kind of rule that a version did not have yet; it is not used again
    "SR112": Code("an unknown kind of rule", "A rule starts with what it does.", "use one of the kinds shown"),
    "SR113": Code(
        "sources of several entities in one rule",
        "One rule reads one source and writes one target.",
        "write one rule for each source entity",
    ),
    "SR114": Code(
        "not a condition",
        "`where` is JMESPath over named attributes, so that it is known which changes to watch.",
        "name the attributes that decide, such as status == 'OPEN'",
    ),
    "SR115": Code(
        "one attribute with two key types",
        "In DynamoDB a key attribute has one type, in the table and in all its indexes.",
        "give it the same type everywhere",
    ),
    "SR116": Code(
        "a snapshot that follows deletes",
        "A snapshot is what was true once; it does not follow its source.",
        "drop on_delete, or use mode: live",
    ),
    "SR117": Code(
        "not a formula",
        "A derived attribute is text with fields in braces, and each format must be known.",
        "{field} or {field:format}, with formats upper, lower, nospace, pad(8), date(%Y-%m), shard(10) or one of map",
    ),
    "SR118": Code("not a place in S3", "An archive goes to a bucket and a prefix.", "s3://BUCKET/PREFIX/"),
    "SR119": Code(
        "not a function",
        "A call imports a module and calls a function of it.",
        "write module.function, such as mypkg.notify",
    ),
    "SR120": Code(
        "options that do not go together",
        "One of them would silently do nothing.",
        "keep the one that is meant",
    ),
    # ------------------------------------------------------------ links and finding
    "SR201": Code(
        "no way to find the targets",
        "When a source changes, its targets are listed by one Query; a scan would cost the whole table each time.",
        "add an index whose partition key the link fills, or link by other fields",
    ),
    "SR202": Code(
        "a link of an unknown field",
        "A link says where a target carries the fields that name its source.",
        "use the fields of the source's key templates",
    ),
    "SR203": Code(
        "via an index that the link does not fill",
        "A Query needs every attribute of the partition key.",
        "choose another index, or drop via",
    ),
    "SR204": Code(
        "a link whose types can never match",
        "Binary values are not turned into text or numbers.",
        "give both key attributes the same type",
    ),
    "SR205": Code(
        "strict within one item",
        "A transaction may not check and update the same item; within one item a guard is exact already.",
        "drop strict",
    ),
    "SR206": Code(
        "a recount through an index",
        "An index lags about as long as the record that asks for a recount: what was just written would be missed.",
        "use mode: ledger; or keep the items under their parent in the base table's key",
    ),
    "SR207": Code(
        "an element that does not name its edge",
        "Whoever looks at a node must be able to tell from an element which edge to ask.",
        "let `as` hold every field of the edge's key that the node's key does not have",
    ),
    "SR208": Code(
        "an entry that does not name its child",
        "Two children of one parent could not be told apart.",
        "let `by` hold every field of the child's key that its parent does not have",
    ),
    "SR209": Code(
        "a mirror's key that its source cannot fill",
        "Each item has a mirror of its own, whose key is made from the item's fields.",
        "let the key of the mirror's entity hold fields of the source",
    ),
    "SR210": Code(
        "no table for the ledger",
        "Counts are exact because each item's share is booked in a table of the pipeline's own.",
        "declare a table with key {PK: S, SK: S}, or use mode: recount for small groups",
    ),
    "SR211": Code(
        "a ledger table of the wrong key",
        "The books name items of any table in two strings.",
        "give it a partition key and a sort key of type S",
    ),
    "SR212": Code(
        "a ledger table that holds entities",
        "It is the pipeline's own: whoever else writes there breaks the books.",
        "declare a table for the ledger alone",
    ),
    "SR213": Code(
        "items that a ledger cannot name",
        "The books name items by the text of their keys.",
        "use mode: recount, or another key",
    ),
    "SR214": Code(
        "a path of items without an id of their own",
        "A path is made of ids; the parent is named by the last field of the key, in an attribute outside it.",
        "give the entity a key with a field, and name the attribute with the parent's id",
    ),
    "SR215": Code(
        "a list through an index",
        "An index lags: a list, which does not name its entries, would lose the newest of them for a minute.",
        "use as: map; or list the children by the key of their own table",
    ),
    "SR216": Code(
        "a text of a binary field",
        "Entries and elements are called by text, and a binary value has none.",
        "use fields of type S or N",
    ),
    # ------------------------------------------------------------ writers, cycles and keys
    "SR301": Code(
        "two writers of one attribute",
        "Each would undo the other's write for ever.",
        "let one rule write it; a path and a path inside it are the same attribute",
    ),
    "SR302": Code(
        "a copy into a table's key",
        "The key of an item cannot change; another key is another item.",
        "copy into an attribute that is not part of the table's key",
    ),
    "SR303": Code(
        "a rule that writes its own link",
        "The copy would decide which source it is copied from.",
        "copy into another attribute",
    ),
    "SR304": Code(
        "a rule that writes what its own where reads",
        "The copy would decide whether it is made.",
        "copy into another attribute, or decide by another one",
    ),
    "SR305": Code(
        "a cycle of rules",
        "Each copy would cause the next one, for ever.",
        "let one of the attributes be the truth and drop the rule that writes it",
    ),
    "SR306": Code(
        "entities that cannot be told apart",
        "An item's key must be of one entity only; the rules of the other would never see it.",
        "start the templates of one key attribute with different text, such as USER# and ORDER#",
    ),
    "SR307": Code(
        "a delete that asks its source",
        "When a source was deleted, nothing can be read of it any more: the rule could never tell what to delete.",
        "let `where` read the target only, or choose on_delete: keep or clear",
    ),
    "SR308": Code(
        "an embed without a limit",
        "An item holds 400 KB at most: a parent with too many children could not be written any more, by anybody.",
        "limit: {items: 20}, or limit: {bytes: 100KB}",
    ),
    "SR309": Code(
        "a set inside a map",
        "Elements are added without reading the item, and no map can be made on the way.",
        "collect into a top-level attribute",
    ),
    "SR310": Code(
        "a mirror into its own entity",
        "Each mirror would be mirrored again, for ever.",
        "declare an entity with a key of its own for the mirrored items",
    ),
    # ------------------------------------------------------------ warnings, which let the rules run
    "SR401": Code(
        "a copied attribute in an index",
        "Every copy then costs a second write, in the index, and all targets of a source heat one index key.",
        "leave the attribute out of the projection unless queries of the index need it",
    ),
    "SR402": Code(
        "no second look behind an index",
        "A target that is attached while the index lags may keep a stale copy until the next verify.",
        "leave settle_seconds at 60",
    ),
    "SR403": Code(
        "a copy into the key of an index",
        "Each copy moves the item within the index: a delete and a put there, and an item without it is not listed.",
        "make sure that the index is meant to follow the copy",
    ),
    "SR404": Code(
        "a strict rule",
        "A transaction costs four times as much, and the application's own writes to a busy source conflict with it.",
        "use strict only where a copy must be exact at the moment it is written",
    ),
    "SR405": Code(
        "an environment variable that is not set here",
        "The rules cannot run without it; this check used a name of its own instead.",
        "set the variable where the rules run, or give a default: ${VAR:-name}",
    ),
    "SR406": Code(
        "an entity that no rule uses",
        "It is harmless, and may be the sign of a rule that was forgotten.",
        "write a rule for it, or remove it",
    ),
    "SR407": Code(
        "a table that no entity uses",
        "It is harmless, and may be the sign of an entity that was forgotten.",
        "declare its entities, or remove it",
    ),
    "SR408": Code(
        "a where that reads the target by its entity's name",
        "Bare names are attributes of the target; before a dot stands the source's entity, or a map of the target.",
        "write status, not order.status",
    ),
    "SR409": Code(
        "a push that lists the targets of all sources",
        "Each change of one source then reads the whole partition and skips what points elsewhere.",
        "add an index whose partition key the link fills",
    ),
    "SR410": Code(
        "a quoted name in a where",
        "In JMESPath double quotes name an attribute; text stands in single quotes.",
        "write status == 'OPEN', not status == \"OPEN\"",
    ),
    "SR411": Code(
        "a name in a where that is nearly the source's",
        "Before a dot, only the source's entity is an item of its own; any other name is a map of the target.",
        "correct the name, if the source is meant",
    ),
    "SR412": Code(
        "a where that reads its item by its entity's name",
        "The condition is about one item, and bare names are its attributes.",
        "write status, not order.status",
    ),
    "SR413": Code(
        "an order that is not said",
        "What comes first, and what is left out first, then depends on the entries' names.",
        "say order: created_at, or -created_at for the newest first",
    ),
    "SR414": Code(
        "a where that reads another item",
        "Only the `where` of copy sees two items; here an attribute that the item does not have is false for ever.",
        "copy what decides onto the item by a rule of its own, and read that; no harm if it is a map of the item",
    ),
    "SR415": Code(
        "an index by what stands only inside a key",
        "The index holds only items that have it as an attribute too; all others are not found, nor missed by verify.",
        "let your application write the attribute, and say so in the entity's key",
    ),
}
