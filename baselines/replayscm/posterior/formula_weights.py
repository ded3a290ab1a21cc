"""Distribution of the published generator's random formulas over functions, by number of parents and formula size.

The generator draws formulas at random and keeps those that depend on all parents, have a size in the stratum's range
and are not known to have a shorter equivalent (paper, Algorithm 1; docs/semantics.md, "The published generator"). Their
distribution over functions has no closed form, because the size is that of the normal form. So it was drawn once, with
fixed seeds (baselines.replayscm.posterior.draw_weights), and is shipped as counts of classes under permutation of the
parents, under which the distribution is invariant but for the known table's order of names.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TypeAlias

import numpy as np

from calibrant.dsl.replayscm.generation.strata import STRATA

SHIPPED = "data/formula_weights.bin"
ANY_SIZE = min(s.sizes[0] for s in STRATA), max(s.sizes[1] for s in STRATA)  # of a drawn formula

Class: TypeAlias = tuple[int, int]
"""The smallest table bits that permuting the parents gives, and the size of the drawn formula."""

_RECORD = np.dtype([("num_parents", "<u1"), ("bits", "<u4"), ("size", "<u1"), ("number", "<u4")])


@dataclass(frozen=True, slots=True)
class Drawn:
    """Accepted formulas over one number of parents.

    counts: class -> how many of the accepted formulas were of it
    """

    num_parents: int
    counts: Mapping[Class, int]


def pack(samples: Iterable[Drawn]) -> bytes:
    """Return the contents of the shipped file: all classes, ascending by number of parents, table bits and size."""
    records = sorted((sample.num_parents, *key, number) for sample in samples for key, number in sample.counts.items())
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
