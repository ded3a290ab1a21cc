"""Audited instances: each version space is built once; planted ambiguity is found, planted uniqueness never accused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache
from random import Random
from typing import Any

import pytest

from calibrant.audits.replayscm import ambiguity, items
from calibrant.audits.replayscm import ceiling as limited_ceiling
from calibrant.audits.replayscm.ambiguity import Spaces, add_size_cap, gold_class, headline_parents, profile_classes
from calibrant.audits.replayscm.attribution import heldout_ceiling, heldout_decision
from calibrant.audits.replayscm.bounded import latent_scm
from calibrant.audits.replayscm.ceiling import ceiling
from calibrant.audits.replayscm.findings import Findings, PairAudit
from calibrant.audits.replayscm.hardening.harden import counterexample_worlds, only_rows
from calibrant.audits.replayscm.items import AuditOptions, audit_instance, candidates
from calibrant.bench.core.registry import bundled_pool
from calibrant.dsl.formulas.table import TruthTable
from calibrant.dsl.replayscm.item import Problem, Task
from calibrant.dsl.replayscm.pools.files import read_pool
from calibrant.dsl.replayscm.scm import Scm, scm
from calibrant.dsl.replayscm.world import Intervention, PackedPanels, Panel, World, pack_panels
from calibrant.solvers.outcome import Found
from calibrant.solvers.replayscm.members import sample_members
from calibrant.solvers.replayscm.space import ModelClass, VersionSpace, local_space
from tests.support.replayscm.brute_force import all_members, assignments, does, member_size, observed, replay
from tests.support.replayscm.pools import dev_problems
from tests.support.replayscm.random_problems import SETTINGS, Shape, gold_problem, normal_form, simulated


# --- One audited instance builds each of its version spaces once, and every part of the audit asks the same ones ------
def shown(panels: PackedPanels) -> tuple[bytes, bytes]:
    return panels.observed.tobytes(), panels.scored.tobytes()


@pytest.mark.parametrize("setting", SETTINGS)
def test_an_audit_builds_every_version_space_once(setting: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By class and evidence: of the training worlds, and of these with the held-out worlds; local spaces likewise."""
    problem = gold_problem(3, setting, Shape(roots=2, endogenous=3, units=3, training=2))
    evidence = (problem.task.training.worlds, problem.worlds)
    packed = [shown(pack_panels([Panel(problem.task.variables, worlds)])) for worlds in evidence]
    built: Counter[tuple[int, ModelClass]] = Counter()
    counted: Counter[tuple[int, int]] = Counter()
    build = VersionSpace.__init__

    def building(space: VersionSpace, task: Task, model_class: ModelClass, **limits: Any) -> None:
        build(space, task, model_class, **limits)
        if task.training.worlds in evidence and task.disclosure == problem.task.disclosure:
            built[evidence.index(task.training.worlds), model_class] += 1

    def counting(panels: Any, target: int, *arguments: Any) -> Any:
        if shown(panels) in packed:
            counted[packed.index(shown(panels)), target] += 1
        return local_space(panels, target, *arguments)

    monkeypatch.setattr(VersionSpace, "__init__", building)
    monkeypatch.setattr("calibrant.solvers.replayscm.space.local_space", counting)
    found = audit_instance(problem, AuditOptions())
    assert found.survivors
    assert found.ceilings
    assert found.split
    assert set(built.values()) == {1}
    training = {model_class for place, model_class in built if place == 0}
    assert training == {ModelClass(6), *profile_classes()}  # six parents for the cap of nine nodes
    most = {place: max(number for (where, _), number in counted.items() if where == place) for place in (0, 1)}
    assert most == {0: 1, 1: 1}  # a variable once, in the widest class; the others are parts of it


def test_a_capped_space_shares_the_functions_of_the_one_without() -> None:
    """And counts the same as one that is built alone."""
    for setting in SETTINGS:
        problem = gold_problem(5, setting, Shape(roots=2, endogenous=3, units=3, training=2))
        spaces = Spaces(problem)
        for size in (3, 5, 11):
            alone = VersionSpace(problem.task, ModelClass(3, size))
            assert spaces.space(3, size).counts_by_roots == alone.counts_by_roots
            share = alone.agreement(problem.sealed.heldout.worlds, size_penalty=1) if alone.count else None
            assert spaces.heldout_exact(spaces.space(3, size), size_penalty=1) == share


def test_survivors_are_of_the_class_that_is_named() -> None:
    """Where only nested root sets are asked for, the smallest members have such roots as well."""
    narrowed = 0
    for seed in range(12):
        problem = gold_problem(seed, SETTINGS[3], Shape(roots=2, endogenous=3, units=4, training=3))
        spaces = Spaces(problem, nested_roots=True)
        able = set(spaces.space(4).counts_by_roots)
        if able and able != set(VersionSpace(problem.task, ModelClass(4)).counts_by_roots):
            narrowed += 1
            assert {model.roots for model in candidates(spaces, 4)} <= able
    assert narrowed


# --- Counts, spectra and draws of an audit against enumeration of every root set, structure and function --------------
SHAPES = (Shape(), Shape(roots=1, endogenous=3, units=6, training=4), Shape(roots=3, endogenous=1, units=8))


@cache
def small() -> tuple[tuple[Problem, Findings], ...]:
    problems = [gold_problem(seed, SETTINGS[seed % 4], shape) for shape in SHAPES for seed in range(8)]
    return tuple((problem, audit_instance(problem, AuditOptions())) for problem in problems)


def counts(found: Findings) -> dict[tuple[int, int | None], int]:
    """(parents, cap) -> members."""
    plain: dict[tuple[int, int | None], int] = {(one.max_parents, None): int(one.members) for one in found.classes}
    return plain | {(one.max_parents, one.max_size): int(one.members) for one in found.capped}


def test_counts_equal_enumeration_in_every_class() -> None:
    """Four variables, so three parents are all there are."""
    several = 0
    for problem, found in small():
        listed = counts(found)
        assert set(listed) == {(c.max_parents, c.max_size) for c in profile_classes()}
        for (max_parents, max_size), number in listed.items():
            assert number == len(all_members(problem.task, min(3, max_parents), max_size))
        several += 1 < listed[2, None] < listed[3, None]
    assert several >= 6


def test_spectra_equal_enumeration() -> None:
    for problem, found in small():
        sizes = Counter(member_size(member, problem.task.grammar) for member in all_members(problem.task, 3))
        assert found.spectrum is not None
        assert found.spectrum.by_size == {size: str(number) for size, number in sorted(sizes.items())}


def test_draws_equal_enumeration() -> None:
    """Uniform in both classes (which are the same here) and with weight 2**-size."""
    inner = 0
    for problem, found in small():
        heldout = problem.sealed.heldout.worlds
        weights: dict[bool, list[Fraction]] = {True: [], False: []}
        for member in all_members(problem.task, 3):
            weight = Fraction(1, 2 ** member_size(member, problem.task.grammar))
            weights[does(member, heldout) == observed(heldout)].append(weight)
        num_exact, number = len(weights[True]), len(weights[True]) + len(weights[False])
        uniform, sized, weighted = found.draws
        assert uniform.probability == sized.probability == float(Fraction(num_exact, number))
        assert weighted.probability == float(sum(weights[True]) / (sum(weights[True]) + sum(weights[False])))
        assert (uniform.size_penalty, sized.size_penalty, weighted.size_penalty) == (None, None, 1)
        inner += 0 < num_exact < number
    assert inner >= 10


def test_the_gold_class_is_the_smallest_with_gold_in_it() -> None:
    for problem in dev_problems("hidden_order"):
        gold = problem.sealed.gold
        assert gold is not None
        widest = max(len(local.parents) for local in gold.local_functions.values())
        assert gold_class(problem) == ModelClass(max(4, widest))
    assert gold_class(gold_problem(0)) == ModelClass(4)


def test_too_wide_a_class_has_no_members_and_no_probability() -> None:
    """Gold mechanisms with five parents: nothing of two parents fits. What fits with five is counted all the same."""
    problem = next(p for p in dev_problems("ordered") if gold_class(p) == ModelClass(5))
    found = audit_instance(problem, AuditOptions())
    assert counts(found)[2, None] == 0
    assert add_size_cap(ModelClass(5)) == ModelClass(5, 11)
    assert "functional parents <= 5, formula size <= 11" in found.draws[1].in_words


def test_caps_are_used_only_as_far_as_they_are_complete() -> None:
    assert add_size_cap(ModelClass(4)) == ModelClass(4, 15)
    assert {(c.max_parents, c.max_size) for c in profile_classes() if c.max_size} == (
        {(k, 15) for k in (2, 3, 4)} | {(k, 11) for k in (2, 3, 4, 5)} | {(k, 9) for k in (2, 3, 4, 5, 6)}
    )


# --- Bounds of the ceiling that reports show: they hold the exact ceiling, and gold's share is not above it -----------


@pytest.mark.parametrize("setting", ["ordered", "hidden-roots"])
def test_bounds_hold_the_exact_ceiling(setting: str) -> None:
    problem = read_pool(bundled_pool(setting)).problems[1]
    space = VersionSpace(problem.task, ModelClass(headline_parents(problem)))
    exact = ceiling(space, problem.sealed.heldout.worlds, Random(1), max_counts=None)
    assert exact.is_exact
    decision = heldout_decision(problem)
    assert decision is not None
    assert decision.agreement is not None
    for max_counts in (1, 16, 10_000):
        bounds = heldout_ceiling(problem, decision.agreement, max_counts)
        assert bounds[0] <= exact.lower <= bounds[1]
        assert decision.agreement <= bounds[0]
        assert (bounds[0] == bounds[1]) == (max_counts == 10_000)


# --- What bounds an audit's work: at each limit nothing is missing, just under it the findings say what is ------------
CLASS = 4  # parents; of these problems all variables
KNOWN, HIDDEN = SETTINGS[2:]


def open_problem(setting: str = KNOWN) -> Problem:
    """Of two roots and three others, with ceilings that take several counts."""
    return gold_problem(9, setting, Shape(roots=2, endogenous=3, units=3, training=2))


def audited(problem: Problem) -> Findings:
    return audit_instance(problem, AuditOptions(CLASS, (CLASS,)))


def weighed(problem: Problem, max_size: int | None = None) -> int:
    """Parent sets with a member, of all variables."""
    space = VersionSpace(problem.task, ModelClass(CLASS, max_size))
    return sum(len(space.local(v).masks) for v in space.index.values())


@pytest.mark.parametrize("under", [0, 1])
def test_classes_of_many_parent_sets(under: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four candidates a variable, so 16 sets of each of the three with parents, and of the roots none but their own."""
    problem = open_problem()
    whole = audited(problem)
    number = sum(2 ** len(problem.task.disclosure.admissible_parents(v)) for v in problem.task.variables)
    for module in (ambiguity, items):
        monkeypatch.setattr(module, "MAX_SETS", number - under)
    found = audited(problem)
    wide = [one for one in whole.capped if one.max_parents == 6]
    assert wide
    assert found.capped == [one for one in whole.capped if not under or one not in wide]
    lines = [f"{number:,} parent sets; at most {number - 1:,} are gone through"] if under else []
    assert [found.left_out.get(f"k <= 6, size <= {one.max_size}") for one in wide if under] == lines * len(wide)
    assert set(found.left_out) - set(whole.left_out) == {f"k <= 6, size <= {one.max_size}" for one in wide if under}


@pytest.mark.parametrize("under", [0, 1])
@pytest.mark.parametrize(("setting", "truths"), [(KNOWN, items.SPLIT_DRAWS), (HIDDEN, 1)])
def test_worlds_that_are_compared(setting: str, truths: int, under: int, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = open_problem(setting)
    worlds = 3 * 5 + items.SPLIT_CANDIDATES
    work = worlds * truths * weighed(problem) * 5
    monkeypatch.setattr(items, "SPLIT_WORK", work - under)
    found = audited(problem)
    assert found.split
    assert found.split.candidates == worlds - under
    line = found.left_out.get("split by other worlds")
    assert (line is None) == (not under)
    if line is not None:
        assert line.startswith(f"{worlds - 1} of {worlds} worlds compared: ")
        assert line.endswith(f"is at most {work - 1:,}")


@pytest.mark.parametrize(("place", "part", "cost"), [(0, "ceiling", 1), (1, "ceiling by size", items.SIZED_SETS)])
def test_counts_of_a_ceiling(place: int, part: str, cost: int, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = open_problem()
    whole = audited(problem)
    full = whole.ceilings[place]
    assert full.exact
    assert 1 < full.counts < items.CEILING_COUNTS
    each = weighed(problem, 15 if place else None) * cost
    for counts in (full.counts, full.counts - 2):  # the last count of a proof can be what was left of the weights
        monkeypatch.setattr(items, "CEILING_SETS", counts * each)
        found = audited(problem)
        enough, narrower = counts == full.counts, found.left_out.get(f"{part}, narrower")
        assert (found.ceilings[place].exact, narrower is None) == (enough, enough)
        assert found.ceilings[place].lower <= full.lower <= found.ceilings[place].upper
        assert enough or str(narrower) == (
            f"{counts} of {items.CEILING_COUNTS} exact counts made: at most {counts * each:,} parent sets are weighed"
        )


@pytest.mark.parametrize(("place", "part"), [(0, "ceiling"), (1, "ceiling by size")])
def test_most_counts_of_a_ceiling(place: int, part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = open_problem()
    full = audited(problem).ceilings[place]
    for counts in (full.counts, full.counts - 2):
        monkeypatch.setattr(items, "CEILING_COUNTS", counts)
        found = audited(problem)
        enough = counts == full.counts
        assert found.ceilings[place].exact == enough
        assert found.ceilings[place].lower <= full.lower <= found.ceilings[place].upper
        said = None if enough else f"at most {counts} exact counts are made"
        assert found.left_out.get(f"{part}, narrower") == said


def test_counts_of_a_split(monkeypatch: pytest.MonkeyPatch) -> None:
    """One count less than it takes leaves an interval; of seven members."""
    problem = gold_problem(0, KNOWN, Shape(roots=1, endogenous=2, units=3, training=2))
    whole, exact = audited(problem).split, []
    assert whole
    for most in range(1, items.SPLIT_COUNTS + 1):
        monkeypatch.setattr(items, "SPLIT_COUNTS", most)
        found = audited(problem)
        assert found.split
        assert found.split.removed
        assert whole.removed
        low, high = found.split.removed
        assert low <= whole.removed[0] == whole.removed[1] <= high
        exact.append(low == high)
        said = None if low == high else f"at most {most} exact counts are made"
        assert found.left_out.get("split, narrower") == said
    assert exact == sorted(exact)
    assert set(exact) == {False, True}


@pytest.mark.parametrize("setting", [KNOWN, HIDDEN])
def test_root_assignments_of_a_world(setting: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two roots have four."""
    for most in (4, 3):
        monkeypatch.setattr(items, "MAX_CONTEXTS", most)
        found = audited(open_problem(setting))
        assert found.split
        assert len(found.split.rows) <= most
        said = "3 of 4 root assignments drawn for each world: none shows more" if most < 4 else None
        assert found.left_out.get("split by worlds of more rows") == said


def test_descents(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = open_problem()
    cost = weighed(problem) * problem.sealed.heldout.num_rows
    for most in (cost, cost - 1):
        monkeypatch.setattr(items, "CEILING_SETS", 1)
        monkeypatch.setattr(limited_ceiling, "MAX_DESCENT", most)
        monkeypatch.setattr(items, "MAX_DESCENT", most)
        line = audited(problem).left_out["ceiling, narrower"]
        said = f"no heavier class looked for by descent: {cost:,} parent sets times held-out rows, at most {most:,}"
        assert line.split("; ")[1:] == ([said] if most < cost else [])


def test_roots_of_survivors(monkeypatch: pytest.MonkeyPatch) -> None:
    for most in (2, 1):
        monkeypatch.setattr(items, "MAX_ROOTS", most)
        found = audited(open_problem())
        assert (found.survivors is not None) == (most == 2)
        said = {"survivors": "2 roots: experiments are simulated for at most 1"} if most == 1 else {}
        assert {part: why for part, why in found.left_out.items() if part == "survivors"} == said


# --- Do the audits notice? Planted ambiguity is always found, planted uniqueness never accused ------------------------
# What is planted is certain by construction and checked with the oracle: a second SCM that replays every training row,
# or evidence that shows every mechanism under every assignment of all other variables.
@cache
def unique_instances() -> tuple[Problem, ...]:
    """Hardened shared instances of every small stratum; that they are unique is what hardening proved."""
    done = [counterexample_worlds(problem, 0) for problem in dev_problems("hidden_order")[:30:10]]
    assert all(isinstance(result.outcome, Found) for result in done)
    return tuple(result.problem for result in done)


def with_training(problem: Problem, worlds: Sequence[World]) -> Problem:
    return replace(problem, task=replace(problem.task, training=Panel(problem.task.variables, tuple(worlds))))


def one_entry_flipped(model: Scm, variable: str, row: int) -> Scm:
    """Return the model with one entry of one truth table changed."""
    local = model.local_functions[variable]
    changed = TruthTable(local.table.num_vars, local.table.bits ^ 1 << row)
    return scm(model.roots, {**model.mechanisms, variable: normal_form(local.parents, changed.bits)})


def without_the_entry(problem: Problem, variable: str, row: int) -> Problem:
    """Return the training worlds without the rows that show this entry of the variable's truth table."""
    parents = latent_scm(problem).local_functions[variable].parents
    kept = []
    for world in problem.task.training.worlds:
        rows = [
            index
            for index, values in enumerate(world.rows())
            if variable in world.intervention.targets or sum(values[p] << i for i, p in enumerate(parents)) != row
        ]
        kept += [only_rows(world, rows)] if rows else []
    return with_training(problem, kept)


def fits(model: Scm, problem: Problem) -> bool:
    return all(
        replay(model, world.intervention, row.__getitem__) == row
        for world in problem.task.training.worlds
        for row in world.rows()
    )


def planted() -> Iterator[tuple[Problem, Scm]]:
    """Instances made ambiguous by taking one table entry's rows away, with the second SCM that then fits."""
    for problem in unique_instances():
        gold = latent_scm(problem)
        for variable, local in gold.local_functions.items():
            for row in range(1 << len(local.parents)):
                if (local.table.bits ^ 1 << row) not in (0, (1 << (1 << len(local.parents))) - 1):
                    yield without_the_entry(problem, variable, row), one_entry_flipped(gold, variable, row)


def test_planted_ambiguity_is_always_found() -> None:
    found = 0
    for problem, second in planted():
        assert fits(second, problem)
        assert not fits(second, next(p for p in unique_instances() if p.id == problem.id))
        space = VersionSpace(problem.task, gold_class(problem))
        assert space.count >= 2
        gold = latent_scm(problem)
        worlds = problem.sealed.heldout.worlds
        if not all(replay(second, w.intervention, row.__getitem__) == row for w in worlds for row in w.rows()):
            assert space.agreement(worlds) < 1
            found += 1
        assert PairAudit(gold, second).best is not None
    assert found >= 10


def fully_shown(seed: int, setting: str, *, endogenous: int) -> Problem:
    """Every endogenous variable is observed under every assignment of all others: nothing is left open in any class."""
    problem = gold_problem(seed, setting, Shape(roots=2, endogenous=endogenous, training=1))
    gold = latent_scm(problem)
    worlds = []
    for variable in gold.endogenous:
        others = tuple(v for v in gold.variables if v != variable)
        rows = list(assignments(others))
        given = {v: [row[v] for row in rows] for v in others}
        units = [f"u{i}" for i in range(len(rows))]
        worlds.append(simulated(gold, f"all but {variable}", Intervention(assigned=others), units, given))
    return with_training(problem, worlds)


@pytest.mark.parametrize("setting", SETTINGS[:3])
@pytest.mark.parametrize("endogenous", [2, 4])
def test_planted_uniqueness_is_never_accused(setting: str, endogenous: int) -> None:
    problem = fully_shown(0, setting, endogenous=endogenous)
    gold = latent_scm(problem)
    widest = max(len(local.parents) for local in gold.local_functions.values())
    found = audit_instance(problem, AuditOptions())
    assert all(int(one.members) == (one.max_parents >= widest) for one in found.classes)
    assert {one.members for one in found.capped} <= {"0", "1"}
    assert all(draw.probability == 1 for draw in found.draws)
    space = VersionSpace(problem.task, gold_class(problem))
    assert sample_members(space, Random(0), 1)[0].equivalent(gold)
    best = ceiling(space, problem.sealed.heldout.worlds, Random(0))
    assert best.lower == best.upper == 1
    result = counterexample_worlds(problem, 0, complete_coverage=False)
    assert result.added == ()
    assert isinstance(result.outcome, Found)
