"""The bounded audits against brute force over every function of the window, and hand-made exposure figures."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import combinations_with_replacement

import pytest

from calibrant.audits.replayscm.bounded import (
    LOCAL,
    MAX_WINDOW,
    PAIRS,
    STRONGER,
    BoundedAudit,
    SearchBudget,
)
from calibrant.audits.replayscm.coverage import exposure, heldout_balance, intervention_mix
from calibrant.dsl.formulas.reference import evaluate
from calibrant.dsl.replayscm.disclosure import HiddenOrder, Ordered
from calibrant.dsl.replayscm.item import Problem
from tests.support.replayscm.pools import dev_problems
from tests.support.replayscm.written import written_problem, written_scm, written_world


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
