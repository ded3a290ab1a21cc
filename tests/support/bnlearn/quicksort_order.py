"""The order in which R's quicksort leaves equal keys: for agreement with what is sorted by it, not for sorting.

Singleton 1969, Algorithm 347: An efficient algorithm for sorting with minimal storage (CACM 12-3), as in R's
`R_qsort_I`: the pivot is the median of both ends and a place that wanders, and the shorter part waits for the longer.
"""

from __future__ import annotations

from collections.abc import Sequence

SHORT = 10  # parts whose ends are so close are not divided any more, but for those at the beginning
START, TURN, UP, DOWN = 0.375, 0.5898437, 0.0390625, 0.21875  # where the wandering place is in a part, and its steps


def quicksort_order(keys: Sequence[float]) -> list[int]:
    """Positions of the keys from the smallest to the largest; equal ones as R's quicksort happens to leave them."""
    order = list(range(len(keys)))
    low, high, place = 0, len(keys) - 1, START
    whole, waiting = True, [(0, -1)]
    while waiting:
        if low > 0 and high - low <= SHORT:
            order[low : high + 1] = sorted(order[low : high + 1], key=keys.__getitem__)
            low, high = waiting.pop()
            continue
        if whole or high - low <= SHORT:
            whole = False
            if low >= high:
                low, high = waiting.pop()
                continue
            place += UP if place < TURN else -DOWN
        left, right = _divide(keys, order, low, high, low + int((high - low) * place))
        if right - low <= high - left:
            waiting.append((left, high))
            high = right
        else:
            waiting.append((low, right))
            low = left
    return order


def _divide(keys: Sequence[float], order: list[int], low: int, high: int, middle: int) -> tuple[int, int]:
    """Sort low, middle and high, then move what is below the middle's key to the left of what is above it.

    Returns where the right part begins and where the left part ends.
    """

    def swap_if_larger(i: int, j: int) -> None:
        if keys[order[i]] > keys[order[j]]:
            order[i], order[j] = order[j], order[i]

    swap_if_larger(low, middle)
    if keys[order[high]] < keys[order[middle]]:
        swap_if_larger(middle, high)
        swap_if_larger(low, middle)
    pivot = keys[order[middle]]
    left, right = low, high
    while True:
        right -= 1
        while keys[order[right]] > pivot:
            right -= 1
        left += 1
        while keys[order[left]] < pivot:
            left += 1
        if left > right:
            return left, right
        order[left], order[right] = order[right], order[left]
