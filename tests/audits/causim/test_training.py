"""Worked solutions that are right step by step, levels, curricula, and the file."""

from __future__ import annotations

import json
import re
from pathlib import Path

import msgspec
import pytest

from calibrant.audits.causim.generation import TrainingRecord, curriculum, level_of, training_record, write_training
from calibrant.dsl.causim.item import CausimItem
from calibrant.dsl.causim.model import assignment_text, compact, symbols
from calibrant.dsl.causim.reference import work_out
from calibrant.dsl.causim.score import extract
from calibrant.dsl.causim.topology import TOPOLOGIES
from calibrant.solvers.causim.generation import generated_items
from calibrant.solvers.causim.solution import work_solution
from calibrant.solvers.outcome import Found, Impossible
from tests.support.causim.vectors import questions, vectors


@pytest.fixture(scope="module")
def items() -> list[CausimItem]:
    return [item for topology in TOPOLOGIES for item in generated_items(14, topology, 1, nodes=5, num_questions=2)]


def test_a_solution_ends_in_a_right_answer_and_every_prediction_is_what_the_mechanism_gives(
    items: list[CausimItem],
) -> None:
    predictions = 0
    for item in items:
        record, model = training_record(item), item.task.model
        answer = extract(record.solution, record.required_keys).answer
        worked = work_out(model, item.task.question)
        assert answer is not None
        assert answer == symbols(record.answer)
        assert assignment_text(answer) in worked.answers
        assert record.exhausted
        assert sorted(map(compact, record.answers)) == list(worked.answers)
        for step in record.steps:
            found = re.fullmatch(r"(\S+) = (.*), from (.*)\.", step.text) if step.stage == "prediction" else None
            if found:
                name, value, given = found.groups()
                node = model.nodes[model.position[name]]
                inputs = dict(part.split(" = ") for part in given.split(", "))
                assert node.value(tuple(inputs[parent] for parent in node.parents), inputs[node.noise]) == value
                predictions += 1
    assert predictions > 300


def test_abduction_lists_the_noise_that_the_evidence_allows(items: list[CausimItem]) -> None:
    seen = 0
    for item in items:
        if item.task.question.type != "abduction":
            continue
        worked = work_out(item.task.model, item.task.question)
        for step in training_record(item).steps:
            possible = {answer[step.name] for answer in worked.answers.values()}
            listed = re.search(r"any of (.*); take", step.text)
            told = (
                set(listed.group(1).split(", ")) if listed else set(re.findall(r"only \S+ = (\S+) agrees", step.text))
            )
            assert told == possible
            seen += 1
    assert seen > 100


def test_solutions_of_the_vectors_are_right_and_impossible_ones_have_none() -> None:
    impossible = 0
    for record in vectors("question"):
        model, question = questions()[record["id"]]
        found = work_solution(model, question)
        if record["scenario"] == "impossible":
            assert isinstance(found, Impossible)
            impossible += 1
        else:
            assert isinstance(found, Found)
            assert assignment_text(found.value.answer) in map(compact, record["expect"]["answers"])
    assert impossible > 5


def test_levels_and_curricula(items: list[CausimItem]) -> None:
    ordered = curriculum(items, "version")
    assert [item.version for item in ordered] == sorted(item.version for item in items)
    assert [item.topology for item in curriculum(items[::-1], "topology")] == [item.topology for item in items]
    scenarios = [item.task.scenario for item in curriculum(items, "scenario")]
    assert scenarios == sorted(scenarios)
    for item in items:
        level = level_of(item)
        assert (level.version, level.topology, level.size) == (item.version, item.topology, item.labels.size)
        assert level.block == {1: 2, 2: 2, 3: 4, 4: 4, 5: 6}[item.version]
        if item.topology == "chain":
            assert level.treewidth == min(1, item.version - 1)


def test_the_file_has_a_header_and_a_record_a_line(items: list[CausimItem], tmp_path: Path) -> None:
    assert write_training(tmp_path / "train.jsonl", items[:20], max_answers=3) == (20, 0)
    header, *lines = (tmp_path / "train.jsonl").read_text().splitlines()
    assert json.loads(header) == {
        "format": "calibrant-training",
        "version": 1,
        "benchmark": "causim",
        "order": "version",
    }
    records = [msgspec.json.decode(line, type=TrainingRecord) for line in lines]
    ordered = curriculum(items[:20], "version")
    assert [record.id for record in records] == [item.id for item in ordered]
    for record, item in zip(records, ordered, strict=True):
        assert record.exhausted is (item.labels.size <= 3)
        assert len(record.answers) == min(3, item.labels.size)
        assert record.prompt == item.task.prompt
