"""Weighted DAGs that explain readings, found by trying all of them on the reference."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, combinations, product
from typing import Any

from calibrant.dsl.causalab.mechanism import FREQUENCY, Equation, Mechanism, Term
from calibrant.dsl.causalab.reference import bases_of
from calibrant.solvers.causalab.evidence import EXACT, Evidence, misfit, predict_frequency


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


def members_by_reference(evidence: Evidence, *, bounded: bool) -> set[tuple[Any, ...]]:
    """Every mechanism that the reference finds to give all readings; the base is what is missing to the first."""
    found = set()
    first = dict(zip(evidence.nodes, evidence.observations[0].values, strict=True))
    for terms in weighted_graphs(evidence.nodes, sink=not evidence.task.freq_parent):
        base = first[FREQUENCY] - sum(t.weight * first[t.parent] for t in terms[FREQUENCY])
        made = Mechanism({n: Equation(own, base if n == FREQUENCY else None) for n, own in terms.items()})
        if misfit(made, evidence, reading=evidence.task.reading, shifts=()) > EXACT:
            continue
        if not bounded or drawn_as_the_benchmark_draws(made, evidence):
            found.add(key(made))
    return found


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
