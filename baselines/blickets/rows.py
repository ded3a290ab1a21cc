"""Rows that show what a figure is worth: agents that hardly look, or that have one trick."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import TypeAlias

from calibrant.baselines.blickets.context import EpisodeMemory
from calibrant.baselines.blickets.grid import ExplorationScript
from calibrant.dsl.blickets.item import Form, Rule, Task, all_rules
from calibrant.dsl.blickets.reference import ACTIVE, INACTIVE
from calibrant.dsl.episode import Episode
from calibrant.solvers.blickets.space import StaticSpace

MOVES = 10  # of the rows that look around at random

BlicketEpisode: TypeAlias = Episode[Task, str]


@dataclass(frozen=True, slots=True)
class SimpleAgent:
    """A name and what it does in an episode; all of it depends on the generator that it is given."""

    name: str
    play: Callable[[BlicketEpisode, Random], None]


def play_random(episode: BlicketEpisode, rng: Random) -> None:
    """Make MOVES random toggles, then submit a random rule of those that fit; of all rules if none does."""
    memory = _looked_around(episode, rng)
    space = StaticSpace.full(episode.task.n)
    for placed, active in memory.observations:
        space = space.after(placed, ACTIVE if active else INACTIVE)
    _submit(episode, memory, rng.choice(list(space.verdicts()) or all_rules(episode.task.n)))


def play_copy(episode: BlicketEpisode, rng: Random) -> None:
    """Make MOVES random toggles, then submit the last set that was ACTIVE as a conjunction; all objects if none was."""
    memory = _looked_around(episode, rng)
    everything = (1 << episode.task.n) - 1
    last = next((o.present for o in reversed(memory.observations) if o.active and o.placed), everything)
    _submit(episode, memory, Rule(Form.CONJUNCTIVE, last))


def play_quiet(episode: BlicketEpisode, rng: Random) -> None:
    """Single objects, pairs, triples until the first ACTIVE reading, then the first rule that fits."""
    memory = _open_notebook(episode)
    script = ExplorationScript(episode.task.n)
    while episode.left and not memory.activations:
        _toggle(episode, memory, script.next_toggle(memory.present))
    space = StaticSpace.full(episode.task.n)
    for placed, active in memory.observations:
        space = space.after(placed, ACTIVE if active else INACTIVE)
    _submit(episode, memory, next(iter(space.verdicts()), all_rules(episode.task.n)[0]))


def play_abstain(episode: BlicketEpisode, rng: Random) -> None:
    """Nothing at all: no move and no answer."""


SIMPLE = (
    SimpleAgent("random", play_random),
    SimpleAgent("quiet", play_quiet),
    SimpleAgent("abstain", play_abstain),
    SimpleAgent("copy", play_copy),
)


def _open_notebook(episode: BlicketEpisode) -> EpisodeMemory:
    memory = EpisodeMemory(episode.task)
    for step in episode.steps:
        memory.note(step)
    return memory


def _looked_around(episode: BlicketEpisode, rng: Random) -> EpisodeMemory:
    memory = _open_notebook(episode)
    for _ in range(min(MOVES, episode.left)):
        _toggle(episode, memory, rng.randrange(episode.task.n))
    return memory


def _toggle(episode: BlicketEpisode, memory: EpisodeMemory, index: int) -> None:
    verb = "remove" if index in memory.placed else "place"
    memory.note(episode.act({verb: episode.task.objects[index]}))


def _submit(episode: BlicketEpisode, memory: EpisodeMemory, rule: Rule) -> None:
    """Submit until it is accepted: some items refuse an answer that comes too early, and every refusal costs a move."""
    answer = rule.as_json(episode.task.objects)
    while not episode.closed:
        if episode.act({"check": answer}).refused and episode.left:
            _toggle(episode, memory, 0)
