"""Finds what is wrong with the syntax tree of a condition before any item is read.

Functions, the number of their arguments and the types that they accept are those of JMESPath. A comparison is refused
where no item could make its sides match; a type that is not known matches any.
https://jmespath.org/specification.html
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Final, NamedTuple, cast

import jmespath
from jmespath.functions import Functions
from jmespath.lexer import Lexer

from sync_rules.model.numbers import SPELLING

Node = dict[str, Any]
TYPES: Final = ("array", "boolean", "null", "number", "object", "string")  # all that type() gives
Types = frozenset[str] | None  # of JMESPath; None: any

NUMBER, TEXT, YES_NO, NOTHING = "number", "string", "boolean", "null"
ONLY_TEXT: Final = frozenset({TEXT})
ORDERED: Final = frozenset({NUMBER, TEXT})  # what < and > compare; texts by code point, such as dates
SAID: Final = {TEXT: "a text", NUMBER: "a number", YES_NO: "true or false", "array": "a list", "object": "a map",
               NOTHING: "null", "expref": "an expression (&name)"}  # fmt: skip
OF_DYNAMODB: Final = {"S": TEXT, "N": NUMBER, "B": "binary"}
RETURNS: Final[Mapping[str, Types]] = {
    **dict.fromkeys(("abs", "ceil", "floor", "length", "sum"), frozenset({NUMBER})),
    **dict.fromkeys(("avg", "to_number"), frozenset({NUMBER, NOTHING})),
    **dict.fromkeys(("contains", "ends_with", "starts_with"), frozenset({YES_NO})),
    **dict.fromkeys(("join", "to_string", "type"), frozenset({TEXT})),
    **dict.fromkeys(("keys", "map", "sort", "sort_by", "to_array", "values"), frozenset({"array"})),
    **dict.fromkeys(("max", "min"), frozenset({NUMBER, TEXT, NOTHING})),
    "merge": frozenset({"object"}),
    "reverse": frozenset({"array", TEXT}),
}
PROJECTIONS: Final = ("projection", "filter_projection", "value_projection", "flatten", "slice")
OF_NODES: Final[Mapping[str, Types]] = {
    **dict.fromkeys((*PROJECTIONS, "multi_select_list"), frozenset({"array", NOTHING})),
    "multi_select_dict": frozenset({"object", NOTHING}),
    "not_expression": frozenset({YES_NO}),
    "expref": frozenset({"expref"}),
}
OTHERS: Final = {"size": "length", "len": "length", "count": "length", "str": "to_string", "int": "to_number",
                 "begins_with": "starts_with", "startswith": "starts_with", "endswith": "ends_with"}  # fmt: skip
CONSTANT: Final = re.compile(r"[A-Z][A-Z0-9_]+")  # as values of a state are written, and hardly ever attributes
NEEDS_NO_QUOTES: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
SEARCHES: Final = ("contains", "starts_with", "ends_with")
EXISTENCE: Final = {
    "attribute_exists": "name the attribute alone: `where: note` holds where it is there and not empty",
    "attribute_not_exists": "negate the attribute: `!note` holds where it is missing or empty",
}
CONSTANTS: Final = {"true": "true", "false": "false", "null": "null", "none": "null", "nil": "null"}

# ---------------------------------------------------------------- the most common mistakes in what is not JMESPath
OUTSIDE_QUOTES = r"'[^']*'|`[^`]*`|\"[^\"]*\""
SINGLE_EQUALS = r"(?<![=!<>])=(?!=)"
BARE_NUMBER = r"(?:[=<>]\s*-?\d)|(?:(?<![\w.\[])\d+\s*[=<>!])"
SQL_WORD = r"(?i)(?<!-)\b(and|or|not)\b(?!-)"
SQL_IN = r"(?i)\w\s+in\b(?!-)"
WITH_HYPHEN = r"[A-Za-z_]\w*(?:-[A-Za-z_]\w*)+"


def suggest_cure(text: str) -> str:
    """Suggest a cure for the most common mistakes in a text that is not JMESPath; "" if none is found."""
    if not text.strip():
        return "remove the empty condition, or write one, such as status == 'OPEN'"
    bare = re.sub(OUTSIDE_QUOTES, " ", text)
    cures = []
    if re.search(SINGLE_EQUALS, bare):
        cures.append("equals is ==, and text needs single quotes: status == 'OPEN'")
    if re.search(BARE_NUMBER, bare):
        cures.append("write a number in backticks, such as total > `100`")
    if re.search(SQL_WORD, bare):
        cures.append("and, or, not are &&, ||, !")
    if "<>" in bare:
        cures.append("`<>` is !=")
    if re.search(SQL_IN, bare):
        cures.append("""`in` is contains(), such as contains(`["OPEN", "PAID"]`, status)""")
    if names := dict.fromkeys(re.findall(WITH_HYPHEN, bare)):
        cures.append(f"a name that has - goes in double quotes: {', '.join(map(json.dumps, names))}")
    return f"in JMESPath {'; '.join(cures)}" if cures else ""


def count_levels(tree: Node) -> int:
    levels, row = 0, [tree]
    while row:
        levels += 1
        row = [child for node in row for child in node["children"] if isinstance(child, dict)]
    return levels


class Mistake(NamedTuple):
    """A mistake of a condition, and its cure."""

    found: str
    cure: str


def find_mistake(tree: Node, types: Mapping[str, str]) -> Mistake | None:
    """Find the first mistake of a condition; None if there is none. `types`: DynamoDB types by attribute name."""
    known = {name: frozenset({OF_DYNAMODB[kind]}) for name, kind in types.items()}
    return next(_list_mistakes(tree, known), None)


Known = Mapping[str, frozenset[str]]


def _list_mistakes(node: Node, known: Known) -> Iterator[Mistake]:
    if node["type"] == "function_expression":
        yield from _list_call_mistakes(node, known)
    elif node["type"] == "comparator":
        yield from _list_comparison_mistakes(node, known)
    elif node["type"] == "slice" and node["children"][2] == 0:
        yield Mistake("the step of a slice cannot be 0", "leave the step out")
    for at, child in enumerate(list_children(node)):
        yield from _list_mistakes(child, {} if reads_result(node, at) else known)


def list_children(node: Node) -> list[Node]:
    return [child for child in node["children"] if isinstance(child, dict)]


def reads_result(node: Node, at: int) -> bool:
    """True if a child of a node reads the result of another expression, and not the item."""
    later = node["type"] in ("subexpression", "index_expression", "pipe", *PROJECTIONS)
    return node["type"] == "expref" or (later and at > 0)


# ---------------------------------------------------------------- functions
def _list_call_mistakes(node: Node, known: Known) -> Iterator[Mistake]:
    name, given = node["value"], list_children(node)
    spec = Functions.FUNCTION_TABLE.get(name)
    if spec is None:
        yield _explain_unknown_function(name)
        return
    wanted = spec["signature"]
    more = wanted[-1].get("variadic", False)
    if len(given) < len(wanted) or (len(given) > len(wanted) and not more):
        count = f"{'at least ' if more else ''}{len(wanted)} argument{'s' if len(wanted) > 1 else ''}"
        yield Mistake(f"{name}() takes {count}, and here it has {len(given)}", f"give it {count}")
        return
    for one, argument in zip(wanted, given, strict=False):
        accepted = [kind.partition("-") for kind in one["types"]]
        found = _infer_types(argument, known)
        if accepted and found is not None and not found & {kind for kind, _, _ in accepted}:
            takes = _format_types(dict.fromkeys(kind for kind, _, _ in accepted))
            what = f"{_format_node(argument, 'the argument')} is {_format_types(sorted(found))}"
            yield Mistake(f"{name}() takes {takes}, and {what}", f"give it {takes}")
        elif one["types"] == ["expref"] and argument["type"] != "expref":
            yield Mistake(f"{name}() takes {SAID['expref']}", f"write &{_format_node(argument)}")
        elif argument["type"] == "literal" and isinstance(argument["value"], list):
            inner = {kind for _, _, kind in accepted if kind}
            odd = [each for each in argument["value"] if inner and _infer_type(each) not in inner]
            if odd:
                takes = f"a list of {' or of '.join(sorted(inner))}s"
                yield Mistake(f"{name}() takes {takes}, and {_format_node(argument)} is not one", f"give it {takes}")
    if name == "contains":
        text, sought = (_infer_types(argument, known) for argument in given)
        if text == ONLY_TEXT and sought is not None and TEXT not in sought:
            what = f"{_format_node(given[1])} is {_format_types(sorted(sought))}"
            yield Mistake(f"{_format_node(given[0])} is a text and {what}: it contains texts", "search for a text")


def _explain_unknown_function(name: str) -> Mistake:
    found = f"{name}() is not a function of JMESPath"
    if name in EXISTENCE:
        return Mistake(found, EXISTENCE[name])
    folded = name.lower()
    close = OTHERS.get(folded) or next(iter(get_close_matches(folded, Functions.FUNCTION_TABLE, n=1)), None)
    known = ", ".join(sorted(Functions.FUNCTION_TABLE))
    return Mistake(found, f"write {close}()" if close else f"use one of its functions: {known}")


# ---------------------------------------------------------------- comparisons
def _list_comparison_mistakes(node: Node, known: Known) -> Iterator[Mistake]:
    sides = list_children(node)
    equality = node["value"] in ("eq", "ne")
    for side in sides:
        if side["type"] == "field" and side["value"].lower() in CONSTANTS and side["value"] not in known:
            meant = CONSTANTS[side["value"].lower()]
            yield Mistake(f"{side['value']} without backticks is an attribute of that name", f"write `{meant}`")
            return
    left, right = (_infer_types(side, known) for side in sides)
    always = "always true" if node["value"] == "ne" else "never true"
    if left is not None and right is not None and not left & right:
        stand = [
            f"{_format_node(side)} is {_format_types(sorted(kinds))}"
            for side, kinds in zip(sides, (left, right), strict=True)
        ]
        yield Mistake(f"{' and '.join(stand)}, so the comparison is {always}", _suggest_types(sides, (left, right)))
        return
    for side, name in (sides, sides[::-1]) if equality else ():
        calls_type = side["type"] == "function_expression" and side["value"] == "type"
        if calls_type and name["type"] == "literal" and name["value"] not in TYPES:
            close = next(iter(get_close_matches(str(name["value"]).lower(), TYPES, n=1, cutoff=0.5)), None)
            cure = f"write '{close}'" if close else f"write one of {', '.join(map(repr, TYPES))}"
            yield Mistake(f"type() is never {_format_node(name)}, so the comparison is {always}", cure)
            return
    for side, own, other in ((sides[0], left, right), (sides[1], right, left)) if not equality else ():
        if own is not None and not own & ORDERED:
            what = f"{_format_node(side)} is {_format_types(sorted(own))}, and only numbers and texts have an order"
            yield Mistake(what, "compare it with == or !=, or compare something else")
            return
        if own == ONLY_TEXT and other != ONLY_TEXT and side["type"] == "literal" and SPELLING.fullmatch(side["value"]):
            number = side["value"]
            cure = f"write `{number}`; for an attribute that holds digits as text, to_number(name) and `{number}`"
            yield Mistake(f"'{number}' is a text, and no number is greater or less than a text", cure)
            return


def _suggest_types(sides: list[Node], types: tuple[Types, Types]) -> str:
    if all(side["type"] == "literal" for side in sides):
        return "compare an attribute, such as status == 'OPEN': these are two constants"
    for side, other in ((sides[0], types[1]), (sides[1], types[0])):
        if side["type"] == "literal" and other is not None:
            if isinstance(side["value"], str) and NUMBER in other and SPELLING.fullmatch(side["value"]):
                return f"write `{side['value']}`"
            if _infer_type(side["value"]) in (NUMBER, YES_NO) and TEXT in other:
                return f"write '{json.dumps(side['value'])}'"
    return "compare things of one type"


# ---------------------------------------------------------------- names that may be meant as texts
def list_bare_words(text: str) -> Iterator[tuple[str, Node]]:
    """List the attribute names in comparisons without a literal, each with the other side. Of two names it is the right
    one, unless the left name is written like a constant.
    """
    row: list[Node] = [cast("Node", jmespath.compile(text).parsed)]
    while row:
        node = row.pop()
        row += list_children(node)
        sides: list[Node] = []
        if node["type"] == "comparator" or (node["type"] == "function_expression" and node["value"] in SEARCHES):
            sides = list_children(node)
        if len(sides) == 2 and not any(side["type"] == "literal" for side in sides):  # noqa: PLR2004
            left, right = (
                sides if node["type"] == "function_expression" or not _is_constant(sides[0]) else reversed(sides)
            )
            if right["type"] == "field":
                yield right["value"], left


def _is_constant(node: Node) -> bool:
    return node["type"] == "field" and CONSTANT.fullmatch(node["value"]) is not None


def list_quoted_names(text: str) -> list[str]:
    return [token["value"] for token in Lexer().tokenize(text) if token["type"] == "quoted_identifier"]


def suggest_text_or_name(name: str) -> str:
    """Suggest to write a bare word as a text, or so that it is surely an attribute."""
    text = name.replace("'", "\\'")
    attribute = name if NEEDS_NO_QUOTES.fullmatch(name) else json.dumps(name, ensure_ascii=False)
    return f"write '{text}' for the text; if there is such an attribute, write not_null({attribute})"


# ---------------------------------------------------------------- types
def _infer_types(node: Node, known: Known) -> Types:
    """The types that an expression can have; None: any."""
    kind = node["type"]
    match kind:
        case "literal":
            return frozenset({_infer_type(node["value"])})
        case "field":
            return known.get(node["value"])
        case "comparator":
            return frozenset({YES_NO} if node["value"] in ("eq", "ne") else {YES_NO, NOTHING})
        case "function_expression":
            return RETURNS.get(node["value"])
        case "or_expression" | "and_expression":
            left, right = (_infer_types(child, known) for child in list_children(node))
            return None if left is None or right is None else left | right
        case "subexpression" | "pipe":
            return _infer_types(list_children(node)[-1], {})
    return OF_NODES.get(kind)


def _infer_type(value: object) -> str:
    match value:
        case None:
            return NOTHING
        case bool():
            return YES_NO
        case int() | float():
            return NUMBER
        case str():
            return TEXT
        case list():
            return "array"
    return "object"


def _format_types(types: Any) -> str:
    return " or ".join(SAID.get(kind, kind) for kind in types)


def _format_node(node: Node, short: str = "one side") -> str:
    """An expression in short, as the rules file spells it."""
    if node["type"] == "literal":
        return f"'{node['value']}'" if isinstance(node["value"], str) else f"`{json.dumps(node['value'])}`"
    if node["type"] == "field":
        return str(node["value"])
    if node["type"] == "function_expression":
        return f"{node['value']}()"
    return short if node["type"] != "subexpression" else ".".join(map(_format_node, list_children(node)))
