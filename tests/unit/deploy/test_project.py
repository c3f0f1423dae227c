"""A project of a user's own: whatever `init` writes works as it is, is what the verbs write, and overwrites nothing."""

from __future__ import annotations

import io
import json
import re
import shlex
import shutil
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from sync_rules import HOME, __version__
from sync_rules.cli import main
from sync_rules.deploy import bundle, files, project
from sync_rules.deploy.tables import make_table_parameters
from sync_rules.deploy.template import empty_blocks
from sync_rules.language.schema import format_schema
from tests.support.builders import table
from tests.test_house import ROOT

WRITTEN = {
    *(".github/workflows/sync-rules.yml", ".pre-commit-config.yaml", "Makefile", "samconfig.toml", "template.yaml"),
    *("rules.yaml", "sync-rules.schema.json", "scenarios/first.scenario.yaml", "requirements.txt"),
    *("infra/machine.asl.json", "infra/requirements-cli.txt"),
}


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def fresh(tmp_path_factory) -> Path:
    """A project that `init` has just made."""
    folder = tmp_path_factory.mktemp("fresh")
    project.write_project(project.make_project(folder))
    return folder


@pytest.fixture
def made(here, fresh) -> Path:
    """A copy of it, in the folder where the user is."""
    shutil.copytree(fresh, here, dirs_exist_ok=True)
    return here


def loaded(path: Path):
    return YAML(typ="safe").load(path.read_text())


def files_in(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_project_is_whole_and_works(here, capsys):
    """`init` in an empty folder, then every check: nothing is to be done before the first deployment."""
    assert main.main(["init"]) == 0
    said = capsys.readouterr().out
    assert files_in(here).keys() == WRITTEN
    assert len(said.partition("\n\n")[2].splitlines()) == 5
    commands = (["check"], ["check", "--strict-warnings"], ["test", "scenarios"], ["infra", "--check"], ["infra"])
    assert [main.main(command) for command in commands] == [0] * len(commands)
    assert (here / "sync-rules.schema.json").read_text() == format_schema()
    assert (here / "rules.yaml").read_text().startswith("# yaml-language-server: $schema=./sync-rules.schema.json\n")
    assert bundle.find_lock(here / "template.yaml").name == "requirements.txt"


def test_project_shows_a_slip_in_the_source_of_its_rule(made, capsys):
    """The pattern of users names what they have, so that `check` warns of a copy of an attribute that they lack."""
    rules = made / "rules.yaml"
    rules.write_text(rules.read_text().replace("copy user.name into", "copy user.nme into"))
    main.main(["check"])
    assert "nothing else in the file names 'name' of 'user'. Did you mean 'nme'?" in capsys.readouterr().out


def test_project_workflow_and_hook_call_commands_that_pass(made):
    """The workflow installs this version and runs commands that succeed in a new project; the hook is one of ours."""
    workflow = loaded(made / ".github/workflows/sync-rules.yml")
    (job,) = workflow["jobs"].values()
    commands = [shlex.split(step["run"]) for step in job["steps"] if "run" in step]
    locked, own = commands.pop(0), commands.pop(0)
    assert locked == ["python", "-m", "pip", "install", "--require-hashes", "-r", files.CLI_REQUIREMENTS]
    assert {"$SYNC_RULES", "--no-deps"} <= {*own}
    assert (made / files.CLI_REQUIREMENTS).read_text() == files.read_file(files.CLI_REQUIREMENTS)
    pinned = r"actions/[a-z-]+@[0-9a-f]{40}"  # by a commit: a tag can be moved
    assert all(re.fullmatch(pinned, step["uses"]) for step in job["steps"] if "uses" in step)
    assert workflow["env"] == {"SYNC_RULES": f"sync-rules=={__version__}"}
    assert [(program, main.main(arguments)) for program, *arguments in commands] == [("sync-rules", 0)] * len(commands)
    (repository,) = loaded(made / ".pre-commit-config.yaml")["repos"]
    assert repository["rev"] == f"v{__version__}"
    hooks = {hook["id"]: hook for hook in loaded(ROOT / ".pre-commit-hooks.yaml")}
    for hook in repository["hooks"]:
        program, *arguments = shlex.split(hooks[hook["id"]]["entry"])
        assert (program, main.main([*arguments, *hook["args"]])) == ("sync-rules", 0)


def test_project_template_is_the_one_of_the_clone(made):
    """But for the generated blocks and the address of a page, it is the template that the tests of deployment deploy."""
    ours, theirs = (empty_blocks((folder / "template.yaml").read_text(), Path("t.yaml")) for folder in (ROOT, made))
    assert theirs.replace(f"{HOME}/blob/main/", "") == ours
    assert (made / files.MACHINE).read_text() == (ROOT / files.MACHINE).read_text()
    locked = [line for line in (ROOT / files.REQUIREMENTS).read_text().splitlines() if not line.startswith("#")]
    assert (made / "requirements.txt").read_text().splitlines()[-len(locked) :] == locked


def test_project_writes_nothing_where_one_of_its_files_is(here, capsys):
    """The files that exist are listed, all is as it was, and the cure works."""
    (here / "template.yaml").write_text("mine")
    (here / "rules.yaml").symlink_to("nowhere")
    (here / "infra").write_text("a file where a folder should be")
    before = sorted(here.iterdir())
    assert main.main(["init"]) == 2
    said = capsys.readouterr().err
    assert "these files exist, and nothing was written:\n  rules.yaml\n  template.yaml\n  infra\n" in said
    assert sorted(here.iterdir()) == before
    assert main.main(["init", "new/project"]) == 0
    assert (here / "new/project/rules.yaml").exists()


def test_project_leaves_a_makefile_and_hooks_and_says_what_to_add(here, capsys):
    """Both may belong to more than this project: their lines are printed instead."""
    (here / "Makefile").write_text("all:\n")
    (here / ".pre-commit-config.yaml").write_text("repos: []\n")
    assert main.main(["init"]) == 0
    said = capsys.readouterr().out
    assert (here / "Makefile").read_text() == "all:\n"
    assert (here / ".pre-commit-config.yaml").read_text() == "repos: []\n"
    assert "Makefile exists and is left as it is. Add to it:" in said
    assert project.read_project_text("Makefile") in said
    assert "- id: sync-rules-check" in said
    assert "repos:" not in said  # the file has it


def test_project_without_some_of_its_files_is_not_up_to_date(made, capsys):
    """`infra` names what is gone, with and without --check."""
    names = ("infra/machine.asl.json", "requirements.txt")
    for name in names:
        (made / name).unlink()
    for arguments in (["infra", "--check"], ["infra"]):
        assert main.main(arguments) == 1
        said = capsys.readouterr().err
        assert all(f"{name} is missing" in said for name in names)


def test_project_in_a_folder_of_a_repository(here, capsys):
    """The workflow and the hook go to the repository's root, and name the folder; two projects are two workflows."""
    (here / ".git").mkdir()
    assert main.main(["init", "data/shop"]) == 0
    assert main.main(["init", "data/other"]) == 0
    assert 'args: ["data/other/rules.yaml"]' in capsys.readouterr().out
    assert {path.name for path in (here / ".github/workflows").iterdir()} == {
        "sync-rules.yml",
        "sync-rules-data-other.yml",
    }
    (job,) = loaded(here / ".github/workflows/sync-rules.yml")["jobs"].values()
    assert job["defaults"] == {"run": {"working-directory": "data/shop"}}
    (hook,) = loaded(here / ".pre-commit-config.yaml")["repos"][0]["hooks"]
    assert main.main(["check", *hook["args"]]) == 0


def test_project_that_cannot_be_written_whole_leaves_nothing(here, monkeypatch, capsys):
    """A disk that is full after some files: they are removed again, with the folders made for them."""
    opened = Path.open

    def full(path: Path, *given, **more):
        if path.name == "requirements.txt" and given[:1] == ("x",):
            raise OSError(28, "No space left on device")
        return opened(path, *given, **more)

    monkeypatch.setattr(Path, "open", full)
    assert main.main(["init", "new"]) == 2
    assert "requirements.txt cannot be written: No space left on device. Nothing was written" in capsys.readouterr().err
    assert not list(here.iterdir())


# ---------------------------------------------------------------- from what there is
TABLE = {"Type": "AWS::DynamoDB::Table", "Properties": make_table_parameters(table("shop", {"id": "S"}), stream=False)}
TABLES = {"Resources": {"Shop": TABLE}}


def works_once_it_has_a_rule(here: Path) -> None:
    """Require that check and test pass as it is, and that with a rule the template is made from it."""
    assert [main.main(command) for command in (["check"], ["test", "scenarios"])] == [0, 0]
    assert main.main(["infra"]) == 2
    text = (here / "rules.yaml").read_text()
    entity = next(iter(loaded(here / "rules.yaml")["entities"]))
    made = f'rules:\n  loud: {{derive: {entity}.loud, as: "{{name:upper}}"}}\n'
    (here / "rules.yaml").write_text(text.partition("\nrules:")[0] + "\n" + made)
    assert main.main(["infra"]) == 0
    assert main.main(["infra", "--check"]) == 0


@pytest.mark.parametrize("by", ["file", "stdin"])
def test_project_from_a_file(here, monkeypatch, capsys, by):
    """Tables and entities are filled in, and there is no rule yet; the rest of the project is as always."""
    (here / "stack.json").write_text(json.dumps(TABLES))
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(TABLES)))
    assert main.main(["init", "--from", "stack.json" if by == "file" else "-"]) == 0
    said = capsys.readouterr().out
    assert "look at each CHECK in rules.yaml, write a rule or let `sync-rules propose` find some" in said
    assert "rules.yaml is made from" in said
    (shop,) = loaded(here / "rules.yaml")["tables"].values()
    assert shop["key"] == {"id": "S"}
    assert files_in(here).keys() == WRITTEN | {"stack.json"}
    works_once_it_has_a_rule(here)


# ---------------------------------------------------------------- upgrades
def changed(path: Path, old: str, new: str) -> None:
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


def test_upgrade_names_the_files_that_differ_once_and_writes_over_none(made, capsys):
    """After an upgrade `infra` writes the blocks, and leaves what you or an older version wrote elsewhere."""
    template, machine = made / "template.yaml", made / files.MACHINE
    changed(template, f'SYNC_RULES_VERSION: "{__version__}"', 'SYNC_RULES_VERSION: "0.0.1"')
    changed(template, "Timeout: 120", "Timeout: 90")
    machine.write_text("{}\n")
    before = {path: path.read_text() for path in (made / "requirements.txt", made / project.SCHEMA, machine)}
    capsys.readouterr()
    assert main.main(["infra", "--check"]) == 1
    assert main.main(["infra"]) == 1
    named = f"sync-rules {__version__}, and are left as they are:\n  template.yaml\n  infra/machine.asl.json\nTo see"
    assert capsys.readouterr().err.count(named) == 2
    assert "Timeout: 90" in template.read_text()
    assert {path: path.read_text() for path in before} == before
    assert main.main(["infra"]) == 0
    assert main.main(["infra", "--check"]) == 0


def test_upgrade_says_nothing_of_files_that_are_as_the_new_version_writes_them(made, capsys):
    """Windows line ends are no difference, and stay."""
    template = made / "template.yaml"
    changed(template, f'SYNC_RULES_VERSION: "{__version__}"', 'SYNC_RULES_VERSION: "0.0.1"')
    template.write_bytes(template.read_bytes().replace(b"\n", b"\r\n"))
    capsys.readouterr()
    assert main.main(["infra"]) == 0
    assert not capsys.readouterr().err
    assert template.read_bytes().count(b"\n") == template.read_bytes().count(b"\r\n")
