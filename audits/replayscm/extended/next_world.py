"""Worlds to ask for next, of an item with noise, hidden variables or an episode, and what each would tell.

Few SCMs without noise are listed, and every candidate world with every reading of it; otherwise greedy's choice stands
with its estimate. Both work on the canonical form of the evidence, so that names and orders do not count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from random import Random
from typing import Any

import msgspec
import numpy as np

from calibrant.audits.replayscm.extended.drawn_scms import canonical_evidence
from calibrant.audits.why import Experiment, Outcome, experiment
from calibrant.dsl.replayscm.disclosure import natural
from calibrant.dsl.replayscm.episode import task_class
from calibrant.dsl.replayscm.extensions.extension import Allowance, Contexts, MechanismClass
from calibrant.dsl.replayscm.extensions.reference import EvidenceWorld
from calibrant.dsl.replayscm.item import Task
from calibrant.solvers.budget import BudgetSpent
from calibrant.solvers.replayscm.canonical import CanonicalTask
from calibrant.solvers.replayscm.experiments.candidates import MemberArrays
from calibrant.solvers.replayscm.experiments.greedy import WorldChooser
from calibrant.solvers.replayscm.experiments.shares import request_rows
from calibrant.solvers.replayscm.hidden.mass import count_members
from calibrant.solvers.replayscm.hidden.members import list_members, meaning
from calibrant.solvers.replayscm.noise.posterior import Posterior

MAX_LISTED = 500  # SCMs: 192 of 10 variables, under all 1,161 candidates, take 0.3 s of processor time
MAX_EXPERIMENTS = 12  # worlds that a page lists, the best first


class EstimatedWorld(msgspec.Struct, frozen=True, kw_only=True):
    """Greedy's next world, with an estimate of its value.

    action: as an episode takes it; share: expected share of the SCMs that is left, without noise
    bits: that its reading is expected to tell of the SCM, under noise
    """

    in_words: str
    action: dict[str, Any]
    share: float | None = None
    bits: float | None = None


@dataclass(frozen=True)
class NextWorlds:
    """Worlds to ask for next: experiments with all their outcomes, exact, or one estimated world; else neither.

    actions: of the experiments, in their order
    """

    experiments: tuple[Experiment, ...] = ()
    actions: tuple[dict[str, Any], ...] = ()
    estimate: EstimatedWorld | None = None


def next_worlds(task: Task, evidence: Sequence[EvidenceWorld]) -> NextWorlds:
    """Return what further worlds would tell after this evidence.

    A passive item is asked as an episode with one target would be, in as many contexts as its first world has.
    Neither is returned where no candidate tells SCMs apart, or a sum is out of budget.
    """
    extension = task.extension
    assert extension is not None
    if extension.allowance is None:
        rows = max((len(world.rows) for world in evidence), default=1)
        extension = replace(extension, allowance=Allowance(1, rows, 1, Contexts.CHOSEN))
    assert extension.allowance is not None
    canonical, worlds = canonical_evidence(replace(task, extension=extension), evidence)
    scm_class = task_class(canonical.task)
    posterior = Posterior(scm_class).condition(*worlds)
    chooser = WorldChooser(canonical.task, scm_class, "why")
    names = _Names(canonical, scm_class, task, extension.allowance)
    contexts = names.in_task_order(chooser.contexts(Random("why"))[0])
    try:
        is_listed = scm_class.noise.is_silent and extension.allowance.contexts is not Contexts.SAMPLED
        if is_listed and count_members(posterior) <= MAX_LISTED:
            return _list_experiments(posterior, chooser.candidates, contexts, names)
        choice = chooser.choose(worlds)
    except BudgetSpent:
        return NextWorlds()
    if choice is None:
        return NextWorlds()
    do = chooser.candidates[choice.place]
    value: dict[str, Any] = {"share": choice.value} if scm_class.noise.is_silent else {"bits": choice.value}
    estimate = EstimatedWorld(in_words=names.in_words(do, contexts), action=names.action(do, contexts), **value)
    return NextWorlds(estimate=estimate)


@dataclass(frozen=True)
class _Names:
    """Canonical worlds over the names and orders of the task."""

    canonical: CanonicalTask
    scm_class: MechanismClass
    task: Task
    allowance: Allowance

    def constants(self, do: Mapping[str, int]) -> dict[str, int]:
        restored = {self.canonical.names[variable]: bit for variable, bit in do.items()}
        return {variable: restored[variable] for variable in natural(restored)}

    @cached_property
    def root_places(self) -> list[int]:
        """The bit of each root of the task, in its order, in canonical contexts."""
        assert self.task.extension is not None
        names = self.canonical.canonical_names
        return [self.scm_class.roots.index(names[v]) for v in self.task.extension.roots]

    @cached_property
    def observed_places(self) -> list[int]:
        """The bit of each observed variable of the task, in its order, in canonical rows."""
        assert self.task.extension is not None
        names = self.canonical.canonical_names
        return [self.scm_class.observed.index(names[v]) for v in self.task.extension.variables]

    def contexts(self, contexts: Sequence[int]) -> list[str]:
        """Return contexts as texts, a character per root in the order of the task."""
        return ["".join(str(context >> place & 1) for place in self.root_places) for context in contexts]

    def in_task_order(self, contexts: Sequence[int]) -> list[int]:
        """Return contexts in the order in which an episode of the task shows them: the first root counts fastest."""
        return [
            context for _, context in sorted(zip((c[::-1] for c in self.contexts(contexts)), contexts, strict=True))
        ]

    def action(self, do: Mapping[str, int], contexts: Sequence[int]) -> dict[str, Any]:
        action: dict[str, Any] = {"do": self.constants(do)}
        if self.allowance.contexts is Contexts.CHOSEN:
            action["contexts"] = self.contexts(contexts)
        return action

    def in_words(self, do: Mapping[str, int], contexts: Sequence[int]) -> str:
        assignments = ", ".join(f"{variable} = {bit}" for variable, bit in self.constants(do).items())
        world = f"do({assignments})" if assignments else "No intervention"
        if self.allowance.contexts is not Contexts.CHOSEN or not self.scm_class.roots:
            return world
        assert self.task.extension is not None
        return f"{world}, {' '.join(self.task.extension.roots)} = {', '.join(self.contexts(contexts))}"

    def reading(self, words: Sequence[int]) -> str:
        """Return the rows of a reading, over the observed variables in the order of the task."""
        return " ".join("".join(str(word >> place & 1) for place in self.observed_places) for word in words)


def _list_experiments(
    posterior: Posterior, candidates: Sequence[Mapping[str, int]], contexts: Sequence[int], names: _Names
) -> NextWorlds:
    """Return the candidates that split the listed SCMs, those first that leave the fewest meanings at worst."""
    scm_class = posterior.scm_class
    scms = list_members(posterior, MAX_LISTED)
    if len(scms) < 2:
        return NextWorlds()
    hidden = tuple(scm_class.hidden_parents)
    meanings = [meaning(scm, hidden) for scm in scms]
    members, rated = MemberArrays(scm_class, scms), []
    for place, do in enumerate(candidates):
        rows = request_rows(scm_class, do, contexts)
        words, targets = (np.array(column, np.uint64) for column in zip(*rows, strict=True))
        by_reading: dict[tuple[int, ...], list[int]] = {}
        for number, reading in enumerate(members.readings(words, targets).tolist()):
            by_reading.setdefault(tuple(reading), []).append(number)
        if len(by_reading) > 1:
            outcomes = [
                Outcome(names.reading(reading), str(len(numbers)), len({meanings[number] for number in numbers}))
                for reading, numbers in by_reading.items()
            ]
            rated.append((experiment(names.in_words(do, contexts), outcomes), place))
    rated.sort(key=lambda entry: (*entry[0].rank, entry[1]))
    best = rated[:MAX_EXPERIMENTS]
    return NextWorlds(
        tuple(entry for entry, _ in best), tuple(names.action(candidates[place], contexts) for _, place in best)
    )
