"""Results of studies: files of two studies side by side, columns of pages that nobody reached, whom means count."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path
from textwrap import dedent

import pytest

from calibrant.bench.play.folder import PlayFolder
from calibrant.bench.play.game import balanced_assignment
from calibrant.bench.play.results import write_results
from calibrant.bench.play.study.config import Study
from calibrant.bench.play.study.pages import QuestionPage, translated_questions
from calibrant.bench.toml_file import read_toml
from calibrant.dsl.errors import CalibrantError
from tests.bench.play.test_terms import full_study, give_up_item, sitting_of
from tests.support.commands import CHECKOUT, called


def checked_study(folder: Path) -> Path:
    """Write the study of two groups with the same questions about instructions in a block of each group."""
    path = full_study(folder)
    text = path.read_text(encoding="utf-8")
    block = '[[block]]\ninstructions = "intro.md"\nquestions = "check.toml"\ntries = 0\n'
    blocks = "".join(f'{block}groups = ["{group}"]\n' for group in ("quiet", "told"))
    assert text.count(block) == 1
    path.write_text(text.replace(block, blocks), encoding="utf-8")
    return path


def test_columns_are_those_of_the_study_whoever_has_come(tmp_path: Path) -> None:
    path = checked_study(tmp_path)
    with sitting_of(path, "w1") as sitting:
        sitting.begin(agreed=False)
        (group,) = (entry.group for entry in [sitting._folder.assignment("w1")] if entry is not None)
        sitting.answer_questions(sitting.state()["name"], {"glows": "it glows"})
    rows = write_results(tmp_path / "people.csv", Study(path))
    (cells,) = csv.DictReader(io.StringIO((tmp_path / "people.csv").read_text(encoding="utf-8")))
    questions = [name for name in cells if "." in name]
    assert questions == ["check0.glows", "check1.glows", "about.age", "about.attention"]
    number = ["quiet", "told"].index(group)
    assert [cells[f"check{k}.glows"] for k in range(2)] == ["it glows" if k == number else "" for k in range(2)]
    assert [row.answers for row in rows] == [{f"check{number}.glows": "it glows"}]
    book = (tmp_path / "people.codebook.md").read_text(encoding="utf-8")
    for k, name in enumerate(("quiet", "told")):
        meaning = f"(it glows or it sings-secretly-wrong; block {k + 1} of group {name})"
        line = f"| `check{k}.glows` | What does a detector do? {meaning} |"
        assert line in book.splitlines()
    assert "| `about.attention` | Please choose 2 here. (1 to 5; block 5) |" in book


def test_two_studies_have_their_files_side_by_side_and_none_replaces_the_other(tmp_path: Path) -> None:
    path, other = full_study(tmp_path), tmp_path / "other.toml"
    text = path.read_text(encoding="utf-8")
    other.write_text(text.replace('"two groups"', '"three"').replace('"pilot"', '"pilot2"'), encoding="utf-8")
    for file in (path, other):
        with sitting_of(file, "w1") as sitting:
            sitting.begin(agreed=False)
    assert called("play", "--study", path, "--results", tmp_path / "people.csv").returncode == 0
    before = {file.name: file.read_bytes() for file in tmp_path.glob("people*")}
    assert called("play", "--study", other, "--results", tmp_path / "people2.csv").returncode == 0
    assert sorted(file.name for file in tmp_path.glob("people*")) == [
        *("people.codebook.md", "people.csv", "people.moves.csv"),
        *("people2.codebook.md", "people2.csv", "people2.moves.csv"),
    ]
    refused = called("play", "--study", other, "--results", tmp_path / "people.csv")
    assert (refused.returncode, len(refused.stderr.splitlines())) == (2, 1)
    assert "it is of the study 'two groups'; give --results another name" in refused.stderr
    assert {name: (tmp_path / name).read_bytes() for name in before} == before
    for name in ("people2.csv", "people2.json"):
        with pytest.raises(CalibrantError, match="of the study 'three'"):
            write_results(tmp_path / name, Study(path))


def test_a_study_of_the_same_title_replaces_no_results(tmp_path: Path) -> None:
    path, other = full_study(tmp_path), tmp_path / "other.toml"
    other.write_text(path.read_text(encoding="utf-8").replace('"pilot"', '"pilot2"'), encoding="utf-8")
    for file in (path, other):
        with sitting_of(file, "w1") as sitting:
            sitting.begin(agreed=False)
    file = tmp_path / "people.csv"
    assert called("play", "--study", path, "--results", file).returncode == 0
    before = file.read_bytes()
    refused = called("play", "--study", other, "--results", file)
    assert (refused.returncode, len(refused.stderr.splitlines())) == (2, 1)
    assert "a study of the same title, whose records are in 'pilot'; give --results another name" in refused.stderr
    assert file.read_bytes() == before
    assert called("play", "--study", path, "--results", file).returncode == 0


def test_results_of_those_alone_who_finished(tmp_path: Path) -> None:
    path, file = full_study(tmp_path), tmp_path / "people.csv"
    study = Study(path)
    for name in ("w1", "w2"):
        with sitting_of(path, name) as sitting:
            sitting.begin(agreed=False)
    refused = called("play", "--study", path, "--results", file, "--finished")
    assert "no participant came to the end yet; leave out --finished for all" in refused.stderr
    assert not file.exists()
    with PlayFolder(study.out, study.pools, study.config) as folder:
        folder.finish("w2", is_screened_out=False)
        folder.finish("w1", is_screened_out=True)
    printed = called("play", "--study", path, "--results", file, "--finished").stdout
    assert printed.splitlines()[0] == "1 participant: 1 finished"
    for table in (file, tmp_path / "people.moves.csv"):
        rows = csv.DictReader(io.StringIO(table.read_text(encoding="utf-8")))
        assert {row["participant"] for row in rows} == {"w2"}
    assert "give --results" in called("play", "--study", path, "--finished").stderr


def test_the_summary_names_whom_means_count(tmp_path: Path) -> None:
    path = full_study(tmp_path, tries=1, more='screen_out = {code = "OUT"}')
    for name, answer in (("w1", "it glows"), ("w2", "it glows"), ("w3", "it sings-secretly-wrong")):
        with sitting_of(path, name) as sitting:
            sitting.begin(agreed=False)
            sitting.answer_questions(sitting.state()["name"], {"glows": answer})
            if name != "w3":
                give_up_item(sitting)
            if name == "w1":
                sitting.answer_questions(sitting.state()["name"], {"age": 20, "attention": 2})
            sitting.state()
    lines = called("play", "--study", path, "--results", tmp_path / "people.csv").stdout.splitlines()
    assert lines[0] == "3 participants: 1 finished, 1 not finished, 1 screened out"
    assert lines[2] == "means are over all who ended an item: 1 finished, 1 not finished"
    rows = list(csv.DictReader(io.StringIO((tmp_path / "people.csv").read_text(encoding="utf-8"))))
    assert [row["began"][:2] for row in rows] == ["20", "20", "20"]  # of those who were screened out, too
    assert all(float(row["total_seconds"]) >= 0 for row in rows)


def test_the_study_of_the_page_is_read_as_it_stands(tmp_path: Path) -> None:
    """All blocks of docs/studies.md, with the pool of its first command."""
    text = (CHECKOUT / "docs" / "studies.md").read_text(encoding="utf-8")
    blocks = [dedent(block) for block in re.findall(r"(?:^(?:    .*)?\n)+", text, re.MULTILINE)]
    (study,) = (block for block in blocks if block.lstrip().startswith("[study]"))
    (generate,) = (line for block in blocks for line in block.splitlines() if line.startswith("calibrant generate --b"))
    (check,) = (block for block in blocks if block.lstrip().startswith('title = "About the'))
    (questions,) = (block for block in blocks if block.lstrip().startswith('title = "Afterwards"'))
    (german,) = (block for block in blocks if block.lstrip().startswith("[[question]]"))
    for name in ("consent.md", "intro.md", "hint.md"):
        (tmp_path / name).write_text("# Read this\n", encoding="utf-8")
    (tmp_path / "check.toml").write_text(check, encoding="utf-8")
    (tmp_path / "check.de.toml").write_text(german, encoding="utf-8")
    (tmp_path / "after.toml").write_text(questions, encoding="utf-8")
    path = tmp_path / "study.toml"
    path.write_text(study, encoding="utf-8")
    line = generate.removeprefix("calibrant ").replace("detectors.jsonl", str(tmp_path / "detectors.jsonl"))
    assert called(*line.split()).returncode == 0
    read = Study(path)
    assert [name for name, _ in read.questions] == [
        "check.glows",
        "check.moves",
        "after.sure",
        "after.age",
        "after.attention",
    ]
    assert [len(read.plan("p001", balanced_assignment(["quiet", "told"], "1", k))) for k in range(2)] in (
        [4, 5],
        [5, 4],
    )
    page = read_toml(tmp_path / "check.de.toml", QuestionPage)
    translated = translated_questions([question for _, question in read.questions[:2]], page, "check.de.toml")
    assert [text.get("labels", []) for text in translated] == [page.question[0].options, []]
