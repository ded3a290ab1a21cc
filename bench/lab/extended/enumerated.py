"""Episodes on a class that is listed whole: 4 variables, 2 of them roots, at most 2 parents; 960 SCMs.

Every expected bit is exact, by all readings of all candidates under every SCM. An episode ends where one clean
behaviour in all candidate worlds has a posterior of at least 0.99.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from random import Random
from statistics import fmean

import numpy as np
import numpy.typing as npt

from calibrant.dsl.replayscm.disclosure import HiddenOrder
from calibrant.dsl.replayscm.episodes.candidates import candidate_worlds
from calibrant.dsl.replayscm.extensions.local_functions import clean_rows, noisy_rows
from calibrant.dsl.replayscm.extensions.model_class import MechanismClass
from calibrant.dsl.replayscm.extensions.noise import NOISE_FREE, known_rate
from calibrant.dsl.replayscm.extensions.prior import Prior
from calibrant.dsl.replayscm.extensions.reference import Mechanisms
from calibrant.solvers.replayscm.experiments.listed import member_weight
from calibrant.solvers.replayscm.experiments.members import MemberArrays
from calibrant.solvers.replayscm.experiments.shares import BITS_TOLERANCE, binary_entropy
from calibrant.solvers.replayscm.hidden.meanings import list_members
from calibrant.solvers.replayscm.noise.posterior import Posterior
from calibrant.solvers.replayscm.noise.predictions import DECIDED

NAMES = ("X1", "X2", "X3", "X4")
ROOTS = NAMES[:2]
MAX_PARENTS, MAX_TARGETS = 2, 3
MAX_WORLDS = 200  # no episode of 200 at a rate of 1/5 came near
POLICY_NAMES = ("bits", "random")

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]


@dataclass(frozen=True)
class EnumeratedClass:
    """All SCMs, and the law of every candidate's reading.

    prior: [d]; behaviours: [d] equal iff all candidates show the same clean rows
    likelihoods: [c][d, y] probability of each reading; cells: [c] free ones
    """

    scm_class: MechanismClass
    members: Sequence[Mechanisms]
    candidates: Sequence[dict[str, int]]
    prior: F64
    behaviours: I64
    likelihoods: Sequence[F64]
    cells: Sequence[int]

    @property
    def rate(self) -> Fraction:
        return self.scm_class.noise.max_rate

    def reading(self, candidate: int, truth: int, seed: int, world: int) -> int:
        """Return the number of a noisy reading of a candidate."""
        rates = dict.fromkeys(self.scm_class.endogenous, self.rate)
        do, contexts = self.candidates[candidate], range(1 << len(ROOTS))
        rows = noisy_rows(self.scm_class, self.members[truth], do, contexts, seed=seed, world=world, rates=rates)
        free = [NAMES.index(v) for v in self.scm_class.endogenous if v not in do]
        return sum(int(bit) << i for i, bit in enumerate(row[v] for row in rows for v in free))

    def expected_bits(self, posterior: F64) -> F64:
        """[c] bits that each candidate is expected to tell."""
        noise = binary_entropy(float(self.rate))
        bits = []
        for likelihood, cells in zip(self.likelihoods, self.cells, strict=True):
            law = posterior @ likelihood
            positive = law[law > 0]
            bits.append(float(-(positive * np.log2(positive)).sum()) - cells * noise)
        return np.array(bits)

    def top_behaviour(self, posterior: F64) -> tuple[int, float]:
        """Return the most probable clean behaviour and its posterior."""
        shares = np.bincount(self.behaviours, posterior)
        return int(shares.argmax()), float(shares.max())


def enumerate_class(rate: Fraction) -> EnumeratedClass:
    """Return the class at a rate, with the prior that draws the number of parents first."""
    disclosure = HiddenOrder(NAMES, ROOTS)
    scm_class = MechanismClass(NAMES, ROOTS, disclosure, MAX_PARENTS, Prior.BY_PARENTS, known_rate(rate), {})
    members = list_members(Posterior(replace(scm_class, noise=NOISE_FREE)))
    prior = np.array([float(member_weight(scm_class, member)) for member in members])
    candidates = [dict(do) for do in candidate_worlds(NAMES, MAX_TARGETS)]
    contexts = range(1 << len(ROOTS))
    numbers: dict[tuple[tuple[str, ...], ...], int] = {}
    behaviours = [
        numbers.setdefault(tuple(tuple(clean_rows(scm_class, m, do, contexts)) for do in candidates), len(numbers))
        for m in members
    ]
    listed = [_reading_law(scm_class, members, do) for do in candidates]
    return EnumeratedClass(
        scm_class,
        members,
        candidates,
        prior / prior.sum(),
        np.array(behaviours),
        [likelihood for likelihood, _ in listed],
        [cells for _, cells in listed],
    )


def _reading_law(scm_class: MechanismClass, members: Sequence[Mechanisms], do: dict[str, int]) -> tuple[F64, int]:
    """[d, y] probability of each reading, by running every SCM under every pattern of flips; and the free cells."""
    arrays, num_contexts = MemberArrays(scm_class, members), 1 << len(ROOTS)
    free = [NAMES.index(v) for v in scm_class.endogenous if v not in do]
    targets = np.full(num_contexts, sum(1 << NAMES.index(v) for v in do), np.uint64)
    constants = sum(bit << NAMES.index(v) for v, bit in do.items())
    words = np.arange(num_contexts, dtype=np.uint64) & ~targets | np.uint64(constants)
    rate, cells = float(scm_class.noise.max_rate), len(free) * num_contexts
    likelihood = np.zeros((len(members), 1 << cells))
    for pattern in range(1 << cells):
        flips = np.zeros((len(members), num_contexts), np.uint64)
        for row in range(num_contexts):
            for i, v in enumerate(free):
                flips[:, row] |= np.uint64((pattern >> row * len(free) + i & 1) << v)
        readings = arrays.readings(words, targets, flips)
        numbers = np.zeros(len(members), np.int64)
        for row in range(num_contexts):
            for i, v in enumerate(free):
                bits = readings[:, row] >> np.uint64(v) & np.uint64(1)
                numbers |= bits.astype(np.int64) << row * len(free) + i
        wrong = pattern.bit_count()
        likelihood[np.arange(len(members)), numbers] += rate**wrong * (1 - rate) ** (cells - wrong)
    return likelihood, cells


def play_enumerated(listed: EnumeratedClass, policy_name: str, seed: int) -> tuple[int, bool]:
    """Return the worlds after the start until one behaviour is decided, and whether it is the truth's."""
    rng = Random(f"enumerated|{policy_name}|{seed}")
    truth = Random(f"enumerated|{seed}").choices(range(len(listed.members)), listed.prior.tolist())[0]
    order = rng.sample(range(len(listed.candidates)), len(listed.candidates))
    posterior, candidate, world = listed.prior, 0, 0  # the start sets nothing
    while True:
        posterior = posterior * listed.likelihoods[candidate][:, listed.reading(candidate, truth, seed, world)]
        posterior = posterior / posterior.sum()
        behaviour, share = listed.top_behaviour(posterior)
        if share >= DECIDED or world == MAX_WORLDS:
            return world, bool(share >= DECIDED and behaviour == listed.behaviours[truth])
        if policy_name == "bits":
            bits = listed.expected_bits(posterior)
            candidate = int(np.flatnonzero(bits >= bits.max() - BITS_TOLERANCE)[0])
        else:
            # without repetition, then all over again
            candidate = order[world % len(order)]
        world += 1


def enumerated_lines(number: int, rates: Sequence[str]) -> Iterator[str]:
    """Yield worlds until decided, and the share decided and right, of greedy by bits and of random at each rate."""
    yield "rate  policy  SCMs  behaviours  worlds  decided and right"
    for rate in rates:
        listed = enumerate_class(Fraction(rate))
        num_behaviours = int(listed.behaviours.max()) + 1
        for policy in POLICY_NAMES:
            played = [play_enumerated(listed, policy, seed) for seed in range(1, number + 1)]
            worlds, right = fmean(worlds for worlds, _ in played), fmean(is_right for _, is_right in played)
            yield f"{rate:4}  {policy:6}  {len(listed.members):4}  {num_behaviours:10}  {worlds:6.1f}  {right:.3f}"
