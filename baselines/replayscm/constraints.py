"""Structure that a problem discloses, as constraints on a learned graph."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from calibrant.baselines.structure_learning.constraints import Constraints
from calibrant.baselines.structure_learning.frame import Mask
from calibrant.dsl.replayscm.disclosure import Disclosure


def disclosed_constraints(
    disclosure: Disclosure, variables: Sequence[str], *, max_parents: int | None = None
) -> Constraints:
    """Known roots have no parents, other variables the admissible ones.

    Where the roots are hidden they constrain nothing; use `with_roots` for a hypothesis about them.
    """

    def mask(names: Iterable[str]) -> Mask:
        return sum(1 << variables.index(name) for name in names)

    constraints = Constraints(
        allowed=tuple(mask(disclosure.admissible_parents(v)) for v in variables),
        required=(0,) * len(variables),
        max_parents=len(variables) - 1 if max_parents is None else max_parents,
        earlier=tuple(mask(disclosure.earlier(v)) for v in variables),
    )
    return constraints.with_roots(mask(disclosure.roots or ()))
