"""Interactive items: actions, episodes and their transcripts.

Actions are plain JSON from the terminal to the record, so that transcripts, players and replays work alike for every
benchmark. An action is untrusted until the episode that receives it has read it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from calibrant.dsl.errors import CalibrantError, in_one_line, short_repr
from calibrant.dsl.json_objects import decode, json_objects

# --- Actions: JSON objects with one verb, such as {"place": "A"}, {"set": "density", "value": 20}, {"submit": {...}}
Action: TypeAlias = Mapping[str, Any]


class ActionError(CalibrantError):
    """An invalid action; the message states in one line what is expected."""


def verb_of(action: object, verbs: Mapping[str, frozenset[str]]) -> str:
    """Return the verb of an action, one of `verbs`.

    `ActionError` if it has none or several verbs, or other keys than its verb requires.

    verbs: verb -> further required keys, e.g. {"set": frozenset({"value"})}
    """
    if not isinstance(action, Mapping):
        raise ActionError(f"expected a JSON object with one of {_quote_verbs(verbs)}, found {short_repr(action)}")
    present_verbs = [key for key in action if key in verbs]
    if len(present_verbs) != 1:
        problem = "no verb" if not present_verbs else "several verbs"
        raise ActionError(f"{problem} in {short_repr(dict(action))}; expected exactly one of {_quote_verbs(verbs)}")
    (verb,) = present_verbs
    if action.keys() != {verb} | verbs[verb]:
        keys = ", ".join(sorted({verb} | verbs[verb]))
        raise ActionError(f"'{verb}' takes the keys {keys}; found {short_repr(dict(action))}")
    return str(verb)


def action_of_text(text: str) -> dict[str, Any]:
    """Parse a line as a JSON object.

    `ActionError` for anything else. Linear time, bounded nesting.
    """
    try:
        value = decode(text.strip())
    except ValueError as error:
        raise ActionError(f"expected a JSON object, found {short_repr(text.strip())}: {error}") from None
    if not isinstance(value, dict):
        raise ActionError(f"expected a JSON object, found {short_repr(value)}")
    return value


def sole_action(text: str) -> Action:
    """Return the one JSON object in a reply; `ActionError` if there is none, or several that differ."""
    actions: list[dict[str, Any]] = []
    end = 0
    for json_object in json_objects(text):
        if json_object.start >= end:
            actions.append(json_object.value)
            end = json_object.end
    if not actions:
        raise ActionError(f"expected a JSON object, found {short_repr(text)}")
    if any(action != actions[0] for action in actions):
        raise ActionError("several actions; a reply carries one")
    return actions[0]


def _quote_verbs(verbs: Mapping[str, frozenset[str]]) -> str:
    return ", ".join(f"'{verb}'" for verb in verbs)


# --- Interactive items: an episode answers actions one by one; its answers are a transcript that can be replayed ------
T_co = TypeVar("T_co", covariant=True)
R_co = TypeVar("R_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Step(Generic[R_co]):
    """One action and its result.

    reading: what the system showed; None for a refusal or a submission
    refused: reason of a refusal; empty if the action was carried out
    cost: amount taken from the item's allowance
    """

    action: Action
    reading: R_co | None
    refused: str = ""
    cost: int = 0

    def __repr__(self) -> str:
        reaction = f"refused: {in_one_line(self.refused)[:60]}" if self.refused else short_repr(self.reading)
        return f"<Step {short_repr(self.action)}: {reaction}>"


class Episode(Protocol[T_co, R_co]):
    """One run of an interactive item; the sealed part is used only inside `act`.

    task: the public part of the item
    steps: the steps so far, oldest first; the first may be a reading that the episode begins with
    left: remaining allowance
    closed: whether it is over: a submission was accepted, or the allowance ran out
    """

    @property
    def task(self) -> T_co: ...
    @property
    def steps(self) -> Sequence[Step[R_co]]: ...
    @property
    def left(self) -> int: ...
    @property
    def closed(self) -> bool: ...

    def act(self, action: Action) -> Step[R_co]:
        """Carry out an action or refuse it; never raises, whatever the action is."""
        ...


class TranscriptError(CalibrantError):
    """A recorded step differs from the item's response; number: index of the step, from 0."""

    def __init__(self, number: int, problem: str) -> None:
        self.number = number
        super().__init__(f"step {number}: {problem}")


E = TypeVar("E", bound=Episode[Any, Any])


def replay_actions(fresh: E, actions: Iterable[Action]) -> E:
    """Carry out actions in a fresh episode, without checks; return it."""
    for action in actions:
        fresh.act(action)
    return fresh


def replay_transcript(fresh: E, recorded: Sequence[Step[Any]]) -> E:
    """Replay a transcript in a fresh episode and return that episode.

    `TranscriptError` names the first step whose reading, refusal or cost differs; or the action of a step with which
    the episode begins.
    """
    opening = len(fresh.steps)
    if len(recorded) < opening:
        raise TranscriptError(len(recorded), f"missing; the episode begins with {opening} step(s) of its own")
    for index, step in enumerate(recorded):
        true = fresh.steps[index] if index < opening else fresh.act(step.action)
        _compare(index, step, true)
    return fresh


def _compare(index: int, recorded: Step[Any], true: Step[Any]) -> None:
    if dict(recorded.action) != dict(true.action):
        raise TranscriptError(
            index, f"action {short_repr(dict(recorded.action))} recorded, was {short_repr(dict(true.action))}"
        )
    if type(recorded.reading) is not type(true.reading) or recorded.reading != true.reading:
        raise TranscriptError(index, f"reading {short_repr(recorded.reading)} recorded, was {short_repr(true.reading)}")
    if bool(recorded.refused) != bool(true.refused):
        recorded_outcome, actual_outcome = (
            ("refused", "carried out") if recorded.refused else ("carried out", "refused")
        )
        raise TranscriptError(index, f"recorded as {recorded_outcome}, was {actual_outcome}")
    if recorded.cost != true.cost:
        raise TranscriptError(index, f"cost {short_repr(recorded.cost)} recorded, was {true.cost}")
