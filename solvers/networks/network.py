"""Boolean networks read from files, with what is computed from them: wide functions, fixed points, attractors, cuts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from calibrant.dsl.errors import short_repr
from calibrant.dsl.formulas.formula import Apply
from calibrant.dsl.networks.formulas import (
    COMPARISONS,
    Count,
    Function,
    NetworkError,
    Node,
    Nodes,
    cover,
    evaluate,
    formula_of,
    mentioned_names,
    restrict,
    table_bits,
)
from calibrant.dsl.networks.network import Difference, Network, derive_fields, read_file, read_rules
from calibrant.dsl.text import nearest_hint
from calibrant.solvers.networks.cut import Cut, cut_network
from calibrant.solvers.outcome import Budget, BudgetSpent, Found, OutOfBudget
from calibrant.solvers.sat import Cnf, Conflicts

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


# --- Functions of more inputs than a truth table has: essential inputs, signs, differences and clauses through SAT ----
MAX_CONFLICTS = 10_000  # SAT conflicts for one file or one comparison; the widest published formula takes under 1,000
MAX_CLAUSES = 1_000_000  # clauses of one encoding
MAX_VISITS = (
    50_000_000  # clauses visited for one file: each name takes two SAT calls, and each call visits every clause
)


class Encoding:
    """Formulas as clauses (G. Tseitin, 1968); equal conjunctions are encoded once."""

    def __init__(self) -> None:
        self.cnf = Cnf()
        self._variables: dict[tuple[str, tuple[int, ...]], int] = {}
        self.true = self.cnf.variable("true")
        self.cnf.add(self.true)

    def formula(self, nodes: Nodes, literals: Mapping[str, int]) -> int:
        """Return a literal that is equivalent to a formula.

        literals: name -> the literal that stands for it
        """
        stack: list[int] = []
        for node in nodes:
            if isinstance(node, str):
                stack.append(literals[node])
            elif isinstance(node, bool):
                stack.append(self.true if node else -self.true)
            else:
                arguments = stack[len(stack) - node.arity :]
                del stack[len(stack) - node.arity :]
                stack.append(self._apply(node, arguments))
        (literal,) = stack
        return literal

    def _apply(self, node: Node, arguments: Sequence[int]) -> int:
        if isinstance(node, Count):
            return self._count(node, arguments)
        assert not isinstance(node, str | bool)
        if node.operator == "not":
            return -arguments[0]
        first, second = arguments
        if node.operator == "and":
            return self.conjunction(first, second)
        if node.operator == "or":
            return -self.conjunction(-first, -second)
        parity = self.parity(first, second)
        return parity if node.operator == "xor" else -parity

    def conjunction(self, first: int, second: int) -> int:
        """Return a literal that is true exactly if both are."""
        if first == -second or -self.true in (first, second):
            return -self.true
        if first in (second, self.true):
            return second
        if second == self.true:
            return first
        key = ("and", (min(first, second), max(first, second)))
        if key not in self._variables:
            if len(self.cnf.clauses) > MAX_CLAUSES:
                problem = f"functions beyond a table take over {MAX_CLAUSES:,} clauses; write them shorter"
                raise NetworkError(problem, reason="wide")
            literal = self._variables[key] = self.cnf.variable("and")
            self.cnf.add(-literal, first)
            self.cnf.add(-literal, second)
            self.cnf.add(literal, -first, -second)
        return self._variables[key]

    def parity(self, first: int, second: int) -> int:
        """Return a literal that is true exactly if one of two is and the other is not."""
        either = -self.conjunction(-first, -second)
        return self.conjunction(either, -self.conjunction(first, second))

    def _count(self, node: Count, arguments: Sequence[int]) -> int:
        """Return a literal for a count, by a sequential counter: exactly[k] holds if k arguments so far do."""
        exactly = [self.true]
        for argument in arguments:
            with_argument = [-self.true, *(self.conjunction(literal, argument) for literal in exactly)]
            without_argument = [*(self.conjunction(literal, -argument) for literal in exactly), -self.true]
            exactly = [self.disjunction(a, b) for a, b in zip(with_argument, without_argument, strict=True)]
        result = -self.true
        for index, literal in enumerate(exactly):
            if COMPARISONS[node.comparison](index, node.number):
                result = self.disjunction(result, literal)
        return result

    def disjunction(self, first: int, second: int) -> int:
        """Return a literal that is true exactly if at least one of two is."""
        return -self.conjunction(-first, -second)

    def equate(self, literal: int, function: Function, literals: Mapping[str, int]) -> None:
        """Add clauses by which a literal has the value of a function; one with a table needs no further variables."""
        if function.table is None:
            value = self.formula(function.nodes, literals)
            self.cnf.add(-literal, value)
            self.cnf.add(literal, -value)
            return
        names, bits = function.inputs, function.bits
        all_rows = (1 << (1 << len(names))) - 1
        for table, head in ((bits, literal), (bits ^ all_rows, -literal)):
            for cube in cover(table, len(names)):
                self.cnf.add(head, *(-literals[names[i]] if value else literals[names[i]] for i, value in cube))


class SignProver:
    """Prover of essential inputs and signs of the wide functions of one file, which share a budget."""

    def __init__(self) -> None:
        self._conflicts = Budget(MAX_CONFLICTS)
        self._visits = 0

    def prove(self, nodes: Nodes, names: Sequence[str]) -> dict[str, str]:
        """Return the essential inputs of a formula with their signs: +, - or both.

        Raise `NetworkError` if the formulas of the file take more than the budget.
        """
        read_once = signs_of_read_once(nodes)
        return read_once if read_once is not None else self._search(nodes, names)

    def _search(self, nodes: Nodes, names: Sequence[str]) -> dict[str, str]:
        """Return what `prove` does, by two SAT calls for each name: does raising it raise or lower the value."""
        encoding = Encoding()
        cnf = encoding.cnf
        low = {name: cnf.variable(name) for name in names}
        high = {name: cnf.variable(f"{name} raised") for name in names}
        equal = {name: cnf.variable(f"{name} equal") for name in names}
        for name in names:
            cnf.add(-equal[name], -low[name], high[name])
            cnf.add(-equal[name], low[name], -high[name])
        before, after = encoding.formula(nodes, low), encoding.formula(nodes, high)
        self._visits += 2 * len(names) * len(cnf.clauses)
        if self._visits > MAX_VISITS:
            problem = (
                f"which of {len(names)} names a formula depends on takes over {MAX_VISITS:,} steps; write it shorter"
            )
            raise NetworkError(problem, reason="wide", name=names[0])
        signs = {}
        solver = Conflicts(cnf, self._conflicts)
        try:
            for name in names:
                others = [equal[source] for source in names if source != name]
                rises, falls = (
                    solver.solver.solve_limited([*others, -low[name], high[name], -sign * before, sign * after])
                    for sign in (1, -1)
                )
                if rises or falls:
                    signs[name] = "both" if rises and falls else "+" if rises else "-"
        except BudgetSpent:
            problem = f"which of {len(names)} names a formula depends on takes over {MAX_CONFLICTS:,} conflicts"
            raise NetworkError(problem, reason="wide", name=names[0]) from None
        finally:
            solver.close()
        return signs


def prove_signs(nodes: Nodes, names: Sequence[str]) -> dict[str, str]:
    """Return the essential inputs of one formula with their signs, see `SignProver`."""
    return SignProver().prove(nodes, names)


def signs_of_read_once(nodes: Nodes) -> dict[str, str] | None:
    """Return the signs of a formula in which each name occurs once; None if a name repeats or something is constant.

    Arguments that share no name take every combination of values, so each operator depends on all its arguments.
    """
    signs: dict[str, str] = {}
    waiting = ["+"]
    for node in reversed(nodes):
        sign = waiting.pop()
        if isinstance(node, str) and node not in signs:
            signs[node] = sign
        elif isinstance(node, str | bool) or not (argument_sign := _argument_sign(node)):
            return None
        else:
            combined = "both" if "both" in (sign, argument_sign) else "+" if sign == argument_sign else "-"
            waiting.extend([combined] * node.arity)
    return dict(sorted(signs.items()))


def _argument_sign(node: Apply | Count) -> str:
    """Return the sign of each argument of an operator; "" for a count that is constant."""
    if isinstance(node, Apply):
        return {"not": "-", "and": "+", "or": "+"}.get(node.operator, "both")
    values = [COMPARISONS[node.comparison](num_true, node.number) for num_true in (0, node.arity)]
    if node.comparison == "=":
        is_inner = 0 < node.number < node.arity
        return "both" if is_inner else "-" if values[0] else "+" if values[1] else ""
    return "" if values[0] == values[1] else "+" if values[1] else "-"


def find_difference(first: Function, second: Function) -> dict[str, int] | None:
    """Return the first row in which two functions differ, as name -> value; None if they are equal.

    Raise `NetworkError` if that takes more than MAX_CONFLICTS conflicts.
    """
    encoding = Encoding()
    names = sorted({*first.inputs, *second.inputs})
    mentioned = {node for function in (first, second) for node in function.nodes if isinstance(node, str)}
    literals = {name: encoding.cnf.variable(name) for name in sorted({*names, *mentioned})}
    values = []
    for function in (first, second):
        value = encoding.cnf.variable("value")
        encoding.equate(value, function, literals)
        values.append(value)
    encoding.cnf.add(*values)
    encoding.cnf.add(*(-value for value in values))
    solver = Conflicts(encoding.cnf, Budget(MAX_CONFLICTS))
    try:
        row: list[int] = []
        if not solver.solver.solve_limited(row):
            return None
        for name in reversed(names):  # the last input is the highest bit of a row's number
            row.append(-literals[name] if solver.solver.solve_limited([*row, -literals[name]]) else literals[name])
    except BudgetSpent:
        problem = f"whether two functions of {len(names)} inputs differ takes over {MAX_CONFLICTS:,} conflicts"
        raise NetworkError(problem, reason="wide", name=names[0]) from None
    finally:
        solver.close()
    return {name: int(literals[name] in row) for name in names}


# --- Synchronous dynamics of a Boolean network: fixed points, and attractors with their basins ------------------------
MAX_FREE_NODES = 20
"""Largest number of nodes that are not clamped for which all states are enumerated."""
MAX_FIXED_POINTS = 10_000  # fixed points that are returned
MAX_STATE_CONFLICTS = 2_000_000  # SAT conflicts of one search for fixed points


class Attractor(NamedTuple):
    """A cycle of states.

    period: number of its states; basin: number of states that lead to it, its own included
    state: the least of its states; one character for each node, nodes in code point order
    """

    period: int
    basin: int
    state: str


@dataclass(frozen=True)
class FixedPoints:
    """States that the update leaves as they are.

    states: sorted; one character for each node, nodes in code point order
    is_complete: whether these are all; False if there are more than the limit of the search
    """

    states: tuple[str, ...]
    is_complete: bool = True


def check_clamps(network: Network, clamps: Mapping[str, int]) -> None:
    """Raise `NetworkError` if functions are missing, a clamp names no node, or its value is neither 0 nor 1."""
    network.require_functions()
    for name, value in clamps.items():
        if name not in network.nodes:
            problem = f"clamp of {short_repr(name)}, which is no node{nearest_hint(name, network.nodes)}"
            raise NetworkError(problem, reason="unknown-name", name=name)
        if value not in (0, 1):
            raise NetworkError(f"clamp {short_repr(name)} = {short_repr(value)}; 0 or 1", reason="value", name=name)


def find_attractors(
    network: Network, clamps: Mapping[str, int] | None = None
) -> Found[tuple[Attractor, ...]] | OutOfBudget:
    """Return all attractors, sorted by period, then state.

    `OutOfBudget` if more than MAX_FREE_NODES nodes are not clamped
    """
    import numpy as np

    clamps = clamps or {}
    check_clamps(network, clamps)
    free = [name for name in network.nodes if name not in clamps]
    if len(free) > MAX_FREE_NODES:
        return OutOfBudget(f"{len(free)} free nodes; attractors are counted to {MAX_FREE_NODES}")
    step = _successors(network, clamps, free)
    recurrent = _reached_states(step, len(free))
    cyclic = np.unique(recurrent)
    fixed = cyclic[step[cyclic] == cyclic]
    representative = np.full(len(step), -1, dtype=np.int64)
    representative[fixed] = fixed
    periods = dict.fromkeys(fixed.tolist(), 1)
    for state in cyclic[step[cyclic] != cyclic].tolist():  # ascending: the least state of a cycle comes first
        if representative[state] >= 0:
            continue
        member, period = state, 0
        while representative[member] < 0:
            representative[member] = state
            member, period = int(step[member]), period + 1
        periods[state] = period
    basins = np.bincount(representative[recurrent], minlength=len(step)).tolist()
    text = _StateText(network.nodes, clamps, free)
    cycles = (Attractor(periods[state], basins[state], text(state)) for state in sorted(periods))
    return Found(tuple(sorted(cycles, key=lambda attractor: attractor.period)))  # states of a period stay in order


def _reached_states(step: npt.NDArray[np.int64], num_free: int) -> npt.NDArray[np.int64]:
    """Return, for each state, the state 2**num_free steps later, which lies on its attractor.

    Every state of every attractor occurs among them.
    """
    for _ in range(num_free):
        step = step[step]
    return step


def find_recurrent_values(network: Network, clamps: Mapping[str, int], max_free: int) -> dict[str, str] | None:
    """Return the values that each node has in states of attractors: 0, 1 or 01.

    None if more than `max_free` nodes are not clamped, or a function of one of them has no table
    """
    import numpy as np

    check_clamps(network, clamps)
    free = [name for name in network.nodes if name not in clamps]
    if len(free) > max_free or any(network.function(name).table is None for name in free):
        return None
    states = np.unique(_reached_states(_successors(network, clamps, free), len(free)))
    bits = {name: states >> (len(free) - 1 - i) & 1 for i, name in enumerate(free)}
    values = {name: "".join(map(str, np.unique(column).tolist())) for name, column in bits.items()}
    return values | {name: str(value) for name, value in clamps.items()}


class _StateText:
    """Converts state numbers to texts; the first free node is the highest bit, so numbers sort as their texts do."""

    def __init__(self, nodes: Sequence[str], clamps: Mapping[str, int], free: Sequence[str]) -> None:
        self._form = f"0{len(free)}b"
        self._num_free = len(free)
        self._places = [(place, str(clamps[name])) for place, name in enumerate(nodes) if name in clamps]

    def __call__(self, state: int) -> str:
        text = format(state, self._form) if self._num_free else ""
        for place, value in self._places:
            text = text[:place] + value + text[place:]
        return text


def _successors(network: Network, clamps: Mapping[str, int], free: Sequence[str]) -> npt.NDArray[np.int64]:
    """Return the next state of each state; bits of a state number are the free nodes, the first the highest."""
    import numpy as np

    states = np.arange(1 << len(free), dtype=np.int64)
    columns = {name: (states >> (len(free) - 1 - i) & 1).astype(np.uint32) for i, name in enumerate(free)}
    successors = np.zeros_like(states)
    for position, name in enumerate(free):
        function = network.function(name)
        inputs, text = _free_inputs(function, clamps)
        rows = np.zeros(len(states), dtype=np.uint32)
        for i, source in enumerate(inputs):
            rows |= columns[source] << np.uint32(i)
        table = np.frombuffer(text.encode(), dtype=np.uint8) - ord("0")
        successors |= table[rows].astype(np.int64) << (len(free) - 1 - position)
    return successors


def _free_inputs(function: Function, clamps: Mapping[str, int]) -> tuple[Sequence[str], str]:
    """Return the inputs that are not clamped, at most MAX_FREE_NODES, and the table over them."""
    if function.table is not None:
        free = restrict(function, clamps)
        return free.inputs, free.table or ""
    inputs = [name for name in function.inputs if name not in clamps]
    values = {name: bool(value) for name, value in clamps.items()}
    nodes = tuple(values.get(node, node) if isinstance(node, str) else node for node in formula_of(function))
    return inputs, format(table_bits(nodes, inputs), f"0{1 << len(inputs)}b")[::-1]


def find_fixed_points(
    network: Network, clamps: Mapping[str, int] | None = None, limit: int = MAX_FIXED_POINTS
) -> Found[FixedPoints] | OutOfBudget:
    """Return up to `limit` fixed points, found by SAT, so that the number of nodes has no bound.

    `OutOfBudget` if that takes more than MAX_STATE_CONFLICTS conflicts
    """
    clamps = clamps or {}
    check_clamps(network, clamps)
    encoding = Encoding()
    literals = {name: encoding.cnf.variable(name) for name in network.nodes}
    for name in network.nodes:
        if name in clamps:
            encoding.cnf.add(literals[name] if clamps[name] else -literals[name])
        else:
            _demand_fixed(encoding, name, network.functions.get(name), literals)
    solver = Conflicts(encoding.cnf, Budget(MAX_STATE_CONFLICTS))
    states: list[str] = []
    try:
        while len(states) <= limit and (model := solver.model()) is not None:
            present = [model[literals[name] - 1] > 0 for name in network.nodes]
            states.append("".join("1" if value else "0" for value in present))
            solver.add(
                [-literals[n] if value else literals[n] for n, value in zip(network.nodes, present, strict=True)]
            )
    except BudgetSpent:
        return OutOfBudget(f"{len(states)} fixed points within {MAX_STATE_CONFLICTS:,} conflicts; there may be more")
    finally:
        solver.close()
    return Found(FixedPoints(tuple(sorted(states)[:limit]), len(states) <= limit))


def _demand_fixed(encoding: Encoding, name: str, function: Function | None, literals: Mapping[str, int]) -> None:
    """Add clauses by which a node keeps its value; none if it has no function or its function copies it."""
    if function is not None and not function.is_identity(name):
        encoding.equate(literals[name], function, literals)


class BooleanNetwork(Network):
    """A network that was read from a published file; docs/networks.md has an example of each method."""

    def fixed_points(self, clamps: Mapping[str, int] | None = None) -> Found[FixedPoints] | OutOfBudget:
        """Return the states that the synchronous update leaves as they are.

        clamps: nodes that are held at 0 or 1
        """
        return find_fixed_points(self, clamps)

    def attractors(self, clamps: Mapping[str, int] | None = None) -> Found[tuple[Attractor, ...]] | OutOfBudget:
        """Return all attractors of the synchronous update with their basins.

        clamps: nodes that are held at 0 or 1; at most MAX_FREE_NODES others
        """
        return find_attractors(self, clamps)

    def cut(self, endogenous: Iterable[str] | None = None) -> Cut:
        """Return an acyclic part of the network.

        endogenous: its nodes; None for all but the inputs and a least feedback set
        """
        return cut_network(self, endogenous)

    def _search_difference(self, name: str, first: Function, second: Function) -> Difference | None:
        row = find_difference(first, second)
        if row is None:
            return None
        values = [_value(function, row) for function in (first, second)]
        return Difference(name, row, values[0], values[1])


def _value(function: Function, row: Mapping[str, int]) -> int:
    """Return the value of a function in a row of its essential inputs; names outside the row have no effect."""
    if function.table is not None:
        return function.value(row)
    return evaluate(function.nodes, {name: row.get(name, 0) for name in mentioned_names(function.nodes)}, 1)


def read_network(path: Path | str, format: str | None = None, names: str = "id") -> BooleanNetwork:  # noqa: A002  # the published name
    """Return the network of a file; a `NetworkError` names the line at fault and the format that the file looks like.

    format: bnet, booleannet, rules, aeon, sbml-qual, ginml or zginml; None to tell it by content and ending of the file
    names: `id`, or `name` to call nodes by the names of SBML species
    """
    path = Path(path)
    return parse_network(read_file(path), path.name, format, names)


def parse_network(content: bytes, file: str = "", chosen: str | None = None, names: str = "id") -> BooleanNetwork:
    """Return the network of the bytes of a file, see `read_network`."""
    rules = read_rules(content, file, chosen, names)
    try:
        return BooleanNetwork(**derive_fields(rules, SignProver().prove), file=file)
    except NetworkError as error:
        raise error.with_location(file=file) from None
