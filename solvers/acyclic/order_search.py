"""A small acyclic choice of parent sets for any number of variables, by a search over orders; not always least."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from solvers.acyclic.least_cost import Cost, Mask


def good_choice(options: Mapping[int, Mapping[Mask, Cost]], roots: Mask) -> tuple[Cost, dict[int, Mask]] | None:
    """An acyclic choice of small total cost, for any number of variables; None if there is none.

    The best order that is reached by moving one variable at a time, from one in which the cheapest comes first.
    """
    endogenous = sorted(options)
    ranked = {v: sorted(own, key=own.__getitem__) for v, own in options.items()}
    masks = {v: np.array(own, np.int64) for v, own in ranked.items()}

    def within(v: int, placed: Mask) -> Mask | None:
        fits = (masks[v] & ~np.int64(placed)) == 0
        return ranked[v][int(fits.argmax())] if fits.any() else None

    def chosen(order: Sequence[int]) -> dict[int, Mask] | None:
        placed, found = roots, dict[int, Mask]()
        for v in order:
            mask = within(v, placed)
            if mask is None:
                return None
            found[v] = mask
            placed |= 1 << v
        return found

    order, placed = list[int](), roots
    while len(order) < len(endogenous):
        ready = [(options[v][m], v) for v in endogenous if v not in order and (m := within(v, placed)) is not None]
        if not ready:
            return None
        order.append(min(ready)[1])
        placed |= 1 << order[-1]
    best = chosen(order)
    assert best is not None
    cost = sum(options[v][mask] for v, mask in best.items())
    improved = True
    while improved:
        improved = False
        for v in endogenous:
            rest = [u for u in order if u != v]
            for place in range(len(order)):
                moved = [*rest[:place], v, *rest[place:]]
                found = chosen(moved)
                total = cost if found is None else sum(options[u][mask] for u, mask in found.items())
                if found is not None and total < cost:
                    order, best, cost, improved = moved, found, total, True
    return cost, best
