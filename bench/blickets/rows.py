"""Methods of the extended blickets: exact learners, the paper's agents as habits, and simple baselines.

Before the first move objects are indistinguishable, so a method's first choice is arbitrary, and its success depends on
the order of objects. The presentation sorts objects by their roles, and shuffles them with a seed that depends on the
roles alone: all renamings of a detector are presented in one order, which reveals nothing of the roles.
"""

from __future__ import annotations

import re
from functools import partial
from hashlib import sha256
from random import Random
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import msgspec

from calibrant.bench.protocols import Outcome, Presentation, Protocol, ProtocolResult, replace_words
from calibrant.dsl.blickets.item import BlicketItem, object_role, reorder_objects

if TYPE_CHECKING:
    from calibrant.bench.blickets.agents import Agent
    from calibrant.dsl.blickets.item import Task
    from calibrant.dsl.episode import Episode


class AgentRow(Protocol, frozen=True):
    """Base of the methods: an agent plays, and its submission is the answer.

    agent: name of the agent, by default that of the method
    """

    reads_canonical = True
    agent: ClassVar[str] = ""

    def player(self, task: Task) -> Agent:
        """Return the agent that plays items of this task."""
        from calibrant.bench.blickets.agents import agent

        return agent(self.agent or self.name)

    def generator(self, task: Task) -> Random:
        """Return the random generator, seeded by the task alone: nothing else of an item may decide samples."""
        return Random(f"{self.name} {task.objects} {task.budget}")

    def answer(self, episode: Episode[Task, str]) -> ProtocolResult:
        """Play an episode to its answer; the provenance has the behaviours that fired, with the moves until then."""
        from calibrant.bench.blickets.agents import firings

        player = self.player(episode.task)
        player.play(episode, self.generator(episode.task))
        fired = firings(player, episode.task, episode.steps)
        provenance: dict[str, Any] = {} if fired is None else {"fired": fired}
        submitted = next(
            (dict(s.action["check"]) for s in episode.steps if "check" in s.action and not s.refused), None
        )
        outcome: Outcome = "out_of_budget" if submitted is None else "found"
        if submitted is None:
            provenance["reached"] = (
                f"no answer submitted in {episode.task.budget - episode.left} of {episode.task.budget} moves"
            )
        return ProtocolResult(outcome, submitted, provenance=provenance)


class Exact(AgentRow, frozen=True):
    """The exact learner of the condition where the item tells it, else of the mixture of all of them."""

    name = "exact"

    def player(self, task: Task) -> Agent:
        from calibrant.bench.blickets.agents import agent, learner_for

        return agent(learner_for(task))

    def class_in_words(self, task: Task) -> str:
        if task.condition is None:  # attributions know the item's condition
            return "the mixture of all conditions, since the task states none"
        return f"the condition {task.condition}, which the task states"


class Static(AgentRow, frozen=True):
    """Exact, for a detector with one rule that never changes."""

    name = "static"


class SwitchAware(AgentRow, frozen=True):
    """Exact, for a rule that may switch once; probes silently until it has not."""

    name = "switch-aware"


class Seek(AgentRow, frozen=True):
    """As switch-aware, and farms activations until the switch has most probably come."""

    name = "seek"


class NoiseAware(AgentRow, frozen=True):
    """Exact, for an unreliable detector; answers at 99 % belief."""

    name = "noise-aware"


class OrderAware(AgentRow, frozen=True):
    """Exact, for an order of placement that matters."""

    name = "order-aware"


class SwitchesAware(AgentRow, frozen=True):
    """Exact, for two switches by activations, to a rule that differs from the one before."""

    name = "switches-aware"


class MovesAware(AgentRow, frozen=True):
    """Exact, for one switch after some number of moves; answers at 99 % belief, so mostly after it."""

    name = "moves-aware"


class NoisySwitchAware(AgentRow, frozen=True):
    """Exact, for one switch by activations on an unreliable detector; answers at 99 % belief."""

    name = "noisy-switch-aware"


class Universal(AgentRow, frozen=True):
    """The mixture of all conditions, equally likely beforehand."""

    name = "universal"


class Base(AgentRow, frozen=True):
    """The paper's Base as habits: random exploration, no revision, one confirmation."""

    name = "base"


class ContextGraph(AgentRow, frozen=True):
    """The paper's CG as habits: its script, evidence since the last contradiction, confirmations."""

    name = "cg"


class DynamicBehaviours(AgentRow, frozen=True):
    """The paper's CG+DB as habits: its script, its monitors, confirmations."""

    name = "cg+db"


class Grid(AgentRow, frozen=True):
    """One agent of the grid of habits.

    explore, revise, stop: the habits; confirmations: how many there are before it answers, for stop=confirm
    """

    name = "grid"
    explore: Literal["random", "script", "greedy"] = "greedy"
    revise: Literal["none", "suffix", "db"] = "suffix"
    stop: Literal["resolve", "confirm", "silent"] = "confirm"
    confirmations: Annotated[int, msgspec.Meta(ge=1, le=99)] = 2

    def player(self, task: Task) -> Agent:
        from calibrant.bench.blickets.agents import agent

        stop = f"confirm-{self.confirmations}" if self.stop == "confirm" else self.stop
        return agent(f"{self.explore}/{self.revise}/{stop}")


class RandomRow(AgentRow, frozen=True):
    """Ten random toggles, then a random rule that fits.

    seed: together with the task it decides the draws
    """

    name = "random"
    seed: int = 0

    def generator(self, task: Task) -> Random:
        return Random(f"{self.name} {self.seed} {task.objects} {task.budget}")


class Quiet(AgentRow, frozen=True):
    """Stops at the first activation, and states the first rule that fits."""

    name = "quiet"


class Copy(AgentRow, frozen=True):
    """The last active set as a conjunction."""

    name = "copy"


class Abstain(AgentRow, frozen=True):
    """Does not look, and answers with the first rule."""

    name = "abstain"


_AWARE = (SwitchAware, Seek, NoiseAware, OrderAware, SwitchesAware, MovesAware, NoisySwitchAware)
LEARNERS = (Exact, Static, *_AWARE, Universal)
ROWS = (*LEARNERS, Base, ContextGraph, DynamicBehaviours, Grid, RandomRow, Quiet, Copy, Abstain)


# --- Canonical presentation of detectors: objects in an order that neither their names nor the item's order decides
_NAME = re.compile(r"\bO[0-9]+\b")


def present(item: BlicketItem) -> Presentation:
    """Return an item with objects O1, O2, ... in the order of its presentation."""
    num_objects = item.task.n
    names = [f"O{number}" for number in range(1, num_objects + 1)]
    by_role = sorted(range(num_objects), key=lambda index: object_role(item, index))
    canonical = reorder_objects(item, by_role, names)
    content = repr((canonical.condition, canonical.task, canonical.sealed.mechanisms, canonical.sealed.switches))
    # an empty start is left out: every rule predicts its reading, so it must not change the order
    content += repr((canonical.sealed.noise_seed, canonical.sealed.draws, canonical.sealed.start_on or None))
    shuffled = Random(sha256(content.encode()).hexdigest()).sample(range(num_objects), num_objects)
    order = [by_role[place] for place in shuffled]
    objects = {name: item.task.objects[index] for name, index in zip(names, order, strict=True)}
    restore = partial(replace_words, word=_NAME, names=objects)
    return Presentation(reorder_objects(item, order, names), restore)
