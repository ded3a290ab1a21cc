"""How different generated programs are: motifs and supports by hand, bounds on different tables by renaming."""

from __future__ import annotations

import random
from collections.abc import Mapping
from fractions import Fraction
from itertools import product
from typing import Any

from calibrant.dsl.causim.generation import Diversity, grow
from calibrant.dsl.causim.model import Model, Node, symbol, table_node


def node(name: str, parents: tuple[str, ...], rows: Mapping[tuple[tuple[Any, ...], Any], object]) -> Node:
    """Return a node whose noise values are as probable as each other."""
    noises = sorted({noise for _, noise in rows}, key=repr)
    table = {(tuple(map(symbol, row)), symbol(noise)): symbol(value) for (row, noise), value in rows.items()}
    return table_node(name, f"U_{name}", parents, {symbol(noise): Fraction(1, len(noises)) for noise in noises}, table)


def coin(name: str, values: tuple[object, ...] = (0, 1)) -> Node:
    return node(name, (), {((), k): value for k, value in enumerate(values)})


def either(name: str, first: str, second: str, values: tuple[object, ...] = (0, 1)) -> Node:
    rows: dict[Any, object] = {((a, b), 0): values[a or b] for a in (0, 1) for b in (0, 1)}
    return node(name, (first, second), rows)


def counted(*models: Model) -> Diversity:
    diversity = Diversity()
    for model in models:
        part = Diversity()
        part.add_graph(model)
        part.add_tables(model)
        diversity.add(part)
    return diversity


def test_motifs_and_supports_are_counted() -> None:
    model = Model([coin("A"), coin("B"), either("C", "A", "B")])
    report = counted(model, Model([coin("A"), coin("B", (0, 1, 2))])).to_dict()
    assert report["motifs"] == {
        "2": {"models": 1, "forks": 0.0, "colliders": 0.0},
        "3": {"models": 1, "forks": 0.0, "colliders": 1.0},
    }
    assert report["support_sizes"] == {"1": 1, "2": 3, "3": 1}
    assert report["mechanisms"] == 5


def test_tables_that_differ_in_the_names_of_values_are_one() -> None:
    models = [
        Model([coin("A"), coin("B"), either("C", "A", "B", values)])
        for values in ((0, 1), ("no", "yes"), ("yes", "no"))
    ]
    assert counted(*models).to_dict()["distinct_tables"] == {"at_least": 2, "at_most": 2}  # a coin, and either
    both: dict[Any, object] = {((a, b), 0): a and b for a in (0, 1) for b in (0, 1)}
    models.append(Model([coin("A"), coin("B"), node("C", ("A", "B"), both)]))
    # either and both are one up to renaming of the parents' values too, which the upper bound does not try
    assert counted(*models).to_dict()["distinct_tables"] == {"at_least": 2, "at_most": 3}


def test_the_lower_bound_does_not_depend_on_names_of_values_or_the_order_of_parents() -> None:
    rng = random.Random(4)
    for version in grow(5, "x", "layered", 5):
        names = {
            (n.name, value): symbol(f"{n.name} {k}")
            for n, local in zip(version.model.nodes, version.model.system, strict=True)
            for k, value in enumerate(rng.sample(local.domain, len(local.domain)))
        }
        nodes = []
        for n in version.model.nodes:
            order = rng.sample(range(len(n.parents)), len(n.parents))
            table: dict[tuple[tuple[str, ...], str], str] = {}
            domains = [version.model.system[version.model.position[parent]].domain for parent in n.parents]
            for row in product(*domains):
                renamed = tuple(names[parent, value] for parent, value in zip(n.parents, row, strict=True))
                for noise in n.support:
                    table[tuple(renamed[k] for k in order), noise] = names[n.name, n.value(row, noise)]
            support = dict(zip(n.support, n.weights, strict=True))
            nodes.append(table_node(n.name, n.noise, tuple(n.parents[k] for k in order), support, table))
        assert counted(Model(nodes)).profiles == counted(version.model).profiles
