"""Latent SCMs of published networks: acyclic windows whose mechanisms are the networks' own functions.

Constants are put in. A window is a seeded start with neighbours (parents, children) that leave the induced graph
acyclic; what its functions read and no mechanism sets is a root, so feedback is cut by clamping its source. Nodes that
keep their value, or that read themselves, are never endogenous. Variables are g1, g2, ... in a seeded permutation of
the names of the window.

Mechanisms are least formulas of the DSL, proven (solvers.formulas.synthesis); a window with a function whose least
formula takes more than MAX_STATES is drawn anew.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from random import Random
from typing import NamedTuple

from calibrant.audits.replayscm.generation.plans import PLANS, StratumPlan
from calibrant.dsl.formulas.formula import Formula
from calibrant.dsl.formulas.table import TruthTable, complete, from_formula
from calibrant.dsl.formulas.text import canonical_formula
from calibrant.dsl.networks.functions import Function
from calibrant.dsl.networks.writers import unique_ids
from calibrant.dsl.replayscm.generation.scms import LatentScm
from calibrant.dsl.replayscm.generation.strata import NAMED_STRATA, Stratum, worlds_for
from calibrant.dsl.replayscm.scm import scm
from calibrant.solvers.formulas.synthesis import least_formula
from calibrant.solvers.networks.cut import find_cycle, least_feedback_set, propagate_constants
from calibrant.solvers.networks.network import BooleanNetwork
from calibrant.solvers.outcome import Budget, Found

NODES = {8: (3, 8), 15: (9, 15), 30: (16, 30)}  # of a window, roots included, by the number in a stratum's name
IN_DEGREES = {2: (1, 2), 4: (3, 4), 6: (5, 6)}  # the greatest of a window
MAX_STATES = 50_000_000  # states of the search for one least formula; functions of four inputs are looked up
MAX_WINDOWS = 200  # drawn for one SCM before a stratum is called out of reach of the networks
_VALID_NAME = re.compile(r"(?!(?:not|and|or|xor|iff|if)\Z)[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


class NetworkStratum(NamedTuple):
    """Windows of a number of variables and a greatest in-degree; both bounds included."""

    name: str
    nodes: tuple[int, int]
    in_degree: tuple[int, int]


NETWORK_STRATA = {
    stratum.name: stratum
    for stratum in (
        NetworkStratum(f"network_n{number}_k{degree}", nodes, in_degree)
        for number, nodes in NODES.items()
        for degree, in_degree in IN_DEGREES.items()
    )
}


class UnreachableStratumError(Exception):
    """No window of the networks was of a stratum, among as many as are drawn."""


@dataclass(frozen=True)
class Source:
    """A network that windows are drawn from, constants put in."""

    network: BooleanNetwork

    @cached_property
    def functions(self) -> Mapping[str, Function]:
        """The functions that are not constant."""
        return propagate_constants(self.network)[0]

    @cached_property
    def dependent(self) -> Sequence[str]:
        """Nodes that may be endogenous, sorted."""
        return sorted(name for name, function in self.functions.items() if name not in function.inputs)

    @cached_property
    def feedback(self) -> tuple[int, bool]:
        """Size of the feedback set of the whole network, and whether it is proven least."""
        inner = {name: f for name, f in self.functions.items() if not f.is_identity(name)}
        chosen, is_least = least_feedback_set({n: [s for s in f.inputs if s in inner] for n, f in inner.items()})
        return len(chosen), is_least


@dataclass(frozen=True)
class Window:
    """An acyclic part of a network; endogenous: its nodes with a mechanism; names: all variables, in neutral order."""

    source: Source
    endogenous: tuple[str, ...]
    names: tuple[str, ...]
    latent: LatentScm

    @property
    def in_degree(self) -> int:
        """The greatest number of essential inputs of a mechanism."""
        return max(len(self.source.functions[name].inputs) for name in self.endogenous)

    @property
    def labels(self) -> dict[str, str]:
        """Properties of the window and its network, each proven."""
        functions = [self.source.functions[name] for name in self.endogenous]
        signs = [sign for function in functions for sign in function.signs]
        size, is_least = self.source.feedback
        return {
            "latent": f"network-{self.source.network.digest[:16]}",  # shared by items: intervals are clustered by it
            "names": " ".join(valid_names(self.names)),
            "in_degree": str(self.in_degree),
            "essential_inputs": str(len(signs)),
            "both_edges": f"{signs.count('both') / len(signs):.3f}",
            "feedback": str(size) if is_least else f"at most {size}",
        }


def valid_names(names: Sequence[str]) -> list[str]:
    """Return names as variables of the DSL: other characters become `_`, and equal names a number."""
    ids = unique_ids(names, "A-Za-z0-9_", is_valid=_VALID_NAME)
    return [ids[name] for name in names]


def world_stratum(stratum: NetworkStratum, num_variables: int, in_degree: int) -> Stratum:
    """Return the rules of worlds for a window: those of eight variables, and of larger strata by its size."""
    bridge = next(rules for rules in NAMED_STRATA if rules.name == "hs_n8_bridge")
    return Stratum(
        stratum.name,
        "network",
        num_variables,
        bridge.num_units,
        max(in_degree, bridge.max_parents),
        bridge.sizes,
        bridge.target_probabilities,
        bridge.assigned_probability,
        num_worlds=worlds_for(num_variables),
    )


def network_plan(num_worlds: int) -> StratumPlan:
    """Return budgets of the searches for worlds: those of eight variables, with steps in proportion to the worlds."""
    plan = PLANS["hs_n8_bridge"]
    return StratumPlan(
        plan.restarts,
        plan.candidates,
        max(plan.iterations, num_worlds),
        plan.min_reduction,
        MAX_POPULATIONS,
        plan.support_candidates,
        plan.support_assigned,
    )


MAX_POPULATIONS = 5  # populations of one window: where a node hardly ever varies another window is drawn


def draw_windows(sources: Sequence[Source], stratum: NetworkStratum, rng: Random) -> Iterator[Window]:
    """Yield windows of a stratum without end.

    `UnreachableStratumError` if none of MAX_WINDOWS in a row is of the stratum
    """
    fruitless = 0
    while fruitless < MAX_WINDOWS:
        window = _draw_window(rng.choice(sources), stratum, rng)
        fruitless = 0 if window is not None else fruitless + 1
        if window is not None:
            yield window
    raise UnreachableStratumError(f"none of {MAX_WINDOWS} windows of the networks is of stratum {stratum.name}")


def _draw_window(source: Source, stratum: NetworkStratum, rng: Random) -> Window | None:
    """Return one window, None if it is not of the stratum."""
    functions, (least, most) = source.functions, stratum.nodes
    candidates = [name for name in source.dependent if len(functions[name].inputs) <= stratum.in_degree[1]]
    if not candidates:
        return None
    chosen = grow_window(functions, candidates, rng.randint(2, most - 1), most, rng)
    variables = _variables(functions, chosen)
    in_degree = max(len(functions[name].inputs) for name in chosen)
    if len(chosen) < 2 or not least <= len(variables) <= most or in_degree < stratum.in_degree[0]:
        return None
    names = rng.sample(sorted(variables), len(variables))
    neutral = {name: f"g{number}" for number, name in enumerate(names, start=1)}
    mechanisms = {}
    for name in chosen:
        mechanism = _mechanism(functions[name], [neutral[source] for source in functions[name].inputs])
        if mechanism is None:
            return None
        mechanisms[neutral[name]] = mechanism
    model = scm([neutral[name] for name in variables if name not in chosen], mechanisms)
    return Window(source, tuple(chosen), tuple(names), LatentScm(model, (*model.roots, *model.order)))


def grow_window(
    functions: Mapping[str, Function], candidates: Sequence[str], size: int, most: int, rng: Random
) -> list[str]:
    """Return up to `size` nodes that are joined by edges and have no cycle, with at most `most` variables."""
    allowed = set(candidates)
    children: dict[str, set[str]] = {}
    for name in candidates:
        for source in functions[name].inputs:
            children.setdefault(source, set()).add(name)
    chosen = [rng.choice(candidates)]
    refused: set[str] = set()
    while len(chosen) < size:
        near = {n for name in chosen for n in (*functions[name].inputs, *children.get(name, ()))} & allowed
        open_names = sorted(near - refused - set(chosen))
        if not open_names:
            break
        name = rng.choice(open_names)
        extended = [*chosen, name]
        inner = {target: [s for s in functions[target].inputs if s in extended] for target in extended}
        if len(_variables(functions, extended)) > most or find_cycle(inner):
            refused.add(name)
        else:
            chosen = extended
    return chosen


def _variables(functions: Mapping[str, Function], chosen: Sequence[str]) -> set[str]:
    return {*chosen, *(source for name in chosen for source in functions[name].inputs)}


@cache
def _least_mechanism(table: TruthTable) -> Formula | None:
    """Return the least formula of a table over x0, x1, ...; None where the search takes too many states."""
    names = [f"x{i}" for i in range(table.num_vars)]
    outcome = least_formula(complete(table), names, budget=Budget(MAX_STATES))
    return outcome.value if isinstance(outcome, Found) else None


def _mechanism(function: Function, names: Sequence[str]) -> Formula | None:
    """Return a function as a least formula in normal form, replayed against the table in all rows; see above."""
    table = TruthTable(len(function.inputs), function.bits)
    formula = _least_mechanism(table)
    if formula is None:
        return None
    nodes = (names[int(node[1:])] if isinstance(node, str) else node for node in formula.nodes)
    mechanism = canonical_formula(Formula(tuple(nodes)))
    if from_formula(mechanism, names) != table:
        raise AssertionError(f"{mechanism} has another table than {function.table}")
    return mechanism
