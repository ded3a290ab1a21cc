"""Structural causal models: local functions, orders, equivalence, against definitions checked by enumeration."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Mapping, Sequence
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.dsl.errors import CycleError
from calibrant.dsl.formulas.formula import Formula, apply, var
from calibrant.dsl.formulas.table import TruthTable
from calibrant.dsl.formulas.text import parse
from calibrant.dsl.replayscm.scm import Scm, local_function, scm, topological_order
from calibrant.dsl.text import natural_key
from tests.support.effort import examples
from tests.support.replayscm.oracles import Tree, assignments, tree_of, tree_value
from tests.support.replayscm.strategies import FULL_GRAMMAR, formula_of, scms, trees

SYMMETRIC = ("and", "or", "xor", "iff")
MODELS = scms()

# --- what a mechanism computes -----------------------------------------------------------------------------------


def _flips(tree: Tree, over: Sequence[str], variable: str) -> bool:
    """Whether flipping the variable changes the value in some row: the definition of a functional parent."""
    return any(
        tree_value(tree, row.__getitem__) != tree_value(tree, (row | {variable: 1 - row[variable]}).__getitem__)
        for row in assignments(over)
    )


@given(trees(("X2", "X10", "X1", "alarm"), grammar=FULL_GRAMMAR, max_size=14))
@settings(deadline=None, max_examples=examples(150))
def test_functional_parents_are_those_whose_flip_changes_the_value(tree: Tree) -> None:
    over = ("X1", "X2", "X10", "alarm")
    local = local_function(formula_of(tree))
    assert local.parents == tuple(variable for variable in over if _flips(tree, over, variable))
    for row, values in enumerate(assignments(local.parents)):
        everything = dict.fromkeys(over, 0) | values
        assert local.table[row] == (tree_value(tree, everything.__getitem__) == 1)
    assert local.table.num_vars == len(local.parents)


@pytest.mark.parametrize(
    ("text", "parents", "table"),
    [
        ("(xor X1 X5 X5)", ("X1",), TruthTable(1, 0b10)),
        ("(or X1 (and X1 X5))", ("X1",), TruthTable(1, 0b10)),
        ("(iff X5 X5)", (), TruthTable(0, 1)),
        ("(and X10 (not X2))", ("X2", "X10"), TruthTable(2, 0x4)),
        ("(or (and a b) (and a c) (and b c))", ("a", "b", "c"), TruthTable(3, 0xE8)),
    ],
)
def test_inert_mentions_are_no_parents(text: str, parents: tuple[str, ...], table: TruthTable) -> None:
    assert local_function(parse(text)) == (parents, table)


# --- orders ------------------------------------------------------------------------------------------------------

Mentions = Mapping[str, frozenset[str]]
ENDOGENOUS = ("X1", "X2", "X3", "X10", "Y")


def _mechanisms(mentions: Mentions) -> dict[str, Formula]:
    return {v: apply("iff", [var(u) for u in ("R", *sorted(parents))] * 2) for v, parents in mentions.items()}


@st.composite
def mention_graphs(draw: st.DrawFn) -> Mentions:
    """Who mentions whom, circles and self-mentions included, in any order of declaration."""
    nodes = draw(st.permutations(ENDOGENOUS))[: draw(st.integers(1, len(ENDOGENOUS)))]
    arcs = draw(st.sets(st.tuples(st.sampled_from(nodes), st.sampled_from(nodes)), max_size=7))
    return {v: frozenset(parent for parent, child in arcs if child == v) for v in nodes}


def _sorts(mentions: Mentions) -> list[tuple[str, ...]]:
    """Every topological sort, by trying all orders."""
    return [o for o in permutations(mentions) if all(mentions[v] <= set(o[: o.index(v)]) for v in o)]


def _on_or_below_a_cycle(mentions: Mentions) -> set[str]:
    """Variables from which one can walk to mentions for ever: more steps than there are variables."""
    walking = set(mentions)
    for _ in mentions:
        walking = {v for v in walking if mentions[v] & walking}
    return walking


@given(mention_graphs(), st.permutations(ENDOGENOUS))
@settings(deadline=None, max_examples=examples(200))
def test_the_order_is_the_smallest_sort_or_the_cycle_is_named(mentions: Mentions, latent: list[str]) -> None:
    for key in (natural_key, latent.index):
        stuck = _on_or_below_a_cycle(mentions)
        if stuck:
            with pytest.raises(CycleError) as caught:
                topological_order(_mechanisms(mentions), key)
            assert caught.value.variables == tuple(sorted(stuck, key=natural_key))
        else:
            smallest = min(_sorts(mentions), key=lambda order: [key(v) for v in order])
            assert topological_order(_mechanisms(mentions), key) == smallest


@pytest.mark.parametrize(
    ("mechanisms", "variables"),
    [
        ({"X1": "(and X4 X3)", "X4": "(xor X6 X1 X1)"}, ("X1", "X4")),  # an inert mention counts
        ({"X1": "(or X3 X1)"}, ("X1",)),
        ({"X2": "X10", "X10": "X2", "X3": "X2", "X4": "X6"}, ("X2", "X3", "X10")),
    ],
)
def test_a_cycle_of_mentions_is_no_model(mechanisms: dict[str, str], variables: tuple[str, ...]) -> None:
    with pytest.raises(CycleError, match=", ".join(variables)) as caught:
        scm(["X3", "X6"], {v: parse(text) for v, text in mechanisms.items()})
    assert caught.value.variables == variables


# --- models ------------------------------------------------------------------------------------------------------


@given(MODELS)
@settings(deadline=None, max_examples=examples(80))
def test_a_model_lists_what_it_consists_of(model: Scm) -> None:
    assert sorted(model.order) == sorted(model.mechanisms)
    assert model.variables == tuple(f"X{i + 1}" for i in range(len(model.variables)))
    assert set(model.variables) == {*model.roots, *model.endogenous}
    assert model.size == sum(len(formula.nodes) for formula in model.mechanisms.values())
    assert model.functional_edges == {
        (u, v) for v, f in model.mechanisms.items() for u in f.variables if _flips(tree_of(f), f.variables, u)
    }


def test_names_are_kept_in_natural_order_and_apart_from_the_caller() -> None:
    mechanisms = {"X10": var("X9"), "X3": var("X10")}
    model = scm(["X9", "X1"], mechanisms)
    mechanisms["X4"] = var("X1")
    assert (model.roots, model.endogenous, model.order) == (("X1", "X9"), ("X3", "X10"), ("X10", "X3"))
    assert model == scm(["X1", "X9"], {"X3": var("X10"), "X10": var("X9")})
    with pytest.raises(TypeError):
        model.mechanisms["X3"] = var("X1")  # type: ignore[index]


@given(MODELS)
@settings(deadline=None, max_examples=examples(60))
def test_a_model_survives_pickling_and_copying(model: Scm) -> None:
    signature = model.signature  # filled caches must not get in the way
    for twin in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model), copy.copy(model)):
        assert twin == model
        assert (twin.order, twin.signature) == (model.order, signature)
        assert twin.equivalent(model)


# --- equivalence -------------------------------------------------------------------------------------------------


def _rewritten(draw: st.DrawFn, tree: Tree, legal: Sequence[str]) -> Tree:
    """Return the same function written otherwise, by rules that hold for every formula."""
    if isinstance(tree, tuple):
        operator, arguments = tree
        parts = [_rewritten(draw, argument, legal) for argument in arguments]
        tree = (operator, tuple(draw(st.permutations(parts)) if operator in SYMMETRIC else parts))
    inert = draw(st.sampled_from(legal))
    match draw(st.sampled_from(["as it is", "double negation", "parity", "absorption"])):
        case "double negation":
            return ("not", (("not", (tree,)),))
        case "parity":
            return ("xor", (tree, inert, inert))
        case "absorption":
            return ("or", (tree, ("and", (inert, tree))))
    return tree


def _earlier(model: Scm, variable: str) -> list[str]:
    """List the variables that a mechanism may mention without a cycle, whatever the others mention."""
    return [*model.roots, *model.order[: model.order.index(variable)]]


def _with(model: Scm, mechanisms: Mapping[str, Formula]) -> Scm:
    return scm(model.roots, {**model.mechanisms, **mechanisms})


@given(MODELS, st.data())
@settings(deadline=None, max_examples=examples(80))
def test_rewriting_mechanisms_keeps_the_meaning(model: Scm, data: st.DataObject) -> None:
    @st.composite
    def rewritten(draw: st.DrawFn) -> dict[str, Formula]:
        return {v: formula_of(_rewritten(draw, tree_of(model.mechanisms[v]), _earlier(model, v))) for v in model.order}

    other = _with(model, data.draw(rewritten()))
    assert model.equivalent(other)
    assert other.equivalent(model)
    assert (model.signature, model.functional_edges) == (other.signature, other.functional_edges)


@given(MODELS, st.data())
@settings(deadline=None, max_examples=examples(80))
def test_flipping_one_entry_of_one_mechanism_changes_the_meaning(model: Scm, data: st.DataObject) -> None:
    variable = data.draw(st.sampled_from(model.order))
    row = {name: data.draw(st.booleans()) for name in _earlier(model, variable)}
    literals = [var(name) if bit else apply("not", [var(name)]) for name, bit in row.items()]
    this_row = apply("and", literals) if len(literals) > 1 else literals[0]
    other = _with(model, {variable: apply("xor", [model.mechanisms[variable], this_row])})
    assert not model.equivalent(other)
    assert not other.equivalent(model)
    assert [v for v in model.order if model.local_functions[v] != other.local_functions[v]] == [variable]


def test_a_root_is_no_mechanism() -> None:
    one = scm(["X1", "X2"], {"X3": var("X1")})
    assert not one.equivalent(scm(["X1"], {"X2": var("X1"), "X3": var("X1")}))
    assert not one.equivalent(scm(["X1"], {"X3": var("X1")}))
