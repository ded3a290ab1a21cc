"""Every vector of the released code's behaviour, kind by kind."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import pytest

from calibrant.dsl.causalab.configs import Config, HiddenNodes, Transition, candidates, config, released_records
from calibrant.dsl.causalab.hypothesis import hypothesis
from calibrant.dsl.causalab.item import by_name
from calibrant.dsl.causalab.mechanism import FREQUENCY, Reactor
from calibrant.dsl.causalab.reference import NO_SHIFT, Reading, bases_after, values
from calibrant.dsl.causalab.replies import controller_json, parse_object
from calibrant.dsl.causalab.score import Scorer, imec_size, roots
from calibrant.dsl.episode import ActionError
from calibrant.dsl.graph_metrics import EdgeScores, distance, edge_scores
from tests.oracles.causalab import VisualiserScore, formula_score, transitions_of, visualiser_score
from tests.support.benchmarks.causalab import released_suite, vectors

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
            if step["prop"] in made.mechanism.drawn:
                bases = bases_after(made.mechanism, bases, step["prop"], step["value"], Reading.VALUE)
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
        kept = candidates(suite, truth.mechanism.drawn, transitions_of(truth.trace, listed_order=True))
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
        kept = candidates(suite, truth.mechanism.drawn, seen)
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
