"""Laboratories of CausaLab for tests: released suites, enumerated DAGs, recorded episodes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import chain, combinations, product
from typing import Any

from hypothesis import strategies as st

from calibrant.dsl.causalab.configs import Config, read_configs
from calibrant.dsl.causalab.episode import LabEpisode, LabStep
from calibrant.dsl.causalab.generation import PLANS, generate_items
from calibrant.dsl.causalab.item import LabItem, Name, Task, Terms, lab_item
from calibrant.dsl.causalab.mechanism import FREQUENCY, Equation, Mechanism, Term
from calibrant.dsl.causalab.reference import bases_of
from calibrant.dsl.episode import Action
from calibrant.solvers.causalab.evidence import EXACT, Evidence, misfit, predict_frequency
from tests.support.shared import shared_file, shared_records

# --- Released suites and vectors of CausaLab, and hypothesis strategies for laboratories ------------------------------
SUITES = tuple(sorted(PLANS))
LINEAR = tuple(f"{k}nodes" for k in range(3, 8))


def released_suite(name: str) -> tuple[Config, ...]:
    """Return the configs of a released file; skips the test where the shared data are not."""
    shared_file("data", part="causalab")
    return _released(name)


@cache
def _released(name: str) -> tuple[Config, ...]:
    return read_configs(shared_file(f"data/{name}.jsonl", part="causalab"))


def vectors() -> list[dict[str, Any]]:
    return list(shared_records("conformance.jsonl", part="causalab"))


def made_item(suite: str, seed: int = 0) -> LabItem:
    """Return the first generated item of a suite."""
    (item,) = generate_items(PLANS[suite], seed, 1)
    return item


def item_with_base(base: float, suite: str = "4nodes", seed: int = 0, num_records: int | None = None) -> LabItem:
    """Return a generated item whose frequency has another base; everything shown follows from it."""
    item = made_item(suite, seed)
    equations = item.sealed.mechanism.equations
    changed = Mechanism({**equations, FREQUENCY: replace(equations[FREQUENCY], base=base)})
    terms = Terms(item.task.family, item.task.allowance, item.task.freq_parent, item.task.weights, item.task.tries)
    bases = replace(item.sealed.bases, records=item.sealed.bases.records[:num_records])
    return lab_item(Name(item.id, item.suite), terms, changed, bases, item.sealed.noise)


def items(suites: tuple[str, ...] = SUITES) -> st.SearchStrategy[LabItem]:
    return st.builds(made_item, st.sampled_from(suites), st.integers(0, 10**6))


# --- Weighted DAGs that explain readings, found by trying all of them on the reference --------------------------------
def weighted_graphs(nodes: tuple[str, ...], *, sink: bool) -> Iterator[dict[str, tuple[Term, ...]]]:
    """Terms of every acyclic weighting of the nodes with weights 1, 2, 3; a sink has no children."""
    pairs = [(p, c) for p in nodes for c in nodes if p != c and not (sink and p == nodes[-1])]
    for edges in chain.from_iterable(combinations(pairs, number) for number in range(len(pairs) + 1)):
        if not is_acyclic(nodes, edges):
            continue
        for weights in product((1, 2, 3), repeat=len(edges)):
            terms: dict[str, list[Term]] = {node: [] for node in nodes}
            for (parent, child), weight in zip(edges, weights, strict=True):
                terms[child].append(Term(parent, 1, float(weight)))
            yield {node: tuple(own) for node, own in terms.items()}


def is_acyclic(nodes: tuple[str, ...], edges: tuple[tuple[str, str], ...]) -> bool:
    """Whether taking nodes without parents away, again and again, takes all."""
    left = set(nodes)
    while free := {n for n in left if not any(c == n and p in left for p, c in edges)}:
        left -= free
    return not left


def fitting_mechanisms(evidence: Evidence) -> list[Mechanism]:
    """Every mechanism that the reference finds to give all readings; the base is what is missing to the first."""
    fitting = []
    first = dict(zip(evidence.nodes, evidence.observations[0].values, strict=True))
    for terms in weighted_graphs(evidence.nodes, sink=not evidence.task.freq_parent):
        base = first[FREQUENCY] - sum(t.weight * first[t.parent] for t in terms[FREQUENCY])
        mechanism = Mechanism({n: Equation(own, base if n == FREQUENCY else None) for n, own in terms.items()})
        if misfit(mechanism, evidence, reading=evidence.task.reading, shifts=()) <= EXACT:
            fitting.append(mechanism)
    return fitting


def members_by_reference(evidence: Evidence, *, bounded: bool) -> set[tuple[Any, ...]]:
    return keys_of(fitting_mechanisms(evidence), evidence, bounded=bounded)


def keys_of(fitting: Sequence[Mechanism], evidence: Evidence, *, bounded: bool) -> set[tuple[Any, ...]]:
    """Return the keys of fitting mechanisms; if bounded, of those alone that the benchmark may draw."""
    return {key(made) for made in fitting if not bounded or drawn_as_the_benchmark_draws(made, evidence)}


def drawn_as_the_benchmark_draws(made: Mechanism, evidence: Evidence) -> bool:
    if not 15 <= made.frequency_base <= 25:
        return False
    crystals = [dict(zip(evidence.nodes, s.values, strict=True)) for s in evidence.observations if s.changed is None]
    reactor = dict(evidence.task.reactor) | {FREQUENCY: 0.0}
    reactor[FREQUENCY] = predict_frequency(made, evidence)
    bases = [b for crystal in [*crystals, reactor] for b in bases_of(made, crystal).values()]
    return all(0 <= b <= 100 and b == int(b) for b in bases)


def key(made: Mechanism) -> tuple[Any, ...]:
    terms = {t for node, e in made.equations.items() for t in {(node, *term) for term in e.terms}}
    return (made.frequency_base, tuple(sorted(terms)))


# --- The twin of a laboratory episode: it knows the recorded steps and nothing else -----------------------------------
class TwinEpisode(LabEpisode):
    """Answers exactly the recorded actions, in order; fails on any other. What is sealed is not there to be read."""

    def __init__(self, task: Task, recorded: Sequence[LabStep], left: int) -> None:
        self._task = task
        self._recorded = list(recorded)
        self._steps: list[LabStep] = []
        self._start = left
        self._closed = False

    @property
    def left(self) -> int:
        return 0 if self._closed else self._start - sum(step.cost for step in self._steps)

    def act(self, action: Action) -> LabStep:
        step = self._recorded[len(self._steps)]
        assert dict(step.action) == dict(action)
        self._steps.append(step)
        self._closed = "submit" in action
        return step
