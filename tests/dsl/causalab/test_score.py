"""Hypotheses and replies of CausaLab read and scored; every vector of the released code's behaviour."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from math import inf, nan
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.dsl.causalab.configs import Config, HiddenNodes, Transition, candidates, config, released_records
from calibrant.dsl.causalab.item import LabItem, by_name
from calibrant.dsl.causalab.mechanism import FREQUENCY, Equation, Mechanism, Reactor, Term, hypothesis, state_mechanism
from calibrant.dsl.causalab.reference import NO_SHIFT, SettingMeaning, bases_after, values
from calibrant.dsl.causalab.replies import controller_json, parse_object
from calibrant.dsl.causalab.score import Scorer, imec_by_definition, imec_members, imec_size, roots
from calibrant.dsl.episode import ActionError
from calibrant.dsl.graph_metrics import EdgeScores, distance, edge_scores
from tests.oracles.causalab import VisualiserScore, formula_score, transitions_of, visualiser_score
from tests.support.benchmarks.causalab import items, released_suite, vectors
from tests.support.effort import examples

# --- Hypotheses and replies: whatever they are, they are read and scored; ours against definitions --------------------
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


# --- Every vector of the released code's behaviour, kind by kind ------------------------------------------------------
Vector = dict[str, Any]


def config_of(vector: Vector) -> Config:
    if "config" in vector:
        return config(json.dumps(vector["config"]), vector["suite"], 0)
    return released_suite(vector["suite"])[vector["line"]]


def check_episode(vector: Vector) -> None:
    made, given, expected = config_of(vector), vector["inputs"], vector["expect"]
    records = [values(made.mechanism, b) for b in released_records(made, given["n_observations"])]
    assert records == expected["observations"]
    assert values(made.mechanism, given["manipulator_bases"]) == expected["manipulator_baseline"]
    reactor = values(made.mechanism, given["reactor_bases"])
    assert reactor == expected["reactor_properties"]
    assert (reactor[FREQUENCY], made.allowance) == (expected["target_frequency"], expected["budget"])


def shifts_of(hidden: HiddenNodes | None, value: float | None) -> dict[str, float]:
    return {} if hidden is None or value is None else dict.fromkeys(hidden.affected, hidden.weight * value)


def check_intervention(vector: Vector) -> None:
    made, bases, expected = config_of(vector), vector["inputs"]["bases"], vector["expect"]
    assert values(made.mechanism, bases) == expected["baseline"]
    used = 0
    for step in expected["steps"]:
        seen = NO_SHIFT
        if step["accepted"]:
            used += 1
            if step["prop"] in made.mechanism.nodes_with_drawn_base:
                bases = bases_after(made.mechanism, bases, step["prop"], step["value"], SettingMeaning.VALUE)
            seen = shifts_of(made.hidden, step["hidden_value"])
        assert values(made.mechanism, bases, seen) == step["measured"]
        assert (bases, used) == (step["bases_after"], step["uses"])


def check_reactor(vector: Vector) -> None:
    reactor = Reactor(vector["inputs"]["target"], vector["inputs"]["max_submissions"])
    for step in vector["expect"]["steps"]:
        reactor = reactor.dial_frequency(step["submitted"])
        assert (reactor.activated, reactor.dial, reactor.count) == (
            step["activated"],
            step["dial_after"],
            step["submissions"],
        )
        assert reactor.activated == step["task_success"]


def triple(scores: EdgeScores) -> list[float]:
    return [scores.precision, scores.recall, scores.f1]


def expected_triple(found: Vector) -> list[float]:
    return [found["precision"], found["recall"], found["f1"]]


def check_scoring(vector: Vector) -> None:
    truth, expected = config_of(vector).mechanism, vector["expect"]
    said = hypothesis(vector["inputs"]["hypothesis"])
    score = Scorer(truth).score(said)
    assert triple(score.all_edge) == expected_triple(expected["all_edge"])
    assert triple(score.freq_edge) == expected_triple(expected["freq_edge"])
    assert triple(score.root) == expected_triple(expected["root_from_edges"])
    assert sorted(roots(said.edges)) == expected["root_from_edges"]["predicted"]
    assert {name: getattr(score.distance, name) for name in expected["shd"]} == expected["shd"]
    weights = score.freq_weight
    assert {
        "weight_precision": weights.precision,
        "weight_recall": weights.recall,
        "weight_f1": weights.f1,
        "num_predicted_weights": weights.num_predicted,
        "num_true_weights": weights.num_true,
        "num_correct_weights": weights.num_correct,
    } == expected["freq_weight"]
    assert visualiser_score(truth, vector["inputs"]["hypothesis"]) == VisualiserScore(
        *(None if "error" in s else EdgeScores(*s.values()) for s in expected["visualizer"].values())
    )


def check_primitive(vector: Vector) -> None:
    true = {(u, v) for u, v in vector["inputs"]["true"]}
    predicted = {(u, v) for u, v in vector["inputs"]["predicted"]}
    scores, apart = edge_scores(true, predicted), distance(true, predicted)
    found = {name: getattr(scores, name) for name in ("precision", "recall", "f1")}
    found |= {name: getattr(apart, name) for name in ("shd", "missing", "extra", "reversed")}
    assert found == vector["expect"]


def check_root_formula(vector: Vector) -> None:
    given, expected = vector["inputs"], vector["expect"]
    said = given["prediction"]
    shown, target = given["reactor_property_values"], given["target"]
    truth = config_of(vector).mechanism
    score = formula_score(truth, said.get("root_nodes"), said.get("frequency_formula"), shown, target)
    assert triple(score.roots) == expected_triple(expected["root"])
    assert score.parsed == expected["formula_parse_success"]
    assert score.uses_only_named_roots == expected["formula_uses_only_predicted_roots"]
    assert list(score.symbols) == expected["formula_symbols"]
    assert list(score.missing) == expected["formula_missing_variable_values"]
    assert score.frequency == expected["formula_predicted_frequency"]
    assert score.difference == expected["formula_abs_error_hz"]
    assert score.hit == expected["formula_hits_pm5hz"]
    assert bool(score.error) == (expected["formula_error"] is not None)


def floats(value: Any) -> Any:
    """{"$float": "nan"} stands for a number that JSON has not; two NaN are not equal, so their texts are compared."""
    if isinstance(value, dict):
        return value["$float"] if value.keys() == {"$float"} else {key: floats(v) for key, v in value.items()}
    return str(value) if isinstance(value, float) and math.isnan(value) else value


def check_parser(vector: Vector) -> None:
    assert floats(parse_object(vector["inputs"]["text"])) == floats(vector["expect"]["parsed"])


def check_controller_json(vector: Vector) -> None:
    assert controller_json(vector["inputs"]["text"]) == vector["expect"]["extracted"]


def check_imec(vector: Vector) -> None:
    edges = {(u, v) for u, v in vector["inputs"]["edges"]}
    for entry in vector["expect"]["trace"]:
        assert imec_size(edges, entry["targets"]) == entry["size"]


def check_candidate_filter(vector: Vector) -> None:
    suite, truth = released_suite(vector["suite"]), config_of(vector)
    if vector["inputs"].get("bootstrap"):
        kept = candidates(suite, truth.mechanism.nodes_with_drawn_base, transitions_of(truth.trace, listed_order=True))
        expected = vector["expect"]
        assert (len(kept), truth in kept) == (expected["count"], expected["true_graph_kept"])
        return
    seen: list[Transition] = []
    for i, entry in enumerate(vector["expect"]["trace"]):
        if i:
            given = vector["inputs"]["transitions"][i - 1]
            before, after = ({**given[side]["props"], FREQUENCY: given[side]["freq"]} for side in ("before", "after"))
            done = given["experiment"]
            seen.append(Transition(before, after, done["target_prop"], done["target_value"]))
        kept = candidates(suite, truth.mechanism.nodes_with_drawn_base, seen)
        assert len(kept) == entry["count"]
        assert (truth in kept) == entry.get("true_graph_kept", True)


def check_reeval_sample(vector: Vector) -> None:
    """Check a sample whose reactor figures are against the dial, and whose roots come from a language model."""
    expected = vector["expect"]
    score = Scorer(config_of(vector).mechanism).score(hypothesis(vector["inputs"]["hypothesis"]))
    assert triple(score.all_edge) == [expected[f"all_edge_{name}"] for name in ("precision", "recall", "f1")]
    assert score.distance.shd == expected["all_edge_shd"]
    assert [score.root.f1, score.freq_edge.f1] == [expected["root_f1"], expected["freq_edge_f1"]]
    assert score.freq_weight.f1 == expected["freq_weight_f1"]


CHECKS: dict[str, Callable[[Vector], None]] = {
    "candidate_filter": check_candidate_filter,
    "controller_json": check_controller_json,
    "episode": check_episode,
    "imec": check_imec,
    "intervention": check_intervention,
    "parser": check_parser,
    "primitive": check_primitive,
    "reactor": check_reactor,
    "reeval_sample": check_reeval_sample,
    "root_formula": check_root_formula,
    "scoring": check_scoring,
}


@pytest.mark.parametrize("kind", CHECKS)
def test_vectors_of_the_released_code_agree(kind: str) -> None:
    found = [vector for vector in vectors() if vector["kind"] == kind]
    assert found
    for vector in found:
        try:
            CHECKS[kind](vector)
        except (AssertionError, ActionError) as error:
            raise AssertionError(f"{vector['id']}: {error}") from error


def test_no_kind_of_vector_is_left_out() -> None:
    assert {vector["kind"] for vector in vectors()} == set(CHECKS)


def test_the_order_of_shown_names_gives_no_edge_away() -> None:
    for made in released_suite("7nodes")[:5]:
        assert list(by_name(values(made.mechanism, released_records(made)[0]))) == sorted(made.mechanism.equations)
