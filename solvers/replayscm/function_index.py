"""Index of functions that depend on all of their variables, for look-up by observed rows."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from calibrant.dsl.formulas.table import num_rows
from calibrant.solvers.formulas.catalogue import EssentialFunctions
from calibrant.solvers.replayscm._kernels_worlds import PREFIX_ROWS

U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]


class FunctionIndex(NamedTuple):
    """Functions of solvers.formulas.catalogue in the kernels' order.

    bits: [f] uint64 tables, by number of variables, then bits; sizes: [f] least sizes
    prefixes: [k + 1, 2**PREFIX_ROWS + 1] where the functions of j variables begin whose last PREFIX_ROWS rows are so;
    all rows where they have fewer
    largest: the largest size that is listed
    """

    bits: U64
    sizes: npt.NDArray[np.uint8]
    prefixes: I64
    largest: int


NOT_LISTED = FunctionIndex(np.empty(0, np.uint64), np.empty(0, np.uint8), np.empty((0, 0), np.int64), 0)


@cache
def function_index(functions: EssentialFunctions, max_size: int | None = None) -> FunctionIndex:
    """Return the index of a list of functions; built once per process for a number of variables, operators and a size.

    max_size: of the functions that are indexed; None for all
    """
    bits, sizes = [], []
    prefixes = np.zeros((len(functions.ends), (1 << PREFIX_ROWS) + 1), np.int64)
    start = 0
    for j in range(1, len(functions.ends)):
        listed = slice(functions.starts[j], functions.ends[j])
        # a prefix is the high bits, so that ascending tables keep the functions of a prefix together
        order = np.argsort(functions.bits[listed])
        if max_size is not None:
            order = order[functions.sizes[listed][order] <= max_size]
        bits.append(functions.bits[listed][order])
        sizes.append(functions.sizes[listed][order])
        shift = np.uint64(max(0, num_rows(j) - PREFIX_ROWS))
        numbers = np.bincount((bits[-1] >> shift).astype(np.int64), minlength=1 << PREFIX_ROWS)
        prefixes[j, 0] = start
        prefixes[j, 1:] = start + np.cumsum(numbers)
        start += len(order)
    return FunctionIndex(
        np.concatenate(bits),
        np.concatenate(sizes),
        prefixes,
        int(functions.sizes.max()) if max_size is None else max_size,
    )
