"""Drawn members as arrays, and what they show of many worlds."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from random import Random

import numpy as np
import numpy.typing as npt

from calibrant.dsl.formulas.table import permute
from calibrant.dsl.replayscm.evaluator import compile_tables
from calibrant.dsl.replayscm.extensions.extension import MechanismClass
from calibrant.dsl.replayscm.extensions.reference import Mechanisms, evaluation_order
from calibrant.dsl.replayscm.scm import LocalFunction
from calibrant.dsl.replayscm.world import Rows
from calibrant.solvers.replayscm.experiments._kernels_members import count_mismatches

U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]


class MemberArrays:
    """Members of a class as arrays; variables are numbered as in the class, observed ones first."""

    def __init__(self, scm_class: MechanismClass, members: Sequence[Mechanisms]) -> None:
        index = {v: i for i, v in enumerate(scm_class.variables)}
        rows = []
        for member in members:
            order = evaluation_order(member)
            assert order is not None
            rows.append([(index[v], *_packed(member[v], index)) for v in order])
        self.observed = np.uint64((1 << len(scm_class.observed)) - 1)
        self.noisy: list[int] = [index[v] for v in scm_class.endogenous]
        self.noisy_mask = np.uint64(sum(1 << v for v in self.noisy))
        self.programs = compile_tables(rows, len(rows[0]) if rows else 0)

    def __len__(self) -> int:
        return len(self.programs)

    def readings(self, words: U64, targets: U64, flips: U64 | None = None) -> U64:
        """[d, r] observed values of every row; flips: [d, r] cells to flip, none if None."""
        return self.programs.replay(Rows(words, targets), flips) & self.observed

    def mismatches(self, reading: U64, targets: U64, spans: I64) -> I64:
        """[d, c] free cells of a reading of each world that differ from each member's mechanisms.

        reading: [r] observed values; spans: [c + 1] first row of each world
        """
        noisy = np.array([self.noisy_mask])
        wrong = np.empty((len(self), len(spans) - 1), np.int64)
        arrays = self.programs.order, self.programs.masks, self.programs.tables
        count_mismatches(*arrays, noisy, reading, targets, spans, wrong)
        return wrong

    def draw_flips(self, rng: np.random.Generator, rates: Sequence[Fraction], num_rows: int) -> U64:
        """[d, r] flips of the observed endogenous cells, independent with each member's rate."""
        flips = np.zeros((len(self), num_rows), np.uint64)
        limits = np.array([float(rate) for rate in rates])[:, None]
        for v in self.noisy:
            flips |= (rng.random(flips.shape) < limits).astype(np.uint64) << np.uint64(v)
        return flips


def _packed(function: LocalFunction, index: dict[str, int]) -> tuple[int, int]:
    """Return the parent set and the table with the parents in the order of their numbers."""
    places = [index[u] for u in function.parents]
    ranked = sorted(range(len(places)), key=places.__getitem__)
    # the kernel reads parents ascending, mechanisms list them in any order
    table = permute(function.table, ranked) if ranked != list(range(len(ranked))) else function.table
    return sum(1 << place for place in places), table.bits


def numpy_rng(rng: Random) -> np.random.Generator:
    """Return a generator for arrays, seeded by a draw."""
    # a named bit generator: `default_rng` may change with NumPy
    return np.random.Generator(np.random.PCG64(rng.getrandbits(63)))
