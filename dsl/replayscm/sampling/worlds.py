"""Sampling of single worlds: units, interventions, environments and their simulation (Algorithm 2 of the paper)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import NamedTuple, TypeAlias

from calibrant.dsl.replayscm.disclosure import natural
from calibrant.dsl.replayscm.evaluator import simulate
from calibrant.dsl.replayscm.sampling.strata import ASSIGNMENT_BIASES, BASELINE_LEVEL, ENVIRONMENT_LEVELS, Stratum
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.replayscm.world import Column, Intervention, World

Environment: TypeAlias = Mapping[str, float]
"""Per root the level of one world; a unit shows 1 iff its threshold is below the level."""


class Drawn(NamedTuple):
    """A simulated world with the environment it was simulated in, which its rows do not tell."""

    world: World
    environment: Environment


@dataclass(frozen=True)
class Population:
    """An SCM and the units that all its worlds share.

    thresholds: per root the latent threshold of every unit, in [0, 1)
    """

    model: Scm
    units: tuple[str, ...]
    thresholds: Mapping[str, tuple[float, ...]]

    def simulate(
        self, world_id: str, intervention: Intervention, environment: Environment, assigned: Mapping[str, Column]
    ) -> World:
        """Return the world: targets clamped, other roots from thresholds and environment, everything else computed.

        assigned: a column for every target of mode hard_assigned; `ValueError` if one has a bit beyond the units
        """
        rows = (1 << len(self.units)) - 1
        if any(column & ~rows for column in assigned.values()):
            raise ValueError(f"world '{world_id}': an assigned column has more than {len(self.units)} rows")
        clamped = {**assigned, **{target: rows * bit for target, bit in intervention.constants.items()}}
        columns: dict[str, Column] = {}
        for root in self.model.roots:
            level = environment[root]
            below = sum((threshold < level) << row for row, threshold in enumerate(self.thresholds[root]))
            columns[root] = clamped.get(root, below)
        columns = simulate(self.model, columns | clamped, dict.fromkeys(clamped, rows), rows)
        variables = self.model.variables
        return World(world_id, intervention, variables, self.units, tuple(columns[v] for v in variables))


def sample_population(stratum: Stratum, model: Scm, rng: Random) -> Population:
    """Units u00, u01, ... with uniform thresholds."""
    units = tuple(f"u{row:02d}" for row in range(stratum.num_units))
    return Population(model, units, {root: tuple(rng.random() for _ in units) for root in model.roots})


def sample_intervention(stratum: Stratum, variables: Sequence[str], rng: Random) -> Intervention:
    """One to three targets, uniform over all variables, and one mode for all of them; constants are fair bits."""
    (num_targets,) = rng.choices((1, 2, 3), stratum.target_probabilities)
    targets = natural(rng.sample(variables, num_targets))
    if rng.random() < stratum.assigned_probability:
        return Intervention(assigned=targets)
    return Intervention({target: rng.getrandbits(1) for target in targets})


def sample_environment(roots: Iterable[str], rng: Random) -> Environment:
    return {root: rng.choice(ENVIRONMENT_LEVELS) for root in roots}


def baseline_environment(roots: Iterable[str]) -> Environment:
    return dict.fromkeys(roots, BASELINE_LEVEL)


def sample_assigned(targets: Iterable[str], num_rows: int, rng: Random) -> dict[str, Column]:
    """Row by row values of the targets with one bias for the world; an all-equal column gets 0, 1 in its first rows.

    A single row is as it was drawn: no column of it can vary.
    """
    bias = rng.choice(ASSIGNMENT_BIASES)
    columns: dict[str, Column] = {}
    for target in targets:
        column = sum((rng.random() < bias) << row for row in range(num_rows))
        if num_rows > 1 and column in (0, (1 << num_rows) - 1):
            column = column & ~0b11 | 0b10
        columns[target] = column
    return columns


def baseline_world(world_id: str, population: Population) -> Drawn:
    """Return the world without intervention, every root at the baseline level."""
    baseline = baseline_environment(population.model.roots)
    return Drawn(population.simulate(world_id, Intervention(), baseline, {}), baseline)


def sample_world(world_id: str, population: Population, intervention: Intervention, rng: Random) -> Drawn:
    """Sample a world under that intervention: a fresh environment, and fresh values of the targets set row by row."""
    environment = sample_environment(population.model.roots, rng)
    assigned = sample_assigned(intervention.assigned, len(population.units), rng)
    return Drawn(population.simulate(world_id, intervention, environment, assigned), environment)
