"""The first fault of programs from elsewhere: each planted fault has its kind, line and node."""

from __future__ import annotations

import ast
import random
from itertools import permutations, product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant.dsl.causim import networks
from calibrant.dsl.causim.bundle import load_source, module_text
from calibrant.dsl.causim.external_programs.check import (
    FaultKind,
    StructureDifference,
    check_program,
    compare_mechanisms,
    compare_structure,
    describe_effects,
    diagram_nodes,
    find_cycle,
)
from calibrant.dsl.causim.external_programs.sources import lower_function
from calibrant.dsl.causim.generated_functions import TOPOLOGIES, graph_of, is_acyclic, is_connected, vacuity
from calibrant.dsl.causim.generation import grow
from calibrant.dsl.causim.language import tables
from calibrant.dsl.causim.language.execution_limits import StepBudget
from calibrant.dsl.causim.language.randomness import Unsupported
from calibrant.dsl.causim.language.statements import Function, function
from calibrant.dsl.causim.language.tables import DecisionBudget, Decisions, Diagram, diagram, reading_order
from calibrant.dsl.causim.model import ModelError, symbol
from calibrant.dsl.causim.networks import nihss
from tests.support.causim.hostile_programs import damaged
from tests.support.causim.models import vectors

SAMPLER = "def U_{0}():\n    return random.choice([0, 1])\n"
CHAIN = f"""import random
{SAMPLER.format("A")}
{SAMPLER.format("B")}
def f_A(u):
    return u

def f_B(a, u):
    return a + u

def run_once(seed=None):
    random.seed(seed)
    ua = U_A()
    a = f_A(ua)
    ub = U_B()
    b = f_B(a, ub)
    return {{"A": a, "B": b}}
"""


def planted(*edits: tuple[str, str]) -> str:
    """Return the chain with texts replaced, each of which it holds exactly once."""
    text = CHAIN
    for old, new in edits:
        assert text.count(old) == 1, f"{old!r} occurs {text.count(old)} times"
        text = text.replace(old, new)
    return text


THIRD_SAMPLER = ("def f_A", SAMPLER.format("C") + "def f_A")
CYCLE = (("def f_A(u):", "def f_A(b, u):"), ("f_A(ua)", "f_A(b, ua)"))
Planted = tuple[str, FaultKind, int | None, str | None, str]  # source, kind, line, node, words of the sentence
FAULTS: list[Planted] = [
    (planted(("return a + u", "retrun a + u")), FaultKind.SYNTAX, 12, None, "line 12"),
    (planted(("return a + u", "return a + u\n\x00")), FaultKind.SYNTAX, None, None, "null character"),
    (planted(("return a + u", "return open(a)")), FaultKind.UNSUPPORTED, 11, "B", "f_B"),
    (planted(("import random\n", "import random\nprint(1)\n")), FaultKind.UNSUPPORTED, 2, None, "Expr at the top"),
    (planted(("def f_A(u):", "def g_A(u):")), FaultKind.UNSUPPORTED, 8, None, "g_A"),
    (planted(("ua = U_A()", "ua = U_A() + 1")), FaultKind.UNSUPPORTED, 16, None, "BinOp"),
    (planted(("f_B(a, ub)", "f_B(a)")), FaultKind.UNSUPPORTED, 19, None, "exactly its parameters"),
    (planted(("def run_once", "def f_C(u):\n    return u\n\ndef run_once")), FaultKind.NO_SCM, 14, "C", "calls f_C"),
    ("import random\n" + SAMPLER.format("A"), FaultKind.NO_SCM, None, None, "no function run_once"),
    ("def run_once():\n    return {}\n", FaultKind.NO_SCM, None, None, "no sampler"),
    (planted(("f_B(a, ub)", "f_B(a, ua)")), FaultKind.CONFOUNDING, 19, "B", "U_A enters the equations of A and B"),
    (planted(("f_B(a, ub)", "f_B(a, a)")), FaultKind.CONFOUNDING, 19, "B", "0 noise variables"),
    (
        planted(THIRD_SAMPLER, ("    b = f_B(a, ub)", "    uc = U_C()\n    b = f_B(uc, ub)")),
        FaultKind.CONFOUNDING,
        22,
        "B",
        "2 noise variables",
    ),
    (planted(THIRD_SAMPLER), FaultKind.CONFOUNDING, 8, None, "U_C enters no equation"),
    (planted(*CYCLE), FaultKind.CYCLE, 17, "A", "A -> B -> A"),
    (
        planted(("def f_B(a, u):\n    return a + u", "def f_B(u):\n    return u"), ("f_B(a, ub)", "f_B(ub)")),
        FaultKind.DISCONNECTED,
        None,
        None,
        "not connected",
    ),
    (
        planted(("    a = f_A(ua)\n", ""), ("    return {", "    a = f_A(ua)\n    return {")),
        FaultKind.RAISES,
        18,
        "B",
        "uses the result of f_A before",
    ),
    (planted(("return a + u", "return a / u")), FaultKind.RAISES, 11, "B", "ZeroDivisionError"),
    (
        planted((SAMPLER.format("A"), SAMPLER.format("A").replace("random.choice([0, 1])", "[0][1]"))),
        FaultKind.RAISES,
        2,
        "A",
        "U_A raises",
    ),
]


def test_each_planted_fault_has_its_kind_line_and_node() -> None:
    assert {kind for _, kind, *_ in FAULTS} | {FaultKind.NODE_COUNT, FaultKind.TOPOLOGY} == set(FaultKind)
    for source, kind, line, node, words in FAULTS:
        fault = check_program(source).fault
        assert fault is not None, source
        assert (fault.kind, fault.line, fault.node) == (kind, line, node), fault
        assert words in fault.sentence
        assert "\n" not in fault.sentence
        assert fault.sentence.endswith(".")
        if kind is not FaultKind.DISCONNECTED:  # which the loader leaves to the checks of a pool
            with pytest.raises(Unsupported):
                load_source(source)


def test_the_first_fault_in_the_order_of_the_checks_is_stated() -> None:
    """Each kind is planted together with all later ones that can stand beside it."""
    assert check_program(CHAIN).fault is None
    count, topology = check_program(CHAIN, num_nodes=3, topology="star"), check_program(CHAIN, topology="inverted_star")
    assert count.fault is not None
    assert count.fault.kind is FaultKind.NODE_COUNT
    assert "2 nodes where 3" in count.fault.sentence
    assert topology.fault is None  # two nodes satisfy every topology
    confounded = check_program(planted(("f_B(a, ub)", "f_B(a, ua)")), num_nodes=3)
    assert confounded.fault is not None
    assert confounded.fault.kind is FaultKind.NODE_COUNT
    cyclic = check_program(planted(*CYCLE, ("f_A(b, ua)", "f_A(b, ub)")))
    assert cyclic.fault is not None
    assert cyclic.fault.kind is FaultKind.CONFOUNDING


def test_a_program_without_a_fault_has_its_findings() -> None:
    check = check_program(planted(("return a + u", "return u"), ("return u\n\ndef f_B", "return 1\n\ndef f_B")))
    assert check.fault is None
    assert check.model is not None
    assert check.findings == ("The edge A -> B has no effect.", "A has one value only.")


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_grown_programs_pass_and_have_the_graph_of_their_bundle(topology: str) -> None:
    for version in grow(7, "check", topology, 5):
        check = check_program(module_text(version.bundle), num_nodes=version.bundle.v, topology=topology)
        assert check.fault is None
        assert check.findings == ()
        assert check.graph == {name: tuple(parents) for name, parents in version.bundle.graph.parents.items()}


@given(st.integers(0, 2**32))
def test_damaged_programs_have_a_fault_exactly_where_the_loader_or_the_graph_refuses(seed: int) -> None:
    source = damaged(random.Random(seed), CHAIN)
    check = check_program(source)
    try:
        model = load_source(source)
    except Unsupported:
        assert check.fault is not None
    else:
        assert (check.fault is None) == is_connected({node.name: node.parents for node in model.nodes})


@given(st.dictionaries(st.sampled_from("abcdef"), st.lists(st.sampled_from("abcdef"), max_size=3), min_size=1))
def test_a_cycle_is_found_iff_there_is_one(edges: dict[str, list[str]]) -> None:
    graph = {node: tuple(parent for parent in parents if parent in edges) for node, parents in edges.items()}
    cycle = find_cycle(graph)
    assert bool(cycle) == (not is_acyclic(graph))
    for parent, child in zip(cycle, [*cycle[1:], *cycle[:1]], strict=True):
        assert parent in graph[child]


def test_a_graph_of_another_topology_is_a_fault() -> None:
    star = grow(7, "check", "star", 4)[-1]
    fault = check_program(module_text(star.bundle), topology="chain").fault
    assert fault is not None
    assert fault.kind is FaultKind.TOPOLOGY
    assert "chain" in fault.sentence


def test_the_vectors_of_the_loader_are_faulted_where_they_are_not_supported() -> None:
    for record in vectors("loader"):
        check = check_program(record["source"])
        assert (check.fault is None) == record["expect"]["supported"], check


# --- Mechanisms without tables: values, effects and differences against plain enumeration; NIHSS in several hands -----


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
    for index, ((first, outputs), (second, others)) in enumerate(product(read_tables, repeat=2)):
        functions = Decisions([3, 2, 3], orders[index % 6], DecisionBudget())
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


# --- Structure differences by plain sets: canonical names, mapped names, missing, extra and reversed edges ------------
REFERENCE = {"Smoking": (), "Tar": ("Smoking",), "Lung cancer": ("Tar", "Smoking")}


def test_names_match_without_case_and_punctuation() -> None:
    graph = {"lung_cancer": ("SMOKING", "tar"), "tar": ("SMOKING",), "SMOKING": ()}
    difference = compare_structure(graph, REFERENCE)
    assert difference == StructureDifference((), (), (), (), ())
    assert difference.is_match


def test_every_kind_of_difference_is_listed_in_the_names_of_the_reference() -> None:
    graph = {"smoking": ("tar",), "tar": (), "age": (), "cancer": ("tar", "age")}
    difference = compare_structure(graph, REFERENCE)
    assert difference == StructureDifference(
        missing_nodes=("Lung cancer",),
        extra_nodes=("age", "cancer"),
        missing_edges=(("Smoking", "Lung cancer"), ("Tar", "Lung cancer")),
        extra_edges=(("Tar", "cancer"), ("age", "cancer")),
        reversed_edges=(("Smoking", "Tar"),),
    )
    assert not difference.is_match
    mapped = compare_structure(graph, REFERENCE, {"cancer": "Lung cancer"})
    assert (mapped.missing_nodes, mapped.extra_nodes) == ((), ("age",))
    assert mapped.missing_edges == (("Smoking", "Lung cancer"),)
    assert mapped.extra_edges == (("age", "Lung cancer"),)


@pytest.mark.parametrize(
    ("graph", "names", "message"),
    [
        ({"a": (), "A": ()}, {}, "one name"),
        ({"a": ()}, {"b": "Tar"}, "the program has no such node"),
        ({"a": ()}, {"a": "Coal"}, "the reference has no such node"),
        ({"tar": (), "a": ()}, {"a": "Tar"}, "the same name"),
    ],
)
def test_ambiguous_names_are_refused_in_one_line(
    graph: dict[str, tuple[str, ...]], names: dict[str, str], message: str
) -> None:
    with pytest.raises(ModelError, match=message):
        compare_structure(graph, REFERENCE, names)


def test_the_stroke_scale_is_a_reference() -> None:
    reference = graph_of(nihss(4))
    assert compare_structure({"1A": (), "1b": (), "1c": (), "Total": ("1A", "1b", "1c")}, reference).is_match
    without_edge = compare_structure({"1A": (), "1b": (), "1c": (), "Total": ("1A", "1b")}, reference)
    assert without_edge.missing_edges == (("1c", "total"),)
