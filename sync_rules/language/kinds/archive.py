"""archive and call, compiled: what a change does outside the tables.

Law: as of `desk`. Nothing outside is looked up: whether bucket and function are there shows when they are used.
"""

from __future__ import annotations

import re

from sync_rules.language.compiler import Desk
from sync_rules.language.kinds.options import ArchiveForm, CallForm
from sync_rules.language.variables import without
from sync_rules.model.errors import UserError
from sync_rules.model.item_change import When
from sync_rules.rules.kinds.archive import ArchiveRule, misnamed, parse_into
from sync_rules.rules.kinds.call import ALWAYS, CallRule

FUNCTION = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+", re.ASCII)


def compile_archive(desk: Desk, form: ArchiveForm) -> tuple[ArchiveRule, ...]:
    """The compiled rule; none, with everything reported, when something is wrong with it."""
    source = desk.entity(form.archive, "archive")
    bucket, prefix = _address(desk, form.into)
    where = None if source is None else desk.own_where(form.where, source)
    if source is None or not desk.sound:
        return ()
    rule = ArchiveRule(
        name=desk.name, source=source, target=source, bucket=bucket, prefix=prefix, when=form.when, where=where
    )
    return (rule,)


def _address(desk: Desk, text: str) -> tuple[str, str]:
    """The bucket, and what the objects' names begin with."""
    filled = desk.known.filled(text, desk.at("into"))
    try:
        bucket, prefix = parse_into(without(text) if filled is None else filled)
    except UserError as error:
        desk.add("SR118", desk.at("into"), str(error))
        return "", ""
    if wrong := misnamed(bucket):
        desk.add("SR118", desk.at("into"), wrong)
    return bucket, prefix


def compile_call(desk: Desk, form: CallForm) -> tuple[CallRule, ...]:
    """The compiled rule; none, with everything reported, when something is wrong with it."""
    source = desk.entity(form.on, "on")
    if not FUNCTION.fullmatch(form.call):
        desk.add("SR119", desk.at("call"), f"{form.call!r} is not a function: expected module.function")
    watch = [desk.path(text, desk.at("watch", index)) for index, text in enumerate(form.watch or ())]
    when: frozenset[When] = ALWAYS if form.when is None else frozenset(form.when)
    if watch and "changed" not in when:
        desk.add("SR120", desk.at_key("watch"), "`watch` is for changes, and `when` has no changed", "remove it")
    where = None if source is None else desk.own_where(form.where, source)
    if source is None or not desk.sound:
        return ()
    paths = tuple(path for path in watch if path is not None)
    rule = CallRule(
        name=desk.name, source=source, target=source, function=form.call, when=when, watch=paths, where=where
    )
    return (rule,)
