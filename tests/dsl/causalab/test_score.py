"""Hypotheses and replies: whatever they are, they are read and scored; ours against definitions."""

from __future__ import annotations

import json
from math import inf, nan
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.dsl.causalab.hypothesis import hypothesis, state_mechanism
from calibrant.dsl.causalab.item import LabItem
from calibrant.dsl.causalab.mechanism import FREQUENCY, Equation, Mechanism, Term
from calibrant.dsl.causalab.replies import controller_json, parse_object
from calibrant.dsl.causalab.score import Scorer, imec_by_definition, imec_members, imec_size
from tests.oracles.causalab import formula_score, visualiser_score
from tests.support.benchmarks.causalab import items
from tests.support.effort import examples

TRUTH = Mechanism(
    {
        FREQUENCY: Equation((Term("ph", 1, 3.0), Term("density", 1, 2.0)), 20.0),
        "ph": Equation((Term("density", 1, 1.0),)),
        "density": Equation(),
    }
)
QUADRATIC = Mechanism({FREQUENCY: Equation((Term("ph", 2, 0.008), Term("ph", 1, -0.7)), 90.0), "ph": Equation()})
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from(["ph", "freq"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["from", "to", "c_ph", "PH", "power", "value", "x"]), inner, max_size=4)
    ),
    max_leaves=12,
)
HYPOTHESES = st.fixed_dictionaries(
    {}, optional={"edges": JSON, "coefficients": JSON, "freq_equation": JSON, "weights": JSON}
)


@given(items())
def test_the_stated_truth_scores_full_marks(item: LabItem) -> None:
    truth = item.sealed.mechanism
    score = Scorer(truth).score(hypothesis(state_mechanism(truth)))
    assert score.distance.shd == 0
    assert {score.all_edge.f1, score.freq_edge.f1, score.root.f1, score.all_weight.f1} == {1.0}
    assert score.freq_weight_unnamed.recall == 1


@settings(max_examples=examples(300))
@given(HYPOTHESES)
def test_any_hypothesis_has_a_score(raw: dict[str, Any]) -> None:
    found = Scorer(TRUTH).score(hypothesis(raw)).flat()
    assert all(0 <= value <= 1 for name, value in found.items() if name != "shd")
    visualiser_score(TRUTH, raw)


@given(JSON)
def test_what_is_no_object_is_the_empty_hypothesis(raw: Any) -> None:
    score = Scorer(TRUTH).score(hypothesis(raw))
    assert score.all_edge.f1 == 0 or isinstance(raw, dict)


@pytest.mark.parametrize("keys", [("c_ph", "c2_ph"), ("c1_ph", "c2_ph"), ("c_ph_2", "c_ph_1"), ("coeff1_ph_freq", "x")])
def test_weights_count_under_any_key_that_names_the_parent(keys: tuple[str, str]) -> None:
    said = hypothesis({"coefficients": {"base": 90.0, keys[0]: -0.7, keys[1]: 0.008}})
    assert Scorer(QUADRATIC).score(said).freq_weight_unnamed.num_correct == 1


def test_weights_of_every_equation_are_scored_by_parent_child_and_power() -> None:
    said = state_mechanism(TRUTH)
    said["weights"][0]["value"] += 0.02
    assert Scorer(TRUTH).score(hypothesis(said)).all_weight.num_correct == 2
    said["weights"].append({"from": "ph", "to": "density", "power": 2, "value": 1})
    assert Scorer(TRUTH).score(hypothesis(said)).all_weight.num_predicted == 4


def test_a_lookup_goes_name_by_name_and_case_comes_last() -> None:
    scorer = Scorer(TRUTH)
    for coefficients, correct in [
        ({"C_PH": 3}, 1),
        ({"c_ph": "x", "coeff_ph_freq": 3}, 1),
        ({"c_ph": 2, "C_PH": 3}, 0),
        ({"C_PH": 2, "c_Ph": 3}, 1),
        ({"C_PH": 2, "ph": 3}, 0),
        ({"c_ph": True, "ph": "3"}, 1),
    ]:
        assert scorer.score(hypothesis({"coefficients": coefficients})).freq_weight.num_correct == correct


@settings(max_examples=examples(200), deadline=None)
@given(items(("3nodes", "4nodes", "5nodes", "4nodes_freqparent")), st.data())
def test_equivalence_classes_agree_with_their_definition(item: LabItem, data: st.DataObject) -> None:
    edges = item.sealed.mechanism.edges
    targets = data.draw(st.sets(st.sampled_from(item.task.properties)))
    assert imec_size(edges, targets) == imec_by_definition(edges, targets)
    assert edges in imec_members(edges, targets)


@settings(max_examples=examples(300))
@given(
    st.text()
    | HYPOTHESES.map(json.dumps)
    | st.lists(st.sampled_from(["{", "}", '"', "```json", "<think>", "1"])).map("".join)
)
def test_any_reply_is_read(text: str) -> None:
    found = parse_object(text)
    assert found is None or isinstance(found, dict)
    controller_json(text)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("<think>a</think><think>{", None),
        ('{ {"a": 1}', '{"a": 1}'),
        ('{"a": "}"}', '{"a": "}"}'),
        ('see {"a": "}"}', None),
        ("```json\nnot JSON\n```", "not JSON"),
        ("```JSON\n{}\n```", "{}"),
        ("[1]", "[1]"),
    ],
)
def test_actions_are_found_in_replies(text: str, found: str | None) -> None:
    assert controller_json(text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('```json\n{"a": 1}\n```', {"a": 1}),
        ('x {"a": {"b": 1}} y', {"a": {"b": 1}}),
        ('[{"a": 1}]', {"a": 1}),
        ('{"a": 1} {"b": {"c": 1}}', {"b": {"c": 1}}),
        ("{" * 1000, None),
    ],
)
def test_scored_objects_are_found(text: str, found: object) -> None:
    assert parse_object(text) == found


@pytest.mark.parametrize(
    ("text", "frequency"),
    [
        ("F = 20 + 2*density", 24.0),
        ("-density ** 2 / 4", -1.0),
        ("1 = 2 = 3", None),
        ("9**9**9", None),
        ("1/0", None),
        ("(-8)**0.5", None),
        ("True + 1", 2.0),  # as Python adds it
        ("False", 0.0),
        ("'a' * 3", None),
        ("[density][0]", None),
        ("1e999", inf),
        ("1e400 + 1", inf),
        ("-1e400 * density", -inf),
        ("1e308 * 10", inf),
        ("1e308 ** 2", None),  # Python raises
        ("None + 1", None),
        ("1j * 1j", None),
        ("-" * 1500 + "1", None),
        ("(" * 500, None),
        ("1" * 3000, None),
        ("density\x00", None),
    ],
)
def test_formulas_are_arithmetic_and_nothing_else(text: str, frequency: float | None) -> None:
    score = formula_score(TRUTH, ["density"], text, {"density": 2.0}, 24.0)
    assert score.frequency == frequency
    assert (score.hit is None) == (frequency is None)
    assert bool(score.error) == (frequency is None)


def test_a_formula_beyond_all_numbers_is_computed_and_misses() -> None:
    for text, frequency in (("1e400", inf), ("1e400 - 1e400", nan)):
        score = formula_score(TRUTH, ["density"], text, {"density": 2.0}, 24.0)
        assert (repr(score.frequency), score.hit, score.error) == (repr(frequency), False, "")


def _visualised(*edges: Any) -> list[float] | None:
    found = visualiser_score(TRUTH, {"edges": list(edges)}).edge
    return None if found is None else [found.precision, found.recall]


def test_the_visualiser_knows_six_spellings_of_the_frequency_and_counts_entries_without_keys_as_one_edge() -> None:
    true = [{"from": parent, "to": child} for parent, child in sorted(TRUTH.edges)]
    assert _visualised(*true) == [1.0, 1.0]
    spellings = ("freq", "frequency", "resonancefreq", "resonance_freq", "resonancefrequency", "resonance_frequency")
    for spelling in (*spellings, *map(str.upper, spellings), "  Resonance_Freq\n"):
        renamed = [{key: spelling if name == FREQUENCY else f" {name} " for key, name in e.items()} for e in true]
        assert _visualised(*renamed) == [1.0, 1.0], spelling
    for spelling in ("resonance freq", "resonance-freq", "res_onancefreq", "freq_", "_freq", "f req"):
        renamed = [{key: spelling if name == FREQUENCY else name for key, name in e.items()} for e in true]
        found = _visualised(*renamed)
        assert found is not None
        assert found[0] < 1.0, spelling
    n = len(true)
    assert _visualised(*true, {}, {"a": 1}, {"cause": "x"}) == [n / (n + 1), 1.0]
    assert _visualised(*true, {}, {"from": "ph"}, {"to": FREQUENCY}) == [n / (n + 3), 1.0]
    assert _visualised(*true, {"from": None, "to": FREQUENCY}) is None
    assert _visualised(*true, 7) is None


@settings(max_examples=examples(300))
@given(JSON, st.text() | JSON)
def test_any_formula_has_a_score(named: Any, text: Any) -> None:
    formula_score(TRUTH, named, text, {"density": 2.0}, 24.0)
