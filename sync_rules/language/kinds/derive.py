"""derive and path, compiled: attributes of an item by itself, and by its parent of the same kind.

A parent is named by the last field of the key; the fields before it are shared within a hierarchy.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any

from pydantic import Discriminator, Field, Tag, WithJsonSchema

from sync_rules.language.compiler import RuleCompiler
from sync_rules.language.kinds.options import Model
from sync_rules.model.errors import UserError
from sync_rules.rules.formula import Formula, joined_formula, parse_formula
from sync_rules.rules.kinds.derive import DeriveRule

CELL_FORMS: dict[type[Any], str] = {int: "form:number", float: "form:fraction", str: "form:text"}


def cell_form(value: Any) -> str | None:
    """Which form a value in a table of a formula is written in."""
    return CELL_FORMS.get(type(value))


Cell = Annotated[
    Annotated[int, Tag("form:number")] | Annotated[float, Tag("form:fraction")] | Annotated[str, Tag("form:text")],
    Discriminator(cell_form),
    WithJsonSchema({"type": ["number", "string"]}),
]


class DeriveForm(Model):
    """derive: an attribute computed from the item it is on, whole or absent."""

    derive: str = Field(description="The attribute that is computed: entity.attribute.", examples=["membership.gsi0"])
    formula: str | None = Field(
        default=None,
        alias="as",
        description="Text with fields in braces, each with formats if need be: {memberRole:rank}-{memberRole}. Absent "
        "as long as one of the fields is.",
        examples=["{state:upper}#{city:upper}#{zip}"],
    )
    join: Annotated[list[str], Field(min_length=1)] | None = Field(
        default=None, description="Instead of `as`: fields, of which those that are there are joined."
    )
    separator: str | None = Field(default=None, description="What stands between the joined fields; default a blank.")
    tables: dict[str, dict[str, Cell]] = Field(
        default={},
        alias="map",
        description="Tables from text to text, to be used as formats. What is in no table has no value.",
        examples=[{"rank": {"LEAD": 500, "CONTRIBUTOR": 400}}],
    )


# ---------------------------------------------------------------- derive
def compile_derive(compiler: RuleCompiler, form: DeriveForm) -> tuple[DeriveRule, ...]:
    """The compiled rule; none, with everything reported, when something is wrong with it."""
    ref = compiler.resolve(form.derive, compiler.at("derive"), attribute=True)
    formula = _formula(compiler, form)
    if ref is None or formula is None or not compiler.sound:
        return ()
    rule = DeriveRule(name=compiler.name, source=ref.entity, target=ref.entity, path=ref.path, formula=formula)
    return (rule,)


def _formula(compiler: RuleCompiler, form: DeriveForm) -> Formula | None:
    if form.formula is None and form.join is None:
        cure = 'say what it is made of: as: "{state}#{city}", or join: [first, last]'
        compiler.add("SR103", compiler.at_key("derive"), "'as' is missing", cure)
        return None
    if form.formula is not None and form.join is not None:
        compiler.add(
            "SR120", compiler.at_key("join"), "`as` and `join` are two ways to say one thing", "keep one of them"
        )
        return None
    for option, given in (("separator", form.separator), ("map", form.tables or None)):
        if given is not None and (form.join is None) == (option == "separator"):
            goes_with = "join" if option == "separator" else "as"
            compiler.add("SR120", compiler.at_key(option), f"`{option}` goes with `{goes_with}`", "remove it")
    try:
        if form.join is not None:
            return joined_formula(tuple(form.join), " " if form.separator is None else form.separator)
        tables = {
            name: {text: str(value) if isinstance(value, str) else plain_number(value) for text, value in rows.items()}
            for name, rows in form.tables.items()
        }
        formula = parse_formula(form.formula or "", tables)
    except UserError as error:
        compiler.add("SR117", compiler.at("join" if form.join is not None else "as"), str(error))
        return None
    for name in tables.keys() - formula.tables.keys():
        compiler.add(
            "SR117", compiler.at_key("map", name), f"no field of {form.formula!r} goes through the table {name!r}"
        )
    return formula


def plain_number(number: float) -> str:
    """A number of the file without an exponent: 0.1 as it is written there, and not as a machine holds it."""
    return format(Decimal(repr(number)), "f")
