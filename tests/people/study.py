"""A study of two groups in two languages, with instructions and a code, through a server that is killed.

    python -m tests.people.study --participants 40 --kills 3

Programs play three items each. Nothing is lost, doubled or shown early: the tables have what was sent, and pandas and R
read the same figures from them.
"""

from __future__ import annotations

import argparse
import csv
import json
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any, TypeAlias

from calibrant.bench.play.game import PlayPool
from tests.people.__main__ import KilledServer, check_sealed, play_through_kills
from tests.support.commands import called
from tests.support.play.right_lines import POOLS, right_actions
from tests.support.play.served import SimulatedParticipant

CODE = "CODE-7Q2"
FILES = {
    "consent.md": ("You may stop at any time.", "Sie können jederzeit aufhören."),
    "intro.md": ("# Detectors\n\nA detector glows.", "# Detektoren\n\nEin Detektor leuchtet."),
    "hint.md": ("# A hint\n\nTry one object at a time.", "# Ein Hinweis\n\nEinen Gegenstand nach dem anderen."),
}
QUESTION = '[[question]]\nid = "{id}"\ntext = "{text}"\nkind = "{kind}"\n{more}\n'
Questions: TypeAlias = list[tuple[str, tuple[str, str], str, tuple[str, ...], str | int | None]]
PAGES: dict[str, Questions] = {
    "check": [("glows", ("What does it do?", "Was tut er?"), "choice", ('options = ["glow", "sing"]',) * 2, "glow")],
    "about": [
        ("age", ("Age?", "Alter?"), "number", ("min = 18\nmax = 99\nwhole = true",) * 2, None),
        ("free", ("Comments?", "Anmerkungen?"), "text", ("optional = true",) * 2, None),
        ("attend", ("Choose 2.", "Wählen Sie 2."), "likert", ("points = 5",) * 2, 2),
    ],
}


def write_study(folder: Path, num_participants: int) -> Path:
    """Write the study with all of its files, in English and German."""
    for name, texts in FILES.items():
        for code, text in zip(("", ".de"), texts, strict=True):
            (folder / name).with_suffix(f"{code}.md").write_text(text, encoding="utf-8")
    for name, questions in PAGES.items():
        for k, code in enumerate(("", ".de")):
            text = f'title = "{name}"\n'
            for key, texts, kind, mores, correct in questions:
                more = mores[k] + (f"\ncorrect = {json.dumps(correct)}" if correct is not None else "")
                text += QUESTION.format(id=key, text=texts[k], kind=kind, more=more)
            (folder / f"{name}{code}.toml").write_text(text, encoding="utf-8")
    ids = {kind: list(PlayPool(POOLS[kind]).indices) for kind in ("blickets", "causim")}
    path = folder / "study.toml"
    text = f"""[study]
title = "two groups"
out = "served"
participants = "w{1:03d}-w{num_participants:03d}"
groups = ["quiet", "told"]
lang = ["en", "de"]
consent = "consent.md"
order = "latin"
seed = "1"
completion = {{code = "{CODE}"}}
[[block]]
instructions = "intro.md"
questions = "check.toml"
tries = 3
[[block]]
instructions = "hint.md"
groups = ["told"]
"""
    for pool, names, group in (
        ("blickets", ids["blickets"][:2], "quiet"),
        ("blickets", ids["blickets"][2:4], "told"),
        ("causim", ids["causim"][:1], ""),
    ):
        groups = f'groups = ["{group}"]' if group else ""
        text += f'[[block]]\npool = "{POOLS[pool]}"\nids = {json.dumps(names)}\nlimit = 900\n{groups}\n'
    path.write_text(text + '[[block]]\nquestions = "about.toml"\n', encoding="utf-8")
    return path


class Person:
    """What a simulated participant is like. is_careless: fails the instructions each time."""

    def __init__(self, number: int) -> None:
        self.rng = Random(number)
        self.lang = ("en", "de")[number % 2]
        self.is_careless = number % 20 == 0
        self.age = 18 + number
        self.text = f'Ünïcode, "quotes", a | bar;\nand a second line {number}'
        self.attends = number % 7 != 0

    def answer(self, state: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the answers to a page; those of careful ones about instructions may be wrong at first."""
        if state["name"].endswith("hint"):
            return {}
        if state["name"].endswith("check"):
            is_wrong = self.is_careless or (state["tries"] == 0 and self.rng.random() < 0.4)
            return {"glows": "sing" if is_wrong else "glow"}
        return {"age": self.age, "free": self.text, "attend": 2 if self.attends else 3}


def play_study(folder: Path, num_participants: int, num_kills: int) -> tuple[list[Person], list[SimulatedParticipant]]:
    """Let all of them play at once while the server is killed; AssertionError if one of them fails."""
    path = write_study(folder, num_participants)
    pools = [PlayPool(POOLS[kind]) for kind in ("blickets", "causim")]
    items = {pool.public.ids.public(name): pool.item(name) for pool in pools for name in pool.indices}

    def actions(public_id: str) -> Iterator[Any]:
        yield from map(json.loads, right_actions(items[public_id]))

    server = KilledServer(path, folder / "served")
    people = [Person(k) for k in range(1, num_participants + 1)]
    players = [
        SimulatedParticipant(
            lambda: server.address.port,
            f"/{server.address.participant_token(f'w{k:03d}')}/",
            actions,
            person.rng,
            answer=person.answer,
            lang=person.lang,
        )
        for k, person in enumerate(people, 1)
    ]
    failures = play_through_kills(server, players, [1.0 + kill / 2 for kill in range(num_kills)])
    server.stop()
    assert not failures, failures[:3]
    return people, players


def check_tables(folder: Path, people: list[Person], players: list[SimulatedParticipant]) -> dict[str, Any]:
    """Compare the tables with what was sent; return their figures."""
    done = called("play", "--study", folder / "study.toml", "--results", folder / "people.csv")
    assert done.returncode == 0, done.stderr
    with (folder / "people.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    with (folder / "people.moves.csv").open(encoding="utf-8", newline="") as file:
        moves = list(csv.DictReader(file))
    groups: Counter[str] = Counter()
    for k, (person, player) in enumerate(zip(people, players, strict=True), 1):
        own = [row for row in rows if row["participant"] == f"w{k:03d}"]
        events = [move for move in moves if move["participant"] == f"w{k:03d}"]
        groups[own[0]["group"]] += 1
        tries = sum(page.endswith("check") for page, _ in player.answered)
        assert {row["instruction_tries"] for row in own} == {str(tries)}, (k, tries, own[0])
        assert {row["lang"] for row in own} == {person.lang}
        *before, last = player.bodies
        if person.is_careless:
            assert (len(own), own[0]["finished"], own[0]["position"]) == (1, "screened out", "0")
            assert CODE not in "".join(player.bodies)
            continue
        assert player.end["completion"] == {"code": CODE}
        first_end = next(j for j, body in enumerate(player.bodies) if '"phase": "end"' in body)
        assert CODE not in "".join([*before, last][:first_end])
        assert [row["position"] for row in own] == ["1", "2", "3"]
        assert [(row["correct"], row["ended_by"]) for row in own] == [("1", "answer")] * 3, own
        assert {(row["about.age"], row["about.free"]) for row in own} == {(str(person.age), person.text)}
        assert {row["failed_checks"] for row in own} == {"" if person.attends else "about.attend"}
        acts = [move for move in events if move["event"] == "act"]
        assert len(acts) == 2 * 3 + 1, (k, len(acts))  # each move once: two and the submission of a detector, twice
    assert abs(groups["quiet"] - groups["told"]) <= 1, groups
    listed = json.loads(called("table", folder / "served", "--json").stdout)["rows"]
    assert {row["options"]["group"] for row in listed} == {*groups}
    sound = [body for player in players for body in player.bodies if body.startswith("{")]
    for kind in ("blickets", "causim"):
        check_sealed(sound, POOLS[kind], list(PlayPool(POOLS[kind]).indices)[:4])
    assert not any('"correct"' in body for body in sound)
    restarts = sum("restart" in move["interrupted"] for move in moves)
    figures = {"people": len(rows), "moves": len(moves), "quiet": groups["quiet"], "told": groups["told"]}
    return figures | {"bodies": len(sound), "flagged restarts": restarts}


def read_elsewhere(folder: Path) -> dict[str, list[int]]:
    """Return rows of both tables, right answers, and distinct comments as pandas and R read them."""
    import pandas

    people, moves = (pandas.read_csv(folder / name) for name in ("people.csv", "people.moves.csv"))
    texts = people["about.free"].dropna()
    read = {"pandas": [len(people), len(moves), int(people["correct"].sum()), int(texts.nunique())]}
    if shutil.which("Rscript"):
        script = (
            'p <- read.csv("people.csv", check.names = FALSE); m <- read.csv("people.moves.csv"); '
            'f <- p[["about.free"]]; f <- f[!is.na(f) & f != ""]; '
            "cat(nrow(p), nrow(m), sum(p$correct, na.rm = TRUE), length(unique(f)))"
        )
        done = subprocess.run(["Rscript", "-e", script], cwd=folder, capture_output=True, text=True, check=True)
        read["R"] = [int(number) for number in done.stdout.split()]
    return read


def main() -> None:
    """Run one study in a folder of its own and print its figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--participants", type=int, default=40)
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--keep", type=Path, help="copy the folder there")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        people, players = play_study(folder, chosen.participants, chosen.kills)
        figures = check_tables(folder, people, players)
        read = read_elsewhere(folder)
        num_right, num_texts = 3 * sum(not p.is_careless for p in people), sum(not p.is_careless for p in people)
        expected = [figures["people"], figures["moves"], num_right, num_texts]
        assert all(numbers == expected for numbers in read.values()), (read, expected)
        if chosen.keep:
            shutil.copytree(folder, chosen.keep)
    print(json.dumps(figures | read))


if __name__ == "__main__":
    main()
