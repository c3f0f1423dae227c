"""The parts of the documentation that are made from the code. `python -m tests.docs.reference` rewrites them.

Invariant: nothing that the code says is typed a second time by hand. `test_docs` compares; this module only renders.
"""

from __future__ import annotations

import ast
import inspect
import io
import json
import os
import re
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from functools import partial
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import patch

from pydantic.fields import FieldInfo

from sync_rules.cli import main
from sync_rules.cli.exit_codes import ExitCode
from sync_rules.extras.design.commands.patterns import find_pattern_lines
from sync_rules.extras.design.commands.show_patterns import format_markdown, list_pattern_lines
from sync_rules.extras.design.patterns.prover import prove
from sync_rules.extras.proof.probe import ASSUMPTIONS, SOURCE, Assumption
from sync_rules.language.kinds.options import Kind
from sync_rules.language.kinds.registry import KINDS
from sync_rules.language.load import parse_rules
from sync_rules.language.problems import CODES
from sync_rules.model import limits
from sync_rules.write.document import encode_binary
from sync_rules.write.preview import preview_write
from tests.docs import proposed
from tests.facts.conformance import SCORES
from tests.support.engines import GAPS
from tests.test_house import EXTRA, RINGS, ROOMS, sentence_of

ROOT = Path(__file__).parent.parent.parent
COLUMNS = "80"

CHECKS_HEAD = """# The codes of sync-rules check

*For people who write rules.*

A code never changes its meaning and is never used again. `sync-rules check --explain SR201` shows one on the terminal. An
error makes the file unusable; a warning (SR4xx) lets the rules run, and `--strict-warnings` makes it count.
"""
CHECK_SECTIONS = {
    "SR0": "The file",
    "SR1": "Names and shapes",
    "SR2": "Links and finding targets",
    "SR3": "Writers, cycles and keys",
    "SR4": "Warnings",
    "SR5": "Access patterns",
}
ASSUMPTIONS_HEAD = """# What we assume of AWS

*For people who check our claims.*

Nothing here has run on AWS yet. This page lists each fact about AWS that code relies on: where the fact is documented,
what would happen if it were false, and the code that relies on it. Where the source says "not documented", no page of
AWS states the fact; such a fact is the first to test in an account of your own. A number stays with its fact: a fact that
is no longer relied on keeps its number and says so.

`Known from` lists the evidence for a fact. The service model is that of botocore: `make facts` compares the newest one.
`real DynamoDB` is a test of {suite}. Its authors recorded that DynamoDB passed it ({date}). It
may show a part of the fact. [selftest](selftest.md) tests the fact in your account. This project has no result of it yet.

{table}

In general a false fact shows in one of three ways. The request is refused, and its record is delivered again or parked.
A copy stays wrong until `verify --repair`, which compares every copy with its source. Or a figure is wrong: a cost, a
lag, a metric.
"""
PROSE_COLUMNS = 120
CLI_HEAD = """# The command line

*For operators.*

`sync-rules VERB`, also `python -m sync_rules VERB`. With `SYNC_RULES_DEBUG=1` an error also shows its traceback.
"""


def checks() -> str:
    """docs/checks.md: every code with its title, why and cure."""
    parts = [CHECKS_HEAD]
    for prefix, title in CHECK_SECTIONS.items():
        codes = {name: code for name, code in CODES.items() if name.startswith(prefix)}
        parts.append(f"## {title}\n")
        parts.append(table(("code", "problem", "why", "cure"), ((n, c.title, c.why, c.cure) for n, c in codes.items())))
    return "\n".join(parts)


def assumptions() -> str:
    """docs/proof/aws-assumptions.md: every fact with its source, its consequence and the code that relies on it."""
    kinds = Counter(kind for one in ASSUMPTIONS.values() for kind in known_from(one))
    rows = ((kind, f"{kinds[kind]} of {len(ASSUMPTIONS)}") for kind in KNOWN)
    head = ASSUMPTIONS_HEAD.format(table=table(("known from", "facts"), rows).strip(), **SOURCE["conformance"])
    parts, section = [head], ""
    for one in ASSUMPTIONS.values():
        if one.section != section:
            section = one.section
            parts.append(f"## {section}\n")
        parts.append(_wrapped(f"**{one.number}.** {one.fact}") + "\n")
        parts.append("\n".join(_wrapped(f"- {name}: {said}", "  ") for name, said in _facts(one)) + "\n")
    return "\n".join(parts)


KNOWN = ("AWS's page", "the service model", "real DynamoDB", "not yet", "`selftest`, not run yet")


def known_from(one: Assumption) -> Iterator[str]:
    """The kinds of evidence for a fact, of `KNOWN`."""
    evidence = (not one.source.startswith("not documented"), bool(one.model), bool(one.asserted))
    yield from (kind for kind, has in zip(KNOWN, evidence, strict=False) if has)
    if not any(evidence):
        yield "not yet"
    if not one.not_tested:
        yield "`selftest`, not run yet"


def _facts(one: Assumption) -> Iterator[tuple[str, str]]:
    yield "Source", one.source
    yield "Known from", "; ".join(known_from(one))
    if one.asserted:
        yield "Passed on real DynamoDB", ", ".join(f"`{name}`" for name in one.asserted)
    yield "If it is false", one.if_false
    yield "Relied on by", ", ".join(f"`{name}`" for name in one.relied_on)
    if one.avoid:
        yield "Avoided with", one.avoid
    if one.not_tested:
        yield "Not tested by `selftest`", one.not_tested


def _wrapped(text: str, indent: str = "") -> str:
    return textwrap.fill(text, PROSE_COLUMNS, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


MEANINGS = {
    ExitCode.WELL: "success",
    ExitCode.FOUND: "drift, a failed check, or something left to do",
    ExitCode.MISTAKE: "a mistake in your input, a service that does not answer, or output that cannot be written",
    ExitCode.BUG: "a bug in sync-rules",
    ExitCode.INTERRUPTED: "interrupted",
}


def command_line() -> str:
    """docs/cli.md: what --help says, what each module says of its command, and the exit codes."""
    codes = table(("exit code", "meaning"), ((f"{code:d}", meaning) for code, meaning in MEANINGS.items()))
    parts = [CLI_HEAD, codes, fenced(help_text())]
    for verb in main.VERBS:
        parts.append(f"## sync-rules {verb}\n")
        module = import_module(main.VERBS[verb].module)
        docstring = inspect.getdoc(module) or ""
        parts += [f"{paragraph}\n" for paragraph in docstring.split("\n\n")[1:]]
        parts.append(f"{exit_codes(main.VERBS[verb], ends=module.VERB.ends)}\n")
        parts.append(fenced(help_text(verb)))
    return "\n".join(parts)


def exit_codes(verb: main.VerbEntry, *, ends: bool) -> str:
    """The exit codes of a verb in one sentence."""
    parts = [f"0: {verb.well}", f"1: {verb.found}" if verb.found else "", f"2: {verb.mistake or 'a mistake'}"]
    if ends:
        parts.append(f"130: interrupted{verb.interrupted and ', '}{verb.interrupted}")
    return f"Exit code {'; '.join(filter(None, parts))}."


def help_text(*arguments: str) -> str:
    """The text of `sync-rules ... --help` on a terminal of 80 columns."""
    printed = io.StringIO()
    with redirect_stdout(printed), patch.dict(os.environ, {"COLUMNS": COLUMNS}):
        code = main.main([*arguments, "--help"])
    assert code == 0
    return "\n".join(line.rstrip() for line in printed.getvalue().strip().splitlines())


def pipeline_limits() -> str:
    """The table of `Limits`, with the docstring under each field as its meaning."""
    defaults = limits.Limits()
    rows = ((f"`{name}`", shown(getattr(defaults, name)), meaning) for name, meaning in attribute_docstrings())
    return table(("name", "default", "meaning"), rows)


def attribute_docstrings() -> Iterator[tuple[str, str]]:
    """Each field of `Limits` with the string below it."""
    body = next(n.body for n in ast.parse(inspect.getsource(limits.Limits)).body if isinstance(n, ast.ClassDef))
    for node, after in pairwise(body):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            assert isinstance(after, ast.Expr), f"{node.target.id} has no sentence"
            yield node.target.id, str(ast.literal_eval(after.value))


def rooms() -> str:
    """The import table of tests/test_house.py: each room with its ring, its sentence and the rooms it may import."""
    rows = (
        (ring, f"`{room}`", sentence_of(room), ", ".join(sorted(may - {room}, key=list(ROOMS).index)))
        for ring, rooms_of_ring in RINGS.items()
        for room, may in rooms_of_ring.items()
    )
    return table(("ring", "room", "what it is", "may import"), rows) + f"\n{EXTRA}\n"


def shown(value: Any) -> str:
    """A default as the documentation writes it: 10,000 and not 10000; 2 and not 2.0."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return f"{value:,.0f}" if float(value).is_integer() else str(value)


def table(head: tuple[str, ...], rows: Any) -> str:
    """A Markdown table."""
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines) + "\n"


def fenced(text: str, language: str = "text") -> str:
    """A block of text."""
    return f"```{language}\n{text}\n```\n"


def kinds() -> str:
    """The kinds in a table: the page of each, and the sentence of its form. Kinds without a page share the one before."""
    pages: list[list[str]] = []
    for name in KINDS:
        if (ROOT / f"docs/rules/{name}.md").exists():
            pages.append([name])
        else:
            pages[-1].append(name)
    cells = (
        (f"[{', '.join(names)}](rules/{names[0]}.md)", "; ".join(sentence_of_form(KINDS[name]) for name in names))
        for names in pages
    )
    return table(("kind", "what is kept true"), cells)


def sentence_of_form(kind: Kind) -> str:
    """The sentence of a kind's form, without the name and the stop."""
    return (kind.form.__doc__ or "").partition(": ")[2].rstrip(".")


def keys_of(name: str) -> str:
    """The keys of a kind's form, as its own page lists them."""
    fields = KINDS[name].form.model_fields.items()
    rows = ((f"`{one.alias or key}`", one.description or "", default_of(one)) for key, one in fields)
    return table((f"key of {name}", "meaning", "default"), rows)


def default_of(field: FieldInfo) -> str:
    """The default of a key; nothing for one that may be missing."""
    if field.is_required():
        return "required"
    return f"`{str(field.default).lower()}`" if isinstance(field.default, str | bool | int) else ""


KEYS = "<!-- generated: keys -->"  # in the page of a kind
PROPOSED_PAGE = "docs/discover/propose.md"
PATTERNS_PAGE = "docs/design/patterns.md"
ASKED = "  orders-by-total: {get: order, by: [user_id], order: total desc}\n"


def pattern_rules() -> str:
    """The rules file of docs/design/patterns.md."""
    return re.findall(r"```yaml\n(.*?)```", (ROOT / PATTERNS_PAGE).read_text(), re.DOTALL)[0]


def matrix() -> str:
    """The access-pattern matrix of the page's own rules file."""
    return format_markdown(prove(parse_rules(pattern_rules())))


def unserved() -> str:
    """A pattern more in that file, which nothing serves, as the command prints it."""
    text = pattern_rules() + ASKED
    proof = prove(parse_rules(text))
    line = find_pattern_lines(text)["orders-by-total"]
    (answer,) = proof.unserved_answers
    printed = list_pattern_lines("orders-by-total", answer, f"rules.yaml:{line}")
    return fenced("\n".join([f"# {ASKED.strip()}", *printed]))


WRITES_PAGE = "docs/javascript.md"
LINE_MAX_CHARACTERS = 100


def previewed_write() -> str:
    """The requests of the write of docs/javascript.md."""
    text = (ROOT / WRITES_PAGE).read_text()
    rules, write = (re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)[0] for language in ("yaml", "json"))
    found = preview_write(parse_rules(rules), json.loads(write))
    requests = (*found.reads, ("TransactWriteItems", {"TransactItems": found.actions}))
    return fenced(
        "\n".join(f"{operation}\n{fold_json(encode_binary(parameters))}" for operation, parameters in requests)
    )


def fold_json(value: Any, indent: int = 0, before: int = 0) -> str:
    """JSON with each part on one line that fits into one. `before`: the characters that the line has already."""
    line = json.dumps(value)
    if len(line) <= LINE_MAX_CHARACTERS - indent - before or not isinstance(value, dict | list) or not value:
        return line
    inner = indent + 2
    if isinstance(value, dict):
        names = {name: f"{json.dumps(name)}: " for name in value}
        parts = [names[name] + fold_json(one, inner, len(names[name])) for name, one in value.items()]
    else:
        parts = [fold_json(one, inner) for one in value]
    begin, end = "{}" if isinstance(value, dict) else "[]"
    lines = ",\n".join(f"{' ' * inner}{part}" for part in parts)
    return f"{begin}\n{lines}\n{' ' * indent}{end}"


def scores() -> str:
    """The stored scores of the conformance suite: a row for each engine."""
    found = json.loads(SCORES.read_text())
    rows = []
    for name, engine in found["engines"].items():
        tiers = [*engine["tiers"].values(), [sum(one[place] for one in engine["tiers"].values()) for place in (0, 1)]]
        cells = (f"{passed} of {tests}" for passed, tests in tiers)
        rows.append((f"{name} {engine['version']}", *cells, f"{tiers[-1][0] / tiers[-1][1]:.1%}"))
    return table((f"engine ({found['date']})", "tier 1", "tier 2", "tier 3", "all tests", "score"), rows)


def gaps() -> str:
    """The behaviour of DynamoDB that some tests need, and the engines that lack it."""
    rows = (
        (gap.dynamodb, ", ".join(sorted(one.removesuffix("-batch") for one in gap.lacking))) for gap in GAPS.values()
    )
    return table(("on DynamoDB", "otherwise on"), rows)


PAGES: dict[str, Callable[[], str]] = {
    "docs/proof/aws-assumptions.md": assumptions,
    "docs/checks.md": checks,
    "docs/cli.md": command_line,
}
BLOCKS: dict[tuple[str, str], Callable[[], str]] = {
    ("docs/limits.md", "limits"): pipeline_limits,
    ("ARCHITECTURE.md", "rooms"): rooms,
    ("docs/contributing.md", "scores"): scores,
    ("docs/contributing.md", "gaps"): gaps,
    ("docs/rules-file.md", "kinds"): kinds,
    **{
        (f"docs/rules/{page.stem}.md", "keys"): partial(keys_of, page.stem)
        for page in sorted((ROOT / "docs/rules").glob("*.md"))
        if KEYS in page.read_text()
    },
    (PATTERNS_PAGE, "matrix"): matrix,
    (WRITES_PAGE, "requests"): previewed_write,
    (PATTERNS_PAGE, "unserved"): unserved,
    (PROPOSED_PAGE, "summary"): lambda: fenced(proposed.outputs()[0]),
    (PROPOSED_PAGE, "file"): lambda: fenced(proposed.outputs()[1].rstrip(), "yaml"),
    (PROPOSED_PAGE, "why"): lambda: fenced(proposed.outputs()[2]),
}


GENERATED = tuple(dict.fromkeys([*PAGES, *(name for name, _ in BLOCKS)]))


def expected(name: str) -> str:
    """A document with a generated part, as it should be now."""
    text = PAGES[name]() if name in PAGES else (ROOT / name).read_text()
    for block, render in ((block, render) for (page, block), render in BLOCKS.items() if page == name):
        begin, end = f"<!-- generated: {block} -->\n", "<!-- end -->"
        before, _, rest = text.partition(begin)
        _, found, after = rest.partition(end)
        assert found, f"{name} has no block {block}"
        text = f"{before}{begin}\n{render()}\n{end}{after}"
    return text


if __name__ == "__main__":
    for document in GENERATED:
        (ROOT / document).write_text(expected(document))
