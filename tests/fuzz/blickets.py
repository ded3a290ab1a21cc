"""Replies, actions, traces, logs and items of the blickets, damaged or made up: a verdict or one line for each."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from functools import cache
from itertools import islice
from typing import Any

import msgspec

from calibrant.baselines.blickets.dialogue import BASE, CG, CG_DB, Dialogue, read_reply
from calibrant.bench.lab.speed.blickets import text_log, toggles
from calibrant.dsl.blickets.episode import BlicketEpisode, check_trace, trace_from_line, trace_line, trace_of
from calibrant.dsl.blickets.generation import SUITES, sample_items
from calibrant.dsl.blickets.item import BlicketItem, all_rules
from calibrant.dsl.blickets.records import ItemRecord, item_from_record, record_from_item
from calibrant.dsl.blickets.reference import run
from calibrant.dsl.blickets.replies import text_runs
from calibrant.dsl.blickets.score import grade
from calibrant.dsl.errors import MAX_MESSAGE_CHARS, CalibrantError
from calibrant.dsl.records import decode_line
from tests.fuzz.corruption import CHARACTER_DAMAGE, JUNK, damaged
from tests.oracles.independent import require

PIECES = (
    "ACTION: place A\n", "ACTION: remove B\n", "ACTION: check disjunctive {C}\n", 'ACTION: {"place": "D"}\n',
    'ACTION: {"check": {"rule": "conjunctive", "blickets": ["A", "B"]}}\n', "TRANSITION: COMBINATION_TESTING\n",
    "TRANSITION: VERIFICATION\n", "TRANSITION: SUBMIT\n", "REASONING: so\n", "REASONING:", "ACTION:", "TRANSITION:",
    "action :", "**ACTION:**", "\n", " ", "place A", "{", "}", "[", '"', "\\", "```json", "```", "\0", "\ud800", "é",
    "{" * 700, "1" * 5_000,
)  # fmt: skip
NUM_REPLIES, NUM_ACTIONS = 3, 6
KEYS = ("place", "remove", "check", "start", "submit", "")


def case(rng: random.Random) -> str:
    """One input of a kind drawn by the generator; the outcome tells the kind and what became of it."""
    kind: Callable[[random.Random], str] = rng.choices(
        [_reply, _actions, _trace, _log, _item], weights=[6, 6, 2, 1, 1]
    )[0]
    return kind(rng)


@cache
def items() -> tuple[BlicketItem, ...]:
    """Return some items of every suite."""
    return tuple(item for plan in SUITES.values() for item in islice(sample_items(plan, 1), 2))


# --- replies and actions ----------------------------------------------------------------------------------------------


def _reply(rng: random.Random) -> str:
    item = rng.choice(items())
    dialogue = Dialogue(BlicketEpisode(item), rng.choice([BASE, CG, CG_DB]))
    outcomes = set()
    for _ in range(NUM_REPLIES):
        if dialogue.closed:
            break
        said = rng.choice(JUNK) if rng.random() < 0.05 else _text(rng)
        turn = dialogue.take_text(said)
        require(all(_is_line(problem) for problem in turn.problems), "a problem of more than a line")
        require(bool(turn.step or turn.transition or turn.problems), "a reply without consequence")
        outcomes.add("acted" if turn.step and not turn.step.refused else "refused" if turn.step else "no action")
        action = read_reply(said, item.task.objects).action
        require((turn.step is None) == (action is None), "an action that was not read was taken")
    grade(item, dialogue.episode.steps)
    return f"reply {'acted' if 'acted' in outcomes else min(outcomes)}"


def _text(rng: random.Random) -> str:
    text = "".join(rng.choices(PIECES, k=rng.randrange(5)))
    return rng.choice(CHARACTER_DAMAGE)(rng, text) if rng.random() < 0.5 else text


def _actions(rng: random.Random) -> str:
    item = rng.choice(items())
    actions: list[Any] = [_action(rng, item.task.objects) for _ in range(NUM_ACTIONS)]
    episode = BlicketEpisode(item)
    for action in actions:
        step = episode.act(action)
        require(_is_line(step.refused), "a refusal of more than a line")
    moments = run(item, actions).moments
    ours = [(step.reading, bool(step.refused), step.cost) for step in episode.steps]
    require(ours == [(m.reading, bool(m.refused), m.cost) for m in moments], "not what the reference answers")
    found = grade(item, episode.steps)
    require(found.correct is not False or bool(found.faults), "a wrong answer without a fault")
    return f"actions {found.ending}"


def _action(rng: random.Random, objects: Sequence[str]) -> Any:
    match rng.randrange(6):
        case 0:
            return {rng.choice(KEYS): rng.choice(JUNK)}
        case 1:
            return rng.choice(JUNK)
        case 2:
            stated = {"rule": rng.choice(["conjunctive", "disjunctive"]), "blickets": rng.sample(objects, 2)}
            return damaged(rng, {"check": stated}) if rng.random() < 0.8 else {"check": stated}
        case _:
            return {rng.choice(KEYS[:2]): rng.choice(objects)}


# --- lines of files ---------------------------------------------------------------------------------------------------


@cache
def _traces() -> tuple[tuple[BlicketItem, str], ...]:
    made = []
    for item in items():
        episode = BlicketEpisode(item)
        for action in toggles(item.task.objects, 12, random.Random(item.id)):
            episode.act(action)
        episode.act({"check": {"rule": "conjunctive", "blickets": list(item.task.objects[:2])}})
        made.append((item, trace_line(trace_of(item, "fuzz", episode.steps))))
    return tuple(made)


def _trace(rng: random.Random) -> str:
    item, line = rng.choice(_traces())

    def read(text: str) -> None:
        trace = trace_from_line(text)
        check_trace(trace, item)
        require(trace_from_line(trace_line(trace)) == trace, "a trace that is not read back")

    return _line(rng, "trace", line, read)


@cache
def _logs() -> tuple[str, ...]:
    rng = random.Random(5)
    return tuple(text_log(rng.choice(all_rules(8)), 6, rng) for _ in range(20))


def _log(rng: random.Random) -> str:
    return _line(rng, "log", rng.choice(_logs()), lambda text: list(text_runs([text])))


def _item(rng: random.Random) -> str:
    def read(text: str) -> None:
        item = item_from_record(decode_line(text, ItemRecord))
        require(item_from_record(record_from_item(item)) == item, "an item that is not written back")

    line = json.dumps(msgspec.to_builtins(record_from_item(rng.choice(items()))))
    return _line(rng, "item", line, read)


def _line(rng: random.Random, kind: str, line: str, read: Callable[[str], object]) -> str:
    """Read a damaged line; it may be refused in a line."""
    of_text = rng.random() < 0.5
    try:
        read(rng.choice(CHARACTER_DAMAGE)(rng, line) if of_text else json.dumps(damaged(rng, json.loads(line))))
    except CalibrantError as error:
        require(_is_line(str(error)), f"a refusal of more than a line: {str(error)[:200]}")
        return f"{kind} refused"
    return f"{kind} read"


def _is_line(text: str) -> bool:
    return len(text) <= 2 * MAX_MESSAGE_CHARS and not any(c in text for c in "\n\r\0")
