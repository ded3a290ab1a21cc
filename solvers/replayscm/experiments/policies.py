"""Policies of an episode: ask for worlds greedily or at random, until nothing splits or the verdict is decided."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random
from typing import Protocol

from calibrant.dsl.episode import Episode
from calibrant.dsl.replayscm.episode import Reading, steps_evidence, task_class
from calibrant.dsl.replayscm.extensions.extension import Contexts
from calibrant.dsl.replayscm.extensions.reference import EvidenceWorld
from calibrant.dsl.replayscm.item import Task
from calibrant.solvers.replayscm.experiments.attribution import AskedWorlds, decide_behaviour
from calibrant.solvers.replayscm.experiments.greedy import WorldChooser
from calibrant.solvers.replayscm.noise.posterior import Posterior


def episode_evidence(episode: Episode[Task, Reading]) -> list[EvidenceWorld]:
    """Return the worlds that an episode has shown, the start first."""
    return steps_evidence(episode.steps)


class Policy(Protocol):
    """Chooses the next world to ask for."""

    def choose(self, worlds: Sequence[EvidenceWorld], posterior: Posterior) -> Mapping[str, int] | None:
        """Return the constants of the next world after these, None to ask for no more."""
        ...


class GreedyPolicy:
    """Asks for the world that is expected to leave least, until no candidate splits."""

    def __init__(self, chooser: WorldChooser) -> None:
        self._chooser = chooser

    def choose(self, worlds: Sequence[EvidenceWorld], posterior: Posterior) -> Mapping[str, int] | None:
        choice = self._chooser.choose(worlds)
        return None if choice is None else self._chooser.candidates[choice.place]


class RandomPolicy:
    """Asks for candidates in random order without repetition, until no candidate splits."""

    def __init__(self, chooser: WorldChooser, item_id: str) -> None:
        self._chooser = chooser
        self._item_id = item_id
        rng = Random(f"{item_id}|random")
        self._order = iter(rng.sample(chooser.candidates, len(chooser.candidates)))

    def choose(self, worlds: Sequence[EvidenceWorld], posterior: Posterior) -> Mapping[str, int] | None:
        # before each world, not after one that removed nothing: that one would be a world more than greedy's stop
        rng = Random(f"{self._item_id}|random|{len(worlds)}")
        return next(self._order, None) if self._chooser.has_split(worlds, posterior, rng) else None


POLICIES: Mapping[str, Callable[[WorldChooser, str], Policy]] = {
    "greedy": lambda chooser, item_id: GreedyPolicy(chooser),
    "random": RandomPolicy,
}


def play_worlds(episode: Episode[Task, Reading], policy_name: str, item_id: str) -> list[EvidenceWorld]:
    """Ask for worlds by a policy of POLICIES; return all evidence. The episode stays open for the submission."""
    if policy_name not in POLICIES:
        raise ValueError(f"unknown policy '{policy_name}'; known: {', '.join(POLICIES)}")
    task = episode.task
    scm_class = task_class(task)
    chooser = WorldChooser(task, scm_class, item_id)
    policy = POLICIES[policy_name](chooser, item_id)
    rng = Random(f"{item_id}|{policy_name}|contexts")
    verdict_worlds = stop_worlds(task)
    assert task.extension is not None
    allowance = task.extension.allowance
    assert allowance is not None
    worlds = episode_evidence(episode)
    posterior = Posterior(scm_class).condition(*worlds)
    while not episode.closed and episode.left > 0:
        # noise-free both policies end where nothing splits
        if not scm_class.noise.is_silent and is_settled(
            posterior, verdict_worlds, Random(f"{item_id}|stop|{len(worlds)}")
        ):
            break
        do = policy.choose(worlds, posterior)
        if do is None:
            break
        action: dict[str, object] = {"do": dict(do)}
        if allowance.contexts is Contexts.CHOSEN:
            action["contexts"] = list(_context_texts(chooser.contexts(rng)[0], len(scm_class.roots)))
        step = episode.act(action)
        if step.refused:
            raise ValueError(f"the action {action} was refused: {step.refused}")
        worlds = episode_evidence(episode)
        posterior = posterior.condition(worlds[-1])
    return worlds


def stop_worlds(task: Task) -> AskedWorlds:
    """Return the worlds whose clean behaviour settles an episode: those to forecast, else no and single constants.

    Held-out worlds of a map are not disclosed; single constants in all contexts show nearly every mechanism.
    """
    scm_class, extension = task_class(task), task.extension
    assert extension is not None
    if extension.forecast_worlds:
        return [
            (world.constants, [int(context[::-1] or "0", 2) for context in world.contexts])
            for world in extension.forecast_worlds
        ]
    every = range(min(1 << len(scm_class.roots), 16))
    singles = [({v: bit}, every) for v in scm_class.endogenous for bit in (0, 1)]
    return [({}, every), *singles]


def is_settled(posterior: Posterior, worlds: AskedWorlds, rng: Random) -> bool:
    """Return whether one clean behaviour of these worlds has the threshold's share; noise-free whether one is left."""
    if posterior.scm_class.noise.is_silent:
        # hidden variables: negation pairs members, so their number is never 1; the episode ends where nothing splits
        return posterior.num_members == 1 if not posterior.scm_class.hidden_parents else False
    return decide_behaviour(posterior, worlds, rng).is_decided


def _context_texts(contexts: Sequence[int], num_roots: int) -> Iterator[str]:
    for context in contexts:
        yield "".join(str(context >> i & 1) for i in range(num_roots))
