"""The acyclic choice among any number of variables, by exact engines and by local search of orders."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, product
from random import Random

import numpy as np
import pytest

from calibrant.solvers.acyclic.elimination import is_orderable
from calibrant.solvers.acyclic.integer_program._kernels import IMPOSSIBLE, improve_order
from calibrant.solvers.acyclic.integer_program.tree import OrderLocalSearch
from calibrant.solvers.acyclic.least import (
    MAX_FREE_VARIABLES,
    Cost,
    Mask,
    Orders,
    ParentSet,
    Part,
    best_structure,
    break_ties,
    cost_by_size,
    find_good_choice,
    reduce_to_parts,
    remove_dominated,
    remove_tie_break,
)
from calibrant.solvers.acyclic.maxsat import fewest_roots, find_violated_clusters, place_greedily
from calibrant.solvers.acyclic.optimum import Choice, optimal_choice
from calibrant.solvers.outcome import Budget, BudgetSpent, Undecided
from tests.support.effort import effort
from tests.support.packages import needs

# --- The acyclic choice of least total cost, against all choices ------------------------------------------------------
SetOptions = dict[int, dict[int, int]]


def random_sets(rng: Random, num_roots: int, num_endogenous: int, density: float) -> tuple[SetOptions, int]:
    """Parent sets as masks over the variables, in a shuffled numbering; costs distinct for each variable."""
    numbers = rng.sample(range(num_roots + num_endogenous), num_roots + num_endogenous)
    endogenous = numbers[num_roots:]
    everything = (1 << len(numbers)) - 1
    options = {}
    for variable in endogenous:
        masks = [mask for mask in range(everything + 1) if not mask >> variable & 1 and rng.random() < density]
        options[variable] = dict(zip(masks, rng.sample(range(10**6), len(masks)), strict=True))
    return options, sum(1 << root for root in numbers[:num_roots])


def is_acyclic(chosen: dict[int, int]) -> bool:
    waiting = set(chosen)
    while ready := {v for v in waiting if not any(chosen[v] >> u & 1 for u in waiting)}:
        waiting -= ready
    return not waiting


def best_by_enumeration(options: SetOptions) -> tuple[int, dict[int, int]] | None:
    choices = (dict(zip(options, masks, strict=True)) for masks in product(*options.values()))
    acyclic = [
        (sum(options[v][mask] for v, mask in chosen.items()), chosen) for chosen in choices if is_acyclic(chosen)
    ]
    return min(acyclic, key=lambda choice: choice[0], default=None)


@pytest.mark.parametrize("num_endogenous", [1, 2, 3, 4])
@pytest.mark.parametrize("num_roots", [0, 1, 2])
def test_the_optimum_of_all_acyclic_choices(num_roots: int, num_endogenous: int) -> None:
    rng = Random(f"{num_roots}/{num_endogenous}")
    impossible = 0
    for _ in range(60):
        density = rng.choice([0.05, 0.2, 0.5]) if num_endogenous < 4 else rng.choice([0.05, 0.2])
        options, roots = random_sets(rng, num_roots, num_endogenous, density)
        found = best_structure(options, roots)
        assert found == best_by_enumeration(options)
        impossible += found is None
    assert 0 < impossible < 60


def test_a_cheap_circle_is_broken_where_that_costs_least() -> None:
    """Three variables, each cheap from the one before it around a circle, or dearer from the root 0."""
    circle = {1: {0b1000: 1, 0b1: 6}, 2: {0b10: 1, 0b1: 4}, 3: {0b100: 1, 0b1: 5}}
    assert best_structure(circle, 0b1) == (6, {1: 0b1000, 2: 0b1, 3: 0b100})


def test_parent_sets_beyond_the_known_variables_are_not_taken() -> None:
    assert best_structure({1: {0b1000: 1, 0b1: 9}}, 0b1) == (9, {1: 0b1})
    assert best_structure({1: {0b1000: 1}}, 0b1) is None


def test_no_endogenous_variable() -> None:
    assert best_structure({}, 0b11) == (0, {})


def test_a_variable_without_options() -> None:
    assert best_structure({1: {0b1: 3}, 2: {}}, 0b1) is None


def test_costs_beyond_a_machine_word_are_added_exactly() -> None:
    options = {1: {0b1: 1 << 200, 0b101: (1 << 200) - 1}, 2: {0b1: 1 << 100, 0b11: (1 << 100) - 1}}
    assert best_structure(options, 0b1) == ((1 << 200) - 1 + (1 << 100), {1: 0b101, 2: 0b1})


def test_more_variables_than_subsets_can_be_listed() -> None:
    options = {v: {1: 1} for v in range(1, MAX_FREE_VARIABLES + 2)}
    with pytest.raises(BudgetSpent, match="17 variables of unknown order; at most 16"):
        best_structure(options, 1)


Options = dict[int, dict[Mask, Cost]]


def drawn(
    rng: Random, num_roots: int, num_endogenous: int, most_sets: int, most_parents: int = 3
) -> tuple[Options, Mask]:
    """Parent sets of one to three variables with sizes of which many are equal, in a shuffled numbering."""
    numbers = rng.sample(range(num_roots + num_endogenous), num_roots + num_endogenous)
    options: Options = {}
    for variable in numbers[num_roots:]:
        others = [u for u in numbers if u != variable]
        options[variable] = {}
        for _ in range(rng.randint(1, most_sets)):
            mask = sum(1 << u for u in rng.sample(others, min(len(others), rng.randint(1, most_parents))))
            options[variable][mask] = cost_by_size(rng.randint(2, 6), mask)
    return options, sum(1 << root for root in numbers[:num_roots])


def by_enumeration(options: Options) -> Choice | None:
    """Least cost, then smallest sets, variable 0 first."""
    best: tuple[Cost, list[Mask]] | None = None
    variables = sorted(options)
    for masks in product(*(options[v] for v in variables)):
        chosen = dict(zip(variables, masks, strict=True))
        key = sum(options[v][mask] for v, mask in chosen.items()), list(masks)
        if is_acyclic(chosen) and (best is None or key < best):
            best = key
    return best and Choice(best[0], dict(zip(variables, best[1], strict=True)))


def by_subsets(options: Options, roots: Mask, num_vars: int) -> Choice | None:
    costs = {v: {m: break_ties(c, v, m, num_vars) for m, c in own.items()} for v, own in options.items()}
    best = best_structure(costs, roots)
    return best and Choice(remove_tie_break(best[0], num_vars), best[1])


@pytest.mark.parametrize(("subset_dp", "most_parents"), [(0, 1), (0, 3), (4, 3), (8, 3)])
def test_the_first_of_the_least_of_all_choices(subset_dp: int, most_parents: int) -> None:
    rng, said = Random(f"all/{subset_dp}"), Counter[bool]()
    for _ in range(150):
        num_roots, num_endogenous = rng.randint(0, 2), rng.randint(1, 4)
        options, roots = drawn(rng, num_roots, num_endogenous, 5, most_parents)
        expected = by_enumeration(options)
        assert optimal_choice(options, roots, num_roots + num_endogenous, subset_dp=subset_dp) == expected
        said[expected is None] += 1
    assert min(said.values()) > 20


@pytest.mark.parametrize("most_parents", [1, 3])
def test_the_same_choice_as_by_subsets(most_parents: int) -> None:
    rng, said = Random("subsets"), Counter[bool]()
    for num_endogenous in (*[7, 8, 9] * 12, 12):
        options, roots = drawn(rng, 3, num_endogenous, 4 if most_parents == 1 else 16, most_parents)
        expected = by_subsets(options, roots, num_endogenous + 3)
        assert optimal_choice(options, roots, num_endogenous + 3, subset_dp=0) == expected
        said[expected is None] += 1
    assert said[False] > 20


@pytest.mark.parametrize("engine", ["subset_dp", "sat", "smt"])
def test_engines_take_the_same_choice(engine: str) -> None:
    if engine == "smt":
        needs("z3")
    rng, said = Random("engines"), Counter[bool]()
    for num_endogenous in (*[2, 3, 4, 5, 6, 7] * 8, 9):
        options, roots = drawn(rng, 2, num_endogenous, 6)
        expected = by_subsets(options, roots, num_endogenous + 2)
        assert optimal_choice(options, roots, num_endogenous + 2, engine=engine) == expected
        said[expected is None] += 1
    assert min(said.values()) > 5


@pytest.mark.parametrize("engine", ["sat", "smt"])
def test_engines_out_of_budget_state_a_bound(engine: str) -> None:
    if engine == "smt":
        needs("z3")
    options, roots = drawn(Random("spent"), 2, 9, 12)
    least = by_subsets(options, roots, 11)
    with pytest.raises(Undecided) as spent:
        optimal_choice(options, roots, 11, Budget(1), engine=engine)
    assert least is not None
    assert 0 < spent.value.at_least <= least.cost


def test_subsets_of_too_many_variables_are_undecided() -> None:
    options = {v: {1 << (v + 1) % 17: 1, 1 << (v + 2) % 17: 2, 1 << 17: 3} for v in range(17)}
    with pytest.raises(Undecided, match="17 variables may lie on a cycle, subsets of 16 at most"):
        optimal_choice(options, 1 << 17, 18, engine="subset_dp")


def test_thirty_variables_around_a_circle() -> None:
    """Each is cheap from the one before it, and one of them has to pay for the root: the one that pays least."""
    options = {v: {1 << (v % 30 + 1): cost_by_size(1, 1), 1: cost_by_size(9 - (v == 17), 1)} for v in range(1, 31)}
    chosen = {v: 1 if v == 17 else 1 << (v % 30 + 1) for v in range(1, 31)}
    assert optimal_choice(options, 1, 31) == Choice(cost_by_size(29 + 8, 0) + 30, chosen)


def test_a_ring_of_forty_is_broken_where_that_costs_least() -> None:
    """Each from the one before it for 1, or from the root for 5; variable 17 for 3."""
    ring = {i: {1 << (i - 2) % 40 + 1: 1, 1: 3 if i == 17 else 5} for i in range(1, 41)}
    chosen = {i: 1 if i == 17 else 1 << (i - 2) % 40 + 1 for i in range(1, 41)}
    assert optimal_choice(ring, 1, 41) == Choice(39 + 3, chosen)


def test_forty_variables_of_which_few_can_come_first() -> None:
    """Each needs the two before it; the cheaper sets look ahead and would close a cycle."""
    options = {2: {0b11: cost_by_size(1, 0)}, 3: {0b110: cost_by_size(1, 0)}}
    for i in range(4, 40):
        options[i] = {1 << i - 1 | 1 << i - 2: cost_by_size(10, 0), 1 << i - 1 | 1 << i + 1: cost_by_size(4, 0)}
    options[40] = {1 << 39 | 1 << 38: cost_by_size(10, 0)}
    chosen = {i: max(own, key=own.__getitem__) for i, own in options.items()}
    assert optimal_choice(options, 0b11, 41) == Choice(cost_by_size(2 + 37 * 10, 0), chosen)


def test_of_equal_choices_the_smallest_sets_win_variable_by_variable() -> None:
    """One of ten has to take the root 10 or 11; sets of the first variable are compared first."""
    options = {
        v: {1 << (v + 1) % 10: cost_by_size(1, 1), 1 << 10: cost_by_size(2, 1), 1 << 11: cost_by_size(2, 1)}
        for v in range(10)
    }
    found = optimal_choice(options, 0b11 << 10, 12, subset_dp=0)
    assert found is not None
    assert found.chosen == {v: 1 << 10 if v == 9 else 1 << v + 1 for v in range(10)}


def test_no_choice_at_all() -> None:
    assert optimal_choice({1: {0b100: 5}, 2: {0b10: 5}}, 1, 3, subset_dp=0) is None
    assert optimal_choice({1: {1: 5}, 2: {}}, 1, 3) is None
    assert optimal_choice({1: {0b1000: 5}}, 1, 4) is None
    assert optimal_choice({}, 1, 1) == Choice(0, {})


def chosen_within(options: Options, roots: Mask, states: int | None) -> Choice | Undecided | None:
    try:
        return optimal_choice(options, roots, 11, Budget(states), subset_dp=0)
    except Undecided as spent:
        return spent


def test_bounds_hold_at_every_budget_and_answers_stay_what_they_are() -> None:
    rng, undecided = Random("budgets"), 0
    for _ in range(25):
        options, roots = drawn(rng, 2, 9, 12)
        expected = by_subsets(options, roots, 11)
        decided = False
        for states in (0, 20_000, 100_000, 400_000, None):
            found = chosen_within(options, roots, states)
            if isinstance(found, Undecided):
                assert not decided
                assert expected is None or found.at_least <= expected.cost
                assert found.at_least >= sum(min(own.values()) for own in options.values()) >> 16 << 16
                undecided += 1
            else:
                assert found == expected
                decided = True
        assert decided
    assert undecided > 10


# --- reductions ------------------------------------------------------------------------------------------------------


def test_what_is_dominated() -> None:
    sets = [ParentSet(9, 0b0110), ParentSet(5, 0b0010), ParentSet(5, 0b10010), ParentSet(4, 0b1100), ParentSet(6, 0b1)]
    assert remove_dominated(sets, [1, 2, 3]) == {0b0010: (5, 0b0010), 0b1100: (4, 0b1100), 0b0: (6, 0b1)}


def test_parents_in_other_components_close_no_cycle() -> None:
    """2 and 3 compete; 1 comes before them, so that of 2 what has 1 beside 3 is worth no more than 3 alone."""
    options = {1: {1: 2, 0b10000: 7}, 2: {0b1000: 5, 0b1010: 4, 1: 9}, 3: {0b100: 5, 1: 6}}
    assert reduce_to_parts(options, 1) == [
        {1: {0: (2, 1)}},
        {2: {0b1000: (4, 0b1010), 0: (9, 1)}, 3: {0b100: (5, 4), 0: (6, 1)}},
    ]


def test_a_forced_parent_takes_no_forced_descendant() -> None:
    """3 needs 2 and 2 needs 1, so 1 takes neither of them; then nobody competes."""
    assert reduce_to_parts({1: {0b1000: 1, 1: 5}, 2: {0b10: 3}, 3: {0b100: 3}}, 1) == [
        {1: {0: (5, 1)}}, {2: {0: (3, 0b10)}}, {3: {0: (3, 0b100)}}
    ]  # fmt: skip
    assert reduce_to_parts({1: {0b100: 1}, 2: {0b10: 3}}, 1) is None


def test_every_cluster_is_left_without_a_way_in() -> None:
    rng, found = Random("clusters"), 0
    for _ in range(200):
        options, _ = drawn(rng, 0, rng.randint(2, 8), 3)
        taken = {v: sorted(own) for v, own in options.items()}
        chosen, left = place_greedily(taken)
        assert chosen.keys() | set(left) == options.keys()
        assert is_acyclic(chosen)
        groups = find_violated_clusters(taken, left) if left else []
        assert bool(groups) == bool(left)
        for group in groups:
            within = sum(1 << v for v in group)
            assert all(own & within for v in group for own in taken[v])
            found += len(group) < len(left)
    assert found > 50


def test_finely_graded_costs_take_the_same_choice_by_subsets(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(part: Part, budget: Budget, *, states: int) -> dict[int, Mask] | None:
        raise AssertionError(f"{len(part)} variables are left to MaxSAT")

    monkeypatch.setattr("calibrant.solvers.acyclic.optimum.least_by_maxsat", refused)
    rng, step = Random("fine"), cost_by_size(50_000, 0)
    for _ in range(12):
        options, roots = drawn(rng, 2, 9, 12)
        fine = {v: {m: cost_by_size(rng.randint(0, 100_000), 0) for m in own} for v, own in options.items()}
        alike = {v: {m: cost // step * step for m, cost in own.items()} for v, own in fine.items()}
        for costs in (fine, alike):
            assert optimal_choice(costs, roots, 11) == by_subsets(costs, roots, 11)


# --- A search over orders: an acyclic choice wherever there is one, mostly the least ----------------------------------
OrderOptions = dict[int, dict[int, int]]


def random_options(rng: Random, most_parents: int) -> tuple[OrderOptions, int]:
    """Up to eight endogenous variables with up to five parent sets, some of them beyond the known variables."""
    names = rng.sample(range(11), rng.randint(2, 10))
    roots = names[: rng.randint(0, 2)]
    options: OrderOptions = {}
    for v in names[len(roots) :]:
        others = [u for u in range(11) if u != v and (u in names or rng.random() < 0.1)]
        sets = [rng.sample(others, min(len(others), rng.randint(0, most_parents))) for _ in range(rng.randint(1, 5))]
        masks = {sum(1 << u for u in chosen) for chosen in sets}
        options[v] = {mask: break_ties(rng.randint(0, 9), v, mask, 11) for mask in masks}
    return options, sum(1 << root for root in roots)


@pytest.mark.parametrize("most_parents", [1, 3])
def test_a_search_over_orders_finds_an_acyclic_choice_wherever_there_is_one(most_parents: int) -> None:
    least = 0
    for seed in range(100):
        options, roots = random_options(Random(f"{most_parents}/{seed}"), most_parents)
        found, best = find_good_choice(options, roots), best_structure(options, roots)
        assert (found is None) == (best is None)
        if found is None or best is None:
            continue
        cost, chosen = found
        assert chosen.keys() == options.keys()
        assert cost == sum(options[v][mask] for v, mask in chosen.items()) >= best[0]
        assert is_acyclic(chosen)
        least += cost == best[0]
    assert least > 60


# --- Orders that are disturbed and improved again: possible choices of what they cost, and mostly the least -----------
def narrow_options(seed: int) -> Options:
    """Among variables that need no roots, with costs that words hold."""
    options, roots = random_options(Random(f"stirring/{seed}"), 3)
    known = sum(1 << v for v in options)
    costs = {
        v: {own & known: cost >> 121 for own, cost in sets.items() if not own & ~(known | roots)}
        for v, sets in options.items()
    }
    return costs if len(costs) > 1 and all(costs.values()) else narrow_options(seed + 10_000)


def cost_of(options: Options, order: list[int]) -> int | None:
    """By the definition: each takes its cheapest set among those before it."""
    total = 0
    for index, v in enumerate(order):
        before = sum(1 << u for u in order[:index])
        costs = [cost for own, cost in options[v].items() if not own & ~before]
        if not costs:
            return None
        total += min(costs)
    return total


def moved(order: list[int], v: int, place: int) -> list[int]:
    rest = [u for u in order if u != v]
    return [*rest[:place], v, *rest[place:]]


@pytest.mark.parametrize("seed", range(40))
def test_an_improved_order_costs_what_is_said_and_no_move_makes_it_cheaper(seed: int) -> None:
    options = narrow_options(seed)
    stirring = OrderLocalSearch(options)
    places = np.random.default_rng(seed).permutation(len(options))
    said, _ = improve_order(places, stirring.starts, stirring.masks, stirring.costs)
    order = [stirring.variables[place] for place in places.tolist()]
    base = sum(min(sets.values()) for sets in options.values())
    cost = cost_of(options, order)
    assert sorted(order) == sorted(options)
    if cost is None:
        assert said >= IMPOSSIBLE
        return
    assert said == cost - base
    others = [cost_of(options, moved(order, v, place)) for v in order for place in range(len(order))]
    assert min(other for other in others if other is not None) == cost


def test_choices_have_no_cycle_and_are_mostly_the_least() -> None:
    least = tried = 0
    for seed in range(60):
        options = narrow_options(seed)
        best, first, stirring = (
            best_structure(options, 0),
            Orders(options, 0).cheapest_first(),
            OrderLocalSearch(options),
        )
        fresh = stirring.restart(20)
        assert (best is None) == (first is None)
        if best is None or first is None:
            assert fresh is None
            continue
        for chosen in (stirring.improve_from(first, 20), fresh):
            if chosen is not None:
                assert is_acyclic(chosen)
                assert chosen.keys() == options.keys()
                cost = sum(options[v][own] for v, own in chosen.items())
                assert cost >= best[0]
                least += cost == best[0]
        tried += 2
    assert least > 0.9 * tried > 0


def test_the_same_from_the_same_beginning() -> None:
    options = narrow_options(3)
    assert OrderLocalSearch(options).restart(5) == OrderLocalSearch(options).restart(5)


# --- Fewest roots, against all sets of them ---------------------------------------------------------------------------
@pytest.mark.parametrize("seed", range(effort(40, 1_000)))
def test_no_smaller_set_of_roots_has_everything_behind_it(seed: int) -> None:
    rng = Random(seed)
    num_vars = rng.randint(1, 8)
    minimal = {}
    for v in range(num_vars):
        others = [u for u in range(num_vars) if u != v]
        sets = [sum(1 << u for u in rng.sample(others, rng.randint(0, min(3, len(others))))) for _ in range(2)]
        minimal[v] = np.array(sets[: rng.choice([0, 1, 2, 2])], np.int64)
    fewest = fewest_roots(minimal, Budget(None))
    assert fewest.roots is not None
    assert is_orderable(minimal, fewest.roots)
    sizes = [
        number
        for number in range(num_vars + 1)
        if any(is_orderable(minimal, sum(1 << v for v in s)) for s in combinations(range(num_vars), number))
    ]
    assert fewest.at_least == fewest.roots.bit_count() == sizes[0]


def test_a_spent_budget_leaves_a_bound_of_the_roots() -> None:
    cycle = {v: np.array([1 << (v + 1) % 9], np.int64) for v in range(9)}
    assert fewest_roots(cycle, Budget(None)).at_least == 1
    bounded = fewest_roots(cycle, Budget(0))
    assert (bounded.at_least <= 1, bounded.roots) == (True, None)
