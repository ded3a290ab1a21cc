"""Mechanisms without tables: values, effects and differences against plain enumeration; NIHSS in several hands."""

from __future__ import annotations

import ast
import random
from itertools import permutations, product
from typing import Any

import pytest

from calibrant.dsl.causim import networks
from calibrant.dsl.causim.bundle import load_source, module_text
from calibrant.dsl.causim.external_programs.check import (
    check_program,
    compare_mechanisms,
    describe_effects,
    diagram_nodes,
)
from calibrant.dsl.causim.external_programs.sources import lower_function
from calibrant.dsl.causim.generation import grow
from calibrant.dsl.causim.language import tables
from calibrant.dsl.causim.language.execution_limits import StepBudget
from calibrant.dsl.causim.language.statements import Function, function
from calibrant.dsl.causim.language.tables import DecisionBudget, Decisions, Diagram, diagram, reading_order
from calibrant.dsl.causim.model import symbol
from calibrant.dsl.causim.topology import TOPOLOGIES, vacuity


def read(text: str, *, lowered: bool = False) -> Function:
    (node,) = ast.parse(text).body
    assert isinstance(node, ast.FunctionDef)
    return function(lower_function(node) if lowered else node, random=False)


SUMS = [
    "def f(a, b, c):\n    return a + b + c",
    "def f(a, b, c):\n    values = [a, b, c]\n    return sum(v for v in values if v != 1)",
    "def f(a, b, c):\n    values = (a, b)\n    n = c\n    for v in values:\n        n += v if v else a\n    return n",
    "def f(a, b, c):\n    n = 5\n    n += sum([a, b * 2, c])\n    return n - c",
    "def f(a, b, c):\n    for a in [a, b]:\n        b = a\n    return b + c",  # the list changes inside the loop
    "def f(a, b, c):\n    values = [a, b]\n    values.append(c)\n    return sum(values)",  # a list that grows
    "def f(a, b, c):\n    values = [a, b]\n    a = 7\n    return a + sum(values) + c",  # what it holds changes later
    "def f(a, b, c):\n    x = b\n    values = [a, x]\n    x = 9\n    return sum(values) + x",
    "def f(a, b, c):\n    for v in [a, b]:\n        if v > c:\n            break\n        c = c + 1\n    return c",
    "def f(a, b, c):\n    return sum(sum(w * v for w in (1, 2)) for v in [a, b]) + c",
    "def f(a, b, c):\n    n = a + b\n    for v in (a, b, c):\n        n = n + v + 1\n    return [n] + [v]",
]


@pytest.mark.parametrize("text", SUMS)
def test_a_function_taken_apart_returns_the_same(text: str) -> None:
    plain, lowered = read(text), read(text, lowered=True)
    for arguments in product((0, 1, 2), repeat=3):
        assert lowered.call(arguments) == plain.call(arguments), arguments


def test_a_sum_is_taken_apart() -> None:
    assert [len(read(text, lowered=True).parts) for text in SUMS[:3]] == [4, 5, 6]


VALUES: list[list[Any]] = [[0, 1, 2], [0, 1], ["x", "y", None]]
BRANCHES = [
    "if p == 1:\n        return q",
    "n = p + q",
    "n = n + 1 if r == 'x' else n",
    "if r is None:\n        n = q",
    "n = (p, n)",
    "if n == 2:\n        return r",
    "n = min(n, 1)",
]


def drawn(rng: random.Random) -> Function:
    body = "\n    ".join(["n = 0", *rng.choices(BRANCHES, k=rng.randrange(1, 5)), rng.choice(["return n", "pass"])])
    return read(f"def f(p, q, r):\n    {body}")


def enumerated(called: Function) -> dict[tuple[int, ...], str] | None:
    outputs: dict[tuple[int, ...], str] = {}
    for places in product(*(range(len(values)) for values in VALUES)):
        try:
            outputs[places] = symbol(called.call([VALUES[k][place] for k, place in enumerate(places)]))
        except Exception:
            return None
    return outputs


def test_values_effects_and_differences_are_those_of_the_enumeration() -> None:
    rng = random.Random(3)
    read_tables: list[tuple[Diagram, dict[tuple[int, ...], str]]] = []
    while len(read_tables) < 40:
        called = drawn(rng)
        if (outputs := enumerated(called)) is not None:
            read_tables.append((diagram(called, VALUES, symbol, StepBudget()), outputs))
    for made, outputs in read_tables:
        assert made.values == set(outputs.values())
        functions = Decisions([3, 2, 3], reading_order(made), DecisionBudget())
        effective = functions.arguments_of(functions.function_of(made))
        for k in range(3):
            by_others: dict[Any, set[str]] = {}
            for places, value in outputs.items():
                by_others.setdefault(places[:k] + places[k + 1 :], set()).add(value)
            assert (k in effective) == any(len(values) > 1 for values in by_others.values())
    differing = 0
    orders = list(permutations(range(3)))
    for number, ((first, outputs), (second, others)) in enumerate(product(read_tables, repeat=2)):
        functions = Decisions([3, 2, 3], orders[number % 6], DecisionBudget())
        difference = functions.find_difference(functions.function_of(first), functions.function_of(second))
        assert (difference is None) == (outputs == others)
        if difference is not None:
            differing += 1
            fitting = [p for p in outputs if all(p[k] == place for k, place in difference.choices.items())]
            assert {(outputs[p], others[p]) for p in fitting} == {difference.values}
    assert 100 < differing < 1_560


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_diagrams_of_grown_programs_agree_with_their_tables(topology: str) -> None:
    for version in grow(11, topology, topology, 5):
        source = module_text(version.bundle)
        model, nodes = load_source(source), diagram_nodes(source)
        assert {name: node.values for name, node in nodes.items()} == {
            node.name: local.domain for node, local in zip(model.nodes, model.system, strict=True)
        }
        vacuous = vacuity(model)
        assert len(list(describe_effects(nodes))) == len(vacuous.edges) + len(vacuous.constants)
        assert list(compare_mechanisms(nodes, nodes, {})) == []


def total_of(body: str, nodes: int = 16) -> str:
    """Return NIHSS with another way of adding up; ITEMS stands for the arguments."""
    text = networks.program(nodes)
    start, end = text.index("    points = 0"), text.index("    return points\n") + len("    return points\n")
    names = ", ".join(f"item_{name}" for name in networks.items(nodes))
    return text[:start] + body.replace("ITEMS", names) + text[end:]


BACKWARDS = [f"item_{name}" for name in reversed(networks.items(16))]
FAITHFUL = [
    "    return sum(v for v in [ITEMS] if v != 'UN')\n",
    f"    return sum(v for v in [{', '.join(BACKWARDS)}] if v != 'UN')\n",
    f"    n = sum(v for v in [{', '.join(BACKWARDS[::2])}] if v != 'UN')\n"
    f"    n += sum(v for v in [{', '.join(BACKWARDS[-2::-2])}] if v != 'UN')\n    return n\n",
]


@pytest.mark.parametrize("source", [networks.program(16), *map(total_of, FAITHFUL)])
def test_a_faithful_nihss_is_no_fault_and_has_the_mechanisms_of_the_reference(source: str) -> None:
    check = check_program(source, num_nodes=16, topology="inverted_star")
    assert check.fault is None
    assert check.findings == ("Checked without tables: f_total has more than 20000000 combinations of arguments.",)
    assert list(compare_mechanisms(diagram_nodes(source), diagram_nodes(networks.program(16)), {})) == []


def test_an_unfaithful_nihss_is_named_with_the_arguments_that_show_it() -> None:
    once = total_of("    n = 0\n    for v in [ITEMS]:\n        n += 1 if v == 'UN' else v\n    return n\n")
    (sentence,) = compare_mechanisms(diagram_nodes(once), diagram_nodes(networks.program(16)), {})
    assert sentence.startswith("total is ")
    given = dict(part.split(" = ") for part in sentence.split(" where ")[1].split(", in the reference")[0].split(", "))
    points = sum(0 if value == '"UN"' else int(value) for value in given.values())
    untested = sum(value == '"UN"' for value in given.values())
    assert len(given) == 15
    assert f"total is {points + untested} where" in sentence
    assert sentence.endswith(f"in the reference {points}.")
    raising = check_program(total_of("    return sum([ITEMS])\n"))
    assert raising.fault is not None
    assert (raising.fault.kind, raising.fault.node) == ("raises", "total")


def test_an_edge_without_effect_is_found_without_a_table() -> None:
    source = total_of("    n = sum(v for v in [ITEMS] if v != 'UN')\n    return n - item_11\n")
    assert "The edge 11 -> total has no effect." in check_program(source).findings


def test_a_comparison_that_takes_too_long_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "MAX_BRANCHES", 5_000)
    turned = total_of(f"    return sum(v for v in [{', '.join(BACKWARDS)}] if v != 'UN')\n")
    (sentence,) = compare_mechanisms(diagram_nodes(turned), diagram_nodes(networks.program(16)), {})
    assert sentence.startswith("total was not compared: it takes more than")
