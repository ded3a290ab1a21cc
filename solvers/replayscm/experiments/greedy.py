"""The next world at real size: least expected share where there is no noise, most expected bits under noise.

Noise-free: of drawn members the share of pairs that read alike is unbiased and needs simulation only; without hidden
variables the best few are compared by exact masses. Under noise: H(Y) is estimated from drawn members and their
readings, each with its probability by a mass in doubles; with hidden variables by the mixture of drawn members.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from hashlib import sha256
from math import log
from random import Random

import numpy as np
import numpy.typing as npt

from calibrant.dsl.replayscm.episodes.candidates import candidate_worlds
from calibrant.dsl.replayscm.extensions.extension import Contexts, Extension
from calibrant.dsl.replayscm.extensions.model_class import MechanismClass
from calibrant.dsl.replayscm.extensions.noise import NoiseKind, NoiseModel
from calibrant.dsl.replayscm.extensions.reference import EvidenceWorld
from calibrant.dsl.replayscm.problem import Task
from calibrant.solvers.replayscm.conditioned_space import ConditionedSpace, ParentSets, Rows
from calibrant.solvers.replayscm.drawn_members import Members, draw
from calibrant.solvers.replayscm.experiments.members import MemberArrays, numpy_rng
from calibrant.solvers.replayscm.experiments.readings import candidate_rows, version_space
from calibrant.solvers.replayscm.experiments.shares import BITS_TOLERANCE, request_rows
from calibrant.solvers.replayscm.hidden.sampling import posterior_sampler
from calibrant.solvers.replayscm.noise.approximate import ApproximateMasses
from calibrant.solvers.replayscm.noise.posterior import Posterior

F64 = npt.NDArray[np.float64]
U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]

# 256 members are 32,640 pairs; 1.45 worlds on the mean of 12 tiny items with hidden variables, 1.46 by exact shares
NUM_PAIR_MEMBERS = 256
NUM_WITNESSES = 4
NUM_FINALISTS = 8
NUM_TRUTHS = 64
NUM_NOISY_DRAWS = 12
NUM_NOISY_FINALISTS = 12
NUM_FINAL_DRAWS = 64
NUM_IMAGINED_CONTEXTS = 8
# 233 candidates of up to 3 targets at 6 variables; the 1,161 at 10 would be 13,932 masses a step
MAX_FULL_VARIABLES = 6  # under noise all candidates up to that many variables
NUM_OTHER_CANDIDATES = 64

Requests = Sequence[tuple[Mapping[str, int], Sequence[int]]]


@dataclass(frozen=True)
class Choice:
    """A world to ask for.

    place: among the candidates; value: expected share left, or bits under noise; estimated
    """

    place: int
    value: float


class WorldChooser:
    """Greedy choices in one item. Draws are seeded by the item's id, the step and nothing else."""

    def __init__(self, task: Task, scm_class: MechanismClass, item_id: str) -> None:
        assert task.extension is not None
        assert task.extension.allowance is not None
        self.task = task
        self.scm_class = scm_class
        if scm_class.noise.kind is NoiseKind.EACH:  # to choose by, one rate for all variables; reports stay exact
            self.scm_class = replace(scm_class, noise=NoiseModel(NoiseKind.SHARED, scm_class.noise.grid))
        self.extension: Extension = task.extension
        self.item_id = item_id
        self.candidates = candidate_worlds(scm_class.observed, task.extension.allowance.max_targets)
        self.places = self._compared_places()
        self._listed_rows: dict[tuple[tuple[int, ...], tuple[int, ...]], tuple[Rows, I64]] = {}

    def _compared_places(self) -> list[int]:
        """Return the candidates that are compared, in their order."""
        num_vars = len(self.scm_class.observed)
        if self.scm_class.noise.is_silent or num_vars <= MAX_FULL_VARIABLES:
            return list(range(len(self.candidates)))
        first = [place for place, do in enumerate(self.candidates) if len(do) <= 1]
        others = range(len(first), len(self.candidates))
        # ranked by a hash of id and place: the same in every process, and independent of names
        ranked = sorted(others, key=lambda place: sha256(f"{self.item_id}|{place}".encode()).digest())
        return [*first, *sorted(ranked[:NUM_OTHER_CANDIDATES])]

    def contexts(self, rng: Random) -> list[Sequence[int]]:
        """Return the contexts to compare candidates in; several imagined ones where the seed fixes them."""
        allowance = self.extension.allowance
        assert allowance is not None
        num_contexts = 1 << len(self.scm_class.roots)
        if allowance.contexts is not Contexts.SAMPLED:
            return [range(min(num_contexts, allowance.rows))]
        every = range(num_contexts)
        return [rng.sample(every, min(allowance.rows, num_contexts)) for _ in range(NUM_IMAGINED_CONTEXTS)]

    def choose(self, worlds: Sequence[EvidenceWorld]) -> Choice | None:
        """Return greedy's choice after these worlds; None where no candidate splits what was drawn."""
        rng = Random(f"{self.item_id}|greedy|{len(worlds)}")
        contexts = self.contexts(rng)
        if not self.scm_class.noise.is_silent:
            return self._best_by_bits(worlds, contexts, rng)
        if self.scm_class.hidden_parents:
            return self._best_hidden(worlds, contexts, rng)
        return self._best_plain(worlds, contexts, rng)

    def has_split(self, worlds: Sequence[EvidenceWorld], posterior: Posterior, rng: Random) -> bool:
        """Return whether some candidate splits the members of a posterior, that after these worlds."""
        # two members that a candidate shows differently prove it, at a fraction of the cost of a choice
        sampler = posterior_sampler(posterior)
        members = MemberArrays(self.scm_class, [sampler.draw(rng) for _ in range(NUM_WITNESSES)])
        words, targets, _ = self._rows(self.contexts(rng)[0])
        readings = members.readings(words, targets)
        return bool((readings != readings[0]).any()) or self.choose(worlds) is not None

    # --- noise-free -----------------------------------------------------------------------------------------------

    def _best_plain(
        self, worlds: Sequence[EvidenceWorld], contexts: Sequence[Sequence[int]], rng: Random
    ) -> Choice | None:
        space = version_space(self.task, self.scm_class, worlds)
        if space.count < 2:
            return None
        (roots,) = space.root_sets
        conditioned = ConditionedSpace(ParentSets(space, None), roots)
        members = draw(conditioned, rng, NUM_PAIR_MEMBERS)
        # pairs need simulation only, so all candidates are compared by them, and masses decide among the best few
        shares = np.zeros(len(self.places))
        for variant in contexts:
            rows, spans = self._candidate_rows(tuple(variant))
            shares += alike_shares(members.outcomes(rows), spans)
        shares /= len(contexts)
        if shares.min() >= 1.0:
            return self._rare_split(conditioned, members, contexts)
        finalists = np.argsort(shares, kind="stable")[:NUM_FINALISTS].tolist()
        exact = [self._truth_share(conditioned, members, place, contexts) for place in sorted(finalists)]
        best = min(range(len(exact)), key=exact.__getitem__)
        return Choice(self.places[sorted(finalists)[best]], exact[best])

    def _truth_share(
        self, space: ConditionedSpace, members: Members, place: int, contexts: Sequence[Sequence[int]]
    ) -> float:
        """Return the mean share of members that read as a drawn one does; each share exact."""
        total = 0.0
        for variant in contexts:
            rows, _ = candidate_rows(self.scm_class, [(self.candidates[self.places[place]], variant)])
            readings = members.outcomes(rows)[:NUM_TRUTHS]
            different, counts = np.unique(readings, axis=0, return_counts=True)
            masses = _reading_masses(space, different, rows.targets)
            total += sum(n * mass for n, mass in zip(counts.tolist(), masses, strict=True)) / space.mass / len(readings)
        return total / len(contexts)

    def _rare_split(
        self, space: ConditionedSpace, members: Members, contexts: Sequence[Sequence[int]]
    ) -> Choice | None:
        """Return the first candidate that splits, by exact masses of one member's readings; None if none does."""
        for variant in contexts:
            rows, spans = self._candidate_rows(tuple(variant))
            readings = members.outcomes(rows)[0]
            # a mass below the whole proves that some member reads otherwise, however rare it is
            masses = space.masses(Rows(readings, rows.targets), spans)
            shares = [mass / space.mass for mass in masses]
            if min(masses) < space.mass:
                best = min(range(len(shares)), key=shares.__getitem__)
                return Choice(self.places[best], shares[best])
        return None

    def _best_hidden(
        self, worlds: Sequence[EvidenceWorld], contexts: Sequence[Sequence[int]], rng: Random
    ) -> Choice | None:
        sampler = posterior_sampler(Posterior(self.scm_class).condition(*worlds))
        members = MemberArrays(self.scm_class, [sampler.draw(rng) for _ in range(NUM_PAIR_MEMBERS)])
        shares = np.zeros(len(self.places))
        for variant in contexts:
            words, targets, spans = self._rows(variant)
            shares += alike_shares(members.readings(words, targets), spans)
        shares /= len(contexts)
        best = int(shares.argmin())
        # no drawn pair differs: what would still differ has posterior below 0.03, or was missed with 0.97**256 = 4e-4
        return None if shares[best] >= 1.0 else Choice(self.places[best], float(shares[best]))

    # --- under noise ----------------------------------------------------------------------------------------------

    def _best_by_bits(
        self, worlds: Sequence[EvidenceWorld], contexts: Sequence[Sequence[int]], rng: Random
    ) -> Choice | None:
        posterior = Posterior(self.scm_class).condition(*worlds)
        bits = self.expected_bits_after(posterior, contexts, rng, NUM_NOISY_DRAWS)
        every, finalists = self.places, sorted(np.argsort(-bits, kind="stable")[:NUM_NOISY_FINALISTS].tolist())
        self.places = [every[place] for place in finalists]
        try:  # few draws favour whatever they overrate, so the best are rated again
            again = self.expected_bits_after(posterior, contexts, rng, NUM_FINAL_DRAWS)
        finally:
            self.places = every
        top = float(again.max())
        if top <= BITS_TOLERANCE:
            return None
        best = int(np.flatnonzero(again >= top - BITS_TOLERANCE)[0])
        return Choice(every[finalists[best]], float(again[best]))

    def expected_bits(self, worlds: Sequence[EvidenceWorld], contexts: Sequence[Sequence[int]], rng: Random) -> F64:
        """Return an estimate of the bits of each compared candidate, from drawn members and their readings."""
        return self.expected_bits_after(Posterior(self.scm_class).condition(*worlds), contexts, rng, NUM_NOISY_DRAWS)

    def expected_bits_after(
        self, posterior: Posterior, contexts: Sequence[Sequence[int]], rng: Random, num_draws: int
    ) -> F64:
        """Return the estimate after the evidence of a posterior, from so many drawn readings."""
        bits: F64 = self.bits_by_draw(posterior, contexts, rng, num_draws).mean(axis=0)
        return bits

    def bits_by_draw(self, posterior: Posterior, contexts: Sequence[Sequence[int]], rng: Random, num_draws: int) -> F64:
        """[d, c] bits of each candidate by drawn reading; their mean over draws is an unbiased estimate."""
        posterior = replace(posterior, scm_class=self.scm_class)
        sampler = posterior_sampler(posterior)
        has_hidden = bool(self.scm_class.hidden_parents)
        num_members = max(num_draws, NUM_PAIR_MEMBERS) if has_hidden else num_draws
        drawn_pairs = [sampler.draw_with_rates(rng) for _ in range(num_members)]
        members = MemberArrays(self.scm_class, [member for member, _ in drawn_pairs])
        # all variables of a member have one rate: EACH was replaced by a shared grid
        rates = [next(iter(values.values())) for _, values in drawn_pairs]
        array_rng = numpy_rng(rng)
        bits = np.zeros((num_draws, len(self.places)))
        masses = None if has_hidden else ApproximateMasses(posterior)
        for variant in contexts:
            words, targets, spans = self._rows(variant)
            flips = members.draw_flips(array_rng, rates, len(words))
            readings = members.readings(words, targets, flips)
            if masses is not None:
                logs = _logs_by_masses(masses, readings, targets, spans)
            else:
                logs = _logs_by_mixture(members, rates, readings[:num_draws], targets, spans)
            # the mean of log P(reading | member) - log P(reading) are the bits; the variance of the flips cancels
            by_member = _flip_logs(members, rates[:num_draws], flips[:num_draws], targets, spans)
            bits += (by_member - logs) / log(2)
        by_draw: F64 = bits / len(contexts)
        return by_draw

    def _candidate_rows(self, contexts: tuple[int, ...]) -> tuple[Rows, I64]:
        """Return the rows of all compared candidates; kept for the next step, which mostly has the same contexts."""
        key = contexts, tuple(self.places)
        if key not in self._listed_rows:
            self._listed_rows = {key: candidate_rows(self.scm_class, self._requests(contexts))}
        return self._listed_rows[key]

    def _requests(self, contexts: Sequence[int]) -> list[tuple[Mapping[str, int], Sequence[int]]]:
        return [(self.candidates[place], contexts) for place in self.places]

    def _rows(self, contexts: Sequence[int]) -> tuple[U64, U64, I64]:
        """Return words and targets of all compared candidates, numbered as in the class."""
        listed = [request_rows(self.scm_class, do, variant) for do, variant in self._requests(contexts)]
        words = np.array([word for rows in listed for word, _ in rows], np.uint64)
        targets = np.array([clamped for rows in listed for _, clamped in rows], np.uint64)
        return words, targets, np.cumsum([0, *map(len, listed)]).astype(np.int64)


def alike_shares(readings: U64, spans: I64) -> F64:
    """[c] share of pairs of different members that read a candidate alike; an unbiased estimate of the expected share.

    readings: [d, r]; spans: [c + 1] where the rows of each candidate begin
    """
    num_members = len(readings)
    if num_members < 2:
        return np.ones(len(spans) - 1)
    num_rows = int(np.diff(spans).max())
    # rows hashed to one key a candidate, by powers of an odd constant (2**64 over the golden ratio): sorting keys
    # replaces comparing rows; 32,640 pairs of random keys collide with probability 2e-15
    factors = np.array([pow(0x9E3779B97F4A7C15, i + 1, 1 << 64) for i in range(num_rows)], np.uint64)
    position = np.arange(readings.shape[1]) - np.repeat(spans[:-1], np.diff(spans))
    mixed = readings * factors[position]
    mixed ^= mixed >> np.uint64(29)
    keys = np.sort(np.add.reduceat(mixed, spans[:-1], axis=1), axis=0)
    starts = np.ones(keys.shape, np.bool_)
    starts[1:] = keys[1:] != keys[:-1]
    # the i-th member of a group, from 0, has i alike before it; every pair is counted in both orders. Draws are not
    # paired with themselves: the estimate would be too large by up to 1/256
    rank = np.arange(num_members)[:, None]
    alike_before = rank - np.maximum.accumulate(np.where(starts, rank, 0), axis=0)
    shares: F64 = 2 * alike_before.sum(axis=0) / (num_members * (num_members - 1))
    return shares


def _reading_masses(space: ConditionedSpace, readings: U64, targets: U64) -> list[int]:
    rows = Rows(readings.ravel(), np.tile(targets, len(readings)))
    return space.masses(rows, np.arange(len(readings) + 1, dtype=np.int64) * len(targets))


def _logs_by_masses(masses: ApproximateMasses, readings: U64, targets: U64, spans: I64) -> F64:
    """[d, c] logarithm of the probability of each drawn reading."""
    num_draws, num_rows = readings.shape
    starts = np.concatenate([spans[:-1] + d * num_rows for d in range(num_draws)])
    every = np.append(starts, num_draws * num_rows).astype(np.int64)
    logs: F64 = masses.log_masses(readings.ravel(), np.tile(targets, num_draws), every) - masses.log_mass
    return logs.reshape(num_draws, -1)


def _logs_by_mixture(members: MemberArrays, rates: Sequence[Fraction], readings: U64, targets: U64, spans: I64) -> F64:
    """[d, c] logarithm of the mixture's probability of each drawn reading."""
    logs = np.empty((len(readings), len(spans) - 1))
    for d in range(len(readings)):
        by_member = np.stack(
            [_log_likelihoods(members, m, float(rates[m]), readings[d], targets, spans) for m in range(len(members))]
        )
        # the largest is taken out before `exp`, so that no number of cells underflows
        top = by_member.max(axis=0)
        logs[d] = top + np.log(np.exp(by_member - top).mean(axis=0))
    return logs


def _flip_logs(members: MemberArrays, rates: Sequence[Fraction], flips: U64, targets: U64, spans: I64) -> F64:
    """[d, c] logarithm of the probability of the flips in free cells, which is that of the reading given the member."""
    noisy = np.uint64(sum(1 << v for v in members.noisy))
    free = ~targets & noisy
    wrong = np.add.reduceat(np.bitwise_count(flips & free).astype(np.int64), spans[:-1], axis=1)
    cells = np.add.reduceat(np.bitwise_count(free).astype(np.int64), spans[:-1])
    rate = np.array([float(rate) for rate in rates])[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        flip_terms = np.where(wrong > 0, wrong * np.log(rate), 0.0)
    logs: F64 = flip_terms + (cells - wrong) * np.log1p(-rate)
    return logs


def _log_likelihoods(members: MemberArrays, member: int, rate: float, reading: U64, targets: U64, spans: I64) -> F64:
    """[c] logarithm of the probability of a reading under one member: each mechanism judged on observed parents."""
    word = reading.copy()
    wrong = np.zeros(len(reading), np.int64)
    cells = np.zeros(len(reading), np.int64)
    for v, mask, table in zip(members.order[member], members.masks[member], members.tables[member], strict=True):
        pattern, place, rest = np.zeros(len(reading), np.uint64), 0, int(mask)
        while rest:
            low = (rest & -rest).bit_length() - 1
            pattern |= (word >> np.uint64(low) & np.uint64(1)) << np.uint64(place)
            place, rest = place + 1, rest & rest - 1
        value = np.uint64(table) >> pattern & np.uint64(1)
        if int(v) in members.noisy:
            free = (targets >> np.uint64(v) & np.uint64(1)) == 0
            wrong += free & ((word >> np.uint64(v) & np.uint64(1)) != value)
            cells += free
        else:
            word |= value << np.uint64(v)
    with np.errstate(divide="ignore"):
        flip, stay = np.log(np.float64(rate)), np.log1p(-rate)
    terms = np.where(wrong > 0, wrong * flip, 0.0) + (cells - wrong) * stay
    likelihoods: F64 = np.add.reduceat(terms, spans[:-1])
    return likelihoods
