"""Noise and rounding of the paper's printed tables.

Rows are pass@1 as printed, by number of nodes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from calibrant.audits.claims import ClaimStatus, Finding

NOISE = "printed_noise"
GRAIN = "grain"


def repeated_rows(
    untrained: Sequence[str], untrained_again: Sequence[str], gains: Sequence[Sequence[str]], where: str
) -> Finding:
    """Return the distance of two prints of one untrained model on one test, beside the largest gain over it.

    untrained, untrained_again: the two rows; gains: rows of trained models in the first table
    """
    first = [float(cell) for cell in untrained]
    apart = max(abs(a - float(b)) for a, b in zip(first, untrained_again, strict=True))
    gain = max(float(cell) - base for row in gains for cell, base in zip(row, first, strict=True))
    return Finding(
        NOISE,
        ClaimStatus.PROVED,
        where,
        f"two prints of one system differ by up to {apart:.3f}; the largest gain over it is {gain:.3f}",
        {"apart": round(apart, 6), "gain": round(gain, 6)},
    )


def hundredths(rows: Mapping[str, Sequence[str]], where: str) -> Finding:
    """Return whether every cell is a multiple of .01, as means over 100 questions are."""
    cells = [cell for row in rows.values() for cell in row]
    all_coarse = all(round(float(cell) * 1000) % 10 == 0 for cell in cells)
    return Finding(
        GRAIN,
        ClaimStatus.PROVED if all_coarse else ClaimStatus.REFUTED,
        where,
        f"{'all' if all_coarse else 'not all'} of {len(cells)} cells are multiples of .01",
        {"cells": len(cells)},
    )
