"""A verb that works on a store in memory: what several commands are tried with."""

from __future__ import annotations

import json
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import pytest

from sync_rules.audit.link_check import SAMPLE_SEGMENTS
from sync_rules.cli import main
from sync_rules.language.load import parse_rules
from sync_rules.pipeline.requests import Scan
from tests.support.worlds import Scene

SECRET = "SECRETVALUE"  # in no output


def lines(path: Path, *bodies: object) -> None:
    """Write a file of JSON lines; a text is a line as it is."""
    path.write_text("".join((body if isinstance(body, str) else json.dumps(body)) + "\n" for body in bodies))


class CommandLine:
    """The verb of a module, in a folder of its own with a rules file. `given` are its first words."""

    def __init__(
        self, module: ModuleType, text: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self.module, self.patch, self.capsys = module, monkeypatch, capsys
        self.file = Path("rules.yaml")
        self.restart(text)
        self.given: tuple[object, ...] = ()
        monkeypatch.delenv("SYNC_RULES_STATE", raising=False)
        monkeypatch.setattr(module.aws, "dynamodb", lambda *_: None)
        monkeypatch.setattr(module, "DynamoStore", lambda *_, **_options: self.scene.tap)

    def restart(self, text: str) -> None:
        """Take other rules, and a store of theirs without items."""
        self.file.write_text(text)
        self.scene = Scene(parse_rules(text))

    def __call__(self, *options: str) -> tuple[int, str, str]:
        verb = self.module.__name__.rpartition(".")[2]
        code = main.main([verb, *map(str, self.given), *options])
        out, err = self.capsys.readouterr()
        assert SECRET not in out + err
        return code, out, err

    def scans(self) -> list[Scan]:
        """The pages that were scanned, without those of the sample of links."""
        return [scan for scan in self.scene.tap.seen(Scan) if scan.total_segments != SAMPLE_SEGMENTS]

    def stop_after(self, pages: int | None) -> None:
        """Simulate Ctrl-C after a number of pages; None: not any more."""

        @contextmanager
        def signals():
            yield lambda: pages is not None and len(self.scans()) >= pages

        self.patch.setattr(self.module, "stop_signals", signals)
