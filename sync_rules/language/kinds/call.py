"""Rules of kind `call`: a Python function is called once for each change."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import Field

from sync_rules.language.compiler import RuleCompiler
from sync_rules.language.kinds.options import Kind, Model, Names, OwnWhere, RenamedFrom
from sync_rules.model.item_change import When
from sync_rules.rules.kinds.call import ALWAYS, CallRule, Since

FUNCTION = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+", re.ASCII)


class CallForm(Model):
    """call: a Python function of yours, once per change."""

    call: str = Field(description="The function: module.function.", examples=["mypkg.notify"])
    on: str = Field(description="The entity whose changes it is called with.", examples=["order"])
    when: Annotated[list[Literal["created", "changed", "deleted"]], Field(min_length=1)] | None = Field(
        default=None, description="Which changes; default all."
    )
    watch: Names | None = Field(
        default=None, description="For `changed`: only when one of these attributes did.", examples=[["status"]]
    )
    where: OwnWhere = None
    since: Since = Field(
        default="deployment",
        description="deployment: changes from before the rule was first deployed do not call. horizon: all changes "
        "that the stream still holds do, up to 24 hours old.",
    )
    renamed_from: RenamedFrom = None


def _compile(compiler: RuleCompiler, form: CallForm) -> tuple[CallRule, ...]:
    source = compiler.entity(form.on, "on")
    if not FUNCTION.fullmatch(form.call):
        compiler.add("SR119", "call", f"{form.call!r} is not a function: expected module.function")
    watch = compiler.paths(form.watch, "watch")
    compiler.own(source, form.watch, "watch")
    when: frozenset[When] = ALWAYS if form.when is None else frozenset(form.when)
    if watch and "changed" not in when:
        compiler.refuse("watch", "`watch` is for changes, and `when` has no changed", "remove it")
    if not watch and form.watch is None and "changed" in when:
        message = (
            f"{form.call} is called for every change of {form.on!r}: if it writes the item, also for its own, for ever"
        )
        compiler.add("SR417", "call", message)
    where = None if source is None else compiler.compile_own_where(form.where, source)
    if source is None or not compiler.sound:
        return ()
    rule = CallRule(
        name=compiler.name,
        source=source,
        target=source,
        function=form.call,
        when=when,
        watch=watch,
        where=where,
        since=form.since,
    )
    return (rule,)


KIND = Kind("call", CallForm, _compile, missing={"on": "name the entity: on: order"})
