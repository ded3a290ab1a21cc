"""The next world by a greedy rule: least expected share left without noise, most expected bits under noise.

Noise-free, the share of pairs of drawn members with equal readings is an unbiased estimate and needs simulation only;
without hidden variables the best few candidates are compared by exact masses. Under noise, the entropy of the reading
is estimated from drawn members and their readings. A reading's probability is a mass in doubles, or with hidden
variables that of the mixture of the drawn members.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from hashlib import sha256
from itertools import pairwise
from math import log
from random import Random

import numpy as np
import numpy.typing as npt

from calibrant.dsl.replayscm.disclosure import natural
from calibrant.dsl.replayscm.episode import candidate_worlds
from calibrant.dsl.replayscm.evaluator import TablePrograms
from calibrant.dsl.replayscm.extensions.extension import Contexts, Extension, MechanismClass, NoiseKind, NoiseModel
from calibrant.dsl.replayscm.extensions.reference import EvidenceWorld
from calibrant.dsl.replayscm.item import Task
from calibrant.dsl.replayscm.world import Rows
from calibrant.solvers.replayscm.conditioned_space import ConditionedSpace, ParentSets, draw
from calibrant.solvers.replayscm.experiments.candidates import (
    BITS_TOLERANCE,
    MemberArrays,
    PackedCandidates,
    Witnesses,
    alike_shares,
    candidate_rows,
    numpy_rng,
    pack_candidates,
    request_rows,
    version_space,
)
from calibrant.solvers.replayscm.hidden.mass import posterior_sampler
from calibrant.solvers.replayscm.noise.posterior import ApproximateMasses, Posterior

F64 = npt.NDArray[np.float64]
U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]

# members drawn to compare pairs: 32,640 pairs. On 12 tiny items with hidden variables greedy then needs 1.45 worlds on
# average, by exact shares 1.46
NUM_PAIR_MEMBERS = 256
NUM_WITNESSES = 16  # members drawn to show that a candidate splits, without noise
NUM_NOISY_WITNESSES = 4  # under noise
NUM_FINALISTS = 8  # candidates compared by exact masses, without noise
NUM_TRUTHS = 64  # drawn members whose readings are weighted for this
NUM_NOISY_DRAWS = 12  # readings drawn to rate all candidates, under noise
NUM_NOISY_FINALISTS = 12  # candidates rated a second time
NUM_FINAL_DRAWS = 64  # readings drawn for this
NUM_IMAGINED_CONTEXTS = 8  # sets of contexts over which ratings are averaged, where a seed will fix the contexts
# under noise all candidates are rated up to this many variables: 233 candidates of up to 3 targets at 6 variables; the
# 1,161 at 10 would be 13,932 masses a step
MAX_FULL_VARIABLES = 6
NUM_OTHER_CANDIDATES = 64  # beyond: candidates of two or more targets that are rated


@dataclass(frozen=True)
class Choice:
    """A world to request.

    index: index of the candidate; value: estimate of the expected share left, under noise of the expected bits
    """

    index: int
    value: float


class WorldChooser:
    """Greedy choice of worlds in one item; draws are seeded by the item's id and the step alone.

    candidates: constants of all worlds that may be requested; compared: indices of those that are rated, ascending
    """

    def __init__(self, task: Task, scm_class: MechanismClass, item_id: str) -> None:
        assert task.extension is not None
        assert task.extension.allowance is not None
        self.task = task
        self.scm_class = scm_class
        # one rate for all variables, only to choose: reported figures stay exact
        if scm_class.noise.kind is NoiseKind.EACH:
            self.scm_class = replace(scm_class, noise=NoiseModel(NoiseKind.SHARED, scm_class.noise.grid))
        self.extension: Extension = task.extension
        self.item_id = item_id
        self.candidates = candidate_worlds(scm_class.observed, task.extension.allowance.max_targets)
        self.compared = self._compared_candidates()
        self._packed: dict[tuple[tuple[int, ...], tuple[int, ...], bool], PackedCandidates] = {}
        self._witnesses: Witnesses | None = None

    def _compared_candidates(self) -> list[int]:
        """Return the indices of the candidates that are rated, ascending."""
        num_vars = len(self.scm_class.observed)
        if self.scm_class.noise.is_noiseless or num_vars <= MAX_FULL_VARIABLES:
            return list(range(len(self.candidates)))
        first = [index for index, do in enumerate(self.candidates) if len(do) <= 1]
        others = range(len(first), len(self.candidates))
        # ranked by a hash of item id and index: the same in every process, and independent of names
        ranked = sorted(others, key=lambda index: sha256(f"{self.item_id}|{index}".encode()).digest())
        return [*first, *sorted(ranked[:NUM_OTHER_CANDIDATES])]

    def contexts(self, rng: Random) -> list[Sequence[int]]:
        """Return the sets of contexts in which candidates are compared; several random ones if a seed will fix them."""
        allowance = self.extension.allowance
        assert allowance is not None
        num_contexts = 1 << len(self.scm_class.roots)
        if allowance.contexts is not Contexts.SAMPLED:
            return [range(min(num_contexts, allowance.rows))]
        every = range(num_contexts)
        return [rng.sample(every, min(allowance.rows, num_contexts)) for _ in range(NUM_IMAGINED_CONTEXTS)]

    def choose(self, worlds: Sequence[EvidenceWorld]) -> Choice | None:
        """Return the greedy choice after these worlds; None if no candidate splits the drawn members."""
        rng = Random(f"{self.item_id}|greedy|{len(worlds)}")
        contexts = self.contexts(rng)
        if not self.scm_class.noise.is_noiseless:
            return self._best_by_bits(worlds, contexts, rng)
        if self.scm_class.hidden_parents:
            return self._best_hidden(worlds, contexts, rng)
        return self._best_plain(worlds, contexts, rng)

    def has_split(self, worlds: Sequence[EvidenceWorld], posterior: Posterior, rng: Random) -> bool:
        """Return whether some candidate splits the members; posterior: the one after these worlds."""
        # two drawn members with different readings prove it, at a fraction of the cost of a choice
        if not self.scm_class.noise.is_noiseless:
            sampler = posterior_sampler(posterior)
            members = MemberArrays(self.scm_class, [sampler.draw(rng) for _ in range(NUM_NOISY_WITNESSES)])
            words, targets, _ = self._rows(self.contexts(rng)[0])
            readings = members.readings(words, targets)
            return bool((readings != readings[0]).any()) or self.choose(worlds) is not None
        # noise-free, such members prove it until a world refutes one of them
        if self._witnesses is None or not self._witnesses.split_after(worlds):
            self._witnesses = self._draw_witnesses(worlds, posterior, rng)
            if self._witnesses is None:
                return False
            if not self._witnesses.is_split:
                return self.choose(worlds) is not None
        return True

    def _draw_witnesses(self, worlds: Sequence[EvidenceWorld], posterior: Posterior, rng: Random) -> Witnesses | None:
        """Return drawn members with their readings of all compared candidates; None if fewer than two fit."""
        is_natural = not self.scm_class.hidden_parents
        if is_natural:
            space = version_space(self.task, self.scm_class, worlds)
            if space.count < 2:
                return None
            (roots,) = space.root_sets
            programs = draw(ConditionedSpace(ParentSets(space, None), roots), rng, NUM_WITNESSES).programs
        else:
            sampler = posterior_sampler(posterior)
            programs = MemberArrays(self.scm_class, [sampler.draw(rng) for _ in range(NUM_WITNESSES)]).programs
        keys = self._packed_candidates(self.contexts(rng)[0], is_natural=is_natural).keys(programs)
        return Witnesses(self.scm_class, self._index(is_natural=is_natural), programs, keys, list(worlds))

    def _index(self, *, is_natural: bool) -> dict[str, int]:
        """Return the index of each observed variable: in natural order, as in version spaces, or as in the class."""
        names = natural(self.scm_class.observed) if is_natural else self.scm_class.observed
        return {v: i for i, v in enumerate(names)}

    # --- Noise-free -----------------------------------------------------------------------------------------------

    def _best_plain(
        self, worlds: Sequence[EvidenceWorld], contexts: Sequence[Sequence[int]], rng: Random
    ) -> Choice | None:
        """Return the candidate with the least expected share of members left; None if none splits the members."""
        space = version_space(self.task, self.scm_class, worlds)
        if space.count < 2:
            return None
        (roots,) = space.root_sets
        conditioned = ConditionedSpace(ParentSets(space, None), roots)
        members = draw(conditioned, rng, NUM_PAIR_MEMBERS)
        # pairs need simulation only: they rate all candidates, and masses decide among the best few
        shares = self._mean_alike_shares(members.programs, contexts, is_natural=True)
        if shares.min() >= 1.0:
            return self._rare_split(conditioned, members.programs, contexts)
        finalists = sorted(np.argsort(shares, kind="stable")[:NUM_FINALISTS].tolist())
        exact = self._truth_shares(conditioned, members.programs.select(slice(NUM_TRUTHS)), finalists, contexts)
        best = min(range(len(exact)), key=exact.__getitem__)
        return Choice(self.compared[finalists[best]], exact[best])

    def _mean_alike_shares(self, members: TablePrograms, contexts: Sequence[Sequence[int]], *, is_natural: bool) -> F64:
        shares = np.zeros(len(self.compared))
        for variant in contexts:
            shares += alike_shares(self._packed_candidates(variant, is_natural=is_natural).keys(members))
        shares /= len(contexts)
        return shares

    def _truth_shares(
        self,
        space: ConditionedSpace,
        truths: TablePrograms,
        finalists: Sequence[int],
        contexts: Sequence[Sequence[int]],
    ) -> list[float]:
        """Return, for each finalist, the mean over drawn members of the exact share with the same reading."""
        totals = [0.0] * len(finalists)
        for variant in contexts:
            rows, spans = candidate_rows(
                self.scm_class, [(self.candidates[self.compared[i]], variant) for i in finalists]
            )
            readings = truths.replay(rows)
            different: list[tuple[int, bytes]] = []
            counts: list[int] = []
            for i, (start, end) in enumerate(pairwise(spans.tolist())):
                reading_counts = Counter(reading.tobytes() for reading in readings[:, start:end])
                different += [(i, reading) for reading in reading_counts]
                counts += reading_counts.values()
            # one call for all readings: each mass costs less than the call
            words = np.frombuffer(bytearray(b"".join(reading for _, reading in different)), np.uint64)
            targets = np.concatenate([rows.targets[spans[i] : spans[i + 1]] for i, _ in different])
            sizes = [spans[i + 1] - spans[i] for i, _ in different]
            masses = space.masses(Rows(words, targets), np.cumsum([0, *sizes]).astype(np.int64))
            weighted = [0] * len(finalists)
            for (i, _), count, mass in zip(different, counts, masses, strict=True):
                weighted[i] += count * mass
            for i, weight in enumerate(weighted):
                totals[i] += weight / space.mass / len(truths)
        return [total / len(contexts) for total in totals]

    def _rare_split(
        self, space: ConditionedSpace, members: TablePrograms, contexts: Sequence[Sequence[int]]
    ) -> Choice | None:
        """Return the candidate that leaves least of one member's readings, by exact masses; None if none splits."""
        for variant in contexts:
            rows, spans = candidate_rows(self.scm_class, self._requests(variant))
            readings = members.select(slice(1)).replay(rows)[0]
            # a mass below the total proves that some member has another reading, however rare it is
            masses = space.masses(Rows(readings, rows.targets), spans)
            shares = [mass / space.mass for mass in masses]
            if min(masses) < space.mass:
                best = min(range(len(shares)), key=shares.__getitem__)
                return Choice(self.compared[best], shares[best])
        return None

    def _best_hidden(
        self, worlds: Sequence[EvidenceWorld], contexts: Sequence[Sequence[int]], rng: Random
    ) -> Choice | None:
        sampler = posterior_sampler(Posterior(self.scm_class).condition(*worlds))
        members = MemberArrays(self.scm_class, [sampler.draw(rng) for _ in range(NUM_PAIR_MEMBERS)])
        shares = self._mean_alike_shares(members.programs, contexts, is_natural=False)
        best = int(shares.argmin())
        # if no drawn pair differs, other readings have posterior below 0.03, or were missed with 0.97**256 = 4e-4
        return None if shares[best] >= 1.0 else Choice(self.compared[best], float(shares[best]))

    # --- Under noise ----------------------------------------------------------------------------------------------

    def _best_by_bits(
        self, worlds: Sequence[EvidenceWorld], contexts: Sequence[Sequence[int]], rng: Random
    ) -> Choice | None:
        """Return the candidate with the most expected bits; None if no candidate has more than BITS_TOLERANCE."""
        posterior = Posterior(self.scm_class).condition(*worlds)
        bits = self.expected_bits_after(posterior, contexts, rng, NUM_NOISY_DRAWS)
        compared, finalists = self.compared, sorted(np.argsort(-bits, kind="stable")[:NUM_NOISY_FINALISTS].tolist())
        self.compared = [compared[i] for i in finalists]
        try:  # few draws favour overrated candidates: the best are rated again
            final_bits = self.expected_bits_after(posterior, contexts, rng, NUM_FINAL_DRAWS)
        finally:
            self.compared = compared
        top = float(final_bits.max())
        if top <= BITS_TOLERANCE:
            return None
        best = int(np.flatnonzero(final_bits >= top - BITS_TOLERANCE)[0])
        return Choice(compared[finalists[best]], float(final_bits[best]))

    def expected_bits(self, worlds: Sequence[EvidenceWorld], contexts: Sequence[Sequence[int]], rng: Random) -> F64:
        """Estimate the expected bits of each compared candidate, from drawn members and their readings; [c]."""
        return self.expected_bits_after(Posterior(self.scm_class).condition(*worlds), contexts, rng, NUM_NOISY_DRAWS)

    def expected_bits_after(
        self, posterior: Posterior, contexts: Sequence[Sequence[int]], rng: Random, num_draws: int
    ) -> F64:
        """Estimate the expected bits after the evidence of a posterior, from `num_draws` readings; [c]."""
        bits: F64 = self.bits_by_draw(posterior, contexts, rng, num_draws).mean(axis=0)
        return bits

    def bits_by_draw(self, posterior: Posterior, contexts: Sequence[Sequence[int]], rng: Random, num_draws: int) -> F64:
        """Return the bits of each candidate by drawn reading; their mean over draws is an unbiased estimate; [d, c]."""
        posterior = replace(posterior, scm_class=self.scm_class)
        sampler = posterior_sampler(posterior)
        has_hidden = bool(self.scm_class.hidden_parents)
        num_members = max(num_draws, NUM_PAIR_MEMBERS) if has_hidden else num_draws
        drawn_pairs = [sampler.draw_with_rates(rng) for _ in range(num_members)]
        members = MemberArrays(self.scm_class, [member for member, _ in drawn_pairs])
        # all variables of a member have one rate: EACH was replaced by a shared grid
        rates = [next(iter(values.values())) for _, values in drawn_pairs]
        array_rng = numpy_rng(rng)
        bits = np.zeros((num_draws, len(self.compared)))
        masses = None if has_hidden else ApproximateMasses(posterior)
        for variant in contexts:
            words, targets, spans = self._rows(variant)
            flips = members.draw_flips(array_rng, rates, len(words))
            readings = members.readings(words, targets, flips)
            if masses is not None:
                logs = _logs_by_masses(masses, readings, targets, spans)
            else:
                logs = _logs_by_mixture(members, rates, readings[:num_draws], targets, spans)
            # the bits are the mean of log P(reading | member) - log P(reading); the variance of the flips cancels
            by_member = _flip_logs(members, rates[:num_draws], flips[:num_draws], targets, spans)
            bits += (by_member - logs) / log(2)
        by_draw: F64 = bits / len(contexts)
        return by_draw

    def _packed_candidates(self, contexts: Sequence[int], *, is_natural: bool) -> PackedCandidates:
        """Return the rows of all compared candidates; cached for the next step, which mostly has the same contexts.

        is_natural: see `_index`
        """
        key = tuple(contexts), tuple(self.compared), is_natural
        if key not in self._packed:
            compared = [self.candidates[index] for index in self.compared]
            index = self._index(is_natural=is_natural)
            self._packed = {key: pack_candidates(index, self.scm_class.roots, compared, contexts)}
        return self._packed[key]

    def _requests(self, contexts: Sequence[int]) -> list[tuple[Mapping[str, int], Sequence[int]]]:
        return [(self.candidates[index], contexts) for index in self.compared]

    def _rows(self, contexts: Sequence[int]) -> tuple[U64, U64, I64]:
        """Return words and targets of all compared candidates, numbered as in the class."""
        listed = [request_rows(self.scm_class, do, variant) for do, variant in self._requests(contexts)]
        words = np.array([word for rows in listed for word, _ in rows], np.uint64)
        targets = np.array([clamped for rows in listed for _, clamped in rows], np.uint64)
        return words, targets, np.cumsum([0, *map(len, listed)]).astype(np.int64)


def _logs_by_masses(masses: ApproximateMasses, readings: U64, targets: U64, spans: I64) -> F64:
    """Return the logarithm of the probability of each drawn reading; [d, c]."""
    num_draws, num_rows = readings.shape
    starts = np.concatenate([spans[:-1] + d * num_rows for d in range(num_draws)])
    all_spans = np.append(starts, num_draws * num_rows).astype(np.int64)
    logs: F64 = masses.log_masses(readings.ravel(), np.tile(targets, num_draws), all_spans) - masses.log_mass
    return logs.reshape(num_draws, -1)


def _logs_by_mixture(members: MemberArrays, rates: Sequence[Fraction], readings: U64, targets: U64, spans: I64) -> F64:
    """Return the logarithm of the probability of each drawn reading by the mixture of drawn members; [d, c]."""
    cells = _free_cells(members, targets, spans)
    logs = np.empty((len(readings), len(spans) - 1))
    for d, reading in enumerate(readings):
        by_member = _cell_logs(members.mismatches(reading, targets, spans), cells, rates)
        # subtract the largest before `exp`: no underflow with many cells
        top = by_member.max(axis=0)
        logs[d] = top + np.log(np.exp(by_member - top).mean(axis=0))
    return logs


def _flip_logs(members: MemberArrays, rates: Sequence[Fraction], flips: U64, targets: U64, spans: I64) -> F64:
    """Return log P(flips in free cells), which is that of the reading given the member; [d, c]."""
    free = ~targets & members.noisy_mask
    wrong = np.add.reduceat(np.bitwise_count(flips & free).astype(np.int64), spans[:-1], axis=1)
    return _cell_logs(wrong, _free_cells(members, targets, spans), rates)


def _free_cells(members: MemberArrays, targets: U64, spans: I64) -> I64:
    """Return the number of cells of each world that noise can flip; [c]."""
    free = ~targets & members.noisy_mask
    cells: I64 = np.add.reduceat(np.bitwise_count(free).astype(np.int64), spans[:-1])
    return cells


def _cell_logs(wrong: I64, cells: I64, rates: Sequence[Fraction]) -> F64:
    """Return the logarithm of the probability of given flips, `wrong` of the cells; [d, c]. rates: [d]."""
    rate = np.array([float(rate) for rate in rates])[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        flip_terms = np.where(wrong > 0, wrong * np.log(rate), 0.0)
    logs: F64 = flip_terms + (cells - wrong) * np.log1p(-rate)
    return logs
