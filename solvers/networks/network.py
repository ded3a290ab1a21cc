"""Networks with all that is computed of them: reading, wide functions, fixed points, attractors and cuts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from calibrant.dsl.networks.formulas import NetworkError, evaluate, mentioned_names
from calibrant.dsl.networks.functions import Function
from calibrant.dsl.networks.network import Difference, Network, derive_fields, read_file, read_rules
from calibrant.solvers.networks.cut import Cut, cut_network
from calibrant.solvers.networks.dynamics import Attractor, FixedPoints, find_attractors, find_fixed_points
from calibrant.solvers.networks.wide import SignProver, find_difference
from calibrant.solvers.outcome import Found, OutOfBudget


class BooleanNetwork(Network):
    """A network read from a published file; docs/networks.md has an example of each method."""

    def fixed_points(self, clamps: Mapping[str, int] | None = None) -> Found[FixedPoints] | OutOfBudget:
        """Return the states that the synchronous update leaves as they are.

        clamps: nodes that are held at 0 or 1
        """
        return find_fixed_points(self, clamps)

    def attractors(self, clamps: Mapping[str, int] | None = None) -> Found[tuple[Attractor, ...]] | OutOfBudget:
        """Return all attractors of the synchronous update with their basins, to 20 nodes that are not clamped."""
        return find_attractors(self, clamps)

    def cut(self, endogenous: Iterable[str] | None = None) -> Cut:
        """Return an acyclic part: without inputs and a least feedback set, or of chosen nodes."""
        return cut_network(self, endogenous)

    def _search_difference(self, name: str, first: Function, second: Function) -> Difference | None:
        row = find_difference(first, second)
        if row is None:
            return None
        values = [_value(function, row) for function in (first, second)]
        return Difference(name, row, values[0], values[1])


def _value(function: Function, row: Mapping[str, int]) -> int:
    """Return the value of a function in a row of its essential inputs; others have no effect and are 0."""
    if function.table is not None:
        return function.value(row)
    return evaluate(function.nodes, {name: row.get(name, 0) for name in mentioned_names(function.nodes)}, 1)


def read_network(path: Path | str, format: str | None = None, names: str = "id") -> BooleanNetwork:  # noqa: A002  # the published name
    """Return the network of a file; `NetworkError` names the line of what is refused, and what the file looks like.

    format: bnet, booleannet, rules, aeon, sbml-qual, ginml or zginml; None for content and ending of the file
    names: `id`, or `name` for the names of SBML species
    """
    path = Path(path)
    return parse_network(read_file(path), path.name, format, names)


def parse_network(content: bytes, file: str = "", chosen: str | None = None, names: str = "id") -> BooleanNetwork:
    """Return the network of the bytes of a file, see `read_network`."""
    rules = read_rules(content, file, chosen, names)
    try:
        return BooleanNetwork(**derive_fields(rules, SignProver().prove), file=file)
    except NetworkError as error:
        raise error.with_location(file=file) from None
