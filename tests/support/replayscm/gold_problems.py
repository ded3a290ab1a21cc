"""Random small problems with gold, held-out worlds, thresholds and levels: what audits need. A seed names a problem.

Mechanisms are disjunctive normal forms of random truth tables; rows come from the oracle.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from random import Random

from calibrant.dsl.formulas.formula import Formula, apply, var
from calibrant.dsl.formulas.text import STANDARD
from calibrant.dsl.replayscm.disclosure import Blocks, Disclosure, HiddenOrder, HiddenRoots, Ordered, natural
from calibrant.dsl.replayscm.item import Problem, Sealed, Task, TaskKind
from calibrant.dsl.replayscm.scm import Scm, scm
from calibrant.dsl.replayscm.world import Intervention, Panel, World
from tests.support.replayscm.oracles import replay

SETTINGS = ("Ordered", "Block", "Hidden-order", "Hidden-roots")
LEVELS = (0.2, 0.35, 0.5, 0.65, 0.8)  # of the paper, Table B.1


@dataclass(frozen=True)
class Shape:
    """Numbers of a problem: roots, endogenous variables, units of every world; parents bounds gold's mentions."""

    roots: int = 2
    endogenous: int = 2
    units: int = 4
    training: int = 2
    heldout: int = 2
    parents: int = 3
    window: int | None = None


def gold_problem(seed: int, setting: str = "Hidden-order", shape: Shape = Shape()) -> Problem:
    rng = Random(f"{seed} {shape}")
    order = [f"X{i + 1}" for i in range(shape.roots + shape.endogenous)]
    rng.shuffle(order)
    model = _model(rng, order, shape)
    units = tuple(f"u{i}" for i in range(shape.units))
    thresholds = {root: [rng.random() for _ in units] for root in model.roots}
    environments: dict[str, dict[str, float]] = {}
    worlds = []
    for index in range(shape.training + shape.heldout):
        held_out = index >= shape.training
        name = f"heldout_{index - shape.training:02d}" if held_out else f"train_{index:02d}"
        environments[name] = {root: rng.choice(LEVELS) for root in model.roots}
        intervention = Intervention() if index == 0 else random_intervention(rng, natural(order))
        values = {root: [int(t < environments[name][root]) for t in thresholds[root]] for root in model.roots}
        assigned = {v: [rng.getrandbits(1) for _ in units] for v in intervention.assigned}
        worlds.append(simulated(model, name, intervention, units, {**values, **assigned}))
    training, heldout = (
        Panel(natural(order), tuple(part)) for part in (worlds[: shape.training], worlds[shape.training :])
    )
    kind = TaskKind.ROOTS if setting == "Hidden-roots" else TaskKind.SCM
    task = Task(kind, _disclosure(setting, order, model), STANDARD, training, True, shape.heldout)
    sealed = Sealed(model, model.size, heldout, tuple(order), shape.window, environments=environments)
    return Problem(f"gold_{seed}", task, sealed)


def random_intervention(rng: Random, variables: Sequence[str]) -> Intervention:
    targets = natural(rng.sample(variables, rng.randint(1, min(3, len(variables) - 1))))
    if rng.random() < 0.5:
        return Intervention(assigned=targets)
    return Intervention({target: rng.getrandbits(1) for target in targets})


def simulated(
    model: Scm, name: str, intervention: Intervention, units: Sequence[str], given: Mapping[str, Sequence[int]]
) -> World:
    """Return a world by the oracle; `given` has the values of roots and of targets set row by row."""
    rows = []
    for index in range(len(units)):
        row = {v: values[index] for v, values in given.items()}
        rows.append(replay(model, intervention, row.__getitem__))
    columns = tuple(sum(row[v] << r for r, row in enumerate(rows)) for v in model.variables)
    return World(name, intervention, model.variables, tuple(units), columns)


def _model(rng: Random, order: Sequence[str], shape: Shape) -> Scm:
    mechanisms = {}
    for place in range(shape.roots, len(order)):
        earlier = order[:place] if shape.window is None else order[max(0, place - shape.window) : place]
        most = min(shape.parents, len(earlier))
        parents = natural(rng.sample(earlier, rng.choice([1, most, most])))
        mechanisms[order[place]] = normal_form(parents, rng.randrange(1, (1 << (1 << len(parents))) - 1))
    return scm(order[: shape.roots], mechanisms)


def normal_form(parents: Sequence[str], bits: int) -> Formula:
    """Return a formula for a table that is not constant 0; bit r is the value in row r."""
    terms = []
    for row in range(1 << len(parents)):
        if bits >> row & 1:
            literals = [var(p) if row >> i & 1 else apply("not", [var(p)]) for i, p in enumerate(parents)]
            terms.append(literals[0] if len(literals) == 1 else apply("and", literals))
    return terms[0] if len(terms) == 1 else apply("or", terms)


def _disclosure(setting: str, order: Sequence[str], model: Scm) -> Disclosure:
    match setting:
        case "Ordered":
            return Ordered(tuple(order), model.roots)
        case "Block":
            cut = len(model.roots) + 1
            return Blocks(tuple(natural(block) for block in (order[:cut], order[cut:]) if block), model.roots)
        case "Hidden-order":
            return HiddenOrder(model.variables, model.roots)
    return HiddenRoots(model.variables, len(model.roots))


def assignments_of_roots(thresholds: Mapping[str, Sequence[float]]) -> list[dict[str, int]]:
    """Every value of the roots that some unit shows at some levels; thresholds are of the units, by root."""
    bits = {
        tuple(int(own < level) for own, level in zip(unit, levels, strict=True))
        for unit in zip(*thresholds.values(), strict=True)
        for levels in product(LEVELS, repeat=len(thresholds))
    }
    return [dict(zip(thresholds, values, strict=True)) for values in bits]
