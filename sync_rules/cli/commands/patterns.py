"""`sync-rules patterns`: the request that serves each access pattern, or why there is none, with the cheapest cure."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from sync_rules.cli import options as opt
from sync_rules.cli.show.patterns import as_json as document_of
from sync_rules.cli.show.patterns import lines, markdown
from sync_rules.cli.show.text import put_out
from sync_rules.language.load import RulesFileError, check_rules, read_text
from sync_rules.language.problems import errors
from sync_rules.language.yaml_source import places_of
from sync_rules.model.errors import UserError
from sync_rules.patterns.heat import hot
from sync_rules.patterns.prove import prove

NONE = "{file}: no access patterns. Declare some, such as patterns: {{orders-of-user: {{get: order, by: [user_id]}}}}"


def patterns(
    rules_file: opt.RulesFile = opt.RULES_FILE,
    *,
    as_markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the access-pattern matrix as Markdown.")
    ] = False,
    as_json: opt.Json = False,
    out: opt.Out = None,
    strict_warnings: Annotated[
        bool,
        typer.Option("--strict-warnings", help="Exit with 1 for unread copies, idle indexes and hot keys too."),
    ] = False,
) -> int:
    """Prove each access pattern: its request, or why there is none."""
    if as_markdown and as_json:
        raise UserError("--json and --markdown exclude each other: give one of them")
    text = read_text(rules_file)
    rules, problems = check_rules(text)
    if rules is None:
        raise RulesFileError(str(rules_file), errors(problems))
    if not rules.patterns:
        put_out("{}" if as_json else NONE.format(file=rules_file), out)
        return 0
    proof = prove(rules)
    hots = hot(rules, proof)
    places = {name: f"{rules_file}:{line}" for name, line in places_of(text, "patterns").items()}
    if as_markdown:
        put_out(markdown(proof), out)
    elif as_json:
        put_out(json.dumps(document_of(proof, hots, places), indent=2, ensure_ascii=False), out)
    else:
        put_out("\n".join(lines(proof, hots, places)), out)
    doubtful = proof.unread or proof.idle or any(one.certain for one in hots)
    return int(bool(proof.unserved) or (strict_warnings and bool(doubtful)))
