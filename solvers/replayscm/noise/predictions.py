"""Exact predictions of a posterior: readings of a world, marginals of cells, clean behaviours and their verdict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from calibrant.solvers.acyclic.least import Mask, members_of
from calibrant.solvers.budget import BudgetSpent
from calibrant.solvers.replayscm.noise.posterior import Posterior
from calibrant.solvers.replayscm.noise.rows import EvidenceRow

DECIDED = Fraction(99, 100)  # posterior of a clean behaviour from which the verdict under noise is decided
# all readings of 12 free cells
MAX_LISTED_READINGS = 4_096
# 128 masses a row
MAX_LISTED_CELLS = 7  # free cells of a row of which marginals are listed


@dataclass(frozen=True)
class CleanBehaviours:
    """Posterior of the noise-free rows of some contexts: rows as words -> probability, all of positive probability."""

    shares: Mapping[tuple[int, ...], Fraction]

    @property
    def top_share(self) -> Fraction:
        return max(self.shares.values())

    @property
    def is_decided(self) -> bool:
        return self.top_share >= DECIDED


def free_bits(posterior: Posterior, clamped: Mask) -> list[Mask]:
    """Return the bits of observed endogenous variables that an intervention leaves free."""
    indices = (posterior.scm_class.observed.index(v) for v in posterior.scm_class.endogenous)
    return [1 << i for i in indices if not clamped >> i & 1]


def completions(fixed: int, free: Sequence[Mask]) -> Iterator[int]:
    """Every word with these bits fixed; the others' bits count up, the last listed slowest."""
    for number in range(1 << len(free)):
        yield fixed | sum(bit for i, bit in enumerate(free) if number >> i & 1)


def fixed_part(posterior: Posterior, word: int, clamped: Mask) -> int:
    """Return a row's word without its free cells."""
    return word & ~sum(free_bits(posterior, clamped))


def probability(posterior: Posterior, rows: Sequence[EvidenceRow]) -> Fraction:
    """Return the probability of rows given the evidence, their contexts and interventions."""
    return posterior.condition_rows(rows).mass / posterior.mass


def reading_probabilities(
    posterior: Posterior,
    worlds: Sequence[tuple[int, Mask]],
    *,
    is_clean: bool = False,
    limit: int = MAX_LISTED_READINGS,
) -> dict[tuple[int, ...], Fraction]:
    """Return every reading of positive probability, as words of the rows, with its probability.

    worlds: fixed part and clamped bits of each row; `BudgetSpent` for more than `limit` readings of a prefix
    """
    reached: dict[tuple[int, ...], Posterior] = {(): posterior}
    for fixed, clamped in worlds:
        free = free_bits(posterior, clamped)
        following: dict[tuple[int, ...], Posterior] = {}
        for words, before in reached.items():
            for word in completions(fixed, free):
                after = before.condition_rows([EvidenceRow(word, clamped, is_clean)])
                # row by row: a prefix of probability 0 has no continuation, which leaves few readings without noise
                if after.mass:
                    following[(*words, word)] = after
                    if len(following) > limit:
                        raise BudgetSpent(f"more than {limit:,} readings have positive probability")
        reached = following
    return {words: after.mass / posterior.mass for words, after in reached.items()}


def clean_behaviours(posterior: Posterior, worlds: Sequence[tuple[int, Mask]]) -> CleanBehaviours:
    """Return the posterior of noise-free rows; arguments and errors as for `reading_probabilities`."""
    return CleanBehaviours(reading_probabilities(posterior, worlds, is_clean=True))


def cell_marginals(posterior: Posterior, fixed: int, clamped: Mask) -> dict[int, Fraction]:
    """Return the probability of 1 of each free cell of a row, noise included, by variable; exact, by listing.

    `BudgetSpent` for more than MAX_LISTED_CELLS free cells
    """
    free = free_bits(posterior, clamped)
    if len(free) > MAX_LISTED_CELLS:
        raise BudgetSpent(f"{len(free)} free cells in a row; marginals are listed up to {MAX_LISTED_CELLS}")
    marginals = {bit.bit_length() - 1: Fraction(0) for bit in free}
    for word in completions(fixed, free):
        share = probability(posterior, [EvidenceRow(word, clamped)])
        for index in members_of(word & sum(free)):
            marginals[index] += share
    return marginals
