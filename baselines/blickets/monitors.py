"""Scorers of dynamic behaviours: a deterministic one, and one that asks a language model."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from calibrant.baselines.blickets.behaviours import BEHAVIOURS, Behaviour, firing
from calibrant.baselines.blickets.memory import EpisodeMemory, Observation
from calibrant.dsl.blickets.item import Task
from calibrant.dsl.blickets.rule import all_rules
from calibrant.dsl.episode import Step
from calibrant.dsl.item import Message, Model
from calibrant.solvers.blickets.space import activated_rules

HIGHEST = 10.0
CONFIRMATIONS = 2  # readings that a rule has to have got right before its failure says that it changed
LAST_MESSAGES = 5
MESSAGE_CHARACTERS = 300


@dataclass(frozen=True, slots=True)
class Situation:
    """State of an episode as a scorer sees it.

    state: name of the state that the agent is in, empty without a context graph
    messages: the last LAST_MESSAGES, each cut to MESSAGE_CHARACTERS
    """

    memory: EpisodeMemory
    state: str
    messages: tuple[Message, ...]


Scorer: TypeAlias = Callable[[Behaviour, Situation], float]  # from 0 to 10


class BehaviourScore(NamedTuple):
    """Score of a behaviour in one step, and whether the behaviour fired."""

    behaviour: Behaviour
    score: float
    fired: bool


class Watch:
    """The behaviours of one episode that have not fired yet."""

    def __init__(self, behaviours: Iterable[Behaviour], scorer: Scorer) -> None:
        self.waiting = list(behaviours)
        self.scorer = scorer

    def scores(self, situation: Situation) -> tuple[BehaviourScore, ...]:
        """Score those past their minimum; what fires is not scored again. `ValueError` for a score outside 0 to 10."""
        due = [b for b in self.waiting if situation.memory.moves >= b.minimum]
        scores = {b: _check_score(b, self.scorer(b, situation)) for b in due}
        fired = firing(scores)
        self.waiting = [b for b in self.waiting if b not in fired]
        return tuple(BehaviourScore(b, score, b in fired) for b, score in scores.items())


def _check_score(behaviour: Behaviour, score: float) -> float:
    if not 0 <= score <= HIGHEST:
        raise ValueError(f"{behaviour.name} was scored {score}; scores are from 0 to {HIGHEST:.0f}")
    return float(score)


def first_firings(task: Task, steps: Iterable[Step[str]]) -> dict[str, int]:
    """Behaviours that the deterministic scorer lets fire in an episode, by key, with the number of moves until then."""
    memory, watch = EpisodeMemory(task), Watch(BEHAVIOURS, deterministic)
    fired: dict[str, int] = {}
    for step in steps:
        memory.note(step)
        if step.cost:
            scores = watch.scores(Situation(memory, "", ()))
            fired |= {score.behaviour.key: memory.moves for score in scores if score.fired}
    return fired


# --- deterministic ----------------------------------------------------------------------------------------------------


def deterministic(behaviour: Behaviour, situation: Situation) -> float:
    """10 if the behaviour's condition holds in the readings so far, else 0."""
    memory = situation.memory
    return HIGHEST if _CONDITIONS[behaviour.key](memory.observations, memory.task.n) else 0.0


def never_active(observations: Sequence[Observation], _num_objects: int) -> bool:
    return not any(o.active for o in observations)


def order_made_a_difference(observations: Sequence[Observation], _num_objects: int) -> bool:
    """Return whether one set, placed in two orders, gave different readings."""
    orders: dict[int, tuple[set[tuple[int, ...]], set[tuple[int, ...]]]] = {}
    for observation in observations:
        orders.setdefault(observation.present, (set(), set()))[observation.active].add(observation.placed)
    return any(off and on and len(off | on) > 1 for off, on in orders.values())


def repetition_made_a_difference(observations: Sequence[Observation], _num_objects: int) -> bool:
    """Return whether the same objects, placed in the same order, gave different readings."""
    first: dict[tuple[int, ...], bool] = {}
    return any(first.setdefault(placed, active) != active for placed, active in observations)


def confirmed_rule_failed(observations: Sequence[Observation], num_objects: int) -> bool:
    """Return whether a rule got CONFIRMATIONS readings right after it was the only one left, and then one wrong.

    What is left is counted among all rules over any set; after a reading that nothing explains, from that reading on.
    """
    satisfied = activated_rules(num_objects)
    everything = candidates = (1 << len(all_rules(num_objects))) - 1
    right = 0
    for observation in observations:
        active = satisfied[observation.present]
        fitting = active if observation.active else everything & ~active
        settled = candidates.bit_count() == 1
        candidates &= fitting
        if candidates:
            right += settled
        elif right >= CONFIRMATIONS:
            return True
        else:
            candidates, right = fitting, 0
    return False


_CONDITIONS: dict[str, Callable[[Sequence[Observation], int], bool]] = {
    "DB1": never_active,
    "DB2": order_made_a_difference,
    "DB3": repetition_made_a_difference,
    "DB4": confirmed_rule_failed,
}

# --- by a language model ----------------------------------------------------------------------------------------------

_NUMBER = re.compile(r"(?<![\d.])(10(?:\.0{1,9})?|\d(?:\.\d{1,9})?)(?![\d.]*\d)")


class UnreadableScoreError(ValueError):
    """A model that was asked for a score gave none that can be read."""


def scored_by(model: Model) -> Scorer:
    """Return a scorer that shows a model the last messages, the state and a summary, and reads the number of its reply.

    `UnreadableScoreError` if the reply is not exactly one number from 0 to 10, with or without words around it.
    """

    def score(behaviour: Behaviour, situation: Situation) -> float:
        response: object = model(_question(behaviour, situation))
        numbers = _NUMBER.findall(response) if isinstance(response, str) else []
        if len(set(numbers)) != 1:
            raise UnreadableScoreError(f"{behaviour.name}: expected one number from 0 to 10 in the reply")
        return float(numbers[0])

    return score


def _question(behaviour: Behaviour, situation: Situation) -> list[Message]:
    recent = "\n".join(f"[{message['role']}] {message['content']}" for message in situation.messages)
    text = "\n".join(
        (
            "You are watching an agent that examines a detector. How well does this statement describe its episode?",
            f"Statement: {behaviour.condition}",
            f"State of the agent: {situation.state or 'none'}",
            f"So far: {situation.memory.summary()}",
            "Last messages:",
            recent,
            "Reply with one number from 0 (not at all) to 10 (certainly).",
        )
    )
    return [{"role": "user", "content": text}]
