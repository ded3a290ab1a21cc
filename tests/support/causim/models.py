"""Models of CauSim for tests: the shared vectors, and random ones given as tables."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any

import msgspec
import numpy as np

from calibrant.dsl.causim.bundle import Bundle, load_bundle
from calibrant.dsl.causim.generated_functions import NEW, insertions
from calibrant.dsl.causim.model import Model, Node, compact, run, symbol, table_node
from calibrant.dsl.causim.question import TYPES, Question, QuestionRecord, QuestionType, question_from_record
from tests.support.shared import shared_records

# --- The shared vectors of CauSim, read once: programs as models, questions with what is expected of them -------------
PROGRAMS = 20  # fewer would mean that the file is not what it is taken for
QUESTIONS = 100


@cache
def vectors(kind: str) -> list[dict[str, Any]]:
    """Return the vectors of one kind, in order; skips the test where they are not to be found."""
    return list(shared_records("vectors_dev.jsonl", part="causim", kind=kind))


@cache
def bundles() -> dict[str, Bundle]:
    return {record["id"]: msgspec.convert(record["bundle"], Bundle) for record in vectors("program")}


@cache
def models() -> dict[str, Model]:
    return {name: load_bundle(bundle) for name, bundle in bundles().items()}


@cache
def questions() -> dict[str, tuple[Model, Question]]:
    found = {}
    for record in vectors("question"):
        given = QuestionRecord(*(record[field] for field in QuestionRecord.__struct_fields__))
        model, with_noise = models()[record["program"]], record["options"].get("with_noise", False)
        found[record["id"]] = model, question_from_record(given, record["type"], model, with_noise=with_noise)
    return found


def printed(fraction: Fraction) -> str:
    """Return a fraction as the vectors write it."""
    return f"{fraction.numerator}/{fraction.denominator}"


def answer_texts(record: dict[str, Any]) -> list[str]:
    """Return the expected answers of a question vector, as texts."""
    return [compact(answer) for answer in record["expect"]["answers"]]


# --- Random models given as tables, and random questions about them; nothing of the generator under test is used ------
DOMAIN = tuple(symbol(value) for value in ("p", True, 1, None))


def random_graph(rng: np.random.Generator, topology: str, n: int) -> dict[str, tuple[str, ...]]:
    """Return a graph of the topology, grown by its insertions; parents come first."""
    graph: dict[str, tuple[str, ...]] = {}
    for k in range(n):
        places = insertions(graph, topology)
        place = places[int(rng.integers(len(places)))]
        changed = dict(place.changed)
        name = f"N{k}"
        graph = {
            node: tuple(name if parent == NEW else parent for parent in changed.get(node, parents))
            for node, parents in graph.items()
        }
        graph[name] = place.parents
    ordered: dict[str, tuple[str, ...]] = {}
    while len(ordered) < n:
        ordered.update({node: own for node, own in graph.items() if node not in ordered and set(own) <= set(ordered)})
    return ordered


def random_model(rng: np.random.Generator, graph: dict[str, tuple[str, ...]], noise: int = 3, values: int = 3) -> Model:
    """Tables with up to `values` values; some rows ignore their noise, so that edges and noise may be vacuous."""
    nodes: list[Node] = []
    domains: dict[str, Sequence[str]] = {}
    for name, parents in graph.items():
        weights = rng.integers(1, 5, size=int(rng.integers(1, noise + 1)))
        support = {symbol(k): Fraction(int(w), int(weights.sum())) for k, w in enumerate(weights)}
        own = list(DOMAIN[: int(rng.integers(2, values + 1))])
        table = {}
        for row in product(*(domains[parent] for parent in parents)):
            constant = rng.random() < 0.3
            value = own[int(rng.integers(len(own)))]
            for noise_value in support:
                table[row, noise_value] = value if constant else own[int(rng.integers(len(own)))]
        nodes.append(table_node(name, f"U_{name}", parents, support, table))
        domains[name] = sorted(set(table.values()))
    return Model(nodes)


def random_question(rng: np.random.Generator, model: Model, kind: QuestionType | None = None) -> Question:
    """Any share of noise fixed, rarely to a value outside its support; evidence full, partial, or not of any world."""
    kind = kind or TYPES[int(rng.integers(4))]
    world = {node.noise: node.support[int(rng.integers(len(node.support)))] for node in model.nodes}
    share = rng.random()
    fixed = {noise: value for noise, value in world.items() if rng.random() < share}
    if fixed and rng.random() < 0.03:
        fixed[next(iter(fixed))] = symbol("nowhere")
    unknown = tuple(sorted(set(world) - set(fixed)))
    do, observed = {}, {}
    if kind in ("intervention", "counterfactual"):
        for name, local in zip(model.names, model.system, strict=True):
            if rng.random() < 0.35:
                do[name] = local.domain[int(rng.integers(len(local.domain)))]
    if kind in ("abduction", "counterfactual"):
        factual = run(model, world, {})
        seen = 1.1 if rng.random() < 0.5 else rng.random()
        observed = {name: value for name, value in factual.items() if rng.random() < seen}
        if observed and rng.random() < 0.1:
            observed[next(iter(observed))] = DOMAIN[int(rng.integers(4))]
    with_noise = kind == "counterfactual" and bool(rng.random() < 0.3)
    return Question(kind, fixed, unknown, do, observed, with_noise)
