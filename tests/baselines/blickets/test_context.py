"""The context graph and what extends it: exactly the edges of the paper's tables, everything else refused."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant.baselines.blickets.context import BEHAVIOURS, GRAPH, START, Behaviour, Context, State, firing

EDGES = {
    "INITIAL_EXPLORATION": {"COMBINATION_TESTING"},
    "COMBINATION_TESTING": {"HYPOTHESIS_EVALUATION", "INITIAL_EXPLORATION"},
    "HYPOTHESIS_EVALUATION": {"VERIFICATION", "COMBINATION_TESTING"},
    "VERIFICATION": {"HYPOTHESIS_EVALUATION"},
}
TYPES = {
    "INITIAL_EXPLORATION": "action",
    "COMBINATION_TESTING": "action",
    "HYPOTHESIS_EVALUATION": "reflection",
    "VERIFICATION": "decision",
}
NOTHING_YET, TESTED = "DIMENSION_DISCOVERY", "COMBINATION_TESTING"
EVALUATED, VERIFIED = "HYPOTHESIS_EVALUATION", "VERIFICATION"
ADDED = {  # behaviour -> minimum, state, type, from, to
    "DB1": (6, "DIMENSION_DISCOVERY", "reflection", (EVALUATED, TESTED), (TESTED, VERIFIED)),
    "DB2": (8, "ORDER_TESTING", "action", (NOTHING_YET, TESTED), (EVALUATED, VERIFIED)),
    "DB3": (8, "RELIABILITY_TESTING", "action", (NOTHING_YET, TESTED), (EVALUATED,)),
    "DB4": (10, "MODERATOR_DETECTION", "reflection", (NOTHING_YET, EVALUATED), (TESTED, VERIFIED)),
}
NAMES = {
    "DB1": "exploration_stagnation",
    "DB2": "order_hypothesis",
    "DB3": "stochasticity_hypothesis",
    "DB4": "rule_change_hypothesis",
}
BY_KEY = {behaviour.key: behaviour for behaviour in BEHAVIOURS}


def _at(context: Context, name: str) -> Context:
    state = context.graph.state(name)
    assert isinstance(state, State)
    return Context(context.graph, state)


def _legal(context: Context) -> dict[str, set[str]]:
    """Where each state leads, found by asking for every name there is and some that are not."""
    names = [state.name for state in context.graph.states]
    asked = [*names, *EDGES, *(added[1] for added in ADDED.values()), "", "START", "verification"]
    return {
        name: {other for other in asked if _at(context, name).move(other)[1].is_taken}
        for name in names
    }  # fmt: skip


def test_the_graph_has_the_papers_states_and_edges_and_no_others() -> None:
    assert {state.name: state.type for state in GRAPH.states} == TYPES
    assert _legal(START) == EDGES
    assert START.state.name == "INITIAL_EXPLORATION"


def test_a_taken_transition_arrives_and_a_refused_one_stays_and_says_what_was_allowed() -> None:
    testing, taken = START.move("COMBINATION_TESTING")
    assert (testing.state.name, taken.is_taken, taken.refused) == ("COMBINATION_TESTING", True, "")
    still, refused = testing.move("VERIFICATION")
    assert still is testing
    assert not refused.is_taken
    assert refused.refused == (
        "no edge from COMBINATION_TESTING to 'VERIFICATION'; allowed: HYPOTHESIS_EVALUATION, INITIAL_EXPLORATION"
    )


@pytest.mark.parametrize(
    ("start", "goal", "first"),
    [
        ("INITIAL_EXPLORATION", "VERIFICATION", "COMBINATION_TESTING"),
        ("VERIFICATION", "INITIAL_EXPLORATION", "HYPOTHESIS_EVALUATION"),
        ("COMBINATION_TESTING", "VERIFICATION", "HYPOTHESIS_EVALUATION"),
        ("VERIFICATION", "VERIFICATION", ""),
        ("VERIFICATION", "ORDER_TESTING", ""),
    ],
)
def test_a_way_leads_over_edges_only(start: str, goal: str, first: str) -> None:
    assert _at(START, start).toward(goal) == first


def test_behaviours_are_the_papers() -> None:
    assert {b.key: b.name for b in BEHAVIOURS} == NAMES
    assert {b.key: (b.minimum, b.state.name, b.state.type.value, b.sources, b.targets) for b in BEHAVIOURS} == ADDED


@pytest.mark.parametrize("order", list(permutations(ADDED)), ids="-".join)
def test_edges_are_those_whose_ends_exist_whatever_the_order_in_which_states_came(order: tuple[str, ...]) -> None:
    context = START
    expected = {name: set(targets) for name, targets in EDGES.items()}
    declared: list[tuple[str, str]] = []
    for key in order:
        context = BY_KEY[key].extend_context(context)
        _, state, _, sources, targets = ADDED[key]
        expected[state] = set()
        declared += [(source, state) for source in sources] + [(state, target) for target in targets]
        for source, target in declared:
            if source in expected and target in expected:
                expected[source].add(target)
        assert _legal(context) == expected


def test_a_state_is_added_once() -> None:
    with pytest.raises(ValueError, match="has a state ORDER_TESTING already"):
        BY_KEY["DB2"].extend_context(BY_KEY["DB2"].extend_context(START))


def test_the_rendering_shows_place_objective_guidelines_moves_and_the_whole_graph() -> None:
    text = _at(START, "HYPOTHESIS_EVALUATION").render()
    for part in ("CONTEXT: HYPOTHESIS_EVALUATION (reflection)", "Objective: ", "Guidelines:\n- ", "TRANSITION: NAME"):
        assert part in text
    assert "Transitions open to you: VERIFICATION, COMBINATION_TESTING\n" in text
    assert all(f"- {name} ({TYPES[name]}) -> " in text for name in EDGES)
    assert "DIMENSION_DISCOVERY" not in text
    assert (
        "- DIMENSION_DISCOVERY (reflection) -> COMBINATION_TESTING, VERIFICATION"
        in BY_KEY["DB1"].extend_context(START).render()
    )


# --- which behaviours fire --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scores", "fired"),
    [
        ({"DB1": 5.9}, ()),
        ({"DB1": 6.0}, ("DB1",)),
        ({"DB1": 6.0, "DB4": 7.0}, ("DB4", "DB1")),
        ({"DB1": 6.0, "DB4": 7.1}, ("DB4",)),
        ({"DB1": 5.9, "DB4": 6.5}, ("DB4",)),
        ({"DB2": 8.0, "DB3": 8.0, "DB4": 8.0}, ("DB2", "DB3")),
        ({"DB2": 8.0, "DB3": 8.5, "DB4": 9.0}, ("DB4", "DB3")),
        ({}, ()),
    ],
)
def test_the_highest_score_fires_and_one_runner_up_within_one_point(
    scores: dict[str, float], fired: tuple[str, ...]
) -> None:
    assert tuple(b.key for b in firing({BY_KEY[key]: score for key, score in scores.items()})) == fired


@given(st.dictionaries(st.sampled_from(BEHAVIOURS), st.floats(0, 10)))
def test_whatever_the_scores_the_rule_of_firing_holds(scores: dict[Behaviour, float]) -> None:
    fired = firing(scores)
    assert len(fired) <= 2
    assert bool(fired) == any(score >= 6 for score in scores.values())
    assert all(scores[behaviour] >= max(6, max(scores.values()) - 1) for behaviour in fired)
    if fired:
        assert all(scores[other] <= scores[fired[-1]] or len(fired) == 1 for other in scores if other not in fired)
        assert scores[fired[0]] == max(scores.values())


def test_a_graph_ends_with_its_last_three_changes_once_it_was_extended() -> None:
    context = START
    assert "Last changes" not in context.render()
    for behaviour in BEHAVIOURS:
        context = behaviour.extend_context(context)
    log = context.render().split("Last changes of this graph:\n")[1].splitlines()
    assert [line.split()[2] for line in log] == [behaviour.state.name for behaviour in BEHAVIOURS[1:]]
    assert "DIMENSION_DISCOVERY -> MODERATOR_DETECTION" in log[2]
    moved, outcome = context.move("COMBINATION_TESTING")
    assert outcome.is_taken
    assert moved.changes == context.changes
