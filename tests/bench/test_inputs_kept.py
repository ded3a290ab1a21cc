"""An input is never an output: every command that writes refuses a path that it reads, under whatever name."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import pytest
import typer

from calibrant.bench.app import app
from calibrant.bench.cli import main
from calibrant.bench.commands.guard import READS, Reads, Writes, guard_paths, path_roles
from calibrant.bench.pools.bundled import bundled_pool
from tests.support.commands import command, refused

BYTES = b"what must not be lost\n"
TEXTS = {"protocol": "exact", "instance": "ID"}  # required arguments that are no paths
OPTIONS = {"seed": "1", "items": "2", "date": "2026-03-04"} | dict.fromkeys(("system", "version", "submitter"), "name")


class Command(NamedTuple):
    name: tuple[str, ...]
    callback: Callable[..., Any]
    parameters: list[Any]


def commands(group: Any = None, name: tuple[str, ...] = ()) -> Iterator[Command]:
    """Every command of the app, with what it is called by."""
    group = group or typer.main.get_command(app)
    for each, found in group.commands.items():
        if hasattr(found, "commands"):
            yield from commands(found, (*name, each))
        else:
            yield Command((*name, each), found.callback, found.params)


def pairs() -> Iterator[Any]:
    for one in commands():
        roles = path_roles(one.callback)
        for read in (name for name, role in roles.items() if isinstance(role, Reads)):
            for written, role in roles.items():
                if isinstance(role, Writes):
                    yield pytest.param(one, read, written, role, id=f"{'-'.join(one.name)}:{read}:{written}")


def arguments(one: Command, paths: dict[str, Path]) -> list[str]:
    """Return a command line that gives these paths, and something for whatever else is required."""
    line = list(one.name)
    for parameter in one.parameters:
        given = paths.get(parameter.name)
        if parameter.param_type_name == "argument":
            line.append(str(given) if given else TEXTS[parameter.name])
        elif given or parameter.required:
            line += [parameter.opts[0], str(given) if given else OPTIONS[parameter.name]]
    return line


def test_every_path_of_every_command_says_whether_it_is_read_or_written() -> None:
    silent = [(one.name, path) for one in commands() for path, role in path_roles(one.callback).items() if role is None]
    assert silent == []
    assert {one.name for one in commands() if any(isinstance(r, Writes) for r in path_roles(one.callback).values())} > {
        (name,) for name in ("score", "prompts", "report", "audit", "harden", "alternatives", "generate", "sample")
    }


def test_a_path_that_does_not_say_is_noticed() -> None:
    def unguarded(pool: Annotated[Path, READS], out: Annotated[list[Path] | None, typer.Option()] = None) -> None:
        pass

    assert path_roles(unguarded) == {"pool": READS, "out": None}
    assert path_roles(guard_paths(unguarded)) == {"pool": READS, "out": None}


@pytest.mark.parametrize(("one", "read", "written", "role"), list(pairs()))
@pytest.mark.parametrize("link", ["same", "symbolic", "hard"])
def test_no_command_writes_what_it_reads(
    one: Command,
    read: str,
    written: str,
    role: Writes,
    link: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    target = tmp_path / "target"
    place = target / role.inside[0].replace("*", "x") if role.inside else target
    place.parent.mkdir(exist_ok=True)
    given = place
    if link != "same":
        given = tmp_path / "input"
        given.write_bytes(BYTES)
        (place.symlink_to if link == "symbolic" else place.hardlink_to)(given)
    else:
        place.write_bytes(BYTES)
    roles = path_roles(one.callback)
    needed = {p.name for p in one.parameters if p.param_type_name == "argument" or p.required}
    others = {name: tmp_path / f"other_{name}" for name in roles if name in needed}
    told = refused(capsys, *arguments(one, others | {read: given, written: target}))
    assert f"is the input {given} too" in told
    assert given.read_bytes() == BYTES
    assert place.read_bytes() == BYTES
    assert sorted(path.name for path in tmp_path.rglob("*")) == sorted({target.name, place.name, given.name})


def test_a_file_that_comes_through_standard_input_is_an_input_too(tmp_path: Path) -> None:
    predictions = tmp_path / "p.jsonl"
    predictions.write_bytes(BYTES)
    with predictions.open("rb") as redirected:
        done = command("score", bundled_pool("block"), "-", "--out", predictions, stdin=redirected)
    assert (done.returncode, done.stdout) == (2, "")
    assert "is standard input too" in done.stderr
    assert predictions.read_bytes() == BYTES


def test_records_are_inputs_where_their_folder_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "exact", str(bundled_pool("block")), "--out", str(tmp_path), "--limit", "1"]) == 0
    capsys.readouterr()
    records = tmp_path / "records.jsonl"
    before = records.read_bytes()
    for name in ("alternatives", "report"):
        assert "records.jsonl is the input" in refused(capsys, name, tmp_path, "--out", records)
    assert "records.jsonl too" in refused(capsys, "run", "exact", records, "--out", tmp_path)
    assert records.read_bytes() == before
    assert main(["report", str(tmp_path), "--out", str(tmp_path / "report.md")]) == 0  # beside them is no harm


def test_devices_are_no_inputs_that_could_be_lost(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = refused(capsys, "score", bundled_pool("block"), os.devnull, "--out", tmp_path / "none" / "out.jsonl")
    assert "is the input" not in told


def test_two_outputs_of_a_command_are_two_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pool = bundled_pool("block")
    out = tmp_path / "out.jsonl"
    assert "is what --out writes too" in refused(capsys, "harden", pool, "--out", out, "--report", out)
    assert "writes too" in refused(capsys, "generate", "--seed", 1, "--out", out, "--audits", out)
    certificates = tmp_path / "c"
    line = ["audit", pool, "--html", certificates / "x.json", "--certificates", certificates]
    assert "is what --html writes too" in refused(capsys, *line)


@pytest.mark.parametrize("content", ["mine.txt", "instances.jsonl.bak"])
def test_a_folder_that_we_did_not_make_is_neither_used_nor_deleted(
    content: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "out.jsonl.unfinished"
    folder.mkdir()
    (folder / content).write_bytes(BYTES)
    line = ["harden", bundled_pool("block"), "--out", tmp_path / "out.jsonl"]
    assert "something else of that name is there" in refused(capsys, *line)
    assert [path.name for path in folder.iterdir()] == [content]
    (folder / content).rename(tmp_path / content)
    folder.rmdir()
    folder.symlink_to(tmp_path)
    assert "something else of that name is there" in refused(capsys, *line)
    assert (tmp_path / content).read_bytes() == BYTES
