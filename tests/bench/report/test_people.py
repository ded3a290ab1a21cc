"""People as a group of a report: means over participants, clustered intervals, learning curves, open hypotheses."""

from __future__ import annotations

import csv
import io
import json
import re
from fractions import Fraction
from pathlib import Path
from statistics import fmean, pstdev

import msgspec
import pytest

import calibrant
from calibrant.bench.answers.rates import clustered_mean, people_weights, wilson
from calibrant.bench.play.study.config import Study
from calibrant.bench.runs.records import Record, RunFile, Timing, folder_records
from tests.bench.play.test_terms import full_study, give_up_item, sitting_of, study_group
from tests.support.commands import called
from tests.support.play.right_lines import POOLS

NUM = 60
SPREAD = [((7 * k) % NUM) / NUM for k in range(NUM)]  # values from 0 to 1, none twice


@pytest.mark.parametrize("by_item", [False, True])
def test_the_interval_is_that_of_the_only_cluster_that_varies(by_item: bool) -> None:
    """Then it is a bootstrap over independent units, whose width is known: 2 * 1.96 standard errors."""
    values = [
        (f"p{k:02d}", f"i{n:02d}", value)
        for n in range(NUM if by_item else 8)
        for k in range(8 if by_item else NUM)
        for value in [SPREAD[n if by_item else k]]
    ]
    mean = clustered_mean(values)
    assert mean.interval is not None
    assert mean.mean == pytest.approx(fmean(SPREAD))
    width = 2 * 1.96 * pstdev(SPREAD) / NUM**0.5
    assert mean.interval.high - mean.interval.low == pytest.approx(width, rel=0.06)
    assert (mean.interval.low + mean.interval.high) / 2 == pytest.approx(mean.mean, abs=0.01)


def test_both_clusters_widen_the_interval() -> None:
    """Independent effects of people and items: their variances add."""
    values = [(f"p{k}", f"i{n}", SPREAD[k] + SPREAD[n]) for k in range(NUM) for n in range(NUM)]
    mean = clustered_mean(values)
    assert mean.interval is not None
    width = 2 * 1.96 * (2 * pstdev(SPREAD) ** 2 / NUM) ** 0.5
    assert mean.interval.high - mean.interval.low == pytest.approx(width, rel=0.06)


def test_each_participant_counts_once() -> None:
    unequal = clustered_mean([("a", "i", 1.0), ("a", "j", 1.0), ("a", "k", 1.0), ("b", "i", 0.0)])
    assert (unequal.mean, unequal.interval, unequal.num_participants, unequal.num_items) == (0.5, None, 2, 3)
    weights = people_weights(["a", "a", "a", "b"])
    assert (weights["a"] * 3, weights["b"]) == (Fraction(1, 2), Fraction(1, 2))


def test_few_items_are_fixed_and_equal_answers_get_a_score_interval() -> None:
    few = clustered_mean([(f"p{k}", f"i{n}", float(n == 0)) for k in range(6) for n in range(5)])
    assert few.interval == pytest.approx((0.2, 0.2))  # people do not differ, and the items stay
    right = clustered_mean([(f"p{k}", f"i{n}", 1.0) for k in range(9) for n in range(7)])
    assert right.interval == pytest.approx(wilson(7, 7))
    assert clustered_mean([(f"p{k}", "i", 0.0) for k in range(9)]).interval == pytest.approx(wilson(0, 9))


def people_folder(folder: Path, run: Path, num_people: int) -> Path:
    """Write records of people who all answer as a run did; participant k ends the items from the k-th on, k of 6."""
    records = sorted(folder_records(run), key=lambda record: record.index)
    with RunFile(folder) as file:
        for k in range(num_people):
            for place in range(len(records)):
                record = records[(k + place) % len(records)]
                file.append(_by_person(record, f"human:p{k:02d}", place))
    return folder


def _by_person(record: Record, name: str, place: int) -> Record:
    steps = record.steps if isinstance(record.steps, list) else []
    timing = Timing(10.0, f"2026-01-01T10:{place:02d}:00", [10.0 - place for _ in steps])
    return msgspec.structs.replace(record, protocol=name, config={"feedback": "none"}, timing=timing)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    base = tmp_path_factory.mktemp("people")
    only = [part for k in range(6) for part in ("--only", f"conjunctive-20-{k}")][:8]
    only += ["--only", "hard-3-20-0", "--only", "hard-3-20-3"]
    done = called("run", "static", POOLS["blickets"], *only, "--out", base / "run", "--workers", 1)
    assert done.returncode == 0, done.stderr
    return people_folder(base / "pilot", base / "run", 12), base / "run"


def _rows(folders: tuple[Path, Path], table: str, label: str = "people") -> list[dict[str, str]]:
    """Return a table's rows by column; CSV has a line for each cell."""
    done = called("report", *folders, "--table", table, "--format", "csv")
    assert done.returncode == 0, done.stderr
    rows: dict[tuple[str, str], dict[str, str]] = {}
    for line in csv.DictReader(io.StringIO(done.stdout)):
        row = rows.setdefault((line["system"], line[label]), line)
        row |= {line["column"]: line["value"], f"{line['column']}_low": line["low"]}
        row |= {f"{line['column']}_high": line["high"]}
    return list(rows.values())


def test_people_who_answer_as_a_protocol_have_its_row(folders: tuple[Path, Path]) -> None:
    people, static = _rows(folders, "people")
    assert (people["system"], people["people"], people["n"], static["n"]) == ("people (12)", "12", "6", "6")
    for column in ("right", "earned", "lucky", "short", "missed", "moves"):
        assert people[column] == static[column], column
    assert people["right"] not in ("0.000", "1.000")
    assert float(people["right_low"]) < float(people["right"]) < float(people["right_high"])


def test_learning_curves_are_by_position(folders: tuple[Path, Path]) -> None:
    rows = _rows(folders, "learning", "position")
    assert [(row["position"], row["n"]) for row in rows] == [(str(k), "12") for k in range(1, 7)]
    assert [row["seconds_a_move"] for row in rows] == [f"{10 - k}.0" for k in range(6)]
    assert len({row["right"] for row in rows}) == 1  # the orders are balanced, and nobody learns


def test_open_hypotheses_are_counted_with_the_share_that_was_right(folders: tuple[Path, Path]) -> None:
    rows = _rows(folders, "open", "open")
    people = [row for row in rows if row["system"].startswith("people")]
    static = [row for row in rows if row["system"] == "static"]
    assert [(r["open"], r["share"], r["right"]) for r in people] == [
        (r["open"], r["share"], r["right"]) for r in static
    ]
    assert [int(r["n"]) for r in people] == [12 * int(r["n"]) for r in static]
    decided = next(row for row in static if row["open"] == "1")
    earned = sum(record.score["correct"] for record in folder_records(folders[1]) if _is_decided(record))
    assert float(decided["right"]) * int(decided["n"]) == earned


def _is_decided(record: Record) -> bool:
    return isinstance(record.attribution, dict) and record.attribution["members"] == "1"


def test_the_page_has_people_as_one_system_and_each_of_their_answers(
    folders: tuple[Path, Path], tmp_path: Path
) -> None:
    page = tmp_path / "report.html"
    assert called("report", *folders, "--pool", POOLS["blickets"], "--out", page).returncode == 0
    text = page.read_text(encoding="utf-8")
    # of people alone, a list of rules beside their number
    assert 0 < len(re.findall(r'"remaining":\["\d+ (?:rules?|hypothes[ei]s, by the rule)', text)) <= 72
    assert "2 systems on 6 detectors" in text
    assert 'data-system="people (12)"' in text
    assert 'data-system="human:p00"' not in text
    assert '"p":["p00",' in text
    assert 'id="plot-people-learning-blickets"' in text
    assert "people (12): 6 of 24 items of sample_blickets; rates are means over participants, each alike." in text
    assert not re.search(r"human:p\d\d: \d+ of 24 items", text)


def test_a_table_has_participants_as_one_system_each_of_whom_counts_alike(
    folders: tuple[Path, Path], tmp_path: Path
) -> None:
    """Of two items p0 took both and got one right, p1 took one and got it right: a mean of 3/4, not 2/3 or 1."""
    template = next(iter(folder_records(folders[0])))

    def answer(person: str, item: str, *, correct: bool) -> Record:
        score = {**template.score, "correct": correct}
        changed = {"protocol": f"human:{person}", "instance": item, "setting": "conjunctive", "score": score}
        return msgspec.structs.replace(template, **changed, pool="pool", pool_size=2, index="ab".index(item))

    with RunFile(tmp_path / "pilot") as file:
        for person, item, correct in (("p0", "a", True), ("p0", "b", False), ("p1", "a", True)):
            file.append(answer(person, item, correct=correct))
    done = called("table", tmp_path / "pilot", "--columns", "n,Accuracy")
    assert done.stdout.splitlines()[1].split() == ["conjunctive", "people", "(2)", "pool", "2", "0.750"]
    assert done.stderr.splitlines()[0] == (
        "incomplete: pool: people (2) took 1 to 2 of 2 items; rates are means over participants, each alike"
    )
    (row,) = json.loads(called("table", tmp_path / "pilot", "--json").stdout)["rows"]
    assert (row["system"], row["participants"], row["answers"], row["accuracy"]) == ("people (2)", 2, 3, 0.75)
    with RunFile(tmp_path / "alone") as file:
        file.append(answer("p0", "a", correct=True))
    assert "human:p0" in called("table", tmp_path / "alone").stdout


def test_a_report_counts_whole_answers_of_people(folders: tuple[Path, Path], tmp_path: Path) -> None:
    """Twelve participants on six items, of whom one took but one: 67 answers, and no part of one."""
    with RunFile(tmp_path / "pilot") as file:
        for record in folder_records(folders[0]):
            if record.protocol != "human:p00" or record.timing.started.endswith("10:00:00"):
                file.append(record)
    page = tmp_path / "report.html"
    assert called("report", tmp_path / "pilot", folders[1], "--out", page).returncode == 0
    text = page.read_text(encoding="utf-8")
    assert " of 67 answers" in text
    assert not re.search(r">\d+\.\d+ (?:of|\u00b7|earned)", text)


def test_a_group_is_a_column_of_tables_reports_and_frames(tmp_path: Path) -> None:
    path = full_study(tmp_path)
    for name in ("w1", "w2"):
        with sitting_of(path, name) as sitting:
            sitting.begin(agreed=False)
            sitting.answer_questions(sitting.state()["name"], {"glows": "it glows"})
            give_up_item(sitting)
    groups, source = ["quiet", "told"], tmp_path / "pilot"
    heads, *rows = called("table", source).stdout.splitlines()
    assert heads.split()[:3] == ["Setting", "System", "Group"]
    assert sorted(row.split()[1:3] for row in rows[:2]) == [
        ["human:w1", study_group(Study(path))],
        ["human:w2", *(g for g in groups if g != study_group(Study(path)))],
    ]
    frame = calibrant.table(source).to_frame("pandas")
    assert list(frame.columns[:6]) == ["benchmark", "setting", "stratum", "pool", "system", "group"]
    assert sorted(set(frame["group"])) == groups
    report = list(csv.DictReader(io.StringIO(called("report", source, "--format", "csv").stdout)))
    assert {(row["system"], row["group"]) for row in report if row["table"] == "people"} == {
        ("people (1)", group) for group in groups
    }
    page = tmp_path / "report.html"
    assert called("report", source, "--out", page).returncode == 0
    assert re.search(r'scope="col"[^>]*>(<[^>]*>)?Group<', page.read_text(encoding="utf-8"))


def test_a_study_whose_records_lack_the_group_goes_on_without_it(tmp_path: Path) -> None:
    path, names = full_study(tmp_path), ("w1", "w2")
    text = path.read_text(encoding="utf-8").replace(
        '[[block]]\ninstructions = "intro.md"\nquestions = "check.toml"', ""
    )
    path.write_text(text.replace("tries = 0\n", ""), encoding="utf-8")

    def play(name: str) -> None:
        with sitting_of(path, name) as sitting:
            sitting.begin(agreed=False)
            give_up_item(sitting)

    play("w1")
    (record,) = folder_records(tmp_path / "pilot")
    (row,) = json.loads(called("table", tmp_path / "pilot", "--json").stdout)["rows"]
    assert (record.config["group"], row["group"], row["system"]) == (
        study_group(Study(path)),
        record.config["group"],
        "human:w1",
    )
    config = {name: value for name, value in record.config.items() if name != "group"}
    file = tmp_path / "pilot" / "records.jsonl"
    file.write_bytes(
        msgspec.json.encode(msgspec.structs.replace(record, config=config)) + b"\n"
    )  # as of an earlier version
    play("w2")
    records = list(folder_records(tmp_path / "pilot"))
    assert [(record.protocol, record.config) for record in records] == [(f"human:{name}", config) for name in names]
    (row,) = json.loads(called("table", tmp_path / "pilot", "--json").stdout)["rows"]
    assert (row["system"], row["participants"], "group" in row) == ("people (2)", 2, False)
