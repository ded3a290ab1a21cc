"""Functions of more inputs than a truth table has: essential inputs, signs, differences and clauses through SAT."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from calibrant.dsl.formulas.formula import Apply
from calibrant.dsl.networks.formulas import COMPARISONS, Count, NetworkError, Node, Nodes
from calibrant.dsl.networks.functions import Function, cover
from calibrant.solvers.outcome import Budget, BudgetSpent
from calibrant.solvers.sat import Cnf, Conflicts

MAX_CONFLICTS = 10_000  # of one file or question; the widest published formula, 80 names, takes fewer than 1,000
MAX_CLAUSES = 1_000_000  # clauses of one encoding
MAX_VISITS = 50_000_000  # visits of clauses by the calls of one file: a name takes two calls, each visits every clause


class Encoding:
    """Formulas as clauses (G. Tseitin, 1968), equal subformulas once."""

    def __init__(self) -> None:
        self.cnf = Cnf()
        self._variables: dict[tuple[str, tuple[int, ...]], int] = {}
        self.true = self.cnf.variable("true")
        self.cnf.add(self.true)

    def formula(self, nodes: Nodes, literals: Mapping[str, int]) -> int:
        """Return a literal that is equivalent to a formula.

        literals: of each name
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
                stack.append(self._applied(node, arguments))
        (literal,) = stack
        return literal

    def _applied(self, node: Node, arguments: Sequence[int]) -> int:
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
        """Return a literal that is equivalent to both."""
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
        """Return a literal that is equivalent to exactly one of two."""
        either = -self.conjunction(-first, -second)
        return self.conjunction(either, -self.conjunction(first, second))

    def _count(self, node: Count, arguments: Sequence[int]) -> int:
        """Return a literal for a count, by a sequential counter: exactly[k] of the arguments so far."""
        exactly = [self.true]
        for argument in arguments:
            raised = [-self.true, *(self.conjunction(literal, argument) for literal in exactly)]
            stayed = [*(self.conjunction(literal, -argument) for literal in exactly), -self.true]
            exactly = [self.disjunction(a, b) for a, b in zip(raised, stayed, strict=True)]
        result = -self.true
        for number, literal in enumerate(exactly):
            if COMPARISONS[node.comparison](number, node.number):
                result = self.disjunction(result, literal)
        return result

    def disjunction(self, first: int, second: int) -> int:
        """Return a literal that is equivalent to one of two or both."""
        return -self.conjunction(-first, -second)

    def equate(self, literal: int, function: Function, literals: Mapping[str, int]) -> None:
        """Demand that a literal has the value of a function; a table gives clauses without further variables."""
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
    """Essential inputs and signs of the wide functions of one file, which share a budget."""

    def __init__(self) -> None:
        self._conflicts = Budget(MAX_CONFLICTS)
        self._visits = 0

    def prove(self, nodes: Nodes, names: Sequence[str]) -> dict[str, str]:
        """Return the essential inputs of a formula with their signs.

        `NetworkError` where the file's formulas take more than the budget
        """
        read_once = signs_of_read_once(nodes)
        return read_once if read_once is not None else self._search(nodes, names)

    def _search(self, nodes: Nodes, names: Sequence[str]) -> dict[str, str]:
        """Prove signs by SAT: one call a name and direction."""
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
    """Return the signs of a formula in which each name occurs once; None for another formula, or with constants.

    Arguments that share no name take all values together, so a function that is not constant depends on all of them.
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
    values = [COMPARISONS[node.comparison](number, node.number) for number in (0, node.arity)]
    if node.comparison == "=":
        is_inner = 0 < node.number < node.arity
        return "both" if is_inner else "-" if values[0] else "+" if values[1] else ""
    return "" if values[0] == values[1] else "+" if values[1] else "-"


def find_difference(first: Function, second: Function) -> dict[str, int] | None:
    """Return the first row in which two functions differ, None if they are equal."""
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
