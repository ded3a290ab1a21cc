"""Second, independently written meanings: what the tests compare with. Nothing here calls dsl's own evaluation.

Formulas are nested tuples here, (operator, (argument, ...)), and everything recurses or enumerates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache, lru_cache
from itertools import product
from typing import TypeAlias

from calibrant.dsl.formulas.formula import Apply, Formula
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.replayscm.world import Intervention, World

Tree: TypeAlias = "str | bool | tuple[str, tuple[Tree, ...]]"

MOST_ARGUMENTS = {"not": 1, "and": None, "or": None, "xor": None, "iff": None, "if": 3}
FEWEST_ARGUMENTS = {"not": 1, "and": 2, "or": 2, "xor": 2, "iff": 2, "if": 3}


def truth(operator: str, bits: Sequence[int]) -> int:
    """Return the operators as docs/semantics.md, "Mechanism texts", words them."""
    match operator:
        case "not":
            return 1 - bits[0]
        case "and":
            return min(bits)
        case "or":
            return max(bits)
        case "xor":
            return bits.count(1) % 2  # odd number of ones
        case "iff":
            return int(len(set(bits)) == 1)  # all arguments equal, not a chain of biconditionals
        case "if":
            return bits[1] if bits[0] else bits[2]
    raise AssertionError(operator)


@lru_cache(maxsize=1024)
def tree_of(formula: Formula) -> Tree:
    """Return a formula as nested tuples, read off its postfix program from the end."""
    nodes = list(formula.nodes)

    def take() -> Tree:
        node = nodes.pop()
        if not isinstance(node, Apply):
            return node
        arguments = [take() for _ in range(node.arity)]
        return (node.operator, tuple(reversed(arguments)))

    tree = take()
    assert not nodes
    return tree


def tree_value(tree: Tree, value: Callable[[str], int]) -> int:
    """Return the value of a tree when `value` gives that of each name."""
    if isinstance(tree, bool):
        return int(tree)
    if isinstance(tree, str):
        return value(tree)
    operator, arguments = tree
    return truth(operator, [tree_value(argument, value) for argument in arguments])


def tree_nodes(tree: Tree) -> Iterator[Tree]:
    """Yield the tree and everything below it."""
    yield tree
    if isinstance(tree, tuple):
        for argument in tree[1]:
            yield from tree_nodes(argument)


def tree_depth(tree: Tree) -> int:
    return 1 + max(map(tree_depth, tree[1])) if isinstance(tree, tuple) else 1


def assignments(names: Sequence[str]) -> Iterator[dict[str, int]]:
    """All assignments in the order of table rows: the first name changes fastest."""
    for bits in product((0, 1), repeat=len(names)):
        yield dict(zip(names, reversed(bits), strict=True))


def table_bits(tree: Tree, names: Sequence[str]) -> int:
    """Return the truth table of a tree as a number, one row after another."""
    return sum(tree_value(tree, row.__getitem__) << r for r, row in enumerate(assignments(names)))


def replay(model: Scm, intervention: Intervention, observed: Callable[[str], int]) -> dict[str, int]:
    """One row of a world, each variable asked for the values it needs, in no fixed order."""
    trees = {variable: tree_of(mechanism) for variable, mechanism in model.mechanisms.items()}

    @cache
    def value(variable: str) -> int:
        if variable in intervention.constants:
            return intervention.constants[variable]
        if variable in intervention.assigned or variable not in trees:
            return observed(variable)
        return tree_value(trees[variable], value)

    return {variable: value(variable) for variable in (*model.roots, *trees)}


def observed_bit(world: World, row: int, variable: str) -> int:
    (column,) = (bits for name, bits in zip(world.variables, world.columns, strict=True) if name == variable)
    return column >> row & 1


def replay_world_row(model: Scm, world: World, row: int) -> dict[str, int]:
    return replay(model, world.intervention, lambda variable: observed_bit(world, row, variable))
