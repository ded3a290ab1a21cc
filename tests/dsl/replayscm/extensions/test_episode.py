"""Episodes against the shared vectors: every step's refusal, reading, cost and allowance."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import product
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.dsl.episode import ActionError, Step, TranscriptError, verify_transcript
from calibrant.dsl.errors import CalibrantError, PoolError
from calibrant.dsl.formulas.text import STANDARD
from calibrant.dsl.replayscm.dialogue import NO_ACTION, TextDialogue, read_reply
from calibrant.dsl.replayscm.episode import ScmEpisode, candidate_worlds, num_candidates, task_class
from calibrant.dsl.replayscm.extensions.reference import all_interventions, visible_rows
from calibrant.dsl.replayscm.extensions.scores import SubmittedMap, check_map
from calibrant.dsl.replayscm.pools.build import problem_from_record
from calibrant.dsl.replayscm.pools.files import as_written, record_from_problem
from calibrant.dsl.replayscm.score import Evaluator
from tests.support.replayscm.extensions.vectors import frontier_vectors, mechanisms_of, problem_of, record_of


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
    verify_transcript(ScmEpisode(problem), episode.steps)
    reading = episode.steps[1].reading
    assert reading is not None
    flipped = ["".join("10"[int(bit)] for bit in row) for row in reading["rows"]]
    forged = [episode.steps[0], Step({"do": {}}, {**reading, "rows": flipped}, "", 1)]
    with pytest.raises(TranscriptError, match="step 1: reading"):
        verify_transcript(ScmEpisode(problem), forged)


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
    grid = _dialogue("noise0", noise=noise).prompt()
    assert "one of 0 (probability 1/2), 1/10 (probability 1/2)" in grid
    assert '"noise": "0"' in grid


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=60), st.text(max_size=60))
def test_no_reply_raises(head: str, tail: str) -> None:
    for text in (head, f"{head}\nACTION:{tail}", f"ACTION: {tail}"):
        with suppress(ActionError):
            assert isinstance(read_reply(text), dict)
