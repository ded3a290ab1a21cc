"""Problems and pools from a seed: sampled worlds, chosen by how many shortcuts they rule out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from random import Random
from typing import NamedTuple, TypeAlias

from calibrant.dsl.formulas.text import STANDARD
from calibrant.dsl.replayscm.disclosure import Blocks, Disclosure, HiddenOrder, HiddenRoots, Ordered, natural
from calibrant.dsl.replayscm.evaluator import simulate
from calibrant.dsl.replayscm.generation import scms
from calibrant.dsl.replayscm.generation.strata import (
    ASSIGNMENT_BIASES,
    BASELINE_LEVEL,
    ENVIRONMENT_LEVELS,
    SHORTCUT_CAP,
    Stratum,
)
from calibrant.dsl.replayscm.item import Pool, Problem, Sealed, Task, TaskKind
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.replayscm.world import Column, Intervention, Panel, World

# --- Sampling of worlds, the shortcuts that they leave, and the choice of the worlds of one problem -------------------
# A shortcut of a variable is a function over its window (the predecessors that it may depend on) with a formula under
# the size cap; it survives if it fits every training row. In its truth table, bit i of a row is window variable i.
#
# Departures from the published generator: training worlds are chosen greedily from a fixed number of proposals by how
# many shortcut functions they leave, where the generator keeps one witness a variable, weighs several goals and forces
# a variable into some proposals, which gives it worlds of four targets; there is no stage for local predecessor
# patterns and no search for local or coordinated alternatives (Algorithm 3, steps 6 to 8); held-out worlds are not
# balanced for the novelty of their targets.
# --- Sampling of single worlds: units, interventions, environments and their simulation (Algorithm 2 of the paper) ----
Environment: TypeAlias = Mapping[str, float]
"""Root -> level in one world; a unit shows 1 iff its threshold is below the level."""


class Drawn(NamedTuple):
    """A simulated world with its environment, which the rows do not reveal."""

    world: World
    environment: Environment


@dataclass(frozen=True)
class Population:
    """An SCM and the units that all its worlds share.

    thresholds: root -> latent threshold of every unit, in [0, 1)
    """

    model: Scm
    units: tuple[str, ...]
    thresholds: Mapping[str, tuple[float, ...]]

    def simulate(
        self, world_id: str, intervention: Intervention, environment: Environment, assigned: Mapping[str, Column]
    ) -> World:
        """Simulate a world: targets are set, other roots follow from thresholds and environment, others are computed.

        assigned: target of mode hard_assigned -> bit column; `ValueError` if it has a bit beyond the units
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
    """Sample units u00, u01, ... with uniform thresholds."""
    units = tuple(f"u{row:02d}" for row in range(stratum.num_units))
    return Population(model, units, {root: tuple(rng.random() for _ in units) for root in model.roots})


def sample_intervention(stratum: Stratum, variables: Sequence[str], rng: Random) -> Intervention:
    """Sample one to three targets, uniform over all variables, and one mode for all; constants are fair bits."""
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
    """Sample row by row values of the targets, with one bias for the world.

    A constant column gets 0 and 1 in its first two rows, unless there is only one row.
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


# --- Surviving shortcuts: short formulas over the true window that fit every row in which the variable is not set -----
Survivors: TypeAlias = Mapping[str, tuple[int, ...]]
"""Endogenous variable -> truth tables of its shortcuts that fit the worlds so far."""


def shortcut_classes(stratum: Stratum, latent: scms.LatentScm) -> Survivors:
    """Return the survivors before any world: every function under each variable's size cap."""
    classes: dict[str, tuple[int, ...]] = {}
    for variable, candidates in latent.windows(stratum.max_parents).items():
        cap = stratum.shortcut_cap(latent.model.mechanisms[variable].size)
        sizes = scms.shortest_sizes(len(candidates), SHORTCUT_CAP)
        classes[variable] = tuple(bits for bits, size in sizes.items() if size <= cap)
    return classes


def remaining_survivors(world: World, survivors: Survivors, windows: Mapping[str, Sequence[str]]) -> Survivors:
    """Return the survivors that also fit this world; a world has no evidence on its targets."""
    columns = world.by_variable
    remaining = dict(survivors)
    for variable, tables in survivors.items():
        if not tables or variable in world.intervention.targets:
            continue
        care, value = _evidence([columns[v] for v in windows[variable]], columns[variable], world.num_rows)
        remaining[variable] = tuple(table for table in tables if not (table ^ value) & care)
    return remaining


def _evidence(inputs: Sequence[int], output: int, num_rows: int) -> tuple[int, int]:
    """Return the partial truth table in one world as bits: (care, row p occurs; value, its output)."""
    care = value = 0
    for row in range(num_rows):
        pattern = 0
        for i, column in enumerate(inputs):
            pattern |= (column >> row & 1) << i
        care |= 1 << pattern
        value |= (output >> row & 1) << pattern
    return care, value


def num_functions(survivors: Survivors) -> int:
    """Return the number of surviving functions of all variables, which the choice of worlds minimises."""
    return sum(len(tables) for tables in survivors.values())


def with_shortcuts(survivors: Survivors) -> tuple[str, ...]:
    """Return the variables with a surviving shortcut, which acceptance counts."""
    return tuple(variable for variable, tables in survivors.items() if tables)


# --- Choice of the worlds of one problem, and their acceptance --------------------------------------------------------
PROPOSALS = 32  # candidates for a training world while shortcuts survive


@dataclass(frozen=True)
class Evidence:
    """The worlds of one problem.

    environments: world id -> root -> level
    """

    training: tuple[World, ...]
    heldout: tuple[World, ...]
    environments: Mapping[str, Environment]


def sample_evidence(stratum: Stratum, latent: scms.LatentScm, rng: Random) -> Evidence:
    """Sample units, a world without intervention, training worlds against shortcuts, and random held-out worlds.

    No two worlds have the same intervention signature.
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
    """Yield random worlds without end, each with a signature that no earlier world has."""
    signatures = {world.intervention.signature for world, _ in earlier}
    while True:
        intervention = sample_intervention(stratum, population.model.variables, rng)
        if intervention.signature not in signatures:
            yield sample_world(world_id, population, intervention, rng)


def _strongest(
    proposals: Iterator[Drawn], survivors: Survivors, windows: Mapping[str, Sequence[str]]
) -> tuple[Drawn, Survivors]:
    """Return the first of PROPOSALS worlds that leaves the fewest shortcuts, and these.

    Without surviving shortcuts it is the first proposal.
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


def rejections(stratum: Stratum, latent: scms.LatentScm, evidence: Evidence) -> Iterator[str]:
    """Yield every reason why a problem with this evidence is not acceptable."""
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


# --- The project's own sampler: problems and pools of the published kind, from a seed ---------------------------------
# The same arguments give the same bytes: every draw comes from one `random.Random` per problem, seeded by the stratum's
# name and the instance seed. A problem is accepted by the checks of dsl.replayscm.generation.problems; this is not the
# complete generator of the paper's Algorithm 3; the modules of audits.replayscm.generation name what they leave out.
ATTEMPTS = 10  # sets of worlds for one SCM before another SCM is sampled; nearly always the first is accepted
SEEDS_PER_POOL = (
    10**6
)  # instance j of a stratum has seed SEEDS_PER_POOL * pool seed + j: larger pools extend smaller ones

SETTINGS = ("ordered", "block", "hidden-order", "hidden-roots")


def sample_pool(strata: Iterable[Stratum], per_stratum: int, seed: int, setting: str) -> Pool:
    """Sample problems of each stratum under one of SETTINGS; latent SCMs and worlds are the same in all settings."""
    chosen = tuple(strata)
    problems = [
        disclose_problem(sample_problem(stratum, SEEDS_PER_POOL * seed + index), setting)
        for stratum in chosen
        for index in range(per_stratum)
    ]
    metadata = {
        "sampler": "calibrant 1",
        "seed": seed,
        "per_stratum": per_stratum,
        "strata": [stratum.name for stratum in chosen],
        "setting": setting,
    }
    return Pool(f"sample_{setting.replace('-', '_')}", tuple(problems), metadata)


def sample_problem(stratum: Stratum, seed: int) -> Problem:
    """Sample the problem of that seed, in Hidden-order form."""
    rng = Random(f"{stratum.name}:{seed}")
    while True:
        latent = scms.sample_scm(stratum, rng)
        for _ in range(ATTEMPTS):
            evidence = sample_evidence(stratum, latent, rng)
            if not any(rejections(stratum, latent, evidence)):
                return problem_of(stratum, f"CAL_{stratum.name}_{seed}", seed, latent, evidence)


def problem_of(stratum: Stratum, name: str, seed: int, latent: scms.LatentScm, evidence: Evidence) -> Problem:
    """Return the problem of an SCM and its worlds, in Hidden-order form.

    `name` is its id without the suffix of a setting.
    """
    model = latent.model
    training, heldout = (Panel(model.variables, worlds) for worlds in (evidence.training, evidence.heldout))
    task = Task(
        TaskKind.SCM,
        HiddenOrder(model.variables, model.roots),
        STANDARD,
        training,
        shares_units=True,
        num_heldout=len(heldout.worlds),
    )
    sealed = Sealed(
        model,
        model.size,
        heldout,
        latent.order,
        stratum.max_parents,
        environments=evidence.environments,
        labels={"stratum": stratum.name, "difficulty": stratum.difficulty, "seed": str(seed), "latent": name},
    )
    return Problem(name, task, sealed)


def disclose_problem(problem: Problem, setting: str) -> Problem:
    """Disclose a sampled problem's latent SCM and worlds under any of SETTINGS, with the id suffix of published pools.

    Block shows two blocks where the seed is even and three where it is odd.
    """
    gold, order = problem.sealed.gold, problem.sealed.latent_order
    if gold is None:
        raise ValueError(f"problem '{problem.id}' has no latent SCM to disclose")
    num_blocks = 2 + int(problem.sealed.labels["seed"]) % 2
    disclosures: dict[str, tuple[Disclosure, str]] = {
        "ordered": (Ordered(order, gold.roots), ""),
        "block": (cut_blocks(order, gold.roots, num_blocks), f"__PARTIAL_ORDER_{num_blocks}BLOCK"),
        "hidden-order": (HiddenOrder(gold.variables, gold.roots), ""),
        "hidden-roots": (HiddenRoots(gold.variables, len(gold.roots)), "__ROOT_UNKNOWN"),
    }
    if setting not in disclosures:
        raise ValueError(f"unknown setting '{setting}'; known: {', '.join(SETTINGS)}")
    disclosure, suffix = disclosures[setting]
    kind = TaskKind.ROOTS if disclosure.roots is None else TaskKind.SCM
    task = replace(problem.task, kind=kind, disclosure=disclosure)
    return replace(problem, id=problem.sealed.labels["latent"] + suffix, task=task)


def cut_blocks(order: Sequence[str], roots: Sequence[str], num_blocks: int) -> Blocks:
    """Cut the endogenous order into blocks of nearly equal length, longer ones first; roots join the first block."""
    endogenous = [variable for variable in order if variable not in roots]
    length, extra = divmod(len(endogenous), num_blocks)
    ends = list(accumulate(length + (part < extra) for part in range(num_blocks)))
    parts = [endogenous[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    return Blocks(tuple(natural(part) for part in ([*roots, *parts[0]], *parts[1:])), natural(roots))
