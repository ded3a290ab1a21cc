"""Agents of blicket episodes, and the environment of the public text game."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from random import Random
from typing import Any, Protocol

import msgspec

from calibrant.baselines.blickets.context import Scorer, deterministic_scorer, first_firings
from calibrant.baselines.blickets.dialogue import BASE, ActionStyle, Dialogue, Prompting
from calibrant.baselines.blickets.rows import GRID, PRESETS, SIMPLE, ExplorationStrategy, GridAgent, Revise, Stop
from calibrant.bench.blickets.paper import PlayedEpisode
from calibrant.bench.blickets.scoring import is_right
from calibrant.bench.core.capabilities import PlayedReplies
from calibrant.bench.episodes import TextEpisode
from calibrant.dsl.answer_text import Thoughts
from calibrant.dsl.blickets.episode import BlicketEpisode
from calibrant.dsl.blickets.generation import SUITES, sample_items
from calibrant.dsl.blickets.item import BlicketItem, Condition, SwitchBy, Task
from calibrant.dsl.blickets.score import grade
from calibrant.dsl.episode import Episode, Step
from calibrant.dsl.errors import CalibrantError, in_one_line, short_repr
from calibrant.solvers.blickets import learner as blickets_learner
from calibrant.solvers.blickets.chains import ChainLearner, ChainSpace
from calibrant.solvers.blickets.conditions import MAX_SWITCH, RELIABILITIES, DoubtSpace, NoiseSpace, OrderSpace
from calibrant.solvers.blickets.exact import MAX_CHOICES, UniversalSpace
from calibrant.solvers.blickets.space import StaticSpace


# --- All agents by name: exact learners, the grid of habits, its presets, and simple ones -----------------------------
class Agent(Protocol):
    """Plays an episode to its end; its moves depend only on the readings and the random generator."""

    @property
    def name(self) -> str: ...

    def play(self, episode: Episode[Task, str], rng: Random) -> None: ...


@dataclass(frozen=True, slots=True)
class LearnerAgent:
    """An exact learner that submits its answer, or its best guess if its class is refuted or the budget is spent.

    While submissions are refused it goes on moving.
    """

    name: str
    learner: Callable[[Task], blickets_learner.Learner]

    def play(self, episode: Episode[Task, str], rng: Random) -> None:
        blickets_learner.conclude_episode(episode, self.learner)


@dataclass(frozen=True, slots=True)
class DrawingLearner:
    """Agent of a learner that breaks ties among configurations at random."""

    name: str
    learner: Callable[[Task, Random], blickets_learner.Learner]

    def play(self, episode: Episode[Task, str], rng: Random) -> None:
        blickets_learner.conclude_episode(episode, lambda task: self.learner(task, rng))


_SPACES: dict[str, Callable[[Task], blickets_learner.Revisable]] = {
    "static": lambda task: StaticSpace.full(task.n),
    "noise-aware": lambda task: NoiseSpace.full(task.n),
    "maybe-noise": lambda task: DoubtSpace.full(task.n),
    "order-aware": lambda task: OrderSpace.full(task.n, task.order_reading),
    "universal": lambda task: UniversalSpace.full(task.n, task.count, task.order_reading),
}


def _greedy(name: str, family: str, delta: float = blickets_learner.DELTA) -> LearnerAgent:
    return LearnerAgent(name, lambda task: blickets_learner.Greedy(task, _SPACES[family](task), delta))


def _drawing(name: str, family: str, delta: float = blickets_learner.DELTA) -> DrawingLearner:
    return DrawingLearner(name, lambda task, ties: blickets_learner.Greedy(task, _SPACES[family](task), delta, ties))


def _chains(
    task: Task, switches: int, by: SwitchBy = SwitchBy.ACTIVATIONS, levels: tuple[float, ...] = (1.0,)
) -> blickets_learner.Learner:
    last = MAX_SWITCH if by is SwitchBy.ACTIVATIONS else min(max(1, task.budget - 1), MAX_CHOICES)
    return ChainLearner(task, ChainSpace.full(task.n, switches, last, count_by=task.count, switch_by=by, levels=levels))


LEARNERS = (
    LearnerAgent("static", blickets_learner.Static),
    LearnerAgent("switch-aware", blickets_learner.SwitchAware),
    LearnerAgent("seek", blickets_learner.Seek),
    *(_greedy(family, family) for family in _SPACES if family != "static"),
    LearnerAgent("switches-aware", lambda task: _chains(task, 2)),
    LearnerAgent("moves-aware", lambda task: _chains(task, 1, SwitchBy.STEPS)),
    LearnerAgent("noisy-switch-aware", lambda task: _chains(task, 1, levels=RELIABILITIES)),
)
AT_RANDOM = (  # the same with random ties, to measure their effect
    DrawingLearner("switch-aware-at-random", lambda task, ties: blickets_learner.SwitchAware(task, ties=ties)),
    *(_drawing(f"{family}-at-random", family) for family in _SPACES),
)

_NAMED: tuple[Agent, ...] = (*LEARNERS, *AT_RANDOM, *GRID, *SIMPLE)
AGENTS: dict[str, Agent] = {agent.name: agent for agent in _NAMED} | dict(PRESETS)


_CONFIRMING = re.compile(r"(\w+)/(\w+)/confirm-([1-9]\d?)")
_SURE = re.compile(r"([a-z-]+?)(-at-random)?@(0\.\d{1,6})")  # a greedy learner that answers at 1 - delta


def agent(name: str) -> Agent:
    """Return the agent of a name, also FORM/FORM/confirm-N, and greedy learners NAME@P that answer at probability P.

    `CalibrantError` for an unknown name lists the agents.
    """
    if name in AGENTS:
        return AGENTS[name]
    sure = _SURE.fullmatch(name)
    if sure is not None and sure[1] in _SPACES and float(sure[3]):
        return (_drawing if sure[2] else _greedy)(name, sure[1], float(sure[3]))
    confirming = _CONFIRMING.fullmatch(name)
    if confirming is None or confirming[1] not in list(ExplorationStrategy) or confirming[2] not in list(Revise):
        raise CalibrantError(
            f"unknown agent {short_repr(name)}; known: {', '.join(AGENTS)}; "
            "confirm-k for any k below 100; LEARNER@DELTA"
        )
    return GridAgent(ExplorationStrategy(confirming[1]), Revise(confirming[2]), Stop.CONFIRM, int(confirming[3]))


def learner_for(task: Task) -> str:
    """Return the name of the exact learner of the task's condition; of the mixture if the task states none."""
    match task.condition:
        case None:
            return "universal"
        case Condition.NOISY_MODERATOR:
            return "noisy-switch-aware"
        case Condition.CONJUNCTIVE | Condition.DISJUNCTIVE:
            return "static"
        case Condition.MODERATOR:
            return "switch-aware"
        case Condition.ORDER:
            return "order-aware"
        case Condition.STOCHASTIC:
            return "noise-aware"


def firings(player: Agent, task: Task, steps: Sequence[Step[str]]) -> dict[str, int] | None:
    """Return dynamic behaviour -> moves until it fired, for an agent that has them.

    None for other agents.
    """
    watches = isinstance(player, GridAgent) and player.revise is Revise.DB
    return first_firings(task, steps) if watches else None


def play_agent(name: str, suite: str, episodes: int, seed: int) -> Iterator[PlayedEpisode]:
    """Play the first `episodes` items of a suite and seed by an agent; yield graded episodes.

    Equal arguments give equal episodes, in any process.
    """
    player = agent(name)
    for index, item in enumerate(islice(sample_items(SUITES[suite], seed), episodes)):
        episode = BlicketEpisode(item)
        player.play(episode, Random(f"{seed} {name} {suite} {index}"))
        fired = firings(player, item.task, episode.steps)
        yield PlayedEpisode(name, item, grade(item, episode.steps), None if fired is None else "DB4" in fired, suite)


# --- Items as text environments: a model's replies are played as moves, one a turn ------------------------------------
def text_episode(
    item: BlicketItem,
    prompting: Prompting = BASE,
    scorer: Scorer = deterministic_scorer,
    actions: ActionStyle = "named",
    thoughts: Thoughts = "strip",
) -> TextEpisode:
    """Return an item as an environment: reward 1 for a correct answer, else 0.

    actions: `numbered` lists the moves with numbers, which replies may use
    The score has, as `unread`, the share of replies without an action.

    An episode ends open if its turns are spent on replies without an action: the score then has `closed`
    false, and `correct` is null.
    """
    opened: list[Dialogue] = []

    def open_dialogue() -> Dialogue:
        opened[:] = [Dialogue(BlicketEpisode(item), prompting, scorer, actions, thoughts)]
        return opened[0]

    def score(steps: Sequence[Step[Any]]) -> dict[str, Any]:
        return grade(item, steps).as_json(item.task.objects) | {"unread": opened[0].unread_share}

    return TextEpisode(open_dialogue, score, reward_of_answer)


def reward_of_answer(score: Mapping[str, Any]) -> float:
    """Return 1 for a correct answer, 0 for a wrong or missing one and for a timeout."""
    return float(is_right(score))


class ReplyOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Options of a dialogue that decide the effect of a reply; prompting has none."""

    actions: ActionStyle = "named"


def play_replies(
    item: BlicketItem, replies: Sequence[Any], raw_options: Mapping[str, Any], thoughts: Thoughts = "strip"
) -> PlayedReplies:
    """Play one reply a turn; `CalibrantError` for unknown options and for replies after the end."""
    try:
        options = msgspec.convert(raw_options, ReplyOptions)
    except msgspec.ValidationError as error:
        raise CalibrantError(f"dialogue: {in_one_line(str(error))}; known: actions named or numbered") from None
    dialogue = Dialogue(BlicketEpisode(item), BASE, actions=options.actions, thoughts=thoughts)
    for index, reply in enumerate(replies):
        if dialogue.closed:
            raise CalibrantError(f"reply {index} of {len(replies)} comes after the end of the episode")
        dialogue.take_text(json.dumps(reply) if isinstance(reply, Mapping) else reply)
    unread = sum(turn.step is None for turn in dialogue.turns)
    totals = {"replies": len(replies), "unread": unread, "unread_share": dialogue.unread_share}
    return PlayedReplies(dialogue.episode.steps, totals)
