"""Templates as CloudFormation's own tools read them: YAML 1.1, by a parser that is fast and not the product's."""

from __future__ import annotations

from typing import Any

import yaml


class Reader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc] # PyYAML of a new Python lacks libyaml
    """Gives functions in long form."""


def function(loader, suffix, node):
    if isinstance(node, yaml.ScalarNode):
        value = loader.construct_scalar(node)
        value = value.split(".", 1) if suffix == "GetAtt" else value
    elif isinstance(node, yaml.SequenceNode):
        value = loader.construct_sequence(node, deep=True)
    else:
        value = loader.construct_mapping(node, deep=True)
    return {suffix if suffix in ("Ref", "Condition") else f"Fn::{suffix}": value}


Reader.add_multi_constructor("!", function)


def read_template(text: str) -> Any:
    """The value of a template's text."""
    return yaml.load(text, Reader)
