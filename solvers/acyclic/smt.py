"""Acyclic assignment of least total cost by optimisation modulo theories, through z3 (extra `smt`).

A literal for each parent set, exactly one a variable; an integer rank for each variable, which exceeds those of the
chosen parents; formulas over arcs as they are. Objectives in lexicographic order: total size, total mentions, then the
smallest parent set of each variable, variable 0 first, which is the tie rule of `optimal_choice`. z3 with its optimiser
(N. Bjorner, A.-D. Phan and L. Fleckenstein, nuZ - an optimizing SMT solver, 2015). No cuts and no reduction beyond
`Part`, and nothing shared with solvers.acyclic.maxsat but the criteria of a cost.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from itertools import pairwise
from typing import Any

from calibrant.dsl.knowledge import Arc, ArcFormula
from calibrant.solvers.acyclic.least import Cost, Mask, ParentSet, Part, members_of, total_mentions, total_size
from calibrant.solvers.outcome import Budget, BudgetSpent, Undecided

STEPS_PER_STATE = 10  # units of z3's resource limit: 4 to 9 million a second
MAX_STEPS = 2_000_000_000  # z3 reads a limit of 32 bits


def least_by_smt(part: Part, budget: Budget) -> dict[int, Mask] | None:
    """Return the parents within the part of every variable; None if every assignment has a cycle.

    `Undecided`, with the sum of the variables' least sizes as its bound, if the budget ran out.
    """
    return _least(part, budget, [], {})


def least_under_relations(
    options: Mapping[int, Mapping[Mask, Cost]],
    budget: Budget,
    relations: Sequence[ArcFormula],
    index: Mapping[str, int],
) -> dict[int, Mask] | None:
    """Return the parents of every variable in an acyclic assignment of least cost that satisfies relations over arcs.

    None if there is none; `Undecided` as in `least_by_smt`. No set is dropped as dominated: a relation may exclude the
    cheaper one. options: per variable that has a mechanism its parent sets; index: number of each name in relations
    """
    part = {v: {mask: ParentSet(cost, mask) for mask, cost in costs.items()} for v, costs in options.items()}
    return _least(part, budget, relations, index)


def _least(
    part: Part, budget: Budget, relations: Sequence[ArcFormula], index: Mapping[str, int]
) -> dict[int, Mask] | None:
    """Return the key of a parent set of every variable; None if nothing acyclic satisfies the relations."""
    import z3

    context = z3.Context()
    search = z3.Optimize(ctx=context)
    literals = {
        v: {parents: z3.Bool(f"{v} from {parents:#x}", context) for parents in sorted(sets)} for v, sets in part.items()
    }
    ranks = {v: z3.Int(f"rank of {v}", context) for v in part}
    for v, of_sets in literals.items():
        search.add(z3.PbEq([(literal, 1) for literal in of_sets.values()], 1))
        for parents, literal in of_sets.items():
            search.add(*(z3.Implies(literal, ranks[u] < ranks[v]) for u in members_of(parents) if u in ranks))

    def arc_term(arc: Arc) -> Any:
        parent, child = (index[name] for name in arc)
        holding = [literal for mask, literal in literals.get(child, {}).items() if mask >> parent & 1]
        return z3.Or(holding) if holding else z3.BoolVal(False, context)

    search.add(*(_term(relation, arc_term, context) for relation in relations))

    def total(measure: Callable[[ParentSet], int], variables: Mapping[int, Mapping[Mask, Any]]) -> Any:
        zero = z3.IntVal(0, context)
        return z3.Sum(
            [
                z3.If(literal, z3.IntVal(measure(part[v][parents]), context), zero)
                for v, of_sets in variables.items()
                for parents, literal in of_sets.items()
            ]
        )

    search.minimize(total(lambda parent_set: total_size(parent_set.cost), literals))
    search.minimize(total(lambda parent_set: total_mentions(parent_set.cost), literals))
    for v in sorted(part):
        search.minimize(total(lambda parent_set: parent_set.mask, {v: literals[v]}))
    limit = MAX_STEPS if budget.states is None else min(MAX_STEPS, budget.states * STEPS_PER_STATE)
    search.set("rlimit", max(1, limit))
    answer = search.check()
    spent = _steps(search) // STEPS_PER_STATE + 1
    try:
        budget.spend(spent)
    except BudgetSpent:
        raise Undecided(_least_costs(part)) from None
    if answer == z3.unknown:
        raise Undecided(_least_costs(part))
    if answer == z3.unsat:
        return None
    model = search.model()
    return {
        v: next(parents for parents, literal in of_sets.items() if z3.is_true(model.eval(literal)))
        for v, of_sets in literals.items()
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


def _steps(search: Any) -> int:
    return next((int(value) for key, value in search.statistics() if key == "rlimit count"), 0)


def _least_costs(part: Part) -> Cost:
    return sum(min(parent_set.cost for parent_set in sets.values()) for sets in part.values())
