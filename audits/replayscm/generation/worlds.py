"""Worlds of a generated instance: proposals, choice of training worlds, held-out worlds, disambiguating worlds.

Training worlds in order: one without intervention; worlds forced to intervene on a random endogenous variable; while
shortcuts survive, the candidate that rules out most of them; a world for new local patterns; then ordinary proposals up
to the full number. A shortcut is a small formula that fits so far and is not the intended mechanism. Candidates against
shortcuts are forced to intervene on a possible cause of a variable that has one.

As in the published generator, the smallest shortcut represents those of a variable. Among candidates that refute
equally many of these, the one with most refuting rows wins. (Counting all functions instead would hardly ever choose a
hard_constant world, and pools would no longer have the published mix of modes.)

Departures from the published generator:
- It breaks ties by the smallest label: in the shared development pools X1 is a target of nine in ten worlds chosen so,
  the last labels of two or three. Here a random order of the variables, drawn for each training set, breaks them: the
  same distribution apart from the names.
- All candidates of a step are simulated; it ranks more of them without simulation and simulates a part.
- Its further criteria (risk and priority of a variable) are left out.
- New local patterns are counted without its fault (see audits.replayscm.bounded).

An instance has to meet the conditions of dsl.replayscm.generation.problems (every endogenous variable varies where it
is scored; the published generator requires it of half of them), the survivor reduction, the bound on interventions and
the balance of the held-out targets. Bounded audits are reported and filter nothing: the paper states no threshold.

The paper calls a formula a shortcut only if it differs from the intended mechanism; the published generator counts
equivalents as well and so can never accept some SCMs (dsl.replayscm.generation.scms drops them before any world is
drawn). Here equivalents count as surviving, as in the published pools, but not in the reduction, which would be
unreachable with them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations, islice
from random import Random
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from calibrant.audits.replayscm import bounded
from calibrant.audits.replayscm.bounded import LOCAL, rows_by_pattern
from calibrant.audits.replayscm.generation.published import SEED_WORLDS, StratumPlan
from calibrant.dsl.formulas.formula import STANDARD_OPERATORS
from calibrant.dsl.formulas.table import from_formula
from calibrant.dsl.replayscm.disclosure import natural
from calibrant.dsl.replayscm.generation import problems
from calibrant.dsl.replayscm.generation.scms import LatentScm, has_equivalent_shortcut
from calibrant.dsl.replayscm.generation.strata import Stratum
from calibrant.dsl.replayscm.world import Column, Intervention, World
from calibrant.solvers.formulas.catalogue import essential_functions

# --- Proposals of worlds: random interventions, some of them forced to include a variable, none of a signature in use
MAX_DRAWS = 10_000  # draws in a row without an unused signature; the smallest stratum has hundreds of signatures


class Proposer:
    """Source of random worlds over one population.

    taken: the chosen worlds; their signatures are not proposed again
    """

    def __init__(self, stratum: Stratum, population: problems.Population, rng: Random) -> None:
        self.stratum = stratum
        self.population = population
        self.rng = rng
        self.taken: list[problems.Drawn] = []
        order = list(population.model.variables)
        rng.shuffle(order)
        self._rank = {variable: rank for rank, variable in enumerate(order)}

    def take(self, draw: problems.Drawn) -> None:
        self.taken.append(draw)

    def interventions(self, *, focus: str | None = None, assigned: float | None = None) -> Iterator[Intervention]:
        """Yield interventions of unused signatures, without end; ValueError after MAX_DRAWS draws without one.

        focus: a variable that has to be a target, added if it is not drawn as one
        assigned: probability of mode hard_assigned; None for the stratum's
        """
        stratum = self.stratum if assigned is None else replace(self.stratum, assigned_probability=assigned)
        used = {draw.world.intervention.signature for draw in self.taken}
        num_rejected = 0
        while num_rejected < MAX_DRAWS:
            intervention = problems.sample_intervention(stratum, self.population.model.variables, self.rng)
            if focus is not None:
                intervention = with_target(intervention, focus, self.rng)
            num_rejected += 1
            if intervention.signature not in used:
                num_rejected = 0
                yield intervention
        raise ValueError(f"stratum '{self.stratum.name}' has no intervention left to choose")

    def choose_preferred(self, proposals: Sequence[Intervention]) -> Intervention:
        """Choose mode hard_assigned first, then the first target set in this proposer's order of the variables."""

        def rank(intervention: Intervention) -> tuple[bool, list[int]]:
            return not intervention.assigned, sorted(self._rank[target] for target in intervention.targets)

        return min(proposals, key=rank)

    def world(self, world_id: str, intervention: Intervention) -> problems.Drawn:
        return problems.sample_world(world_id, self.population, intervention, self.rng)


def with_target(intervention: Intervention, focus: str, rng: Random) -> Intervention:
    """Return the same intervention with one target more, in its mode; unchanged if it has that target."""
    if focus in intervention.targets:
        return intervention
    if intervention.assigned:
        return Intervention(assigned=natural((*intervention.assigned, focus)))
    constants = {**intervention.constants, focus: rng.getrandbits(1)}
    return Intervention({target: constants[target] for target in natural(constants)})


# --- Choice of the training worlds of one instance (Algorithm 3 of the paper, steps 2 to 5) ---------------------------
NUM_CHOICES = 8  # proposals among which `choose_preferred` chooses
CANDIDATES_PER_SURVIVOR = 24  # worlds simulated in a step of survivor reduction, for each variable with a shortcut


@dataclass(frozen=True)
class Training:
    """The chosen worlds.

    stages: world id -> why it was chosen: none, focus, survivors, support, fill
    survivors: shortcut functions that fit the seed worlds, then after each world against shortcuts, last all worlds
    """

    draws: tuple[problems.Drawn, ...]
    stages: Mapping[str, str]
    survivors: tuple[problems.Survivors, ...]

    @property
    def worlds(self) -> tuple[World, ...]:
        return tuple(draw.world for draw in self.draws)


class TrainingChoice:
    """Choice of the training worlds for a population; call `training` once."""

    def __init__(
        self, stratum: Stratum, plan: StratumPlan, latent: LatentScm, population: problems.Population, rng: Random
    ) -> None:
        self.plan = plan
        self.num_worlds = stratum.num_worlds
        self.endogenous = latent.model.endogenous
        self.windows = latent.windows(stratum.max_parents)
        self.rng = rng
        self.proposer = Proposer(stratum, population, rng)
        self.survivors = problems.shortcut_classes(stratum, latent)
        self.stages: dict[str, str] = {}

    def training(self) -> Training:
        self._take("none", problems.baseline_world("train_00", self.proposer.population))
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

    def _take(self, stage: str, draw: problems.Drawn) -> None:
        self.stages[draw.world.id] = stage
        self.survivors = problems.remaining_survivors(draw.world, self.survivors, self.windows)
        self.proposer.take(draw)

    def _draw_preferred(self, *, focus: str | None) -> problems.Drawn:
        proposals = list(islice(self.proposer.interventions(focus=focus), NUM_CHOICES))
        return self.proposer.world(self._next_id, self.proposer.choose_preferred(proposals))

    def _reduce_survivors(self) -> list[problems.Survivors]:
        """Add worlds against shortcuts, leaving one place for local support; return the survivors before each."""
        history = [self.survivors]
        max_taken = self.num_worlds - bool(self.plan.support_candidates)
        while (
            problems.with_shortcuts(self.survivors)
            and self._num_taken < max_taken
            and len(history) <= self.plan.iterations
        ):
            num_candidates = CANDIDATES_PER_SURVIVOR * len(problems.with_shortcuts(self.survivors))
            causes = natural({u for v in problems.with_shortcuts(self.survivors) for u in self.windows[v]})
            candidates = [self._draw_forced(causes) for _ in range(min(num_candidates, self.plan.candidates))]
            self._take("survivors", max(candidates, key=self._strength))  # the first of equals
            history.append(self.survivors)
        return history

    def _draw_forced(self, causes: Sequence[str]) -> problems.Drawn:
        """Return a random world with a random one of these variables among its targets."""
        focus = self.rng.choice(causes)
        return self.proposer.world(self._next_id, next(self.proposer.interventions(focus=focus)))

    def _strength(self, draw: problems.Drawn) -> tuple[int, int, bool]:
        """Return (smallest shortcuts that the world refutes, rows that do so, whether its targets vary by row)."""
        witnesses = {v: tables[0] for v, tables in self.survivors.items() if tables}
        wrong = [num_refuting(draw.world, v, self.windows[v], witness) for v, witness in witnesses.items()]
        return sum(rows > 0 for rows in wrong), sum(wrong), bool(draw.world.intervention.assigned)

    def _add_support(self) -> None:
        """Add the candidate with most new local patterns; add none if no candidate shows a new one."""
        probes = bounded.outer_probes(self.windows)
        shown_before = bounded.unite(
            (bounded.patterns(draw.world, probes) for draw in self.proposer.taken), len(probes)
        )
        proposals = self.proposer.interventions(assigned=self.plan.support_assigned)
        candidates = [self.proposer.world(self._next_id, i) for i in islice(proposals, self.plan.support_candidates)]
        new = [bounded.count_new(shown_before, bounded.patterns(candidate.world, probes)) for candidate in candidates]
        if max(new):
            self._take("support", candidates[new.index(max(new))])


def reduction(training: Training, irreducible: int) -> float:
    """Return the share of the shortcuts that fit the seed worlds and were ruled out later; 1 without any.

    irreducible: number of shortcut functions equivalent to gold, which no world can rule out; they do not count
    """
    before, after = (
        problems.num_functions(survivors) - irreducible for survivors in (training.survivors[0], training.survivors[-1])
    )
    return 1 - after / before if before else 1.0


def kill_coverage(training: Training) -> float:
    """Return the share of endogenous variables that lost a shortcut after the seed worlds.

    It is `kill_coverage_ratio` of published records: in each of 94 of them it is the share of positive
    `shortcuts_killed_by_var`.
    """
    first, last = training.survivors[0], training.survivors[-1]
    return sum(len(last[variable]) < len(tables) for variable, tables in first.items()) / len(first)


def num_refuting(world: World, variable: str, window: Sequence[str], table: int) -> int:
    """Count the rows in which a function of the window contradicts the variable; 0 if the variable is a target."""
    if variable in world.intervention.targets:
        return 0
    columns = world.by_variable
    groups = bounded.rows_by_pattern([columns[u] for u in window], (1 << world.num_rows) - 1)
    predicted = sum(rows for pattern, rows in enumerate(groups) if table >> pattern & 1)
    return (predicted ^ columns[variable]).bit_count()


# --- Conditions of acceptance (Algorithm 3 of the paper, steps 3 and 9), and held-out worlds that meet them -----------
MAX_HELDOUT_DRAWS = 80  # sets of held-out worlds tried for one training set if the novelty of targets is bounded


def reduces_shortcuts(stratum: Stratum, plan: StratumPlan, latent: LatentScm, training: Training) -> bool:
    """Return whether few enough variables have a shortcut left, and enough of the shortcuts were ruled out."""
    irreducible = sum(has_equivalent_shortcut(stratum, mechanism) for mechanism in latent.model.mechanisms.values())
    are_few = len(problems.with_shortcuts(training.survivors[-1])) <= stratum.max_survivors
    return are_few and reduction(training, irreducible) >= plan.min_reduction


def list_unmet(stratum: Stratum, plan: StratumPlan, latent: LatentScm, evidence: problems.Evidence) -> Iterator[str]:
    """Yield every reason why an instance with this evidence is not acceptable; none for an acceptable one."""
    yield from problems.rejections(stratum, latent, evidence)
    if plan.max_intervened is not None:
        for variable in latent.model.endogenous:
            intervened = sum(variable in world.intervention.targets for world in evidence.training)
            if intervened > plan.max_intervened:
                yield f"{variable} is a target in {intervened} training worlds, more than {plan.max_intervened}"
    yield from find_unbalanced(plan, evidence.training, evidence.heldout)


def find_unbalanced(plan: StratumPlan, training: Sequence[World], heldout: Iterable[World]) -> Iterator[str]:
    """Yield a message for each held-out world whose target novelty is outside the plan's bounds."""
    if plan.novelty is None:
        return
    low, high = plan.novelty
    for world in heldout:
        novelty = bounded.target_novelty(world.intervention, training)
        if not low <= novelty <= high:
            yield f"target novelty of {world.id} is {novelty:.3f}, not within {low} to {high}"


def sample_heldout(plan: StratumPlan, proposer: Proposer) -> tuple[problems.Drawn, ...] | None:
    """Sample held-out worlds with distinct signatures, none of them a training world's; new environments, same units.

    Sets of interventions are drawn until one is balanced; None if none of MAX_HELDOUT_DRAWS is.
    """
    training = [draw.world for draw in proposer.taken]
    low, high = plan.novelty or (0.0, 1.0)
    for _ in range(MAX_HELDOUT_DRAWS):
        interventions = _take_distinct(proposer.interventions(), proposer.stratum.num_worlds)
        if all(low <= bounded.target_novelty(intervention, training) <= high for intervention in interventions):
            indexed = enumerate(interventions)
            return tuple(proposer.world(f"heldout_{index:02d}", intervention) for index, intervention in indexed)
    return None


def _take_distinct(proposals: Iterator[Intervention], count: int) -> list[Intervention]:
    """Return the first `count` proposals of different signatures."""
    by_signature: dict[object, Intervention] = {}
    while len(by_signature) < count:
        intervention = next(proposals)
        by_signature.setdefault(intervention.signature, intervention)
    return list(by_signature.values())


# --- Targeted disambiguation (Algorithm 3 of the paper): local alternatives, and compact worlds that rule them out ----
# Bounds are those of the paper's targeted search (audits.replayscm.bounded.LOCAL), without its limits of states and
# seconds: the functions are known in advance, so none is missed.
#
# A world rules out an alternative if one of its rows shows a window pattern on which the alternative differs from gold.
# Rows do not depend on each other. So for given targets and environment every unit is simulated under all values of the
# targets, and the values are chosen row by row, greedily by the alternatives that they rule out.
#
# Departures from the records that carry such worlds (`train_aug_*`; their builder is not released): those repeat a few
# rows cyclically and hold roots constant that are no target, which breaks the rule that a root follows unit and
# environment. Here each row is chosen for its own unit, rows that rule out nothing are random, and roots obey the rule.
#
# Local alternatives are other mechanisms over a variable's window that its training rows leave open, listed completely.
Tables: TypeAlias = npt.NDArray[np.uint64]
"""Functions of one window, as bits of their truth tables; variable i is the i-th of the window."""


@dataclass(frozen=True, eq=False)
class LocalAlternatives:
    """Functions other than gold's that fit a set of worlds.

    windows: variable -> its possible parents; gold: variable -> truth table of its mechanism over the window
    tables: variable -> truth tables of the alternatives that fit every row in which it is no target
    """

    windows: Mapping[str, tuple[str, ...]]
    gold: Mapping[str, int]
    tables: Mapping[str, Tables]

    @property
    def num_remaining(self) -> int:
        return sum(len(tables) for tables in self.tables.values())

    def fitting(self, worlds: Iterable[World]) -> LocalAlternatives:
        """Return the alternatives that fit these worlds too."""
        remaining = dict(self.tables)
        for world in worlds:
            columns = world.by_variable
            for variable in remaining.keys() - world.intervention.targets:
                care = self.shown_rows(variable, columns, world.num_rows)
                wrong = (remaining[variable] ^ np.uint64(self.gold[variable])) & np.uint64(care)
                remaining[variable] = remaining[variable][wrong == 0]
        return replace(self, tables=remaining)

    def shown_rows(self, variable: str, columns: Mapping[str, int], num_rows: int) -> int:
        """Return the rows of the variable's truth table whose pattern occurs, as bits; gold has the observed values."""
        groups = rows_by_pattern([columns[u] for u in self.windows[variable]], (1 << num_rows) - 1)
        return sum(1 << pattern for pattern, rows in enumerate(groups) if rows)


def local_alternatives(latent: LatentScm, max_parents: int, training: Iterable[World]) -> LocalAlternatives:
    """Return the alternatives within the budget of the targeted search that fit the training worlds."""
    windows = latent.windows(max_parents)
    gold = {v: from_formula(mechanism, windows[v]).bits for v, mechanism in latent.model.mechanisms.items()}
    tables = {}
    for variable, mechanism in latent.model.mechanisms.items():
        candidate_tables, sizes = functions_over(len(windows[variable]), LOCAL.cap)
        small = sizes <= min(mechanism.size + LOCAL.slack, LOCAL.cap)
        tables[variable] = candidate_tables[small & (candidate_tables != np.uint64(gold[variable]))]
    return LocalAlternatives(windows, gold, tables).fitting(training)


@cache
def functions_over(num_vars: int, max_size: int) -> tuple[Tables, npt.NDArray[np.uint8]]:
    """Return every non-constant function of any of the variables up to that size, and the least sizes.

    Constants are left out, as no accepted training set leaves a variable constant.
    """
    functions = essential_functions(num_vars, STANDARD_OPERATORS)
    tables, sizes = [], []
    for num_essential in range(1, num_vars + 1):
        interval = slice(int(functions.starts[num_essential]), int(functions.ends[num_essential]))
        small = functions.sizes[interval] <= max_size
        for positions in combinations(range(num_vars), num_essential):
            tables.append(_expand_tables(functions.bits[interval][small], positions, num_vars))
            sizes.append(functions.sizes[interval][small])
    return np.concatenate(tables), np.concatenate(sizes)


def _expand_tables(tables: Tables, positions: Sequence[int], num_vars: int) -> Tables:
    """Return the same functions as tables over all variables; their variable j is the one at positions[j]."""
    expanded = np.zeros_like(tables)
    for row in range(1 << num_vars):
        local_row = sum((row >> position & 1) << j for j, position in enumerate(positions))
        expanded |= (tables >> np.uint64(local_row) & np.uint64(1)) << np.uint64(row)
    return expanded


# The worlds that are added: steps 6 and 7 of Algorithm 3.
TARGET_COUNTS = (2, 3, 4)  # the published worlds of this kind have four
NUM_CANDIDATES = 32  # target sets tried for one world
MIN_SHARE_REMOVED = 0.5  # of the remaining alternatives: a world that rules out a smaller share is not added


class Disambiguation(NamedTuple):
    """Added worlds, and the number of alternatives before the first and after each."""

    added: tuple[problems.Drawn, ...]
    num_remaining: tuple[int, ...]


def separating_worlds(
    population: problems.Population,
    alternatives: LocalAlternatives,
    max_added: int,
    admits: Callable[[Sequence[problems.Drawn]], bool],
    rng: Random,
) -> Disambiguation:
    """Return worlds train_aug_01, ..., each of which rules out MIN_SHARE_REMOVED of the remaining alternatives.

    admits: whether the instance is still acceptable with these worlds added
    """
    added: list[problems.Drawn] = []
    num_remaining = [alternatives.num_remaining]
    while num_remaining[-1] and len(added) < max_added:
        name = f"train_aug_{len(added) + 1:02d}"
        candidates = [_candidate(name, population, alternatives, rng) for _ in range(NUM_CANDIDATES)]
        # by identity: worlds have no hash
        remaining = {id(draw): alternatives.fitting([draw.world]) for draw in candidates}
        ranked = sorted(candidates, key=lambda d: (remaining[id(d)].num_remaining, len(d.world.intervention.targets)))
        best = next((draw for draw in ranked if admits([*added, draw])), None)
        if (
            best is None
            or num_remaining[-1] - remaining[id(best)].num_remaining < MIN_SHARE_REMOVED * num_remaining[-1]
        ):
            break
        added.append(best)
        alternatives = remaining[id(best)]
        num_remaining.append(alternatives.num_remaining)
    return Disambiguation(tuple(added), tuple(num_remaining))


def _candidate(
    world_id: str, population: problems.Population, alternatives: LocalAlternatives, rng: Random
) -> problems.Drawn:
    """Return a hard_assigned world on random possible causes of variables with alternatives."""
    causes = {u for v, tables in alternatives.tables.items() if len(tables) for u in alternatives.windows[v]}
    num_targets = rng.choice([count for count in TARGET_COUNTS if count <= len(causes)])
    targets = natural(rng.sample(natural(causes), num_targets))
    environment = problems.sample_environment(population.model.roots, rng)
    chosen = _choose_row_values(population, targets, environment, alternatives)
    columns = problems.sample_assigned(targets, len(population.units), rng)
    fixed = sum(1 << row for row in chosen)
    for i, target in enumerate(targets):
        column = sum((value >> i & 1) << row for row, value in chosen.items())
        columns[target] = _not_constant(columns[target] & ~fixed | column, fixed, len(population.units))
    return problems.Drawn(
        population.simulate(world_id, Intervention(assigned=targets), environment, columns), environment
    )


def _choose_row_values(
    population: problems.Population,
    targets: Sequence[str],
    environment: problems.Environment,
    alternatives: LocalAlternatives,
) -> dict[int, int]:
    """Choose values of the targets (bit i for target i) for each unit that can rule out an alternative.

    Greedy set cover: each step takes the unit and values that rule out most of the alternatives that remain.
    """
    num_units = len(population.units)
    refutes = _refutations(population, targets, environment, alternatives)
    chosen: dict[int, int] = {}
    while len(chosen) < num_units and refutes.shape[1]:
        strength = refutes.sum(axis=1)
        best = int(strength.argmax())
        if not strength[best]:
            break
        value, row = divmod(best, num_units)
        chosen[row] = value
        # drop the alternatives that are ruled out, and the unit's other values
        refutes = refutes[:, ~refutes[best]]
        refutes[row::num_units] = False
    return chosen


def _refutations(
    population: problems.Population,
    targets: Sequence[str],
    environment: problems.Environment,
    alternatives: LocalAlternatives,
) -> npt.NDArray[np.bool_]:
    """Return [value * units + unit, alternative]: whether the unit with these target values rules it out."""
    values = range(1 << len(targets))
    num_units, num_rows = len(population.units), len(population.units) * len(values)
    block = (1 << num_units) - 1
    # all units once for each value of the targets, block by block, so that one simulation answers everything
    assigned: dict[str, Column] = {
        target: sum(block << value * num_units for value in values if value >> i & 1)
        for i, target in enumerate(targets)
    }
    everything = problems.Population(
        population.model,
        population.units * len(values),
        {root: thresholds * len(values) for root, thresholds in population.thresholds.items()},
    )
    world = everything.simulate("", Intervention(assigned=tuple(targets)), environment, assigned)
    columns = world.by_variable
    parts = [np.empty((num_rows, 0), np.bool_)]
    for variable, tables in alternatives.tables.items():
        if len(tables) and variable not in targets:
            groups = rows_by_pattern([columns[u] for u in alternatives.windows[variable]], (1 << num_rows) - 1)
            pattern = np.empty(num_rows, np.uint64)
            for index, rows in enumerate(groups):
                pattern[_members(rows)] = index
            differs = tables ^ np.uint64(alternatives.gold[variable])
            parts.append((differs[None, :] >> pattern[:, None] & np.uint64(1)).astype(np.bool_))
    return np.concatenate(parts, axis=1)


def _members(rows: Column) -> list[int]:
    return [row for row in range(rows.bit_length()) if rows >> row & 1]


def _not_constant(column: Column, fixed: Column, num_rows: int) -> Column:
    """Return the column, with one row flipped if it was constant: the first that is not fixed, else the first.

    A column of a single row is returned unchanged.
    """
    every_row = (1 << num_rows) - 1
    if num_rows == 1 or column not in (0, every_row):
        return column
    free = every_row & ~fixed or every_row
    return column ^ (free & -free)
