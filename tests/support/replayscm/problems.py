"""Hypothesis strategies for problems and for legal answers to them; small enough to be checked by enumeration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from hypothesis import strategies as st

from calibrant.dsl.formulas.formula import STANDARD_OPERATORS, Formula
from calibrant.dsl.formulas.text import Grammar, render
from calibrant.dsl.replayscm.disclosure import Blocks, Disclosure, HiddenOrder, HiddenRoots, Ordered
from calibrant.dsl.replayscm.item import Problem, Sealed, Task, TaskKind
from calibrant.dsl.replayscm.scm import Scm, scm
from calibrant.dsl.replayscm.world import Intervention, Panel, World
from calibrant.dsl.text import natural_key
from tests.support.replayscm.strategies import arbitrary_worlds, formulas, scms, simulated_worlds

Draw = st.DrawFn
SETTINGS = ("Ordered", "Block", "Hidden-order", "Hidden-roots", "Alternative")


@st.composite
def latent_orders(draw: Draw, model: Scm) -> tuple[str, ...]:
    """Every variable once, each after those its mechanism mentions; roots may stand anywhere before their children."""
    waiting, order = list(model.variables), list[str]()
    while waiting:
        ready = [v for v in waiting if v in model.roots or model.mechanisms[v].mentioned <= {*order}]
        order.append(draw(st.sampled_from(ready)))
        waiting.remove(order[-1])
    return tuple(order)


@st.composite
def partitions(draw: Draw, order: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Contiguous blocks of an order, each in natural order."""
    cuts = sorted(draw(st.sets(st.integers(1, max(1, len(order) - 1)), max_size=2)))
    blocks = [order[a:b] for a, b in pairwise([0, *cuts, len(order)]) if a < b]
    return tuple(tuple(sorted(block, key=natural_key)) for block in blocks)


def _disclosure(draw: Draw, setting: str, model: Scm, latent: tuple[str, ...]) -> Disclosure:
    match setting:
        case "Ordered":
            return Ordered(latent, model.roots)
        case "Block":
            return Blocks(draw(partitions(latent)), model.roots)
        case "Hidden-order":
            return HiddenOrder(model.variables, model.roots)
        case "Hidden-roots":
            return HiddenRoots(model.variables, len(model.roots))
        case _:  # an Alternative-SCM item has one of the first three
            return _disclosure(draw, draw(st.sampled_from(SETTINGS[:3])), model, latent)


def _named(worlds: Sequence[World], split: str) -> tuple[World, ...]:
    """Return the worlds with ids of their split, and targets in natural order as a loader gives them."""
    return tuple(
        replace(world, id=f"{split}_{i:02d}", intervention=_natural(world.intervention))
        for i, world in enumerate(worlds)
    )


def _natural(intervention: Intervention) -> Intervention:
    constants = {v: intervention.constants[v] for v in sorted(intervention.constants, key=natural_key)}
    return Intervention(constants, tuple(sorted(intervention.assigned, key=natural_key)))


@st.composite
def problems(draw: Draw, *, settings: Sequence[str] = SETTINGS, max_worlds: int = 3) -> Problem:
    """Return a problem of one of the settings; its rows come from gold or, less often, from nowhere."""
    setting = draw(st.sampled_from(settings))
    model = draw(scms(max_endogenous=3))
    latent = draw(latent_orders(model))
    make = simulated_worlds if draw(st.integers(0, 3)) else arbitrary_worlds
    training = Panel(model.variables, _named(draw(make(model, max_worlds=max_worlds)), "train"))
    heldout = Panel(model.variables, _named(draw(make(model, max_worlds=max_worlds)), "heldout"))
    kind = {"Hidden-roots": TaskKind.ROOTS, "Alternative": TaskKind.ALTERNATIVE}.get(setting, TaskKind.SCM)
    disclosure = _disclosure(draw, setting, model, latent)
    grammar = Grammar(STANDARD_OPERATORS, draw(st.booleans()))
    reference = None
    if kind is TaskKind.ALTERNATIVE:
        reference = scm(model.roots, draw(legal_maps(disclosure, latent)))
    task = Task(kind, disclosure, grammar, training, draw(st.booleans()), len(heldout.worlds), reference)
    return Problem("I1", task, Sealed(model, model.size, heldout, latent))


@st.composite
def legal_maps(draw: Draw, disclosure: Disclosure, latent: Sequence[str]) -> dict[str, Formula]:
    """Return a mechanism map that the disclosure admits; with hidden roots, those that it leaves out are its roots."""
    known = disclosure.roots
    if known is None:
        roots = draw(st.permutations(disclosure.variables))[: disclosure.num_roots]
        return draw(legal_maps(HiddenOrder(disclosure.variables, tuple(roots)), latent))
    order = [v for v in draw(st.permutations(sorted(latent))) if v not in known]
    match disclosure:
        case Ordered():
            order.sort(key=disclosure.order.index)
        case Blocks():
            order.sort(key=lambda v: [v in block for block in disclosure.blocks].index(True))
    made: dict[str, Formula] = {}
    for index, variable in enumerate(order):
        allowed = {*known, *order[:index]}
        match disclosure:
            case Ordered():
                allowed &= {*disclosure.order[: disclosure.order.index(variable)]}
            case Blocks():
                place = [variable in block for block in disclosure.blocks].index(True)
                allowed &= {v for block in disclosure.blocks[: place + 1] for v in block}
        made[variable] = draw(formulas(sorted(allowed), max_size=6))
    return made


def answer_of(problem: Problem, mechanisms: dict[str, Formula]) -> dict[str, object]:
    """Return the answer object that submits a map."""
    texts = {variable: render(formula) for variable, formula in mechanisms.items()}
    roots = [v for v in problem.task.variables if v not in mechanisms]
    match problem.task.kind:
        case TaskKind.SCM | TaskKind.EPISODE:
            return {"mechanisms": texts}
        case TaskKind.ROOTS:
            return {"roots": roots, "mechanisms": texts}
        case TaskKind.ALTERNATIVE:
            return {"alternative": {"mechanisms": texts}}
