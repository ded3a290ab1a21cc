"""Simple methods that search little, or ignore noise and hidden variables, for comparison with the others.

first_found     train-exact, but not small: the first parent sets that fit, unseen rows 0 if the operators express it
random_legal    ignores the evidence
copy_parent     every variable copies or negates one other
majority        every variable is constant

Each returns a legal SCM, or None without one of its kind: nothing fits, or the allowed operators and admissible parents
cannot express it. Hidden roots are assumed to be the first root set, lexicographically, whose columns are nested
(solvers.replayscm.roots_and_parents), or else the first of all.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random

from calibrant.dsl.formulas.formula import Formula, apply, constant, var
from calibrant.dsl.formulas.table import PartialTable, TruthTable
from calibrant.dsl.replayscm.disclosure import Blocks, HiddenOrder, Ordered, natural
from calibrant.dsl.replayscm.episode import task_class
from calibrant.dsl.replayscm.extensions.extension import NOISE_FREE
from calibrant.dsl.replayscm.extensions.reference import EvidenceWorld
from calibrant.dsl.replayscm.item import Task
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.replayscm.submission import illegality
from calibrant.solvers.acyclic.least import Mask, cost_by_size
from calibrant.solvers.acyclic.optimum import MAX_CHOICE_STATES, optimal_choice
from calibrant.solvers.formulas.synthesis import formula_for, least_formula
from calibrant.solvers.outcome import Budget, BudgetSpent, Found, Impossible, Outcome, OutOfBudget
from calibrant.solvers.replayscm.certified import certify
from calibrant.solvers.replayscm.experiments.policies import ExtendedAnswer, answer_exact
from calibrant.solvers.replayscm.hidden.mass import exact_mass
from calibrant.solvers.replayscm.noise.posterior import Posterior
from calibrant.solvers.replayscm.roots_and_parents import ParentSearch, iterate_likely_first

# --- Simple methods that search little or nothing ---------------------------------------------------------------------
MAX_PARENTS = 5
MAX_STATES = 200_000_000  # functions that the search for one formula may compare; standard operators need none
MIN_RANDOM_PARENTS, MAX_RANDOM_PARENTS = 2, 3  # of a random mechanism, or all candidates if they are fewer


def first_found(task: Task) -> Scm | None:
    """Return the train-exact SCM whose parent sets come first: fewest parents, then the first in variable order.

    The parent sets of a variable are those of at most MAX_PARENTS variables that determine it, ranked in this order.
    Return the acyclic assignment of least total rank, under the first root set that has one. `BudgetSpent` after very
    many root sets, or if too many variables can come in any order (solvers.acyclic.optimum).
    """
    sets, index = _FirstSets(task), _index(task)
    for roots in iterate_likely_first(task):
        endogenous = _endogenous(task, roots)
        while (chosen := _acyclic(task, {index[v]: sets.ranks(v) for v in endogenous}, roots)) is not None:
            mechanisms = {task.variables[v]: sets.formula(task.variables[v], mask) for v, mask in chosen.items()}
            stated = {v: formula for v, formula in mechanisms.items() if formula is not None}
            if stated == mechanisms:
                return certify(task, Scm(roots, stated))
            for variable in mechanisms.keys() - stated.keys():
                sets.drop(variable, chosen[index[variable]])
    return None


class _FirstSets:
    """Ranked parent sets of each variable; the ranks are the same under every root set."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self._search = ParentSearch(task, MAX_PARENTS)
        self._tables: dict[str, dict[Mask, PartialTable]] = {}
        self._ranks: dict[str, dict[Mask, int]] = {}

    def ranks(self, variable: str) -> Mapping[Mask, int]:
        if variable not in self._ranks:
            index = _index(self.task)
            admissible = [index[u] for u in self.task.disclosure.admissible_parents(variable)]
            tables = {s.mask: s.table for s in self._search.parent_sets(index[variable], admissible)}
            in_order = sorted(tables, key=lambda mask: (mask.bit_count(), _bits(mask)))
            self._tables[variable] = tables
            self._ranks[variable] = {mask: rank for rank, mask in enumerate(in_order)}
        return self._ranks[variable]

    def drop(self, variable: str, mask: Mask) -> None:
        """Drop a parent set over which no formula of the allowed operators fits."""
        del self._ranks[variable][mask]

    def formula(self, variable: str, mask: Mask) -> Formula | None:
        """Return a formula that is 0 in unseen rows, or a least one if that cannot be expressed; None without one."""
        names, table = [self.task.variables[i] for i in _bits(mask)], self._tables[variable][mask]
        operators = self._search.operators
        try:
            return formula_for(TruthTable(len(names), table.value), names, operators)
        except ValueError:
            formula = least_formula(table, names, operators=operators, budget=Budget(MAX_STATES))
        if isinstance(formula, OutOfBudget):
            raise BudgetSpent(f"mechanism of {variable}: {formula.reached}")
        return formula.value if isinstance(formula, Found) else None


def random_legal(task: Task, seed: int) -> Scm | None:
    """Return a random SCM that the disclosure admits; it depends on the seed and the content of the task alone."""
    rng = Random(f"{seed}:{_digest(task)}")
    roots = next(iterate_likely_first(task))
    order = _random_order(task, roots, rng)
    names = [name for name in ("and", "or", "xor", "iff") if name in task.grammar.operators]
    if not names:
        return None
    mechanisms = {}
    for variable in order:
        if variable in roots:
            continue
        earlier = order[: order.index(variable)]
        allowed = [u for u in earlier if u in task.disclosure.admissible_parents(variable)]
        if not allowed:
            return None  # only a constant would be admissible
        parents = rng.sample(allowed, min(rng.randint(MIN_RANDOM_PARENTS, MAX_RANDOM_PARENTS), len(allowed)))
        literals = [_literal(task, parent, negated=rng.random() < 0.5) for parent in parents]
        mechanisms[variable] = apply(rng.choice(names), literals if len(literals) > 1 else literals * 2)
    return _legal(task, roots, mechanisms)


def copy_parent(task: Task) -> Scm | None:
    """Return the SCM in which every variable copies or negates one other, with as few wrong cells as possible.

    Cells are compared with the observed value of the other variable. Ties: copies first, then variable order.
    """
    index = _index(task)
    roots = next(iterate_likely_first(task))
    options: dict[int, dict[Mask, int]] = {}
    negated: dict[tuple[int, int], bool] = {}
    for variable in _endogenous(task, roots):
        costs = options[index[variable]] = {}
        for parent in task.variables:
            if parent in task.disclosure.admissible_parents(variable):
                equal, different = _agreement(task, variable, parent)
                is_negated = different > equal and "not" in task.grammar.operators
                negated[index[variable], index[parent]] = is_negated
                costs[1 << index[parent]] = equal if is_negated else different
    chosen = _acyclic(task, options, roots)
    if chosen is None:
        return None
    mechanisms = {}
    for v, mask in chosen.items():
        (copied,) = _bits(mask)
        mechanisms[task.variables[v]] = _literal(task, task.variables[copied], negated=negated[v, copied])
    return _legal(task, roots, mechanisms)


def majority(task: Task) -> Scm | None:
    """Return the SCM in which every variable has its more frequent value in scored rows, 0 on a tie.

    If constants are not allowed, they are written as `iff` or `xor` of the first root with itself.
    """
    roots = next(iterate_likely_first(task))
    mechanisms: dict[str, Formula] = {}
    for variable in _endogenous(task, roots):
        training = task.training
        scored = training.scored_rows(variable)
        ones = (training.columns[variable] & scored).bit_count()
        value = 2 * ones > scored.bit_count()
        operator = "iff" if value else "xor"
        if task.grammar.allow_constants:
            mechanisms[variable] = constant(value)
        elif operator in task.grammar.operators and roots:
            mechanisms[variable] = apply(operator, [var(roots[0]), var(roots[0])])
        else:
            return None
    return _legal(task, roots, mechanisms)


# --- common parts ---------------------------------------------------------------------------------------------------


def _index(task: Task) -> dict[str, int]:
    return {variable: i for i, variable in enumerate(task.variables)}


def _bits(mask: Mask) -> tuple[int, ...]:
    return tuple(i for i in range(mask.bit_length()) if mask >> i & 1)


def _endogenous(task: Task, roots: tuple[str, ...]) -> list[str]:
    return [variable for variable in task.variables if variable not in roots]


def _acyclic(task: Task, costs: Mapping[int, Mapping[Mask, int]], roots: tuple[str, ...]) -> dict[int, Mask] | None:
    """Return the acyclic assignment of least total cost; ties by the smallest parent sets, variable by variable."""
    if not all(costs.values()):
        return None
    if task.disclosure.order is not None:
        return {v: min((cost, mask) for mask, cost in by_set.items())[1] for v, by_set in costs.items()}
    index, num = _index(task), len(task.variables)
    sizes = {v: {mask: cost_by_size(cost, 0) for mask, cost in by_set.items()} for v, by_set in costs.items()}
    best = optimal_choice(sizes, sum(1 << index[root] for root in roots), num, Budget(MAX_CHOICE_STATES))
    return None if best is None else dict(best.chosen)


def _random_order(task: Task, roots: tuple[str, ...], rng: Random) -> list[str]:
    disclosure = task.disclosure
    if disclosure.order is not None:
        return [*roots, *(v for v in disclosure.order if v not in roots)]
    order = list(roots)
    for group in disclosure.groups:
        free = [v for v in task.variables if v in group and v not in roots]
        order += rng.sample(free, len(free))
    return order


def _digest(task: Task) -> str:
    """Digest the visible task, independent of the order of the file."""
    worlds = [(sorted(map(str, w.intervention.signature)), w.row_texts()) for w in task.training.worlds]
    return hashlib.sha256(repr((task.variables, task.disclosure.label, worlds)).encode()).hexdigest()


def _literal(task: Task, variable: str, *, negated: bool) -> Formula:
    literal = var(variable)
    return apply("not", [literal]) if negated and "not" in task.grammar.operators else literal


def _agreement(task: Task, variable: str, parent: str) -> tuple[int, int]:
    """Return the numbers of scored rows of the variable in which the two are equal, and in which they differ."""
    training = task.training
    scored = training.scored_rows(variable)
    different = (training.columns[variable] ^ training.columns[parent]) & scored
    return (scored & ~different).bit_count(), different.bit_count()


def _legal(task: Task, roots: tuple[str, ...], mechanisms: Mapping[str, Formula]) -> Scm:
    """Return the SCM; `AssertionError` if it is no legal answer to the task. It need not fit the evidence."""
    model = Scm(roots, dict(mechanisms))
    wrong = illegality(task, model)
    if wrong:
        raise AssertionError(f"a simple row's answer is not legal: {wrong}")
    return model


# --- Methods for extended items that ignore noise or hidden variables, and show what that costs -----------------------


def answer_noise_blind(task: Task, worlds: Sequence[EvidenceWorld]) -> Outcome[ExtendedAnswer]:
    """Keep rows in order while the noise-free space is not empty, then answer as `exact` without noise."""
    noiseless_task = _without_noise(task)
    singles = [EvidenceWorld(world.constants, (row,)) for world in worlds for row in world.rows]
    accepted = _consistent_rows(Posterior(task_class(noiseless_task)), singles)
    return answer_exact(noiseless_task, accepted)


def _consistent_rows(posterior: Posterior, rows: Sequence[EvidenceWorld]) -> list[EvidenceWorld]:
    """Return the rows that a pass in order keeps, each kept iff some SCM fits it and all rows kept before."""
    if not rows or exact_mass(posterior.condition(*rows)):
        return list(rows)  # if some SCM fits all of them, the pass keeps all
    if len(rows) == 1:
        return []
    first = _consistent_rows(posterior, rows[: len(rows) // 2])
    return [*first, *_consistent_rows(posterior.condition(*first), rows[len(rows) // 2 :])]


def answer_hidden_blind(task: Task, worlds: Sequence[EvidenceWorld]) -> Outcome[ExtendedAnswer]:
    """Answer as `exact` without hidden variables; as `noise-blind` if no such SCM fits."""
    visible = _without_hidden(task)
    answer = answer_exact(visible, worlds)
    return answer_noise_blind(visible, worlds) if isinstance(answer, Impossible) else answer


def answer_majority(task: Task, worlds: Sequence[EvidenceWorld]) -> Outcome[ExtendedAnswer]:
    """Answer each variable's more frequent free value, as a constant; 0 on a tie."""
    scm_class = task_class(task)
    mechanisms = {}
    for index, variable in enumerate(scm_class.observed):
        if variable in scm_class.endogenous:
            values = [row[index] == "1" for world in worlds if variable not in world.constants for row in world.rows]
            root = scm_class.roots[0]
            mechanisms[variable] = f"(iff {root} {root})" if 2 * sum(values) > len(values) else f"(xor {root} {root})"
    return Found(ExtendedAnswer({"mechanisms": mechanisms}, None, "majority of free cells"))


def _without_noise(task: Task) -> Task:
    assert task.extension is not None
    return replace(task, extension=replace(task.extension, noise=NOISE_FREE))


def _without_hidden(task: Task) -> Task:
    """Return the task whose class has no hidden variables."""
    assert task.extension is not None
    hidden = set(task.extension.hidden)
    disclosure = task.disclosure
    match disclosure:
        case Ordered(order, roots):
            disclosure = Ordered(tuple(v for v in order if v not in hidden), roots)
        case Blocks(blocks, roots):
            visible_blocks = (tuple(v for v in block if v not in hidden) for block in blocks)
            disclosure = Blocks(tuple(block for block in visible_blocks if block), roots)
        case HiddenOrder(variables, roots):
            disclosure = HiddenOrder(natural(v for v in variables if v not in hidden), roots)
    return replace(task, disclosure=disclosure, extension=replace(task.extension, hidden={}))
