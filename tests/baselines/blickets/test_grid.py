"""Agents of the grid with their context graph: what they may know, what they do, and what follows from it."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from itertools import islice, permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.baselines.blickets.context import (
    BEHAVIOURS,
    GRAPH,
    START,
    Behaviour,
    Context,
    EpisodeMemory,
    State,
    firing,
)
from calibrant.baselines.blickets.dialogue import (
    BASE,
    CG,
    CG_DB,
    Dialogue,
    Policy,
    Prompting,
    converse,
    play_dialogue,
    written_reply,
)
from calibrant.baselines.blickets.rows import (
    GRID,
    PRESETS,
    SIMPLE,
    ExplorationStrategy,
    GridAgent,
    Revise,
    SimpleAgent,
    Stop,
)
from calibrant.dsl.blickets.episode import BlicketEpisode
from calibrant.dsl.blickets.generation import SUITES, sample_items
from calibrant.dsl.blickets.item import (
    BlicketItem,
    Condition,
    Exposure,
    Form,
    Mechanism,
    Rule,
    Sealed,
    Task,
    all_rules,
    set_of,
)
from calibrant.dsl.blickets.score import Exposed, Grade, Split, grade
from calibrant.dsl.episode import Action, Step
from calibrant.dsl.item import Model
from tests.support.benchmarks.blickets import items, static_item
from tests.support.binomial import within
from tests.support.effort import examples

# --- The context graph and what extends it: exactly the edges of the paper's tables, everything else refused ----------
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


# --- Agents of the grid and simple rows: what they may know, what they do, and the figures that follow from it --------
# Rates are tested on 200 episodes with exact binomial bounds: with the rate that was measured on 500 episodes, a count
# outside the bounds has a probability below 1e-4.
EPISODES = 100
AGENTS = [*GRID, *SIMPLE]
EACH = pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.name)


def hard(seed: int, *, switch: int = 3) -> BlicketItem:
    """Five objects: a conjunctive pair, and after the switch the conjunction of the other three; roles by seed."""
    roles = random.Random(seed).sample(range(5), 5)
    rules = Rule(Form.CONJUNCTIVE, set_of(roles[:2])), Rule(Form.CONJUNCTIVE, set_of(roles[2:]))
    sealed = Sealed(tuple(Mechanism(rule) for rule in rules), (switch,))
    return BlicketItem(f"hard-{seed}", Condition.MODERATOR, Task(tuple("ABCDE"), 75), sealed)


def grades(agent: GridAgent | SimpleAgent, made: Callable[[int], BlicketItem], number: int = EPISODES) -> list[Grade]:
    found = []
    for seed in range(number):
        item = made(seed)
        episode = BlicketEpisode(item)
        agent.play(episode, random.Random(seed))
        found.append(grade(item, episode.steps))
    return found


# --- figures of the hard switch, N = 3 --------------------------------------------------------------------------------


def _scripted(stop: Stop, confirmations: int = 2) -> GridAgent:
    return GridAgent(ExplorationStrategy.SCRIPT, Revise.DB, stop, confirmations)


def test_exactly_n_is_arithmetic_on_the_stopping_rule() -> None:
    """The first activation resolves the pair; k confirmations make k + 1 activations, of which the third switches."""
    for agent, expected in (
        (_scripted(Stop.RESOLVE), Exposed.PRE),
        (_scripted(Stop.CONFIRM, 1), Exposed.PRE),
        (_scripted(Stop.CONFIRM, 2), Exposed.EXACTLY_N),
        (_scripted(Stop.SILENT), Exposed.PRE),
    ):
        found = grades(agent, hard)
        assert {g.exposed for g in found} == {expected}, agent.name
        assert {g.correct for g in found} == {expected is Exposed.PRE}, agent.name


def test_three_confirmations_always_see_the_new_rule_and_about_half_end_at_exactly_n() -> None:
    found = grades(_scripted(Stop.CONFIRM, 3), hard)
    assert {g.split for g in found} == {Split.SEEN}
    assert within(sum(g.exposed is Exposed.EXACTLY_N for g in found), 0.45, EPISODES)


def test_silence_has_every_answer_right_and_never_sees_the_new_rule() -> None:
    quiet = next(agent for agent in SIMPLE if agent.name == "quiet")
    found = grades(quiet, hard)
    assert all(g.correct and g.exposed is Exposed.PRE and g.activations == 1 for g in found)


# --- without surprises ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "agent", [a for a in GRID if a.explore is not ExplorationStrategy.RANDOM], ids=lambda a: a.name
)
@pytest.mark.parametrize("rule", all_rules(3), ids=str)
def test_every_rule_is_found_where_there_is_only_one(agent: GridAgent, rule: Rule) -> None:
    item = static_item(rule, 3)
    episode = BlicketEpisode(item)
    agent.play(episode, random.Random(0))
    assert grade(item, episode.steps).correct


def test_the_grid_is_complete_and_its_presets_are_in_it() -> None:
    assert len({agent.name for agent in GRID}) == 27
    assert {name: agent.name for name, agent in PRESETS.items()} == {
        "base": "random/none/confirm-1",
        "cg": "script/suffix/confirm-2",
        "cg+db": "script/db/confirm-2",
    }
    assert [agent.name for agent in SIMPLE] == ["random", "quiet", "abstain", "copy"]


# --- what every agent has to do ---------------------------------------------------------------------------------------


class Recorded:
    """An episode that knows only what was recorded and fails on any other action."""

    def __init__(self, task: Task, steps: Sequence[Step[str]], opening: int) -> None:
        self.task = task
        self.recorded = steps
        self.steps = list(steps[:opening])

    @property
    def left(self) -> int:
        return self.task.budget - sum(step.cost for step in self.steps)

    @property
    def closed(self) -> bool:
        return any("check" in step.action and not step.refused for step in self.steps)

    def act(self, action: Action) -> Step[str]:
        step = self.recorded[len(self.steps)]
        assert dict(step.action) == dict(action)
        self.steps.append(step)
        return step


@EACH
@settings(max_examples=examples(20), deadline=None)
@given(item=items(), seed=st.integers(0, 3))
def test_an_agent_ends_and_depends_on_readings_and_seed_alone(
    agent: GridAgent | SimpleAgent, item: BlicketItem, seed: int
) -> None:
    episode = BlicketEpisode(item)
    opening = len(episode.steps)
    agent.play(episode, random.Random(seed))
    assert episode.closed is (agent.name != "abstain")
    twin = Recorded(item.task, episode.steps, opening)
    agent.play(twin, random.Random(seed))
    assert twin.steps == episode.steps
    if episode.closed:
        assert grade(item, episode.steps).correct is not None


@EACH
def test_an_answer_that_comes_too_early_is_given_again(agent: GridAgent | SimpleAgent) -> None:
    sealed = Sealed((Mechanism(Rule(Form.CONJUNCTIVE, 3)),), exposure=Exposure(moves=20))
    item = BlicketItem("late", Condition.CONJUNCTIVE, Task(("A", "B", "C"), 40), sealed)
    episode = BlicketEpisode(item)
    agent.play(episode, random.Random(1))
    if agent.name != "abstain":
        assert 20 <= grade(item, episode.steps).steps < 40
        assert episode.closed


# --- in text ----------------------------------------------------------------------------------------------------------


def _voice(policy: Policy, dialogue: Dialogue) -> Model:
    """Return a model that says what a policy would do in a dialogue."""
    return lambda messages: written_reply(policy(dialogue))


@pytest.mark.parametrize("prompting", [BASE, CG, CG_DB], ids=lambda p: p.name)
@pytest.mark.parametrize("preset", PRESETS)
def test_an_agent_of_the_grid_plays_the_same_episode_in_process_and_in_text(prompting: Prompting, preset: str) -> None:
    agent = PRESETS[preset]
    for seed in range(5):
        item = hard(seed)
        episode = BlicketEpisode(item)
        agent.play(episode, random.Random(seed))
        symbolic = Dialogue(BlicketEpisode(item), prompting)
        play_dialogue(symbolic, agent.policy(item.task, random.Random(seed)))
        spoken = Dialogue(BlicketEpisode(item), prompting)
        converse(spoken, _voice(agent.policy(item.task, random.Random(seed)), spoken))
        assert symbolic.episode.steps == spoken.episode.steps == episode.steps
        assert symbolic.turns == spoken.turns
        transitions = [turn.transition for turn in symbolic.turns if turn.transition]
        assert all(transition.is_taken for transition in transitions)
        assert bool(transitions) is (prompting is not BASE)


@pytest.mark.parametrize("suite", ["graded", "forced-exposure", "forced-moves", "several-switches", "noisy-switch"])
def test_suites_beyond_the_paper_are_played_to_an_answer(suite: str) -> None:
    agents: list[GridAgent | SimpleAgent] = [*PRESETS.values(), *SIMPLE]
    for item in islice(sample_items(SUITES[suite], 1), 3):
        for agent in agents:
            episode = BlicketEpisode(item)
            agent.play(episode, random.Random(1))
            assert grade(item, episode.steps).ending == ("open" if agent.name == "abstain" else "answered")


def test_a_graded_reading_is_an_activation_too() -> None:
    item = next(sample_items(SUITES["graded"], 1))
    episode, memory = BlicketEpisode(item), EpisodeMemory(item.task)
    for name in item.task.objects:
        memory.note(episode.act({"place": name}))
    assert memory.observations[-1].active
    assert memory.activations == grade(item, episode.steps).activations > 0
