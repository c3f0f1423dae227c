"""A kind of rule, as the rules file knows it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sync_rules.language.compiler import RuleCompiler
from sync_rules.language.kinds.options import Model
from sync_rules.rules.rule import Rule


@dataclass(frozen=True, eq=False)
class Kind:
    """One kind of rule. A kind works as soon as it is in `registry.KINDS`.

    `name` is the key that tells its rules apart, and required in its `form`. `compile` returns the compiled
    rules: first the rule with the name of the entry, then others named NAME.part; none after a reported error.
    """

    name: str
    form: type[Model]
    compile: Callable[[RuleCompiler, Any], tuple[Rule, ...]]
    sentence: str = ""  # the short form, such as "count ENTITY into ENTITY.ATTRIBUTE"; empty for none
    example: str = ""  # a sentence for the JSON Schema
    alone: bool = False  # its rules read nothing but the item that they write
    gives: bool = False  # a rule with a default gives an attribute to every target
    several: bool = False  # whether a sentence may name several sources, separated by commas
    missing: Mapping[str, str] = field(default_factory=dict)  # by option: the cure when it is missing
    meant: Mapping[str, str] = field(
        default_factory=dict
    )  # by option: the cure when a single value, put in for {}, stands for a map; "link over several": there is none
