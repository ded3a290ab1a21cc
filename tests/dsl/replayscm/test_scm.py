"""Structural causal models against definitions checked by enumeration, and what separates two of them."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator, Sequence
from itertools import combinations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from calibrant.dsl.errors import CycleError
from calibrant.dsl.formulas.formula import Formula, var
from calibrant.dsl.formulas.text import parse
from calibrant.dsl.replayscm.alternatives import Experiment, MenuResponses, PairwiseExperiments, witness_for
from calibrant.dsl.replayscm.disclosure import HiddenOrder
from calibrant.dsl.replayscm.scm import (
    RootScore,
    Scm,
    StructureMetrics,
    local_function,
    scm,
    structure_metrics,
)
from calibrant.dsl.replayscm.score import Evaluator
from calibrant.dsl.replayscm.world import Intervention
from calibrant.dsl.text import natural_key
from tests.support.effort import examples
from tests.support.packages import needs
from tests.support.replayscm.brute_force import Tree, assignments, replay, tree_of, tree_value
from tests.support.replayscm.strategies import FULL_GRAMMAR, formula_of, legal_maps, scms, trees
from tests.support.replayscm.written import map_of, own_rows, pair_problem, written_scm

# --- Structural causal models: local functions, orders, equivalence, against definitions checked by enumeration -------
MODELS = scms()

# --- what a mechanism computes -----------------------------------------------------------------------------------


def _flips(tree: Tree, over: Sequence[str], variable: str) -> bool:
    """Whether flipping the variable changes the value in some row: the definition of a functional parent."""
    return any(
        tree_value(tree, row.__getitem__) != tree_value(tree, (row | {variable: 1 - row[variable]}).__getitem__)
        for row in assignments(over)
    )


@given(trees(("X2", "X10", "X1", "alarm"), grammar=FULL_GRAMMAR, max_size=14))
@settings(deadline=None, max_examples=examples(150))
def test_functional_parents_are_those_whose_flip_changes_the_value(tree: Tree) -> None:
    over = ("X1", "X2", "X10", "alarm")
    local = local_function(formula_of(tree))
    assert local.parents == tuple(variable for variable in over if _flips(tree, over, variable))
    for row, values in enumerate(assignments(local.parents)):
        everything = dict.fromkeys(over, 0) | values
        assert local.table[row] == (tree_value(tree, everything.__getitem__) == 1)
    assert local.table.num_vars == len(local.parents)


# --- orders ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mechanisms", "variables"),
    [
        ({"X1": "(and X4 X3)", "X4": "(xor X6 X1 X1)"}, ("X1", "X4")),  # an inert mention counts
        ({"X1": "(or X3 X1)"}, ("X1",)),
        ({"X2": "X10", "X10": "X2", "X3": "X2", "X4": "X6"}, ("X2", "X3", "X10")),
    ],
)
def test_a_cycle_of_mentions_is_no_model(mechanisms: dict[str, str], variables: tuple[str, ...]) -> None:
    with pytest.raises(CycleError, match=", ".join(variables)) as caught:
        scm(["X3", "X6"], {v: parse(text) for v, text in mechanisms.items()})
    assert caught.value.variables == variables


# --- models ------------------------------------------------------------------------------------------------------


@given(MODELS)
@settings(deadline=None, max_examples=examples(40))
def test_a_model_lists_what_it_consists_of(model: Scm) -> None:
    assert sorted(model.order) == sorted(model.mechanisms)
    assert model.variables == tuple(f"X{i + 1}" for i in range(len(model.variables)))
    assert set(model.variables) == {*model.roots, *model.endogenous}
    assert model.size == sum(len(formula.nodes) for formula in model.mechanisms.values())
    assert model.functional_edges == {
        (u, v) for v, f in model.mechanisms.items() for u in f.variables if _flips(tree_of(f), f.variables, u)
    }


def test_a_graph_has_the_mentions_and_the_formulas() -> None:
    needs("networkx")
    model = scm(["X1", "X2"], {"X3": parse("(and X1 (or X2 (not X2)))"), "X4": parse("(not X1)")})
    graph = model.to_networkx()
    assert sorted(graph.edges) == [("X1", "X3"), ("X1", "X4"), ("X2", "X3")]
    assert dict(graph.nodes(data="formula")) == {"X1": "", "X2": "", "X3": "X1 and (X2 or not X2)", "X4": "not X1"}


def test_names_are_kept_in_natural_order_and_apart_from_the_caller() -> None:
    mechanisms = {"X10": var("X9"), "X3": var("X10")}
    model = scm(["X9", "X1"], mechanisms)
    mechanisms["X4"] = var("X1")
    assert (model.roots, model.endogenous, model.order) == (("X1", "X9"), ("X3", "X10"), ("X10", "X3"))
    assert model == scm(["X1", "X9"], {"X3": var("X10"), "X10": var("X9")})
    with pytest.raises(TypeError):
        model.mechanisms["X3"] = var("X1")  # type: ignore[index]


@given(MODELS)
@settings(deadline=None, max_examples=examples(60))
def test_a_model_survives_pickling_and_copying(model: Scm) -> None:
    signature = model.signature  # filled caches must not get in the way
    for twin in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model), copy.copy(model)):
        assert twin == model
        assert (twin.order, twin.signature) == (model.order, signature)
        assert twin.equivalent(model)


# --- Structure metrics against their definitions, by enumeration of graphs and functions ------------------------------
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


# --- by enumeration ----------------------------------------------------------------------------------------------


def _differences(one: Scm, other: Scm, experiment: Experiment) -> Iterator[tuple[dict[str, int], list[str]]]:
    """Per root assignment the endogenous variables, other than the target, that the two do not agree on."""
    intervention = Intervention({experiment.variable: experiment.value})
    for roots in assignments(one.roots):
        values, others = (replay(model, intervention, roots.__getitem__) for model in (one, other))
        yield roots, [v for v in one.endogenous if v != experiment.variable and values[v] != others[v]]


def _rates(one: Scm, other: Scm, experiment: Experiment) -> tuple[float, float]:
    found = [differing for _, differing in _differences(one, other, experiment)]
    compared = sum(v != experiment.variable for v in one.endogenous) * len(found)
    return sum(map(bool, found)) / len(found), sum(map(len, found)) / compared if compared else 0.0


@st.composite
def separable_pairs(draw: st.DrawFn) -> tuple[Scm, Scm]:
    """Two SCMs over the same roots; often alike in all mechanisms but one."""
    one = draw(scms(max_endogenous=3))
    other = draw(legal_maps(HiddenOrder(one.variables, one.roots), one.variables))
    if draw(st.booleans()):
        variable = draw(st.sampled_from(one.order))
        earlier = {*one.roots, *one.order[: one.order.index(variable)]}
        if other[variable].mentioned <= earlier:
            other = {**one.mechanisms, variable: other[variable]}
    return one, scm(one.roots, other)


@given(separable_pairs())
@settings(deadline=None, max_examples=examples(80))
def test_rates_and_the_best_experiment_are_those_of_enumeration(pair: tuple[Scm, Scm]) -> None:
    one, other = pair
    experiments = PairwiseExperiments(one, other)
    menu = [Experiment(v, bit) for v in sorted(one.variables, key=natural_key) for bit in (0, 1)]
    assert list(experiments.menu()) == menu
    rates = {experiment: _rates(one, other, experiment) for experiment in menu}
    for experiment in menu:
        found = experiments.separation(experiment)
        assert (found.experiment, (found.disagreement_rate, found.cell_rate)) == (experiment, rates[experiment])
        assert found.separates == any(differing for _, differing in _differences(one, other, experiment))
    first = next(experiment for experiment in menu if rates[experiment] == max(rates.values()))
    for best in (experiments.best(), MenuResponses(one).best(MenuResponses(other))):
        assert (best.experiment, (best.disagreement_rate, best.cell_rate)) == (first, rates[first])


def _mean_the_same(one: Scm, other: Scm) -> bool:
    """Every mechanism has the same value under every assignment of all variables."""
    trees = [{v: tree_of(f) for v, f in model.mechanisms.items()} for model in (one, other)]
    return all(
        tree_value(trees[0][v], row.__getitem__) == tree_value(trees[1][v], row.__getitem__)
        for row in assignments(one.variables)
        for v in one.endogenous
    )


@given(separable_pairs(), st.data())
@settings(deadline=None, max_examples=examples(80))
def test_what_separates_is_accepted_with_its_witness(pair: tuple[Scm, Scm], data: st.DataObject) -> None:
    reference, model = pair
    experiment = data.draw(st.sampled_from(PairwiseExperiments(reference, model).menu()))
    witness = witness_for(PairwiseExperiments(reference, model), experiment)
    answer = {"alternative": {"mechanisms": map_of(model)}, "experiment": experiment.to_dict(), "witness": witness}
    made = Evaluator(pair_problem(reference, own_rows(model))).score_answer(answer).to_dict()
    distinct = not _mean_the_same(reference, model)
    assert (made["altTrainExact"], made["altSemanticallyDistinct"], made["altSuccess"]) == (True, distinct, distinct)
    if not distinct:
        assert "pairSeparates" not in made
        return
    rate, cell_rate = _rates(reference, model, experiment)
    assert (made["pairDisagreementRate"], made["cellDifferenceRate"]) == (rate, cell_rate)
    assert made["pairSeparates"] is made["witnessValid"] is made["correct"] is made["jointSuccess"] is (rate > 0)
    best = max(_rates(reference, model, e)[0] for e in PairwiseExperiments(reference, model).menu())
    assert made["experimentOptimality"] == (rate / best if best else 0.0)
    assert made["experiment"] == experiment.to_dict()
    assert (made["failureExplanation"] is None) == (rate > 0)


@given(separable_pairs(), st.data())
@settings(deadline=None, max_examples=examples(80))
def test_a_witness_is_valid_iff_one_of_its_claims_is_true(pair: tuple[Scm, Scm], data: st.DataObject) -> None:
    reference, model = pair
    assume(not _mean_the_same(reference, model))
    experiment = data.draw(st.sampled_from(PairwiseExperiments(reference, model).menu()))
    bits = st.integers(0, 1)
    names = st.sampled_from([*reference.variables, "X99"])
    claims = data.draw(
        st.lists(st.fixed_dictionaries({"variable": names, "reference": bits, "alternative": bits}), max_size=4)
    )
    roots = {root: data.draw(bits) for root in reference.roots}
    answer = {
        "alternative": {"mechanisms": map_of(model)},
        "experiment": experiment.to_dict(),
        "witness": {"rootAssignment": roots, "differences": claims},
    }
    made = Evaluator(pair_problem(reference, own_rows(model))).score_answer(answer).to_dict()
    intervention = Intervention({experiment.variable: experiment.value})
    one, other = (replay(m, intervention, roots.__getitem__) for m in (reference, model))
    compared = [v for v in reference.endogenous if v != experiment.variable and one[v] != other[v]]
    real = [{"variable": v, "reference": one[v], "alternative": other[v]} for v in compared]
    assert made["witnessValid"] == any(claim in real for claim in claims)


# --- by hand -----------------------------------------------------------------------------------------------------


def test_the_worked_example_of_the_official_sample() -> None:
    mechanisms = {"X1": "(xor X2 X8)", "X3": "(xor X1 X6)", "X6": "(xor X1 X8)"}
    mechanisms["X7"] = "(xor (and X2 X6 X8) (or X1 X6))"
    reference = written_scm("X2 X4 X8", **mechanisms, X5="(or X1 (iff X6 (and X7 (or X3 X6))))")
    gold = written_scm("X2 X4 X8", **mechanisms, X5="(or (iff X3 (iff X1 X3 X7)) (not (xor X1 X6 X7)))")
    pair = PairwiseExperiments(reference, gold)
    best = pair.best()
    assert (best.experiment, best.disagreement_rate, best.cell_rate) == (Experiment("X7", 0), 0.25, 0.0625)
    assert witness_for(pair, best.experiment) == {
        "rootAssignment": {"X2": 0, "X4": 0, "X8": 1},
        "differences": [{"variable": "X5", "reference": 1, "alternative": 0}],
    }


def test_two_scms_over_other_roots_do_not_compare() -> None:
    with pytest.raises(ValueError, match="same roots"):
        PairwiseExperiments(written_scm("A", B="A"), written_scm("B", A="B"))
