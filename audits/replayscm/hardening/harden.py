"""Hardening: add training worlds simulated from gold until a goal is met, or prove that no admissible world meets it.

An objective counts what remains: consistent SCMs, unseen patterns or alternatives. A world is designed row by row.
The first row is the one after which the count is smallest, with a unit and an environment in which it occurs. Then
every other unit in turn takes the target values that give the smallest count after all rows so far. More rows never
raise the count, so the world's count is at most that of its first row.

`extra_worlds` adds three or four worlds for local patterns, as the paper's Extra Worlds level does.
`counterexample_worlds` completes local coverage and separates every supplied alternative. Then it separates whatever
named searches discover on the item with these worlds, until they discover nothing new, as the paper's Counterexample
Audit does; or, beyond the paper, it reduces the version space of a named class to what no admissible world can reduce
further. The same seed gives the same worlds; gold and held-out worlds never change.

Exhaustion decides whether more can be separated. The evidence bounds the latent thresholds of each unit. All rows that
some thresholds within the bounds can produce are added at once: no number of admissible worlds leaves fewer members.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from random import Random
from typing import NamedTuple, TypeAlias

from calibrant.audits.replayscm import bounded
from calibrant.audits.replayscm.ambiguity import gold_class
from calibrant.audits.replayscm.hardening import objectives
from calibrant.audits.replayscm.hardening.worlds import (
    Targets,
    WorldFamily,
    heldout_signatures,
    population,
    threshold_ranges,
    under_any_thresholds,
)
from calibrant.dsl.replayscm.evaluator import replays
from calibrant.dsl.replayscm.generation.problems import Drawn, Environment, sample_world
from calibrant.dsl.replayscm.generation.strata import ENVIRONMENT_LEVELS, MAX_TARGETS
from calibrant.dsl.replayscm.item import Problem, Task
from calibrant.dsl.replayscm.pools.files import as_written
from calibrant.dsl.replayscm.reference import replays_exactly
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.replayscm.world import Column, Intervention, Panel, World
from calibrant.solvers.outcome import Budget, BudgetSpent, Outcome
from calibrant.solvers.replayscm.space import ModelClass, VersionSpace

# --- Worlds designed row by row: each row has the smallest count of all that the targets allow ------------------------


class _Start(NamedTuple):
    """First row of a designed world, and a unit and an environment that produce it."""

    intervention: Intervention
    unit: int
    environment: Environment
    row: Mapping[str, int]


def designed_world(
    family: WorldFamily, world_id: str, targets: Targets, objective: objectives.Objective, rng: Random
) -> Drawn | None:
    """Return a world on exactly these targets, ties broken at random; None if the targets admit no row."""
    start = _best_row(family, targets, objective, rng)
    if start is None:
        return None
    assigned = dict.fromkeys(start.intervention.assigned, 0)
    num_units = len(family.population.units)

    def simulate(columns: Mapping[str, Column]) -> World:
        return family.population.simulate(world_id, start.intervention, start.environment, columns)

    order = [start.unit, *(unit for unit in range(num_units) if unit != start.unit)]
    for index, unit in enumerate(order if assigned else ()):  # without assigned targets there is nothing to choose
        done = order[: index + 1]
        options = (
            [tuple(start.row[t] for t in assigned)]
            if index == 0
            else _target_assignments(assigned, unit, num_units, done)
        )
        filled = [
            {t: column | bit << unit for (t, column), bit in zip(assigned.items(), values, strict=True)}
            for values in options
        ]
        counts = objective.count_remaining_each([[only_rows(simulate(columns), done)] for columns in filled])
        ranked = [(count, rng.random(), columns) for count, columns in zip(counts, filled, strict=True)]
        assigned = min(ranked, key=lambda option: option[:2])[2]
    return Drawn(simulate(assigned), start.environment)


def _best_row(family: WorldFamily, targets: Targets, objective: objectives.Objective, rng: Random) -> _Start | None:
    """Return the row with the smallest count, with a random unit and environment that produce it."""
    rows = [(world, index) for world in family.rows(targets) for index in range(world.num_rows)]
    if not rows:
        return None
    counts = objective.count_remaining_each([[only_rows(world, [index])] for world, index in rows])
    ranked = [(count, rng.random()) for count in counts]
    world, index = rows[ranked.index(min(ranked))]
    row = world.row(index)
    free = [root for root in family.population.model.roots if root not in targets]
    levels = [  # by unit: the environment levels at which each free root has its value in the row
        {root: family.levels(unit, root, row[root]) for root in free} for unit in range(len(family.population.units))
    ]
    unit = rng.choice([unit for unit, levels_by_root in enumerate(levels) if all(levels_by_root.values())])
    environment = {
        root: rng.choice(levels[unit].get(root) or ENVIRONMENT_LEVELS) for root in family.population.model.roots
    }
    return _Start(world.intervention, unit, environment, row)


def _target_assignments(
    assigned: Mapping[str, Column], unit: int, num_units: int, done: Sequence[int]
) -> Iterator[tuple[int, ...]]:
    """Return the assignments of the targets in a unit; in the last unit only those that leave no column constant."""
    all_but_unit = ((1 << num_units) - 1) ^ (1 << unit)
    is_last = len(done) == num_units
    return product(
        *([int(column == 0)] if is_last and column in (0, all_but_unit) else (0, 1) for column in assigned.values())
    )


def only_rows(world: World, rows: Sequence[int]) -> World:
    """Return the world with these of its rows, in that order."""
    columns = tuple(sum((column >> row & 1) << index for index, row in enumerate(rows)) for column in world.columns)
    return World(world.id, world.intervention, world.variables, tuple(world.units[row] for row in rows), columns)


# --- The greedy loop of hardening: add the best of seeded proposals until an objective is as small as it can get ------
DESIGNS = 2  # worlds designed in a step
TARGET_SETS = 48  # target sets sampled for a design; if none of them lowers the count, all are tried
MAX_WEIGHED = 220_000_000  # bounds the time for one objective; unit: `HardeningEffort.max_weighed`
MAX_TIES = 8  # tied proposals, at most, that are compared by remaining members


@dataclass(frozen=True, slots=True)
class HardeningEffort:
    """Budgets: worlds added in all, random proposals a step, work for one objective.

    max_weighed: number of worlds tried, each multiplied by `Objective.breadth`: for members the parent sets that
        remain, which are tens of thousands at 40 variables of unknown order
    """

    max_worlds: int = 100
    proposals: int = 48
    max_weighed: int = MAX_WEIGHED


@dataclass(frozen=True, slots=True)
class AddedWorld:
    """One step: the world, the name of the objective, its count before and after, the members of the class after."""

    draw: Drawn
    objective: str
    before: int
    after: int
    members: int


class WorldNames:
    """Unused world ids: train_hard_01, train_hard_02, ..."""

    def __init__(self, problem: Problem) -> None:
        self._taken = {world.id for world in problem.worlds}
        self._last_index = 0

    def next(self) -> str:
        self._last_index += 1
        name = f"train_hard_{self._last_index:02d}"
        return self.next() if name in self._taken else name


class Selector:
    """Adds worlds of a family to an instance, one after another.

    members: version space, given the worlds chosen so far
    steps: the worlds added
    spent: a sentence for each budget that ran out before its objective was as small as it can get
    """

    def __init__(
        self, family: WorldFamily, members: objectives.Members, names: WorldNames, rng: Random, effort: HardeningEffort
    ) -> None:
        self.family = family
        self.members = members
        self.steps: list[AddedWorld] = []
        self.spent: list[str] = []
        self._names = names
        self._rng = rng
        self._effort = effort

    @property
    def worlds(self) -> tuple[World, ...]:
        return tuple(step.draw.world for step in self.steps)

    def reduce(self, objective: objectives.Objective) -> None:
        """Add worlds until no admissible world lowers the count, or a budget is spent.

        objective: conditioned on the worlds in `steps`
        """
        min_reachable = objective.count_remaining(self.family.reachable)
        num_remaining = objective.count_remaining(())
        budget = Budget(self._effort.max_weighed)
        weighed: objectives.Objective = objectives.ChargedObjective(objective, budget)
        while num_remaining > min_reachable:
            if len(self.steps) >= self._effort.max_worlds:
                self.spent.append(f"the budget of {self._effort.max_worlds:,} added worlds was spent")
                return
            try:
                draw, after = self._best(weighed, num_remaining)
            except BudgetSpent as spent:
                unit = "one world for one parent set, pattern or mechanism"
                limit = f"{self._effort.max_weighed:,} for fewer {objective.name}"
                charged = f"the budget of {limit} was spent (unit: {unit})"
                self.spent.append(charged if budget.exhausted else str(spent))
                return
            self.members, weighed = self.members.after(draw.world), weighed.after(draw.world)
            self.steps.append(AddedWorld(draw, objective.name, num_remaining, after, self.members.count_remaining(())))
            num_remaining = after

    def _best(self, objective: objectives.Objective, num_remaining: int) -> tuple[Drawn, int]:
        """Return the proposed world with the smallest count, and that count."""
        name = self._names.next()
        proposals = [self.family.random_world(name, self._rng) for _ in range(self._effort.proposals)]
        proposals += self._design_worlds(name, objective, num_remaining)
        counts = objective.count_remaining_each([[draw.world] for draw in proposals])
        fewest = min(counts)
        ties = [draw for draw, after in zip(proposals, counts, strict=True) if after == fewest][:MAX_TIES]
        members = self.members.count_remaining_each([[draw.world] for draw in ties]) if len(ties) > 1 else [0]
        return ties[members.index(min(members))], fewest

    def _design_worlds(self, name: str, objective: objectives.Objective, num_remaining: int) -> Iterator[Drawn]:
        """Yield worlds for the target sets with the lowest bound; at least one of them lowers the count."""
        all_target_sets = self.family.target_sets
        chosen = self._rng.sample(all_target_sets, min(TARGET_SETS, len(all_target_sets)))
        lower_bounds = self._lower_bounds(objective, chosen)
        if min(lower_bounds) == num_remaining:
            chosen, lower_bounds = list(all_target_sets), self._lower_bounds(objective, all_target_sets)
        ranked = sorted(range(len(chosen)), key=lower_bounds.__getitem__)
        for index in ranked[:DESIGNS]:
            draw = designed_world(self.family, name, chosen[index], objective, self._rng)
            if draw is not None:
                yield draw

    def _lower_bounds(
        self, objective: objectives.Objective, target_sets: list[Targets] | tuple[Targets, ...]
    ) -> list[int]:
        """Bound the count after a world from below, for each target set: the count after all rows that it allows."""
        return objective.count_remaining_each([self.family.rows(targets) for targets in target_sets])


EFFORT = HardeningEffort()


@dataclass(frozen=True, slots=True)
class Measurement:
    """An instance before or after hardening.

    members: number of SCMs of the class that fit the training worlds
    coverage: share of local predecessor patterns that the training rows show
    agreement: share of members that replay the held-out worlds
    """

    num_worlds: int
    members: int
    coverage: Fraction
    agreement: Fraction


class SearchResult(NamedTuple):
    """Result of one search for an SCM that fits an instance.

    search: name of the search, with its seed if it has one
    outcome: "found", "impossible" or "out_of_budget"; model: None unless "found"
    """

    search: str
    outcome: str
    model: Scm | None


Search: TypeAlias = Callable[[Task], Iterable[SearchResult]]


class Discoveries(NamedTuple):
    """SCMs that searches discovered while worlds were added.

    models: one SCM per equivalence class, with the name of the search that returned it first
    last: results of the last round, which returned nothing new
    """

    models: tuple[tuple[str, Scm], ...]
    last: tuple[SearchResult, ...]


@dataclass(frozen=True)
class Hardening:
    """A hardened instance, and how it was hardened.

    problem: the instance with the worlds added, whatever the outcome
    outcome: Found if the goal is reached, Impossible with the exhausted family of worlds as the proof, or OutOfBudget
    after: counted again, from the instance as it is written
    least_members: number of members with every row added that some admissible world can show
    alternatives: results of the supplied alternatives, then of the discovered ones
    discoveries: results of the searches of the goal NONE_DISCOVERED; None for other goals
    """

    problem: Problem
    model_class: ModelClass
    added: tuple[AddedWorld, ...]
    outcome: Outcome[Problem]
    before: Measurement
    after: Measurement
    least_members: int
    alternatives: tuple[objectives.SuppliedAlternative, ...]
    discoveries: Discoveries | None = None

    def __repr__(self) -> str:
        members = f"{self.before.members} -> {self.after.members} members"
        return f"<Hardening: {type(self.outcome).__name__}, {len(self.added)} worlds added, {members}>"

    @property
    def unseparated(self) -> tuple[str, ...]:
        """A sentence for each alternative that could not be separated, with the reason."""
        return tuple(
            f"alternative {alternative.number}: {alternative.why}"
            for alternative in self.alternatives
            if alternative.why
        )


def with_training_worlds(problem: Problem, added: Sequence[Drawn]) -> Problem:
    """Return the instance with worlds added to its training panel; nothing else changes."""
    task, sealed = problem.task, problem.sealed
    training = Panel(task.training.variables, (*task.training.worlds, *(draw.world for draw in added)))
    environments = {**sealed.environments, **{draw.world.id: draw.environment for draw in added}}
    return replace(problem, task=replace(task, training=training), sealed=replace(sealed, environments=environments))


EXTRA_WORLDS = 3
MIN_SUPPORT = 0.95  # below it a fourth world is added: 9 % of generated items, the paper's mean is 3.09


def extra_worlds(problem: Problem, seed: int) -> Problem:
    """Return the paper's Extra Worlds level: three worlds, or four, chosen one by one for local support.

    Candidates are the observational world and every single-variable hard_constant or hard_assigned one, each in one
    sampled environment, without held-out signatures. Take the world that adds most patterns shown by at least two
    worlds; break ties by patterns shown by at least one (`bounded.Support`). The disclosure is not read, so variants
    of one instance get the same worlds.
    """
    rng = Random(f"extra worlds {seed}")
    units = population(problem, rng)
    family, names = WorldFamily(units, heldout_signatures(problem)), WorldNames(problem)
    probes = bounded.consecutive_probes(bounded.windows(problem))
    total = sum(probe.num_patterns for probe in probes)
    current = bounded.support(problem.task.training.worlds, probes)
    added: list[Drawn] = []
    while len(added) < EXTRA_WORLDS or (len(added) == EXTRA_WORLDS and current.size[0] < MIN_SUPPORT * total):
        name = names.next()
        candidates = [sample_world(name, units, chosen, rng) for chosen in family.singles()]
        if not candidates:
            break
        supports = [current.after(bounded.patterns(candidate.world, probes)) for candidate in candidates]
        best = max(range(len(candidates)), key=lambda k: supports[k].size)
        current = supports[best]
        added.append(candidates[best])
    return with_training_worlds(problem, added)


def open_patterns(problem: Problem) -> objectives.OpenPatterns:
    """Return the objective of showing every local pattern that the training rows do not show yet."""
    probes = bounded.probes(problem)
    return objectives.OpenPatterns(probes, bounded.seen_patterns(problem.task.training.worlds, probes)).drop_complete()


def counterexample_worlds(
    problem: Problem,
    seed: int,
    *,
    alternatives: Sequence[Scm] = (),
    model_class: ModelClass | None = None,
    goal: objectives.HardeningGoal = objectives.HardeningGoal.SINGLE_MEMBER,
    search: Search | None = None,
    complete_coverage: bool = True,
    max_targets: int = MAX_TARGETS,
    effort: HardeningEffort = EFFORT,
) -> Hardening:
    """Complete local coverage, separate the alternatives, then reduce the version space to the goal.

    model_class: `gold_class` by default; `ValueError` if gold is not a member that fits
    search: required for the goal NONE_DISCOVERED, not allowed for other goals
    complete_coverage: if False, the version space is reduced at once, with fewer worlds
    """
    if (search is not None) is not (goal is objectives.HardeningGoal.NONE_DISCOVERED):
        raise ValueError("`search` is required for the goal NONE_DISCOVERED and not allowed for other goals")
    model_class = model_class or gold_class(problem)
    _check_gold(problem, model_class)
    rng = Random(f"cex {seed}")
    family = WorldFamily(population(problem, rng), heldout_signatures(problem), max_targets=max_targets)
    any_threshold_family = under_any_thresholds(family, threshold_ranges(problem))
    space = VersionSpace(problem.task, model_class)
    members = objectives.Members(space)
    selector = Selector(family, members, WorldNames(problem), rng, effort)
    if complete_coverage:
        selector.reduce(open_patterns(problem))
    # with the worlds added for coverage, which may have separated some alternatives already
    worlds = (*problem.task.training.worlds, *selector.worlds)
    fitting = objectives.FittingAlternatives(tuple(alternatives)).fitting(worlds)
    selector.reduce(objectives.FittingAlternatives(fitting))
    discoveries = None
    if search is not None:
        discoveries = separate_discovered(problem, selector, alternatives, search)
    else:
        selector.reduce(objectives.goal_objective(goal, problem, selector.members))
    hardened = with_training_worlds(problem, [step.draw for step in selector.steps])
    after = VersionSpace(as_written(hardened).task, model_class)
    _check_gold(hardened, model_class)
    expected = selector.members.count_remaining(())
    if after.count != expected:
        raise AssertionError(f"{after.count} members of the written instance, {expected} expected")
    discovered = () if discoveries is None else discoveries.models
    models, families = [*alternatives, *(model for _, model in discovered)], (family, any_threshold_family)
    alternative_results = tuple(
        objectives.supplied_alternatives(problem, models, selector.worlds, families, selector.spent)
    )
    return Hardening(
        problem=hardened,
        model_class=model_class,
        added=tuple(selector.steps),
        outcome=objectives.discovery_outcome(hardened, list(zip(models, alternative_results, strict=True)), families)
        if search is not None
        else objectives.goal_outcome(hardened, goal, after, families, selector.spent),
        before=_measure(problem, space),
        after=_measure(hardened, after),
        least_members=members.count_remaining(any_threshold_family.reachable),
        alternatives=alternative_results,
        discoveries=discoveries,
    )


def separate_discovered(
    problem: Problem, selector: Selector, alternatives: Sequence[Scm], search: Search
) -> Discoveries:
    """Separate the SCMs that searches discover, until a round of searches returns only gold and earlier SCMs."""
    distinct = [bounded.latent_scm(problem), *alternatives]
    discovered: list[tuple[str, Scm]] = []
    while True:
        hardened = with_training_worlds(problem, [step.draw for step in selector.steps])
        results = tuple(search(as_written(hardened).task))
        latest = []
        for name, _, model in results:
            if model is None or not replays(model, hardened.task.training):
                continue
            if not any(model.equivalent(earlier) for earlier in distinct):
                distinct.append(model)
                latest.append((name, model))
        if not latest:
            return Discoveries(tuple(discovered), results)
        discovered += latest
        selector.reduce(objectives.FittingAlternatives(tuple(model for _, model in latest)))


def _check_gold(problem: Problem, model_class: ModelClass) -> None:
    gold, worlds = bounded.latent_scm(problem), problem.task.training.worlds
    if not replays_exactly(gold, worlds):
        raise ValueError(f"problem '{problem.id}': gold does not replay the training worlds")
    if any(len(function.parents) > model_class.max_parents for function in gold.local_functions.values()):
        raise ValueError(f"problem '{problem.id}': gold is not in the class {model_class.describe(problem.task)}")


def _measure(problem: Problem, space: VersionSpace) -> Measurement:
    """Measure an instance, given the version space of its training worlds."""
    worlds, heldout = problem.task.training.worlds, problem.sealed.heldout.worlds
    return Measurement(len(worlds), space.count, bounded.pattern_coverage(problem).share, space.agreement(heldout))
