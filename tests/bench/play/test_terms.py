"""Terms of studies: instructions with checks, groups, limits, bounds of answers, and proof of having finished."""

from __future__ import annotations

import csv
import io
import itertools
import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from calibrant.bench.core.typed_moves import WordsError
from calibrant.bench.play.folder import Player, PlayFolder
from calibrant.bench.play.game import ItemStop, balanced_assignment
from calibrant.bench.play.participants import Sitting, StaleError
from calibrant.bench.play.results import move_rows, person_rows
from calibrant.bench.play.study.config import Study, static_page
from calibrant.bench.play.study.pages import check_answers
from calibrant.bench.play.terminal import TerminalStudy
from calibrant.bench.runs.records import folder_records
from calibrant.dsl.errors import CalibrantError
from tests.bench.play.test_service import Client
from tests.bench.play.test_start import served_study
from tests.support.commands import called
from tests.support.play.right_lines import POOLS, right_lines

INTRO = "# Detectors\n\nA detector glows. **Read** this.\n"
CHECK = """title = "About the instructions"
[[question]]
id = "glows"
text = "What does a detector do?"
kind = "choice"
options = ["it glows", "it sings-secretly-wrong"]
correct = "it glows"
"""
ABOUT = """title = "About you"
[[question]]
id = "age"
text = "How old are you?"
kind = "number"
min = 18
max = 99
whole = true
[[question]]
id = "attention"
text = "Please choose 2 here."
kind = "likert"
points = 5
correct = 2
"""


def full_study(folder: Path, *, kind: str = "blickets", more: str = "", tries: int = 0, limit: int = 0) -> Path:
    """Write a study of two groups with instructions, an item each, and a page of questions."""
    for name, text in (("intro.md", INTRO), ("check.toml", CHECK), ("about.toml", ABOUT)):
        (folder / name).write_text(text, encoding="utf-8")
    ids = [json.loads(line)["id"] for line in POOLS[kind].read_text(encoding="utf-8").splitlines()[1:3]]
    path = folder / "study.toml"
    text = f"""[study]
title = "two groups"
out = "pilot"
participants = "any"
groups = ["quiet", "told"]
completion = {{code = "CODE-C1X9"}}
seed = "s"
{more}
[[block]]
instructions = "intro.md"
questions = "check.toml"
tries = {tries}
"""
    for group, name in zip(("quiet", "told"), ids, strict=True):
        text += f'[[block]]\npool = "{POOLS[kind]}"\nids = ["{name}"]\ngroups = ["{group}"]\nlimit = {limit}\n'
    path.write_text(text + '[[block]]\nquestions = "about.toml"\n', encoding="utf-8")
    return path


GERMAN = (
    *(
        ("it glows", "er leuchtet"),
        ("it sings-secretly-wrong", "er singt"),
        ("What does a detector do?", "Was tut er?"),
    ),
    *(("A detector glows.", "Ein Detektor leuchtet."), ("Please choose 2 here.", "Bitte wählen Sie hier 2.")),
    *(("How old are you?", "Wie alt sind Sie?"), ("About", "Über"), ("I agree", "Ich bin einverstanden")),
    ("with everything", "mit allem"),
)


def bilingual_study(folder: Path, **options: Any) -> Path:
    """Write the study of two groups in English and German, with a text of consent."""
    path = full_study(folder, more='lang = ["en", "de"]\nconsent = "consent.md"', **options)
    (folder / "consent.md").write_text("I agree with everything.\n", encoding="utf-8")
    for name in ("intro.md", "check.toml", "about.toml", "consent.md"):
        text = (folder / name).read_text(encoding="utf-8")
        for english, german in GERMAN:
            text = text.replace(english, german)
        german_file = folder / Path(name).with_suffix(f".de{Path(name).suffix}")
        lines = [line for line in text.splitlines() if not line.startswith('correct = "')]
        german_file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@contextmanager
def sitting_of(path: Path, name: str, clock: Any = None) -> Iterator[Sitting]:
    study = Study(path)
    with PlayFolder(study.out, study.pools, study.config) as folder:
        yield Sitting(folder, name, study.plan, study.terms, *([clock] if clock else []))


# --- The whole way in the browser's protocol: what is sent before the end has neither code nor right answers ----------


def test_who_finishes_alone_gets_the_code_and_no_right_answer_is_sent(tmp_path: Path) -> None:
    path = full_study(tmp_path, tries=3)
    with served_study(path) as service:
        client = Client(service, "w1")
        client.get()
        assert client.state["phase"] == "start"
        assert "read 1 page of instructions, solve 1 item (1 detector) and answer 1 page" in client.state["task"]
        client.post("begin")
        client.get()
        assert "<strong>Read</strong>" in client.state["instructions"]
        name = client.state["name"]
        wrong, right = {"glows": "it sings-secretly-wrong"}, {"glows": "it glows"}
        assert client.post("answers", name=name, answers={"glows": "it hums"}, tries=0) == 422  # no answer at all
        assert client.post("answers", name=name, answers=wrong, tries=0) == 422
        assert client.post("answers", name=name, answers=wrong, tries=0) == 422  # sent again: judged once
        client.get()
        assert (client.state["phase"], client.state["tries"]) == ("questions", 1)
        assert client.post("answers", name=name, answers=right, tries=1) == 200
        client.get()
        assert (client.state["phase"], client.state["step"], client.state["steps"]) == ("item", 2, 3)
        client.post("quit")
        client.get()
        assert client.state["phase"] == "questions"
        name = client.state["name"]
        for age in (-5, 17, 100, 18.5, "20", True, None, 1e400, float("nan")):
            assert client.post("answers", name=name, answers={"age": age, "attention": 1}) == 422, age
        before = "".join(client.bodies)
        assert "CODE-C1X9" not in before
        assert '"correct"' not in before
        assert client.post("answers", name=name, answers={"age": 18, "attention": 1}) == 200
        assert (client.state["phase"], client.state["completion"]) == ("end", {"code": "CODE-C1X9"})
    (row,) = person_rows(Study(path).out)
    assert (row.instruction_tries, row.failed_checks, row.answers["about.age"]) == (2, "about.attention", 18)
    assert row.finished.startswith("20")


def test_who_fails_the_instructions_too_often_is_screened_out(tmp_path: Path) -> None:
    path = full_study(tmp_path, tries=2, more='screen_out = {code = "OUT-77"}')
    with served_study(path) as service:
        client = Client(service, "w1")
        client.get()
        client.post("begin")
        client.get()
        wrong = {"name": client.state["name"], "answers": {"glows": "it sings-secretly-wrong"}}
        assert client.post("answers", **wrong, tries=0) == 422
        assert client.post("answers", **wrong, tries=1) == 200
        assert (client.state["phase"], client.state["screened_out"]) == ("end", True)
        assert client.post("answers", name=wrong["name"], answers={"glows": "it glows"}, tries=2) == 409
        client.get()
        assert (client.state["phase"], client.state["completion"]) == ("end", {"code": "OUT-77"})
        assert "CODE-C1X9" not in "".join(client.bodies)
    (row,) = person_rows(Study(path).out)
    assert (row.participant, row.position, row.finished, row.instruction_tries) == ("w1", 0, "screened out", 2)


def test_a_redirect_names_the_participant(tmp_path: Path) -> None:
    path = full_study(tmp_path)
    text = path.read_text(encoding="utf-8").replace(
        'code = "CODE-C1X9"', 'url = "https://a.example/c?cc=7&p={participant}"'
    )
    path.write_text(text, encoding="utf-8")
    completion = Study(path).terms.completion
    assert completion is not None
    assert completion.stated("w_1.x") == {"url": "https://a.example/c?cc=7&p=w_1.x"}


@pytest.mark.parametrize(
    "stated",
    ["{}", '{code = "a", url = "https://a.example"}', '{url = "javascript:alert(1)"}', '{url = "//a.example"}'],
)
def test_a_completion_is_one_code_or_one_address(stated: str, tmp_path: Path) -> None:
    path = full_study(tmp_path)
    text = path.read_text(encoding="utf-8").replace('{code = "CODE-C1X9"}', stated)
    path.write_text(text, encoding="utf-8")
    with pytest.raises(CalibrantError, match="completion"):
        Study(path)


# --- Groups -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("num_groups", [2, 3, 5])
def test_groups_differ_by_one_at_most_at_any_time(num_groups: int) -> None:
    groups = [f"g{k}" for k in range(num_groups)]
    orders = set()
    for seed in "abc":
        assigned = [balanced_assignment(groups, seed, k) for k in range(60)]
        for end in range(1, 61):
            counts = Counter(entry.group for entry in assigned[:end])
            assert max(counts.values()) - min(counts[group] for group in groups) <= 1
        for group in groups:
            assert [entry.rank for entry in assigned if entry.group == group] == list(range(60 // num_groups))
        orders.add(tuple(entry.group for entry in assigned))
    assert len(orders) == 3  # by seed


def test_a_group_is_assigned_once_and_outlives_the_process(tmp_path: Path) -> None:
    path = full_study(tmp_path)
    names = [f"w{k}" for k in range(8)]
    for name in names:  # a process each
        with sitting_of(path, name) as sitting:
            sitting.begin(agreed=False)
            sitting.begin(agreed=False)
    study = Study(path)
    with PlayFolder(study.out, study.pools, study.config) as folder:
        assigned = [folder.assignment(name) for name in names]
        items = {
            assignment.group: {s.key.instance for s in study.plan("x", assignment) if isinstance(s, ItemStop)}
            for assignment in assigned
            if assignment is not None
        }
    assert assigned == [balanced_assignment(["quiet", "told"], "s", k) for k in range(8)]
    assert len(items["quiet"]) == len(items["told"]) == 1
    assert items["quiet"].isdisjoint(items["told"])


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        ('groups = ["quiet"]', 'groups = ["quite"]', "no group 'quite'; did you mean quiet"),
        ('groups = ["quiet", "told"]', 'groups = ["quiet"]', "two names or more"),
        ("limit = 0", "limit = 4000", "3600"),
        ("tries = 0", "tries = 0\nids = ['a']", "`ids` needs a `pool`"),
        ("tries = 0", "tries = 0\nlimit = 60", "questions about instructions have tries, no limit"),
        (
            'questions = "about.toml"',
            'questions = "about.toml"\nlimit = -1',
            "block 4.limit: expected a whole number of at least 0",
        ),
        ('seed = "s"', 'seed = "s"\nlimit = 90000', "study.limit: expected a whole number of at most 86400"),
        ('seed = "s"', 'seed = "s"\nlimit = 1.5', "study.limit: expected a whole number"),
        ('instructions = "intro.md"\n', "", "`tries` needs `instructions` with `questions`"),
        ('correct = "it glows"', 'correct = "it hums"', "correct is none of its answers"),
        ('correct = "it glows"', "", "states what is `correct`"),
        ("min = 18", "min = 100", "above max"),
    ],
)
def test_terms_that_cannot_hold_are_refused(before: str, after: str, problem: str, tmp_path: Path) -> None:
    path = full_study(tmp_path, tries=1 if problem.startswith("`tries` needs") else 0)
    for file in (path, tmp_path / "check.toml", tmp_path / "about.toml"):
        text = file.read_text(encoding="utf-8")
        file.write_text(text.replace(before, after, 1), encoding="utf-8")
    done = called("play", "--study", path, "--participant", "w1")
    assert (done.returncode, problem in done.stderr) == (2, True), done.stderr
    assert len(done.stderr.splitlines()) == 1


# --- Limits of time ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["blickets", "causim"])
def test_an_item_ends_when_its_time_is_up_and_a_reload_wins_nothing(kind: str, tmp_path: Path) -> None:
    path = full_study(tmp_path, kind=kind, limit=60)
    path.write_text(
        path.read_text(encoding="utf-8").replace('instructions = "intro.md"\n', "").replace("tries = 0", "")
    )
    now = [1000.0]
    with sitting_of(path, "w1", lambda: now[0]) as sitting:
        sitting.begin(agreed=False)
        sitting.answer_questions(sitting.state()["name"], {"glows": "it glows"})
        assert sitting.state()["item"]["seconds_left"] == 60
        now[0] += 40
        draft = {"rule": "conjunctive", "blickets": []} if kind == "blickets" else {}
        sitting.write(sitting.state()["item"]["id"], draft)
        now[0] += 19
        assert sitting.state()["item"]["seconds_left"] == 1
    with sitting_of(path, "w1", lambda: now[0]) as sitting:  # the server was stopped: 19 s were not written down
        left = sitting.state()["item"]["seconds_left"]
        assert left == (20 if kind == "blickets" else 60)  # an equal draft is no event
        now[0] += left + 1
        state = sitting.state()
        assert (state["item"]["closed"], state["item"]["late"]) == (True, True)
        item = state["item"]["id"]
        sitting.act(item, 0, {"place": "A"})  # nothing is made
        assert sitting.state()["phase"] == "questions"
    (record,) = folder_records(tmp_path / "pilot")
    assert (record.outcome, record.provenance) == ("out_of_budget", {"reason": "the time was up"})
    assert record.steps in ([], None) or not isinstance(record.steps, list)


def test_a_late_move_is_not_made(tmp_path: Path) -> None:
    path = full_study(tmp_path, limit=30)
    study, now = Study(path), [0.0]
    stop = next(s for s in study.plan("w1", balanced_assignment(["quiet", "told"], "s", 0)) if isinstance(s, ItemStop))
    with PlayFolder(study.out, study.pools, study.config) as folder:
        player = Player(folder, "w1", stop.key, lambda: now[0], limit=stop.limit)
        player.act({"place": player.game.item.task.objects[0]})
        now[0] = 30.1
        assert player.close_if_late()
        assert player.close_if_late()  # once
        with pytest.raises(WordsError):
            player.act({"place": player.game.item.task.objects[1]})
    with PlayFolder(study.out, study.pools, study.config) as folder:
        game = folder.game("w1", stop.key)
        assert (game.is_late, game.closed, len(game.steps)) == (True, True, 1)
        assert sum("time_up" in event.event for event in folder.events("w1", stop.key)) == 1


def test_time_in_which_an_item_is_opened_counts_alike_before_and_after_a_kill(tmp_path: Path) -> None:
    path = full_study(tmp_path)
    study, clock = Study(path), itertools.count(0, 0.25)  # each look at the clock takes a quarter of a second
    stop = next(s for s in study.plan("w1", balanced_assignment(["quiet", "told"], "s", 0)) if isinstance(s, ItemStop))
    with PlayFolder(study.out, study.pools, study.config) as folder:
        player = Player(folder, "w1", stop.key, lambda: float(next(clock)))
        player.act({"place": player.game.item.task.objects[0]})
        player.give_up()
        assert player.game.seconds == folder.game("w1", stop.key).seconds == [0.5, 0.25]


def limited_study(
    folder: Path, *, page: int = 0, study: int = 0, kind: str = "blickets", is_checked: bool = False
) -> Path:
    """Write the study of two groups with seconds of its last page, and of all; is_checked: with instructions."""
    path = full_study(folder, kind=kind, more=f"limit = {study}")
    text = path.read_text(encoding="utf-8")
    if not is_checked:
        text = text.replace('[[block]]\ninstructions = "intro.md"\nquestions = "check.toml"\ntries = 0\n', "")
    path.write_text(f"{text}limit = {page}\n", encoding="utf-8")
    return path


def give_up_item(sitting: Sitting) -> None:
    sitting.give_up(sitting.state()["item"]["id"])
    assert sitting.state()["item"]["closed"]


def test_a_page_ends_with_what_was_answered_and_a_kill_loses_none_of_it(tmp_path: Path) -> None:
    path, now = limited_study(tmp_path, page=60), [0.0]
    clock = partial(now.__getitem__, 0)
    with sitting_of(path, "w1", clock) as sitting:
        sitting.begin(agreed=False)
        give_up_item(sitting)
        assert (sitting.state()["seconds_left"], sitting.state()["answers"]) == (60, {})
        now[0] += 40
        sitting.write_answers("2-about", {"age": 30, "attention": 9, "more": 1})  # 5 points: 9 is no answer
        with pytest.raises(StaleError):
            sitting.write_answers("0-check", {"age": 31})
        now[0] += 15
    with sitting_of(path, "w1", clock) as sitting:  # the server was killed: 15 s were not written down
        assert (sitting.state()["seconds_left"], sitting.state()["answers"]) == (20, {"age": 30})
        now[0] += 20.1
        sitting.expire_page("2-about", {"age": 30, "attention": 3})  # sent as the time ended
        assert sitting.state()["was_late"]
        assert sitting.state() == sitting.state() | {"phase": "end", "late": False}
    with sitting_of(path, "w2", clock) as sitting:  # sent too late: what was on disk counts
        sitting.begin(agreed=False)
        give_up_item(sitting)
        sitting.state()
        sitting.write_answers("2-about", {"age": 40})
        now[0] += 66
        sitting.answer_questions("2-about", {"age": 41, "attention": 2})
    first, second = person_rows(tmp_path / "pilot")
    assert first.answers == {"about.age": 30, "about.attention": 3}
    assert (first.failed_checks, first.time_up) == ("about.attention", "about")
    assert (second.answers, second.failed_checks, second.time_up) == ({"about.age": 40}, "", "about")
    moves = [row for row in move_rows(tmp_path / "pilot") if row.item == "questions:2-about"]
    assert [(row.event, row.seconds, row.interrupted) for row in moves] == [
        *(("open", 0, ""), ("draft", 40, ""), ("open", 0, ""), ("answers", 20, "restart")),
        *(("open", 0, ""), ("draft", 0, ""), ("answers", 60, "")),
    ]


def test_a_study_ends_when_its_time_is_up_wherever_the_participant_is(tmp_path: Path) -> None:
    path, now = limited_study(tmp_path, study=100), [0.0]
    clock = partial(now.__getitem__, 0)
    with sitting_of(path, "w1", clock) as sitting:
        assert (
            sitting.state()["limit"] == "The study ends 100 seconds after you begin, even while this window is closed."
        )
        now[0] += 1000  # before the start nothing counts
        sitting.begin(agreed=False)
        now[0] += 30
        item = sitting.state()["item"]["id"]
        now[0] += 30
        sitting.write(item, {"rule": "conjunctive", "blickets": []})
    with sitting_of(path, "w1", clock) as sitting:
        assert sitting.state()["study_seconds_left"] == 40
        now[0] += 41
        sitting.act(item, 0, {"submit": {}})  # nothing is made
        state = sitting.state()
        assert (state["phase"], state["late"], state["completion"]) == ("end", True, {"code": "CODE-C1X9"})
    with sitting_of(path, "w2", clock) as sitting:  # on the page of questions
        sitting.begin(agreed=False)
        give_up_item(sitting)
        sitting.state()
        sitting.write_answers("2-about", {"age": 50})
        now[0] += 101
        assert sitting.state()["phase"] == "end"
        assert sitting.state()["completion"] == {"code": "CODE-C1X9"}
    first, second = person_rows(tmp_path / "pilot")
    assert (first.ended_by, first.time_up, first.answers) == ("no answer: the time was up", "study", {})
    assert (second.time_up, second.answers) == ("about+study", {"about.age": 50})
    assert first.finished[:1].isdigit()
    used = [row.study_seconds for row in move_rows(tmp_path / "pilot") if row.participant == "w1"]
    assert used == [0, 30, 60, 60, 100, 100]


def test_who_waits_for_the_end_of_the_study_before_its_checks_has_no_code(tmp_path: Path) -> None:
    path, now = limited_study(tmp_path, study=100, is_checked=True), [0.0]
    with sitting_of(path, "w1", lambda: now[0]) as sitting:
        sitting.begin(agreed=False)
        sitting.write_answers(sitting.state()["name"], {"glows": "it glows"})  # a draft is no try
        now[0] += 101
        state = sitting.state()
    assert (state["phase"], state["screened_out"], "completion" in state) == ("end", True, False)
    (row,) = person_rows(tmp_path / "pilot")
    assert (row.finished, row.time_up, row.instruction_tries, row.answers) == ("screened out", "study", 0, {})


def test_limits_hold_in_a_terminal(tmp_path: Path) -> None:
    path, now, printed = limited_study(tmp_path, page=60, study=200), [0.0], list[str]()
    study = Study(path)

    def lines(*typed: tuple[float, str]) -> Iterator[str]:
        for seconds, line in typed:
            now[0] += seconds
            yield line

    with PlayFolder(study.out, study.pools, study.config) as folder:
        for name, typed in (("w1", [(1, "give up"), (1, "30"), (70, "2")]), ("w2", [(201, "help")])):
            assert TerminalStudy(study, folder, name, lines(*typed), printed.append, lambda: now[0]).play() == 0
    assert printed.count("The time is up; what you had answered until then is recorded.") == 1
    assert printed.count("The time of the study is up. Thank you.") == 1
    first, second = person_rows(tmp_path / "pilot")
    assert (first.answers, first.time_up) == ({"about.age": 30}, "about")
    assert (second.ended_by, second.time_up) == ("no answer: the time was up", "study")


# --- In the terminal, and without a server ----------------------------------------------------------------------------


def test_a_terminal_holds_to_the_same_terms(tmp_path: Path) -> None:
    path = full_study(tmp_path)
    study = Study(path)
    stops = study.plan("w1", balanced_assignment(["quiet", "told"], "s", 0))
    (item,) = (study.pools[0].item(s.key.instance) for s in stops if isinstance(s, ItemStop))
    lines = ["it sings-secretly-wrong", "it glows", *right_lines(item), "-5", "30", "2"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
        done = called("play", "--study", path, "--participant", "w1")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("A detector glows. Read this.") == 2
    assert "How old are you: a whole number from 18 to 99" in done.stdout
    assert done.stdout.splitlines()[-1] == "Your completion code: CODE-C1X9"
    summary = called("play", "--study", path, "--results", tmp_path / "people.csv").stdout.splitlines()
    group = study_group(study)
    assert summary[:2] == ["1 participant: 1 finished", f"groups: {group} 1"]
    assert f"blickets  right in group {group}  1.000  1 person, 1 item" in summary
    (row,) = csv.DictReader(io.StringIO((tmp_path / "people.csv").read_text(encoding="utf-8")))
    assert (row["instruction_tries"], row["failed_checks"], row["group"]) == ("2", "", group)


def study_group(study: Study) -> str:
    return balanced_assignment(study.terms.groups, study.terms.seed, 0).group


def test_a_file_refuses_what_only_a_server_can_hold_to(tmp_path: Path) -> None:
    path = full_study(tmp_path, kind="causim")
    with pytest.raises(CalibrantError, match="a file cannot enforce completion"):
        static_page(Study(path))
    text = path.read_text(encoding="utf-8").replace('completion = {code = "CODE-C1X9"}', "")
    path.write_text(
        text.replace('groups = ["quiet", "told"]', "")
        .replace('groups = ["quiet"]', "")
        .replace('groups = ["told"]', "")
    )
    with pytest.raises(CalibrantError, match="instructions with questions"):
        static_page(Study(path))
    path.write_text(path.read_text(encoding="utf-8").replace('questions = "check.toml"\n', "", 1), encoding="utf-8")
    page = static_page(Study(path))
    assert "Read" in page
    assert '"correct"' not in page


@pytest.mark.parametrize(
    ("bounds", "allowed", "refused"),
    [
        ({}, [0, -5, 1.5, 1e308, 10**300], [True, float("nan"), float("inf"), 10**400, "3", [3]]),
        ({"min": 0}, [0, 0.5, 7], [-1, -0.001, float("-inf")]),
        ({"max": 2, "whole": True}, [2, -7, 2.0], [2.5, 3, 1.0001]),
    ],
)
def test_numbers_have_bounds(bounds: dict[str, Any], allowed: list[Any], refused: list[Any]) -> None:
    question = {"id": "n", "text": "How many?", "kind": "number", **bounds}
    for value in allowed:
        assert check_answers([question], {"n": value}) == {"n": value}
    for value in refused:
        with pytest.raises(WordsError, match="How many"):
            check_answers([question], {"n": value})


# --- Hostile requests to what is new ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "clock",
    [
        {"seconds": -1},
        {"seconds": 1e9},
        {"seconds": float("nan")},
        {"seconds": "1"},
        {"seconds": 1, "interruptions": ["x"]},
        {"seconds": 1, "interruptions": ["sleep"] * 9},
        {"seconds": 1, "more": 1},
        {},
        [1],
        "now",
        True,
    ],
)
def test_a_clock_that_is_none_is_refused_and_nothing_is_written(clock: object, tmp_path: Path) -> None:
    path = full_study(tmp_path)
    with served_study(path) as service:
        client = Client(service, "w1")
        client.get()
        assert client.post("begin", clock=clock) == 422
        client.get()
        assert client.state["phase"] == "start"
        assert client.post("begin", clock={"seconds": 1.25, "interruptions": ["sleep"]}) == 200
    (event,) = (
        json.loads(line) for line in (tmp_path / "pilot" / "moves.jsonl").read_text(encoding="utf-8").splitlines()
    )
    assert event["clock"] == {"seconds": 1.25, "interruptions": ["sleep"]}


def test_the_end_cannot_be_asked_for(tmp_path: Path) -> None:
    """Verbs, pages that do not stand there, and tries that were not made: no code, and nothing is skipped."""
    path = full_study(tmp_path, tries=2, limit=60)
    with served_study(path) as service:
        client = Client(service, "w1")
        client.get()
        attacks: list[tuple[str, dict[str, Any]]] = [
            ("answers", {"name": "2-about", "answers": {"age": 20, "attention": 2}}),
            ("answers", {"name": "0-check", "answers": {}, "tries": -1}),
            ("answers", {"name": "0-check", "answers": {}, "tries": 10**30}),
            ("answers", {"name": "0-check", "answers": [], "tries": 0}),
            *((verb, {}) for verb in ("expire", "finish", "end", "complete", "quit", "submit", "undo")),
        ]
        for _ in range(2):
            for verb, body in attacks:
                assert client.post(verb, **body) in (404, 409, 422), verb
            client.post("begin")
            client.get()
        assert client.state["phase"] == "questions"
        assert client.state["tries"] == 0
        assert "CODE-C1X9" not in "".join(client.bodies)
        assert '"correct"' not in "".join(client.bodies)
        client.post("answers", name="0-check", answers={"glows": "it glows"}, tries=0)
        client.get()
        assert client.post("expire") == 200  # its time is not up
        assert client.state["item"]["closed"] is False
