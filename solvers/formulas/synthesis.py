"""Exact synthesis: a least formula that agrees with a partial truth table, proven least.

Up to 4 variables, one look-up in a complete catalogue of functions finds the formula. Over 5 and 6 variables a
catalogue holds all functions of up to 11 and 9 nodes; beyond that, every size is refuted by exhaustion before the next
is tried. A unit of the budget is a listed function that is compared with the table, or a pair of them.

Ties are broken by one rule, for any number of variables and any method. Of the functions of least size that agree with
the table, the one with the smallest table bits is taken. Of its formulas of least size, the one is built that is first
by
1. the operator at its root, in table order (not, and, or, xor, iff);
2. its split into two parts (for `iff` of more than two: into arguments): smallest first part, then smallest second
   part, by list cost (solvers.formulas._kernels_functions), size and table bits.
Nested nodes of one n-ary operator are flattened. Arguments are formulas by the same rule, sorted by size, then bits.
A part is `Listed` (a function of the catalogue) or `Decomposed` (an operator over parts).

A formula of size s that agrees with a partial table divides s - 1 nodes among its arguments. All but the largest
argument come from the catalogue. The largest has to agree with a partial table in which further rows are open, and is
found by a scan of the catalogue, or by the same search for a smaller size. An argument opens for the others, under
`and`, the rows where it is 0; under `or`, those where it is 1; under a parity, none; under `iff`, those where the
arguments so far disagree.

A goal is a partial table, `value` on the rows of `care`, and a score, (bits & keep) ^ flip, by which formulas of one
size are compared: the least is best. `keep` and `flip` express the score of the whole formula by its argument's bits.

Each generator of splits yields formulas of exactly the requested size that agree with the goal. One of least score is
among them, if there is any formula of this operator and size and none smaller agrees with the goal. Splits into listed
functions come first, then those that need a further search for the largest argument.

The arguments of `and`, `or`, `xor` of total size n, all listed in a catalogue up to size t, fall into two parts
whose combinations are listed too (a single argument, or a list cost below t) whenever 2 (n - t) < t: either the largest
argument leaves less than t to the others, or no argument exceeds n - t, and then the shortest prefix that reaches
n - t + 1 stays below t. So pairs of listed functions suffice, up to size 17 for t = 11. Above, the smallest argument is
taken off first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from calibrant.dsl.errors import TableError
from calibrant.dsl.formulas.formula import OPERATORS, STANDARD_OPERATORS, Formula, apply, rename, var
from calibrant.dsl.formulas.reference import evaluate
from calibrant.dsl.formulas.table import (
    PartialTable,
    TruthTable,
    cofactor,
    constant_table,
    full_mask,
    num_rows,
    projection,
    select,
)
from calibrant.solvers.formulas import _kernels_synthesis as kernels
from calibrant.solvers.formulas._kernels_functions import I64, Lists, list_iff_arguments
from calibrant.solvers.formulas._kernels_synthesis import find_first_match
from calibrant.solvers.formulas.catalogue import (
    LISTING,
    MAX_SIZES,
    ROOTS,
    SHIPPED,
    Catalogue,
    build_catalogue,
    catalogue,
    may_be_expressible,
    pack_orbits,
)
from calibrant.solvers.outcome import Budget, BudgetSpent, Found, Impossible, Outcome, OutOfBudget

# --- Questions and answers of exact synthesis -------------------------------------------------------------------------


class Goal(NamedTuple):
    """Demand for the function that is `value` on the rows of `care` and has the least score, (bits & keep) ^ flip.

    care, value: determined rows, and their values (0 elsewhere)
    keep, flip: the score of an argument under them is the score of the larger function that it completes
    """

    care: int
    value: int
    keep: int
    flip: int

    def score(self, bits: int) -> int:
        return (bits & self.keep) ^ self.flip

    @property
    def floor(self) -> int:
        """Lower bound of the score of functions that agree."""
        return (self.score(self.value) & self.care) | (self.flip & ~self.keep & ~self.care)

    def shift(self, bits: int) -> Goal:
        """Return the goal for a function whose exclusive or with `bits` meets this goal."""
        return self._replace(value=(self.value ^ bits) & self.care, flip=self.flip ^ (bits & self.keep))


def exact_goal(bits: int, full: int) -> Goal:
    """Return the goal that only the function `bits` meets; full: mask of all rows."""
    return Goal(full, bits, 0, 0)


class Listed(NamedTuple):
    """Function of a catalogue; position: its index there."""

    bits: int
    size: int
    position: int


class Decomposed(NamedTuple):
    """Operator applied to parts; under `and`, `or`, `xor` a part may stand for several arguments."""

    bits: int
    size: int
    operator: str
    parts: tuple[Part, ...]


Part: TypeAlias = "Listed | Decomposed"


def make_decomposed(operator: str, parts: Iterable[Part], size: int, full: int) -> Decomposed:
    chosen = tuple(parts)
    return Decomposed(OPERATORS[operator].bits([part.bits for part in chosen], full), size, operator, chosen)


# --- Least formulas beyond a catalogue: exact search over the operator at the root and its arguments ------------------


class Decomposition:
    """Exact search over one catalogue; refuted goals are remembered by size.

    Sizes must ascend: a search for size s relies on there being no smaller formula that agrees.
    """

    def __init__(self, functions: Catalogue) -> None:
        self.functions = functions
        self.full = full_mask(functions.num_vars)
        self.budget = Budget()
        self._refuted: set[tuple[int, int, int]] = set()
        self._parity_pairs: dict[tuple[Goal, int], kernels.ParityPairs] = {}

    @property
    def max_size(self) -> int:
        """Largest size that can be searched: one of two arguments has to be listed."""
        return 2 * self.functions.max_size + 2

    def find_smallest(self, goal: Goal, size: int) -> Part | None:
        """Return the agreeing function of that size of least score; None if there is none."""
        if size <= self.functions.max_size:
            return self._scan(goal, size)
        return self._search(goal, size, self.functions.operators)

    def split_with_root(self, goal: Goal, size: int, operator: str) -> Decomposed | None:
        """Return the agreeing decomposition of least score with the operator at its root; None if there is none."""
        return best_candidate(goal, self._candidates(goal, size, operator))

    def listed_function(self, position: int) -> Listed:
        return Listed(int(self.functions.words[position]), int(self.functions.sizes[position]), position)

    def best_parity_pairs(self, goal: Goal, total: int) -> kernels.ParityPairs:
        """Return, for `xor` and for `iff`, the two listed arguments of least score and total list cost `total`."""
        key = goal, total  # one pass serves both operators
        if key not in self._parity_pairs:
            functions = self.functions
            self.budget.spend(int(functions.ends[min(total, functions.max_size)]))
            self._parity_pairs[key] = kernels.find_parity_pairs(
                functions.words, functions.parity_costs, functions.ends, total, *map(np.uint64, goal)
            )
        return self._parity_pairs[key]

    def _scan(self, goal: Goal, size: int) -> Listed | None:
        start, end = (int(end) for end in self.functions.ends[size - 1 : size + 1])
        self.budget.spend(end - start)
        position = kernels.find_best_match(self.functions.words, start, end, *map(np.uint64, goal))
        return None if position < 0 else self.listed_function(position)

    def _search(self, goal: Goal, size: int, operators: Iterable[str]) -> Decomposed | None:
        # whether a formula exists does not depend on the score (keep, flip), so that a refutation holds for all scores
        key = goal.care, goal.value, size
        if key in self._refuted:
            return None
        solution = best_candidate(goal, (part for name in operators for part in self._candidates(goal, size, name)))
        if solution is None:
            self._refuted.add(key)
        return solution

    def _candidates(self, goal: Goal, size: int, operator: str) -> Iterator[Decomposed]:
        match operator:
            case "not":
                yield from self._split_negations(goal, size)
            case "and" | "or":
                yield from split_junctions(self, goal, size, operator)
            case "xor":
                yield from split_parities(self, goal, size, operator)
            case "iff":
                yield from split_parities(self, goal, size, operator)
                yield from split_equalities(self, goal, size)
            case _:
                raise AssertionError(operator)

    def _split_negations(self, goal: Goal, size: int) -> Iterator[Decomposed]:
        inner = goal.shift(self.full)
        part: Part | None
        if size - 1 <= self.functions.max_size:
            part = self._scan(inner, size - 1)
        else:  # no `not` below a `not`: without the two the formula would be smaller
            part = self._search(inner, size - 1, (name for name in self.functions.operators if name != "not"))
        if part is not None:
            yield make_decomposed("not", [part], size, self.full)


def best_candidate(goal: Goal, candidates: Iterable[Decomposed]) -> Decomposed | None:
    """Return the first candidate of least score, None without candidates; stop once no later one can be better."""
    chosen = None
    for part in candidates:
        if chosen is None or goal.score(part.bits) < goal.score(chosen.bits):
            chosen = part
        if goal.score(chosen.bits) == goal.floor:
            break
    return chosen


# --- Splits of a formula into its operator and its arguments ----------------------------------------------------------


def split_junctions(search: Decomposition, goal: Goal, size: int, operator: str) -> Iterator[Decomposed]:
    """Yield splits with `and` or `or` at the root; by De Morgan a disjunction is a complemented conjunction."""
    functions, total = search.functions, size - 1
    negate = search.full if operator == "or" else 0
    inner = goal.shift(negate)
    onset, offset = inner.value, inner.care ^ inner.value
    limit = int(functions.ends[min(total, functions.max_size)])
    search.budget.spend(limit)
    selection = kernels.select_candidates(
        functions.words, functions.costs(operator), limit, total, *map(np.uint64, (negate, onset, offset))
    )
    search.budget.spend(_count_pairs(selection.starts, total))
    first, second = kernels.find_cover_pair(
        selection, total, *map(np.uint64, (offset, inner.keep, inner.flip, goal.floor))
    )
    if first >= 0:
        pair = (search.listed_function(int(selection.positions[index])) for index in (first, second))
        yield make_decomposed(operator, pair, size, search.full)
    for cost, remainder in _remainders(search, total, operator):
        for index in range(selection.starts[cost], selection.starts[cost + 1]):
            word = int(selection.words[index])
            # the other arguments have to be 1 on the onset, and 0 where this one is 1 on the offset
            remaining_goal = Goal(onset | (offset & word), onset, inner.keep & word, inner.flip)
            part = remainder(remaining_goal.shift(negate))
            if part is not None:
                yield make_decomposed(
                    operator, (search.listed_function(int(selection.positions[index])), part), size, search.full
                )


def split_parities(search: Decomposition, goal: Goal, size: int, operator: str) -> Iterator[Decomposed]:
    """Yield splits with `xor` at the root, or `iff` of two arguments, which is its complement."""
    functions, total = search.functions, size - 1
    pairs = search.best_parity_pairs(goal, total)
    xor, iff = (pairs.xor_left, pairs.xor_right), (pairs.iff_left, pairs.iff_right)
    first, second = xor if operator == "xor" else iff
    if first >= 0:
        yield make_decomposed(operator, map(search.listed_function, (first, second)), size, search.full)
    inner = goal.shift(search.full if operator == "iff" else 0)
    costs = functions.costs(operator)
    for cost, remainder in _remainders(search, total, operator):
        start, end = functions.ends[cost - 1], functions.ends[min(cost + 1, functions.max_size)]
        for position in start + np.flatnonzero(costs[start:end] == cost):
            argument = search.listed_function(int(position))
            part = remainder(inner.shift(argument.bits))
            if part is not None:
                yield make_decomposed(operator, (argument, part), size, search.full)


def split_equalities(search: Decomposition, goal: Goal, size: int) -> Iterator[Decomposed]:
    """Yield splits with `iff` of three or more arguments at the root."""
    functions, total = search.functions, size - 1
    onset, offset = goal.value, goal.care ^ goal.value
    search.budget.spend(_count_list_pairs(functions.ends, total))
    words = functions.words[: functions.ends[min(total // 2, functions.max_size)]]
    lists = list_iff_arguments(words, functions.sizes, functions.ends, total, np.uint64(onset), np.uint64(offset))
    remaining_sizes = total - lists.cost[lists.first :]
    # charged: the listed functions of each remaining size; the last entry, 0, stands for unlisted sizes
    layers = np.append(0, np.diff(functions.ends, append=functions.ends[-1]))
    search.budget.spend(int(layers[np.minimum(remaining_sizes, len(layers) - 1)].sum()))
    chosen, last = kernels.find_iff_last(
        functions.words, functions.ends, lists, total, *map(np.uint64, (onset, goal.care, goal.keep, goal.flip))
    )
    if chosen >= 0:
        yield make_decomposed(
            "iff", (*_members(search, lists, chosen), search.listed_function(last)), size, search.full
        )
    for index in lists.first + np.flatnonzero(remaining_sizes > functions.max_size):
        all_ones = int(lists.all_ones[index])
        all_zeros = int(lists.all_zeros[index]) & search.full
        agreed = all_ones | all_zeros
        # `iff` is 1 where all arguments agree: on the onset the last one has to equal the others, which agree there; on
        # the offset it has to differ where the others agree; where they disagree the result is 0 whatever it is
        remaining_goal = Goal(
            onset | (offset & agreed),
            (onset & all_ones) | (offset & all_zeros),
            goal.keep & agreed,
            goal.flip ^ (goal.keep & all_zeros),
        )
        part = search.find_smallest(remaining_goal, total - int(lists.cost[index]))
        if part is not None:
            yield make_decomposed("iff", (*_members(search, lists, int(index)), part), size, search.full)


def _remainders(
    search: Decomposition, total: int, operator: str
) -> Iterator[tuple[int, Callable[[Goal], Part | None]]]:
    """Yield (list cost of a first argument, search for the others): one unlisted argument, or two parts again."""
    max_listed = search.functions.max_size
    for cost in range(1, total - max_listed):
        yield cost, partial(search.find_smallest, size=total - cost)
    # otherwise pairs of listed functions suffice: 2 (n - t) < t, see the module's head
    if operator in LISTING and 2 * (total - max_listed) >= max_listed:
        # the smallest of three or more arguments costs at most a third
        for cost in range(1, total // 3 + 1):
            yield cost, partial(search.split_with_root, size=total - cost + 1, operator=operator)


def _members(search: Decomposition, lists: Lists, index: int) -> Iterator[Listed]:
    """Yield the arguments of a list, the last first."""
    while index >= 0:
        yield search.listed_function(int(lists.member[index]))
        index = int(lists.parent[index])


def _count_pairs(starts: I64, total: int) -> int:
    """Count the pairs of candidates of that total list cost; where both have the same cost, each pair twice."""
    counts = np.diff(starts)
    return sum(int(counts[cost] * counts[total - cost]) for cost in range(1, total // 2 + 1))


def _count_list_pairs(ends: I64, total: int) -> int:
    """Count the pairs of arguments with which an `iff` of three or more could begin."""
    largest = len(ends) - 1
    layers = [(size, int(ends[size] - ends[size - 1])) for size in range(1, min(total // 3, largest) + 1)]
    return sum(count * int(ends[min((total - size) // 2, largest)]) for size, count in layers)


# --- Reconstruction of formulas from functions by the tie rule: the formula depends on the function alone -------------


def formula_of_part(functions: Catalogue, part: Part, names: Sequence[str]) -> Formula:
    """Build the formula of a part; names[i] is variable i."""
    placed = {str(index): name for index, name in enumerate(names)}
    return rename(_formula(functions, part), placed.__getitem__)


def _formula(functions: Catalogue, part: Part) -> Formula:
    """Build the formula of a part, with the variables' numbers for names."""
    if isinstance(part, Listed):
        return _listed_formula(functions, part)
    arguments = [argument for inner in part.parts for argument in _flatten_arguments(functions, inner, part.operator)]
    arguments.sort(key=lambda argument: (argument.size, argument.bits))
    return apply(part.operator, [_formula(functions, argument) for argument in arguments])


def _flatten_arguments(functions: Catalogue, part: Part, operator: str) -> Iterator[Part]:
    """Yield the arguments that a part contributes to a node of that operator: and(and(a, b), c) is and(a, b, c)."""
    if operator in ROOTS and isinstance(part, Listed) and functions.rooted[part.position] & ROOTS[operator]:
        part = _split(functions, part, operator) or part
    if operator in ROOTS and isinstance(part, Decomposed) and part.operator == operator:
        for inner in part.parts:
            yield from _flatten_arguments(functions, inner, operator)
    else:
        yield part


@cache
def _listed_formula(functions: Catalogue, part: Listed) -> Formula:
    if part.size == 1:
        tables = [projection(index, functions.num_vars).bits for index in range(functions.num_vars)]
        return var(str(tables.index(part.bits)))
    operators = (
        name for name in functions.operators if name not in ROOTS or functions.rooted[part.position] & ROOTS[name]
    )
    # `rooted` tells which of and, or, xor can be the root; `not` and `iff` have no bit and are tried
    chosen = next(split for operator in operators if (split := _split(functions, part, operator)))
    return _formula(functions, chosen)


def _split(functions: Catalogue, part: Listed, operator: str) -> Decomposed | None:
    goal = exact_goal(part.bits, full_mask(functions.num_vars))
    return Decomposition(functions).split_with_root(goal, part.size, operator)


# --- Exact synthesis: a least formula that agrees with a partial truth table of up to 6 variables, proven least -------


class LeastSize:
    """Search for the least size of a formula that agrees with a table, one size at a time.

    lower_bound: proven: no smaller formula agrees; the least size once `size` is not None
    possible: False once it is proven that no formula of any size agrees
    """

    def __init__(self, partial: PartialTable, operators: Iterable[str] = STANDARD_OPERATORS) -> None:
        self.partial = partial
        self.lower_bound = 1
        self._functions = catalogue(partial.num_vars, operators)
        self.possible = partial.num_vars > 0 and may_be_expressible(partial, self._functions.operators)
        self._search = Decomposition(self._functions)
        self._part: Part | None = None

    @property
    def size(self) -> int | None:
        """Least size; None as long as it is unknown."""
        return None if self._part is None else self._part.size

    @property
    def decided(self) -> bool:
        """Whether the least size is known, or that there is none."""
        return self._part is not None or not self.possible

    @property
    def in_reach(self) -> bool:
        """Whether the next size can be searched: up to 24 for 5 variables, 20 for 6."""
        return self.lower_bound <= self._search.max_size

    def advance(self, budget: Budget | None = None) -> None:
        """Test the next size, at first all listed sizes at once; nothing changes if the budget runs out."""
        if self.decided or not self.in_reach:
            return
        self._search.budget = budget or Budget()
        try:
            # words are in the order of size: the first match of one scan decides all listed sizes
            if self.lower_bound == 1:
                self._look_up()
            else:
                self._search_size(self.lower_bound)
        except BudgetSpent:
            return
        finally:
            self._search.budget = Budget()

    def _look_up(self) -> None:
        functions, goal = self._functions, self._goal
        self._search.budget.spend(len(functions.words))
        care, value = np.uint64(goal.care), np.uint64(goal.value)
        position = find_first_match(functions.words, care, value, len(functions.words))
        if position >= 0:
            self._part = self._search.listed_function(position)
            self.lower_bound = self._part.size
        else:
            self.lower_bound = functions.max_size + 1
            # a complete catalogue holds every function that has a formula: no match is a proof
            self.possible = not functions.is_complete

    def _search_size(self, size: int) -> None:
        self._part = self._search.find_smallest(self._goal, size)
        self.lower_bound += self._part is None

    @property
    def _goal(self) -> Goal:
        return Goal(self.partial.care, self.partial.value, full_mask(self.partial.num_vars), 0)

    def formula(self, names: Sequence[str]) -> Formula:
        """Build the formula; names[i] is variable i of the table. `ValueError` before the size is known."""
        part = self._part
        if part is None:
            raise ValueError("the least size is not known yet")
        # the split that was found depends on the open rows; the formula must depend on the function alone
        if not isinstance(part, Listed):
            part = self._search.find_smallest(exact_goal(part.bits, full_mask(self.partial.num_vars)), part.size)
            assert part is not None
        formula = formula_of_part(self._functions, part, names)
        self._certify(formula, names)
        return formula

    def _certify(self, formula: Formula, names: Sequence[str]) -> None:
        """Assert by the reference that the formula agrees in every determined row, and that its size is `size`."""
        for row in range(num_rows(self.partial.num_vars)):
            if self.partial.care >> row & 1:
                value = evaluate(formula, {name: row >> index & 1 for index, name in enumerate(names)})
                assert value == self.partial.value >> row & 1, (str(formula), self.partial)
        assert formula.size == self.size, (str(formula), self.size)


def least_formula(
    partial: PartialTable,
    names: Sequence[str],
    *,
    operators: Iterable[str] = STANDARD_OPERATORS,
    at_most: int | None = None,
    budget: Budget | None = None,
) -> Outcome[Formula]:
    """Return the formula of least size; `Impossible` if there is none (of at most `at_most` nodes), or `OutOfBudget`.

    names: names[i] is variable i of the table; `ValueError` if names are repeated or not as many as variables
    """
    if len(names) != partial.num_vars or len(set(names)) != len(names):
        raise ValueError(f"{len(names)} names {list(names)} for the {partial.num_vars} variables of a table")
    search = LeastSize(partial, operators)
    remaining_budget = budget or Budget()
    while not search.decided and search.in_reach and (at_most is None or search.lower_bound <= at_most):
        search.advance(remaining_budget)
        if remaining_budget.exhausted:
            break
    return _outcome(search, names, at_most)


def _outcome(search: LeastSize, names: Sequence[str], at_most: int | None) -> Outcome[Formula]:
    over = f"over {', '.join(names) or 'no variables'}"
    bound = search.lower_bound
    if not search.possible:
        return Impossible(f"no formula of any size {over} agrees with the table")
    if at_most is not None and bound > at_most:
        return Impossible(f"no formula of size <= {at_most} {over} agrees with the table")
    if search.size is None:
        return OutOfBudget(f"no formula of size < {bound} {over} agrees with the table", bound)
    return Found(search.formula(names))


# --- Formulas by look-up: of least size where a catalogue lists the function, of any function by Shannon expansion ----

MAX_SIZE_OF_FOUR = 15  # no function of up to four variables needs a larger formula of the standard operators
NOT_EXPRESSIBLE = 255  # larger than any least size: 47 is the largest, for `not` and `and`


def least_sizes(operators: Iterable[str] = STANDARD_OPERATORS) -> npt.NDArray[np.uint8]:
    """Return the least size of each function of 4 variables, by table bits; NOT_EXPRESSIBLE without one; [65536]."""
    functions = catalogue(4, operators)
    sizes = np.full(1 << num_rows(4), NOT_EXPRESSIBLE, np.uint8)
    sizes[functions.words] = functions.sizes
    return sizes


def formula_of(bits: int, names: Sequence[str], *, operators: Iterable[str] = STANDARD_OPERATORS) -> Formula:
    """Return the formula of least size of the function with that table, by the module's rule for ties.

    names: one to six; names[i] is variable i. `TableError` if the function has no formula, or, over five and six
    names, only formulas larger than those of the catalogue; `least_formula` has these too.
    """
    functions = catalogue(len(names), operators)
    position = functions.position(bits)
    if position is None:
        over = f"{', '.join(functions.operators) or 'no operators'} of size <= {functions.max_size}"
        raise TableError(f"{bits:#x} over {len(names)} variables has no formula over {over}")
    return _formula_at(functions, bits, position, names)


def _formula_at(functions: Catalogue, bits: int, position: int, names: Sequence[str]) -> Formula:
    return formula_of_part(functions, Listed(bits, int(functions.sizes[position]), position), names)


def formula_for(table: TruthTable, names: Sequence[str], operators: tuple[str, ...]) -> Formula:
    """Return a formula over `names`; names[i] is variable i. A constant without variables mentions names[0].

    It is of least size for every function of up to four variables, and for small ones of five and six. The others need
    `not`, `and`, `or`; `ValueError` if there is no formula.
    """
    if table.num_vars == 0:
        return formula_for(constant_table(bool(table.bits), 1), names, operators)
    functions = catalogue(table.num_vars, operators)
    position = functions.position(table.bits)
    if position is not None:
        return _formula_at(functions, table.bits, position, names)
    if functions.is_complete or not {"not", "and", "or"}.issubset(operators):
        raise ValueError(f"no formula over {', '.join(operators)} for {table.hex}")
    # Shannon expansion on the last variable: x f1 + not x f0, with the cofactors over one variable less
    top = table.num_vars - 1
    other_variables = range(top)
    low, high = (
        formula_for(select(cofactor(table, top, value), other_variables), names[:top], operators)
        for value in (False, True)
    )
    chosen = var(names[top])
    return apply("or", [apply("and", [chosen, high]), apply("and", [apply("not", [chosen]), low])])


def _write_shipped() -> None:
    for num_vars, name in SHIPPED.items():
        functions = build_catalogue(num_vars, STANDARD_OPERATORS, max_size=MAX_SIZES.get(num_vars))
        (Path(__file__).parent / name).write_bytes(pack_orbits(functions.layers(), num_vars))


if __name__ == "__main__":
    _write_shipped()
