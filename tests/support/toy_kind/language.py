"""Rules of kind `latest`: their form and their compiler. What would be `language/kinds/latest.py`."""

from __future__ import annotations

from pydantic import Field

from sync_rules.language.compiler import RuleCompiler
from sync_rules.language.kinds.options import Kind, Model
from tests.support.toy_kind.rule import LatestRule


class LatestForm(Model):
    """latest: a field of the newest child, on the parent."""

    latest: str = Field(description="The child entity, then the field that is shown.", examples=["order.total"])
    into: str = Field(description="Where to: parent entity, then a path.", examples=["user.last_total"])
    by: str = Field(description="The field of which the newest child has the greatest.", examples=["placed_at"])


def _compile(compiler: RuleCompiler, form: LatestForm) -> tuple[LatestRule, ...]:
    shown = compiler.resolve(form.latest, "latest", attribute=True)
    into, by = compiler.into(form.into), compiler.path(form.by, "by")
    if shown is None or into is None or by is None:
        return ()
    link = compiler.link({}, into.entity, shown.entity)
    find = None if link is None else compiler.find(link, into.entity, shown.entity, None, "into")
    if link is None or find is None or not compiler.sound:
        return ()
    rule = LatestRule(
        name=compiler.name,
        source=shown.entity,
        target=into.entity,
        find=find,
        into=into.path,
        link=link,
        shows=shown.path,
        by=by,
    )
    return (rule,)


KIND = Kind("latest", LatestForm, _compile)
