"""Acyclic parts of a Boolean network: constants are substituted; inputs and a least feedback set become roots."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

from calibrant.dsl.errors import short_repr
from calibrant.dsl.networks.formulas import Function, NetworkError, require_table, restrict
from calibrant.dsl.networks.network import Network
from calibrant.dsl.text import nearest_hint
from calibrant.solvers.outcome import Budget, BudgetSpent
from calibrant.solvers.sat import Cnf, Conflicts, add_exactly

MAX_EXACT_NODES = 40
"""Largest number of nodes for which the feedback set is proven least."""
MAX_CONFLICTS = 500_000  # SAT conflicts of one search for a least feedback set

Dependencies = Mapping[str, Sequence[str]]
"""Target -> the nodes that it depends on."""


@dataclass(frozen=True)
class Cut:
    """An acyclic part of a network.

    constants: nodes whose value is constant, also through other constants; inputs: nodes that keep their value
    feedback: nodes without which the others have no cycle; None if the endogenous nodes were chosen by the caller
    roots: inputs of mechanisms that have no mechanism themselves; mechanisms: functions of the endogenous nodes
    is_least: whether no smaller feedback set exists; False if that is not proven
    """

    constants: Mapping[str, int]
    inputs: tuple[str, ...]
    feedback: tuple[str, ...] | None
    roots: tuple[str, ...]
    mechanisms: Mapping[str, Function]
    is_least: bool = True


def cut_network(network: Network, endogenous: Iterable[str] | None = None) -> Cut:
    """Return the cut of a network.

    endogenous: nodes that get mechanisms; None for all but the inputs and a feedback set
    Raise `NetworkError` if an endogenous node is unknown, they have a cycle, or a function has no table.
    """
    network.require_functions()
    functions, constants = propagate_constants(network)
    inputs = tuple(sorted(name for name, function in functions.items() if function.is_identity(name)))
    dependent = {name: function for name, function in functions.items() if name not in inputs}
    feedback: tuple[str, ...] | None = None
    is_least = True
    if endogenous is None:
        graph = {name: [s for s in function.inputs if s in dependent] for name, function in dependent.items()}
        feedback, is_least = least_feedback_set(graph)
        chosen = [name for name in dependent if name not in feedback]
    else:
        chosen = _check_window(network, functions, constants, [*endogenous])
    mechanisms = {name: functions[name] for name in sorted(chosen)}
    roots = {source for function in mechanisms.values() for source in function.inputs} - mechanisms.keys()
    return Cut(constants, inputs, feedback, tuple(sorted(roots)), mechanisms, is_least)


def propagate_constants(network: Network) -> tuple[dict[str, Function], dict[str, int]]:
    """Return the functions that are not constant, with constant inputs substituted, and the constant nodes."""
    functions = {name: network.function(name) for name in network.nodes}
    targets: dict[str, list[str]] = {}
    for name, function in functions.items():
        require_table(name, function)
        for source in function.inputs:
            targets.setdefault(source, []).append(name)
    constants: dict[str, int] = {}
    waiting = [name for name, function in functions.items() if not function.inputs]
    while waiting:
        constant = waiting.pop()
        if constant not in functions:
            continue
        value = constants[constant] = functions.pop(constant).bits
        for name in targets.get(constant, ()):
            if name in functions and constant in functions[name].inputs:
                functions[name] = restrict(functions[name], {constant: value})
                if not functions[name].inputs:
                    waiting.append(name)
    return functions, dict(sorted(constants.items()))


def _check_window(
    network: Network, functions: Mapping[str, Function], constants: Mapping[str, int], endogenous: Sequence[str]
) -> list[str]:
    """Return the chosen nodes that are not constant; `NetworkError` for an unknown node or a cycle among them."""
    for name in endogenous:
        if name not in network.nodes:
            problem = f"{short_repr(name)} is no node{nearest_hint(name, network.nodes)}"
            raise NetworkError(problem, reason="unknown-name", name=name)
    chosen = [name for name in dict.fromkeys(endogenous) if name not in constants]
    graph = {name: [source for source in functions[name].inputs if source in chosen] for name in chosen}
    cycle = find_cycle(graph)
    if cycle:
        raise NetworkError(f"the chosen nodes have a cycle: {' -> '.join(cycle)}", reason="cycle", name=cycle[0])
    return chosen


def find_cycle(graph: Dependencies) -> list[str]:
    """Return the nodes of a cycle in the order of edges; an empty list if there is no cycle."""
    looped = next((name for name, sources in graph.items() if name in sources), None)
    if looped is not None:
        return [looped]
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        cycle: list[str] = error.args[1]
        return cycle[:-1]
    return []


def _without(graph: Dependencies, removed: Iterable[str]) -> dict[str, list[str]]:
    """Return the graph without some nodes and their edges."""
    excluded = set(removed)
    return {name: [s for s in sources if s not in excluded] for name, sources in graph.items() if name not in excluded}


def _disjoint_cycles(graph: Dependencies, removed: Iterable[str]) -> list[list[str]]:
    """Return cycles that share no node and contain no removed node; no other cycle avoids all of their nodes."""
    remaining, cycles = _without(graph, removed), []
    while cycle := shortest_cycle(remaining):  # short cycles make strong clauses
        cycles.append(cycle)
        remaining = _without(remaining, cycle)
    return cycles


def shortest_cycle(graph: Dependencies) -> list[str]:
    """Return a shortest cycle through some node, in the order of edges; an empty list if there is no cycle."""
    cycle = find_cycle(graph)
    if len(cycle) < 2:
        return cycle
    start = cycle[0]
    origin: dict[str, str] = {}
    waiting = [start]
    for name in waiting:
        for source in graph.get(name, ()):
            if source == start:
                path = [name]
                while path[-1] != start:
                    path.append(origin[path[-1]])
                return path
            if source not in origin:
                origin[source] = name
                waiting.append(source)
    return cycle


def least_feedback_set(graph: Dependencies) -> tuple[tuple[str, ...], bool]:
    """Return a least set of nodes without which there is no cycle, and True; the first in lexicographic order.

    With more than MAX_EXACT_NODES nodes or MAX_CONFLICTS conflicts, return a minimal set and False.
    """
    if len(graph) > MAX_EXACT_NODES:
        return _greedy_feedback_set(graph), False
    names = sorted(graph)
    cycles = _disjoint_cycles(graph, ())
    budget = Budget(MAX_CONFLICTS)
    try:
        for size in range(len(cycles), len(names) + 1):
            feedback = _feedback_set(graph, names, cycles, size, budget)
            if feedback is not None:
                return feedback, True
    except BudgetSpent:
        return _greedy_feedback_set(graph), False
    raise AssertionError("all nodes together break all cycles")


def _feedback_set(
    graph: Dependencies, names: Sequence[str], cycles: list[list[str]], size: int, budget: Budget
) -> tuple[str, ...] | None:
    """Return the lexicographically first feedback set of a size, None if there is none.

    Cycles that a candidate set does not break are added to `cycles`.
    """
    cnf = Cnf()
    literals = {name: cnf.variable(name) for name in names}
    add_exactly(cnf, [*literals.values()], size, "removed")
    for cycle in cycles:
        cnf.add(*(literals[name] for name in cycle))
    solver = Conflicts(cnf, budget)
    try:
        chosen: list[str] = []
        if not _breaks_all(graph, literals, cycles, solver, []):
            return None
        for name in names:
            if len(chosen) < size and _breaks_all(
                graph, literals, cycles, solver, [*(literals[n] for n in chosen), literals[name]]
            ):
                chosen.append(name)
        return tuple(chosen)
    finally:
        solver.close()


def _breaks_all(
    graph: Dependencies, literals: Mapping[str, int], cycles: list[list[str]], solver: Conflicts, assumed: Sequence[int]
) -> bool:
    """Return whether a set of removed nodes that satisfies the assumed literals breaks all cycles.

    Cycles that a candidate set does not break are added to `cycles` and to the solver.
    """
    while solver.solver.solve_limited(assumed):
        present = set(solver.solver.get_model())
        missed = _disjoint_cycles(graph, [name for name, literal in literals.items() if literal in present])
        if not missed:
            return True
        cycles.extend(missed)
        for cycle in missed:
            solver.add([literals[name] for name in cycle])
    return False


def _greedy_feedback_set(graph: Dependencies) -> tuple[str, ...]:
    """Return a minimal feedback set: on each cycle found, the node of most edges; then nodes not needed are dropped."""
    remaining: Dependencies = graph
    chosen: list[str] = []
    while cycles := _disjoint_cycles(remaining, ()):
        targets: dict[str, int] = {}
        for sources in remaining.values():
            for source in sources:
                targets[source] = targets.get(source, 0) + 1
        for cycle in cycles:
            name = min(cycle, key=lambda n: (-targets.get(n, 0) * len(remaining[n]), n))
            chosen.append(name)
        remaining = _without(remaining, chosen)
    for name in sorted(chosen, reverse=True):
        fewer = [member for member in chosen if member != name]
        if not find_cycle(_without(graph, fewer)):
            chosen = fewer
    return tuple(sorted(chosen))
