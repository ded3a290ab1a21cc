"""Choice of the training worlds of one instance (Algorithm 3 of the paper, steps 2 to 5).

A world without intervention; worlds forced to intervene on a random endogenous variable; while shortcuts survive, the
candidate that rules out most of them, each forced to intervene on a possible cause of a variable that has one; a world
for new local patterns; then ordinary proposals up to the full number.

As in the published generator a variable's pool of shortcuts is represented by the smallest that fits so far, and of
candidates that refute equally many of those the one with most refuting rows wins. (Counting all functions instead
would hardly ever choose a hard_constant world, and pools would no longer have the published mix of modes.)

Departures: all candidates of a step are simulated, where the generator ranks more of them unseen and simulates part;
its further criteria (risk and priority of a variable) are left out; equal proposals are not ordered by label (see
audits.replayscm.generation.proposals); new local patterns are counted without its fault (see
audits.replayscm.local_patterns).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from random import Random

from calibrant.audits.replayscm.generation.plans import SEED_WORLDS, StratumPlan
from calibrant.audits.replayscm.generation.proposals import Proposer
from calibrant.audits.replayscm.local_patterns import count_new, outer_probes, patterns, rows_by_pattern, unite
from calibrant.dsl.replayscm.disclosure import natural
from calibrant.dsl.replayscm.generation.scms import LatentScm
from calibrant.dsl.replayscm.generation.strata import Stratum
from calibrant.dsl.replayscm.generation.worlds import (
    Drawn,
    Population,
    Survivors,
    baseline_world,
    num_functions,
    remaining_survivors,
    shortcut_classes,
    with_shortcuts,
)
from calibrant.dsl.replayscm.world import World

CHOICES = 8  # proposals among which the preferred one is taken where nothing else decides
CANDIDATES_PER_SURVIVOR = 24  # worlds simulated in a step of survivor reduction, for each variable with a shortcut


@dataclass(frozen=True)
class Training:
    """The chosen worlds.

    stages: world id -> why it is there: none, focus, survivors, support, fill
    survivors: shortcut functions that fit the seed worlds, those and one world more, ..., and at last all worlds
    """

    draws: tuple[Drawn, ...]
    stages: Mapping[str, str]
    survivors: tuple[Survivors, ...]

    @property
    def worlds(self) -> tuple[World, ...]:
        return tuple(draw.world for draw in self.draws)


class TrainingChoice:
    """One choice of training worlds for a population; `training` makes it, once."""

    def __init__(
        self, stratum: Stratum, plan: StratumPlan, latent: LatentScm, population: Population, rng: Random
    ) -> None:
        self.plan = plan
        self.num_worlds = stratum.num_worlds
        self.endogenous = latent.model.endogenous
        self.windows = latent.windows(stratum.max_parents)
        self.rng = rng
        self.proposer = Proposer(stratum, population, rng)
        self.survivors = shortcut_classes(stratum, latent)
        self.stages: dict[str, str] = {}

    def training(self) -> Training:
        self._take("none", baseline_world("train_00", self.proposer.population))
        while self._num_taken < SEED_WORLDS:
            self._take("focus", self._draw_preferred(focus=self.rng.choice(self.endogenous)))
        history = self._reduce_survivors()
        if self.plan.support_candidates and self._num_taken < self.num_worlds:
            self._add_support()
        while self._num_taken < self.num_worlds:
            self._take("fill", self._draw_preferred(focus=None))
        return Training(tuple(self.proposer.taken), self.stages, (*history, self.survivors))

    @property
    def _num_taken(self) -> int:
        return len(self.proposer.taken)

    @property
    def _next_id(self) -> str:
        return f"train_{self._num_taken:02d}"

    def _take(self, stage: str, draw: Drawn) -> None:
        self.stages[draw.world.id] = stage
        self.survivors = remaining_survivors(draw.world, self.survivors, self.windows)
        self.proposer.take(draw)

    def _draw_preferred(self, *, focus: str | None) -> Drawn:
        proposals = list(islice(self.proposer.interventions(focus=focus), CHOICES))
        return self.proposer.world(self._next_id, self.proposer.choose_preferred(proposals))

    def _reduce_survivors(self) -> list[Survivors]:
        """Return worlds against shortcuts, one slot left for local support; the survivors before and after each."""
        history = [self.survivors]
        last = self.num_worlds - bool(self.plan.support_candidates)
        while with_shortcuts(self.survivors) and self._num_taken < last and len(history) <= self.plan.iterations:
            number = CANDIDATES_PER_SURVIVOR * len(with_shortcuts(self.survivors))
            causes = natural({u for v in with_shortcuts(self.survivors) for u in self.windows[v]})
            candidates = [self._draw_forced(causes) for _ in range(min(number, self.plan.candidates))]
            self._take("survivors", max(candidates, key=self._strength))  # the first of equals
            history.append(self.survivors)
        return history

    def _draw_forced(self, causes: Sequence[str]) -> Drawn:
        """Return a random world with a random one of these variables among its targets."""
        focus = self.rng.choice(causes)
        return self.proposer.world(self._next_id, next(self.proposer.interventions(focus=focus)))

    def _strength(self, draw: Drawn) -> tuple[int, int, bool]:
        """Return variables whose smallest shortcut the world refutes, rows that do, and whether targets vary by row."""
        witnesses = {v: tables[0] for v, tables in self.survivors.items() if tables}
        wrong = [num_refuting(draw.world, v, self.windows[v], witness) for v, witness in witnesses.items()]
        return sum(rows > 0 for rows in wrong), sum(wrong), bool(draw.world.intervention.assigned)

    def _add_support(self) -> None:
        """Add the candidate with most new local patterns; add none if no candidate shows a new one."""
        probes = outer_probes(self.windows)
        shown_before = unite((patterns(draw.world, probes) for draw in self.proposer.taken), len(probes))
        proposals = self.proposer.interventions(assigned=self.plan.support_assigned)
        candidates = [self.proposer.world(self._next_id, i) for i in islice(proposals, self.plan.support_candidates)]
        new = [count_new(shown_before, patterns(candidate.world, probes)) for candidate in candidates]
        if max(new):
            self._take("support", candidates[new.index(max(new))])


def reduction(training: Training, irreducible: int) -> float:
    """Return the share of shortcuts surviving the seed worlds that were ruled out, not counting gold's equivalents.

    irreducible: shortcut functions that are gold's own and that no world can rule out
    """
    before, after = (
        num_functions(survivors) - irreducible for survivors in (training.survivors[0], training.survivors[-1])
    )
    return 1 - after / before if before else 1.0


def num_refuting(world: World, variable: str, window: Sequence[str], table: int) -> int:
    """Return rows in which a function of the window contradicts the variable; none where it is a target."""
    if variable in world.intervention.targets:
        return 0
    columns = world.by_variable
    groups = rows_by_pattern([columns[u] for u in window], (1 << world.num_rows) - 1)
    predicted = sum(rows for pattern, rows in enumerate(groups) if table >> pattern & 1)
    return (predicted ^ columns[variable]).bit_count()
