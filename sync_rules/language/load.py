"""From the rules file to compiled `Rules`: read, validate, compile, lint. A rule may be a sentence, such as
`copy user.name into order.user_name`, which is read into a form.

Invariant: the caller gets rules that can run, or an error with every problem of the file, each at its location.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from sync_rules.language import defaults, lint
from sync_rules.language.compiler import Known, RuleCompiler
from sync_rules.language.kinds.options import Model
from sync_rules.language.kinds.registry import find_kind_of_form, list_kinds_with_sentences
from sync_rules.language.links import make_default_template
from sync_rules.language.problems import Problem, Problems, list_errors
from sync_rules.language.schema import NAME, EntityForm
from sync_rules.language.table_compiler import compile_tables
from sync_rules.language.validate import ValidFile, validate
from sync_rules.language.variables import Variables
from sync_rules.language.yaml_source import Document, read_document
from sync_rules.model.entities import KEY_MAX_BYTES, Entity, Table
from sync_rules.model.errors import UserError
from sync_rules.model.prefixes import Prefixes
from sync_rules.model.sizes import find_index_key_limits
from sync_rules.model.suggest import explain_unknown_name
from sync_rules.model.templates import Template, may_overlap, parse_template
from sync_rules.rules import fingerprints
from sync_rules.rules.rule import Rule
from sync_rules.rules.ruleset import Rules

PARTS = re.compile(r"\s*(?P<kind>\w+)\s+(?P<what>\S.*?)\s+into\s+(?P<into>\S.*?)\s*", re.DOTALL)
SOURCE = re.compile(r"[^\s,](?:[^,]*[^\s,])?")
WORD = re.compile(r'(?:"[^"]*"|[^\s"])+')
LONG = "; where, link and the like need the long form"


class RulesFileError(UserError):
    """A rules file that cannot be used. `problems` are its errors, in the order of the file."""

    def __init__(self, name: str, problems: list[Problem]) -> None:
        super().__init__("\n".join(problem.render(name) for problem in problems))
        self.problems = problems


def load_rules(path: Path, environ: Mapping[str, str] = os.environ) -> Rules:
    """Load the rules of a file, ready to run.

    Raises:
        RulesFileError: with every error in it; warnings are for `sync-rules check`.
        UserError: when the file cannot be read.
    """
    return parse_rules(read_text(path), str(path), environ)


def parse_rules(text: str, name: str = "rules.yaml", environ: Mapping[str, str] = os.environ) -> Rules:
    """Parse the rules in a text, ready to run; `name` is for messages.

    Raises:
        RulesFileError: with every error in it.
    """
    rules, problems = _compile(text, environ, running=True)
    if rules is None:
        raise RulesFileError(name, list_errors(problems))
    return rules


def check_rules(text: str, environ: Mapping[str, str] = os.environ) -> tuple[Rules | None, list[Problem]]:
    """Return the rules in a text (None if there are errors), and every problem in the order of the file.

    A variable of the environment that is not set is a warning here: a check runs where nothing is deployed.
    """
    return _compile(text, environ, running=False)


def read_text(path: Path) -> str:
    """Read the text of a rules file.

    Raises:
        UserError: when there is no such file, or it is not UTF-8 text.
    """
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        raise UserError(f"{path}: no such file. Name your rules file, or begin with `sync-rules init`") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not UTF-8 text (byte {error.start}). Save the file as UTF-8") from error
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from error


def _compile(text: str, environ: Mapping[str, str], *, running: bool) -> tuple[Rules | None, list[Problem]]:
    problems = Problems()
    document = read_document(text, problems)
    valid = validate(document, problems) if document is not None else None
    if document is None or valid is None:
        return None, problems.sort_problems()
    variables = Variables(environ, problems, running)
    tables = compile_tables(document, problems, valid.form.tables, variables)
    entities = _compile_entities(document, problems, valid, tables)
    declared = frozenset(valid.form.entities) | valid.broken["entities"]
    broken = declared - entities.keys()
    known = Known(document, problems, tables, entities, broken, valid.broken["tables"])
    _check_renames(known, valid.form.rules)
    compiled = _compile_rules(known, valid.form.rules)
    alone = [rule for name in valid.form.rules for rule in compiled[name]]
    sound = {rule.name: rule.adapt_to(other for other in alone if other is not rule) for rule in alone}
    within = {side.name: side for rule in sound.values() for side in (rule.source, rule.target, *rule.owned_entities)}
    entities = entities | within  # those of ledgers are in no file
    rules = Rules(tables, entities, sound, fingerprints.compute_file_fingerprint(tables, entities, sound))
    rules = replace(rules, sections={one.name: one.compile(known, valid.form, rules) for one in valid.sections})
    lint.lint(rules, known, valid.sections)
    found = problems.sort_problems()
    return (None if list_errors(found) else rules), found


def _compile_rules(known: Known, entries: Mapping[str, str | Model]) -> dict[str, tuple[Rule, ...]]:
    """The rules of each entry. Those that give an attribute to every item come first: others may rely on it."""
    compiled: dict[str, tuple[Rule, ...]] = {}
    for name, entry in sorted(entries.items(), key=lambda one: _choose_turn(one[1])):
        compiled[name] = _compile_rule(known, name, entry)
        for rule in compiled[name]:
            known.written.setdefault(rule.target.name, set()).update(rule.always_writes)
    return compiled


def _choose_turn(entry: str | Model) -> int:
    """The turn of a rule: first those that look at one item alone, then those with defaults, then all others."""
    if isinstance(entry, str):
        return 2
    kind = find_kind_of_form(entry)
    return 0 if kind.alone else 1 if kind.gives and defaults.has_default(entry) else 2


def _compile_rule(known: Known, name: str, entry: str | Model) -> tuple[Rule, ...]:
    """The rules of one entry of the file; none if something is wrong, which is reported."""
    compiler = RuleCompiler(known, name)
    form = read_sentence(compiler, entry) if isinstance(entry, str) else entry
    rules = () if form is None else find_kind_of_form(form).compile(compiler, form)
    if not compiler.sound:
        return ()
    renamed_from = getattr(form, "renamed_from", None)  # a sentence has no options, and a kind of a test need not
    return tuple(replace(rule, renamed_from=renamed_from) for rule in rules) if renamed_from else rules


def _check_renames(known: Known, entries: Mapping[str, str | Model]) -> None:
    """Report former names that cannot be: the name of a rule that is still there, of no rule, or of two rules' past."""
    renamed: dict[str, str] = {}
    names = frozenset(known.document.names("rules"))
    for name, entry in entries.items():
        old = getattr(entry, "renamed_from", None)
        if old is None:
            continue
        compiler = RuleCompiler(known, name)
        if not re.fullmatch(NAME, old):
            compiler.add("SR123", "renamed_from", f"{old!r} cannot have been the name of a rule")
        elif old == name:
            compiler.add("SR123", "renamed_from", f"{old!r} is the name that the rule has now")
        elif old in names:
            compiler.add("SR123", "renamed_from", f"{old!r} is the name of another rule of this file")
        elif old in renamed:
            message = f"rule {renamed[old]!r} was renamed from {old!r} already"
            compiler.add("SR123", "renamed_from", message)
        renamed.setdefault(old, name)


def _compile_entities(
    document: Document, problems: Problems, valid: ValidFile, tables: Mapping[str, Table]
) -> dict[str, Entity]:
    entities: dict[str, Entity] = {}
    before: dict[str, Prefixes[Entity]] = {}  # by table, the entities by what their partition keys begin with
    for name, form in valid.form.entities.items():
        table = tables.get(form.table)
        if table is not None:
            entity = _compile_entity(name, form, table, document, problems)
            if entity is not None:
                begins = entity.templates[table.partition.name].literals[0]
                others = before.setdefault(table.name, Prefixes())
                first = tuple(other for other in others.find_overlaps(begins) if _may_be_both(other, entity))
                entities[name] = replace(entity, first=first)
                others.add(begins, entities[name])
        elif form.table not in valid.broken["tables"]:
            message = explain_unknown_name("table", form.table, document.names("tables"))
            problems.add("SR102", document.value("entities", name, "table"), message)
    return entities


def _may_be_both(one: Entity, two: Entity) -> bool:
    """True if some key could fit two entities of a table."""
    return all(may_overlap(one.templates[key.name], two.templates[key.name]) for key in one.table.key)


def _count_least_bytes(template: Template) -> int:
    """The size of the shortest key of a template: each field has a letter at least, or the digits it is padded to."""
    pads = dict(template.pads)
    return len("".join(template.literals).encode()) + sum(pads.get(field, 1) for field in template.fields)


def _compile_entity(name: str, form: EntityForm, table: Table, document: Document, problems: Problems) -> Entity | None:
    types = {attribute.name: attribute.type for attribute in table.key_attributes}
    limits = {name: most for name, (_, most) in find_index_key_limits(table).items()}
    limits |= {key.name: most for key, most in zip(table.key, KEY_MAX_BYTES, strict=False)}
    templates: dict[str, Template] = {}
    sound = True
    for attribute, text in form.key.items():
        location = document.value("entities", name, "key", attribute)
        if attribute not in types:
            message = explain_unknown_name("key attribute", attribute, types, f"table {table.name!r}")
            problems.add("SR102", document.key("entities", name, "key", attribute), message)
            sound = False
            continue
        template: Template | None = None
        try:
            template = parse_template(text, pads=True)
        except UserError as error:
            if types[attribute] == "S":
                problems.add("SR109", location, error.found, error.cure or None)
                sound = False
                continue
        if template is None or (types[attribute] != "S" and template.whole is None):
            message = f"{attribute!r} is of type {types[attribute]}: expected one field and no text, found {text!r}"
            problems.add("SR110", location, message)
            sound = False
            continue
        if (least := _count_least_bytes(template)) > limits[attribute]:
            message = (
                f"{text[:40]!r}... makes keys of at least {least:,} bytes: DynamoDB takes {limits[attribute]:,} here"
            )
            problems.add("SR109", location, message, "write a shorter text")
            sound = False
        templates[attribute] = template
    for key in table.key:
        templates.setdefault(key.name, make_default_template(key.name))
    made = form.made_by is not None
    return Entity(name, table, templates, required=tuple(form.required), made=made) if sound else None


# ---------------------------------------------------------------- sentences
def read_sentence(compiler: RuleCompiler, text: str) -> Model | None:
    """Read a sentence into the form that it means. Return None if it is not a sentence, which is reported."""
    kinds = list_kinds_with_sentences()
    word = next(iter(text.split()), next(iter(kinds)))
    kind = kinds.get(word)
    if kind is None:
        message = f"{word!r} has no short form; it has: {', '.join(kinds)}"
        compiler.add("SR107", compiler.at(), message, f"write it as a map, with {word}: and its options")
        return None
    cure = kind.sentence + LONG
    match = PARTS.fullmatch(text)
    if match is None:
        compiler.add("SR107", compiler.at(), f"expected `{word} ... into ...`", cure)
        return None
    document, here = compiler.known.document, ("rules", compiler.name)
    if WORD.fullmatch(match["into"]) is None:
        rest = match["into"].split(None, 1)[-1]
        message = f"expected the sentence to end after one path, found {rest!r}"
        compiler.add("SR107", document.inside(match.start("into"), *here), message, cure)
        return None
    document.locations[(*here, "into")] = document.inside(match.start("into"), *here)
    sources = list(SOURCE.finditer(match["what"]))
    for index, source in enumerate(sources):
        location = document.inside(match.start("what") + source.start(), *here)
        document.locations.setdefault((*here, word), location)
        document.locations[(*here, word, index)] = location
    texts = [source[0] for source in sources]
    if not texts:
        compiler.add("SR107", compiler.at(), f"expected a path after `{word}`", cure)
        return None
    if not kind.several and (len(texts) > 1 or WORD.fullmatch(texts[0]) is None):
        compiler.add("SR107", word, f"expected one word between `{word}` and `into`", cure)
        return None
    what = texts[0] if len(texts) == 1 else texts
    return kind.form.model_validate({word: what, "into": match["into"]})
