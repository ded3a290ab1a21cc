"""Choice of the worlds of one problem, and what makes them acceptable.

Departures from the published generator: training worlds are chosen greedily from a fixed number of proposals by how
many shortcut functions they leave, where the generator keeps one witness a variable, weighs several goals and forces a
variable into some proposals, which gives it worlds of four targets; there is no stage for local predecessor patterns
and no search for local or coordinated alternatives (Algorithm 3, steps 6 to 8); held-out worlds are not balanced for
the novelty of their targets.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from calibrant.dsl.replayscm.sampling.scms import LatentScm
from calibrant.dsl.replayscm.sampling.shortcuts import (
    Survivors,
    num_functions,
    remaining_survivors,
    shortcut_classes,
    with_shortcuts,
)
from calibrant.dsl.replayscm.sampling.strata import Stratum
from calibrant.dsl.replayscm.sampling.worlds import (
    Drawn,
    Environment,
    Population,
    baseline_world,
    sample_intervention,
    sample_population,
    sample_world,
)
from calibrant.dsl.replayscm.world import Panel, World

PROPOSALS = 32  # candidates for a training world while shortcuts survive


@dataclass(frozen=True)
class Evidence:
    """The worlds of one problem.

    environments: world id -> root -> level
    """

    training: tuple[World, ...]
    heldout: tuple[World, ...]
    environments: Mapping[str, Environment]


def sample_evidence(stratum: Stratum, latent: LatentScm, rng: Random) -> Evidence:
    """One attempt: fresh units, a world without intervention, worlds against shortcuts, held-out worlds at random.

    No two worlds share their intervention signature.
    """
    population = sample_population(stratum, latent.model, rng)
    windows = latent.windows(stratum.max_parents)
    sampled_worlds = [baseline_world("train_00", population)]
    survivors = remaining_survivors(sampled_worlds[0].world, shortcut_classes(stratum, latent), windows)
    while len(sampled_worlds) < stratum.num_worlds:
        proposals = _proposals(f"train_{len(sampled_worlds):02d}", stratum, population, sampled_worlds, rng)
        best, survivors = _strongest(proposals, survivors, windows)
        sampled_worlds.append(best)
    for index in range(stratum.num_worlds):
        sampled_worlds.append(next(_proposals(f"heldout_{index:02d}", stratum, population, sampled_worlds, rng)))
    worlds = tuple(world for world, _ in sampled_worlds)
    environments = {world.id: environment for world, environment in sampled_worlds}
    return Evidence(worlds[: stratum.num_worlds], worlds[stratum.num_worlds :], environments)


def _proposals(
    world_id: str, stratum: Stratum, population: Population, earlier: Sequence[Drawn], rng: Random
) -> Iterator[Drawn]:
    """Random worlds, each of a signature that no earlier world has, without end."""
    signatures = {world.intervention.signature for world, _ in earlier}
    while True:
        intervention = sample_intervention(stratum, population.model.variables, rng)
        if intervention.signature not in signatures:
            yield sample_world(world_id, population, intervention, rng)


def _strongest(
    proposals: Iterator[Drawn], survivors: Survivors, windows: Mapping[str, Sequence[str]]
) -> tuple[Drawn, Survivors]:
    """Return the first proposal that leaves fewest shortcuts, and those.

    Simply the first when none is left to refute.
    """
    best = next(proposals)
    fewest = remaining_survivors(best.world, survivors, windows)
    if num_functions(survivors) == 0:
        return best, fewest
    for _ in range(PROPOSALS - 1):
        proposal = next(proposals)
        remaining = remaining_survivors(proposal.world, survivors, windows)
        if num_functions(remaining) < num_functions(fewest):
            best, fewest = proposal, remaining
    return best, fewest


def rejections(stratum: Stratum, latent: LatentScm, evidence: Evidence) -> Iterator[str]:
    """Every reason why a problem with this evidence is not acceptable; none for an acceptable one."""
    survivors = shortcut_classes(stratum, latent)
    windows = latent.windows(stratum.max_parents)
    for world in evidence.training:
        survivors = remaining_survivors(world, survivors, windows)
    if len(with_shortcuts(survivors)) > stratum.max_survivors:
        yield f"shortcuts survive for {', '.join(with_shortcuts(survivors))}"
    training = Panel(latent.model.variables, evidence.training)
    for variable in latent.model.endogenous:
        scored = training.scored_rows(variable)
        if training.columns[variable] & scored in (0, scored):
            yield f"{variable} does not vary over its scored training rows"
    if not _shifts(latent.model.endogenous, evidence.training):
        yield "no intervention shifts a count of the world without intervention"
    yield from _exposure_violations(stratum, latent.model.endogenous, evidence)


def _shifts(endogenous: Sequence[str], training: Sequence[World]) -> bool:
    """Return whether an intervention changes the number of ones of an endogenous variable."""
    baseline, *interventional = training
    return any(
        world.column(variable).bit_count() != baseline.column(variable).bit_count()
        for world in interventional
        for variable in endogenous
    )


def _exposure_violations(stratum: Stratum, endogenous: Sequence[str], evidence: Evidence) -> Iterator[str]:
    exposure = stratum.exposure
    modes = [world.intervention.mode for world in evidence.training]
    for mode, minimum in (("hard_assigned", exposure.assigned), ("hard_constant", exposure.constant)):
        if modes.count(mode) < minimum:
            yield f"{modes.count(mode)} training worlds are {mode}, fewer than {minimum}"
    splits = ((evidence.training, exposure.scored_training), (evidence.heldout, exposure.scored_heldout))
    for worlds, minimum in splits:
        for variable in endogenous:
            scored = sum(variable not in world.intervention.targets for world in worlds)
            if scored < minimum:
                yield f"{variable} is scored in {scored} of {len(worlds)} worlds, fewer than {minimum}"
