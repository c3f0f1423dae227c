"""Rules of kind `derive`: an attribute computed from the item it is on."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import Field, Tag, WithJsonSchema

from sync_rules.language import defaults
from sync_rules.language.compiler import AttributeRef, RuleCompiler, list_key_types
from sync_rules.language.kinds.options import Kind, Model, RenamedFrom, choose_by_type, format_plain_number
from sync_rules.model.values import AttributeValue, show_path
from sync_rules.model.where import Where
from sync_rules.rules.expiry import Expiry, is_expiry, parse_expiry
from sync_rules.rules.formula import Formula, Tables, join_fields, parse_formula
from sync_rules.rules.kinds.derive import DeriveRule

Cell = Annotated[
    Annotated[int, Tag("form:number")] | Annotated[float, Tag("form:fraction")] | Annotated[str, Tag("form:text")],
    choose_by_type({int: "form:number", float: "form:fraction", str: "form:text"}, "text or a number"),
    WithJsonSchema({"type": ["number", "string"]}),
]


class CaseForm(Model):
    """The formula for items that satisfy a condition."""

    where: str = Field(description="JMESPath over the item.", examples=["signed"])
    formula: str = Field(alias="as", description="Text with fields in braces, as in the rule's own `as`.")


class DeriveForm(Model):
    """derive: an attribute computed from the item it is on, whole or absent."""

    derive: str = Field(description="The attribute that is computed: entity.attribute.", examples=["membership.gsi0"])
    formula: str | None = Field(
        default=None,
        alias="as",
        description="Text with fields in braces, each with formats if need be: {memberRole:rank}-{memberRole}. Absent "
        "as long as one of the fields is. Or ttl(FIELD, DURATION): the attribute of Time to Live.",
        examples=["{state:upper}#{city:upper}#{zip}", "ttl(created_at, 60d)"],
    )
    join: Annotated[list[str], Field(min_length=1)] | None = Field(
        default=None, description="Instead of `as`: fields to join, without the fields that an item lacks."
    )
    separator: str | None = Field(default=None, description="The text between the joined fields; default a blank.")
    tables: dict[str, dict[str, Cell]] = Field(
        default={},
        alias="map",
        description="Tables from text to text, to be used as formats. What is in no table has no value. The rows true, "
        "false and null are for truth values and NULL too.",
        examples=[{"rank": {"LEAD": 500, "CONTRIBUTOR": 400}}],
    )
    default: Any = Field(
        default=None, description="The value where the formula makes none: any value.", examples=["000-NONE"]
    )
    where: str | None = Field(
        default=None,
        description="JMESPath over the item: where it does not hold, the attribute is absent, or has the default.",
        examples=["signed && approved"],
    )
    cases: Annotated[list[CaseForm], Field(min_length=1)] | None = Field(
        default=None,
        description="Other formulas, each for the items that satisfy its `where`. The first one that holds is used; "
        "`as` is for the other items.",
        examples=[[{"where": "signed", "as": "SIGNED#{signed_at}"}]],
    )
    renamed_from: RenamedFrom = None


def _compile(compiler: RuleCompiler, form: DeriveForm) -> tuple[DeriveRule, ...]:
    ref = compiler.resolve(form.derive, "derive", attribute=True)
    tables = _compile_tables(compiler, form)
    formula = _compile_formula(compiler, form, tables)
    cases = _compile_cases(compiler, form, ref, tables)
    if form.join is None:
        _check_tables(compiler, tables, (formula, *(one for _, one in cases)))
    default, where = None, None if ref is None else compiler.compile_own_where(form.where, ref.entity)
    if ref is not None and formula is not None:
        compiler.own(ref.entity, formula.fields, "as" if form.join is None else "join")
    if ref is not None and defaults.has_default(form):
        default = defaults.compile_default(compiler, form.default, ref.entity, ref.path).get(ref.path)
    if isinstance(formula, Expiry):
        _check_expiry(compiler, form, ref, default)
    if ref is None or formula is None or not compiler.sound:
        return ()
    rule = DeriveRule(
        name=compiler.name,
        source=ref.entity,
        target=ref.entity,
        path=ref.path,
        formula=formula,
        default=default,
        where=where,
        cases=cases,
    )
    return (rule,)


def _compile_cases(
    compiler: RuleCompiler, form: DeriveForm, ref: AttributeRef | None, tables: Tables
) -> tuple[tuple[Where, Formula], ...]:
    """The condition and the formula of each case."""
    if form.cases and (form.join is not None or is_expiry(form.formula or "")):
        compiler.refuse("cases", "`cases` goes with text in `as`", "remove it")
        return ()
    found = []
    cases = form.cases or []
    for number, case in enumerate(cases):
        at = compiler.at("cases", number, "as")
        if is_expiry(case.formula):
            compiler.add("SR120", at, "`ttl` makes no text", "derive the time to live in a rule of its own")
        formula = compiler.parse("SR117", at, parse_formula, case.formula, tables)
        place = compiler.at("cases", number, "where")
        if any(case.where == before.where for before in cases[:number]):
            compiler.add(
                "SR120", place, "a case before has the same `where`: this one is never used", "remove one of them"
            )
        if ref is None:
            continue
        where = compiler.compile_own_where(case.where, ref.entity, "where", place)
        if formula is not None and where is not None:
            compiler.own(ref.entity, formula.fields, "cases", number, "as")
            found.append((where, formula))
    return tuple(found)


def _check_expiry(
    compiler: RuleCompiler, form: DeriveForm, ref: AttributeRef | None, default: AttributeValue | None
) -> None:
    """Report what cannot be an attribute of Time to Live, its default, or a table beside it."""
    if form.tables:
        compiler.refuse("map", "`map` goes with text in `as`", "remove it")
    if default is not None and not re.fullmatch(r"\d+", default.get("N", "")):
        compiler.add("SR106", "default", "expected seconds since 1970", "give it a whole number, or leave it out")
    if ref is None:
        return
    name = show_path(ref.path)
    types = {**{one.name: one.type for one in ref.entity.table.key_attributes}, **list_key_types(ref.entity)}
    if len(ref.path) > 1:
        message = f"{name} is inside of a map: DynamoDB takes an attribute of the item itself"
        compiler.add("SR125", "derive", message, f"derive: {ref.entity.name}.{show_path(ref.path[-1:])}")
    elif types.get(ref.path[0], "N") != "N":
        message = f"keys type {name} as {types[ref.path[0]]}, but Time to Live needs a number (seconds since 1970)"
        cure = f"name an attribute that is in no key, such as derive: {ref.entity.name}.expires_at"
        compiler.add("SR125", "derive", message, cure)


def _compile_formula(compiler: RuleCompiler, form: DeriveForm, tables: Tables) -> Formula | Expiry | None:
    if form.formula is None and form.join is None:
        cure = 'say what it is made of: as: "{state}#{city}", or join: [first, last]'
        compiler.add("SR103", compiler.at_key("derive"), "'as' is missing", cure)
        return None
    if form.formula is not None and form.join is not None:
        compiler.refuse("join", "`as` and `join` are two ways to say one thing", "keep one of them")
        return None
    if form.separator is not None and form.join is None:
        compiler.refuse("separator", "`separator` goes with `join`", "remove it")
    if form.tables and form.join is not None:
        compiler.refuse("map", "`map` goes with `as`", "remove it")
    if form.join is not None:
        separator = " " if form.separator is None else form.separator
        return compiler.parse("SR117", "join", join_fields, tuple(form.join), separator)
    if is_expiry(form.formula or ""):
        return compiler.parse("SR125", "as", parse_expiry, form.formula or "")
    return compiler.parse("SR117", "as", parse_formula, form.formula or "", tables)


def _compile_tables(compiler: RuleCompiler, form: DeriveForm) -> Tables:
    """The tables of `map`, all as texts."""
    return {
        name: {
            text: str(value) if isinstance(value, str) else format_plain_number(compiler, value, "map", name, text)
            for text, value in rows.items()
        }
        for name, rows in form.tables.items()
    }


def _check_tables(compiler: RuleCompiler, tables: Tables, formulas: Iterable[Formula | Expiry | None]) -> None:
    """Report the tables of `map` that no formula uses."""
    known = [formula for formula in formulas if isinstance(formula, Formula)]
    for name in tables.keys() - {name for formula in known for name in formula.tables} if known else ():
        texts = " or ".join(repr(formula.source) for formula in known)
        message = f"no field of {texts} goes through the table {name!r}"
        fields = [field for formula in known for field in formula.fields]
        cure = f"write {{{fields[0]}:{name}}} in `as`, or remove the table" if fields else "remove the table"
        compiler.add("SR117", compiler.at_key("map", name), message, cure)


KIND = Kind("derive", DeriveForm, _compile, alone=True)
