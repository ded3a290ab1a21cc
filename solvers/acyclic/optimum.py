"""Acyclic assignment of least total cost for any number of variables: choice of the engine, and the engine by z3.

First, parent sets are reduced and variables split into parts, strongly connected components (solvers.acyclic.least). A
small part, or a medium one with a wide range of costs, is solved by dynamic programming over subsets; a part without
sets of two parents by Edmonds' branching; any other by MaxSAT with cuts. On request one engine solves all parts. All
engines break ties alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from itertools import pairwise
from time import monotonic
from typing import Any, NamedTuple

from calibrant.dsl.errors import require_extra
from calibrant.dsl.knowledge import Arc, ArcFormula
from calibrant.solvers.acyclic.least import (
    MAX_FREE_VARIABLES,
    Cost,
    Mask,
    ParentSet,
    Part,
    best_structure,
    break_ties,
    find_good_choice,
    least_branching,
    members_of,
    reduce_to_parts,
    total_mentions,
    total_size,
)
from calibrant.solvers.acyclic.maxsat import least_by_maxsat
from calibrant.solvers.outcome import Budget, BudgetSpent, Undecided

STEPS_PER_STATE = 10  # units of z3's resource limit per unit of the budget; z3 spends 4 to 9 million units a second
MAX_STEPS = 2_000_000_000  # z3 reads a limit of 32 bits


def least_by_smt(part: Part, budget: Budget) -> dict[int, Mask] | None:
    """Return the parents of every variable in its part; None if every assignment has a cycle.

    `Undecided`, with the sum of the variables' least costs as its bound, if the budget ran out.
    """
    return _solve_by_z3(part, budget, [], {})


def least_under_relations(
    options: Mapping[int, Mapping[Mask, Cost]],
    budget: Budget,
    relations: Sequence[ArcFormula],
    index: Mapping[str, int],
) -> dict[int, Mask] | None:
    """Return the parents of every variable in an acyclic assignment of least cost that satisfies relations over arcs.

    None if there is none; `Undecided` as in `least_by_smt`. Dominated sets are kept: a relation may exclude the sets
    that dominate them.

    options: endogenous variable -> parent set -> cost; index: name in relations -> variable
    """
    part = {v: {mask: ParentSet(cost, mask) for mask, cost in costs.items()} for v, costs in options.items()}
    return _solve_by_z3(part, budget, relations, index)


def _solve_by_z3(
    part: Part, budget: Budget, relations: Sequence[ArcFormula], index: Mapping[str, int]
) -> dict[int, Mask] | None:
    """Return the parents in the part of every variable; None if no acyclic assignment satisfies the relations."""
    import z3

    context = z3.Context()
    search = z3.Optimize(ctx=context)
    literals = {
        v: {parents: z3.Bool(f"{v} from {parents:#x}", context) for parents in sorted(sets)} for v, sets in part.items()
    }
    ranks = {v: z3.Int(f"rank of {v}", context) for v in part}
    for v, literal_of in literals.items():
        search.add(z3.PbEq([(literal, 1) for literal in literal_of.values()], 1))
        for parents, literal in literal_of.items():
            search.add(*(z3.Implies(literal, ranks[u] < ranks[v]) for u in members_of(parents) if u in ranks))

    def arc_term(arc: Arc) -> Any:
        parent, child = (index[name] for name in arc)
        with_arc = [literal for mask, literal in literals.get(child, {}).items() if mask >> parent & 1]
        return z3.Or(with_arc) if with_arc else z3.BoolVal(False, context)

    search.add(*(_term(relation, arc_term, context) for relation in relations))

    def total(measure: Callable[[ParentSet], int], variables: Mapping[int, Mapping[Mask, Any]]) -> Any:
        zero = z3.IntVal(0, context)
        return z3.Sum(
            [
                z3.If(literal, z3.IntVal(measure(part[v][parents]), context), zero)
                for v, literal_of in variables.items()
                for parents, literal in literal_of.items()
            ]
        )

    search.minimize(total(lambda parent_set: total_size(parent_set.cost), literals))
    search.minimize(total(lambda parent_set: total_mentions(parent_set.cost), literals))
    for v in sorted(part):
        search.minimize(total(lambda parent_set: parent_set.mask, {v: literals[v]}))
    limit = MAX_STEPS if budget.states is None else min(MAX_STEPS, budget.states * STEPS_PER_STATE)
    search.set("rlimit", max(1, limit))
    answer = search.check()
    states = _num_steps(search) // STEPS_PER_STATE + 1
    try:
        budget.spend(states)
    except BudgetSpent:
        raise Undecided(_sum_of_least_costs(part)) from None
    if answer == z3.unknown:
        raise Undecided(_sum_of_least_costs(part))
    if answer == z3.unsat:
        return None
    model = search.model()
    return {
        v: next(parents for parents, literal in literal_of.items() if z3.is_true(model.eval(literal)))
        for v, literal_of in literals.items()
    }


def _term(formula: ArcFormula, arc_term: Callable[[Arc], Any], context: Any) -> Any:
    """Return the z3 term of a formula over arcs."""
    import z3

    if formula.operator == "arc":
        return arc_term(formula.arc)
    terms = [_term(argument, arc_term, context) for argument in formula.arguments]
    match formula.operator:
        case "and" | "true":
            return z3.And([*terms, z3.BoolVal(True, context)])
        case "or" | "false":
            return z3.Or([*terms, z3.BoolVal(False, context)])
        case "not":
            return z3.Not(terms[0])
        case "=>":
            return z3.Implies(z3.And([*terms[:-1], z3.BoolVal(True, context)]), terms[-1])
        case "xor":
            return reduce(z3.Xor, terms)
        case "=":
            return z3.And([first == second for first, second in pairwise(terms)])
    return z3.If(*terms)


def _num_steps(search: Any) -> int:
    """Return how much of its resource limit z3 has used."""
    return next((int(value) for key, value in search.statistics() if key == "rlimit count"), 0)


def _sum_of_least_costs(part: Part) -> Cost:
    """Return the sum of the variables' least costs, a lower bound."""
    return sum(min(parent_set.cost for parent_set in sets.values()) for sets in part.values())


# --- Acyclic assignment for any number of variables: choice of the engine for each part -------------------------------

ENGINES = ("auto", "subset_dp", "sat", "smt", "integer_program")
EXTRAS = {"smt": ("smt", "z3"), "integer_program": ("large", "highspy")}  # by engine: the extra and its module
MAX_SUBSET_DP = 8  # variables of a part up to which subsets are faster: 1.0 ms, MaxSAT 1.6 ms; for 9 2.1 and 1.8 ms
MAX_SPAN = 10_000  # total range of sizes beyond which parts of up to MAX_FREE_VARIABLES are solved by subsets too
STATES_PER_CONFLICT = 20_000  # units of the budget: then a unit takes about as long as in formula search
MAX_CHOICE_STATES = 10_000 * STATES_PER_CONFLICT  # default budget of methods without one; about ten seconds


class Choice(NamedTuple):
    """A parent-set assignment (variable -> parent set) with its total cost."""

    cost: Cost
    chosen: Mapping[int, Mask]


def require_engine(engine: str) -> None:
    """Raise `MissingExtraError` if the package that the engine needs is not installed."""
    if engine in EXTRAS:
        require_extra(*EXTRAS[engine])


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
    """Return the acyclic assignment of least total cost; None if there is none.

    Ties go to the smallest parent sets, as numbers, variable 0 first. `Undecided` if the budget of MaxSAT or SMT ran
    out, if the time is over, if sizes differ by too much for an integer program, or if a part has too many variables
    for dynamic programming. `MissingExtraError` without the engine's package.

    options: per variable the costs of its possible parent sets (`cost_by_size`)
    roots: variables that may be parents of all
    subset_dp: largest number of variables of a part for dynamic programming
    engine: "auto", or for every part "subset_dp", "sat" (MaxSAT), "smt" (z3, extra `smt`), or "integer_program"
        (solvers.acyclic.integer_program, extra `large`; no budget; `ValueError` for more than 63 variables)
    seconds: wall time of all integer programs together; None means no limit
    """
    if engine not in ENGINES:
        raise ValueError(f"no engine '{engine}'; there are {', '.join(ENGINES)}")
    require_engine(engine)
    components = reduce_to_parts(options, roots)
    if components is None:
        return None
    deadline = None if seconds is None else monotonic() + seconds
    chosen: dict[int, Mask] = {}
    for index, part in enumerate(components):
        try:
            if engine == "integer_program":
                assignment = _solve_by_program(part, deadline)
            elif engine == "smt":
                assignment = least_by_smt(part, budget or Budget())
            elif engine == "sat":
                assignment = least_by_maxsat(part, budget or Budget(), states=STATES_PER_CONFLICT)
            elif engine == "subset_dp":
                assignment = _solve_by_subsets(part, num_vars)
            else:
                assignment = _solve_part(part, num_vars, budget or Budget(), subset_dp)
        except Undecided as spent:
            # parts share no cycle: their minima add up, so solved parts count exactly and later ones by their cheapest
            later_cost = sum(
                min(parent_set.cost for parent_set in sets.values())
                for later in components[index + 1 :]
                for sets in later.values()
            )
            reason = f"no least choice for {len(part)} variables that may lie on a cycle together within the budget"
            at_least = _total_cost(options, chosen) + spent.at_least + later_cost
            raise Undecided(
                at_least, spent.reached or reason, _complete_choice(components[index:], spent.incumbent, chosen)
            ) from None
        if assignment is None:
            return None
        chosen |= {v: part[v][mask].mask for v, mask in assignment.items()}
    return Choice(_total_cost(options, chosen), chosen)


def _solve_part(part: Part, num_vars: int, budget: Budget, subset_dp: int) -> Mapping[int, Mask] | None:
    """Return the parents within the part of each of its variables, by the engine that suits it."""
    if len(part) == 1 and all(len(sets) == 1 for sets in part.values()):
        return {v: mask for v, sets in part.items() for mask in sets}
    has_single_parents = all(parents.bit_count() <= 1 for sets in part.values() for parents in sets)
    by_subsets = len(part) <= subset_dp or (_is_finely_graded(part) and len(part) <= MAX_FREE_VARIABLES)
    if not by_subsets and not has_single_parents:
        return least_by_maxsat(part, budget, states=STATES_PER_CONFLICT)
    if not by_subsets:
        return least_branching(_costs_without_ties(part, num_vars))
    return _solve_by_subsets(part, num_vars)


def _solve_by_subsets(part: Part, num_vars: int) -> Mapping[int, Mask] | None:
    if len(part) > MAX_FREE_VARIABLES:
        at_least = sum(min(parent_set.cost for parent_set in sets.values()) for sets in part.values())
        raise Undecided(at_least, f"{len(part)} variables may lie on a cycle, subsets of {MAX_FREE_VARIABLES} at most")
    best = best_structure(_costs_without_ties(part, num_vars), 0)
    return None if best is None else best[1]


def _costs_without_ties(part: Part, num_vars: int) -> dict[int, dict[Mask, Cost]]:
    return {
        v: {parents: break_ties(parent_set.cost, v, parent_set.mask, num_vars) for parents, parent_set in sets.items()}
        for v, sets in part.items()
    }


def _solve_by_program(part: Part, deadline: float | None) -> Mapping[int, Mask] | None:
    from calibrant.solvers.acyclic.integer_program.least import least_by_program
    from calibrant.solvers.acyclic.integer_program.relaxation import Limits

    return least_by_program(part, Limits(None if deadline is None else max(0.0, deadline - monotonic())))


def _complete_choice(
    open_parts: Sequence[Part], part_choice: Mapping[int, Mask] | None, chosen: Mapping[int, Mask]
) -> Mapping[int, Mask] | None:
    """Complete an assignment: `chosen`, then the incumbent of the first open part, then heuristic sets of later parts.

    part_choice: incumbent of the first open part; None without one, and if a later part has no assignment
    """
    first, *later = open_parts
    if part_choice is None:
        return None
    choice = dict(chosen) | {v: first[v][parents].mask for v, parents in part_choice.items()}
    for part in later:
        good = find_good_choice(
            {v: {parents: parent_set.cost for parents, parent_set in sets.items()} for v, sets in part.items()}, 0
        )
        if good is None:
            return None
        choice |= {v: part[v][parents].mask for v, parents in good[1].items()}
    return choice


def _is_finely_graded(part: Part) -> bool:
    """Return whether costs have a wide range, as scores have: MaxSAT would raise its bound in too many small steps."""
    spans = (max(candidates.values()).cost - min(candidates.values()).cost for candidates in part.values())
    return sum(map(total_size, spans)) > MAX_SPAN


def _total_cost(options: Mapping[int, Mapping[Mask, Cost]], chosen: Mapping[int, Mask]) -> Cost:
    return sum(options[v][mask] for v, mask in chosen.items())
