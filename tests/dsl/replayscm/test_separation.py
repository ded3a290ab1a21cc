"""What separates two SCMs, and what shows it: against enumeration of all root assignments."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from calibrant.dsl.replayscm.alternatives import Experiment, MenuResponses, PairwiseExperiments, witness_for
from calibrant.dsl.replayscm.disclosure import HiddenOrder
from calibrant.dsl.replayscm.scm import Scm, scm
from calibrant.dsl.replayscm.score import Evaluator
from calibrant.dsl.replayscm.world import Intervention
from calibrant.dsl.text import natural_key
from tests.support.effort import examples
from tests.support.replayscm.oracles import assignments, replay, tree_of, tree_value
from tests.support.replayscm.strategies import legal_maps, scms
from tests.support.replayscm.written import map_of, own_rows, pair_problem, written_scm

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
def pairs(draw: st.DrawFn) -> tuple[Scm, Scm]:
    """Two SCMs over the same roots; often alike in all mechanisms but one."""
    one = draw(scms(max_endogenous=3))
    other = draw(legal_maps(HiddenOrder(one.variables, one.roots), one.variables))
    if draw(st.booleans()):
        variable = draw(st.sampled_from(one.order))
        earlier = {*one.roots, *one.order[: one.order.index(variable)]}
        if other[variable].mentioned <= earlier:
            other = {**one.mechanisms, variable: other[variable]}
    return one, scm(one.roots, other)


@given(pairs())
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


@given(pairs(), st.data())
@settings(deadline=None, max_examples=examples(80))
def test_a_witness_is_the_first_difference_that_enumeration_finds(pair: tuple[Scm, Scm], data: st.DataObject) -> None:
    one, other = pair
    experiment = data.draw(st.sampled_from(PairwiseExperiments(one, other).menu()))
    witness = witness_for(PairwiseExperiments(one, other), experiment)
    real = [(roots, differing) for roots, differing in _differences(one, other, experiment) if differing]
    if not real:
        assert witness is None
        return
    assert witness is not None
    roots, differing = real[0]
    assert witness["rootAssignment"] == roots
    assert {claim["variable"] for claim in witness["differences"]} == {*differing}
    intervention = Intervention({experiment.variable: experiment.value})
    for claim in witness["differences"]:
        values = [replay(model, intervention, roots.__getitem__)[claim["variable"]] for model in (one, other)]
        assert values == [claim["reference"], claim["alternative"]]


def _mean_the_same(one: Scm, other: Scm) -> bool:
    """Every mechanism has the same value under every assignment of all variables."""
    trees = [{v: tree_of(f) for v, f in model.mechanisms.items()} for model in (one, other)]
    return all(
        tree_value(trees[0][v], row.__getitem__) == tree_value(trees[1][v], row.__getitem__)
        for row in assignments(one.variables)
        for v in one.endogenous
    )


@given(pairs(), st.data())
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


@given(pairs(), st.data())
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
