"""Proposals of worlds: random interventions, some of them forced to include a variable, none of a signature in use.

Where the published generator has to choose among equals it takes the smallest intervention by label: in the shared
development pools X1 is a target of nine in ten worlds chosen so, the last labels of two or three. Here a random order
of the variables, drawn for each training set, takes the place of the labels: the same distribution but for the names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random

from calibrant.dsl.replayscm.disclosure import natural
from calibrant.dsl.replayscm.generation.strata import Stratum
from calibrant.dsl.replayscm.generation.worlds import Drawn, Population, sample_intervention, sample_world
from calibrant.dsl.replayscm.world import Intervention

MAX_DRAWS = 10_000  # in a row without a new signature; the smallest stratum has hundreds of signatures


class Proposer:
    """Source of random worlds over one population.

    taken: the worlds that were chosen; their signatures are in use
    """

    def __init__(self, stratum: Stratum, population: Population, rng: Random) -> None:
        self.stratum = stratum
        self.population = population
        self.rng = rng
        self.taken: list[Drawn] = []
        order = list(population.model.variables)
        rng.shuffle(order)
        self._rank = {variable: rank for rank, variable in enumerate(order)}

    def take(self, draw: Drawn) -> None:
        self.taken.append(draw)

    def interventions(self, *, focus: str | None = None, assigned: float | None = None) -> Iterator[Intervention]:
        """Yield interventions of signatures not in use, without end.

        focus: a variable that has to be a target, added as one more where the draw does not have it
        assigned: probability of mode hard_assigned, if not the stratum's
        """
        stratum = self.stratum if assigned is None else replace(self.stratum, assigned_probability=assigned)
        used = {draw.world.intervention.signature for draw in self.taken}
        fruitless = 0
        while fruitless < MAX_DRAWS:
            intervention = sample_intervention(stratum, self.population.model.variables, self.rng)
            if focus is not None:
                intervention = with_target(intervention, focus, self.rng)
            fruitless += 1
            if intervention.signature not in used:
                fruitless = 0
                yield intervention
        raise ValueError(f"stratum '{self.stratum.name}' has no intervention left to choose")

    def choose_preferred(self, proposals: Sequence[Intervention]) -> Intervention:
        """Choose mode hard_assigned first, then the first target set in this proposer's order of the variables."""

        def rank(intervention: Intervention) -> tuple[bool, list[int]]:
            return not intervention.assigned, sorted(self._rank[target] for target in intervention.targets)

        return min(proposals, key=rank)

    def world(self, world_id: str, intervention: Intervention) -> Drawn:
        return sample_world(world_id, self.population, intervention, self.rng)


def with_target(intervention: Intervention, focus: str, rng: Random) -> Intervention:
    """Return the same intervention with one target more, in its mode; unchanged if it has that target."""
    if focus in intervention.targets:
        return intervention
    if intervention.assigned:
        return Intervention(assigned=natural((*intervention.assigned, focus)))
    constants = {**intervention.constants, focus: rng.getrandbits(1)}
    return Intervention({target: constants[target] for target in natural(constants)})
