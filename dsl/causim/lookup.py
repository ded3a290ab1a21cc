"""A canonical model as a program whose mechanisms look values up in tables; `render` writes rules instead."""

from __future__ import annotations

from itertools import product
from math import prod

from calibrant.dsl.causim.bundle import Bundle, Definition
from calibrant.dsl.causim.model import Model
from calibrant.dsl.causim.render import assemble_bundle, variable
from calibrant.dsl.causim.values import value_of

MAX_CELLS = 400  # of one table; a longer literal is no reading for people or models


def table_bundle_of(model: Model, topology: str = "") -> Bundle | None:
    """Return a program of the model with a table for each mechanism; None where one has more than `MAX_CELLS`."""
    definitions = (_lookup(model, i) for i in range(len(model)))
    mechanisms = [definition for definition in definitions if definition is not None]
    return assemble_bundle(model, mechanisms, topology) if len(mechanisms) == len(model) else None


def _lookup(model: Model, i: int) -> Definition | None:
    """Return a mechanism that reads its table; where Python takes two values for equal, their texts are the keys."""
    node, local = model.nodes[i], model.system[i]
    axes = [*(model.system[parent].domain for parent in local.parents), node.support]
    if prod(map(len, axes)) > MAX_CELLS:
        return None
    plain_axes = [[value_of(symbol) for symbol in axis] for axis in axes]
    is_distinct = all(len(set(values)) == len(values) for values in plain_axes)
    outcomes = (value_of(local.domain[int(code)]) for code in local.table.flat)
    cells = [
        f"{tuple(row) if is_distinct else str(list(row))!r}: {outcome!r}"
        for row, outcome in zip(product(*plain_axes), outcomes, strict=True)
    ]
    arguments = [*map(variable, node.parents), f"u_{node.name}"]
    joined = ", ".join(arguments)
    key = f"({joined}{',' if len(arguments) == 1 else ''})" if is_distinct else f"str([{joined}])"
    body = f"table = {{{', '.join(cells)}}}\nreturn table[{key}]"
    return Definition(f"f_{node.name}", arguments, body, f"Mechanism of {node.name}.")
