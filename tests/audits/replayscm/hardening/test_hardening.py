"""Hardened items: worlds that leave fewer alternatives, within budgets, at the limit and one below."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product
from random import Random

import pytest

from calibrant.audits.replayscm.ambiguity import gold_class
from calibrant.audits.replayscm.bounded import latent_scm, pattern_coverage, support_coverage
from calibrant.audits.replayscm.hardening.harden import (
    Hardening,
    HardeningEffort,
    Search,
    SearchResult,
    counterexample_worlds,
    designed_world,
    extra_worlds,
    only_rows,
    open_patterns,
)
from calibrant.audits.replayscm.hardening.objectives import HardeningGoal, Members
from calibrant.audits.replayscm.hardening.worlds import WorldFamily, heldout_signatures, population
from calibrant.bench.replayscm import hardening as hardened_pools
from calibrant.bench.replayscm.hardening import HardenJob, HardenOptions, harden_instance
from calibrant.dsl.replayscm.disclosure import HiddenOrder
from calibrant.dsl.replayscm.item import Problem, Task
from calibrant.dsl.replayscm.reference import replays_exactly
from calibrant.dsl.replayscm.scm import Scm, scm
from calibrant.dsl.replayscm.world import Intervention, World
from calibrant.solvers.formulas.synthesis import MAX_SIZE_OF_FOUR
from calibrant.solvers.outcome import BudgetSpent, Found, Impossible, OutOfBudget
from calibrant.solvers.replayscm.members import members_by_size, sample_members
from calibrant.solvers.replayscm.space import ModelClass, VersionSpace
from tests.support.replayscm.brute_force import all_members, does, observed, replay
from tests.support.replayscm.pools import dev_problems
from tests.support.replayscm.random_problems import SETTINGS, Shape, assignments_of_roots, gold_problem, normal_form
from tests.support.replayscm.written import written_problem, written_scm, written_world

# --- Hardening: what it ends with against enumeration, what it may add, and that nothing else changes -----------------
SHAPES = (Shape(), Shape(roots=1, endogenous=3, units=5, training=3), Shape(training=1, units=3))
KNOWN_ROOTS = SETTINGS[:3]


def family_of(problem: Problem, max_targets: int = 3) -> WorldFamily:
    return WorldFamily(population(problem, Random(0)), heldout_signatures(problem), max_targets=max_targets)


def admissible_rows(problem: Problem, family: WorldFamily, max_targets: int) -> set[tuple[object, ...]]:
    """(targets, row) of every world of these units, by the oracle: all interventions, levels and values, row by row.

    Units and levels matter by the bits that they give the roots: each assignment of those is replayed once.
    """
    gold, thresholds = latent_scm(problem), family.population.thresholds
    excluded = heldout_signatures(problem)
    assignments = assignments_of_roots({root: thresholds[root] for root in gold.roots})
    rows: set[tuple[object, ...]] = set()
    for number in range(max_targets + 1):
        for targets in combinations(gold.variables, number):
            for values in product((0, 1), repeat=number):
                assigned = dict(zip(targets, values, strict=True))
                possible = [Intervention(assigned), *([Intervention(assigned=targets)] if targets else [])]
                if all(intervention.signature in excluded for intervention in possible):
                    continue
                for assignment in assignments:
                    row = replay(gold, Intervention(assigned), assignment.__getitem__)
                    rows.add((targets, tuple(row[v] for v in gold.variables)))
    return rows


def hardened(setting: str = "Hidden-order", seeds: int = 8, **options: object) -> Iterator[tuple[Problem, Hardening]]:
    for shape in SHAPES:
        for seed in range(seeds):
            problem = gold_problem(seed, setting, shape)
            yield problem, counterexample_worlds(problem, 0, **options)  # type: ignore[arg-type]


# --- what can be shown -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("max_targets", [0, 1, 2, 3])
def test_reachable_rows_are_those_of_all_admissible_worlds(max_targets: int) -> None:
    for seed in range(4):
        problem = gold_problem(seed, shape=Shape(units=3, heldout=3))
        family = family_of(problem, max_targets)
        targets = [tuple(sorted(world.intervention.targets)) for world in family.reachable]
        shown = {
            (chosen, tuple(row.values()))
            for chosen, world in zip(targets, family.reachable, strict=True)
            for row in world.rows()
        }
        assert shown == admissible_rows(problem, family, max_targets)


def test_random_worlds_are_admissible_and_show_reachable_rows_only() -> None:
    for seed in range(6):
        problem = gold_problem(seed, shape=Shape(units=4, heldout=4))
        family, rng = family_of(problem), Random(seed)
        rows = admissible_rows(problem, family, 3)
        for _ in range(30):
            world, environment = family.random_world("w", rng)
            assert world.intervention.signature not in heldout_signatures(problem)
            targets = tuple(sorted(world.intervention.targets))
            assert {(targets, tuple(row.values())) for row in world.rows()} <= rows
            assert set(environment) == set(latent_scm(problem).roots)


def test_a_designed_world_leaves_no_more_than_any_single_row_on_its_targets() -> None:
    helped = 0
    for seed in range(8):
        problem = gold_problem(seed, shape=Shape(units=4))
        family, objective = family_of(problem), Members(VersionSpace(problem.task, ModelClass(3)))
        for targets in family.target_sets:
            drawn = designed_world(family, "w", targets, objective, Random(seed))
            rows = [only_rows(world, [row]) for world in family.rows(targets) for row in range(world.num_rows)]
            if drawn is None:
                assert not rows
                continue
            assert objective.count_remaining([drawn.world]) <= min(objective.count_remaining([row]) for row in rows)
            assert drawn.world.intervention in family.interventions(targets)
            for target in drawn.world.intervention.assigned:
                assert drawn.world.column(target) not in (0, (1 << drawn.world.num_rows) - 1)
            helped += objective.count_remaining([drawn.world]) < objective.count_remaining(())
    assert helped >= 20


# --- what counterexample_worlds ends with ----------------------------------------------------------------------------


@pytest.mark.parametrize("setting", KNOWN_ROOTS)
def test_found_means_that_gold_is_the_only_member(setting: str) -> None:
    kinds = set()
    for problem, result in hardened(setting, seeds=4):
        found = all_members(result.problem.task, 3)
        assert result.after.members == len(found)
        assert result.before.members == len(all_members(problem.task, 3))
        kinds.add(type(result.outcome))
        if isinstance(result.outcome, Found):
            assert result.outcome.value == result.problem
            ((_, mechanisms),) = found
            assert {v: (p, bits) for v, p, bits in mechanisms} == {
                v: (local.parents, local.table.bits) for v, local in latent_scm(problem).local_functions.items()
            }
    assert Found in kinds


def test_impossible_means_that_the_members_agree_on_every_admissible_row() -> None:
    """With one target at most, much cannot be told apart; each member is replayed on all rows by the oracle's gold.

    The rows are those of the thresholds that were drawn and of others that agree with the evidence. Where others could
    leave less the outcome is open.
    """
    impossible = 0
    for problem, result in hardened(max_targets=1, seeds=5):
        left = all_members(result.problem.task, 3)
        assert result.least_members <= len(left) == result.after.members
        if len(left) == 1:
            assert isinstance(result.outcome, Found)
            continue
        if result.least_members < len(left):
            assert isinstance(result.outcome, OutOfBudget)
            assert f"others that agree with the evidence {result.least_members} could" in result.outcome.reached
            continue
        assert isinstance(result.outcome, Impossible)
        assert f"{len(left)} members" in result.outcome.exhausted
        assert "on at most 1 targets" in result.outcome.exhausted
        drawn = [population(problem, Random(seed)) for seed in ("cex 0", "other", "another")]
        families = [WorldFamily(units, heldout_signatures(problem), max_targets=1) for units in drawn]
        for targets, row in set().union(*(admissible_rows(problem, family, 1) for family in families)):
            columns = tuple(int(bit) for bit in row)  # type: ignore[attr-defined]
            world = World("w", Intervention(assigned=targets), latent_scm(problem).variables, ("u",), columns)  # type: ignore[arg-type]
            assert all(does(member, [world]) == observed([world]) for member in left)
        impossible += 1
    assert impossible >= 5


def test_the_relaxations_of_an_impossible_case_are_counted() -> None:
    """What is said to be left with one target more is what remains when that is admitted."""
    checked = 0
    for problem, result in hardened(max_targets=1, seeds=5):
        if isinstance(result.outcome, Impossible):
            wider = counterexample_worlds(problem, 0, max_targets=2)
            assert f"{wider.least_members} with 2 targets" in result.outcome.exhausted
            checked += 1
    assert checked >= 5


def test_the_budget_of_worlds_is_kept_and_reported() -> None:
    spent = 0
    for _, result in hardened(effort=HardeningEffort(max_worlds=1), seeds=5):
        assert len(result.added) <= 1
        if isinstance(result.outcome, OutOfBudget):
            assert result.after.members > result.least_members == result.outcome.lower_bound
            assert "the budget of 1 added worlds was spent" in result.outcome.reached
            spent += 1
    assert spent >= 5


def test_all_members_replay_held_out_worlds_when_that_is_the_goal() -> None:
    several = 0
    for _, result in hardened(goal=HardeningGoal.HELDOUT_AGREEMENT, seeds=5):
        heldout = result.problem.sealed.heldout.worlds
        agreeing = [does(m, heldout) == observed(heldout) for m in all_members(result.problem.task, 3)]
        assert isinstance(result.outcome, Found) == all(agreeing)
        assert result.after.agreement == sum(agreeing) / len(agreeing)
        several += len(agreeing) > 1
    assert several >= 3  # agreement is not uniqueness


def test_coverage_is_completed_unless_it_is_left_out() -> None:
    for_patterns = 0
    for problem, result in hardened(seeds=4):
        assert result.after.coverage == pattern_coverage(result.problem).share
        objective = open_patterns(result.problem)
        family = WorldFamily(population(problem, Random("cex 0")), heldout_signatures(problem))
        assert objective.count_remaining(()) == objective.count_remaining(family.reachable)
        without = counterexample_worlds(problem, 0, complete_coverage=False)
        assert all(step.objective != "local patterns" for step in without.added)
        assert without.after.members == result.after.members
        for_patterns += sum(step.objective == "local patterns" for step in result.added)
    assert for_patterns >= 3


# --- supplied alternatives -------------------------------------------------------------------------------------------


def other_members(problem: Problem) -> list[Scm]:
    """Members other than gold, as SCMs."""
    gold = latent_scm(problem)
    models = []
    for roots, mechanisms in all_members(problem.task, 3):
        if all(parents and bits for _, parents, bits in mechanisms):  # constants would need something to mention
            model = scm(roots, {v: normal_form(parents, bits) for v, parents, bits in mechanisms})
            models += [] if model.equivalent(gold) else [model]
    return models


def test_every_supplied_alternative_is_separated_or_named() -> None:
    named = separated = 0
    for seed in range(8):
        problem = gold_problem(seed)
        alternatives = Random(seed).sample(other_members(problem), 5)
        for max_targets in (0, 3):
            result = counterexample_worlds(problem, 0, alternatives=alternatives, max_targets=max_targets)
            worlds = result.problem.task.training.worlds
            rows = [(world.intervention, row) for world in worlds for row in world.rows()]
            fitting = [
                number
                for number, model in enumerate(alternatives, 1)
                if all(replay(model, intervention, row.__getitem__) == row for intervention, row in rows)
            ]
            assert [line.split(":")[0] for line in result.unseparated] == [f"alternative {n}" for n in fitting]
            assert all("agrees with gold in every row" in line for line in result.unseparated)
            named += len(fitting)
            separated += len(alternatives) - len(fitting)
    assert named
    assert separated


def test_an_alternative_outside_the_class_is_found_by_the_only_targets_that_show_it() -> None:
    """B to H copy A. The alternative differs where B, C, D are 1 and F, G, H are 0: 2 of 176 target sets can show that.

    It has seven parents, so reducing the class would not separate it; without random proposals the design has to.
    """
    copies = dict.fromkeys("BCDFGH", "(not (not A))")
    gold = written_scm("A", **copies, Z="B")
    other = written_scm("A", **copies, Z="(xor B (and B C D (not F) (not G) (not H)))")
    names = " ".join(gold.variables)
    rows = " ".join("".join(bit for _ in gold.variables) for bit in "01")
    problem = written_problem(
        HiddenOrder(gold.variables, ("A",)), gold, [written_world("w", names, rows)], latent="A B C D F G H Z"
    )
    for seed in range(12):
        result = counterexample_worlds(
            problem,
            seed,
            alternatives=[other],
            complete_coverage=False,
            effort=HardeningEffort(proposals=0, max_worlds=1),
        )
        (step,) = result.added
        assert (step.objective, step.before, step.after) == ("alternatives", 1, 0)
        assert step.draw.world.intervention.targets in ({"B", "C", "D"}, {"F", "G", "H"})
        assert result.unseparated == ()


def test_an_alternative_that_the_budget_does_not_reach_is_named() -> None:
    problem = gold_problem(0)
    alternatives = other_members(problem)[:3]
    result = counterexample_worlds(problem, 0, alternatives=alternatives, effort=HardeningEffort(max_worlds=0))
    assert result.added == ()
    assert [line.split(":")[0] for line in result.unseparated] == ["alternative 1", "alternative 2", "alternative 3"]
    assert any("the budget of 0 added worlds was spent" in line for line in result.unseparated)


# --- what must not change --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("setting", SETTINGS)
def test_only_training_worlds_are_added(setting: str) -> None:
    for seed in range(4):
        problem = gold_problem(seed, setting, Shape(units=5))
        result = counterexample_worlds(problem, 3)
        after = result.problem
        old = len(problem.task.training.worlds)
        new = after.task.training.worlds[old:]
        assert after.task.training.worlds[:old] == problem.task.training.worlds
        assert replace(after.task, training=problem.task.training) == problem.task
        assert replace(after.sealed, environments=problem.sealed.environments) == problem.sealed
        assert problem.sealed.environments.items() <= after.sealed.environments.items()
        assert [world.id for world in new] == [f"train_hard_{i + 1:02d}" for i in range(len(new))]
        gold = latent_scm(problem)
        for world in new:
            assert world.intervention.signature not in heldout_signatures(problem)
            assert len(world.intervention.targets) <= 3
            assert world.units == problem.task.training.worlds[0].units
            assert all(replay(gold, world.intervention, row.__getitem__) == row for row in world.rows())


def test_gold_has_to_be_a_member() -> None:
    problem = next(p for p in dev_problems("hidden_order") if gold_class(p).max_parents == 5)
    with pytest.raises(ValueError, match="gold is not in the class functional parents <= 4"):
        counterexample_worlds(problem, 0, model_class=ModelClass(4))
    small = gold_problem(0)
    last, first = latent_scm(small).order[-1], small.task.training.worlds[0]
    flipped = tuple(c ^ (v == last) for v, c in zip(first.variables, first.columns, strict=True))
    broken = replace(first, columns=flipped)
    training = replace(small.task.training, worlds=(broken, *small.task.training.worlds[1:]))
    with pytest.raises(ValueError, match="gold does not replay the training worlds"):
        counterexample_worlds(replace(small, task=replace(small.task, training=training)), 0)


# --- extra worlds ----------------------------------------------------------------------------------------------------


def shown_twice(problem: Problem, num_worlds: int) -> tuple[int, int]:
    """Count the patterns of three neighbours among the predecessors that two of the first worlds show, and all."""
    order, gold = problem.sealed.latent_order, latent_scm(problem)
    bound = problem.sealed.max_predecessors or len(order)
    seen = total = 0
    for index, v in enumerate(order):
        window = order[max(0, index - bound) : index] if v in gold.mechanisms else ()
        for start in range(max(1, len(window) - 2) if window else 0):
            causes = window[start : start + 3]
            worlds_of = Counter(
                pattern
                for world in problem.task.training.worlds[:num_worlds]
                if v not in world.intervention.targets
                for pattern in {tuple(world.column(u) >> row & 1 for u in causes) for row in range(world.num_rows)}
            )
            seen += sum(number >= 2 for number in worlds_of.values())
            total += 2 ** len(causes)
    return seen, total


def test_extra_worlds_are_three_or_four_single_variable_worlds_for_new_patterns() -> None:
    numbers, gained = Counter[int](), 0
    for seed in range(12):
        problem = gold_problem(seed, shape=Shape(roots=2, endogenous=4, units=6, training=1 + 15 * (seed % 2)))
        before = len(problem.task.training.worlds)
        after = extra_worlds(problem, 0)
        new = after.task.training.worlds[before:]
        assert all(len(world.intervention.targets) <= 1 for world in new)
        assert all(world.intervention.signature not in heldout_signatures(problem) for world in new)
        counts = [shown_twice(after, before + number)[0] for number in range(len(new) + 1)]
        assert counts == sorted(counts)
        gained += counts[-1] - counts[0]
        seen, total = shown_twice(after, before + 3)
        assert len(new) == (3 if seen >= 0.95 * total else 4)
        assert support_coverage(after).share == Fraction(*shown_twice(after, len(after.task.training.worlds)))
        numbers[len(new)] += 1
    assert set(numbers) == {3, 4}
    assert gained > 60


def test_variants_of_an_instance_get_the_same_extra_worlds() -> None:
    added = 0
    pools = [dev_problems(name)[10::20] for name in ("ordered", "block", "hidden_order", "hidden_roots")]
    for variants in zip(*pools, strict=True):
        new = [extra_worlds(p, 4).task.training.worlds[len(p.task.training.worlds) :] for p in variants]
        assert new[0] == new[1] == new[2] == new[3]
        added += len(new[0])
    assert added >= 12  # at least three each


# --- shared pools ----------------------------------------------------------------------------------------------------


def test_shared_instances_end_with_one_member() -> None:
    for problem in dev_problems("hidden_order")[:30:15]:
        result = counterexample_worlds(problem, 0)
        assert isinstance(result.outcome, Found)
        assert VersionSpace(result.problem.task, gold_class(result.problem)).count == 1
        assert result.after.agreement == 1
        assert result.after.coverage == 1
        made = harden_instance(HardenJob(problem, HardenOptions("cex", 0)))
        told = json.loads(json.dumps(made.report))
        assert made.problem == result.problem
        assert told["members"] == [str(result.before.members), "1"]
        assert told["worlds"] == [len(one.task.training.worlds) for one in (problem, result.problem)]
        assert told["coverage"][1] == 1.0
        assert [step["world"] for step in told["steps"]] == [step.draw.world.id for step in result.added]
        assert [step["members"] for step in told["steps"]][-1] == "1"


# --- the goal that no search discovers an alternative ----------------------------------------------------------------


def list_all_members(problem: Problem) -> Search:
    """Return a search that lists every member of gold's class."""

    def search(task: Task) -> Iterator[SearchResult]:
        listed = replace(gold_class(problem), max_size=MAX_SIZE_OF_FOUR)  # every function of four parents has one
        for member in members_by_size(VersionSpace(task, listed)):
            yield SearchResult("listing", "found", member)

    return search


@pytest.mark.parametrize("setting", KNOWN_ROOTS)
def test_a_search_of_all_members_ends_as_the_goal_of_one_member_does(setting: str) -> None:
    compared = Counter[str]()
    for shape in SHAPES:
        for seed in range(3):
            problem = gold_problem(seed, setting, shape)
            if VersionSpace(problem.task, gold_class(problem)).count > 300:
                continue
            search = list_all_members(problem)
            listed = counterexample_worlds(problem, 0, goal=HardeningGoal.NONE_DISCOVERED, search=search)
            counted = counterexample_worlds(problem, 0)
            assert isinstance(listed.outcome, Found) == (listed.after.members == 1)
            assert type(listed.outcome) is type(counted.outcome)
            assert listed.after.members == counted.after.members
            compared[type(listed.outcome).__name__] += 1
    assert compared["Found"] >= 2


def test_searches_are_asked_again_until_they_discover_nothing_new() -> None:
    rounds = Counter[int]()
    for seed in range(8):
        problem = gold_problem(seed, shape=Shape(training=1, units=3))
        calls: list[Task] = []

        def search(task: Task, calls: list[Task] = calls, seed: int = seed) -> Iterator[SearchResult]:
            calls.append(task)
            drawn = sample_members(VersionSpace(task, ModelClass(4)), Random(seed + len(calls)), 1)
            yield SearchResult("draw", "found", drawn[0])

        result = counterexample_worlds(
            problem, 0, goal=HardeningGoal.NONE_DISCOVERED, search=search, complete_coverage=False
        )
        assert result.discoveries is not None
        gold, (last,) = latent_scm(problem), result.discoveries.last
        assert len(calls) == len(result.discoveries.models) + 1  # one a round
        known = [gold, *(model for _, model in result.discoveries.models)]
        assert last.model is not None
        assert any(last.model.equivalent(model) for model in known)
        for (_, model), fate in zip(result.discoveries.models, result.alternatives, strict=True):
            still_fits = replays_exactly(model, result.problem.task.training.worlds)
            assert still_fits == (fate.world == "") == bool(fate.why)
        if isinstance(result.outcome, Found):
            assert not any(fate.why for fate in result.alternatives)
        rounds[len(calls)] += 1
    assert max(rounds) > 1


def test_searches_and_their_goal_go_together() -> None:
    problem = gold_problem(0)
    for options in ({"goal": HardeningGoal.NONE_DISCOVERED}, {"search": list_all_members(problem)}):
        with pytest.raises(ValueError, match="required for the goal NONE_DISCOVERED"):
            counterexample_worlds(problem, 0, **options)


# --- Hardening ends: budgets of what is weighed, at the limit and one below; the counts that it goes by ---------------
def test_the_budget_of_weighed_worlds_ends_with_the_worlds_found_so_far() -> None:
    """One state less than it takes, and what was found before is kept; with all of them, what no budget gives."""
    problem = gold_problem(1, shape=Shape(roots=1, endogenous=3, units=3, training=1))
    whole = counterexample_worlds(problem, 0, complete_coverage=False)
    assert isinstance(whole.outcome, Found)
    assert len(whole.added) >= 2
    enough = least(2**14, lambda states: weighed(problem, states).added == whole.added)
    same, short = weighed(problem, enough), weighed(problem, enough - 1)
    assert (same.problem, same.outcome) == (whole.problem, whole.outcome)
    assert short.added == whole.added[:-1]
    assert isinstance(short.outcome, OutOfBudget)
    assert f"the budget of {enough - 1:,} for fewer members was spent" in short.outcome.reached
    assert short.after.members == len(all_members(short.problem.task, 3)) > 1
    nothing = weighed(problem, 0)
    assert nothing.added == ()
    assert nothing.after.members == len(all_members(problem.task, 3))


def weighed(problem: Problem, states: int) -> Hardening:
    return counterexample_worlds(problem, 0, complete_coverage=False, effort=HardeningEffort(max_weighed=states))


def least(high: int, enough: Callable[[int], bool]) -> int:
    """Return the least number that is enough; `high` is."""
    low = 0
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle + 1, high)
    return low


def test_a_class_that_cannot_be_counted_is_out_of_budget_and_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def spent(*_: object, **__: object) -> Hardening:
        raise BudgetSpent("30 variables that may lie on a cycle together")

    monkeypatch.setattr(hardened_pools, "counterexample_worlds", spent)
    problem = gold_problem(0)
    made = harden_instance(HardenJob(problem, HardenOptions("cex", 0)))
    assert made.problem == problem
    assert made.report["outcome"] == "out_of_budget"
    assert made.report["why"] == "the members cannot be counted: 30 variables that may lie on a cycle together"


def test_members_left_by_many_worlds_at_once_are_those_of_each_counted_from_scratch() -> None:
    """In batches of one and of all, with few rows and with many, and after worlds were added."""
    different = set()
    for seed in range(8):
        problem = gold_problem(seed, SETTINGS[seed % 4], Shape(units=3, training=2))
        family = WorldFamily(population(problem, Random(0)), heldout_signatures(problem))
        worlds = [family.random_world("w", Random(i)).world for i in range(6)]
        options = [[], worlds[:1], worlds[:2], worlds[2:5], list(family.reachable)]
        space = VersionSpace(problem.task, ModelClass(3))
        members = Members(space)
        for evidence, now in ((space, members), (space.with_worlds(worlds[5:]), members.after(worlds[5]))):
            expected = [evidence.with_worlds(option).count for option in options]
            assert now.count_remaining_each(options) == [now.count_remaining(option) for option in options] == expected
            assert now.count_remaining(()) == evidence.count
            different.update(expected)
    assert len(different) >= 20
