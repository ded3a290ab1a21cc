"""Decided items: one answer by running every world, and a certificate that less evidence does not do."""

from __future__ import annotations

from dataclasses import replace

import pytest

from calibrant.audits.causim.generation import harden_item
from calibrant.audits.causim.verify import VERIFIERS, evidence_of
from calibrant.audits.claims import verify
from calibrant.dsl.causim.item import CausimItem, Labels, Sealed, Task
from calibrant.dsl.causim.model import ModelError
from calibrant.dsl.causim.question import Question, check_question
from calibrant.dsl.causim.reference import work_out
from calibrant.dsl.causim.topology import TOPOLOGIES
from calibrant.solvers.causim.generation import generated_items
from calibrant.solvers.outcome import Found, Impossible


@pytest.fixture(scope="module")
def items() -> list[CausimItem]:
    return [item for topology in TOPOLOGIES for item in generated_items(18, topology, 1, nodes=4, num_questions=2)]


def test_a_decided_item_has_one_answer_and_a_certificate_that_holds(items: list[CausimItem]) -> None:
    made = impossible = 0
    for item in items:
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


def test_an_item_without_its_world_is_refused(items: list[CausimItem]) -> None:
    with pytest.raises(ModelError, match="not known"):
        harden_item(replace(items[0], sealed=Sealed()))


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
