"""The acyclic choice of parent sets of least total cost among any number of variables.

Reduced and split first (solvers.acyclic.reduction). What is left of a part goes to dynamic programming over subsets
where it is small, or not large and finely graded, to a branching where nobody has two parents in it
(solvers.acyclic.branching), and to MaxSAT with cuts (solvers.acyclic.maxsat) else; or, by name, to an integer program
(solvers.acyclic.integer_program). The tie rule is the same for all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import monotonic
from typing import NamedTuple

from calibrant.solvers.acyclic.branching import least_branching
from calibrant.solvers.acyclic.least_cost import MAX_FREE_VARIABLES, Cost, Mask, best_structure, distinct, total_size
from calibrant.solvers.acyclic.maxsat import least_by_maxsat
from calibrant.solvers.acyclic.ordering_search import good_choice
from calibrant.solvers.acyclic.reduction import Part, parts
from calibrant.solvers.budget import Budget, Undecided

ENGINES = ("auto", "integer_program")
MAX_SUBSET_DP = 8  # variables of a part up to which subsets are faster than MaxSAT: 1.0 and 1.6 ms, with 9 2.1 and 1.8
MAX_SPAN = 10_000  # what sizes may differ by in all, beyond which up to MAX_FREE_VARIABLES go to subsets too
STATES_PER_CONFLICT = 20_000  # so that a state takes as long here as it does in formula search, nearly
MAX_CHOICE_STATES = 10_000 * STATES_PER_CONFLICT  # a budget for rows that have no other; about ten seconds


class Choice(NamedTuple):
    """A parent set for every variable, and what they cost together."""

    cost: Cost
    chosen: Mapping[int, Mask]


def optimal_choice(
    options: Mapping[int, Mapping[Mask, Cost]],
    roots: Mask,
    num_vars: int,
    budget: Budget | None = None,
    *,
    subset_dp: int = MAX_SUBSET_DP,
    engine: str = "auto",
    seconds: float | None = None,
) -> Choice | None:
    """The choice without a cycle of least total cost; None if there is none.

    Of several the one with the smallest parent sets, as numbers, variable 0 first. `Undecided` if the budget ran out,
    to which only MaxSAT is charged, or the seconds, or if sizes differ by too much for an integer program.

    options: per variable its possible parent sets and what they cost (`by_size`)
    roots: variables that are available to everybody
    subset_dp: the most variables of a part that go to dynamic programming
    engine: "auto", or "integer_program" for every part (solvers.acyclic.integer_program, extra `large`; no budget;
        `ValueError` for more than 63 variables)
    seconds: of the clock, for all integer programs together; None means no limit
    """
    if engine not in ENGINES:
        raise ValueError(f"no engine '{engine}'; there are {', '.join(ENGINES)}")
    found = parts(options, roots)
    if found is None:
        return None
    until = None if seconds is None else monotonic() + seconds
    chosen: dict[int, Mask] = {}
    for number, part in enumerate(found):
        try:
            if engine == "integer_program":
                assignment = _by_program(part, until)
            else:
                assignment = _least(part, num_vars, budget or Budget(), subset_dp)
        except Undecided as spent:
            rest = sum(
                min(one.cost for one in sets.values()) for later in found[number + 1 :] for sets in later.values()
            )
            late = f"no least choice for {len(part)} variables that may lie on a cycle together within the budget"
            at_least = _total(options, chosen) + spent.at_least + rest
            raise Undecided(at_least, spent.reached or late, _as_good(found[number:], spent.known, chosen)) from None
        if assignment is None:
            return None
        chosen |= {v: part[v][mask].mask for v, mask in assignment.items()}
    return Choice(_total(options, chosen), chosen)


def _least(part: Part, num_vars: int, budget: Budget, subset_dp: int) -> Mapping[int, Mask] | None:
    """The parents within the part of each of its variables."""
    if all(len(sets) == 1 for sets in part.values()) and len(part) == 1:
        return {v: mask for v, sets in part.items() for mask in sets}
    single = all(parents.bit_count() <= 1 for sets in part.values() for parents in sets)
    by_subsets = len(part) <= subset_dp or (_finely_graded(part) and len(part) <= MAX_FREE_VARIABLES)
    if not by_subsets and not single:
        return least_by_maxsat(part, budget, states=STATES_PER_CONFLICT)
    costs = {
        v: {parents: distinct(one.cost, v, one.mask, num_vars) for parents, one in sets.items()}
        for v, sets in part.items()
    }
    if not by_subsets:
        return least_branching(costs)
    best = best_structure(costs, 0)
    return None if best is None else best[1]


def _by_program(part: Part, until: float | None) -> Mapping[int, Mask] | None:
    from calibrant.solvers.acyclic.integer_program.least import least_by_program

    return least_by_program(part, seconds=None if until is None else max(0.0, until - monotonic()))


def _as_good(
    left: Sequence[Part], known: Mapping[int, Mask] | None, chosen: Mapping[int, Mask]
) -> Mapping[int, Mask] | None:
    """A choice for all variables: what is chosen, what was met of the first part that is left, and good ones of others.

    None if nothing was met, or a later part has no choice.
    """
    first, *later = left
    if known is None:
        return None
    found = dict(chosen) | {v: first[v][parents].mask for v, parents in known.items()}
    for part in later:
        good = good_choice({v: {parents: one.cost for parents, one in sets.items()} for v, sets in part.items()}, 0)
        if good is None:
            return None
        found |= {v: part[v][parents].mask for v, parents in good[1].items()}
    return found


def _finely_graded(part: Part) -> bool:
    """Return whether the bound that MaxSAT raises has far to go, as with scores, where sizes differ by a few nodes."""
    spans = (max(candidates.values()).cost - min(candidates.values()).cost for candidates in part.values())
    return sum(map(total_size, spans)) > MAX_SPAN


def _total(options: Mapping[int, Mapping[Mask, Cost]], chosen: Mapping[int, Mask]) -> Cost:
    return sum(options[v][mask] for v, mask in chosen.items())
