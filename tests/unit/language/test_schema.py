"""`sync-rules schema`: editors accept the same files as `check`."""

import json
from itertools import combinations

from sync_rules.cli import main
from sync_rules.language.kinds.registry import KINDS
from sync_rules.language.schema import FileForm, make_json_schema


def keys(schema):
    """Every property of every object in the schema, with its description."""
    if isinstance(schema, dict):
        yield from schema.get("properties", {}).items()
        for inner in schema.values():
            yield from keys(inner)
    elif isinstance(schema, list):
        for inner in schema:
            yield from keys(inner)


def test_schema_is_made_from_the_models(capsys):
    """A key of the models is a key of the schema, under the name the file uses, and each one is described."""
    assert main.main(["schema"]) == 0
    schema = json.loads(capsys.readouterr().out)
    assert schema["required"] == [name for name, one in FileForm.model_fields.items() if one.is_required()]
    described = {name: "description" in body for name, body in keys(schema)}
    assert {"tables", "entities", "rules", "into", "where", "settle_seconds", "partition", *KINDS} <= described.keys()
    assert [name for name, has in described.items() if not has] == []


def alternatives(schema):
    """Every `oneOf` of the schema, with its parts looked up."""
    definitions = schema["$defs"]

    def inside(part):
        if isinstance(part, dict):
            if "oneOf" in part:
                yield [definitions[one["$ref"].rpartition("/")[2]] if "$ref" in one else one for one in part["oneOf"]]
            for inner in part.values():
                yield from inside(inner)
        elif isinstance(part, list):
            for inner in part:
                yield from inside(inner)

    return list(inside(schema))


def test_schema_takes_each_value_for_one_form_at_most():
    """Forms among which an editor must find exactly one differ by type (an integer is a number) or by what they must
    have, so that no good value fits two of them: a weight of 3, a rank of 500.
    """
    schema = make_json_schema()
    found = alternatives(schema)
    assert len(found) > 3
    for forms in found:
        for one, two in combinations(forms, 2):
            types = {"number" if form["type"] == "integer" else form["type"] for form in (one, two)}
            apart = set(one.get("required", ())) ^ set(two.get("required", ()))
            assert len(types) == 2 or apart, (one, two)
    assert schema["$defs"]["DeriveForm"]["properties"]["map"]["additionalProperties"]["additionalProperties"] == {
        "type": ["number", "string"]
    }


def test_schema_is_not_written_over_rules(tmp_path, capsys):
    """`--out` takes a .json file and no other: above all no rules file."""
    file = tmp_path / "rules.yaml"
    file.write_text("rules")
    assert main.main(["schema", "--out", str(file)]) == 2
    assert "expected a name that ends in .json, found .yaml" in capsys.readouterr().err
    assert file.read_text() == "rules"
