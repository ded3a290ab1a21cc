"""Small random problems, with and without gold: a seed names a problem."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from random import Random

from calibrant.dsl.formulas.formula import STANDARD_OPERATORS, Formula, apply, var
from calibrant.dsl.formulas.text import STANDARD, Grammar
from calibrant.dsl.replayscm.disclosure import Blocks, Disclosure, HiddenOrder, HiddenRoots, Ordered, natural
from calibrant.dsl.replayscm.item import Problem, Sealed, Task, TaskKind
from calibrant.dsl.replayscm.scm import Scm, scm
from calibrant.dsl.replayscm.world import Intervention, Panel, World
from tests.support.replayscm.brute_force import replay

# --- Random problems of three to five variables: small enough that every question has a brute-force answer ------------
# Everything is drawn from a `random.Random`, so a seed names a problem. Mechanisms are drawn as truth tables and
# simulated here, row by row, without formulas.
SETTINGS = ("Ordered", "Block", "Hidden-order", "Hidden-roots")
LABELS = ("X2", "X9", "X10", "X11", "X12")  # natural order; as texts X9 would come last


@dataclass(frozen=True)
class Limits:
    """What the problems of a test look like.

    variables, endogenous: largest numbers; rows: largest number of training rows
    thresholds: units keep latent thresholds, so that the columns of roots are nested; otherwise they are arbitrary
    """

    variables: int = 4
    endogenous: int = 3
    rows: int = 24
    operators: tuple[str, ...] = STANDARD_OPERATORS
    allow_constants: bool = False
    thresholds: bool = True


def small_problems(seed: int, number: int, limits: Limits = Limits()) -> Iterator[Problem]:
    """Yield problems, the four disclosures in turn."""
    for index in range(number):
        rng = Random(f"{seed}/{index}")
        yield small_problem(rng, SETTINGS[index % len(SETTINGS)], limits, f"small_{seed}_{index}")


def small_problem(rng: Random, setting: str, limits: Limits, name: str) -> Problem:
    """One problem; nine of ten are simulated from an SCM, the others have arbitrary rows."""
    num_variables = limits.variables if rng.random() < 0.8 else 3
    num_endogenous = rng.randint(1, min(limits.endogenous, num_variables - 1))
    variables = LABELS[:num_variables]
    order = rng.sample(variables, num_variables)
    roots = order[: num_variables - num_endogenous]
    tables = {v: _Table(rng, order[: order.index(v)]) for v in order[len(roots) :]} if rng.random() < 0.9 else {}
    worlds = tuple(_worlds(rng, order, tables, limits))
    disclosure = _disclosure(rng, setting, order, roots)
    kind = TaskKind.ROOTS if setting == "Hidden-roots" else TaskKind.SCM
    grammar = Grammar(limits.operators, limits.allow_constants)
    task = Task(kind, disclosure, grammar, Panel(variables, worlds), setting == "Hidden-roots", 0)
    return Problem(name, task, Sealed(None, None, Panel(variables, ()), tuple(order)))


class _Table:
    """A random function of one to three earlier variables; one in ten is constant."""

    def __init__(self, rng: Random, earlier: Sequence[str]) -> None:
        most = min(3, len(earlier))
        self.parents = rng.sample(earlier, rng.choice([1, most, most]))
        last = (1 << (1 << len(self.parents))) - 1
        self.bits = rng.choice([0, last]) if rng.random() < 0.1 else rng.randint(1, last - 1)

    def value(self, row: Mapping[str, int]) -> int:
        return self.bits >> sum(row[parent] << i for i, parent in enumerate(self.parents)) & 1


def _worlds(rng: Random, order: Sequence[str], tables: Mapping[str, _Table], limits: Limits) -> Iterator[World]:
    """One to four worlds; a unit may be missing in one."""
    num_worlds = rng.randint(1, min(4, limits.rows))
    largest = limits.rows // num_worlds
    thresholds = [{variable: rng.random() for variable in order} for _ in range(largest)]
    always = rng.sample(order, 1) if rng.random() < 0.1 else []  # clamped in every world: never scored
    for index in range(num_worlds):
        intervention = _intervention(rng, order, always)
        present = largest if rng.random() < 0.7 else rng.randint(1, largest)
        chosen = sorted(rng.sample(range(largest), present))
        levels = {variable: rng.uniform(0.2, 0.8) for variable in order}
        if not limits.thresholds:
            thresholds = [{variable: rng.random() for variable in order} for _ in range(largest)]
        rows = [_row(rng, order, tables, intervention, thresholds[unit], levels) for unit in chosen]
        columns = tuple(sum(row[v] << r for r, row in enumerate(rows)) for v in natural(order))
        yield World(f"w{index}", intervention, natural(order), tuple(f"u{unit}" for unit in chosen), columns)


def _intervention(rng: Random, order: Sequence[str], always: Sequence[str]) -> Intervention:
    targets = {*always, *rng.sample(order, rng.choice([0, 1, 1, 2]))}
    constants = {target: rng.getrandbits(1) for target in sorted(targets) if rng.random() < 0.4}
    return Intervention(constants, natural(targets - constants.keys()))


def _row(
    rng: Random,
    order: Sequence[str],
    tables: Mapping[str, _Table],
    intervention: Intervention,
    thresholds: Mapping[str, float],
    levels: Mapping[str, float],
) -> dict[str, int]:
    row: dict[str, int] = {}
    for variable in order:
        if variable in intervention.constants:
            row[variable] = intervention.constants[variable]
        elif variable in intervention.assigned:
            row[variable] = rng.getrandbits(1)
        elif variable in tables:
            row[variable] = tables[variable].value(row)
        else:
            row[variable] = int(thresholds[variable] < levels[variable])
    return row


def _disclosure(rng: Random, setting: str, order: Sequence[str], roots: Sequence[str]) -> Disclosure:
    match setting:
        case "Ordered":
            return Ordered(tuple(order), natural(roots))
        case "Block":
            cut = rng.randint(len(roots), len(order))
            blocks = (natural(order[:cut]), natural(order[cut:]))
            return Blocks(tuple(block for block in blocks if block), natural(roots))
        case "Hidden-order":
            return HiddenOrder(natural(order), natural(roots))
    return HiddenRoots(natural(order), len(roots))


# Random small problems with gold, held-out worlds, thresholds and levels: what audits need. A seed names a problem
# Mechanisms are disjunctive normal forms of random truth tables; rows come from the oracle.
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
    task = Task(kind, _disclosure_of_gold(setting, order, model), STANDARD, training, True, shape.heldout)
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


def _disclosure_of_gold(setting: str, order: Sequence[str], model: Scm) -> Disclosure:
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
