"""The first fault of programs from elsewhere: each planted fault has its kind, line and node."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant.dsl.causim.bundle import load_source, module_text
from calibrant.dsl.causim.external_programs.check import FaultKind, check_program, find_cycle
from calibrant.dsl.causim.generation import grow
from calibrant.dsl.causim.language.randomness import Unsupported
from calibrant.dsl.causim.topology import TOPOLOGIES, is_acyclic, is_connected
from tests.support.causim.hostile_programs import damaged
from tests.support.causim.vectors import vectors

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
