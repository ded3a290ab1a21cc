"""Members of a version space one by one, by SAT: parent sets as hitting sets, a CNF of the space, blocked members.

Independent of the kernels that count: rows are compared pairwise, and the sets that hit every difference are listed by
branching on an unhit difference. The work grows with the number of solutions, not of subsets.

A model of the clauses is a member: every endogenous variable selects exactly one parent set that its rows allow, its
truth table agrees with the rows and depends on every selected parent, and the parents form no cycle. Nothing of the
counting by subsets is imported. Two models are the same member iff they have the same roots and local functions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from calibrant.dsl.formulas.table import PartialTable, TruthTable, num_rows
from calibrant.dsl.replayscm.item import Task
from calibrant.dsl.replayscm.scm import LocalFunction
from calibrant.dsl.replayscm.world import Panel
from calibrant.solvers.acyclic.least import Mask, components
from calibrant.solvers.outcome import Budget
from calibrant.solvers.replayscm.roots_and_parents import nested_variables
from calibrant.solvers.replayscm.space import ModelClass
from calibrant.solvers.sat import Arc, Clause, Cnf, Conflicts, Literal, add_at_most_one, add_exactly, add_linear_order

# --- Parent sets as hitting sets: two rows that differ in a variable must differ in one of its parents ----------------


@dataclass(frozen=True, slots=True)
class ScoredRows:
    """Distinct rows in which one variable is scored, over its candidate parents.

    candidates: variable indices, ascending
    patterns: the candidates' values, bit i for candidates[i]; a pattern with both values of the variable occurs twice
    values: the variable's value in each
    """

    candidates: tuple[int, ...]
    patterns: tuple[int, ...]
    values: tuple[bool, ...]

    def differences(self) -> list[Mask]:
        """Return the minimal sets of positions of which every parent set must contain at least one member."""
        ones = [p for p, value in zip(self.patterns, self.values, strict=True) if value]
        zeros = [p for p, value in zip(self.patterns, self.values, strict=True) if not value]
        # ascending by size: a set that hits a difference hits its supersets, so only minimal ones need a branch
        minimal: list[Mask] = []
        for mask in sorted(
            {pattern ^ other_pattern for pattern in ones for other_pattern in zeros}, key=lambda m: (m.bit_count(), m)
        ):
            if all(smaller & ~mask for smaller in minimal):
                minimal.append(mask)
        return minimal

    def table(self, positions: Sequence[int]) -> PartialTable:
        """Return the partial table over these candidates; variable i of the table is the i-th of them."""
        care = value = 0
        for pattern, bit in zip(self.patterns, self.values, strict=True):
            row = sum((pattern >> position & 1) << i for i, position in enumerate(positions))
            care |= 1 << row
            value |= bit << row
        return PartialTable(len(positions), care, value)


def scored_rows(panel: Panel, target: str, candidates: Collection[str]) -> ScoredRows:
    """Return the rows of a panel in which the target is not intervened on."""
    indices = [i for i, variable in enumerate(panel.variables) if variable in candidates]
    columns = [panel.columns[panel.variables[i]] for i in indices]
    rows = {
        (sum((column >> r & 1) << i for i, column in enumerate(columns)), bool(panel.columns[target] >> r & 1))
        for r in range(panel.num_rows)
        if not panel.clamped[target] >> r & 1
    }
    ordered = sorted(rows)
    return ScoredRows(tuple(indices), tuple(p for p, _ in ordered), tuple(value for _, value in ordered))


def list_hitting_sets(masks: Sequence[Mask], num_candidates: int, max_size: int) -> Iterator[tuple[int, ...]]:
    """List every set of at most `max_size` positions that hits all masks, each exactly once, members ascending."""

    def extend(chosen: Mask, excluded: Mask) -> Iterator[Mask]:
        num_addable = max_size - chosen.bit_count()
        open_mask = next((mask for mask in masks if not mask & chosen), None)
        if open_mask is None:
            # all differences are hit: every addition is a solution, and listing them is the rest of the work
            free = [i for i in range(num_candidates) if not (chosen | excluded) >> i & 1]
            for size in range(min(num_addable, len(free)) + 1):
                yield from (chosen | sum(1 << i for i in added) for added in combinations(free, size))
            return
        branching = open_mask & ~excluded if num_addable > 0 else 0
        while branching:
            bit = branching & -branching
            yield from extend(chosen | bit, excluded)
            # sets with this element are listed; excluding it makes every set come up in one branch alone
            branching, excluded = branching ^ bit, excluded | bit

    for chosen in extend(0, 0):
        yield tuple(i for i in range(num_candidates) if chosen >> i & 1)


# --- CNF encoding of the version space: a selector per parent set, truth tables, root selectors, acyclicity -----------


@dataclass(slots=True)
class MechanismLiterals:
    """The literals of one variable.

    selectors: parent set (names, natural order) -> the literal that selects it
    tables: parent set -> what the rows say of functions of it
    rows: literal of each row of the truth table over the selected set; as many as the largest set needs
    differs: (i, r) -> literal implying that rows r and r with bit i set differ
    """

    variable: str
    selectors: dict[tuple[str, ...], Literal] = field(default_factory=dict)
    tables: dict[tuple[str, ...], PartialTable] = field(default_factory=dict)
    rows: list[Literal] = field(default_factory=list)
    differs: dict[tuple[int, int], Literal] = field(default_factory=dict)


class Encoding:
    """The clauses of one task and class, and how to read their models.

    roots: variable -> the literal "is a root", where that is not disclosed
    """

    def __init__(self, task: Task, model_class: ModelClass) -> None:
        if model_class.max_size is not None:
            raise ValueError("the CNF is for classes without a cap on formula size")
        self.task = task
        self.model_class = model_class
        self.cnf = Cnf()
        self.mechanisms: dict[str, MechanismLiterals] = {}
        self.roots: dict[str, Literal] = {}

    def functions(self, model: Sequence[Literal]) -> dict[str, LocalFunction]:
        """Decode the local functions of a model (model[v - 1] is v or -v); variables without one are roots."""
        functions = {}
        for variable, mechanism in self.mechanisms.items():
            for parents, selector in mechanism.selectors.items():
                if model[selector - 1] > 0:
                    bits = sum((model[mechanism.rows[r] - 1] > 0) << r for r in range(num_rows(len(parents))))
                    functions[variable] = LocalFunction(parents, TruthTable(len(parents), bits))
        return functions

    def blocking(self, functions: Mapping[str, LocalFunction]) -> Clause | None:
        """Return the clause "not exactly these local functions"; None if they are no member's."""
        # selectors, root literals and open rows alone: rows that the evidence fixes are implied
        clause = [-literal for v, literal in self.roots.items() if v not in functions]
        for variable, local in functions.items():
            mechanism = self.mechanisms.get(variable)
            table = mechanism.tables.get(local.parents) if mechanism else None
            if mechanism is None or table is None or not table.agrees(local.table):
                return None
            clause.append(-mechanism.selectors[local.parents])
            still_open = (r for r in range(num_rows(table.num_vars)) if not table.care >> r & 1)
            clause += (-mechanism.rows[r] if local.table[r] else mechanism.rows[r] for r in still_open)
        return clause


# --- encoding ---------------------------------------------------------------------------------------------------------


def encode_members(task: Task, model_class: ModelClass) -> Encoding:
    """Encode "there is a member" as CNF."""
    encoding = Encoding(task, model_class)
    _add_roots(encoding)
    for variable in task.disclosure.endogenous:
        encoding.mechanisms[variable] = _mechanism(encoding, variable)
    _forbid_cycles(encoding)
    return encoding


def _add_roots(encoding: Encoding) -> None:
    """Demand exactly the disclosed number of roots, where they are hidden."""
    task = encoding.task
    if task.disclosure.roots is not None:
        return
    encoding.roots = {v: encoding.cnf.variable(f"{v} is a root") for v in task.variables}
    add_exactly(encoding.cnf, list(encoding.roots.values()), task.disclosure.num_roots, "roots")
    if encoding.model_class.nested_roots:
        able = nested_variables(task)
        for variable, literal in encoding.roots.items():
            if variable not in able:
                encoding.cnf.add(-literal)


def _mechanism(encoding: Encoding, variable: str) -> MechanismLiterals:
    """Demand exactly one parent set (or that the variable is a root), and a truth table that fits it."""
    task, cnf = encoding.task, encoding.cnf
    mechanism = MechanismLiterals(variable)
    rows = scored_rows(task.training, variable, task.disclosure.admissible_parents(variable))
    max_parents = min(encoding.model_class.max_parents, len(rows.candidates))
    for positions in list_hitting_sets(rows.differences(), len(rows.candidates), max_parents):
        parents = tuple(task.variables[rows.candidates[i]] for i in positions)
        mechanism.tables[parents] = rows.table(positions)
        mechanism.selectors[parents] = cnf.variable(f"{variable} <- {' '.join(parents)}")
    max_used_parents = max((len(parents) for parents in mechanism.tables), default=0)
    mechanism.rows = [cnf.variable(f"{variable} in row {r}") for r in range(num_rows(max_used_parents))]
    alternatives = [encoding.roots[variable]] if variable in encoding.roots else []
    alternatives += mechanism.selectors.values()
    cnf.add(*alternatives)
    add_at_most_one(cnf, alternatives, f"{variable} <-")
    for parents in mechanism.selectors:
        _fit(cnf, mechanism, parents)
    return mechanism


def _fit(cnf: Cnf, mechanism: MechanismLiterals, parents: tuple[str, ...]) -> None:
    """Demand that a selected set has the observed values, and that the function depends on each of its parents."""
    selector, table = mechanism.selectors[parents], mechanism.tables[parents]
    for r in range(num_rows(table.num_vars)):
        if table.care >> r & 1:
            cnf.add(-selector, mechanism.rows[r] if table.value >> r & 1 else -mechanism.rows[r])
    for i in range(table.num_vars):
        lows = [r for r in range(num_rows(table.num_vars)) if not r >> i & 1]
        observed_pairs = [r for r in lows if table.care >> r & 1 and table.care >> (r | 1 << i) & 1]
        if any((table.value >> r ^ table.value >> (r | 1 << i)) & 1 for r in observed_pairs):
            continue  # two observed rows prove the dependence
        cnf.add(-selector, *(_differs(cnf, mechanism, i, r) for r in lows if r not in observed_pairs))


def _differs(cnf: Cnf, mechanism: MechanismLiterals, i: int, r: int) -> Literal:
    if (i, r) not in mechanism.differs:
        low, high = mechanism.rows[r], mechanism.rows[r | 1 << i]
        literal = cnf.variable(f"{mechanism.variable} in rows {r} and {r | 1 << i} differs")
        mechanism.differs[i, r] = literal
        cnf.add(-literal, low, high)
        cnf.add(-literal, -low, -high)
    return mechanism.differs[i, r]


def _forbid_cycles(encoding: Encoding) -> None:
    """Add a literal per arc that could close a cycle, equivalent to selecting a set with that parent; forbid cycles."""
    index = {variable: i for i, variable in enumerate(encoding.task.variables)}
    selecting: dict[Arc, list[Literal]] = {}
    for variable, mechanism in encoding.mechanisms.items():
        for parents, selector in mechanism.selectors.items():
            for parent in parents:
                if parent in encoding.mechanisms:
                    selecting.setdefault((index[parent], index[variable]), []).append(selector)
    component = components(selecting)
    arcs: dict[Arc, Literal] = {}
    for (u, v), selectors in selecting.items():
        if component[u] == component[v]:
            names = encoding.task.variables
            arcs[u, v] = encoding.cnf.variable(f"{names[u]} -> {names[v]}")
            encoding.cnf.add(-arcs[u, v], *selectors)
            for selector in selectors:
                encoding.cnf.add(-selector, arcs[u, v])
    # component by component: a constraint over all variables would have n**3 / 3 clauses for one order
    for number in sorted({component[u] for u, _ in arcs}):
        add_linear_order(encoding.cnf, {arc: literal for arc, literal in arcs.items() if component[arc[0]] == number})


# --- members: solve, read, block, solve again, in one incremental solver ----------------------------------------------


def sat_members(task: Task, model_class: ModelClass) -> Iterator[dict[str, LocalFunction]]:
    """List the members of a class as local functions by variable, roots without; the first is the solver's choice."""
    encoding = encode_members(task, model_class)
    search = Conflicts(encoding.cnf, Budget())
    try:
        while (model := search.model()) is not None:
            functions = encoding.functions(model)
            yield functions
            clause = encoding.blocking(functions)
            assert clause is not None  # it is a member
            search.add(clause)
    finally:
        search.close()
