"""Structural causal models: roots, a Boolean mechanism for every other variable; structure metrics against gold.

The published scorer has no structure metrics; its analysis code uses mentioned parents, the paper's text functional
ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from heapq import heapify, heappop, heappush
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from calibrant.dsl.errors import CycleError
from calibrant.dsl.formulas.formula import Formula
from calibrant.dsl.formulas.table import TruthTable, from_formula, shrink
from calibrant.dsl.formulas.text import infix
from calibrant.dsl.graph_metrics import distance
from calibrant.dsl.pictures import Picture, Pictured, PictureEdge, networkx_graph
from calibrant.dsl.text import natural_key, plural

# --- Structural causal models: roots, and one Boolean mechanism for every other variable ------------------------------


class LocalFunction(NamedTuple):
    """The function of a mechanism, independent of its formula: its functional parents and the table over exactly those.

    parents: natural order; variable i of the table is parents[i]
    """

    parents: tuple[str, ...]
    table: TruthTable


Signature: TypeAlias = tuple[tuple[str, LocalFunction], ...]
"""The local function of every endogenous variable, in natural order: equal iff the SCMs are equivalent."""


@lru_cache(maxsize=1 << 12)  # tied SCMs of an item share nearly all mechanisms
def local_function(mechanism: Formula) -> LocalFunction:
    """Return the local function: U is a functional parent iff flipping U can change the value (paper, section 3)."""
    mentioned = mechanism.variables
    table, functional_indices = shrink(from_formula(mechanism, mentioned))
    return LocalFunction(tuple(mentioned[i] for i in functional_indices), table)


def topological_order(mechanisms: Mapping[str, Formula], key: Callable[[str], Any] = natural_key) -> tuple[str, ...]:
    """Return the endogenous variables, each after those that its mechanism mentions; ties by `key`.

    Edges are mentions, not functional dependence, as in the published scorer; names without a mechanism count as roots.
    `CycleError` with the variables that cannot be placed.
    """
    return _order_of_mentions({v: f.mentioned for v, f in mechanisms.items()}, key)


def _order_of_mentions(mentions: Mapping[str, frozenset[str]], key: Callable[[str], Any]) -> tuple[str, ...]:
    waiting = {v: set(mentioned & mentions.keys()) for v, mentioned in mentions.items()}
    children: dict[str, list[str]] = {v: [] for v in mentions}
    for variable, parents in waiting.items():
        for parent in parents:
            children[parent].append(variable)
    ready = [(key(v), v) for v, parents in waiting.items() if not parents]
    heapify(ready)
    order: list[str] = []
    while ready:
        _, variable = heappop(ready)
        order.append(variable)
        for child in children[variable]:
            waiting[child].discard(variable)
            if not waiting[child]:
                heappush(ready, (key(child), child))
    if len(order) < len(mentions):
        raise CycleError(tuple(sorted(mentions.keys() - set(order), key=natural_key)))
    return tuple(order)


@dataclass(frozen=True)
class Scm(Pictured):
    """A binary structural causal model, acyclic by construction.

    roots: exogenous variables, natural order
    mechanisms: endogenous variable -> formula; `CycleError` if the mentions form a cycle, `ValueError` if one mentions
        a variable that is neither root nor endogenous, or if a variable is both
    """

    roots: tuple[str, ...]
    mechanisms: Mapping[str, Formula]
    order: tuple[str, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "roots", tuple(sorted(self.roots, key=natural_key)))
        ordered = {v: self.mechanisms[v] for v in sorted(self.mechanisms, key=natural_key)}
        object.__setattr__(self, "mechanisms", MappingProxyType(ordered))
        mentions = {v: f.mentioned for v, f in ordered.items()}
        object.__setattr__(self, "order", _order_of_mentions(mentions, natural_key))
        if not ordered.keys().isdisjoint(self.roots):
            raise ValueError("a root has a mechanism")
        strangers = frozenset[str]().union(*mentions.values()) - ordered.keys() - set(self.roots)
        if strangers:
            raise ValueError(f"mechanisms mention {', '.join(sorted(strangers))}, neither root nor endogenous")

    def with_mechanisms(self, mechanisms: Mapping[str, Formula]) -> Scm:
        """Return an SCM with other mechanisms; the order is reused if all mechanisms mention the same variables.

        `CycleError` and `ValueError` as for the class.
        """
        if mechanisms.keys() != self.mechanisms.keys() or any(
            formula is not (old := self.mechanisms[v]) and formula.mentioned != old.mentioned
            for v, formula in mechanisms.items()
        ):
            return Scm(self.roots, mechanisms)
        model = object.__new__(Scm)
        object.__setattr__(model, "roots", self.roots)
        object.__setattr__(model, "mechanisms", MappingProxyType({v: mechanisms[v] for v in self.mechanisms}))
        object.__setattr__(model, "order", self.order)
        return model

    def __reduce__(self) -> tuple[Callable[..., Scm], tuple[object, ...]]:
        return scm, (self.roots, dict(self.mechanisms))  # a mapping proxy cannot be pickled

    def __repr__(self) -> str:
        return f"<Scm: {len(self.roots)} roots, {len(self.mechanisms)} mechanisms, size {self.size}>"

    def to_networkx(self) -> Any:
        """Return a networkx `DiGraph` of mentions; nodes have a `formula`, "" for a root.

        `MissingExtraError` without networkx.
        """
        formulas = dict.fromkeys(self.roots, "") | {v: infix(f) for v, f in self.mechanisms.items()}
        nodes = ((name, {"formula": text}) for name, text in formulas.items())
        return networkx_graph(nodes, ((parent, child, {}) for parent, child in self.mentions))

    @property
    def mentions(self) -> Iterator[tuple[str, str]]:
        """Pairs (parent, child) in which the mechanism of the child mentions the parent."""
        for variable, formula in self.mechanisms.items():
            yield from ((parent, variable) for parent in sorted(formula.mentioned, key=natural_key))

    def picture(self) -> Picture:
        """Return the graph and the formulas."""
        rows = tuple((variable, infix(formula)) for variable, formula in self.mechanisms.items())
        return Picture(
            f"SCM: {plural(len(self.roots), 'roots')}, {plural(len(rows), 'mechanisms')}, size {self.size}",
            nodes=dict.fromkeys(self.variables, ""),
            edges=tuple(PictureEdge(parent, child) for parent, child in self.mentions),
            columns=("variable", "formula"),
            rows=rows,
            num_rows=len(rows),
        )

    @property
    def variables(self) -> tuple[str, ...]:
        return tuple(sorted((*self.roots, *self.mechanisms), key=natural_key))

    @property
    def endogenous(self) -> tuple[str, ...]:
        return tuple(self.mechanisms)

    @property
    def size(self) -> int:
        """Total formula size over all mechanisms."""
        return sum(mechanism.size for mechanism in self.mechanisms.values())

    @cached_property
    def local_functions(self) -> Mapping[str, LocalFunction]:
        return MappingProxyType({v: local_function(f) for v, f in self.mechanisms.items()})

    @property
    def functional_edges(self) -> frozenset[tuple[str, str]]:
        """Pairs (parent, child) of functional dependence."""
        return frozenset((p, v) for v, local in self.local_functions.items() for p in local.parents)

    @property
    def signature(self) -> Signature:
        """Signature: equal for two SCMs over the same variables iff they are equivalent."""
        return tuple(self.local_functions.items())

    def equivalent(self, scm: Scm) -> bool:
        """Return whether every variable has the same local function in both (and is a root in both or in neither)."""
        return self.roots == scm.roots and self.signature == scm.signature


def scm(roots: Iterable[str], mechanisms: Mapping[str, Formula]) -> Scm:
    return Scm(tuple(roots), mechanisms)


# --- Semantic structure metrics of the paper (section 3): functional parents of a submission against those of gold ----


@dataclass(frozen=True, slots=True)
class StructureMetrics:
    """Functional-parent graph and local functions against gold.

    precision, recall, f1: over directed edges; 1 if the denominator is 0
    shd: additions and deletions cost 1, a reversed edge costs 1 in all
    variable_exact: share of endogenous variables with exactly the gold parents; exact_map: all of them
    local_match: share of endogenous variables with the gold local function (parents and truth table)
    """

    precision: float
    recall: float
    f1: float
    shd: int
    variable_exact: float
    exact_map: bool
    local_match: float


def structure_metrics(gold: Scm, model: Scm) -> StructureMetrics:
    """Return the metrics of a model with gold's roots; `ValueError` for other roots."""
    return compare_structure(gold, model.mechanisms)


def compare_structure(gold: Scm, mechanisms: Mapping[str, Formula]) -> StructureMetrics:
    """Return the metrics of a model with gold's roots; `ValueError` for other roots.

    Edges are listed only for mechanisms with other parents than gold's: a third of the time for tied SCMs.
    """
    gold_functions = gold.local_functions
    if mechanisms.keys() != gold_functions.keys():
        raise ValueError("structure metrics need the gold root set")
    common = num_edges = num_gold_edges = same_parents = same_function = 0
    missing, extra = set[tuple[str, str]](), set[tuple[str, str]]()
    for variable, (gold_parents, gold_table) in gold_functions.items():
        parents, table = local_function(mechanisms[variable])
        num_edges += len(parents)
        num_gold_edges += len(gold_parents)
        if parents == gold_parents:
            common += len(parents)
            same_parents += 1
            same_function += table.bits == gold_table.bits
        else:
            lacking = [(parent, variable) for parent in gold_parents if parent not in parents]
            common += len(gold_parents) - len(lacking)
            missing.update(lacking)
            extra.update([(parent, variable) for parent in parents if parent not in gold_parents])
    num_variables = len(gold_functions)
    return StructureMetrics(
        common / num_edges if num_edges else 1.0,
        common / num_gold_edges if num_gold_edges else 1.0,
        2 * common / (num_gold_edges + num_edges) if num_gold_edges or num_edges else 1.0,
        distance(missing, extra).shd,
        same_parents / num_variables if num_variables else 1.0,
        same_parents == num_variables,
        same_function / num_variables if num_variables else 1.0,
    )


@dataclass(frozen=True)
class RootScore:
    """The predicted root set of Hidden-roots against gold's; both in latent order.

    gold: empty if the file has no gold SCM; then no root set is exact, and shares are None. The precision of an empty
        prediction is 0.
    """

    predicted: tuple[str, ...]
    gold: tuple[str, ...] = field(repr=False)

    @cached_property
    def exact(self) -> bool:
        return bool(self.gold) and set(self.predicted) == set(self.gold)

    @cached_property
    def precision(self) -> float | None:
        if not self.gold:
            return None
        return len(set(self.predicted) & set(self.gold)) / len(self.predicted) if self.predicted else 0.0

    @cached_property
    def recall(self) -> float | None:
        return len(set(self.predicted) & set(self.gold)) / len(self.gold) if self.gold else None
