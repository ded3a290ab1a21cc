"""Worked solutions that are right step by step, levels, curricula, and the file."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from calibrant.audits.causim.training import (
    TrainingRecord,
    curriculum,
    harden_item,
    level_of,
    training_record,
    write_training,
)
from calibrant.audits.causim.verify import VERIFIERS, evidence_of
from calibrant.audits.claims import verify
from calibrant.dsl.causim.generated_functions import TOPOLOGIES
from calibrant.dsl.causim.item import CausimItem, Labels, Sealed, Task
from calibrant.dsl.causim.model import ModelError, assignment_text, compact, symbols
from calibrant.dsl.causim.question import Question, check_question
from calibrant.dsl.causim.reference import work_out
from calibrant.dsl.causim.score import extract
from calibrant.solvers.causim.generation import generated_items
from calibrant.solvers.causim.space import work_solution
from calibrant.solvers.outcome import Found, Impossible
from tests.support.causim.models import questions, vectors


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


# --- Decided items: one answer by running every world, and a certificate that less evidence does not do ---------------


@pytest.fixture(scope="module")
def hardened_items() -> list[CausimItem]:
    return [item for topology in TOPOLOGIES for item in generated_items(18, topology, 1, nodes=4, num_questions=2)]


def test_a_decided_item_has_one_answer_and_a_certificate_that_holds(hardened_items: list[CausimItem]) -> None:
    made = impossible = 0
    for item in hardened_items:
        found = harden_item(item)
        if isinstance(found, Impossible):
            assert item.task.question.type == "abduction"
            impossible += 1
            continue
        assert isinstance(found, Found)
        new, certificate = found.value
        model, question = new.task.model, new.task.question
        worked = work_out(model, check_question(question, model))
        assert len(worked.answers) == new.labels.size == 1
        assert (worked.effect_all, worked.effect_some, worked.copy) == (
            new.labels.effect_all,
            new.labels.effect_some,
            new.labels.copy,
        )
        assert verify(certificate, evidence_of(item.task.source, item.task.question), VERIFIERS).holds
        told = len(question.fixed) + len(question.observed)
        before = len(item.task.question.fixed) + len(item.task.question.observed)
        assert told - before == len(certificate.data["observe"])
        assert (told == before) is (item.labels.size == 1)
        made += told > before
    assert made > 50
    assert impossible > 5


def test_an_item_without_its_world_is_refused(hardened_items: list[CausimItem]) -> None:
    with pytest.raises(ModelError, match="not known"):
        harden_item(replace(hardened_items[0], sealed=Sealed()))


SUM = """
import random
def U_A():
    return random.choice([0, 1])
def U_B():
    return random.choice([0, 1])
def U_D():
    return random.choice([0, 1])
def f_A(u):
    return u
def f_B(a, u):
    return a * 2 + u
def f_D(b, u):
    return (b + u) % 2
def run_once(seed=None):
    u_a = U_A()
    a = f_A(u_a)
    u_b = U_B()
    b = f_B(a, u_b)
    u_d = U_D()
    d = f_D(b, u_d)
    return {"A": a, "B": b, "D": d}
"""


def test_a_counterfactual_without_evidence_is_told_a_node_where_that_decides() -> None:
    """B is 2 A + U_B: one observation of it tells what two noise variables would."""
    question = Question("counterfactual", {"U_D": "0"}, ("U_A", "U_B"), do={"D": "1"})
    world = {"U_A": "1", "U_B": "0", "U_D": "0"}
    item = CausimItem("sum", Task(SUM, question, "stochastic"), Labels(4, False), Sealed(world))
    found = harden_item(item)
    assert isinstance(found, Found)
    new, certificate = found.value
    assert certificate.data["observe"] == ["B"]
    assert (new.task.question.observed, new.task.question.unknown) == ({"B": "2"}, ("U_A", "U_B"))
    assert verify(certificate, evidence_of(SUM, question), VERIFIERS).holds
    assert len(work_out(new.task.model, new.task.question).answers) == 1
