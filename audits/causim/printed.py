"""What the paper's printed tables say of their own noise.

Rows are pass@1 as printed, by number of nodes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from calibrant.audits.finding import Finding, Standing

NOISE = "printed_noise"
GRAIN = "grain"


def repeated_rows(one: Sequence[str], other: Sequence[str], gains: Sequence[Sequence[str]], where: str) -> Finding:
    """The same untrained model on the same test, printed twice: how far apart, beside the largest gain over it.

    one, other: the two rows; gains: rows of trained models in the first table
    """
    first = [float(cell) for cell in one]
    apart = max(abs(a - float(b)) for a, b in zip(first, other, strict=True))
    gain = max(float(cell) - base for row in gains for cell, base in zip(row, first, strict=True))
    return Finding(
        NOISE,
        Standing.PROVED,
        where,
        f"two prints of one system differ by up to {apart:.3f}; the largest gain over it is {gain:.3f}",
        {"apart": round(apart, 6), "gain": round(gain, 6)},
    )


def hundredths(rows: Mapping[str, Sequence[str]], where: str) -> Finding:
    """Return whether every cell is a multiple of .01, so that 100 questions at most are behind it as far as can be
    told.
    """
    cells = [cell for row in rows.values() for cell in row]
    whole = all(round(float(cell) * 1000) % 10 == 0 for cell in cells)
    return Finding(
        GRAIN,
        Standing.PROVED if whole else Standing.REFUTED,
        where,
        f"{'all' if whole else 'not all'} of {len(cells)} cells are multiples of .01",
        {"cells": len(cells)},
    )
