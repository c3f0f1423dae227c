"""`sync-rules demo EXAMPLE`: finding the example, and marking what Time to Live would have deleted."""

from __future__ import annotations

import pytest

from sync_rules.cli import main
from sync_rules.deploy import files
from sync_rules.lab.demo.example import ExpiringReader, find_folder, read_answers
from sync_rules.model.errors import UserError
from sync_rules.pipeline.records import read_event
from tests.support.builders import key, shop
from tests.support.fake_stream import FakeShard, FakeStream

ARN = "arn:aws:dynamodb:us-east-1:111122223333:table/t-shop/stream/2026"
RULES = shop("t-")
KEY = key(RULES.tables["shop"], "USER#1", "PROFILE")


# ---------------------------------------------------------------- finding it
@pytest.fixture
def examples(tmp_path, monkeypatch):
    """A folder of two examples, and a folder that is none, in the current directory."""
    for name in ("car-parts", "mailing-addresses"):
        (tmp_path / "examples" / name).mkdir(parents=True)
        for file in ("rules.yaml", "scenario.yaml"):
            (tmp_path / "examples" / name / file).touch()
    (tmp_path / "examples/half").mkdir()
    (tmp_path / "examples/half/rules.yaml").touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path / "examples"


def test_demo_finds_an_installed_example(examples, tmp_path, monkeypatch):
    """An example comes with the package too; one of the same name under ./examples goes first."""
    monkeypatch.chdir(tmp_path.parent)
    assert find_folder("car-parts", examples) == examples / "car-parts"
    assert find_folder("car-parts", files.EXAMPLES, examples) == files.EXAMPLES / "car-parts"
    monkeypatch.chdir(tmp_path)
    assert find_folder("car-parts", files.EXAMPLES).resolve() == examples / "car-parts"


def test_demo_nonsense_names_the_examples(examples, monkeypatch, capsys):
    """A name that is no example's is the user's mistake: the examples are listed, the likeliest is asked for."""
    monkeypatch.setattr(files, "EXAMPLES", examples)
    assert main.main(["demo", "nonsense"]) == 2
    assert capsys.readouterr().err == "sync-rules: no example 'nonsense'. Known: car-parts, mailing-addresses.\n"
    assert main.main(["demo", "car-part"]) == 2
    assert capsys.readouterr().err.endswith("Did you mean 'car-parts'?\n")


def test_demo_says_what_a_folder_lacks(examples):
    """A folder without a scenario is not taken for one with another name."""
    with pytest.raises(UserError, match=r"examples/half: expected a folder with rules\.yaml and scenario\.yaml"):
        find_folder("examples/half")


def test_demo_read_py_needs_the_function(tmp_path):
    """A read.py without `read` is refused with the signature expected, not with an AttributeError."""
    (tmp_path / "read.py").write_text("def reed(rules, client): ...\n")
    with pytest.raises(UserError, match=r"read\.py: expected a function read\(rules, client\)"):
        read_answers(tmp_path, RULES, None)


# ---------------------------------------------------------------- Time to Live
def record(name: str, number: int, pk: str = "USER#1") -> dict:
    image = {"PK": {"S": pk}, "SK": {"S": "PROFILE"}}
    change = {"Keys": image, "SequenceNumber": str(number), "OldImage" if name == "REMOVE" else "NewImage": image}
    return {"eventName": name, "eventSourceARN": ARN, "dynamodb": change}


def expired(reader: ExpiringReader) -> list[bool]:
    page = reader.records(ARN, reader.iterator(ARN, "s", None), 100)
    return [change.expired for change in read_event({"Records": list(page.records)}, RULES)]


def test_expiring_reader_marks_one_delete_of_the_item():
    """The next delete of an item marked as expired is marked as one by Time to Live; no other record is."""
    records = [record("REMOVE", 1, "USER#2"), record("INSERT", 2), record("REMOVE", 3), record("REMOVE", 4)]
    reader = ExpiringReader(FakeStream({"s": FakeShard(records=records)}))
    reader.expire("t-shop", KEY)
    assert expired(reader) == [False, False, True, False]
