"""A command line for every command on a small pool of every benchmark, and what came of it."""

from __future__ import annotations

import io
import json
import re
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import typer

from calibrant.bench.command_tree import COMMANDS as COMMAND_MODULES
from calibrant.bench.command_tree import typer_app
from calibrant.bench.core.registry import bundled_pool, bundled_sample
from tests.support.commands import called, jsonl

# --- The application with every command: what needs all signatures. One command is run by `bench.command_tree` --------
app = typer_app(COMMAND_MODULES)


BENCHMARKS = ("replayscm", "blickets", "causalab", "causim", "logic")
PROTOCOLS = {"replayscm": "exact", "blickets": "static", "causalab": "greedy", "causim": "copy", "logic": "greedy"}
SUITES = {
    "replayscm": "hs_n6_easy_calibration",
    "blickets": "easy-3",
    "causalab": "3nodes",
    "causim": "chain",
    "logic": "exact",
}


def commands(group: Any = None, name: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Every command of the app by its name."""
    group = group or typer.main.get_command(app)
    for each, found in group.commands.items():
        if hasattr(found, "commands"):
            yield from commands(found, (*name, each))
        else:
            yield " ".join((*name, each)), found


COMMANDS = dict(commands())


@dataclass(frozen=True)
class Files:
    """What the commands of one benchmark read: a pool of two items, runs, predictions, and what ReplaySCM alone has."""

    benchmark: str
    folder: Path
    ids: tuple[str, ...]

    @classmethod
    def made(cls, benchmark: str, folder: Path) -> Files:
        """Write them all."""
        source = bundled_pool("hidden-roots") if benchmark == "replayscm" else bundled_sample(benchmark)
        lines = source.read_text("utf-8").splitlines(keepends=True)
        files = cls(benchmark, folder, tuple(json.loads(line)["id"] for line in (lines[1], lines[5])))
        files.pool.write_text("".join((lines[0], lines[1], lines[5])), "utf-8")
        files.knowledge.write_text("forbid X1 -> X3\n", "utf-8")
        second = folder / "second.jsonl"
        second.write_text("".join((lines[0].replace('"name":"', '"name":"second_', 1), lines[1])), "utf-8")
        for pool, run in ((files.pool, files.run), (second, files.second_run)):
            assert called("run", PROTOCOLS[benchmark], pool, "--out", run, "--workers", "1").returncode == 0
        records = map(json.loads, (files.run / "records.jsonl").read_text("utf-8").splitlines())
        answers = {record["instance"]: record["answer"] for record in records}
        # the two extractors of ReplaySCM differ in an answer that is wrapped
        texts = [json.dumps({"answer": answers[one]}) for one in files.ids]
        known = zip(files.ids, texts, strict=True)
        jsonl(files.predictions, *({"id": one, "model": "m", "rawResponse": text} for one, text in known))
        if benchmark == "replayscm":
            wrong: dict[str, object] = {"mechanisms": {}, "roots": []}
            files.answer.write_text(json.dumps(answers[files.ids[0]]), "utf-8")
            jsonl(files.alternatives, {"instance": files.ids[0], **answers[files.ids[0]]})
            jsonl(folder / "bad.jsonl", *({"id": one, "model": "wrong", "answer": wrong} for one in files.ids))
            assert called("score", files.pool, folder / "bad.jsonl", "--out", files.scored).returncode == 0
        called("audit", files.pool, "--certificates", folder / "certs", "--workers", "1", "--out", files.audit)
        return files

    def __getattr__(self, name: str) -> Path:
        """Return a file or folder of that name."""
        if name.startswith("_"):
            raise AttributeError(name)
        suffix = "" if name in ("run", "second_run", "audit") else ".json" if name == "answer" else ".jsonl"
        return self.folder / f"{name}{suffix}"

    @property
    def certificates(self) -> list[Path]:
        return sorted((self.folder / "certs").glob("*"))


class Outcome(NamedTuple):
    """Exit code, what was printed, and the files that were written, without times and without names of folders."""

    code: int
    out: str
    err: str
    files: Mapping[str, str]


def outcome(line: Sequence[object], folder: Path, monkeypatch: pytest.MonkeyPatch) -> Outcome:
    """Call the command with nothing on standard input; it writes into the folder, which is made anew."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    done = called(*line)
    files = {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*")) if path.is_file()}
    texts = {name: _masked(path.read_bytes().decode("utf-8", "replace"), folder) for name, path in files.items()}
    return Outcome(done.returncode, _masked(done.stdout, folder), _masked(done.stderr, folder), texts)


def _masked(text: str, folder: Path) -> str:
    text = re.sub(r'"(timing|provenance)": ?\{[^{}]*\}', "", text.replace(str(folder), "OUT"))
    return re.sub(r'(seconds\w*"?:? ?)(\d+\.\d+(e-\d+)?)', r"\1TIME", text)


def _table(out: Path) -> Path:
    """Return a table of two columns that are equal, and a third in which one row is never shown with X2 free."""
    path = out.parent / "table.csv"
    path.write_text("X1,X2,X3,set\n0,0,0,\n1,1,1,\n0,1,1,X2\n1,0,0,X2\n", encoding="utf-8")
    return path


def base_line(command: str, files: Files, out: Path) -> list[object]:
    """Return the shortest line of a command on these files.

    out: the folder into which it may write
    """
    pool, one, new = files.pool, files.ids[0], ["--out", out / "new.jsonl"]
    certificates = files.certificates[:1] or [files.predictions]
    scored = [files.scored] if files.benchmark == "replayscm" else []
    run = files.run
    if command == "alternatives":  # a sweep adds to it
        run = shutil.copytree(run, out.parent / "run", dirs_exist_ok=True)
    lines: dict[str, list[object]] = {
        "run": [PROTOCOLS[files.benchmark], pool, "--out", out / "run"],
        "protocols": [],
        "score": [pool, files.predictions],
        "table": [files.run, *scored],
        "report": [files.run, *scored],
        "show": [pool, one],
        "list": [pool],
        "fit": [_table(out), "--do", "set"],
        "prompts": [pool],
        "sample": ["--seed", 1, "--per-stratum", 1, "--strata", SUITES["replayscm"], *new],
        "audit": [pool],
        "alternatives": [run, *new],
        "harden": [pool, *new],
        "separate": [pool, one],
        "verify": [*certificates, pool],
        "generate": ["--benchmark", files.benchmark, "--seed", 1, "--per-stratum", 1],
        "export": [pool, "--out", out / "export"],
        "play": [pool, one],
        "schema": ["verdicts"],
        "training": [pool, *new],
        "pool convert": [pool, out / "new.jsonl"],
        "pool alternatives": [pool, out / "new.jsonl"],
        "pool check": [pool],
        "pool distinct": [pool, out / "new.jsonl"],
        "pool split": [pool, "--shares", ".5,.5", "--out", out / "folder"],
        "pool unpack": [pool, out / "folder"],
        "pool stats": [pool],
        "pool schema": [],
    }
    lines["generate"] += ["--strata", SUITES[files.benchmark], *new]
    return [*command.split(), *lines[command]]
