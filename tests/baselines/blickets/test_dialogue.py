"""Agents driven through text: what is accepted, what is refused, and which behaviours fire when."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant.baselines.blickets.context import BEHAVIOURS, Behaviour, EpisodeMemory, Situation, deterministic_scorer
from calibrant.baselines.blickets.dialogue import (
    BASE,
    CG,
    CG_DB,
    Dialogue,
    Prompting,
    Reply,
    converse,
    play_dialogue,
    read_reply,
    written_reply,
)
from calibrant.dsl.blickets.episode import (
    BlicketEpisode,
    Monitor,
    Transition,
    check_trace,
    trace_from_line,
    trace_line,
    trace_of,
)
from calibrant.dsl.blickets.item import BlicketItem, Condition, Form, Mechanism, Rule, Sealed, Task
from calibrant.dsl.blickets.reference import run
from calibrant.dsl.blickets.score import grade
from calibrant.dsl.item import Message
from tests.support.benchmarks.blickets import items, static_item

A, B, C, D, E = (1 << i for i in range(5))
OBJECTS = tuple("ABCDE")
PAIR = Rule(Form.CONJUNCTIVE, A | B)
ALL = pytest.mark.parametrize("prompting", [BASE, CG, CG_DB], ids=lambda p: p.name)

Script = Callable[[Sequence[Message]], str]


def _item(sealed: Sealed, condition: Condition = Condition.MODERATOR, budget: int = 75) -> BlicketItem:
    return BlicketItem("made", condition, Task(OBJECTS, budget), sealed)


def _switching(after: int, to: Rule) -> BlicketItem:
    return _item(Sealed((Mechanism(PAIR), Mechanism(to)), (after,)))


def _saying(replies: Iterable[str]) -> Script:
    """Return a model that says these things one after the other, whatever it is told."""
    left = iter(replies)
    return lambda messages: next(left)


def _moves(text: str) -> list[str]:
    """Return `+A -B` as replies that place A and remove B."""
    verbs = {"+": "place", "-": "remove"}
    return [f"REASONING: because\nACTION: {verbs[word[0]]} {word[1:]}" for word in text.split()]


def _dialogue(item: BlicketItem, prompting: Prompting) -> Dialogue:
    return Dialogue(BlicketEpisode(item), prompting)


CHECK = 'ACTION: {"check": {"rule": "conjunctive", "blickets": ["A", "B"]}}'


@ALL
def test_a_scripted_model_gets_through_an_episode_in_text(prompting: Prompting) -> None:
    item = static_item(PAIR, 5)
    dialogue = converse(_dialogue(item, prompting), _saying([*_moves("+A -A +B +A"), CHECK]))
    assert [turn.step.reading for turn in dialogue.turns if turn.step] == ["INACTIVE"] * 3 + ["ACTIVE", None]
    assert dialogue.episode.closed
    assert grade(item, dialogue.episode.steps).correct
    assert [message["role"] for message in dialogue.messages] == ["user", "assistant"] * 5 + ["user"]
    assert "The detector is ACTIVE. On the detector: B, A. Moves left: 71." in dialogue.messages[8]["content"]
    assert dialogue.messages[-1]["content"].startswith("Your answer was submitted.")
    shown = ["CONTEXT: INITIAL_EXPLORATION" in m["content"] for m in dialogue.messages[:-1] if m["role"] == "user"]
    assert shown == [prompting is not BASE] * 5


def test_without_a_graph_a_transition_is_refused_and_the_action_stands() -> None:
    turn = _dialogue(static_item(PAIR, 5), BASE).take_text("ACTION: place A\nTRANSITION: COMBINATION_TESTING")
    assert turn.transition == ("COMBINATION_TESTING", False, "there is no context graph")
    assert turn.step is not None
    assert turn.step.reading == "INACTIVE"
    assert turn.state == ""


PATHS = {  # how to get to each state
    "INITIAL_EXPLORATION": "",
    "COMBINATION_TESTING": "COMBINATION_TESTING",
    "HYPOTHESIS_EVALUATION": "COMBINATION_TESTING HYPOTHESIS_EVALUATION",
    "VERIFICATION": "COMBINATION_TESTING HYPOTHESIS_EVALUATION VERIFICATION",
}
LEGAL = {
    ("INITIAL_EXPLORATION", "COMBINATION_TESTING"),
    ("COMBINATION_TESTING", "HYPOTHESIS_EVALUATION"),
    ("COMBINATION_TESTING", "INITIAL_EXPLORATION"),
    ("HYPOTHESIS_EVALUATION", "VERIFICATION"),
    ("HYPOTHESIS_EVALUATION", "COMBINATION_TESTING"),
    ("VERIFICATION", "HYPOTHESIS_EVALUATION"),
}
OTHERS = [b.state.name for b in BEHAVIOURS] + ["SUBMIT", "NONE"]


@pytest.mark.parametrize("prompting", [CG, CG_DB], ids=lambda p: p.name)
@pytest.mark.parametrize("state", PATHS)
@pytest.mark.parametrize("asked", [*PATHS, *OTHERS])
def test_every_transition_that_is_no_edge_is_refused_in_text(prompting: Prompting, state: str, asked: str) -> None:
    dialogue = _dialogue(static_item(PAIR, 5), prompting)
    for name in PATHS[state].split():
        dialogue.take_text(f"TRANSITION: {name}")
    turn = dialogue.take_text(f"ACTION: place A\nTRANSITION: {asked}")
    assert turn.transition is not None
    legal = (state, asked) in LEGAL
    assert turn.transition.is_taken is legal
    assert turn.state == (asked if legal else state)
    told = dialogue.messages[-1]["content"]
    assert ("Transition refused: no edge from" in told) is not legal
    assert f"CONTEXT: {turn.state} " in told
    assert len(dialogue.episode.steps) == 1


@ALL
def test_what_has_no_readable_action_costs_no_move_but_turns_are_counted(prompting: Prompting) -> None:
    dialogue = converse(_dialogue(static_item(PAIR, 5, budget=3), prompting), lambda messages: "I wonder.")
    assert dialogue.closed
    assert len(dialogue.turns) == 2 * 3 + 20
    assert dialogue.episode.left == 3
    assert dialogue.messages[2]["content"].startswith("Not understood: no line `ACTION:`.")
    with pytest.raises(ValueError, match="closed"):
        dialogue.take_text("ACTION: place A")


@ALL
def test_the_budget_ends_an_episode_like_in_process(prompting: Prompting) -> None:
    item = static_item(PAIR, 5, budget=3)
    dialogue = converse(_dialogue(item, prompting), _saying(_moves("+A +A +Z +B")))
    assert [bool(turn.step and turn.step.refused) for turn in dialogue.turns] == [False, True, True, True]
    assert [str(fault) for fault in grade(item, dialogue.episode.steps).faults] == ["timeout"]


# --- behaviours -------------------------------------------------------------------------------------------------------


def _fired(dialogue: Dialogue) -> dict[int, list[str]]:
    """Which behaviours fired, by number of moves."""
    fired, moves = dict[int, list[str]](), 0
    for turn in dialogue.turns:
        moves += turn.step.cost if turn.step else 0
        keys = [score.behaviour.key for score in turn.scores if score.fired]
        if keys:
            fired[moves] = keys
    return fired


def _after(item: BlicketItem, moves: str, prompting: Prompting = CG_DB) -> Dialogue:
    dialogue = _dialogue(item, prompting)
    for reply in _moves(moves):
        dialogue.take_text(reply)
    return dialogue


NEVER = static_item(Rule(Form.CONJUNCTIVE, 31), 5)
ORDERED = _item(Sealed((Mechanism(PAIR, (1, 0)),)), Condition.ORDER)
SINGLES = "+A -A +B -B +C -C +D -D +E -E"
SWITCHING = _switching(3, Rule(Form.CONJUNCTIVE, C | D | E))
EARLY = _switching(1, Rule(Form.CONJUNCTIVE, C | D | E))
TWO_OBJECTS = BlicketItem(
    "two",
    Condition.MODERATOR,
    Task(("A", "B"), 75),
    Sealed((Mechanism(Rule(Form.CONJUNCTIVE, 3)), Mechanism(Rule(Form.DISJUNCTIVE, B))), (3,)),
)
NOISY = _item(
    Sealed((Mechanism(PAIR),), p=0.5, draws=(0.9, 0.9, 0.1, 0.9, 0.9, 0.1, *[0.1] * 20)), Condition.STOCHASTIC
)


@pytest.mark.parametrize(
    ("item", "moves", "fired"),
    [
        # DB1: never active, from 6 moves on, refused moves included; not once something was active
        (NEVER, "+A -A +B -B +C", {}),
        (NEVER, "+A -A +B -B +C -C", {6: ["DB1"]}),
        (NEVER, "+A -A +B -B +C +C -C +D -D +D -D +D -D", {6: ["DB1"]}),
        (static_item(PAIR, 5), "+A +B -A +A -A +C -C +C -C +C", {}),
        # DB2: the same set in another order with another result, from 8 moves on. A was placed first, then B first
        (ORDERED, "+A +B -A +A -A +A", {}),
        (ORDERED, "+A +B -A +A -A +A -A +A", {8: ["DB2"]}),
        (ORDERED, "+A +B -A +A -A +A -A +A -A +A -A +A", {8: ["DB2"]}),
        (ORDERED, "+B +A -B +C -C +C -C +C -C +C", {}),
        # DB3: the same configuration with another result, from 8 moves on
        (NOISY, "+A +B +C -C +D -D +E", {}),
        (NOISY, "+A +B +C -C +D -D +E -E", {8: ["DB3"]}),
        # DB4: a rule that was the only one left, got two readings right and then one wrong, from 10 moves on
        (SWITCHING, f"{SINGLES} +A +B +C -C -B +B", {6: ["DB1"], 16: ["DB3", "DB4"]}),
        (SWITCHING, f"{SINGLES} +A +B +C -C +D", {6: ["DB1"], 15: ["DB4"]}),
        (EARLY, f"{SINGLES} +A +B +C -C +D", {6: ["DB1"], 14: ["DB3"]}),  # nothing was right yet
        (static_item(PAIR, 5), f"{SINGLES} +A +B +C -C +D -D +E", {6: ["DB1"]}),
        (TWO_OBJECTS, "+A +B -A +A -A +A -A", {}),  # right and then wrong, but not yet 8 and 10 moves
        (TWO_OBJECTS, "+A +B -A +A -A +A -A +A", {8: ["DB3"]}),
        (TWO_OBJECTS, "+A +B -A +A -A +A -A +A -A +A", {8: ["DB3"], 10: ["DB4"]}),
    ],
)
def test_behaviours_fire_as_the_table_says(item: BlicketItem, moves: str, fired: dict[int, list[str]]) -> None:
    assert _fired(_after(item, moves)) == fired
    assert _fired(_after(item, moves, CG)) == {}


def test_what_fires_extends_the_graph_tells_the_agent_and_waits_for_states_that_are_missing() -> None:
    dialogue = _after(NEVER, "+A -A +B -B +C -C")
    told = dialogue.messages[-1]["content"]
    assert "NOTICE: Nothing has made the detector react yet." in told
    assert "New state: DIMENSION_DISCOVERY." in told
    for name in ("COMBINATION_TESTING", "DIMENSION_DISCOVERY"):
        turn = dialogue.take_text(f"TRANSITION: {name}")
        assert turn.transition is not None
        assert turn.transition.is_taken
    refused = dialogue.take_text("TRANSITION: ORDER_TESTING").transition
    assert refused is not None
    assert not refused.is_taken


def _given(scores: dict[str, float]) -> Callable[[Behaviour, Situation], float]:
    return lambda behaviour, situation: scores[behaviour.key]


def _with_scores(scores: dict[str, float], num_moves: int) -> Dialogue:
    dialogue = Dialogue(BlicketEpisode(NEVER), CG_DB, _given(scores))
    for reply in _moves(" ".join(["+A -A"] * num_moves).strip())[:num_moves]:
        dialogue.take_text(reply)
    return dialogue


def test_a_callable_decides_the_scores_and_each_behaviour_fires_once() -> None:
    scores = {"DB1": 5.9, "DB2": 6.0, "DB3": 8.0, "DB4": 7.0}
    assert _fired(_with_scores(scores, 30)) == {8: ["DB3"], 9: ["DB2"], 10: ["DB4"]}
    assert _fired(_with_scores({"DB1": 6.0, "DB2": 7.0, "DB3": 7.0, "DB4": 7.5}, 30)) == {
        6: ["DB1"],
        8: ["DB2", "DB3"],
        10: ["DB4"],
    }
    scored = [[score.behaviour.key for score in turn.scores] for turn in _with_scores(scores, 11).turns]
    assert scored == [[]] * 5 + [["DB1"]] * 2 + [["DB1", "DB2", "DB3"], ["DB1", "DB2"], ["DB1", "DB4"], ["DB1"]]


@pytest.mark.parametrize("score", [-0.1, 10.1, float("nan")])
def test_a_score_outside_the_scale_is_refused(score: float) -> None:
    with pytest.raises(ValueError, match="scores are from 0 to 10"):
        _with_scores({"DB1": score}, 6)


def test_a_scorer_sees_the_last_five_messages_cut_to_300_characters_the_state_and_a_summary() -> None:
    seen: list[Situation] = []

    def watching(behaviour: Behaviour, situation: Situation) -> float:
        seen.append(situation)
        return 0.0

    dialogue = Dialogue(BlicketEpisode(NEVER), CG_DB, watching)
    dialogue.take_text("TRANSITION: COMBINATION_TESTING")
    for reply in _moves("+A -A +B -B +C -C"):
        dialogue.take_text(reply + "\nREASONING: " + "x" * 400)
    (situation,) = seen
    assert [message["role"] for message in situation.messages] == ["assistant", "user"] * 2 + ["assistant"]
    assert max(len(message["content"]) for message in situation.messages) == 300
    assert situation.state == "COMBINATION_TESTING"
    assert situation.memory.summary() == (
        "6 moves, 0 activations; readings: A: INACTIVE; nothing: INACTIVE; B: INACTIVE; C: INACTIVE"
    )


# --- any policy -------------------------------------------------------------------------------------------------------


@ALL
def test_a_symbolic_policy_plays_the_same_episode_as_its_words(prompting: Prompting) -> None:
    replies = [*(read_reply(text) for text in _moves("+A -A +B +A -B +B +C")), read_reply(CHECK)]
    item = _switching(3, Rule(Form.DISJUNCTIVE, C))

    def policy(dialogue: Dialogue) -> Reply:
        return replies[len(dialogue.turns)]

    silent = play_dialogue(_dialogue(item, prompting), policy)
    spoken = converse(_dialogue(item, prompting), _saying(map(written_reply, replies)))
    assert silent.turns == spoken.turns
    assert silent.messages == spoken.messages


@given(
    st.text(), st.none() | st.sampled_from([{"place": "A"}, {"check": {"rule": "x", "blickets": []}}]), st.booleans()
)
def test_a_written_reply_is_read_back(reasoning: str, action: dict[str, object] | None, moving: bool) -> None:
    reply = Reply(reasoning.replace(":", " ").strip(), action, "VERIFICATION" if moving else "")
    back = read_reply(written_reply(reply))
    assert (back.action, back.transition) == (reply.action, reply.transition)


WORDS = [
    "ACTION:",
    "TRANSITION:",
    "\n",
    " place A",
    " remove B",
    ' {"check": ',
    '{"place": ["A"]}',
    "VERIFICATION",
    "}",
]


REPLIES = st.one_of(st.text(), st.none(), st.lists(st.sampled_from(WORDS)).map("".join))


@ALL
@given(item=items(), replies=st.lists(REPLIES, max_size=30))
def test_no_reply_breaks_a_dialogue(prompting: Prompting, item: BlicketItem, replies: list[object]) -> None:
    dialogue = _dialogue(item, prompting)
    for reply in _while_open(dialogue, replies):
        turn = dialogue.take_text(reply)
        assert turn.step is not None or turn.transition is not None or turn.problems
    opening = 0 if item.sealed.start_on is None else 1
    history = run(item, [step.action for step in dialogue.episode.steps[opening:]])
    if history.moments:
        assert dialogue.memory.activations == history.moments[-1].activations
        assert dialogue.memory.placed_names == history.moments[-1].placed


def _while_open(dialogue: Dialogue, replies: Iterable[object]) -> Iterator[object]:
    for reply in replies:
        if dialogue.closed:
            return
        yield reply


@given(items(), st.lists(st.sampled_from("ABCDEFGH")))
def test_the_deterministic_scorer_only_says_yes_or_no(item: BlicketItem, toggled: list[str]) -> None:
    episode, memory = BlicketEpisode(item), EpisodeMemory(item.task)
    for name in toggled:
        memory.note(episode.act({"remove" if name in memory.placed_names else "place": name}))
        assert {deterministic_scorer(b, Situation(memory, "", ())) for b in BEHAVIOURS} <= {0.0, 10.0}


# --- traces -----------------------------------------------------------------------------------------------------------


def test_a_trace_has_what_the_graph_and_the_behaviours_did() -> None:
    dialogue = _dialogue(NEVER, CG_DB)
    for reply in (
        "TRANSITION: COMBINATION_TESTING",
        *_moves("+A -A +B -B +C"),
        "TRANSITION: VERIFICATION\n" + _moves("-C")[0],
    ):
        dialogue.take_text(reply)
    trace = trace_of(NEVER, "CG+DB", dialogue.episode.steps, dialogue.notes())
    check_trace(trace, NEVER)
    assert trace_from_line(trace_line(trace)) == trace
    first, *_, last = trace.steps
    assert first.transition == Transition("COMBINATION_TESTING", "COMBINATION_TESTING")
    assert trace.steps[1].transition == Transition(None, "COMBINATION_TESTING")
    assert last.transition == Transition("VERIFICATION", "COMBINATION_TESTING")  # asked and refused
    assert last.monitors == (Monitor("exploration_stagnation", 10.0, True),)
    assert last.notice.endswith("New state: DIMENSION_DISCOVERY.")


@ALL
@given(item=items(), replies=st.lists(REPLIES, max_size=20))
def test_every_dialogue_leaves_a_trace_that_checks(
    prompting: Prompting, item: BlicketItem, replies: list[object]
) -> None:
    dialogue = _dialogue(item, prompting)
    for reply in _while_open(dialogue, [*_moves("+A +B -A"), *replies]):
        dialogue.take_text(reply)
    trace = trace_of(item, prompting.name, dialogue.episode.steps, dialogue.notes())
    check_trace(trace, item)
    assert trace_from_line(trace_line(trace)) == trace


# --- Replies as models write them, and as nobody should ---------------------------------------------------------------
PLACE = {"place": "A"}
REPLY_CHECK = {"check": {"rule": "conjunctive", "blickets": ["A", "B"]}}


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ('REASONING: try it\nACTION: {"place": "A"}', PLACE),
        ('REASONING: try it\n\nACTION: {"place": "A"}\nTRANSITION: VERIFICATION', PLACE),
        ("ACTION: place A", PLACE),
        ("**ACTION:** `place A`.", PLACE),
        ("- Action : Place A\n", PLACE),
        ("ACTION: remove B", {"remove": "B"}),
        ('ACTION:\n```json\n{"place": "A"}\n```', PLACE),
        ('ACTION: {"check": {"rule": "conjunctive", "blickets": ["A", "B"]}}', REPLY_CHECK),
        ('ACTION: {"check":\n  {"rule": "conjunctive",\n   "blickets": ["A", "B"]}}\n', REPLY_CHECK),
        ("ACTION: check conjunctive A, B", REPLY_CHECK),
        ("ACTION: check conjunctive: {A, B}", REPLY_CHECK),
        ("ACTION: CHECK Conjunctive [A B]", REPLY_CHECK),
        ('ACTION: {"place": "A"}\nACTION: place A', PLACE),
        ("REASONING: not ACTION: place B but this\nACTION: place A", PLACE),
        ('ACTION: {"fly": 1}', {"fly": 1}),  # read; the episode refuses it
    ],
)
def test_actions_are_read_as_json_or_in_words(text: str, action: object) -> None:
    reply = read_reply(text)
    assert reply.action == action
    assert reply.problems == ()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "no line `ACTION:`"),
        ("I would place A.", "no line `ACTION:`"),
        ("REASONING: I think so", "no line `ACTION:`"),
        ("ACTION:", "expected an action after `ACTION:`, found ''"),
        ("ACTION: dance", "expected an action after `ACTION:`, found 'dance'"),
        ('ACTION: {"place": "A"', 'expected an action after `ACTION:`, found \'{"place": "A"\''),
        ("ACTION: place A\nACTION: place B", "several actions; a reply carries one"),
        ('ACTION: {"place": "A"} {"place": "B"}', "several actions; a reply carries one"),
        (None, "expected text, found None"),
        (b"ACTION: place A", "expected text, found b'ACTION: place A'"),
        (7, "expected text, found 7"),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_line(text: object, problem: str) -> None:
    assert read_reply(text) == Reply(reasoning=read_reply(text).reasoning, problems=(problem,))


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("TRANSITION: VERIFICATION", "VERIFICATION"),
        ("TRANSITION: **verification**.", "VERIFICATION"),
        ("TRANSITION: `ORDER_TESTING` because", "ORDER_TESTING"),
        ("ACTION: place A\nTRANSITION: X\nTRANSITION: X", "X"),
    ],
)
def test_transitions_are_read(text: str, name: str) -> None:
    reply = read_reply(text)
    assert (reply.transition, reply.problems) == (name, ())


def test_of_two_transitions_none_is_taken_and_the_action_stands() -> None:
    reply = read_reply("ACTION: place A\nTRANSITION: X\nTRANSITION: Y")
    assert (reply.action, reply.transition) == (PLACE, "")
    assert reply.problems == ("several transitions; a reply carries at most one",)
    assert read_reply("TRANSITION: !").problems == ("expected the name of a state after `TRANSITION:`",)


def test_reasoning_is_what_stands_before_the_next_mark() -> None:
    assert read_reply("REASONING: first\nsecond\nACTION: place A").reasoning == "first\nsecond"


PIECES = ["ACTION:", "TRANSITION:", "REASONING:", "\n", "place A", "check ", "{", "}", '"', "[", "é", "\0", " ", "*"]


@given(st.one_of(st.text(), st.lists(st.sampled_from(PIECES)).map("".join)))
def test_any_text_gives_a_reply_or_says_why_not(text: str) -> None:
    reply = read_reply(text)
    assert reply.action is not None or reply.transition or reply.problems
    assert all("\n" not in problem for problem in reply.problems)


@pytest.mark.parametrize(
    "piece",
    ["ACTION: ", "ACTION:\n", "\n", "{", "[", '{"a":', "*_ \t", "TRANSITION: _", "ACTION: check conjunctive ", '"'],
)
def test_long_replies_take_linear_time(piece: str) -> None:
    text = "ACTION: " + piece * (300_000 // len(piece))
    started = time.process_time()
    read_reply(text)
    assert time.process_time() - started < 6  # a quadratic reader takes half an hour
