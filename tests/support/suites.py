"""A small suite with private gold, and submissions to it: honest ones, and one forgery of each kind."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from calibrant.bench.version import program_version

# --- A small suite with private gold, as files that `calibrant release` builds ----------------------------------------
SPECIFICATION = """
name = "two-pools"
version = "1.0"
title = "Two pools"
summary = "Items for tests."
license = "MIT"
url = "https://example.org/two-pools"
creators = ["A. Author"]
date = 2026-01-02
master = "master.key"
formats = ["jsonl"]

[[pool]]
name = "detectors"
benchmark = "blickets"
seed = 5
strata = "easy-3,order-2-of-4"
per_stratum = 2
rows = ["static", "quiet"]

[[pool]]
name = "questions"
benchmark = "causim"
seed = 6
strata = "chain"
per_stratum = 3
harden = {}
rows = ["exact", "copy"]

[statements]
judge = "None: answers are executed."
"""
MASTER = "ab" * 32


def write_specification(folder: Path, text: str = SPECIFICATION) -> Path:
    """Write the specification and its master; return the file of the first."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "master.key").write_text(MASTER, encoding="ascii")
    path = folder / "suite.toml"
    path.write_text(text, encoding="utf-8")
    return path


def build_apart(specification: Path, out: Path, hash_seed: int, *options: str) -> None:
    """Build the release in a process of its own with this hash seed."""
    command = [sys.executable, "-m", "calibrant.bench.cli", "release", str(specification), "--out", str(out)]
    subprocess.run(
        [*command, "--workers", "1", *options],
        env=os.environ | {"PYTHONHASHSEED": str(hash_seed)},
        check=True,
        capture_output=True,
        timeout=300,
    )


# --- Submissions to the small suite: honest ones from its rows, and one forgery of each kind --------------------------
Lines = list[dict[str, Any]]

CARD = {
    "version": "1",
    "suite": "two-pools",
    "suite_version": "1.0",
    "submitter": "A. Submitter",
    "relationship": "third_party",
}


def write_card(folder: Path, **changes: str) -> Path:
    """Write a card for the files of a folder, which is returned; changes: fields as TOML, `more` after them."""
    more = changes.pop("more", "")
    fields = {"system": folder.name, **CARD}
    lines = [f"{key} = {json.dumps(value)}" for key, value in fields.items() if key not in changes]
    lines += [f"{key} = {value}" for key, value in changes.items() if value]
    files = [path for path in sorted(folder.glob("*.jsonl")) if path.is_file()]
    lines += ["date = 2026-03-04", more, "[files]"]
    lines += [f'"{path.name}" = "{sha256(path.read_bytes()).hexdigest()}"' for path in files]
    (folder / "card.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def honest(suite: Path, folder: Path, row: str = "static", **changes: str) -> Path:
    """Write a submission with the answers of a row to one pool."""
    folder.mkdir(parents=True)
    for file in (suite / "gold" / "rows" / row).glob("*.jsonl"):
        shutil.copyfile(file, folder / file.name)
    write_card(folder, **changes)
    return folder


def read(file: Path) -> Lines:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def write_lines(file: Path, lines: Lines) -> None:
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def write(file: Path, lines: Lines) -> None:
    """Write a file of a submission, and the card anew."""
    write_lines(file, lines)
    write_card(file.parent)


def _detectors(change: Callable[[Lines], Lines]) -> Callable[[Path, Path], object]:
    """Return a forgery that changes the lines of the played pool and states their digest."""

    def forge(suite: Path, folder: Path) -> None:
        file = honest(suite, folder) / "detectors.jsonl"
        write(file, change(read(file)))

    return forge


def _questions(change: Callable[[Lines], Lines]) -> Callable[[Path, Path], object]:
    def forge(suite: Path, folder: Path) -> None:
        file = honest(suite, folder, "exact") / "questions.jsonl"
        write(file, change(read(file)))

    return forge


def _card(**changes: str) -> Callable[[Path, Path], object]:
    return lambda suite, folder: write_card(honest(suite, folder), **changes)


def _after(change: Callable[[Path, Path], object]) -> Callable[[Path, Path], object]:
    """Return a forgery of the folder of an honest submission."""

    def forge(suite: Path, folder: Path) -> None:
        change(suite, honest(suite, folder))

    return forge


def _first(**fields: Any) -> Callable[[Lines], Lines]:
    return lambda lines: [lines[0] | fields, *lines[1:]]


def _step(change: Callable[[list[Any]], list[Any]]) -> Callable[[Lines], Lines]:
    return lambda lines: [lines[0] | {"steps": change(lines[0]["steps"])}, *lines[1:]]


def _contradict(lines: Lines) -> Lines:
    """Return the lines, the first with another answer than its steps submit."""
    submitted = next(step["action"]["check"] for step in lines[0]["steps"] if "check" in step["action"])
    other = "conjunctive" if submitted["rule"] == "disjunctive" else "disjunctive"
    return [lines[0] | {"answer": submitted | {"rule": other}}, *lines[1:]]


def _flip(file: Path) -> None:
    raw = bytearray(file.read_bytes())
    raw[len(raw) // 2] ^= 1
    file.write_bytes(bytes(raw))


def _packed(folder: Path) -> None:
    (folder / "detectors.jsonl").write_bytes(gzip.compress(b" " * 10_000_000))
    write_card(folder)


def _link(suite: Path, folder: Path) -> None:
    target = suite / "gold" / "rows" / "static" / "detectors.jsonl"
    (folder / "detectors.jsonl").unlink()
    (folder / "detectors.jsonl").symlink_to(target)


def _link_card(suite: Path, folder: Path) -> None:
    (folder / "card.toml").rename(folder.parent.parent / "card.toml")
    (folder / "card.toml").symlink_to(folder.parent.parent / "card.toml")


def _copy_of_honest(folder: Path) -> None:
    """Write the honest submission beside it under another name."""
    shutil.copytree(folder.parent / "honest", folder)
    write_card(folder)


def _nest(folder: Path) -> None:
    """Write a line of a million arrays in each other."""
    file = folder / "detectors.jsonl"
    file.write_text("[" * 1_000_000 + "]" * 1_000_000 + "\n" + file.read_text())
    write_card(folder)


FORGERIES: Mapping[str, tuple[Callable[[Path, Path], object], str]] = {
    "byte": (_after(lambda suite, folder: _flip(folder / "detectors.jsonl")), "detectors.jsonl: changed: its SHA-256"),
    "digest": (
        _after(
            lambda suite, folder: (folder / "card.toml").write_text(
                (folder / "card.toml").read_text().rpartition('"')[0][:-4] + '0000"\n'
            )
        ),
        "detectors.jsonl: changed: its SHA-256",
    ),
    "cost": (_detectors(_step(lambda steps: [steps[0] | {"cost": 0}, *steps[1:]])), "detectors.jsonl: line 1: step 0"),
    "reading": (
        _detectors(_step(lambda steps: [steps[0] | {"reading": "everything is on"}, *steps[1:]])),
        "detectors.jsonl: line 1: step 0",
    ),
    "refusal": (
        _detectors(_step(lambda steps: [steps[0] | {"refused": "not now"}, *steps[1:]])),
        "detectors.jsonl: line 1: step 0",
    ),
    "missing-step": (_detectors(_step(lambda steps: steps[1:])), "detectors.jsonl: line 1: step "),
    "twice-the-step": (_detectors(_step(lambda steps: [*steps, steps[-1]])), "detectors.jsonl: line 1: step "),
    "no-step": (_detectors(_step(lambda steps: [5, *steps])), "detectors.jsonl: line 1: step 0"),
    "other-answer": (_detectors(_contradict), "detectors.jsonl: line 1: the answer"),
    "unknown-item": (_detectors(_first(instanceId="item-0")), "detectors.jsonl: line 1: detectors has no instance"),
    "item-of-another": (
        _questions(lambda lines: [lines[0] | {"promptDigest": "0" * 64}, *lines[1:]]),
        "questions.jsonl: line 1: promptDigest",
    ),
    "no-sample": (_questions(_first(sample=-1)), "questions.jsonl: line 1: sample is -1"),
    "two-models": (_questions(_first(model="another")), "questions.jsonl: lines of several models"),
    "many-samples": (_questions(lambda lines: lines[:1] * 65), "questions.jsonl: more than 64 answers to item-"),
    "negative-seconds": (_questions(_first(seconds=-1)), "questions.jsonl: line 1: seconds is -1"),
    "no-json": (
        _after(lambda suite, folder: [(folder / "detectors.jsonl").write_text("{"), write_card(folder)]),
        "detectors.jsonl: line 1: not a JSON object",
    ),
    "empty": (
        _after(lambda suite, folder: [(folder / "detectors.jsonl").write_text(""), write_card(folder)]),
        "detectors.jsonl: no predictions in it",
    ),
    "packed": (_after(lambda suite, folder: _packed(folder)), "detectors.jsonl: compressed; give plain JSON lines"),
    "other-suite": (_card(suite='"three-pools"'), "card.toml: it is for 'three-pools 1.0', not for two-pools 1.0"),
    "other-version": (_card(suite_version='"1.1"'), "card.toml: it is for 'two-pools 1.1', not for two-pools 1.0"),
    "verdict-in-card": (_card(rate="1.0"), "card.toml: unknown field `rate`"),
    "negative-cost": (_card(cost="-1", currency='"USD"'), "card.toml: cost: expected a number of at least 0"),
    "cost-without-currency": (_card(cost="1.0"), "card.toml: cost and currency are given together"),
    "no-submitter": (_card(submitter=""), "card.toml: the field `submitter` is missing"),
    "no-card": (_after(lambda suite, folder: (folder / "card.toml").unlink()), "no card.toml in it"),
    "no-toml": (_after(lambda suite, folder: (folder / "card.toml").write_text("=")), "card.toml: not TOML"),
    "large-card": (
        _after(lambda suite, folder: (folder / "card.toml").write_text("#" * 70_000)),
        "card.toml: larger than 65536 bytes",
    ),
    "link": (_after(_link), "'detectors.jsonl' is a link, a folder or a device, not a file"),
    "pipe": (_after(lambda suite, folder: os.mkfifo(folder / "pipe.jsonl")), "'pipe.jsonl' is a link, a folder"),
    "folder": (_after(lambda suite, folder: (folder / "inside").mkdir()), "'inside' is a link, a folder or a device"),
    "unlisted": (_after(lambda suite, folder: (folder / "x.txt").write_text("")), "'x.txt' is not listed in card.toml"),
    "missing": (_after(lambda suite, folder: (folder / "detectors.jsonl").unlink()), "No such file or directory"),
    "way-out": (
        _after(
            lambda suite, folder: (folder / "card.toml").write_text(
                (folder / "card.toml")
                .read_text()
                .replace('"detectors.jsonl"', '"../../gold/detectors/detectors.jsonl"')
            )
        ),
        "'detectors.jsonl' is not listed in card.toml",
    ),
    "way-out-alone": (
        _after(
            lambda suite, folder: [
                (folder / "card.toml").write_text(
                    (folder / "card.toml").read_text() + f'"/etc/passwd" = "{"0" * 64}"\n'
                )
            ]
        ),
        "card.toml: file '/etc/passwd' is none of detectors.jsonl, questions.jsonl",
    ),
    "unknown-pool": (
        _after(lambda suite, folder: [(folder / "others.jsonl").write_text("{}\n"), write_card(folder)]),
        "card.toml: file 'others.jsonl' is none of detectors.jsonl, questions.jsonl",
    ),
    "same-system": (_card(system='"honest"', version='"1"'), "the same system and version as honest"),
    "reversed-name": (_card(system='"\\u202Etsenoh"'), "has spaces or characters that are not shown"),
    "zero-width": (_card(system='"hon\\u200best"'), "has spaces or characters that are not shown"),
    "filler": (_card(version='"1\\u3164"'), "has spaces or characters that are not shown"),
    "spaces": (_card(developer='"honest "'), "has spaces or characters that are not shown"),
    "lookalike": (
        _card(system='"h\\u043enest"', version='"1"'),
        "same system and version as honest, or names that read",
    ),
    "wide-capitals": (
        _card(system='"\\uff28ONEST"', version='"l"'),
        "same system and version as honest, or names that",
    ),
    "row": (
        _card(system='"static"', version=f'"calibrant {program_version()}"'),
        "as the row static, or names that read",
    ),
    "row-submitter": (_card(submitter='"R0w of the suite"'), "a submitter is not called 'row of the suite'"),
    "taken-answers": (lambda suite, folder: _copy_of_honest(folder), "its files are those of honest"),
    "rank": (_card(rank="1"), "card.toml: unknown field `rank`; known: "),
    "no-number": (_card(cost="nan", currency='"USD"'), "card.toml: cost: expected a number of at least 0"),
    "before-the-suite": (
        _after(
            lambda suite, folder: (folder / "card.toml").write_text(
                (folder / "card.toml").read_text().replace("2026-03-04", "0001-01-01")
            )
        ),
        "card.toml: its date 0001-01-01 is before that of the suite, 2026-01-02",
    ),
    "deep-card": (
        _card(more=f"settings = {'[' * 30_000}{']' * 30_000}"),
        "card.toml: line 8: nested more than 32 deep",
    ),
    "linked-card": (_after(lambda suite, folder: _link_card(suite, folder)), "'card.toml' is a link, a folder"),
    "nested-line": (_after(lambda suite, folder: _nest(folder)), "detectors.jsonl: line 1: nested more than 200 deep"),
    "bad name": (_after(lambda suite, folder: None), "a name of a submission is 1 to 64 letters"),
}
"""Each with the beginning of its reason, or a part of it."""
