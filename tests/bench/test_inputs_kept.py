"""Files that commands write: never an input, never one that is there, the same under every hash seed."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import pytest
import typer

from calibrant.bench.cli import main
from calibrant.bench.commands.guard import READS, WRITES_OR_READS, Reads, Writes, guard_paths, path_roles
from calibrant.bench.core.registry import bundled_pool
from tests.bench.commands.lines import COMMANDS
from tests.support.commands import command, program, refusal, refused
from tests.support.effort import effort
from tests.support.every_writer import codes
from tests.support.shared import shared_file

# --- An input is never an output, and nothing that is there already is lost -------------------------------------------
# Every command that writes refuses a path that it reads, under whatever name, and a file that exists; a page or a
# picture takes the place of an earlier one.
PAGE_MARK = '<meta name="generator" content="calibrant">'
BYTES = b"what must not be lost\n"
TEXTS = {"protocol": "exact", "instance": "ID"}  # required arguments that are no paths
OPTIONS = {"seed": "1", "items": "2", "date": "2026-03-04"} | dict.fromkeys(("system", "version", "submitter"), "name")


class Command(NamedTuple):
    name: tuple[str, ...]
    callback: Callable[..., Any]
    parameters: list[Any]


ALL = [Command(tuple(name.split()), found.callback, found.params) for name, found in COMMANDS.items()]


def pairs() -> Iterator[Any]:
    links = cycle(("same", "symbolic", "hard"))
    for one in ALL:
        roles = path_roles(one.callback)
        for read in (name for name, role in roles.items() if isinstance(role, Reads)):
            for written, role in roles.items():
                if isinstance(role, Writes):
                    name = f"{'-'.join(one.name)}:{read}:{written}"
                    for link in effort((next(links),), ("same", "symbolic", "hard")):
                        yield pytest.param(one, read, written, role, link, id=f"{name}:{link}")


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
    silent = [(one.name, path) for one in ALL for path, role in path_roles(one.callback).items() if role is None]
    assert silent == []
    assert {one.name for one in ALL if any(isinstance(r, Writes) for r in path_roles(one.callback).values())} > {
        (name,) for name in ("score", "prompts", "report", "audit", "harden", "alternatives", "generate", "sample")
    }


def test_a_path_that_does_not_say_is_noticed() -> None:
    def unguarded(pool: Annotated[Path, READS], out: Annotated[list[Path] | None, typer.Option()] = None) -> None:
        pass

    assert path_roles(unguarded) == {"pool": READS, "out": None}
    assert path_roles(guard_paths(unguarded)) == {"pool": READS, "out": None}


@pytest.mark.soak
@pytest.mark.parametrize(("one", "read", "written", "role", "link"), list(pairs()))
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


def test_a_pool_that_was_converted_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its second path may be read: PKN MIDAS FILE, of which FILE is written."""
    examples = Path(__file__).parents[2] / "docs" / "examples"
    for line in ([bundled_pool("block")], [examples / "prior.sif", examples / "cells.csv"]):
        out = tmp_path / f"{len(line)}.jsonl"
        words = ["pool", "convert", *map(str, line)]
        assert main([*words, str(out)]) == 0
        before = out.read_bytes()
        capsys.readouterr()
        error, hint = refusal(capsys, *words, out)
        assert f"{out} is there already" in error
        assert shlex.split(hint) == ["calibrant", *words, str(out.with_stem(f"{len(line)}-2"))]
        assert out.read_bytes() == before


@pytest.mark.parametrize("name", ["a.unfinished.jsonl", "old.unfinished/a.jsonl", "a.jsonl.unfinished/instances.jsonl"])
def test_a_name_like_that_of_a_folder_to_go_on_from_is_kept_like_any_other(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / name
    out.parent.mkdir(exist_ok=True)
    out.write_bytes(BYTES)
    assert f"{out} is there already" in refused(capsys, "prompts", bundled_pool("block"), "--limit", 1, "--out", out)
    assert out.read_bytes() == BYTES


def test_the_present_folder_is_refused_with_a_free_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "0000.json").write_bytes(BYTES)
    error, hint = refusal(capsys, "audit", bundled_pool("block"), "--certificates", ".")
    assert "0000.json is there already" in error
    assert shlex.split(hint)[-1] == str(tmp_path / "new-2")


def outputs() -> Iterator[Any]:
    for one in ALL:
        for name, role in path_roles(one.callback).items():
            if isinstance(role, Writes) and role != WRITES_OR_READS:
                yield pytest.param(one, name, role, id=f"{'-'.join(one.name)}:{name}")


@pytest.mark.parametrize(("one", "written", "role"), list(outputs()))
def test_no_command_takes_the_place_of_a_file(
    one: Command, written: str, role: Writes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever it is: a page only gives way to a page, and folders of records are gone on with, or refused."""
    target = tmp_path / "target.x"
    place = target / role.inside[0].replace("*", "x") if role.inside else target
    place.parent.mkdir(exist_ok=True)
    place.write_bytes(BYTES)
    needed = {p.name for p in one.parameters if p.param_type_name == "argument" or p.required}
    others = {name: tmp_path / f"other_{name}" for name in path_roles(one.callback) if name in needed}
    error, hint = refusal(capsys, *arguments(one, others | {written: target}))
    assert place.read_bytes() == BYTES
    if role.inside and role.is_resumable:
        assert "is there already" not in error
        return
    assert f"{place} is there already" in error
    line = shlex.split(hint)[1:]
    assert str(tmp_path / "target-2.x") in line
    if any(isinstance(path_roles(one.callback)[name], Reads) for name in others):  # which are missing
        assert "is there already" not in refused(capsys, *line)


@pytest.mark.parametrize(
    ("option", "content", "is_kept"),
    [
        ("--html", f"<!DOCTYPE html>\n{PAGE_MARK}\n<title>earlier</title>", False),
        ("--html", "<!DOCTYPE html>\n<title>of another program</title>", True),
        ("--html", "", False),
        ("--html", "<svg></svg>", True),
        ("--svg", "<svg><style>:root{color-scheme:light</style></svg>", False),
        ("--svg", "<svg></svg>", True),
        ("--svg", "<?xml version='1.0'?>\n<invoice/>", True),
        ("--svg", "<!DOCTYPE html>", True),
    ],
)
def test_a_page_gives_way_to_a_page_and_a_picture_to_a_picture(
    option: str, content: str, is_kept: bool, tmp_path: Path
) -> None:
    target = tmp_path / "target"
    target.write_text(content, encoding="utf-8")
    pool = Path(__file__).parents[2] / "docs" / "examples" / "switches.jsonl"
    assert main(["show", str(pool), "lamp", option, str(target)]) == (2 if is_kept else 0)
    assert (target.read_text("utf-8") == content) is is_kept


def test_every_page_and_picture_has_the_mark_by_which_it_is_replaced(tmp_path: Path) -> None:
    """Written twice to the same path: the second takes the place of the first, and no other program's file has it."""
    pool, table = (str(Path(__file__).parents[2] / "docs" / "examples" / f"switches.{end}") for end in ("jsonl", "csv"))
    page, picture, runs = (str(tmp_path / name) for name in ("a.html", "a.svg", "runs"))
    assert main(["run", "exact", pool, "--out", runs]) == 0
    for line in (
        ["show", pool, "lamp", "--html", page],
        ["show", pool, "lamp", "--svg", picture],
        ["fit", table, "--html", page, "--svg", picture],
        ["list", pool, "--html", page],
        ["audit", pool, "--html", page],
        ["report", runs, "--plots", str(tmp_path / "plots")],
    ):
        assert [main(line), main(line)] == [0, 0], line
    assert PAGE_MARK in Path(page).read_text("utf-8")
    assert any((tmp_path / "plots").glob("*.svg"))


def test_what_was_stopped_goes_on_and_what_is_done_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Certificates of an audit that resumes are written again; a pool that is complete is not generated again."""
    pool, certificates, records = bundled_pool("block"), tmp_path / "c", tmp_path / "records"
    line = ["audit", str(pool), "--limit", "1", "--certificates", str(certificates), "--workers", "1"]
    assert main([*line, "--out", str(records)]) == 0
    assert main([*line, "--out", str(records)]) == 0
    capsys.readouterr()
    assert "is there already" in refused(capsys, *line)
    out = tmp_path / "out.jsonl"
    generate = ["sample", "--seed", "1", "--strata", "hs_n6_easy_calibration", "--per-stratum", "1", "--out", str(out)]
    assert main(generate) == 0
    before = out.read_bytes()
    capsys.readouterr()
    assert refusal(capsys, *generate)[1] == shlex.join(["calibrant", *generate[:-1], str(tmp_path / "out-2.jsonl")])
    assert out.read_bytes() == before


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


# --- What a command writes does not depend on the hash seed of the process --------------------------------------------
def written(folder: Path) -> dict[str, Any]:
    """Everything in a folder by its path, JSON lines without times and bytes otherwise."""
    made: dict[str, Any] = {}
    for path in sorted(folder.rglob("*")):
        if path.suffix == ".jsonl":
            lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
            made[str(path.relative_to(folder))] = [{k: v for k, v in one.items() if k != "timing"} for one in lines]
        elif path.is_file() and path.suffix != ".lock":
            made[str(path.relative_to(folder))] = path.read_bytes()
    return made


def test_every_command_writes_the_same_under_every_hash_seed(tmp_path: Path) -> None:
    """Here, under a seed of chance or one that was set, and in a process of another one.

    The shared instance is one whose best split once depended on it.
    """
    pool = shared_file("hash_seed.jsonl", part="replayscm/adversarial")
    here, there = tmp_path / "here", tmp_path / "there"
    for folder in (here, there):
        folder.mkdir()
    said = list(codes(here, pool))
    seed = "3" if os.environ.get("PYTHONHASHSEED") == "0" else "0"
    done = program("-m", "tests.support.every_writer", there, pool, env={**os.environ, "PYTHONHASHSEED": seed})
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert [line for line in done.stdout.splitlines() if line.endswith((": 0", ": 1", ": 2"))] == said
    assert not any(line.endswith(": 2") for line in said)
    made, again = written(here), written(there)
    assert len(made) >= 20
    assert made.keys() == again.keys()
    for name, content in made.items():
        assert content == again[name], name
