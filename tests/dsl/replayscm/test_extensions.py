"""Extended items: episodes against the shared vectors, and scores against gold's exact law."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import log2
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.dsl.episode import ActionError, Step, TranscriptError, replay_transcript
from calibrant.dsl.errors import CalibrantError, PoolError
from calibrant.dsl.formulas.text import STANDARD
from calibrant.dsl.replayscm.episode import (
    NO_ACTION,
    ScmEpisode,
    TextDialogue,
    candidate_worlds,
    num_candidates,
    read_reply,
    task_class,
)
from calibrant.dsl.replayscm.extensions.extension import Prior, num_essential_functions, parent_weights
from calibrant.dsl.replayscm.extensions.reference import (
    EvidenceWorld,
    all_interventions,
    enumerate_scms,
    posterior_weights,
    replay_row,
    visible_rows,
)
from calibrant.dsl.replayscm.extensions.scores import (
    FreeRow,
    SubmittedMap,
    cell_law,
    check_map,
    gold_law,
    implied_law,
    score_forecast,
    score_map,
    world_rows,
)
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.replayscm.pools.files import as_written, record_from_problem
from calibrant.dsl.replayscm.pools.records import problem_from_record
from calibrant.dsl.replayscm.score import Evaluator
from calibrant.dsl.replayscm.submission import Rejection
from calibrant.dsl.replayscm.world import Intervention, World
from tests.support.replayscm.extensions import (
    class_of,
    evidence_of,
    frontier_vectors,
    mechanisms_of,
    problem_of,
    record_of,
)


# --- Episodes against the shared vectors: every step's refusal, reading, cost and allowance ---------------------------
def test_every_step_of_every_episode_vector() -> None:
    number = 0
    for line in frontier_vectors("episode"):
        episode = ScmEpisode(problem_of(line))
        for index, expected in enumerate(line["steps"]):
            step = episode.steps[0] if index == 0 else episode.act(expected["action"])
            rows = None if step.reading is None else step.reading["rows"]
            assert (bool(step.refused), rows, step.cost, episode.left, episode.closed) == (
                bool(expected["refused"]),
                expected["rows"],
                expected["cost"],
                expected["left"],
                expected["closed"],
            ), (line["id"], index)
        assert episode.refusals == line["refusals"]
        number += 1
    assert number


def test_submitted_maps_mean_what_gold_means_where_the_vectors_have_it() -> None:
    """Rows are those of every intervention on observed variables, from the reference."""
    verdicts = set()
    for line in frontier_vectors("episode"):
        if "submitted_equals_gold_visibly" not in line:
            continue
        problem = problem_of(line)
        scm_class = task_class(problem.task)
        carried_out = [step["action"] for step in line["steps"] if not step["refused"]]
        (submitted,) = (action["submit"] for action in carried_out if "submit" in action)
        submission = check_map(scm_class, STANDARD, submitted)
        assert isinstance(submission, SubmittedMap)
        roots = scm_class.roots
        contexts = [dict(zip(roots, bits, strict=True)) for bits in product((0, 1), repeat=len(roots))]
        rows = tuple(
            tuple(submission.replay(context, constants, frozenset())[v] for v in scm_class.observed)
            for constants in all_interventions(scm_class.endogenous)
            for context in contexts
        )
        gold = mechanisms_of(line["item"]["gold"])
        assert (rows == visible_rows(scm_class, gold)) is line["submitted_equals_gold_visibly"], line["id"]
        verdicts.add(line["submitted_equals_gold_visibly"])
    assert verdicts == {True, False}


def test_candidates_of_every_episode_vector() -> None:
    for line in frontier_vectors("episode"):
        if "candidates" in line:
            variables, most = line["item"]["class"]["variables"], line["item"]["allowance"]["max_targets"]
            assert candidate_worlds(variables, most) == line["candidates"]
            assert num_candidates(len(variables), most) == len(line["candidates"])
    assert num_candidates(10, 3) == 1_161


def test_items_come_back_from_their_records() -> None:
    for line in list(frontier_vectors("episode"))[::10]:
        problem = problem_of(line)
        again = as_written(problem)
        assert again == problem
        assert msgspec.json.encode(record_from_problem(again)) == msgspec.json.encode(record_from_problem(problem))


def test_a_transcript_is_verified_and_a_forged_row_is_noticed() -> None:
    line = next(line for line in frontier_vectors("episode") if line["item"]["noise"] != "0")
    problem = problem_of(line)
    episode = ScmEpisode(problem)
    episode.act({"do": {}})
    replay_transcript(ScmEpisode(problem), episode.steps)
    reading = episode.steps[1].reading
    assert reading is not None
    flipped = ["".join("10"[int(bit)] for bit in row) for row in reading["rows"]]
    forged = [episode.steps[0], Step({"do": {}}, {**reading, "rows": flipped}, "", 1)]
    with pytest.raises(TranscriptError, match="step 1: reading"):
        replay_transcript(ScmEpisode(problem), forged)


def test_twins_answer_alike_until_their_readings_differ() -> None:
    """Two items that differ in what is sealed: bytes of steps are equal as long as their rows are."""
    lines = [line for line in frontier_vectors("episode") if line["item"]["noise"] == "0"]
    line = next(line for line in lines if line["item"]["allowance"]["contexts"] == "all")
    problem = problem_of(line)
    twin = replace(problem, sealed=replace(problem.sealed, seed=123, labels={"stratum": "other"}))
    first, second = ScmEpisode(problem), ScmEpisode(twin)
    actions: list[dict[str, Any]] = [
        {"do": {}},
        {"do": {"X1": 2}},
        {"do": {"X1": 1}},
        {"look": 1},
        {"submit": {"mechanisms": {}}},
    ]
    for action in actions:
        first.act(action)
        second.act(action)
    assert json.dumps([repr(step) for step in first.steps]) == json.dumps([repr(step) for step in second.steps])


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-1, 2)
    | st.floats()
    | st.sampled_from(["X1", "X2", "H1", "01", "1/10", ""]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["do", "submit", "contexts", "mechanisms", "noise", "forecast", "X1", "X3", "H1", "x"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=6,
)


def _episodes() -> Iterator[Any]:
    for line in list(frontier_vectors("episode"))[::30]:
        yield problem_of(line)


@settings(max_examples=300, deadline=None)
@given(st.lists(json_values, max_size=4), st.integers(0, 4))
def test_no_action_raises_and_refusals_change_nothing(actions: list[Any], number: int) -> None:
    problems = _problems()
    episode = ScmEpisode(problems[number % len(problems)])
    for action in actions:
        before = episode.left, episode.closed
        step = episode.act(action)
        if step.refused:
            assert (episode.left, episode.closed, step.cost, step.reading) == (*before, 0, None)
            assert "\n" not in step.refused
        else:
            assert set(action) & {"do", "submit"}


_CACHE: list[Any] = []


def _problems() -> list[Any]:
    if not _CACHE:
        _CACHE.extend(_episodes())
    return _CACHE


def _line() -> dict[str, Any]:
    lines = frontier_vectors("episode")
    return next(x for x in lines if not x["item"]["class"]["hidden"] and len(x["item"]["class"]["variables"]) == 4)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"noise": "1/2"}, "noise"),
        ({"noise": "0.1"}, "noise"),
        ({"noise": {"readout": "1/10"}}, "noise"),
        ({"noise": {"shared": [["0", "1/2"], ["1/10", "1/3"]]}}, "noise.shared"),
        ({"noise": {"each": [["1/10", "1"], ["1/10", "0"]]}}, "noise.each"),
        ({"hidden": {"H1": []}}, "hidden.H1"),
        ({"hidden": {"H1": ["H2"], "H2": ["X1"]}}, "hidden.H1"),
        ({"hidden": {"X1": ["X2"]}}, "hidden"),
        ({"hidden": {"H1": ["X1"], "H2": ["X1"], "H3": ["X1"]}}, "hidden"),
        ({"hidden": {"H1": ["X1", "X2", "X3", "X4"], "H2": ["X1"]}}, "hidden.H1"),
        ({"hidden": {"H1": ["X1", "X2", "X3", "X4"]}, "noise": "1/10"}, "hidden.H1"),
        ({"hidden": {"H1": ["X1", "X2", "X3"], "H2": ["X1"]}, "noise": "1/10"}, "hidden.H1"),
        ({"hidden": {"H1": None}, "max_parents": 4}, "hidden.H1"),
        ({"max_parents": None}, "max_parents"),
        ({"max_parents": 7}, "max_parents"),
        ({"prior": "flat"}, "prior"),
        ({"allowance": None}, "allowance"),
        ({"allowance": {"worlds": 3, "rows": 3, "max_targets": 1, "contexts": "all"}}, "allowance.rows"),
        ({"allowance": {"worlds": -1, "rows": 4, "max_targets": 1, "contexts": "all"}}, "allowance.worlds"),
        ({"allowance": {"worlds": 3, "rows": 4, "max_targets": 1, "contexts": "some"}}, "allowance.contexts"),
        ({"question": "forecast"}, "asked"),
        ({"kind": "CIND_A_SCM"}, "allowance"),
        ({"kind": "CIND_A_SCM_ROOT_UNKNOWN", "disclosure": {"type": "hidden_roots", "root_count": 2}}, "disclosure"),
        ({"sealed": {}}, "sealed.gold"),
        ({"noise": {"shared": [["0", "1/2"], ["1/10", "1/2"]]}}, "sealed.noise"),
        ({"noise": {"each": [["0", "1/2"], ["1/10", "1/2"]]}}, "sealed.noise"),
    ],
)
def test_what_is_not_supported_is_refused_in_one_line(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(PoolError) as error:
        problem_from_record(record_of(_line(), **changes))
    assert error.value.field == field
    assert "\n" not in str(error.value)


def test_the_kind_of_episodes_is_named_where_an_allowance_has_another() -> None:
    with pytest.raises(
        PoolError, match=r"kind CAL_A_SCM_EPISODE, and only that, has an allowance .*has kind CIND_A_SCM"
    ):
        problem_from_record(record_of(_line(), kind="CIND_A_SCM"))


def test_the_setting_names_the_extensions() -> None:
    settings_of_lines = {problem_of(line).setting for line in frontier_vectors("episode")}
    assert settings_of_lines == {
        "Episode Hidden-order",
        "Episode Ordered",
        "Episode Hidden-order+noise",
        "Episode Ordered+hidden",
    }


def test_plain_replay_does_not_score_an_episode() -> None:
    with pytest.raises(CalibrantError, match=r"Episode Hidden-order; plain replay does not score it"):
        Evaluator(problem_of(next(frontier_vectors("episode"))))


# --- The dialogue: prompts state what is disclosed and nothing sealed, replies act by their last marked line ----------
NAMES = ("plain0", "noise0", "hidden0", "chosen0", "drawn0", "ordered0")


def _dialogue(kind: str, **changes: Any) -> TextDialogue:
    line = next(x for x in frontier_vectors("episode") if x["id"].endswith(f"-{kind}"))
    return TextDialogue(ScmEpisode(problem_of(line, **changes)))


@pytest.mark.parametrize("kind", NAMES)
def test_the_prompt_is_one_of_disclosed_fields(kind: str) -> None:
    dialogue = _dialogue(kind)
    text = dialogue.prompt()
    extension = dialogue.episode.task.extension
    assert extension is not None
    for variable in extension.variables:
        assert variable in text
    assert ("H1 (a function of" in text) == (kind == "hidden0")
    assert ("is flipped with probability" in text) == (kind == "noise0")
    assert ('"contexts"' in text) == (kind == "chosen0")
    assert "World 0 (nothing is set):" in text
    assert f"{dialogue.episode.left} worlds left." in text
    example = read_reply(text[: text.index('ACTION: {"submit"')])
    assert dialogue.episode.act(example).refused == ""


def test_the_last_marked_line_acts() -> None:
    dialogue = _dialogue("plain0")
    answer = dialogue.reply('First\nACTION: {"do": {"X1": 7}}\nno, rather\nACTION: {"do": {"X1": 1}}\nthanks')
    assert answer.startswith("World 1 (X1=1):\n- X1=1 ")
    assert dialogue.reply("I do not know") == NO_ACTION
    assert dialogue.reply("ACTION: do X1").startswith("expected a JSON object")
    assert dialogue.reply('ACTION: {"do": {"X9": 1}}').startswith("Refused: 'X9' is no variable")
    assert dialogue.refusals == 3
    assert dialogue.reply('ACTION: {"submit": {"mechanisms": {}}}') == "Submitted. The episode is over."
    assert dialogue.closed
    assert dialogue.reply("ACTION: {}") == "The episode is over."


def test_replies_are_limited() -> None:
    dialogue = _dialogue("plain0")
    extension = dialogue.episode.task.extension
    assert extension is not None
    assert extension.allowance is not None
    for _ in range(2 * extension.allowance.worlds + 10):
        assert not dialogue.closed
        dialogue.reply("hm")
    assert dialogue.closed
    assert not dialogue.episode.closed


def test_a_grid_and_a_forecast_are_stated() -> None:
    noise = {"shared": [["0", "1/2"], ["1/10", "1/2"]]}
    line = next(x for x in frontier_vectors("episode") if x["id"].endswith("-noise0"))
    worlds = [{"constants": {}, "contexts": ["0"]}]
    changes: dict[str, Any] = {"question": "forecast", "asked": worlds}
    text = _dialogue("noise0", **changes).prompt()
    assert "Forecast: of each world below" in text
    shape = read_reply(next(x for x in text.splitlines() if "forecast" in x and x.startswith("ACTION:")))
    assert json.dumps(shape).count("0.5") == len(line["item"]["gold"])
    sealed = msgspec.structs.replace(record_of(line).sealed, noise="1/10")
    grid = _dialogue("noise0", noise=noise, sealed=msgspec.to_builtins(sealed)).prompt()
    assert "one of 0 (probability 1/2), 1/10 (probability 1/2)" in grid
    assert '"noise": "0"' in grid


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=60), st.text(max_size=60))
def test_no_reply_raises(head: str, tail: str) -> None:
    for text in (head, f"{head}\nACTION:{tail}", f"ACTION: {tail}"):
        with suppress(ActionError):
            assert isinstance(read_reply(text), dict)


# --- Legal maps, clean replay, training match and proper scores against gold's exact law ------------------------------
def _problem(kind: str) -> Problem:
    return problem_of(next(x for x in frontier_vectors("episode") if x["id"].endswith(f"-{kind}")))


HIDDEN = {"H1": "(and X3 X4)", "X1": "(xor X3 H1)", "X2": "(not X3)"}


@pytest.mark.parametrize(
    ("changes", "stage"),
    [
        ({}, ""),
        ({"H1": None, "X1": "X4"}, ""),
        ({"H1": None}, "legal"),
        ({"X1": None}, "keys"),
        ({"X3": "X4"}, "keys"),
        ({"H2": "X4"}, "keys"),
        ({"X1": "(and X3"}, "parse"),
        ({"X1": ""}, "parse"),
        ({"X1": 3}, "parse"),
        ({"H1": "(and X1 X4)"}, "legal"),
        ({"X2": "(and X1 X4)"}, "legal"),
    ],
)
def test_hidden_names_are_optional_and_mentions_are_checked(changes: dict[str, Any], stage: str) -> None:
    """hidden0 is Ordered: X3, X4, H1, X2, X1; so X2 may not mention X1."""
    scm_class = task_class(_problem("hidden0").task)
    mechanisms = {v: text for v, text in {**HIDDEN, **changes}.items() if text is not None}
    result = check_map(scm_class, STANDARD, {"mechanisms": mechanisms})
    assert (result.stage if isinstance(result, Rejection) else "") == stage


def test_rates_and_cycles_of_a_map() -> None:
    scm_class = task_class(_problem("plain0").task)
    a, b = scm_class.endogenous
    cycle = check_map(scm_class, STANDARD, {"mechanisms": {a: b, b: a}})
    assert isinstance(cycle, Rejection)
    assert cycle.stage == "acyclic"
    root = scm_class.roots[0]
    good = check_map(scm_class, STANDARD, {"mechanisms": {a: root, b: a}, "noise": "1/10"})
    assert isinstance(good, SubmittedMap)
    assert good.rate == Fraction(1, 10)


def _world(problem: Problem, constants: dict[str, int], rows: list[dict[str, int]]) -> World:
    variables = problem.task.variables
    columns = tuple(sum(row[v] << r for r, row in enumerate(rows)) for v in variables)
    return World("w", Intervention(constants), variables, tuple(f"r{r}" for r in range(len(rows))), columns)


@pytest.mark.parametrize("kind", ["plain1", "hidden0", "ordered1"])
def test_gold_is_right_and_a_wrong_map_is_not(kind: str) -> None:
    problem = _problem(kind)
    scm_class, gold = task_class(problem.task), problem.sealed.gold
    assert gold is not None
    functions = gold.local_functions
    contexts = [dict(zip(scm_class.roots, bits, strict=True)) for bits in product((0, 1), repeat=len(scm_class.roots))]
    world = _world(problem, {}, [replay_row(scm_class, functions, context, {}) for context in contexts])
    right = SubmittedMap(gold.mechanisms, gold.order)
    score = score_map(scm_class, right, [world], [world])
    assert (score.heldout_exact, score.world_accuracy, score.train_match) == (True, 1.0, Fraction(1))
    assert score.train_exact
    last = gold.order[-1]
    flipped = replace(
        world,
        columns=tuple(
            column ^ (1 if v == last else 0) for v, column in zip(world.variables, world.columns, strict=True)
        ),
    )
    score = score_map(scm_class, right, [flipped], [flipped])
    cells = len(contexts) * len(scm_class.endogenous)
    assert (score.heldout_exact, score.train_match) == (False, Fraction(cells - 1, cells))


def test_the_law_of_cells_is_that_of_all_flips() -> None:
    rng = Random(2)
    for kind in ("noise0", "plain2", "hidden1"):
        problem = _problem(kind)
        scm_class, gold = task_class(problem.task), problem.sealed.gold
        assert gold is not None
        rates = {v: Fraction(rng.randint(0, 4), 10) for v in scm_class.endogenous}
        context = {root: rng.getrandbits(1) for root in scm_class.roots}
        clamped = {scm_class.endogenous[0]: 1} if kind == "plain2" else {}
        free = tuple(v for v in scm_class.endogenous if v not in clamped)
        law = dict.fromkeys(free, Fraction(0))
        for flips in product((False, True), repeat=len(free)):
            flipped = frozenset(v for v, flips_it in zip(free, flips, strict=True) if flips_it)
            share = Fraction(1)
            for v in free:
                share *= rates[v] if v in flipped else 1 - rates[v]
            values = replay_row(scm_class, gold.local_functions, context, clamped, flipped)
            for v in free:
                law[v] += share * values[v]
        row = FreeRow(context, clamped, free, {})
        assert gold_law(gold, rates, row) == law
        assert cell_law(gold.mechanisms, gold.order, row, {}) == {
            v: replay_row(scm_class, gold.local_functions, context, clamped)[v] for v in free
        }


@given(st.fractions(0, 1), st.floats(0, 1))
def test_no_forecast_beats_the_law(pi: Fraction, p: float) -> None:
    score = score_forecast([[{"A": pi}]], [[{"A": p}]])
    assert score.excess_brier == pytest.approx((p - float(pi)) ** 2)
    assert score.excess_log_loss >= -1e-5  # the law itself is clamped to 20 bits
    assert score.brier >= score.excess_brier


def test_forecasts_are_averaged_over_cells_then_worlds() -> None:
    half, one = Fraction(1, 2), Fraction(1)
    score = score_forecast([[{"A": one, "B": one}], [{"A": half}], []], [[{"A": 1.0, "B": 0.5}], [{"A": 0.5}], []])
    assert score.brier == pytest.approx(((0 + 0.25) / 2 + 0.25) / 2)
    assert score.log_loss == pytest.approx(((-log2(1 - 2**-20) + 1) / 2 + 1) / 2)
    with pytest.raises(ValueError, match="no free cells"):
        score_forecast([[{}]], [[{}]])


def test_a_map_implies_a_forecast_with_at_least_the_least_rate() -> None:
    problem = _problem("plain1")
    scm_class, gold = task_class(problem.task), problem.sealed.gold
    assert gold is not None
    values = replay_row(scm_class, gold.local_functions, dict.fromkeys(scm_class.roots, 0), {})
    (row,) = world_rows(scm_class, _world(problem, {}, [values]))
    law = implied_law(SubmittedMap(gold.mechanisms, gold.order), Fraction(0), row)
    assert set(law) == set(scm_class.endogenous)
    assert all(0 < share < 1 for share in law.values())


# --- The enumerated meaning against vectors that were made elsewhere, also by enumeration -----------------------------
MAX_MEMBERS = 130  # the reference is slow: a class of 112 with three rates takes 50 ms


def _small(name: str, max_members: int, number: int) -> list[dict[str, Any]]:
    return [line for line in frontier_vectors(name) if line["expect"]["members"] <= max_members][:number]


def test_masses_edges_and_best_of_small_noisy_classes() -> None:
    lines = _small("noise", MAX_MEMBERS, 12)
    assert len(lines) == 12
    for line in lines:
        _check(line)


def test_masses_meanings_and_negations_of_small_hidden_classes() -> None:
    lines = _small("hidden", 1_000, 4)
    assert len(lines) == 4
    for line in lines:
        _check(line)


def _check(line: dict[str, Any]) -> None:
    scm_class = class_of(line["class"], line["noise"])
    expect = line["expect"]
    weighed = list(posterior_weights(scm_class, evidence_of(line["worlds"])))
    mass = sum((weight for _, weight in weighed), start=Fraction(0))
    assert len(weighed) == expect["members"]
    assert mass == Fraction(expect["mass"])
    if not mass or "edges" not in expect:
        return
    edges: Counter[str] = Counter()
    for mechanisms, weight in weighed:
        for variable, function in mechanisms.items():
            edges.update({f"{parent}>{variable}": weight for parent in function.parents})
    assert {edge: share / mass for edge, share in edges.items() if share} == {
        edge: Fraction(share) for edge, share in expect["edges"].items()
    }
    top = max(weight for _, weight in weighed)
    assert {"share": top / mass, "number": sum(weight == top for _, weight in weighed)} == {
        "share": Fraction(expect["best"]["share"]),
        "number": expect["best"]["number"],
    }
    if "meanings" in expect:
        meanings = {visible_rows(scm_class, mechanisms) for mechanisms, weight in weighed if weight}
        assert len(meanings) == expect["meanings"]


def test_clean_rows_admit_only_tables_that_agree() -> None:
    line = next(line for line in frontier_vectors("noise") if line["noise"] == "1/3" and "query" in line)
    scm_class = class_of(line["class"], line["noise"])
    query = EvidenceWorld(line["query"]["do"], tuple(line["query"]["rows"]), is_clean=True)
    weighed = posterior_weights(scm_class, [query])
    agreeing = sum(1 for _, weight in weighed if weight)
    assert 0 < agreeing < sum(1 for _ in enumerate_scms(scm_class))


@pytest.mark.parametrize(("num_parents", "count"), [(0, 2), (1, 2), (2, 10), (3, 218), (4, 64594)])
def test_numbers_of_functions_that_depend_on_all_variables(num_parents: int, count: int) -> None:
    assert num_essential_functions(num_parents) == count


def test_weights_by_parents_of_three_variables() -> None:
    assert parent_weights(Prior.BY_PARENTS, 3, 2) == (Fraction(1, 2), Fraction(1, 4), Fraction(1, 10))
    assert parent_weights(Prior.BY_PARENTS, 2, 2)[2] == 0
