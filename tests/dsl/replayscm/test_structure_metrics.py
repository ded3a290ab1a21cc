"""Structure metrics against their definitions, by enumeration of graphs and functions."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.dsl.formulas.formula import Formula
from calibrant.dsl.replayscm.disclosure import HiddenOrder
from calibrant.dsl.replayscm.scm import RootScore, Scm, StructureMetrics, scm, structure_metrics
from tests.support.effort import examples
from tests.support.replayscm.oracles import assignments, tree_of, tree_value
from tests.support.replayscm.problems import legal_maps
from tests.support.replayscm.strategies import scms
from tests.support.replayscm.written import written_scm

Edges = set[tuple[str, str]]


def _function(mechanism: Formula, over: tuple[str, ...]) -> list[int]:
    """Return the value under every assignment of all variables: equal iff the parents and the table over them are."""
    tree = tree_of(mechanism)
    return [tree_value(tree, row.__getitem__) for row in assignments(over)]


def _edges(model: Scm) -> Edges:
    """U -> V where flipping U changes V's mechanism in some row (paper, section 3)."""
    edges = set()
    for v, mechanism in model.mechanisms.items():
        tree = tree_of(mechanism)
        for u in model.variables:
            for row in assignments(model.variables):
                flipped = row | {u: 1 - row[u]}
                if tree_value(tree, row.__getitem__) != tree_value(tree, flipped.__getitem__):
                    edges.add((u, v))
    return edges


def _shd(gold: Edges, found: Edges, variables: tuple[str, ...]) -> int:
    """Pairs of variables that are not joined in the same way: no edge, one way, the other way."""
    pairs = combinations(variables, 2)
    return sum([e in gold for e in ((u, v), (v, u))] != [e in found for e in ((u, v), (v, u))] for u, v in pairs)


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Scm, Scm]:
    """Gold and a model with the same roots; some of its mechanisms may be gold's."""
    gold = draw(scms())
    model = dict(draw(legal_maps(HiddenOrder(gold.variables, gold.roots), gold.variables)))
    if draw(st.booleans()):
        kept = draw(st.sets(st.sampled_from(gold.order)))
        order = gold.order
        model = {
            v: gold.mechanisms[v] if v in kept or not model[v].mentioned <= {*gold.roots, *order[:i]} else model[v]
            for i, v in enumerate(order)
        }
    return gold, scm(gold.roots, model)


@given(pairs())
@settings(deadline=None, max_examples=examples(120))
def test_metrics_are_their_definitions(pair: tuple[Scm, Scm]) -> None:
    gold, model = pair
    metrics = structure_metrics(gold, model)
    true, found = _edges(gold), _edges(model)
    hits = len(true & found)
    assert metrics.precision == (hits / len(found) if found else 1.0)
    assert metrics.recall == (hits / len(true) if true else 1.0)
    misses = len(true ^ found)
    assert metrics.f1 == (2 * hits / (2 * hits + misses) if true | found else 1.0)
    assert metrics.shd == _shd(true, found, gold.variables)
    parents = [{u for u, w in true if w == v} == {u for u, w in found if w == v} for v in gold.endogenous]
    assert metrics.variable_exact == sum(parents) / len(parents)
    assert metrics.exact_map == (true == found)
    same = [_function(gold.mechanisms[v], gold.variables) == _function(model.mechanisms[v], gold.variables)
            for v in gold.endogenous]  # fmt: skip
    assert metrics.local_match == sum(same) / len(same)


@given(scms())
@settings(deadline=None, max_examples=examples(40))
def test_gold_matches_itself(gold: Scm) -> None:
    assert structure_metrics(gold, gold) == StructureMetrics(1.0, 1.0, 1.0, 0, 1.0, True, 1.0)


GOLD = written_scm("A B", C="(and A B)", D="(or C A)")


@pytest.mark.parametrize(
    ("mechanisms", "expected"),
    [
        # written differently, with an inert mention: nothing differs
        ({"C": "(not (or (not A) (not B)))", "D": "(or C A (and B (not B)))"}, (1.0, 1.0, 1.0, 0, 1.0, True, 1.0)),
        # the right parents of D, another function
        ({"C": "(and A B)", "D": "(xor C A)"}, (1.0, 1.0, 1.0, 0, 1.0, True, 0.5)),
        # C -> D turned round: one reversal and B -> C gone; of the edges A->C, D->C, A->D two are true
        ({"C": "(and A D)", "D": "A"}, (2 / 3, 2 / 4, 4 / 7, 2, 0.0, False, 0.0)),
        # one edge too many
        ({"C": "(and A B)", "D": "(or C A B)"}, (4 / 5, 1.0, 8 / 9, 1, 0.5, False, 0.5)),
        # both mechanisms constant: no edge is found
        ({"C": "(xor A A)", "D": "(iff B B)"}, (1.0, 0.0, 0.0, 4, 0.0, False, 0.0)),
    ],
)
def test_worked_by_hand(mechanisms: dict[str, str], expected: tuple[float, ...]) -> None:
    found = structure_metrics(GOLD, written_scm("A B", **mechanisms))
    assert found == StructureMetrics(*expected)  # type: ignore[arg-type]


def test_two_empty_graphs_are_the_same_graph() -> None:
    gold, model = written_scm("A", B="(xor A A)"), written_scm("A", B="(iff A A)")
    assert structure_metrics(gold, model) == StructureMetrics(1.0, 1.0, 1.0, 0, 1.0, True, 0.0)


def test_another_root_set_has_no_metrics() -> None:
    with pytest.raises(ValueError, match="gold root set"):
        structure_metrics(written_scm("A", B="A"), written_scm("B", A="B"))


@pytest.mark.parametrize(
    ("predicted", "gold", "precision", "recall", "exact"),
    [
        ((), ("X1", "X2"), 0.0, 0.0, False),
        (("X1",), ("X1", "X2"), 1.0, 0.5, False),
        (("X1", "X2"), ("X2", "X1"), 1.0, 1.0, True),
        (("X3",), ("X1",), 0.0, 0.0, False),
        (("X1",), (), None, None, False),
        ((), (), None, None, False),
    ],
)
def test_shares_of_roots_are_defined_whatever_was_predicted(
    predicted: tuple[str, ...],
    gold: tuple[str, ...],
    precision: float | None,
    recall: float | None,
    exact: bool,
) -> None:
    score = RootScore(predicted, gold)
    assert (score.precision, score.recall, score.exact) == (precision, recall, exact)
