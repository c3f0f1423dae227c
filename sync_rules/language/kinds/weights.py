"""`weights` of count: how much each item counts, by the value of one attribute.

The short form names texts and numbers; other values count 0. The form with `values` has a default, and may name truth
values and NULL.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Discriminator, Field, Tag, WithJsonSchema

from sync_rules.language.compiler import RuleCompiler
from sync_rules.language.kinds.options import Model, choose_by_type, format_plain_number, read_exact_number
from sync_rules.model.entities import Entity
from sync_rules.model.numbers import is_holdable, normalize_number
from sync_rules.rules.kinds.counted_rule import WORDS, Weights

# An integer is a number too: of pydantic's own `oneOf` it would be two, and editors would call it wrong.
Weight = Annotated[
    Annotated[int, Tag("form:number")] | Annotated[float, Tag("form:fraction")],
    choose_by_type({int: "form:number", float: "form:fraction"}, "a number"),
    WithJsonSchema({"type": "number"}),
]
ByField = Annotated[
    dict[str, Annotated[dict[str, Weight], Field(min_length=1)]], Field(min_length=1, max_length=1)
]  # one attribute, and the weight of each of its values


class WeightsForm(Model):
    """weights: how much each item counts by the value of one attribute, and how much all others count."""

    values: ByField = Field(
        description="{attribute: {value: weight}}. A value may be true, false or null too.",
        examples=[{"featured": {"true": 3, "null": 0}}],
    )
    default: Weight = Field(
        default=0, description="How much an item counts whose value is not named, or that has no such attribute."
    )


def _choose_weights_form(given: Any) -> str:
    """Tell the two forms of `weights` apart: an attribute may be called `values` or `default` as well."""
    if not isinstance(given, dict):
        return "form:short"
    values = given.get("values")
    whole = isinstance(values, dict) and any(isinstance(inner, dict) for inner in values.values())
    return "form:whole" if whole or ("default" in given and not isinstance(given["default"], dict)) else "form:short"


WeightsOption = Annotated[
    Annotated[
        Annotated[ByField, Tag("form:short")] | Annotated[WeightsForm, Tag("form:whole")],
        Discriminator(_choose_weights_form),
    ]
    | None,
    Field(
        description="How much each counts, by the value of one attribute; a value that is not named counts nothing. "
        "With {values: ..., default: 1} it counts the default, and true, false and null are values too.",
        examples=[
            {"memberRole": {"LEAD": 3, "CONTRIBUTOR": 1}},
            {"values": {"featured": {"true": 3, "null": 0}}, "default": 1},
        ],
    ),
]


def compile_weights(
    compiler: RuleCompiler, given: dict[str, dict[str, int | float]] | WeightsForm | None, child: Entity | None
) -> Weights | None:
    """Compile the weights of a rule. Return None without the option, or after a reported problem."""
    if given is None:
        return None
    form = given if isinstance(given, WeightsForm) else WeightsForm(values=given)
    short, at = form is not given, ("weights",) if form is not given else ("weights", "values")
    ((attribute, values),) = form.values.items()
    path = compiler.path(attribute, compiler.at_key(*at, attribute))
    compiler.own(child, form.values, *at)
    _check_number(compiler, ("weights", "default"), form.default)
    for text, value in values.items():
        _check_number(compiler, (*at, attribute, text), value)
    words = [] if short else [word for word in WORDS if word in values]
    for text in values:
        if text not in words and (meant := _suggest_other_value(text)):
            message = f"{text} is the text {text!r} here"
            compiler.add("SR418", compiler.at_key(*at, attribute, text), message, meant)
    if path is None or not compiler.sound:
        return None
    texts = {text: format_plain_number(compiler, value, *at, attribute, text) for text, value in values.items()}
    others = format_plain_number(compiler, form.default, "weights", "default")
    return Weights(path, texts, {word: texts[word] for word in words}, others)


def _suggest_other_value(text: str) -> str:
    """The cure for a word that is a text here, but another value in YAML; "" for other words."""
    word = "null" if text == "~" else text.lower()
    if word in WORDS:
        return f"if the attribute holds truth values or NULL, write weights: {{values: {{ATTRIBUTE: {{{word}: ...}}}}}}"
    number = normalize_number(text)
    return "" if number in (None, text) else f"for the number write {number}"


def _check_number(compiler: RuleCompiler, at: tuple[str, ...], value: float) -> None:
    number = read_exact_number(compiler, value, *at)
    if not number.is_finite() or not is_holdable(number):
        message = f"expected a number that DynamoDB can hold, found {number}"
        compiler.add("SR106", compiler.at(*at), message, "write a number of at most 38 digits")
