"""The prior: what the published generator draws, as probabilities of parent sets and functions.

The generator draws formulas at random and keeps those that depend on all parents, have a size in the stratum's range
and are not known to have a shorter equivalent (paper, Algorithm 1; docs/semantics.md, "The published generator"). Their
distribution over functions has no closed form, because the size is that of the normal form. So formulas were
sampled once, with fixed seeds (bench.lab.posterior), and are shipped as counts of classes under permutation of the
parents. The distribution is invariant under such permutations, except for the known table's order of names.

Sources: the generator's stages as the paper gives them (Algorithm 1 and Table B.1) and its nine configurations. A slot
takes its parents from the window of the `window` variables before it: their number is uniform from 2 to the window's
length, the set is uniform. The function is that of a random formula whose size lies in the configuration's range; if no
formula can be accepted, it is the exclusive or of two parents. A function with a formula of size 5 or less that is
smaller than its own is never accepted, because no world could refute that shortcut.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import permutations
from math import fsum
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from calibrant.dsl.formulas.formula import STANDARD_OPERATORS
from calibrant.dsl.replayscm.generation.scms import MIN_PARENTS
from calibrant.dsl.replayscm.generation.strata import LARGE_STRATA, SHORTCUT_CAP, STRATA, Stratum
from calibrant.solvers.formulas.catalogue import catalogue, essential_functions

# --- Distribution of the published generator's random formulas over functions, by number of parents and formula size
SHIPPED = "data/formula_weights.bin"
ANY_SIZE = min(s.sizes[0] for s in STRATA), max(s.sizes[1] for s in STRATA)  # smallest, largest drawn formula

Class: TypeAlias = tuple[int, int]
"""The smallest table bits that permuting the parents gives, and the size of the drawn formula."""

_RECORD = np.dtype([("num_parents", "<u1"), ("bits", "<u4"), ("size", "<u1"), ("number", "<u4")])


@dataclass(frozen=True, slots=True)
class Drawn:
    """Sample of accepted formulas over one number of parents.

    counts: class -> number of the accepted formulas of it
    """

    num_parents: int
    counts: Mapping[Class, int]


def pack(samples: Iterable[Drawn]) -> bytes:
    """Return the contents of the shipped file: all classes, ascending by number of parents, table bits and size."""
    records = sorted((sample.num_parents, *key, count) for sample in samples for key, count in sample.counts.items())
    return zlib.compress(np.array(records, _RECORD).tobytes(), 9)


def unpack(content: bytes) -> tuple[Drawn, ...]:
    records = np.frombuffer(zlib.decompress(content), _RECORD)
    samples = []
    for num_parents in np.unique(records["num_parents"]).tolist():
        block = records[records["num_parents"] == num_parents]
        keys = zip(block["bits"].tolist(), block["size"].tolist(), strict=True)
        samples.append(Drawn(num_parents, dict(zip(keys, block["number"].tolist(), strict=True))))
    return tuple(samples)


@cache
def load_shipped() -> Mapping[int, Drawn]:
    """Load the shipped counts by number of parents; read once per process."""
    content = files("calibrant.baselines.replayscm.posterior").joinpath(SHIPPED).read_bytes()
    return {sample.num_parents: sample for sample in unpack(content)}


SHORTCUT_VARIABLES = 3  # shortcuts have nodes of at most three arguments, so none of size 5 mentions more
XOR_SIZE = 3
MAX_MIXED_VARIABLES = 16  # up to here an unpublished shape is modelled as a mixture of all published ones
MAX_PARENTS = max(stratum.max_parents for stratum in STRATA)

F64 = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Configuration:
    """Published configuration, as far as it affects an SCM's probability.

    num_variables, num_units: numbers of variables and of units of every problem
    window: number of predecessors that may be parents, and largest number of parents
    sizes: smallest and largest size of a drawn formula
    refutes: whether the training worlds refute every shortcut (one configuration admits one)
    shortcut_floor: mechanisms whose shortcuts would have to be shorter than this are not checked
    """

    name: str
    num_variables: int
    num_units: int
    window: int
    sizes: tuple[int, int]
    refutes: bool = True
    shortcut_floor: int = 3


def configuration(stratum: Stratum) -> Configuration:
    return Configuration(
        stratum.name,
        stratum.num_variables,
        stratum.num_units,
        window=stratum.max_parents,
        sizes=stratum.sizes,
        refutes=stratum.max_survivors == 0,
        shortcut_floor=stratum.shortcut_floor,
    )


CONFIGURATIONS = tuple(map(configuration, STRATA))

LARGE_CONFIGURATIONS = tuple(
    configuration(stratum) for stratum in LARGE_STRATA if stratum.num_variables > MAX_MIXED_VARIABLES
)


def of_shape(num_variables: int, num_units: int) -> tuple[Configuration, ...]:
    """Return the configurations of this shape, equally likely; all configurations if none has it."""
    published = (*CONFIGURATIONS, *LARGE_CONFIGURATIONS)
    matching = [entry for entry in published if (entry.num_variables, entry.num_units) == (num_variables, num_units)]
    return tuple(matching) or CONFIGURATIONS


def column_of(least_fit: int, configuration: Configuration) -> int | None:
    """Return the column of weights for a window whose least fitting formula has that size.

    A mechanism of size s is accepted only if no formula of size <= min(5, s - 1) fits, so s is at most the least fit.
    None if nothing can have been accepted.
    """
    if not configuration.refutes or least_fit > SHORTCUT_CAP:
        return ANY
    if least_fit < XOR_SIZE:
        return XOR_ONLY if configuration.shortcut_floor >= XOR_SIZE else None
    return least_fit - XOR_SIZE


XOR_ONLY, UP_TO_4, UP_TO_5, ANY = range(4)  # columns: mechanisms of size <= 3, <= 4, <= 5, any
NUM_COLUMNS = 4


@dataclass(frozen=True, slots=True, eq=False)
class FunctionWeights:
    """Probabilities of functions that depend on all of k parents, given that a slot draws k parents.

    bits: [f] tables; weights: [NUM_COLUMNS, f] probability of the function with a formula of a column's size
    Their sum is below 1, because functions with an equivalent shortcut are never accepted.
    """

    bits: npt.NDArray[np.uint32]
    weights: F64


@dataclass(frozen=True, slots=True, eq=False)
class SizeWeights:
    """Function weights for 5 parents, where functions of one least size share a weight.

    weights: [s] probability of each function of least size s
    remaining_mass: total weight of the functions beyond the catalogue
    """

    weights: F64
    remaining_mass: float


@cache
def function_weights(num_parents: int, configuration: Configuration) -> FunctionWeights:
    """Return the weights of functions of 2 to 4 parents.

    The mass of functions that were never sampled is estimated by Good-Turing and spread by least size.
    """
    low, high = configuration.sizes
    words, least_sizes = essential(num_parents)
    least_size = dict(zip(words.tolist(), least_sizes.tolist(), strict=True))
    smallest = representatives(num_parents)
    counts = np.zeros((NUM_COLUMNS, len(smallest)))
    dropped, once, num_samples = 0, 0, 0
    by_least: dict[int, float] = {}
    for (bits, size), count in load_shipped()[num_parents].counts.items():
        if not low <= size <= high:
            continue
        num_samples += count
        once += count == 1
        cap = min(SHORTCUT_CAP, size - 1)
        shortens = num_parents <= SHORTCUT_VARIABLES and least_size[bits] <= cap
        if configuration.refutes and cap >= configuration.shortcut_floor and shortens:
            dropped += count
            continue
        counts[ANY if size > SHORTCUT_CAP else size - XOR_SIZE :, bits] += count
        by_least[least_size[bits]] = by_least.get(least_size[bits], 0.0) + count
    if not num_samples:
        counts[:, _xor_table(num_parents)] = 1.0
        return FunctionWeights(words, counts[:, words])
    counts /= np.maximum(1, np.bincount(smallest, minlength=len(smallest)))
    weights = counts[:, smallest[words]] / num_samples
    missed = once / num_samples
    sizes = np.bincount(least_sizes, minlength=max(by_least, default=0) + 1)
    spread = np.array([by_least.get(size, 0.0) / max(1, int(sizes[size])) for size in range(len(sizes))]) / num_samples
    weights *= 1 - missed
    weights[ANY] += missed * spread[least_sizes]
    return FunctionWeights(words, weights)


@cache
def size_weights(configuration: Configuration) -> SizeWeights:
    """Return the weights of functions of 5 parents."""
    functions = catalogue(MAX_PARENTS)
    low, high = configuration.sizes
    sampled = [(bits, n) for (bits, size), n in load_shipped()[MAX_PARENTS].counts.items() if low <= size <= high]
    words = np.array([bits for bits, _ in sampled], np.uint64)
    counts = np.array([count for _, count in sampled], np.float64)
    order = np.argsort(functions.words)
    positions = order[np.minimum(np.searchsorted(functions.words, words, sorter=order), len(order) - 1)]
    is_catalogued = functions.words[positions] == words
    shares = np.bincount(
        functions.sizes[positions[is_catalogued]], counts[is_catalogued], minlength=functions.max_size + 1
    )
    available = np.bincount(essential(MAX_PARENTS)[1], minlength=functions.max_size + 1)
    weights = np.divide(shares, available, out=np.zeros(len(shares)), where=available > 0) / counts.sum()
    return SizeWeights(weights, float(counts[~is_catalogued].sum() / counts.sum()))


@cache
def slot_mass(window: int, configuration: Configuration) -> float:
    """Return the probability that a slot's draw is accepted, given the number of predecessors in its window."""
    counts = range(MIN_PARENTS, window + 1)
    accepted = [
        1.0 if k == MAX_PARENTS else float(function_weights(k, configuration).weights[ANY].sum()) for k in counts
    ]
    return fsum(accepted) / len(accepted)


@cache
def essential(num_parents: int) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint8]]:
    """Return bits and least sizes of the functions that depend on all of `num_parents` parents."""
    functions = essential_functions(MAX_PARENTS, STANDARD_OPERATORS)
    span = slice(functions.starts[num_parents], functions.ends[num_parents])
    return functions.bits[span].astype(np.uint32), functions.sizes[span]


def _xor_table(num_parents: int) -> int:
    """Return the table of the fallback: exclusive or, used if no formula over two parents can be accepted."""
    if num_parents != 2:
        raise AssertionError(f"formulas over {num_parents} parents are always accepted in the end")
    return 0b0110


@cache
def representatives(num_parents: int) -> npt.NDArray[np.int64]:
    """Return, for each table of k <= 4 variables, the smallest one under permutations of them; [2**2**k]."""
    tables = np.arange(1 << (1 << num_parents))
    smallest = tables.copy()
    for order in permutations(range(num_parents)):
        permuted = np.zeros_like(tables)
        for row in range(1 << num_parents):
            source = sum(1 << variable for i, variable in enumerate(order) if row >> i & 1)
            permuted |= (tables >> source & 1) << row
        np.minimum(smallest, permuted, out=smallest)
    return smallest
