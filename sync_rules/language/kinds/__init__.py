"""From rules as written, sentence or map, to the rules that run: a module for kinds that are alike, and their compiler.

Law: a rule of the file is compiled whole or not at all. What it is compiled into beside the rule of its name is called
NAME.part, and the entities that only such rules have have a dot in their names too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from sync_rules.language.compiler import Known, RuleCompiler
from sync_rules.language.kinds.archive import compile_archive
from sync_rules.language.kinds.call import compile_call
from sync_rules.language.kinds.collect import compile_collect
from sync_rules.language.kinds.copy import compile_copy
from sync_rules.language.kinds.count import FUNCTIONS
from sync_rules.language.kinds.derive import compile_derive
from sync_rules.language.kinds.embed import compile_embed
from sync_rules.language.kinds.mirror import compile_mirror
from sync_rules.language.kinds.path import compile_path
from sync_rules.language.kinds.registry import FORMS, RuleForm
from sync_rules.language.sentences import read_sentence
from sync_rules.rules.rule import Rule

__all__ = ["Known", "compile_rule"]

KINDS: Final[Mapping[str, Callable[[RuleCompiler, Any], tuple[Rule, ...]]]] = {
    "copy": compile_copy,
    "embed": compile_embed,
    "collect": compile_collect,
    "derive": compile_derive,
    "path": compile_path,
    "mirror": compile_mirror,
    **FUNCTIONS,
    "archive": compile_archive,
    "call": compile_call,
}
KIND_OF: Final = {form: kind for kind, form in FORMS.items()}


def compile_rule(known: Known, name: str, entry: str | RuleForm) -> tuple[Rule, ...]:
    """The rules that one entry of the file stands for; none, with everything reported, when something is wrong."""
    compiler = RuleCompiler(known, name)
    form = read_sentence(compiler, entry) if isinstance(entry, str) else entry
    if form is None:
        return ()
    rules = KINDS[KIND_OF[type(form)]](compiler, form)
    return rules if compiler.sound else ()
