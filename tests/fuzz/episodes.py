"""Actions, replies, answers, transcripts and records of episodes, noise and hidden variables of ReplaySCM."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from functools import cache
from typing import Any

import msgspec

from calibrant.bench.core.registry import benchmark
from calibrant.bench.replayscm.episodes import ExtendedVerdicts, is_episode
from calibrant.bench.scoring.scorer import replay_answer, steps_of
from calibrant.dsl.episode import ActionError
from calibrant.dsl.errors import MAX_MESSAGE_CHARS, CalibrantError
from calibrant.dsl.replayscm.episode import ScmEpisode, TextDialogue
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.replayscm.pools.files import record_from_problem
from calibrant.dsl.replayscm.pools.records import problem_from_record
from tests.fuzz.corruption import CHARACTER_DAMAGE
from tests.oracles.independent import require
from tests.support.replayscm.extensions import gold_submission, small_problem

REPLAYSCM = benchmark("replayscm")
ATOMS: tuple[Any, ...] = (
    None, True, False, 0, 1, 2, -1, 0.5, 1.0, float("nan"), "X1", "X2", "H1", "0", "01", "1/10", "", "do", "A" * 50,
    10**30, "X4", "(and X1 X2)", "\ud800",
)  # fmt: skip
KEYS = ("do", "submit", "contexts", "mechanisms", "noise", "forecast", "X1", "X2", "X3", "X4", "H1", "start", "")
FIELDS = (
    *("max_parents", "prior", "noise", "hidden", "allowance", "question", "asked", "sealed", "kind", "training"),
    *("disclosure", "variables"),
)
NUM_ACTIONS = 4


def case(rng: random.Random) -> str:
    """One input of a kind drawn by the generator; the outcome tells the kind and what became of it."""
    kind: Callable[[random.Random], str] = rng.choices(
        [_actions, _replies, _answer, _transcript, _record], weights=[6, 3, 3, 2, 4]
    )[0]
    return kind(rng)


@cache
def problems() -> tuple[Problem, ...]:
    """Return small items of every form: noise, hidden variables, contexts, forecasts."""
    listed = []
    for seed, rate in enumerate((None, "1/10", "1/20")):
        for num_hidden in (0, 1):
            for is_played in (True, False):
                listed.append(small_problem(seed, rate=rate, num_hidden=num_hidden, is_episode=is_played))
            listed.append(small_problem(seed, rate=rate, num_hidden=num_hidden, contexts="chosen"))
        listed.append(small_problem(seed, rate=rate, is_forecast=True, contexts="drawn"))
    return tuple(listed)


@cache
def _played() -> tuple[Problem, ...]:
    return tuple(filter(is_episode, problems()))


@cache
def _verdicts(number: int) -> ExtendedVerdicts:
    return ExtendedVerdicts(problems()[number])


@cache
def _record_text(number: int) -> str:
    return json.dumps(msgspec.to_builtins(record_from_problem(problems()[number])))


def _value(rng: random.Random, depth: int) -> Any:
    draw = rng.random()
    if depth == 0 or draw < 0.4:
        return rng.choice(ATOMS)
    if draw < 0.6:
        return [_value(rng, depth - 1) for _ in range(rng.randrange(4))]
    return {rng.choice(KEYS): _value(rng, depth - 1) for _ in range(rng.randrange(4))}


def _action(rng: random.Random, problem: Problem) -> Any:
    if rng.random() < 0.4:
        return _value(rng, 3)
    variables = [rng.choice(("X1", "X2", "X3", "X4", "H1")) for _ in range(rng.randrange(4))]
    do = {v: rng.choice((0, 1, 1, True)) for v in variables}
    action: dict[str, Any] = rng.choice(
        [
            {"do": do},
            {"do": do},
            {"do": do, "contexts": ["01", "10"]},
            {"submit": _value(rng, 2)},
            {"do": _value(rng, 2)},
        ]
    )
    return {"submit": gold_submission(problem)} if rng.random() < 0.05 else action


def _require_line(text: str) -> None:
    require("\n" not in text, f"several lines: {text!r}")
    require(len(text) <= 2 * MAX_MESSAGE_CHARS, f"a line of {len(text)} characters")


def _actions(rng: random.Random) -> str:
    """Check that actions are carried out, or refused in one line, free and without effect; and that they replay."""
    problem = rng.choice(_played())
    episode = ScmEpisode(problem)
    num_done = 0
    for _ in range(NUM_ACTIONS):
        before = episode.left, episode.closed
        step = episode.act(_action(rng, problem))
        if step.refused:
            _require_line(step.refused)
            require((episode.left, episode.closed) == before and not step.cost, "a refusal has an effect")
        else:
            num_done += 1
        REPLAYSCM.play.describe(episode, step)
    again = ScmEpisode(problem)
    for step in episode.steps[1:]:
        again.act(step.action)
    require([s.reading for s in again.steps] == [s.reading for s in episode.steps], "a replay differs")
    return f"actions: {num_done} of {NUM_ACTIONS} carried out"


def _text(rng: random.Random, problem: Problem) -> str:
    value = _action(rng, problem) if rng.random() < 0.7 else gold_submission(problem)
    text = json.dumps(value)
    if rng.random() < 0.3:
        text = rng.choice(CHARACTER_DAMAGE)(rng, text)
    return f"{rng.choice(('', 'Let me think. ', chr(10)))}{rng.choice(('ACTION:', 'ACTION: ', '', 'action: '))}{text}"


def _replies(rng: random.Random) -> str:
    """Check that replies act or get one line."""
    problem = rng.choice(_played())
    dialogue = TextDialogue(ScmEpisode(problem))
    num_read = 0
    for _ in range(NUM_ACTIONS):
        num_steps = dialogue.episode.refusals
        message = dialogue.reply(_text(rng, problem))
        require(bool(message), "no message")
        num_read += dialogue.episode.refusals == num_steps
    return f"replies: {num_read} of {NUM_ACTIONS} read"


def _answer(rng: random.Random) -> str:
    """Check that an answer to any item has a verdict, and a response text too."""
    number = rng.randrange(len(problems()))
    problem, verdicts = problems()[number], _verdicts(number)
    value = gold_submission(problem) if rng.random() < 0.4 else _value(rng, 3)
    if (
        isinstance(value, dict)
        and "mechanisms" in value
        and rng.random() < 0.6
        and isinstance(value["mechanisms"], dict)
    ):
        value = {**value, "mechanisms": {**value["mechanisms"], rng.choice(KEYS): rng.choice(ATOMS)}}
    text = json.dumps(value)
    text = rng.choice(CHARACTER_DAMAGE)(rng, text) if rng.random() < 0.4 else text
    score = verdicts.score(text if rng.random() < 0.7 or not isinstance(value, dict) else value)
    require(isinstance(json.dumps(score.to_dict()), str), "no JSON")
    if score.rejection is not None:
        _require_line(score.rejection.reason)
    return f"answer: {'correct' if score.correct else 'valid' if score.valid else score.rejection.stage}"  # type: ignore[union-attr]


def _transcript(rng: random.Random) -> str:
    """Check that a transcript replays, or is refused by the number of a false step."""
    problem = rng.choice(_played())
    episode = ScmEpisode(problem)
    for _ in range(2):
        episode.act(_action(rng, problem))
    listed: list[Any] = [
        {"action": dict(s.action), "reading": s.reading, "refused": s.refused, "cost": s.cost} for s in episode.steps
    ]
    is_false = rng.random() < 0.5
    if is_false:
        place = rng.randrange(len(listed))
        listed[place] = {**listed[place], rng.choice(("action", "reading", "cost", "x")): _value(rng, 2)}
    try:
        replayed = replay_answer(
            REPLAYSCM, problem, "" if rng.random() < 0.5 else _text(rng, problem), steps_of(listed)
        )
    except (CalibrantError, ActionError) as error:
        _require_line(str(error))
        return "transcript: refused"
    require(len(replayed.steps) >= 1, "no steps")
    return "transcript: replayed"


def _record(rng: random.Random) -> str:
    """Check that a record is an item, or one line that names its field."""
    record = json.loads(_record_text(rng.randrange(len(problems()))))
    for _ in range(rng.randrange(1, 3)):
        allowance = {
            "worlds": rng.choice(ATOMS),
            "rows": rng.choice((1, 2, 4)),
            "max_targets": rng.choice(ATOMS),
            "contexts": rng.choice(("all", "drawn", "chosen", 1)),
        }
        values = [_value(rng, 2), {"H1": _value(rng, 1)}, {"shared": _value(rng, 2)}, allowance]
        record[rng.choice(FIELDS)] = rng.choice(values)
    try:
        problem = REPLAYSCM.items.item_of_record(record)
    except CalibrantError as error:
        require("\n" not in str(error), "several lines")
        return "record: refused"
    require(problem_from_record(record_from_problem(problem)) == problem, "an item does not come back")
    return "record: an item"
