"""Recordings: files of stream records from any tool are read; an unreadable line is named by file and line."""

from __future__ import annotations

import base64
import json
import stat

import pytest

from sync_rules.lab.recording import Header, open_recording, read_recording, read_recordings
from sync_rules.language.load import parse_rules
from sync_rules.model.errors import StoreError, UserError
from sync_rules.model.items import Change
from tests.support.builders import author_item, book_item, key, s
from tests.support.tapes import lines
from tests.support.worlds import record_of

TEXT = """
tables:
  authors: {{name: {prefix}authors, key: {{author_id: S}}}}
  books: {{name: {prefix}books, key: {{book_id: S}}, indexes: {{by_author: {{author_id: S}}}}}}
entities: {{author: {{table: authors}}, book: {{table: books}}}}
rules: {{names: copy author.name into book.name}}
"""
RULES = parse_rules(TEXT.format(prefix=""))
AUTHOR, BOOK = key(RULES.tables["authors"], "a"), key(RULES.tables["books"], "b")
CAME = Change(AUTHOR, None, author_item("a", name=s("Ada")), "1", 5_000)
RENAMED = Change(AUTHOR, author_item("a", name=s("Ada")), author_item("a", name=s("Bea")), "2", 9_000)
WRITTEN = Change(BOOK, None, book_item("b", "a"), "3", 7_000)
BODIES = [record_of(RULES, change) for change in (CAME, RENAMED, WRITTEN)]
EVENT = {"Records": BODIES}


def positions(recording) -> list[str]:
    return [one.change.position for one in recording]


def test_recording_is_read_as_it_was_written(tmp_path):
    """Each record comes back as it is, with its change, under a header that names its tables."""
    path = tmp_path / "r.jsonl"
    header = Header({"authors": "authors"}, redacted=True, at="2026-11-21T12:00:00+00:00", ordered=True)
    with open_recording(path, header) as write:
        write(BODIES[:1])
        write(BODIES[1:])
    found = read_recording(path, RULES)
    assert found.header == header
    assert [(one.number, one.change, one.body) for one in found] == [
        (number, change, body)
        for number, (change, body) in enumerate(zip((CAME, RENAMED, WRITTEN), BODIES, strict=True), 1)
    ]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


INVOCATION = {"version": "1.0", "DDBStreamBatchInfo": {"shardId": "s"}}
KINESIS = [
    {"kinesis": {"sequenceNumber": body["dynamodb"]["SequenceNumber"], "data": data}}
    for body in BODIES
    for data in [base64.b64encode(json.dumps(body).encode()).decode()]
]


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(map(json.dumps, BODIES)),
        f"\n{json.dumps(EVENT)}\n\n",
        json.dumps(EVENT, indent=2),
        json.dumps(BODIES),
        json.dumps({"Records": BODIES[:1]}) + "\n" + json.dumps({"Records": BODIES[1:]}),
        json.dumps({**INVOCATION, "payload": EVENT}, indent=2),
        json.dumps({**INVOCATION, "payload": json.dumps(EVENT)}),
        json.dumps({"Records": KINESIS}),
    ],
    ids=["records", "event", "pretty", "list", "events", "on-failure", "on-failure-text", "kinesis"],
)
def test_recording_is_whatever_holds_records(tmp_path, text):
    """Lines of records, Lambda events, objects of an on-failure destination, and events of Kinesis are all recordings."""
    path = tmp_path / "r.json"
    path.write_text(text)
    assert sorted(positions(read_recording(path, RULES))) == ["1", "2", "3"]


@pytest.mark.parametrize(
    ("content", "line", "found"),
    [
        (b'{"Records": []}\n\nnot json\n', 3, "expected JSON"),
        (b'{\n "Records": [\n oops ]\n}\n', 3, "expected JSON"),
        (json.dumps(BODIES[0]).encode() + b"\n" + json.dumps(BODIES[1]).encode()[:40], 2, "expected JSON"),
        (b'{"Records": []}\n{"orders": 3}\n', 2, "expected a stream record"),
        (b'{"Records": []}\n{"Records": 3}\n', 2, "expected a stream record"),
        (b'"text"\n', 1, "expected a stream record"),
        (json.dumps({"Records": [{"dynamodb": {}}]}).encode(), 1, "no dynamodb.Keys"),
        (json.dumps(INVOCATION).encode(), 1, "only an S3 destination keeps them"),
        (json.dumps({**INVOCATION, "payload": "x"}).encode(), 1, "not JSON"),
        (b'{"recording": "sync-rules", "version": 2, "tables": {}}', 1, "version 1"),
        (b'{"recording": "other", "version": 1, "tables": {}}', 1, "another program's"),
        (b'{"recording": "sync-rules", "version": 1, "tables": [1]}', 1, '"tables"'),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_recording_that_cannot_be_read_is_refused(tmp_path, content, line, found):
    """The error names the file, the line and what was expected there, and no value of an item."""
    path = tmp_path / "r.jsonl"
    path.write_bytes(content)
    with pytest.raises(UserError) as caught:
        read_recording(path, RULES)
    assert str(caught.value).startswith(f"{path}:{line}\n")
    assert found in str(caught.value)
    assert "Nothing was done" in str(caught.value)
    assert "Ada" not in str(caught.value)


def test_recording_puts_tables_in_the_order_of_time(tmp_path):
    """Tables that were read one after the other are replayed as things happened; an item never overtakes itself."""
    late = record_of(RULES, Change(BOOK, WRITTEN.new, None, "4", 6_000))  # a clock that went back
    path = lines(tmp_path / "r.jsonl", [*BODIES, late])
    assert positions(read_recording(path, RULES)) == ["1", "3", "4", "2"]


def test_recording_counts_what_is_left_out(tmp_path):
    """A record that stood there before, word for word, is one record; one of another table is counted by its table."""
    other = {**BODIES[0], "eventSourceARN": BODIES[0]["eventSourceARN"].replace("table/authors", "table/invoices")}
    one, two = lines(tmp_path / "1.jsonl", [*BODIES, other]), lines(tmp_path / "2.jsonl", BODIES)
    found = read_recordings([one, two], RULES)
    assert (len(found.records), found.repeated, found.others) == (3, 3, {"invoices": 1})


def test_recording_is_read_under_the_table_names_it_was_made_under(tmp_path):
    """A recording made under other physical table names is replayed with today's; records of other tables are counted."""
    elsewhere = parse_rules(TEXT.format(prefix="prod-"))
    bodies = [record_of(elsewhere, change) for change in (CAME, RENAMED, WRITTEN)]
    path = tmp_path / "r.jsonl"
    with open_recording(path, Header({name: table.physical_name for name, table in elsewhere.tables.items()})) as write:
        write(bodies)
    assert [one.change.key for one in read_recording(path, RULES)] == [AUTHOR, BOOK, AUTHOR]
    assert read_recording(lines(tmp_path / "plain.jsonl", bodies), RULES).others == {"prod-authors": 2, "prod-books": 1}


# ---------------------------------------------------------------- writing
@pytest.mark.parametrize(
    ("content", "found"),
    [
        (
            '{"recording": "sync-rules", "version": 1, "tables": {}, "redacted": true}\n',
            "without --redact|with --redact",
        ),
        ('{"recording": "sync-rules", "version": 1, "tables": {}}\n{"dyn', "last line is incomplete"),
        ('{"Records": []}\n', "expected a recording to append to"),
        ("[1]\n", "expected a recording to append to"),
        ("", "expected a recording to append to"),
    ],
    ids=["redacted", "torn", "event", "list", "empty"],
)
def test_recording_is_not_appended_to_anything_else(tmp_path, content, found):
    """One recording is redacted as a whole or not at all, and what is broken is not hidden behind new lines."""
    path = tmp_path / "r.jsonl"
    path.write_text(content)
    with pytest.raises(UserError, match=found), open_recording(path, Header(), append=True):
        pytest.fail("nothing may be written")
    assert path.read_text() == content


def test_recording_on_a_full_disk_says_so(tmp_path):
    """A line that cannot be written is an error of the world, and no shorter recording."""
    with open_recording(tmp_path / "r.jsonl", Header()) as write, pytest.MonkeyPatch.context() as patch:

        def full(_file, _line):
            raise OSError(28, "No space left on device")

        patch.setattr("os.write", full)
        with pytest.raises(StoreError, match="FileNotWritten"):
            write(BODIES)
