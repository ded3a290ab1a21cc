"""Help, completion and messages: what a first user meets."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from calibrant.bench.cli import main
from calibrant.bench.core.registry import benchmarks, bundled_pool
from calibrant.bench.help import EXAMPLES, GROUPS, MAX_SHORT_HELP, MIN_GROUPED_OPTIONS, PANELS
from calibrant.bench.protocols import PROTOCOLS, Protocol, describe_protocol, meanings
from tests.bench.commands.lines import app
from tests.support.commands import program, refused


def commands(group: Any = None, name: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    group = group or typer.main.get_command(app)
    for each, found in group.commands.items():
        if hasattr(found, "commands"):
            yield from commands(found, (*name, each))
        else:
            yield (*name, each), found


COMMANDS = dict(commands())


@pytest.mark.parametrize("name", [(), ("pool",), *COMMANDS], ids=" ".join)
def test_help_is_short_and_long(name: tuple[str, ...]) -> None:
    told = [CliRunner().invoke(app, [*name, option]) for option in ("-h", "--help")]
    assert [one.exit_code for one in told] == [0, 0]
    assert told[0].stdout == told[1].stdout
    assert "-h, --help" in told[0].stdout


@pytest.mark.parametrize("name", COMMANDS, ids=" ".join)
def test_every_help_has_examples_and_they_parse(name: tuple[str, ...]) -> None:
    shown = CliRunner().invoke(app, [*name, "--help"]).stdout
    assert EXAMPLES[" ".join(name)]
    for example in EXAMPLES[" ".join(name)]:
        assert f"    {example}\n" in shown
        words = shlex.split(example.rpartition("| ")[2])
        assert words[: len(name) + 1] == ["calibrant", *name]
        with COMMANDS[name].make_context(name[-1], words[len(name) + 1 :]) as context:
            assert not context.args  # it parsed; a wrong option is an error


def test_there_are_no_examples_of_commands_that_are_not_there() -> None:
    assert {" ".join(name) for name in COMMANDS} == EXAMPLES.keys()


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("calibrant sco", ["score"]),
        ("calibrant pool con", ["convert"]),
        ("calibrant score --extr", ["--extractor"]),
        ("calibrant score --extractor pub", ["published"]),
    ],
)
def test_a_shell_completes_commands_options_and_choices(words: str, completed: list[str]) -> None:
    asked = {"_CALIBRANT_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    done = program(
        "-c", "import sys; from calibrant.bench.cli import main; sys.exit(main())", env={**os.environ, **asked}
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == completed


def test_the_completion_of_a_shell_can_be_shown() -> None:
    environment = {**os.environ, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    done = program("-m", "calibrant.bench.cli", "--show-completion", "bash", env=environment)
    assert done.returncode == 0
    assert "_CALIBRANT_COMPLETE=complete_bash" in done.stdout


REAL = [protocol for one in benchmarks() for protocol in one.require(PROTOCOLS)]


@pytest.mark.parametrize("protocol", REAL, ids=lambda protocol: protocol.name)
def test_every_option_of_every_protocol_has_a_meaning(protocol: type[Protocol]) -> None:
    told = describe_protocol(protocol)
    assert told["meanings"].keys() == told["options"].keys()
    assert all(told["meanings"].values())


def test_meanings_are_those_of_the_documentation_with_what_is_inherited() -> None:
    class Base(Protocol, frozen=True):
        """Does something.

        depth: how deep
        """

        depth: int = 1

    class Made(Base, frozen=True):
        """Does it otherwise.

        width: how wide it is, said in
            two lines
        near, far: how far it looks; late: one of two: now; or later
        Not an option: neither is this
        """

        width: int = 2
        near: int = 1
        far: int = 9
        late: bool = False

    far, late = "how far it looks", "one of two: now; or later"
    wide = "how wide it is, said in two lines"
    assert meanings(Made) == {"depth": "how deep", "width": wide, "near": far, "far": far, "late": late}


def test_protocols_say_what_their_options_mean(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["protocols", "exact"]) == 0
    assert "    max_parents=5  how many variables a mechanism may mention\n" in capsys.readouterr().out
    assert main(["protocols", "exact", "--json"]) == 0
    listed = {told["benchmark"]: told for told in json.loads(capsys.readouterr().out)}
    assert listed["ReplaySCM"]["meanings"] == {"max_parents": "how many variables a mechanism may mention"}
    assert listed["Extended blickets"]["options"] == {}


def test_errors_name_what_was_asked_for_and_no_temporary_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pool, gone = bundled_pool("block"), tmp_path / "p.jsonl" / "out.jsonl"
    predictions = tmp_path / "p.jsonl"
    predictions.write_text("{}\n", encoding="utf-8")
    assert refused(capsys, "pool", "convert", pool, gone) == "out.jsonl: cannot be written: Not a directory"
    assert refused(capsys, "score", pool, predictions, "--out", gone) == f"{gone}: Not a directory"


def test_ctrl_c_promises_to_go_on_only_where_that_holds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    pool = str(bundled_pool("block"))
    lines = {
        ("calibrant.bench.runs.audits.audit_items", True): ["audit", pool, "--out", str(tmp_path / "a")],
        ("calibrant.bench.runs.audits.audit_items", False): ["audit", pool],
        ("calibrant.bench.runs.runner.run", True): ["run", "exact", pool, "--out", str(tmp_path / "r")],
        ("calibrant.bench.replayscm.hardening.hardened_pool", True): [
            *("harden", pool, "--out", str(tmp_path / "h.jsonl"))
        ],
        ("calibrant.dsl.replayscm.pools.files.read_pool", False): ["pool", "convert", pool, str(tmp_path / "c.jsonl")],
    }
    for (where, goes_on), line in lines.items():
        with monkeypatch.context() as patched:
            patched.setattr(where, stopped)
            assert main(line) == 130
        said = "calibrant: interrupted" + "; the same command goes on from here" * goes_on
        assert capsys.readouterr().err.strip() == said


def test_the_list_of_commands_is_grouped_and_no_line_of_it_is_cut() -> None:
    """At 80 columns, in groups, every command once."""
    lines = CliRunner().invoke(app, ["--help"]).stdout.splitlines()
    start = lines.index("Start:")
    assert [line for line in lines[start:] if line.endswith(":")] == [f"{heading}:" for heading in GROUPS]
    rows = [line.split(None, 1) for line in lines[start:] if line.startswith("  ")]
    assert [name for name, _ in rows] == [name for group in GROUPS.values() for name in group]
    assert {name for name, _ in rows} == {name[0] for name in COMMANDS}
    assert [text for _, text in rows] == [text for group in GROUPS.values() for text in group.values()]
    assert all(len(text) <= MAX_SHORT_HELP and text[0].isupper() and not text.endswith(".") for _, text in rows)
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize("name", COMMANDS, ids=" ".join)
def test_every_option_has_a_heading_and_longer_lists_show_them(name: tuple[str, ...]) -> None:
    options = [parameter for parameter in COMMANDS[name].params if parameter.param_type_name == "option"]
    panels = {option.rich_help_panel for option in options}
    assert panels <= set(PANELS)
    text = CliRunner().invoke(app, [*name, "--help"]).stdout
    headings = panels if len(options) >= MIN_GROUPED_OPTIONS else {"Options"}
    expected = [f"{heading}:" for heading in (*PANELS, "Options") if heading in headings]
    assert [line for line in text.splitlines() if line in expected] == expected
    for option in options:
        assert option.opts[0] in text
