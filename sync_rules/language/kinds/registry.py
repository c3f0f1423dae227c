"""The shape of the rules that make one thing of many: embed, collect, count, sum, min and max; and of any rule at all.

Law: shape only, as in `forms`. Each says by `link` how its items point to the one they are gathered on.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Discriminator, Field, Tag

from sync_rules.language.kinds.archive import ArchiveForm
from sync_rules.language.kinds.call import CallForm
from sync_rules.language.kinds.collect import CollectForm
from sync_rules.language.kinds.copy import CopyForm
from sync_rules.language.kinds.count import CountForm, MaxForm, MinForm, SumForm
from sync_rules.language.kinds.derive import DeriveForm
from sync_rules.language.kinds.embed import EmbedForm
from sync_rules.language.kinds.mirror import MirrorForm
from sync_rules.language.kinds.options import Model
from sync_rules.language.kinds.path import PathForm

# ---------------------------------------------------------------- any rule
FORMS: dict[str, type[Model]] = {
    "copy": CopyForm,
    "embed": EmbedForm,
    "collect": CollectForm,
    "derive": DeriveForm,
    "path": PathForm,
    "mirror": MirrorForm,
    "count": CountForm,
    "sum": SumForm,
    "min": MinForm,
    "max": MaxForm,
    "archive": ArchiveForm,
    "call": CallForm,
}
EXAMPLES = ["copy user.name into order.user_name", "count order into user.orders", "mirror user into user_by_email"]


def kind_of_rule(value: Any) -> str | None:
    """The word that names the kind of a rule written as a map; the first of them, if there are several."""
    return next((word for word in value if word in FORMS), None) if isinstance(value, dict) else None


def rule_form(value: Any) -> str | None:
    """Which form a rule is written in."""
    kind = kind_of_rule(value)
    return "form:sentence" if isinstance(value, str) else f"form:{kind}" if kind else None


Sentence = Annotated[str, Field(examples=EXAMPLES)]
RuleForm = (
    CopyForm | EmbedForm | CollectForm | DeriveForm | PathForm | MirrorForm
    | CountForm | SumForm | MinForm | MaxForm | ArchiveForm | CallForm
)  # fmt: skip
RuleEntry = Annotated[
    Annotated[Sentence, Tag("form:sentence")]
    | Annotated[CopyForm, Tag("form:copy")]
    | Annotated[EmbedForm, Tag("form:embed")]
    | Annotated[CollectForm, Tag("form:collect")]
    | Annotated[DeriveForm, Tag("form:derive")]
    | Annotated[PathForm, Tag("form:path")]
    | Annotated[MirrorForm, Tag("form:mirror")]
    | Annotated[CountForm, Tag("form:count")]
    | Annotated[SumForm, Tag("form:sum")]
    | Annotated[MinForm, Tag("form:min")]
    | Annotated[MaxForm, Tag("form:max")]
    | Annotated[ArchiveForm, Tag("form:archive")]
    | Annotated[CallForm, Tag("form:call")],
    Discriminator(rule_form),
]
