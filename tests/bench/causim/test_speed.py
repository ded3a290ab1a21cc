"""What the rates of `bench.lab.speed causim` are measured on."""

from __future__ import annotations

from calibrant.bench.lab.speed.causim import SPARSE, _observe_half, _questions, _right
from calibrant.dsl.causim.model import run
from calibrant.dsl.causim.question import project
from calibrant.dsl.causim.topology import TOPOLOGIES
from calibrant.solvers.causim.exact import TwinAnswerSet
from calibrant.solvers.causim.space import WorldSpace


def test_twin_membership_is_asked_where_evidence_leaves_several_worlds() -> None:
    assert set(SPARSE) == set(TOPOLOGIES) - {"inverted_star"}
    items = [
        _observe_half(i) for name in SPARSE for i in _questions(name, 2) if i.task.question.type == "counterfactual"
    ]
    assert len(items) == 10
    for item in items:
        model, question = item.task.model, item.task.question
        assert len(question.observed) == 5
        assert WorldSpace(model, question).count > 1
        members = TwinAnswerSet(model, question)
        assert members.contains(_right(item))
        truth = project(question, model, item.sealed.world, run(model, item.sealed.world, question.do))
        assert members.contains(truth)
