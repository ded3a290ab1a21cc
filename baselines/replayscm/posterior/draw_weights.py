"""Writes baselines/data/formula_weights.bin: how often the generator's random formulas mean which function.

`python -m calibrant.baselines.replayscm.posterior.draw_weights` draws from dsl.replayscm.generation.scms, which
restates the published grammar, with fixed
seeds; baselines may not import it, so the frequencies are load_shipped as data. Ten minutes on
one core.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from random import Random

from calibrant.baselines.replayscm.posterior import prior
from calibrant.baselines.replayscm.posterior.prior import ANY_SIZE, Drawn, pack
from calibrant.dsl.formulas.table import TruthTable, from_formula, permute
from calibrant.dsl.replayscm.generation.scms import NAMED_STRATA, sample_mechanism

CHUNK = 2_000  # formulas of one seed, so that a part can be drawn again and compared
CHUNKS = {2: 10, 3: 50, 4: 150, 5: 40}


def draw_chunk(num_parents: int, chunk: int) -> Counter[tuple[int, int]]:
    """(table, size) of the mechanisms of one chunk, for sizes in ANY_SIZE; the fallback never occurs there."""
    parents = tuple(f"X{i + 1}" for i in range(num_parents))
    stratum = replace(NAMED_STRATA[0], sizes=ANY_SIZE)
    rng = Random(f"formula weights:{num_parents}:{chunk}")
    formulas = (sample_mechanism(stratum, parents, rng) for _ in range(CHUNK))
    return Counter((from_formula(formula, parents).bits, formula.size) for formula in formulas)


def representative(bits: int, num_vars: int) -> int:
    """Return the smallest table among those that a permutation of the variables gives."""
    table = TruthTable(num_vars, bits)
    return min(permute(table, order).bits for order in permutations(range(num_vars)))


def by_class(counts: Counter[tuple[int, int]], num_parents: int) -> Counter[tuple[int, int]]:
    """Sum the counts over classes of functions equal up to a permutation of the parents."""
    names: dict[int, int] = {}
    classes: Counter[tuple[int, int]] = Counter()
    for (bits, size), number in counts.items():
        if bits not in names:
            names[bits] = representative(bits, num_parents)
        classes[names[bits], size] += number
    return classes


def drawn_classes(num_parents: int) -> Drawn:
    """All chunks of one number of parents together."""
    counts = sum((draw_chunk(num_parents, chunk) for chunk in range(CHUNKS[num_parents])), Counter[tuple[int, int]]())
    return Drawn(num_parents, dict(by_class(counts, num_parents)))


def _write() -> None:
    path = Path(prior.__file__).parent / prior.SHIPPED
    path.write_bytes(pack(map(drawn_classes, CHUNKS)))


if __name__ == "__main__":
    _write()
