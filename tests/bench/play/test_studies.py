"""Studies: orders, pages of questions, participants, questionnaires as a file and what they save."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

from calibrant.bench.commands.play import WRITES_RESULTS
from calibrant.bench.play.folder import PageClock, Player, PlayFolder
from calibrant.bench.play.game import ItemStop, QuestionsStop
from calibrant.bench.play.results import csv_text, json_text, person_rows, summary_lines, write_results
from calibrant.bench.play.study.config import Study, latin_row, ordered
from calibrant.bench.runs.records import folder_records
from calibrant.dsl.errors import CalibrantError
from tests.support.commands import called, jsonl
from tests.support.play.right_lines import POOLS, right_lines

QUESTIONS = """title = "Afterwards"
[[question]]
id = "sure"
text = "How sure were you?"
kind = "likert"
points = 7
[[question]]
id = "method"
text = "How did you do it?"
kind = "choice"
options = ["by hand", "guessed"]
optional = true
"""


def study_file(folder: Path, *, kind: str = "causim", order: str = "fixed", more: str = "", ids: int = 2) -> Path:
    (folder / "after.toml").write_text(QUESTIONS, encoding="utf-8")
    (folder / "consent.md").write_text("I am at least 18.", encoding="utf-8")
    names = [json.loads(line)["id"] for line in POOLS[kind].read_text(encoding="utf-8").splitlines()[1 : ids + 1]]
    text = f"""[study]
title = "pilot"
out = "pilot/records.jsonl"
participants = "p01-p04"
consent = "consent.md"
order = "{order}"
{more}
[[block]]
pool = "{POOLS[kind]}"
ids = {json.dumps(names)}
[[block]]
questions = "after.toml"
"""
    path = folder / "study.toml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("size", range(1, 8))
def test_every_row_and_column_of_the_square_has_each_item_once(size: int) -> None:
    rows = [latin_row(size, k) for k in range(size if size % 2 == 0 else 2 * size)]
    for block in (rows[:size], rows[-size:]):
        for line in (*block, *zip(*block, strict=True)):
            assert sorted(line) == list(range(size))
    pairs = [(row[k], row[k + 1]) for row in rows for k in range(size - 1)]
    expected = 1 if size % 2 == 0 else 2
    assert all(pairs.count((a, b)) == expected for a in range(size) for b in range(size) if a != b)


def test_an_order_depends_on_seed_and_participant_alone() -> None:
    items = list(range(9))
    assert ordered(items, "fixed", "s", "p1", 3) == items
    assert ordered(items, "shuffled", "s", "p1", 3) == ordered(items, "shuffled", "s", "p1", 8) != items
    assert ordered(items, "shuffled", "t", "p1", 3) != ordered(items, "shuffled", "s", "p1", 3)
    assert ordered(items, "latin", "s", "p1", 10) == ordered(items, "latin", "t", "p2", 10)


def test_pages_of_questions_keep_their_place(tmp_path: Path) -> None:
    study = Study(study_file(tmp_path, order="latin"))
    plans = [study.plan(name) for name in study.names or ()]
    assert [len(plan) for plan in plans] == [3] * 4
    assert all(isinstance(plan[-1], QuestionsStop) for plan in plans)
    firsts = [plan[0].key.instance for plan in plans]
    assert len(set(firsts)) == 2
    assert study.out == tmp_path / "pilot"


FAULTS = {
    "participants =": ("participants = 3 #", "study.participants: expected a text in quotation marks or a list"),
    "consent.md": ("consents.md", "consent: there is no file 'consents.md'"),
    "[[block]]": ("[block]", "stands in two brackets, as [[block]]"),
    "after.toml": ("later.toml", "block 2: questions: there is no file 'later.toml'"),
    'participants = "p01-p04"': ('participants = "everybody"', "participants is 'everybody'"),
    'title = "pilot"': ("titel = 3", "unknown field `titel`"),
    "[study]": ("[study", "study.toml: "),
    'order = "fixed"': ('order = "random"', "study.order: 'random' is none of fixed, latin, shuffled"),
    'questions = "after.toml"': ('questions = "after.toml"\npool = "x"', "block 2: give either `pool`, or `questions`"),
}


@pytest.mark.parametrize("found", FAULTS)
def test_a_fault_of_the_file_is_named(found: str, tmp_path: Path) -> None:
    path = study_file(tmp_path)
    wrong, said = FAULTS[found]
    path.write_text(path.read_text(encoding="utf-8").replace(found, wrong), encoding="utf-8")
    done = called("play", "--study", path, "--participant", "p01")
    assert (done.returncode, said in done.stderr.replace("Object contains ", "")) == (2, True), done.stderr


def test_a_study_is_played_in_words_and_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = study_file(tmp_path)
    study = Study(path)
    pool = study.pools[0]
    items = [pool.item(stop.key.instance) for stop in study.plan("p02") if isinstance(stop, ItemStop)]

    def play(*lines: str) -> Any:
        monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
        return called("play", "--study", path, "--participant", "p02")

    assert play("no").returncode == 1
    left_open = play("yes", *right_lines(items[0]))
    assert (left_open.returncode, "the same command goes on" in left_open.stdout) == (1, True)
    done = play(*right_lines(items[1]), "9", "6", "-")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "Done. Thank you.")
    assert "right" not in done.stdout.splitlines()
    records = list(folder_records(tmp_path / "pilot"))
    assert [record.protocol for record in records] == ["human:p02"] * 2
    assert all(
        record.score["correct"] and record.config == {"feedback": "none", "study": "pilot"} for record in records
    )
    events = [
        json.loads(line) for line in (tmp_path / "pilot" / "moves.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    assert [event["event"] for event in events if event["instance"].startswith("questions:")] == [
        {"answers": {"sure": 6}}
    ]
    assert "does not take part" in called("play", "--study", path, "--participant", "p99").stderr


def test_downloads_of_a_questionnaire_become_records(tmp_path: Path) -> None:
    path = study_file(tmp_path)
    study = Study(path)
    pool = study.pools[0]
    page = tmp_path / "page.html"
    assert called("play", "--study", path, "--static", page).returncode == 0
    text = page.read_text(encoding="utf-8")
    assert "sealed" not in text
    assert not any(f'"{instance}"' in text for instance in pool.indices)
    games = [pool.public.shown(pool.item(stop.key.instance)) for stop in study.plan("") if isinstance(stop, ItemStop)]
    first = {field["name"]: field["choices"][0]["value"] for field in pool.words.view(games[0])["fields"]}
    stops = [
        {"stop": games[0].id, "seconds": 3.5, "draft": first},
        {"stop": games[1].id, "seconds": 1, "draft": None},
        {"stop": "1-after", "answers": {"sure": 2}},
    ]
    data = {"participant": "p03", "agreed": True, "digests": [pool.digest], "stops": stops}
    saved = jsonl(tmp_path / "p03.json", data)
    done = called("play", "--study", path, "--import", saved)
    assert "p03: 1 recorded, 1 without an answer" in done.stdout, done.stderr
    assert "2 there already" in called("play", "--study", path, "--import", saved).stdout
    records = list(folder_records(tmp_path / "pilot"))
    assert records[0].answer == first
    assert [record.timing.seconds for record in records] == [3.5, 1.0]
    for change, said in (
        ({"participant": "p77"}, "does not take part"),
        ({"agreed": False}, "no consent"),
        ({"digests": []}, "other pools"),
        ({"stops": 3}, "no download of a questionnaire"),
    ):
        refused = called("play", "--study", path, "--import", jsonl(tmp_path / "other.json", data | change))
        assert (refused.returncode, said in refused.stderr) == (2, True)


def test_items_that_answer_moves_are_not_static(tmp_path: Path) -> None:
    path = study_file(tmp_path, kind="blickets")
    done = called("play", "--study", path, "--static", tmp_path / "page.html")
    assert (done.returncode, "are interactive" in done.stderr) == (2, True)
    assert not (tmp_path / "page.html").exists()


def test_a_study_names_an_aid_that_its_items_have(tmp_path: Path) -> None:
    path = study_file(tmp_path, kind="causalab")
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("[study]", '[study]\naid = "members"'), encoding="utf-8")
    study = Study(path)
    assert (study.terms.aid, study.config["aid"]) == (Path("members"), "members")
    path.write_text(text.replace("[study]", '[study]\naid = "none.yaml"'), encoding="utf-8")
    with pytest.raises(CalibrantError, match=r"none\.yaml"):
        Study(path)
    path = study_file(tmp_path, kind="blickets")
    path.write_text(path.read_text(encoding="utf-8").replace("[study]", '[study]\naid = "members"'), encoding="utf-8")
    with pytest.raises(CalibrantError, match="it supports CausaLab"):
        Study(path)


def test_an_item_is_in_one_block(tmp_path: Path) -> None:
    path = study_file(tmp_path)
    path.write_text(path.read_text(encoding="utf-8") + f'[[block]]\npool = "{POOLS["causim"]}"\n', encoding="utf-8")
    with pytest.raises(CalibrantError, match="is named twice"):
        Study(path)


def test_results_are_a_line_for_each_answer_with_clustered_intervals(tmp_path: Path) -> None:

    path = study_file(tmp_path)
    study = Study(path)
    with PlayFolder(study.out, study.pools, study.config) as folder:
        for k, name in enumerate(("p01", "p02")):
            for stop in study.plan(name)[:2]:
                player = Player(folder, name, stop.key)
                for line in right_lines(player.game.item)[: None if k else -1]:
                    player.do(player.game.pool.words.read(player.game.shown, player.game.position, line))
                if not player.game.closed:
                    player.give_up()
                player.verdict()
            folder.add(name, study.plan(name)[-1].key, {"answers": {"sure": k + 3}}, 1.0)
    rows = person_rows(study.out, study.pools)
    assert [(row.participant, row.position, row.correct) for row in rows] == [
        *(("p01", 1, 0), ("p01", 2, 0), ("p02", 1, 1), ("p02", 2, 1)),
    ]
    header, *lines = csv_text(rows).splitlines()
    assert header.startswith("participant,position,benchmark")
    for text in (csv_text(rows), csv_text([]), json_text(rows), json_text([])):  # a later table takes their place
        assert text.lower().encode().startswith(WRITES_RESULTS.replaces)
    assert len(lines) == 4
    cells = list(csv.DictReader(io.StringIO(csv_text(rows))))
    # two worlds give each answer to the first question: the reference's list is that of test_remaining
    assert cells[0]["open"] == "Ruba = MAV, Side = TAG (2 worlds) | Ruba = RIK, Side = NUB (2 worlds)"
    assert [row["after.sure"] for row in cells] == ["3", "3", "4", "4"]
    assert (cells[0]["hypotheses"], cells[0]["open"]) == (cells[2]["hypotheses"], cells[2]["open"])
    assert any(line.startswith("causim  right ") for line in summary_lines(rows))
    done = called("play", "--study", path, "--results", tmp_path / "people.csv")
    assert (done.returncode, (tmp_path / "people.csv").read_text(encoding="utf-8")) == (
        0,
        csv_text(rows, ["after.sure", "after.method"]),
    )
    assert called("play", "--study", path, "--results", tmp_path / "people.json").returncode == 0
    listed = json.loads((tmp_path / "people.json").read_text(encoding="utf-8"))[0]["open"]
    assert (listed["count"], listed["unlisted"], listed["listed"][0]["number"]) == ("4", "0", "2")


@pytest.mark.parametrize("kind", ["blickets", "causalab", "causim", "logic", "replayscm", "hidden roots"])
def test_results_have_answers_truth_and_every_move(kind: str, tmp_path: Path) -> None:
    """Moves are compared with the journal and with the steps of the records; all files are the owner's alone."""
    path = study_file(tmp_path, kind=kind, ids=1)
    study = Study(path)
    with PlayFolder(study.out, study.pools, study.config) as folder:
        first, last = study.plan("p01")
        assert isinstance(first, ItemStop)
        player = Player(folder, "p01", first.key)
        for line in right_lines(player.game.item):
            player.do(player.game.pool.words.read(player.game.shown, player.game.position, line))
        player.verdict()
        folder.add("p01", last.key, {"answers": {"sure": 4}}, 1.0, PageClock(0.9, ["reload", "sleep"]))
        Player(folder, "p02", first.key).give_up()
    with PlayFolder(study.out, study.pools, study.config):
        pass  # writes the record of what was given up
    people = tmp_path / "results" / "people.csv"
    assert called("play", "--study", path, "--results", people).returncode == 0
    assert called("play", "--study", path, "--results", people).returncode == 0  # again: ours may be replaced
    files = [*people.parent.iterdir(), study.out / "moves.jsonl"]
    assert sorted(file.name for file in files) == [
        "moves.jsonl",
        "people.codebook.md",
        "people.csv",
        "people.moves.csv",
    ]
    assert [file.stat().st_mode & 0o777 for file in files] == [0o600] * 4
    right, none = csv.DictReader(io.StringIO(people.read_text(encoding="utf-8")))
    moves = list(csv.DictReader(io.StringIO((people.parent / "people.moves.csv").read_text(encoding="utf-8"))))
    (record,) = (r for r in folder_records(study.out) if r.protocol == "human:p01")
    assert json.loads(right["answer"]) == record.answer
    assert (right["ended_by"], none["ended_by"]) == ("answer", "no answer: the participant gave no answer")
    assert (right["kind"] in ("earned", "lucky", ""), none["kind"]) == (True, "no_answer")
    assert (none["answer"], none["answer_text"]) == ("", "")
    assert right["truth"] == none["truth"] != ""
    steps = record.steps if isinstance(record.steps, list) else []
    read = [json.loads(move["reading"]) for move in moves if move["reading"]]
    assert read == [step.reading for step in steps if step.reading is not None]
    journal = [json.loads(line) for line in (study.out / "moves.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len(moves) == len(journal)
    listed = [(move["participant"], {move["event"]: json.loads(move["content"] or "{}")}) for move in moves]
    assert listed == [(event["participant"], event["event"]) for event in journal]
    assert [move["interrupted"] for move in moves if move["page_seconds"]] == ["reload+sleep"]
    counts = [move["hypotheses"] for move in moves if move["hypotheses"]]
    if counts:
        assert counts[-1] == right["hypotheses"]


def test_the_codebook_explains_exactly_the_columns(tmp_path: Path) -> None:
    path = study_file(tmp_path, ids=1)
    study = Study(path)
    with PlayFolder(study.out, study.pools, study.config) as folder:
        first, last = study.plan("p01")
        Player(folder, "p01", first.key).give_up()
        folder.add("p01", last.key, {"answers": {"sure": 4, "method": "guessed"}}, 1.0)
    with PlayFolder(study.out, study.pools, study.config):
        pass
    rows = write_results(tmp_path / "people.csv", study)
    text = (tmp_path / "people.codebook.md").read_text(encoding="utf-8")
    for part, file in zip(text.split("\n## ")[1:], ("people.csv", "people.moves.csv"), strict=True):
        assert part.startswith(file)
        explained = re.findall(r"^\| `([^`]+)` \| (?:\S.*) \|$", part, re.MULTILINE)
        assert explained == (tmp_path / file).read_text(encoding="utf-8").splitlines()[0].split(",")
    assert "| `after.sure` | How sure were you? (1 to 7; block 2) |" in text
    assert "| `after.method` | How did you do it? (by hand or guessed; may be empty; block 2) |" in text
    assert len(rows) == 1
    for place, heads in ((tmp_path, ["people.csv", "people.moves.csv", "people.json"]), (tmp_path / "a", ["b.json"])):
        place.mkdir(exist_ok=True)
        table = place / heads[-1]
        (row,) = write_results(table, study)
        parts = table.with_suffix(".codebook.md").read_text(encoding="utf-8").split("\n## ")[1:]
        assert [part.split(":")[0] for part in parts] == heads
        explained = re.findall(r"^\| `([^`]+)` \| (?:\S.*) \|$", parts[-1], re.MULTILINE)
        assert explained == [*json.loads(table.read_text(encoding="utf-8"))[0]] == [*row.to_dict()]
    write_results(tmp_path / "people.csv", study)
    assert [*re.findall(r"\n## (\S+):", (tmp_path / "people.codebook.md").read_text(encoding="utf-8"))] == [
        *("people.csv", "people.moves.csv", "people.json")
    ]
