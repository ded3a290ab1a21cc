"""Bounded audits, ceilings and coverage of patterns, against brute force and hand counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import combinations, combinations_with_replacement
from random import Random
from typing import Any

import pytest
import yaml

from calibrant.audits.replayscm.bounded import (
    LOCAL,
    MAX_WINDOW,
    PAIRS,
    STRONGER,
    BoundedAudit,
    SearchBudget,
    exposure,
    heldout_balance,
    intervention_mix,
    latent_scm,
    outer_probes,
    pattern_coverage,
    probes,
    seen_patterns,
    windows,
)
from calibrant.audits.replayscm.ceiling import BestAnswer, ClassSearch, ceiling, is_realised, list_classes
from calibrant.dsl.formulas.reference import evaluate
from calibrant.dsl.replayscm.disclosure import HiddenOrder, Ordered
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.replayscm.reference import replays_exactly
from calibrant.dsl.replayscm.scm import Scm
from calibrant.solvers.outcome import Budget
from calibrant.solvers.replayscm.space import ModelClass, VersionSpace
from tests.support.replayscm.brute_force import all_members, does, member_size
from tests.support.replayscm.pools import dev_problems
from tests.support.replayscm.random_problems import SETTINGS, Shape, gold_problem
from tests.support.replayscm.written import written_problem, written_scm, written_world
from tests.support.shared import shared_file


# --- The bounded audits against brute force over every function of the window, and hand-made exposure figures ---------
def problems() -> tuple[Problem, ...]:
    """Small strata: windows of two and three predecessors, so every function can be written down."""
    return dev_problems("hidden_order")[:20]


@cache
def least_sizes(num_vars: int, largest: int, max_arity: int) -> dict[int, int]:
    """Table bits -> least formula size, by plain enumeration of argument multisets."""
    rows = 1 << num_vars
    full = (1 << rows) - 1
    variables = [sum(1 << r for r in range(rows) if r >> i & 1) for i in range(num_vars)]
    sizes = dict.fromkeys(variables, 1)
    for size in range(2, largest + 1):
        found = {full ^ f for f, s in sizes.items() if s == size - 1}
        for arity in range(2, max_arity + 1):
            for parts in argument_lists(sizes, size - 1, arity):
                every, some, odd = full, 0, 0
                for part in parts:
                    every, some, odd = every & part, some | part, odd ^ part
                found |= {every, some, odd, every | (full ^ some)}
        for function in found:
            sizes.setdefault(function, size)
    return sizes


def argument_lists(sizes: dict[int, int], total: int, arity: int) -> list[tuple[int, ...]]:
    by_size: dict[int, list[int]] = {}
    for function, size in sizes.items():
        by_size.setdefault(size, []).append(function)
    lists: list[tuple[int, ...]] = []
    for shape in combinations_with_replacement(sorted(by_size), arity):
        if sum(shape) == total:
            made: list[tuple[int, ...]] = [()]
            for size in shape:
                made = [(*parts, function) for parts in made for function in by_size[size]]
            lists += made
    return lists


def fitting(problem: Problem, variable: str, window: tuple[str, ...]) -> set[int]:
    """Every function of the window that agrees with the rows in which the variable is no target."""
    wanted: dict[int, int] = {}
    consistent = True
    for world in problem.task.training.worlds:
        if variable in world.intervention.targets:
            continue
        for row in world.rows():
            index = sum(row[u] << i for i, u in enumerate(window))
            consistent &= wanted.setdefault(index, row[variable]) == row[variable]
    functions = range(1 << (1 << len(window))) if consistent else range(0)
    return {f for f in functions if all(f >> row & 1 == bit for row, bit in wanted.items())}


def gold_bits(problem: Problem, variable: str, window: tuple[str, ...]) -> int:
    assert problem.sealed.gold is not None
    mechanism = problem.sealed.gold.mechanisms[variable]
    rows = range(1 << len(window))
    return sum(evaluate(mechanism, {u: r >> i & 1 for i, u in enumerate(window)}) << r for r in rows)


@pytest.mark.parametrize("budget", [LOCAL, STRONGER, SearchBudget(0, 5, 10)])
def test_local_alternatives_are_those_of_brute_force(budget: SearchBudget) -> None:
    seen = 0
    for problem in problems():
        audit = BoundedAudit(problem)
        assert problem.sealed.gold is not None
        for finding in audit.local_alternatives(budget):
            window = audit.window(finding.variable)
            fits = fitting(problem, finding.variable, window) - {gold_bits(problem, finding.variable, window)}
            sizes = least_sizes(len(window), 7, 3)
            gold_size = problem.sealed.gold.mechanisms[finding.variable].size
            assert finding.size_bound == min(gold_size + budget.slack, budget.cap)
            assert finding.exact == str(len(fits))
            if finding.size_bound <= 7:
                assert finding.found == sum(sizes.get(f, 99) <= finding.size_bound for f in fits)
            assert finding.found <= int(finding.exact)
            seen += finding.found
    assert seen > 0 or budget.slack == 0


def test_the_budget_is_reported_as_hit_when_a_size_has_more_functions_than_it_allows() -> None:
    audit = BoundedAudit(problems()[15])
    assert all(finding.budget_hit for finding in audit.local_alternatives(SearchBudget(4, 10, 3)))
    assert not any(finding.budget_hit for finding in audit.local_alternatives(SearchBudget(4, 10, 10**9)))


def test_shortcuts_are_the_smallest_fitting_functions_below_gold() -> None:
    sizes_seen = set()
    for problem in problems():
        audit = BoundedAudit(problem)
        for shortcut in audit.shortcuts(floor=2):
            window = audit.window(shortcut.variable)
            sizes = least_sizes(len(window), 5, 3)
            fits = [sizes.get(f, 99) for f in fitting(problem, shortcut.variable, window)]
            small = [size for size in fits if size <= shortcut.size_bound]
            assert shortcut.size == min(small, default=None)
            sizes_seen.add(shortcut.size)
    assert len(sizes_seen) > 1


def test_pairs_are_products_of_their_halves() -> None:
    for problem in problems()[10:]:
        audit = BoundedAudit(problem)
        local = {finding.variable: finding for finding in audit.local_alternatives(PAIRS)}
        for pair in audit.coordinated_pairs():
            assert int(pair.exact) == int(local[pair.upstream].exact) * int(local[pair.downstream].exact)
            assert (
                pair.found
                == min(local[pair.upstream].found, PAIRS.upstream_alternatives) * local[pair.downstream].found
            )


def test_exposure_and_mix_count_worlds_and_cells() -> None:
    problem = problems()[0]
    worlds = problem.task.training.worlds
    for row in exposure(problem):
        scored = [world for world in worlds if row.variable not in world.intervention.targets]
        assert (row.scored_worlds, row.scored_cells) == (len(scored), sum(len(list(w.rows())) for w in scored))
        assert row.intervened_worlds == len(worlds) - len(scored)
    mix = intervention_mix(problem)
    assert mix.none + mix.hard_constant + mix.hard_assigned == len(worlds) == sum(mix.by_targets.values())


def test_heldout_balance_is_one_minus_the_nearest_jaccard_similarity() -> None:
    problem = problems()[0]
    balance = heldout_balance(problem)
    assert balance is not None
    novelties = []
    for world in problem.sealed.heldout.worlds:
        own = set(world.intervention.targets)
        similar = [
            len(own & set(w.intervention.targets)) / len(own | set(w.intervention.targets) or {""})
            for w in problem.task.training.worlds
        ]
        novelties.append(1 - max(similar))
    assert (balance.smallest, balance.largest) == (min(novelties), max(novelties))
    assert balance.mean == pytest.approx(sum(novelties) / len(novelties))


def test_windows_are_as_wide_as_the_file_says() -> None:
    problem = next(p for p in problems() if len(p.sealed.latent_order) > 6)
    last = problem.sealed.latent_order[-1]
    for bound, width in ((0, 0), (1, 1), (3, 3), (None, MAX_WINDOW), (9, MAX_WINDOW)):
        sealed = replace(problem.sealed, max_predecessors=bound)
        before = BoundedAudit(replace(problem, sealed=sealed)).window(last)
        assert before == problem.sealed.latent_order[-1 - width : -1]


def test_gold_outside_the_window_is_no_alternative_to_itself() -> None:
    """D copies A, which lies outside a window of two; in the rows B and C do not say what D is."""
    gold = written_scm("A B C", D="A")
    world = written_world("w", "A B C D", "1001 0110 0000 1111")
    order = HiddenOrder(("A", "B", "C", "D"), ("A", "B", "C"))
    problem = written_problem(order, gold, [world], latent="A B C D", max_predecessors=2)
    (finding,) = BoundedAudit(problem).local_alternatives(LOCAL)
    assert (finding.found, finding.exact) == (0, "0")


def test_a_constant_gold_is_counted_as_what_it_means() -> None:
    """B is 0 in every row: 0 itself, however it is written, and what else the one seen row of A leaves open."""
    gold = written_scm("A", B="(xor A A)")
    problem = written_problem(Ordered(("A", "B"), ("A",)), gold, [written_world("w", "A B", "00 10")])
    (finding,) = BoundedAudit(problem).local_alternatives(LOCAL)
    assert (finding.found, finding.exact) == (0, "0")
    half = written_problem(Ordered(("A", "B"), ("A",)), gold, [written_world("w", "A B", "00")])
    (finding,) = BoundedAudit(half).local_alternatives(LOCAL)
    assert (finding.found, finding.exact) == (1, "1")  # A


# --- The ceiling against the best of all answers, by enumeration; certified intervals; reliability against hand
# counts
PRIORS = (None, 0, 1, 2)
SHAPES = (Shape(), Shape(roots=1, endogenous=3, units=5, training=4), Shape(heldout=4, units=7))
CAPPED = ModelClass(3, 11)  # every function of three variables


@cache
def small() -> tuple[Problem, ...]:
    return tuple(gold_problem(seed, SETTINGS[seed % 4], shape) for shape in SHAPES for seed in range(8))


@cache
def sizes_of_classes(index: int) -> list[tuple[object, int]]:
    """Return the (root set, held-out table) and the size of each member of a small problem, by enumeration."""
    task, heldout = small()[index].task, small()[index].sealed.heldout.worlds
    return [((member[0], does(member, heldout)), member_size(member, task.grammar)) for member in all_members(task, 3)]


def class_weights(problem: Problem, penalty: int | None) -> dict[object, Fraction]:
    """Return the weight of each (root set, held-out table) of a small problem."""
    weights: dict[object, Fraction] = {}
    for key, size in sizes_of_classes(small().index(problem)):
        weight = Fraction(1) if penalty is None else Fraction(1, 2 ** (penalty * size))
        weights[key] = weights.get(key, Fraction(0)) + weight
    return weights


def found(problem: Problem, penalty: int | None, max_counts: int | None) -> BestAnswer:
    space = VersionSpace(problem.task, CAPPED)
    return ceiling(space, problem.sealed.heldout.worlds, Random(1), size_penalty=penalty, max_counts=max_counts)


def table_of(model: Scm, problem: Problem) -> object:
    """Return the class of an answer, from the reference's own replay of a member."""
    mechanisms = tuple((v, local.parents, local.table.bits) for v, local in model.local_functions.items())
    return model.roots, does((model.roots, mechanisms), problem.sealed.heldout.worlds)


@pytest.mark.parametrize("penalty", PRIORS)
def test_the_ceiling_is_the_share_of_the_heaviest_class(penalty: int | None) -> None:
    several = 0
    for problem in small():
        weights = class_weights(problem, penalty)
        best = found(problem, penalty, None)
        assert best.is_exact
        assert best.lower == max(weights.values()) / sum(weights.values())
        assert weights[table_of(best.answer, problem)] == max(weights.values())
        assert replays_exactly(best.answer, problem.task.training.worlds)
        several += len(weights) > 3
    assert several >= 12


@pytest.mark.parametrize("penalty", [None, 1])
def test_all_classes_come_once_in_the_order_of_their_weight(penalty: int | None) -> None:
    for problem in small():
        weights = class_weights(problem, penalty)
        space = VersionSpace(problem.task, CAPPED)
        search = ClassSearch(space, problem.sealed.heldout.worlds, Random(2), size_penalty=penalty)
        listed, complete = list_classes(search)
        assert complete
        assert search.bound == 0
        assert [one.share for one in listed] == sorted((one.share for one in listed), reverse=True)
        assert {table_of(one.example, problem): one.share for one in listed} == {
            key: weight / sum(weights.values()) for key, weight in weights.items()
        }


@pytest.mark.parametrize("penalty", [None, 1])
def test_an_interval_holds_the_ceiling_whatever_the_budget(penalty: int | None) -> None:
    open_intervals = 0
    for problem in small():
        weights = class_weights(problem, penalty)
        true = max(weights.values()) / sum(weights.values())
        for max_counts in (0, 1, 4):
            best = found(problem, penalty, max_counts)
            assert best.counts <= max_counts
            assert best.lower <= true <= best.upper
            assert weights[table_of(best.answer, problem)] / sum(weights.values()) == best.lower
            open_intervals += not best.is_exact
    assert open_intervals >= 18


def test_what_is_listed_before_the_budget_ends_is_exact() -> None:
    cut = 0
    for problem in small():
        weights = class_weights(problem, None)
        descending = sorted(weights.values(), reverse=True)
        for max_counts in (3, 9, 27):
            space = VersionSpace(problem.task, CAPPED)
            search = ClassSearch(space, problem.sealed.heldout.worlds, Random(3), budget=Budget(max_counts))
            listed, complete = list_classes(search)
            assert [Fraction(one.mass) for one in listed] == descending[: len(listed)]
            assert complete == (len(listed) == len(weights))
            if not complete:
                assert descending[len(listed)] <= search.bound
                cut += bool(listed)
    assert cut >= 10


def test_no_class_that_was_weighed_is_forgotten() -> None:
    """The same seed makes the same search; what it knew when the budget ended bounds the ceiling from below."""
    compared = 0
    for problem in dev_problems("hidden_order")[10:40:5]:
        space, worlds = VersionSpace(problem.task, ModelClass(4)), problem.sealed.heldout.worlds
        for seed in range(4 if space.count else 0):
            search = ClassSearch(space, worlds, Random(seed), budget=Budget(15))
            _, complete = list_classes(search)
            if not complete and search.known_best is not None:
                assert ceiling(space, worlds, Random(seed), max_counts=15).lower >= search.known_best.share
                compared += 1
    assert compared >= 12


def test_an_empty_space_has_no_ceiling() -> None:
    problem = next(p for p in dev_problems("hidden_order") if not VersionSpace(p.task, ModelClass(2)).count)
    with pytest.raises(ValueError, match="empty"):
        ceiling(VersionSpace(problem.task, ModelClass(2)), problem.sealed.heldout.worlds, Random(0))


# --- calibration -----------------------------------------------------------------------------------------------------


def test_a_best_answer_is_realised_iff_gold_does_what_it_does() -> None:
    outcomes = set()
    for problem in small():
        best = found(problem, None, None)
        gold = problem.sealed.gold
        assert gold is not None
        came_true = is_realised(problem, best)
        assert came_true == (table_of(gold, problem) == table_of(best.answer, problem))
        outcomes.add(came_true)
    assert outcomes == {True, False}


def test_every_member_in_turn_as_the_truth_realises_what_was_predicted() -> None:
    for problem in small():
        answer = table_of(found(problem, None, None).answer, problem)
        truths = all_members(problem.task, 3)
        hits = sum((member[0], does(member, problem.sealed.heldout.worlds)) == answer for member in truths)
        assert Fraction(hits, len(truths)) == found(problem, None, None).lower


# --- Local predecessor-pattern coverage: against counting rows, by hand, and against what the released code stored ----
def counted(problem: Problem) -> dict[str, tuple[int, int]]:
    """Local support as the paper's section B.2.3 words it, over all subsets, a row at a time."""
    gold, order = latent_scm(problem), problem.sealed.latent_order
    bound = problem.sealed.max_predecessors or len(order)
    result = {}
    for index, variable in enumerate(order):
        if variable in gold.roots:
            continue
        nearest = order[max(0, index - bound) : index]
        shown: set[tuple[tuple[str, ...], tuple[int, ...]]] = set()
        subsets = list(combinations(nearest, min(3, len(nearest))))
        for world in problem.task.training.worlds:
            if variable not in world.intervention.targets:
                shown |= {(s, tuple(row[v] for v in s)) for row in world.rows() for s in subsets}
        result[variable] = (len(shown), sum(2 ** len(s) for s in subsets))
    return result


@pytest.mark.parametrize("window", [None, 1, 2, 4])
def test_coverage_equals_a_count_of_rows(window: int | None) -> None:
    shares = set()
    for seed in range(12):
        shape = Shape(roots=2, endogenous=4, units=5, training=3, window=window)
        problem = gold_problem(seed, SETTINGS[seed % 4], shape)
        coverage = pattern_coverage(problem)
        assert {part.variable: (part.num_seen, part.total) for part in coverage.by_variable} == counted(problem)
        assert coverage.share == Fraction(*map(sum, zip(*counted(problem).values(), strict=True)))
        shares.add(coverage.share)
    assert len(shares) >= 3


def test_a_written_example() -> None:
    """A, B roots; C of A, B; D of all. C is a target in the second world, so only its first two rows count for C."""
    gold = written_scm("A B", C="(and A B)", D="(xor A C)")
    worlds = [
        written_world("w0", "A B C D", "0000 1110"),
        written_world("w1", "A B C D", "0011 0100", assigned="C"),
    ]
    problem = written_problem(Ordered(tuple("ABCD"), ("A", "B")), gold, worlds)
    assert windows(problem) == {"C": ("A", "B"), "D": ("A", "B", "C")}
    assert [(part.variable, part.num_seen, part.total) for part in pattern_coverage(problem).by_variable] == [
        ("C", 2, 4),
        ("D", 4, 8),
    ]
    listed = probes(problem)
    assert seen_patterns(worlds[1:], listed) == (0, 1 << 0b100 | 1 << 0b010)


def stored_coverage(record: Any) -> Iterator[dict[str, float]]:
    if isinstance(record, dict):
        for key, value in record.items():
            if key == "stage3_lite_final_coverage_by_var":
                yield value
            else:
                yield from stored_coverage(value)


def released_coverage(problem: Problem) -> Mapping[str, Fraction]:
    """Return the coverage that the released code reports per variable, with its two probes and its mask.

    See the head of audits.replayscm.bounded.
    """
    listed = outer_probes(windows(problem))
    united = seen_patterns(problem.task.training.worlds, listed)
    counts: dict[str, list[int]] = {}
    for probe, bits in zip(listed, united, strict=True):
        parts = counts.setdefault(probe.variable, [0, 0])
        parts[0] += (bits & ((1 << len(probe.causes)) - 1)).bit_count()
        parts[1] += probe.num_patterns
    return {variable: Fraction(*parts) for variable, parts in counts.items()}


def test_the_released_figure_is_reproduced_and_understates_coverage() -> None:
    """The generator stored its own figure; its mask lets a probe of three variables show 3 of 8 patterns at most."""
    text = shared_file("pool_dev_hidden_order.runtime.yaml").read_text(encoding="utf-8")
    records = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))["problems"]
    compared = 0
    for problem, record in zip(dev_problems("hidden_order"), records, strict=True):
        stored = next(stored_coverage(record))
        assert {v: float(share) for v, share in released_coverage(problem).items()} == pytest.approx(stored)
        assert max(stored.values()) <= (0.5 if problem.sealed.max_predecessors == 2 else 0.375)
        compared += pattern_coverage(problem).share > Fraction(4, 5)
    assert compared >= 70


def test_gold_is_needed() -> None:
    problem = gold_problem(0)
    without = replace(problem, sealed=replace(problem.sealed, gold=None))
    with pytest.raises(ValueError, match="'gold_0' has no gold SCM"):
        pattern_coverage(without)
