"""Hypothesis strategies for the values of the language, and for problems small enough to be enumerated."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from itertools import pairwise

from hypothesis import strategies as st

from calibrant.dsl.formulas.formula import OPERATORS, STANDARD_OPERATORS, Formula, apply, constant, var
from calibrant.dsl.formulas.table import PartialTable, TruthTable, full_mask
from calibrant.dsl.formulas.text import STANDARD, Grammar, render
from calibrant.dsl.replayscm.disclosure import Blocks, Disclosure, HiddenOrder, HiddenRoots, Ordered
from calibrant.dsl.replayscm.item import Problem, Sealed, Task, TaskKind
from calibrant.dsl.replayscm.scm import Scm, scm
from calibrant.dsl.replayscm.world import Intervention, Panel, World
from calibrant.dsl.text import natural_key
from tests.support.replayscm.brute_force import FEWEST_ARGUMENTS, MOST_ARGUMENTS, Tree, replay

# --- Hypothesis strategies for the values of the language: formulas, tables, SCMs, interventions, worlds --------------
# Bounds are keyword arguments with small defaults, so that every draw is cheap enough to be checked by enumeration.
Draw = st.DrawFn

NAMES = ("X1", "X2", "X3", "X9", "X10", "X04", "Y", "_z2", "alarm", "not", "xor", "if")  # operator names are names too
SPACES = " \t\n\r\v\f\x1c\x1d\x1e\x1f\x85\xa0\u2003\u3000"  # these separate tokens
WORD_BOUNDARIES = (1, 63, 64, 65, 128)  # row counts at which a packed column starts or fills a 64-bit word
MANY_ARGUMENTS = 5


def names(*, min_size: int = 1, max_size: int = 5) -> st.SearchStrategy[tuple[str, ...]]:
    """Different variable names, in any order."""
    return st.lists(st.sampled_from(NAMES), min_size=min_size, max_size=max_size, unique=True).map(tuple)


def grammars() -> st.SearchStrategy[Grammar]:
    """Any set of operators, with or without constants."""
    operators = st.lists(st.sampled_from(sorted(OPERATORS)), unique=True).map(tuple)
    return st.builds(Grammar, operators, st.booleans())


def formula_of(tree: Tree) -> Formula:
    """Return the formula that nested tuples spell."""
    if isinstance(tree, tuple):
        return apply(tree[0], [formula_of(argument) for argument in tree[1]])
    return constant(tree) if isinstance(tree, bool) else var(tree)


@st.composite
def trees(draw: Draw, over: Sequence[str], *, grammar: Grammar = STANDARD, max_size: int = 12) -> Tree:
    """Formulas of at most `max_size` nodes over the given names, as nested tuples."""
    atoms: list[Tree] = [*over, *((False, True) if grammar.allow_constants else ())]

    def grow(budget: int) -> Tree:
        fitting = [op for op in grammar.operators if FEWEST_ARGUMENTS[op] < budget]
        if not fitting or draw(st.integers(0, 4)) == 0:
            return draw(st.sampled_from(atoms))
        operator = draw(st.sampled_from(fitting))
        most = min(MOST_ARGUMENTS[operator] or MANY_ARGUMENTS, budget - 1)
        arity = draw(st.integers(FEWEST_ARGUMENTS[operator], most))
        arguments: list[Tree] = []
        spare = budget - 1 - arity  # nodes that are left when every argument has got one
        for _ in range(arity):
            share = draw(st.integers(0, spare))
            spare -= share
            arguments.append(grow(1 + share))
        return (operator, tuple(arguments))

    return grow(max_size)


def formulas(over: Sequence[str], *, grammar: Grammar = STANDARD, max_size: int = 12) -> st.SearchStrategy[Formula]:
    """Formulas of at most `max_size` nodes over the given names."""
    return trees(over, grammar=grammar, max_size=max_size).map(formula_of)


FULL_GRAMMAR = Grammar(tuple(OPERATORS), allow_constants=True)


def any_formulas(*, max_size: int = 12) -> st.SearchStrategy[Formula]:
    """Formulas of the largest grammar over some names."""
    return names().flatmap(lambda over: formulas(over, grammar=FULL_GRAMMAR, max_size=max_size))


@st.composite
def spellings(draw: Draw, tree: Tree) -> str:
    """Return a legal text of a tree: white space wherever it may stand, some atoms in one layer of parentheses."""
    gap = st.text(SPACES, max_size=2)

    def tokens(part: Tree) -> list[str]:
        if isinstance(part, tuple):
            return ["(", part[0], *(token for argument in part[1] for token in tokens(argument)), ")"]
        atom = part if isinstance(part, str) else str(int(part))
        return ["(", atom, ")"] if draw(st.booleans()) else [atom]

    text = draw(gap)
    for token in tokens(tree):
        touching = bool(text) and text[-1] not in SPACES + "()" and token not in "()"
        text += draw(st.text(SPACES, min_size=1, max_size=2) if touching else gap) + token
    return text + draw(gap)


@st.composite
def truth_tables(draw: Draw, *, min_vars: int = 0, max_vars: int = 5) -> TruthTable:
    num_vars = draw(st.integers(min_vars, max_vars))
    return TruthTable(num_vars, draw(st.integers(0, full_mask(num_vars))))


@st.composite
def partial_tables(draw: Draw, *, min_vars: int = 0, max_vars: int = 4) -> PartialTable:
    num_vars = draw(st.integers(min_vars, max_vars))
    care, value = (draw(st.integers(0, full_mask(num_vars))) for _ in range(2))
    return PartialTable(num_vars, care, value & care)


@st.composite
def scms(
    draw: Draw,
    *,
    max_roots: int = 3,
    max_endogenous: int = 4,
    operators: tuple[str, ...] = STANDARD_OPERATORS,
    max_size: int = 9,
) -> Scm:
    """Acyclic SCMs over X1, X2, ... with at least one root and one mechanism; labels do not tell the order."""
    num_roots, num_endogenous = draw(st.integers(1, max_roots)), draw(st.integers(1, max_endogenous))
    order = draw(st.permutations([f"X{i + 1}" for i in range(num_roots + num_endogenous)]))
    grammar = Grammar(operators)
    mechanisms = {
        order[i]: draw(formulas(order[:i], grammar=grammar, max_size=max_size)) for i in range(num_roots, len(order))
    }
    return scm(order[:num_roots], mechanisms)


@st.composite
def interventions(draw: Draw, variables: Collection[str]) -> Intervention:
    """None, constants, per-row assignments or a mixture, on roots and endogenous variables alike."""
    targets = draw(st.lists(st.sampled_from(sorted(variables)), unique=True, max_size=4))
    clamps = [(target, draw(st.sampled_from([0, 1, None]))) for target in targets]
    constants = {target: bit for target, bit in clamps if bit is not None}
    return Intervention(constants, tuple(target for target, bit in clamps if bit is None))


@st.composite
def row_counts(draw: Draw, *, max_worlds: int = 3) -> tuple[int, ...]:
    """How many rows each world has, at least one; in total a few or exactly a word boundary."""
    total = draw(st.sampled_from(WORD_BOUNDARIES) | st.integers(1, 8))
    num_cuts = draw(st.integers(0, min(max_worlds, total) - 1))
    inner = st.sets(st.integers(1, max(1, total - 1)), min_size=num_cuts, max_size=num_cuts)
    cuts = [0, *sorted(draw(inner)), total]
    return tuple(end - start for start, end in pairwise(cuts))


def _world(index: int, num_rows: int, intervention: Intervention, columns: dict[str, int]) -> World:
    units = tuple(f"u{r:02d}" for r in range(num_rows))
    return World(f"world_{index}", intervention, tuple(columns), units, tuple(columns.values()))


def _worlds(
    draw: Draw, model: Scm, max_worlds: int, columns: Callable[[Intervention, int, dict[str, int]], dict[str, int]]
) -> tuple[World, ...]:
    worlds = []
    for index, num_rows in enumerate(draw(row_counts(max_worlds=max_worlds))):
        intervention = draw(interventions(model.variables))
        drawn = {variable: draw(st.integers(0, (1 << num_rows) - 1)) for variable in model.variables}
        worlds.append(_world(index, num_rows, intervention, columns(intervention, num_rows, drawn)))
    return tuple(worlds)


@st.composite
def arbitrary_worlds(draw: Draw, model: Scm, *, max_worlds: int = 3) -> tuple[World, ...]:
    """Worlds over the model's variables whose rows no SCM need explain; constant targets do hold their constant."""

    def clamped(intervention: Intervention, num_rows: int, drawn: dict[str, int]) -> dict[str, int]:
        mask = (1 << num_rows) - 1
        return drawn | {target: mask * bit for target, bit in intervention.constants.items()}

    return _worlds(draw, model, max_worlds, clamped)


@st.composite
def simulated_worlds(draw: Draw, model: Scm, *, max_worlds: int = 3) -> tuple[World, ...]:
    """Worlds that the model itself produced; the oracle simulates them, not the code under test."""

    def simulated(intervention: Intervention, num_rows: int, drawn: dict[str, int]) -> dict[str, int]:
        columns = dict.fromkeys(drawn, 0)
        for r in range(num_rows):
            row = replay(model, intervention, {variable: bits >> r & 1 for variable, bits in drawn.items()}.__getitem__)
            for variable, bit in row.items():
                columns[variable] |= bit << r
        return columns

    return _worlds(draw, model, max_worlds, simulated)


# --- Hypothesis strategies for problems and for legal answers to them; small enough to be checked by enumeration ------
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
