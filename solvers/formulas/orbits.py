"""Orbits of functions under permutation of the variables: one representative stands for all.

Size and possible roots are equal throughout an orbit. So a file with one function of each orbit, 11,000 instead of 1.1
million of five variables, holds a whole catalogue; reading it takes less time than compiling the enumeration.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from calibrant.dsl.formulas.table import projection

U64 = npt.NDArray[np.uint64]
U8 = npt.NDArray[np.uint8]


class Layers(NamedTuple):
    """Functions by size, then by table bits.

    words: [f] uint64 tables; sizes: [f] uint8; rooted: [f] uint8, see solvers.formulas.catalogue
    """

    words: U64
    sizes: U8
    rooted: U8


def plain_changes(length: int) -> Iterator[int]:
    """Yield positions i to exchange with i + 1 that generate all permutations of that many items.

    Plain changes: D. E. Knuth, The Art of Computer Programming 4A, section 7.2.1.2, algorithm P.
    """
    if length < 2:
        return
    inner = list(plain_changes(length - 1))
    for round_index in range(len(inner) + 1):
        falling = round_index % 2 == 0  # the last item runs down, then up, and so on
        yield from range(length - 2, -1, -1) if falling else range(length - 1)
        if round_index < len(inner):
            yield inner[round_index] + falling


def moving_rows(num_vars: int) -> list[int]:
    """Return, per variable but the last, the rows in which it is 1 and the next one is 0, as bits of a table."""
    return [projection(i, num_vars).bits & ~projection(i + 1, num_vars).bits for i in range(num_vars - 1)]


def permute_variables(words: U64, num_vars: int) -> U64:
    """Return the functions under every permutation of the variables; shape [v!, f]."""
    moving = np.array(moving_rows(num_vars), np.uint64)
    permuted = [words]
    for variable in plain_changes(num_vars):
        shift, last = np.uint64(1 << variable), permuted[-1]
        changed = (last ^ (last >> shift)) & moving[variable]
        permuted.append(last ^ (changed | (changed << shift)))
    return np.stack(permuted)


def pack_orbits(functions: Layers, num_vars: int) -> bytes:
    """Pack the function of least table bits of each orbit, deflated: size + 16 * rooted of all, then all words."""
    leads = np.flatnonzero(permute_variables(functions.words, num_vars).min(axis=0) == functions.words)
    words = functions.words[leads]
    keys = functions.sizes[leads] | functions.rooted[leads] << np.uint8(4)
    return zlib.compress(keys.tobytes() + words.astype(_word_type(num_vars)).tobytes(), 9)


def _word_type(num_vars: int) -> str:
    return "<u4" if num_vars <= 5 else "<u8"


def unpack_orbits(contents: bytes, num_vars: int) -> Layers:
    """Return every function of every orbit, sorted by size, then bits."""
    inflated, word_type = zlib.decompress(contents), np.dtype(_word_type(num_vars))
    count = len(inflated) // (1 + word_type.itemsize)
    leads = np.frombuffer(inflated, word_type, count, offset=count).astype(np.uint64)
    words = permute_variables(leads, num_vars).ravel()
    keys = np.tile(np.frombuffer(inflated, np.uint8, count), len(words) // count)
    order = np.argsort(words)
    order = order[np.argsort(keys[order] & 15, kind="stable")]
    words, keys = words[order], keys[order]
    # a symmetric function is its own image under some permutations
    first = np.append(True, words[1:] != words[:-1])
    return Layers(words[first], keys[first] & np.uint8(15), keys[first] >> np.uint8(4))
