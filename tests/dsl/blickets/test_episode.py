"""Episodes of blickets against the shared vectors and the reference; one meaning for every form of an answer."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calibrant
from calibrant.bench.blickets.agents import text_episode
from calibrant.bench.cli import main
from calibrant.bench.core.registry import benchmark
from calibrant.bench.training import conversation, score_replies
from calibrant.dsl.blickets.episode import BlicketEpisode
from calibrant.dsl.blickets.item import BlicketItem, Condition, Count, Form, Mechanism, Rule, Sealed, Task
from calibrant.dsl.blickets.prompt import instructions
from calibrant.dsl.blickets.records import write_pool
from calibrant.dsl.blickets.reference import ACTIVE, Ending, run
from calibrant.dsl.blickets.replies import answer_of, stated_action
from calibrant.dsl.blickets.score import Exposed, Fault, Split, grade
from calibrant.dsl.episode import ActionError, TranscriptError, replay_transcript
from tests.support.benchmarks.blickets import JUNK, actions, items, opened, static_item, vector_item, vectors


# --- Episodes: the shared vectors, the fast way against the reference, and what the paper leaves open, case by case ---
def test_every_shared_episode_reads_and_is_graded_as_expected() -> None:
    seen = 0
    for vector in vectors("episode"):
        item, expect = vector_item(vector), vector["expect"]
        history = run(item, vector["actions"])
        objects = item.task.objects
        assert [
            {
                "t": moment.t,
                "reading": moment.reading,
                "refused": bool(moment.refused),
                "cost": moment.cost,
                "activations": moment.activations,
                "state": sorted(moment.placed),
            }
            for moment in history.moments
        ] == expect["steps"], vector["item"]["id"]
        found = grade(item, opened(item, vector["actions"]).steps).as_json(objects)
        wanted = {key: expect[key] for key in expect.keys() & found.keys() - {"steps"}}
        verdict = expect["verdict"] or {"correct": None, "errors": []}
        wanted |= {"steps": expect["steps_used"], **verdict}
        assert {key: found[key] for key in wanted} == wanted, vector["item"]["id"]
        seen += 1
    assert seen >= 400


@settings(deadline=None)
@given(st.data())
def test_the_fast_episode_answers_as_the_reference_does(data: st.DataObject) -> None:
    item = data.draw(items())
    given_actions = data.draw(actions(item.task.n))
    episode = opened(item, given_actions)
    history = run(item, given_actions)
    assert [(step.reading, step.refused, step.cost) for step in episode.steps] == [
        (moment.reading, moment.refused, moment.cost) for moment in history.moments
    ]
    assert episode.left == item.task.budget - (history.moments[-1].t if history.moments else 0)
    placed = history.moments[-1].placed if history.moments else ()
    assert tuple(item.task.objects[i] for i in episode.placed) == placed
    moments = history.moments[len(history.moments) - len(given_actions) :]
    assert episode.closed == any(
        moment.reading is None and moment.cost == 0 and not (moment.refused and _submits(action))
        for action, moment in zip(given_actions, moments, strict=True)
    )


def _submits(action: Any) -> bool:
    return isinstance(action, dict) and "check" in action and "place" not in action and "remove" not in action


@settings(deadline=None)
@given(st.data())
def test_a_transcript_replays_and_a_false_reading_is_refused_by_its_step(data: st.DataObject) -> None:
    item = data.draw(items())
    steps = opened(item, data.draw(actions(item.task.n))).steps
    again = replay_transcript(BlicketEpisode(item), steps).steps
    assert [replace(step, refused="") for step in again] == [replace(step, refused="") for step in steps]
    grade(item, steps)
    readings = [index for index, step in enumerate(steps) if step.reading is not None]
    if readings:
        number = data.draw(st.sampled_from(readings))
        other = "INACTIVE" if steps[number].reading == ACTIVE else ACTIVE
        false = [*steps[:number], replace(steps[number], reading=other), *steps[number + 1 :]]
        with pytest.raises(TranscriptError, match=f"^step {number}: "):
            replay_transcript(BlicketEpisode(item), false)
        with pytest.raises(TranscriptError, match=f"^step {number}: "):
            grade(item, false)


@settings(deadline=None)
@given(JUNK)
def test_no_action_of_any_kind_raises(action: Any) -> None:
    episode = BlicketEpisode(static_item(Rule(Form.CONJUNCTIVE, 0b11), 3))
    step = episode.act(action)
    if step.refused:
        cost = 0 if _submits(action) else 1
        assert (step.reading, step.cost, "\n" in step.refused) == (None, cost, False)


AB, C, CDE = Rule(Form.CONJUNCTIVE, 0b011), Rule(Form.DISJUNCTIVE, 0b100), Rule(Form.CONJUNCTIVE, 0b11100)


def _switching(rule2: Rule, n: int, switch: int, count: Count = Count.LEVEL, **options: Any) -> BlicketItem:
    sealed = Sealed((Mechanism(AB), Mechanism(rule2)), (switch,), **options)
    return BlicketItem("s", Condition.MODERATOR, Task(tuple("ABCDE"[:n]), 50, count), sealed)


def _moves(text: str) -> list[dict[str, str]]:
    return [{"place" if sign == "+" else "remove": name} for sign, name in zip(text[::2], text[1::2], strict=True)]


def _readings(item: BlicketItem, text: str) -> str:
    return "".join("1" if step.reading == ACTIVE else "0" for step in opened(item, _moves(text)).steps)


def test_the_reading_that_reaches_n_is_under_rule_1_and_the_next_under_rule_2() -> None:
    assert _readings(_switching(C, 3, 2), "+A+B+C-C+C") == "01101"


def test_a_graded_detector_tells_how_many_blickets_of_the_rule_in_force_are_on_it() -> None:
    item = static_item(Rule(Form.DISJUNCTIVE, 0b011), 3)
    item = replace(item, task=replace(item.task, graded=True))
    readings = [step.reading for step in opened(item, _moves("+C+A+B-C-A")).steps]
    assert readings == ["INACTIVE", "ACTIVE 1", "ACTIVE 2", "ACTIVE 2", "ACTIVE 1"]
    assert grade(item, opened(item, _moves("+C+A")).steps).first_activation == 2
    assert "how many blickets" in instructions(item.task)


def test_a_distractor_on_an_active_detector_counts_again_by_level_and_not_by_edge() -> None:
    assert _readings(_switching(CDE, 5, 2, Count.LEVEL), "+A+B+C+D+E") == "01101"
    assert _readings(_switching(CDE, 5, 2, Count.EDGE), "+A+B+C+D+E") == "01111"


def test_a_check_after_n_activations_is_graded_against_rule_2() -> None:
    item = _switching(CDE, 5, 1)
    stated = {"rule": "conjunctive", "blickets": ["A", "B"]}
    found = grade(item, opened(item, [*_moves("+A+B"), {"check": stated}]).steps)
    assert (found.correct, found.faults) == (False, (Fault.MIXED,))
    assert (found.exposed, found.split, found.post_evidence) == (Exposed.EXACTLY_N, Split.BLIND, 0)
    before = grade(item, opened(item, [*_moves("+A"), {"check": stated}]).steps)
    assert (before.correct, before.exposed, before.split) == (True, Exposed.PRE, Split.PRE)


def test_a_submission_can_be_withheld_until_the_switch_has_left_evidence_or_the_budget_is_spent() -> None:
    exposure = replace(_switching(CDE, 5, 1).sealed.exposure, after_switch=True)
    item = _switching(CDE, 5, 1, exposure=exposure)
    check = {"check": {"rule": "conjunctive", "blickets": ["C", "D", "E"]}}
    episode = opened(item, [*_moves("+A+B"), check])
    assert (episode.steps[-1].refused, episode.steps[-1].cost) == ("a submission is not accepted yet", 1)
    for action in _moves("+C+D+E"):
        episode.act(action)
    episode.act(check)
    assert episode.closed
    assert grade(item, episode.steps).correct
    short = replace(item, task=replace(item.task, budget=3))
    assert grade(short, opened(short, [*_moves("+A+A+A"), check]).steps).ending is Ending.ANSWERED


MALFORMED: list[Any] = [
    {"check": {}},
    {"check": None},
    {"check": "conjunctive A"},
    {"check": {"rule": "xor", "blickets": ["A"]}},
    {"check": {"rule": "conjunctive", "blickets": []}},
    {"check": {"rule": "conjunctive", "blickets": ["Z"]}},
    {"check": {"rule": "conjunctive", "blickets": ["A", "A"]}},
    {"check": {"rule": "conjunctive", "blickets": ["A"]}, "note": 1},
]


@pytest.mark.parametrize("malformed", MALFORMED)
@pytest.mark.parametrize("moves", ["", "+A", "+A+B+A"])
def test_a_malformed_submission_costs_no_move_and_closes_nothing(malformed: Any, moves: str) -> None:
    item = static_item(AB, 3, budget=3)
    episode = opened(item, [*_moves(moves), malformed, malformed])
    assert [(step.cost, step.reading, bool(step.refused)) for step in episode.steps[-2:]] == [(0, None, True)] * 2
    assert (episode.left, episode.closed) == (3 - len(moves) // 2, False)
    assert grade(item, episode.steps).refused == (1 if moves == "+A+B+A" else 0)
    right = {"check": {"rule": "conjunctive", "blickets": ["A", "B"]}}
    assert grade(item, opened(item, [*_moves(moves), malformed, right]).steps).correct


def test_moves_beside_a_submission_are_no_submission() -> None:
    episode = opened(static_item(AB, 3), [{"check": {}, "place": "A"}])
    assert (episode.steps[-1].cost, bool(episode.steps[-1].refused)) == (1, True)


def test_strict_wants_the_order_in_which_the_answer_never_has_to_be() -> None:
    item = BlicketItem("o", Condition.ORDER, Task(("A", "B", "C"), 50), Sealed((Mechanism(AB, (1, 0)),)))
    for names, strict in ((["A", "B"], False), (["B", "A"], True)):
        found = grade(item, opened(item, [{"check": {"rule": "conjunctive", "blickets": names}}]).steps)
        assert (found.correct, found.strict) == (True, strict)


# --- The same answer in every form and place that a model or a person may write it: one meaning, never a silent 0 -----
OBJECTS = tuple("ABCDE")
ITEM = static_item(Rule(Form.CONJUNCTIVE, 0b10001), 5)
ANSWER = {"rule": "conjunctive", "blickets": ["A", "E"]}
OF = benchmark("blickets")

FORMS = [
    '{"rule": "conjunctive", "blickets": ["A", "E"]}',
    '{"check": {"rule": "conjunctive", "blickets": ["A", "E"]}}',
    '{"rule": "Conjunctive", "blickets": ["a", "e"]}',
    '{"RULE_TYPE": "CONJUNCTIVE", "Blickets": "A, E"}',
    "conjunctive A, E",
    "check conjunctive A E",
    "Check Conjunctive: [A, E].",
    "ACTION: check conjunctive A E",
    "ACTION: conjunctive A, E",
    "**ACTION:** `check conjunctive A and E`",
    'REASONING: both\nACTION: {"check": {"rule": "CONJUNCTIVE", "blickets": ["E", "A"]}}',
    "RULE_TYPE: conjunctive\nBLICKETS: A, E",
    "BLICKETS: A, E\nRULE_TYPE: conjunctive",
    "rule_type: Conjunctive\nblickets: a, e",
    "**RULE_TYPE:** **conjunctive**\n**BLICKETS:** **A**, **E**",
    "- `RULE_TYPE`: conjunctive\n- `BLICKETS`: [A, E]",
    "REASONING: only both together light it\n\nRULE TYPE: Conjunctive\nBLICKETS: A and E.",
    "REASONING: x\nACTION: check\nRULE_TYPE: CONJUNCTIVE\nBLICKETS: {A, E}",
]


def _by_score(form: str) -> bool:
    return calibrant.score(ITEM, form).correct is True


def _by_text_episode(form: str) -> bool:
    episode = text_episode(ITEM)
    episode.reset()
    return episode.reply(form).reward == 1


def _by_conversation(form: str) -> bool:
    chat = conversation(OF, ITEM)
    chat.take_text(form)
    return chat.closed and OF.scoring.score(ITEM, {}, list(chat.episode.steps))["correct"] is True


def _by_reward(form: str) -> bool:
    return bool(score_replies(OF, ITEM, [form]).verdict.correct)


@pytest.mark.parametrize("way", [_by_score, _by_text_episode, _by_conversation, _by_reward])
@pytest.mark.parametrize("form", FORMS)
def test_one_right_answer_has_the_same_verdict_in_every_form_and_place(form: str, way: Any) -> None:
    assert way(form)


@pytest.mark.parametrize("form", [form for form in FORMS if "\n" not in form])
def test_play_reads_what_is_typed_as_scores_do(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pool = tmp_path / "pool.jsonl"
    write_pool(pool, "made", [ITEM])
    monkeypatch.setattr("sys.stdin", io.StringIO(f"ACTION: place a\n{form}\n"))
    assert main(["play", str(pool)]) == 0
    assert "Refused" not in capsys.readouterr().out


WRAPPED: list[Any] = [
    {"answer": ANSWER},
    {"answer": "conjunctive A, E"},
    {"memory": "A and E were on", "answer": ANSWER},
    {"memory": {"seen": [1, 2]}, "hypothesis": {"rule": "Conjunctive", "blickets": ["E", "A"]}},
    {"result": {"final": [{"check": ANSWER}]}},
    {"response": json.dumps(ANSWER)},
    {"response": "RULE_TYPE: conjunctive\nBLICKETS: A, E"},
    {**ANSWER, "confidence": 0.9},
]


@pytest.mark.parametrize("wrapped", WRAPPED)
def test_answers_in_other_wrappings_are_read(wrapped: Mapping[str, Any]) -> None:
    for response in (wrapped, json.dumps(wrapped), f"So:\n```json\n{json.dumps(wrapped)}\n```"):
        if isinstance(response, str) and response[0] != "{" and any(isinstance(v, str) for v in wrapped.values()):
            continue  # words inside a string of an object inside a text
        assert calibrant.score(ITEM, response).correct, response


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("RULE_TYPE: conjunctive\nRULE_TYPE: disjunctive\nBLICKETS: A", "several lines `RULE_TYPE:`"),
        ("RULE_TYPE: conjunctive\nBLICKETS: A\nBLICKETS: B", "several lines `BLICKETS:`"),
        ("RULE_TYPE: both\nBLICKETS: A, E", "expected conjunctive or disjunctive after `RULE_TYPE:`, found 'both'"),
        ("RULE_TYPE: conjunctive\nBLICKETS: A, Z", "unknown object 'Z'"),
        ("RULE_TYPE: conjunctive\nBLICKETS:", "expected a non-empty list of objects"),
        ("RULE_TYPE: conjunctive\nBLICKETS: A, a", "listed twice"),
        ("conjunctive A, E\nconjunctive A, B", "2 different rules"),
        ("check conjunctive A Z", "unknown object 'Z'"),
        ("A and E", "no JSON object with the keys rule and blickets"),
        ("RULE_TYPE: conjunctive", "no JSON object with the keys rule and blickets"),
    ],
)
def test_what_cannot_be_read_has_a_reason(text: str, reason: str) -> None:
    with pytest.raises(ActionError, match=reason):
        answer_of(text, OBJECTS)
    score = calibrant.score(ITEM, text)
    assert not score.correct
    assert reason in str(score.failure)


@pytest.mark.parametrize("wrapped", [{"answer": {"kind": "both"}}, {"memory": "nothing"}, {"answer": None}, {}])
def test_objects_without_an_answer_have_a_reason(wrapped: dict[str, Any]) -> None:
    assert calibrant.score(ITEM, wrapped).failure


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("ACTION: place A", {"place": "A"}),
        ("ACTION: place a", {"place": "A"}),
        ("**Action:** remove B.", {"remove": "B"}),
        ("place A", {"place": "A"}),
        ("TRANSITION: VERIFICATION", None),
        ("I would place A.", None),
        ("REASONING: conjunctive A, E", None),
    ],
)
def test_moves_are_read_in_words(text: str, action: object) -> None:
    assert stated_action(text, OBJECTS) == action


def test_names_of_several_words_are_read_whole() -> None:
    objects = ("Red block", "blue block", "ball")
    assert stated_action("ACTION: place red block", objects) == {"place": "Red block"}
    expected = {"rule": "disjunctive", "blickets": ["Red block", "ball"]}
    assert answer_of("RULE_TYPE: disjunctive\nBLICKETS: red block and ball", objects) == expected


def test_of_two_objects_that_differ_in_case_each_is_itself() -> None:
    assert answer_of("conjunctive a, A", ("a", "A")) == {"rule": "conjunctive", "blickets": ["a", "A"]}


PIECES = [
    "RULE_TYPE:",
    "BLICKETS:",
    "ACTION:",
    "check ",
    "conjunctive ",
    "A",
    ", ",
    "\n",
    "{",
    "}",
    '"',
    "*",
    '{"answer":',
]


@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
def test_any_text_gives_an_answer_or_a_reason_in_one_line(text: str) -> None:
    reason = ""
    try:
        answer = answer_of(text, OBJECTS)
    except ActionError as error:
        answer, reason = {}, str(error)
    assert answer.keys() == {"rule", "blickets"} or reason
    assert "\n" not in reason
