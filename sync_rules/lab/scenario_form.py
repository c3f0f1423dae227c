"""The shape of scenario files, as pydantic models, and their values: exact numbers, sets, binaries.

A single item, key or reason need not be in a list. Values are plain YAML: numbers are exact, `!set [a, b]` is a set,
`!!binary` is binary, null is NULL, and an unquoted `<absent>` means no value, in `expect` and `set`. A path is `a.b` as
in rules; names in `put` and in data are no paths. `scenario_reader` looks up the names of tables and rules.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from decimal import Decimal
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, Field

from sync_rules.lab.scenario import Marker
from sync_rules.language.kinds.options import Model
from sync_rules.language.yaml_source import Tags, plain_scalar
from sync_rules.model.errors import UserError
from sync_rules.model.python_values import raw_of

SET: Final = "!set"


# ---------------------------------------------------------------- the shape
def as_list(value: Any) -> Any:
    """A single value is a list of one."""
    return value if isinstance(value, list) else [value]


Items = Annotated[list[dict[str, Any]], BeforeValidator(as_list)]
ByTable = dict[str, Items]
Reasons = Annotated[list[str], BeforeValidator(as_list)]


class ChangeForm(Model):
    """An update: which item, what is set and removed, by path."""

    key: dict[str, Any] = Field(description="The item's key attributes.")
    sets: dict[str, Any] = Field(default={}, alias="set", description="Paths and their new values.")
    remove: list[str] = Field(default=[], description="Paths that are removed.")


class ExpectForm(Model):
    """Expectations once the pipeline has come to rest."""

    expect: ByTable = Field(default={}, description="By table: items by their keys, with what they must hold.")
    expect_gone: ByTable = Field(default={}, description="By table: keys of items that must not be there.")
    expect_objects: ByTable = Field(default={}, description="By archive rule: all it has kept so far, in any order.")
    expect_calls: dict[str, Annotated[int, Field(ge=0)]] = Field(
        default={}, description="By call rule: how often it has called its function so far."
    )
    expect_failures: dict[str, Reasons] = Field(default={}, description="By rule: all failures that this step reports.")


class StepForm(ExpectForm):
    """One step: its actions, which happen in the order put, update, delete, expire; then its expectations."""

    say: str = Field(description="What the application does, in a few words.")
    put: ByTable = Field(default={}, description="By table: whole items to write.")
    update: dict[str, Annotated[list[ChangeForm], BeforeValidator(as_list)]] = Field(
        default={}, description="By table: items to change."
    )
    delete: ByTable = Field(default={}, description="By table: keys of items to delete.")
    expire: ByTable = Field(default={}, description="By table: keys of items that Time to Live deletes.")


class ScenarioForm(ExpectForm):
    """A scenario: its rules and data, what must be true of the data alone, then the steps."""

    rules: str | None = Field(default=None, description="The rules file, relative to this file. Default: rules.yaml.")
    data: ByTable | None = Field(default=None, description="What is there at first: in place of data.yaml.")
    steps: list[StepForm] = Field(default=[], description="What the application does, one after the other.")
    answers: dict[str, Any] = Field(default={}, description="In the end: what read.py finds, by question.")


# ---------------------------------------------------------------- values
def exact_scalar(tag: str, text: str) -> Any:
    """Convert a scalar; numbers keep every digit."""
    match tag:
        case "float":
            number = Decimal(text.replace("_", "").replace(".inf", "inf").replace(".nan", "nan"))
            if number.is_finite():
                return number
            raise ValueError
        case "binary":
            return base64.b64decode("".join(text.split()), validate=True)
        case _ if tag.startswith("!"):
            raise ValueError
    return plain_scalar(tag, text)


def exact_list(tag: str, values: list[Any]) -> Any:
    """Convert a list or a set."""
    if tag == SET:
        try:
            found = set(values)
            raw_of(found)
        except (TypeError, UserError) as error:
            message = "expected texts, numbers or binaries, all of one kind and at least one"
            raise ValueError(message) from error
        return found
    if tag.startswith("!"):
        raise ValueError(f"expected {SET}")
    return values


TAGS: Final = Tags(exact_scalar, exact_list, {Marker.ABSENT.value: Marker.ABSENT})


def keys_at(path: Sequence[str | int]) -> list[str]:
    """The possible keys of the map in which a key path of a scenario file ends."""
    form = ScenarioForm if len(path) == 1 else ChangeForm if "update" in path[:-1] else StepForm
    return [one.alias or name for name, one in form.model_fields.items()]
