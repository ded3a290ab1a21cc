"""Kernel: the depth-first choice of one candidate for each variable without a cycle.

Dimension letters: d = depths, one variable each; c = candidates, of one depth after another; v = variables.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from calibrant.dsl._jit import kernel

U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]

ONE = np.uint64(1)


@kernel
def first_choice(
    variables: I64,  # [d] the variable of each depth
    starts: I64,  # [d + 1] where its candidates begin
    sizes: I64,  # [c] smallest first
    parents: U64,  # [c] bit per variable; roots are left out
    slack: int,
    nodes: int,
    ancestors_at: U64,  # [d + 1, v] scratch: ancestors of each variable at each depth; row 0 has to be 0
    chosen: I64,  # [d] out: index of a candidate
) -> tuple[int, int]:
    """Choose a candidate for each depth, without a cycle; return the outcome and the number of candidates tried.

    Outcomes: 1: chosen; 0: no choice exists; -1: `nodes` candidates were tried.
    """
    depths = variables.shape[0]
    least_sizes = np.empty(depths, np.int64)
    num_nodes = 0
    depth = 0
    if depths:
        chosen[0] = starts[0] - 1
        least_sizes[0] = -1
    while 0 <= depth < depths:
        chosen[depth] += 1
        c = chosen[depth]
        if c == starts[depth + 1] or (least_sizes[depth] >= 0 and sizes[c] > least_sizes[depth] + slack):
            depth -= 1
            continue
        if num_nodes == nodes:
            return -1, num_nodes
        num_nodes += 1
        ancestors = parents[c]
        for v in range(ancestors_at.shape[1]):
            if parents[c] >> np.uint64(v) & ONE:
                ancestors |= ancestors_at[depth, v]
        bit = ONE << np.uint64(variables[depth])
        if ancestors & bit:
            continue
        if least_sizes[depth] < 0:
            least_sizes[depth] = sizes[c]
        for v in range(ancestors_at.shape[1]):
            below = v == variables[depth] or ancestors_at[depth, v] & bit
            ancestors_at[depth + 1, v] = ancestors_at[depth, v] | ancestors if below else ancestors_at[depth, v]
        depth += 1
        if depth < depths:
            chosen[depth] = starts[depth] - 1
            least_sizes[depth] = -1
    return (1 if depth == depths else 0), num_nodes
