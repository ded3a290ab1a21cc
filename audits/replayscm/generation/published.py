"""Plans of the generator by stratum, and latent SCMs taken from published networks.

A window is an acyclic part of a network: a random node and neighbours (parents, children) that leave the induced graph
acyclic. Its mechanisms are the network's own functions, with constant nodes replaced by their values. Nodes that these
read and that have no mechanism are roots, so feedback is cut at its source. Nodes that keep their value, or that read
themselves, are never endogenous. Variables are g1, g2, ... in a random permutation of the names of the window.

Mechanisms are proven least formulas of the DSL (solvers.formulas.synthesis); a window with a function whose least
formula takes more than MAX_STATES is rejected.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from random import Random
from types import MappingProxyType

from calibrant.dsl.formulas.formula import Formula
from calibrant.dsl.formulas.table import TruthTable, complete, from_formula
from calibrant.dsl.formulas.text import canonical_formula
from calibrant.dsl.networks.formulas import Function
from calibrant.dsl.replayscm.generation import scms
from calibrant.dsl.replayscm.generation.strata import LARGE_STRATA, NAMED_STRATA, NUM_WORLDS, Stratum, worlds_for
from calibrant.dsl.replayscm.scm import scm
from calibrant.solvers.formulas.synthesis import least_formula
from calibrant.solvers.networks import published_parts as parts
from calibrant.solvers.networks.cut import find_cycle
from calibrant.solvers.outcome import Budget, Found

SEED_WORLDS = 3  # first training worlds, before those against shortcuts; one has no intervention
MAX_ADDED_WORLDS = 3  # by targeted disambiguation: the paper's records have 8 to 11 training worlds


@dataclass(frozen=True, slots=True)
class StratumPlan:
    """Budgets and filters of one stratum.

    restarts: most training sets drawn for one population until no shortcut remains
    candidates: most worlds tried in one step of survivor reduction
    iterations: most steps of survivor reduction
    min_reduction: share of the surviving shortcuts that those steps must remove
    attempts: most populations of one SCM
    support_candidates: worlds tried for new local patterns; 0 omits that stage
    support_assigned: probability that these worlds are hard_assigned
    max_intervened: most training worlds in which an endogenous variable may be a target; None for any number
    novelty: (lower, upper) bound of every held-out world's target novelty; None for none
    """

    restarts: int
    candidates: int
    iterations: int
    min_reduction: float
    attempts: int
    support_candidates: int
    support_assigned: float
    max_intervened: int | None = None
    novelty: tuple[float, float] | None = None


PLANS: Mapping[str, StratumPlan] = MappingProxyType(
    {
        "hs_n6_easy_calibration": StratumPlan(8, 180, 8, 0.75, 120, 24, 0.75),
        "hs_n7_anchor_plus": StratumPlan(10, 200, 10, 0.85, 150, 24, 0.80),
        "hs_n8_bridge": StratumPlan(12, 220, 12, 0.88, 170, 24, 0.80),
        "vhs_n8_dense": StratumPlan(12, 240, 12, 0.88, 180, 24, 0.80),
        "vhs_n9_anchor": StratumPlan(12, 240, 12, 0.88, 180, 24, 0.80),
        "vhs_n9_dense_strict": StratumPlan(14, 260, 14, 0.90, 220, 28, 0.82),
        "vhs_n10_anchor_m10": StratumPlan(12, 250, 12, 0.90, 210, 28, 0.82),
        "vhs_n10_extreme_near_impossible": StratumPlan(16, 280, 16, 0.92, 260, 28, 0.85),
        "t1_clean_hard": StratumPlan(16, 320, 16, 0.93, 260, 0, 0.85, max_intervened=5, novelty=(0.25, 0.72)),
    }
)


def _scale_plan(stratum: Stratum) -> StratumPlan:
    """Return the plan of ten variables, with iterations in proportion to the stratum's number of worlds."""
    plan = PLANS["vhs_n10_anchor_m10"]
    return replace(plan, iterations=-(-plan.iterations * stratum.num_worlds // NUM_WORLDS))


LARGE_PLANS: Mapping[str, StratumPlan] = MappingProxyType(
    {stratum.name: _scale_plan(stratum) for stratum in LARGE_STRATA}
)


def plan_for(stratum: Stratum) -> StratumPlan:
    """Return the stratum's plan; ValueError for an unknown stratum."""
    plans = {**PLANS, **LARGE_PLANS}
    if stratum.name not in plans:
        raise ValueError(f"no plan for stratum '{stratum.name}'; known: {', '.join(plans)}")
    return plans[stratum.name]


# --- Latent SCMs of published networks: acyclic windows whose mechanisms are the networks' own functions --------------

MAX_STATES = 50_000_000  # states of the search for one least formula; functions of four inputs are looked up
MAX_POPULATIONS = 5  # populations tried for one window, whose nodes may hardly ever vary
NETWORK_STRATA = {size.name: size for size in parts.window_sizes("network")}


@dataclass(frozen=True)
class Window:
    """An acyclic part of a network.

    endogenous: network names of its nodes with a mechanism; names: network names of all its variables, g1 first
    """

    source: parts.Source
    endogenous: tuple[str, ...]
    names: tuple[str, ...]
    latent: scms.LatentScm

    @property
    def in_degree(self) -> int:
        """The greatest number of essential inputs of a mechanism."""
        return max(len(self.source.functions[name].inputs) for name in self.endogenous)

    @property
    def labels(self) -> dict[str, str]:
        """Properties of the window and its network, each proven."""
        return self.source.labels(self.names, self.endogenous)


def world_stratum(stratum: parts.WindowSize, num_variables: int, in_degree: int) -> Stratum:
    """Return the rules of worlds for a window: those of eight variables, with the number of worlds for its size."""
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
    """Return budgets of the searches for worlds: those of eight variables, with at least one iteration per world."""
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


def draw_windows(sources: Sequence[parts.Source], stratum: parts.WindowSize, rng: Random) -> Iterator[Window]:
    """Yield windows of a stratum without end; `UnreachableStratumError` after MAX_WINDOWS draws without one."""
    num_rejected = 0
    while num_rejected < parts.MAX_WINDOWS:
        window = _draw_window(rng.choice(sources), stratum, rng)
        num_rejected = 0 if window is not None else num_rejected + 1
        if window is not None:
            yield window
    raise parts.UnreachableStratumError(
        f"none of {parts.MAX_WINDOWS} windows of the networks is of stratum {stratum.name}"
    )


def _draw_window(source: parts.Source, stratum: parts.WindowSize, rng: Random) -> Window | None:
    """Return one window, None if it is not of the stratum."""
    functions, (min_nodes, max_nodes) = source.functions, stratum.nodes
    candidates = [name for name in source.dependent if len(functions[name].inputs) <= stratum.in_degree[1]]
    if not candidates:
        return None

    def allows(nodes: Sequence[str]) -> bool:
        inner = {target: [s for s in functions[target].inputs if s in nodes] for target in nodes}
        return len(parts.window_variables(functions, nodes)) <= max_nodes and not find_cycle(inner)

    chosen = parts.grow_window(functions, candidates, rng.randint(2, max_nodes - 1), rng, allows=allows)
    variables = parts.window_variables(functions, chosen)
    in_degree = max(len(functions[name].inputs) for name in chosen)
    if len(chosen) < 2 or not min_nodes <= len(variables) <= max_nodes or in_degree < stratum.in_degree[0]:
        return None
    names = rng.sample(sorted(variables), len(variables))
    neutral = {name: f"g{index}" for index, name in enumerate(names, start=1)}
    mechanisms = {}
    for name in chosen:
        mechanism = _mechanism(functions[name], [neutral[source] for source in functions[name].inputs])
        if mechanism is None:
            return None
        mechanisms[neutral[name]] = mechanism
    model = scm([neutral[name] for name in variables if name not in chosen], mechanisms)
    return Window(source, tuple(chosen), tuple(names), scms.LatentScm(model, (*model.roots, *model.order)))


@cache
def _least_mechanism(table: TruthTable) -> Formula | None:
    """Return the least formula of a table over x0, x1, ...; None if the search takes over MAX_STATES."""
    names = [f"x{i}" for i in range(table.num_vars)]
    outcome = least_formula(complete(table), names, budget=Budget(MAX_STATES))
    return outcome.value if isinstance(outcome, Found) else None


def _mechanism(function: Function, names: Sequence[str]) -> Formula | None:
    """Return a function as a least formula in normal form over `names`; None if the search takes over MAX_STATES."""
    table = TruthTable(len(function.inputs), function.bits)
    formula = _least_mechanism(table)
    if formula is None:
        return None
    nodes = (names[int(node[1:])] if isinstance(node, str) else node for node in formula.nodes)
    mechanism = canonical_formula(Formula(tuple(nodes)))
    if from_formula(mechanism, names) != table:
        raise AssertionError(f"{mechanism} has another table than {function.table}")
    return mechanism
