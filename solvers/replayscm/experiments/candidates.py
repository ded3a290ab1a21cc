"""Candidate worlds for the next step: readings of members in them, expected shares left, and expected bits.

A *reading* is the observed rows of a world. A world *splits* members if two of them have different readings in it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import fsum, log2, prod
from random import Random
from statistics import fmean, stdev
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from calibrant.dsl.formulas.table import permute
from calibrant.dsl.replayscm.disclosure import natural
from calibrant.dsl.replayscm.episode import clean_rows, evidence_panel_world
from calibrant.dsl.replayscm.evaluator import TablePrograms, compile_tables
from calibrant.dsl.replayscm.extensions.extension import MechanismClass, NoiseKind, Prior
from calibrant.dsl.replayscm.extensions.reference import EvidenceWorld, Mechanisms, evaluation_order
from calibrant.dsl.replayscm.item import Task, TaskKind
from calibrant.dsl.replayscm.scm import LocalFunction
from calibrant.dsl.replayscm.world import Panel, Rows
from calibrant.solvers.acyclic.least import Mask
from calibrant.solvers.replayscm.experiments._kernels_members import count_alike, count_mismatches, reading_keys
from calibrant.solvers.replayscm.hidden import mass
from calibrant.solvers.replayscm.noise.posterior import DECIDED, Posterior, free_bits, reading_probabilities
from calibrant.solvers.replayscm.noise.subset_tables import target_mask
from calibrant.solvers.replayscm.space import ModelClass, VersionSpace

# --- Expected share left and expected bits of a world: exact, by listing its readings ---------------------------------
# The expected share left at a flip rate e is the sum over readings y of P(y)**2 / (e**2 + (1 - e)**2)**cells; on a grid
# of rates it is the posterior mean. It is at most 1, and 1 iff all members give the readings the same distribution. The
# expected bits are H(Y) - cells * h(e), 0 in that case.
BITS_TOLERANCE = 1e-9  # differences of bits up to this are rounding: then the first candidate is taken


def request_rows(
    scm_class: MechanismClass, constants: Mapping[str, int], contexts: Sequence[int]
) -> list[tuple[int, Mask]]:
    """Return (fixed values, bits of the intervention's targets) for each row of a requested world."""
    clamped = target_mask(scm_class, constants)
    values = sum(bit << scm_class.observed.index(variable) for variable, bit in constants.items())
    root_indices = [scm_class.observed.index(root) for root in scm_class.roots]
    rows = []
    for context in contexts:
        word = sum((context >> i & 1) << root for i, root in enumerate(root_indices))
        rows.append((word & ~clamped | values, clamped))
    return rows


def expected_bits(posterior: Posterior, rows: Sequence[tuple[int, Mask]]) -> float:
    """Return the expected information of a world's reading about the SCM, in bits; `BudgetSpent` for too many readings.

    On a grid of rates, the noise entropy is the mean over the posterior of the rates. `ValueError` if each variable has
    an unknown rate of its own.
    """
    if posterior.scm_class.noise.kind is NoiseKind.EACH:
        raise ValueError("bits need a rate that is common to all variables")
    probabilities = reading_probabilities(posterior, rows).values()
    # doubles are enough: bits are only compared, within BITS_TOLERANCE
    entropy = -fsum(float(p) * log2(p) for p in probabilities)
    grid, cells = posterior.scm_class.noise.grid, num_free_cells(posterior, rows)
    weights = [Fraction(1)] if len(grid) == 1 else list(posterior.noise_posterior)
    noise = fsum(float(weight) * binary_entropy(float(rate)) for (rate, _), weight in zip(grid, weights, strict=True))
    return entropy - cells * noise


def num_free_cells(posterior: Posterior, rows: Sequence[tuple[int, Mask]]) -> int:
    """Return the number of cells of a world that noise can flip."""
    return sum(len(free_bits(posterior, clamped)) for _, clamped in rows)


def binary_entropy(rate: float) -> float:
    """Return the entropy of a flip of this rate, in bits."""
    return 0.0 if rate in (0, 1) else -rate * log2(rate) - (1 - rate) * log2(1 - rate)


def best_by_bits(bits: Sequence[float]) -> int | None:
    """Return the first candidate within rounding of the most bits; None if no candidate has any."""
    top = max(bits, default=0.0)
    # a top of 0 up to rounding: no candidate splits the members
    if top <= BITS_TOLERANCE:
        return None
    return next(index for index, value in enumerate(bits) if value >= top - BITS_TOLERANCE)


# --- Entropy of a posterior over SCMs, in bits ------------------------------------------------------------------------
NUM_DRAWS = 256  # logarithms of posteriors vary by a few bits: a standard error of about 0.2


class Bits(NamedTuple):
    """An entropy in bits and its standard error, which is 0 where the entropy is exact."""

    value: float
    error: float


def posterior_bits(posterior: Posterior, seed: str, num_draws: int = NUM_DRAWS) -> Bits:
    """Return the entropy of a posterior; `ValueError` for an empty one.

    It is exact, by counting, without noise under a uniform prior; else the mean surprise of drawn members, unbiased.
    """
    scm_class = posterior.scm_class
    if scm_class.noise.is_noiseless and scm_class.prior is Prior.UNIFORM:
        num_members = mass.count_members(posterior)
        if not num_members:
            raise ValueError("no SCM has positive posterior")
        return Bits(log2(num_members), 0.0)
    rng, sampler = Random(seed), mass.posterior_sampler(posterior)
    log_mass = _log2(mass.exact_mass(posterior))
    surprises = []
    for _ in range(num_draws):
        member = sampler.draw(rng)
        surprises.append(log_mass - _log2(posterior.likelihood(member)))  # prior included
    return Bits(fmean(surprises), stdev(surprises) / num_draws**0.5)


def _log2(value: Fraction) -> float:
    # numerator and denominator separately: their quotient may underflow
    return log2(value.numerator) - log2(value.denominator)


# --- Whether the evidence decides the clean behaviour (rows without flips) in given worlds, by exact ratios -----------
# Without noise, the behaviour is decided iff all members have the same one. Under noise it is decided iff one behaviour
# has a posterior of at least a threshold. The behaviours of drawn members are tried, each by one exact ratio. The top
# one is proven most probable once those that were not tried have no more posterior together.
NUM_TRIED_DRAWS = 8  # a behaviour of share 0.99 is missed by all with probability 10**-16
NUM_RANKED_DRAWS = 400  # a behaviour of share 0.05 is missed by all with probability 1e-9
MAX_RANKED_BEHAVIOURS = 64  # behaviours whose share is computed, the most frequent ones: 5 ms each at 10 variables

AskedWorlds = Sequence[tuple[Mapping[str, int], Sequence[int]]]
"""Constants and contexts of the worlds in which a behaviour is compared."""

Behaviour = tuple[tuple[str, ...], ...]
"""Clean rows, by world."""


@dataclass(frozen=True)
class BehaviourVerdict:
    """The most probable behaviour among those tried.

    rows: its clean rows, by world; share: its exact posterior; is_decided: whether the share reaches `threshold`
    upper: upper bound of the posterior of any behaviour, tried or not
    """

    rows: Behaviour
    share: Fraction
    is_decided: bool
    threshold: Fraction
    upper: Fraction

    @property
    def is_proved(self) -> bool:
        """Whether it is proven that no behaviour is more probable."""
        return self.share == self.upper


def behaviour_share(posterior: Posterior, worlds: AskedWorlds, rows: Sequence[Sequence[str]]) -> Fraction:
    """Return the posterior of a clean behaviour: the mass with its rows as noise-free evidence, divided by the mass."""
    return _clean_mass(posterior, worlds, rows) / mass.exact_mass(posterior)


def behaviour_shares(
    posterior: Posterior, worlds: AskedWorlds, members: Iterable[Mechanisms]
) -> dict[Behaviour, Fraction]:
    """Return the behaviours of these members with their posteriors, each by one exact ratio."""
    scm_class, total_mass = posterior.scm_class, mass.exact_mass(posterior)
    behaviours = dict.fromkeys(
        tuple(clean_rows(scm_class, member, do, contexts) for do, contexts in worlds) for member in members
    )
    return {behaviour: _clean_mass(posterior, worlds, behaviour) / total_mass for behaviour in behaviours}


def _clean_mass(posterior: Posterior, worlds: AskedWorlds, rows: Sequence[Sequence[str]]) -> Fraction:
    """Return the mass with the rows of a clean behaviour as noise-free evidence."""
    evidence = [EvidenceWorld(do, tuple(texts), is_clean=True) for (do, _), texts in zip(worlds, rows, strict=True)]
    return mass.exact_mass(posterior.condition(*evidence))


def decide_behaviour(posterior: Posterior, worlds: AskedWorlds, rng: Random) -> BehaviourVerdict:
    """Return the verdict from NUM_TRIED_DRAWS draws; `ValueError` for an empty posterior."""
    sampler = mass.posterior_sampler(posterior)
    # if the draws miss the top behaviour, the verdict is undecided, not wrong
    shares = behaviour_shares(posterior, worlds, [sampler.draw(rng) for _ in range(NUM_TRIED_DRAWS)])
    return _verdict(posterior, shares)


def rank_behaviours(
    posterior: Posterior, worlds: AskedWorlds, rng: Random, maps: Sequence[Mechanisms] = ()
) -> BehaviourVerdict:
    """Return the verdict after computing shares, most frequent behaviours first, until none can be more probable.

    At most MAX_RANKED_BEHAVIOURS shares are computed; `upper` covers the others. `ValueError` for an empty posterior.

    maps: most probable SCMs, whose behaviours come before those of drawn members
    """
    scm_class, sampler, total_mass = posterior.scm_class, mass.posterior_sampler(posterior), mass.exact_mass(posterior)

    def behaviour(member: Mechanisms) -> Behaviour:
        return tuple(clean_rows(scm_class, member, do, contexts) for do, contexts in worlds)

    counts = Counter(behaviour(sampler.draw(rng)) for _ in range(NUM_RANKED_DRAWS))
    first = dict.fromkeys(map(behaviour, maps))
    ranked = [*first, *sorted(counts.keys() - first.keys(), key=lambda rows: (-counts[rows], rows))]
    shares: dict[Behaviour, Fraction] = {}
    for rows in ranked[:MAX_RANKED_BEHAVIOURS]:
        shares[rows] = _clean_mass(posterior, worlds, rows) / total_mass
        if max(shares.values()) >= 1 - sum(shares.values()):
            break
    return _verdict(posterior, shares)


def _verdict(posterior: Posterior, shares: Mapping[Behaviour, Fraction]) -> BehaviourVerdict:
    threshold = Fraction(1) if posterior.scm_class.noise.is_noiseless else DECIDED
    top = max(shares, key=shares.__getitem__)
    upper = max(shares[top], 1 - sum(shares.values(), Fraction(0)))
    return BehaviourVerdict(top, shares[top], shares[top] >= threshold, threshold, upper)


# --- Candidate worlds on members that are listed, and the expected shares of members left. Noise-free -----------------
# Two members are in one cell if they have the same reading in every candidate: no sequence of candidates separates
# them.
Cells = frozenset[int]


@dataclass(frozen=True)
class ListedCandidates:
    """Members by cell, and the reading of each cell in each candidate.

    members: all members; cell_of: [members] cell of each; weights: [cells] sum of the members' prior weights
    outcomes: [candidates][cells] index of the reading: equal iff the readings are
    """

    members: Sequence[Mechanisms]
    cell_of: Sequence[int]
    weights: Sequence[Fraction]
    outcomes: Sequence[Sequence[int]]

    @property
    def num_cells(self) -> int:
        return len(self.weights)

    @cached_property
    def every_cell(self) -> Cells:
        return frozenset(range(self.num_cells))

    def share(self, cells: Cells, candidate: int) -> Fraction:
        """Return the expected share of these cells' weight that is left after the reading of a candidate."""
        parts = self.parts(cells, candidate).values()
        total_weight = self._weight(cells)
        return sum((self._weight(part) ** 2 for part in parts), start=Fraction(0)) / total_weight**2

    def parts(self, cells: Cells, candidate: int) -> dict[int, Cells]:
        """Return index of the reading in a candidate -> cells that have it."""
        grouped: dict[int, set[int]] = {}
        for cell in cells:
            grouped.setdefault(self.outcomes[candidate][cell], set()).add(cell)
        return {outcome: frozenset(part) for outcome, part in grouped.items()}

    def _weight(self, cells: Cells) -> Fraction:
        return sum((self.weights[cell] for cell in cells), start=Fraction(0))


def list_candidates(
    posterior: Posterior,
    worlds: Sequence[tuple[Mapping[str, int], Sequence[int]]],
    limit: int = mass.MAX_LISTED_MEMBERS,
) -> ListedCandidates:
    """Return the members and their readings in candidate worlds; `BudgetSpent` for more than `limit` members.

    worlds: constants and contexts of each candidate
    """
    scm_class = posterior.scm_class
    members = mass.list_members(posterior, limit)
    readings = [tuple(clean_rows(scm_class, member, do, contexts) for do, contexts in worlds) for member in members]
    # members with equal readings in all candidates are one cell: no policy separates them
    cells: dict[tuple[tuple[str, ...], ...], int] = {}
    cell_of = [cells.setdefault(behaviour, len(cells)) for behaviour in readings]
    weights = [Fraction(0)] * len(cells)
    for member, cell in zip(members, cell_of, strict=True):
        weights[cell] += member_weight(scm_class, member)
    outcomes = []
    for candidate in range(len(worlds)):
        index_of: dict[tuple[str, ...], int] = {}
        outcomes.append([index_of.setdefault(behaviour[candidate], len(index_of)) for behaviour in cells])
    return ListedCandidates(members, cell_of, weights, outcomes)


def member_weight(scm_class: MechanismClass, mechanisms: Mechanisms) -> Fraction:
    """Return the prior weight of an SCM of the class."""
    weights = (scm_class.mechanism_weight(v, len(f.parents)) for v, f in mechanisms.items())
    return prod(weights, start=Fraction(1))


# --- Rows of all candidate worlds as bit columns, 64 rows a word: readings of members, and which of them are equal ----
F64 = npt.NDArray[np.float64]
U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]

WORD_BITS = 64


@dataclass(frozen=True)
class PackedCandidates:
    """Worlds of equally many rows, as bit columns of n variables over w words.

    values: [n, w] constants of targets and values of roots, 0 elsewhere
    clamped: [n, w] 1 where a variable is intervened on; endogenous: observed variables whose values are read

    Row r of candidate c is bit (c % p) * num_rows + r of word c // p for p candidates a word. A candidate of more than
    64 rows has b words of its own, from word c * b on.
    """

    values: U64
    clamped: U64
    num_candidates: int
    num_rows: int
    endogenous: I64

    def keys(self, members: TablePrograms) -> U64:
        """Return a key of the reading of member d in candidate c: equal iff the readings are; [c, d].

        Readings of more than 64 cells are hashed: a collision among 32,640 pairs has probability 2e-15.
        """
        keys = np.empty((self.num_candidates, len(members)), np.uint64)
        arrays = members.order, members.masks, members.tables
        reading_keys(*arrays, self.values, self.clamped, self.endogenous, self.num_rows, keys)
        return keys


def pack_candidates(
    index: Mapping[str, int],
    roots: Sequence[str],
    candidates: Sequence[Mapping[str, int]],
    contexts: Sequence[int],
) -> PackedCandidates:
    """Return the rows of all candidates, each in the same contexts.

    index: index of each observed variable; contexts: bit i is the value of root i
    """
    root_indices = [index[root] for root in roots]
    root_words = [sum((context >> i & 1) << root for i, root in enumerate(root_indices)) for context in contexts]
    targets = np.array([sum(1 << index[v] for v in do) for do in candidates], np.uint64)
    constants = np.array([sum(bit << index[v] for v, bit in do.items()) for do in candidates], np.uint64)
    # a root that is intervened on has its constant, whatever the context
    words = np.array(root_words, np.uint64)[None, :] & ~targets[:, None] | constants[:, None]
    clamped = np.broadcast_to(targets[:, None], words.shape)
    variables = range(len(index))
    endogenous = np.array([v for v in variables if v not in root_indices], np.int64)
    return PackedCandidates(
        np.array([_pack_column(words, v) for v in variables], np.uint64),
        np.array([_pack_column(clamped, v) for v in variables], np.uint64),
        len(candidates),
        len(contexts),
        endogenous,
    )


def _pack_column(words: U64, variable: int) -> U64:
    """Return the bits of one variable in all rows, packed; [w]."""
    bits = (words >> np.uint64(variable) & np.uint64(1)).astype(np.uint8)
    num_candidates, num_rows = bits.shape
    per_word = max(1, WORD_BITS // num_rows)
    bits = np.pad(bits, ((0, -num_candidates % per_word), (0, 0))).reshape(-1, per_word * num_rows)
    bits = np.pad(bits, ((0, 0), (0, -bits.shape[1] % WORD_BITS)))
    packed: U64 = np.packbits(bits, axis=1, bitorder="little").view("<u8").astype(np.uint64).ravel()
    return packed


def alike_shares(keys: U64) -> F64:
    """Return the share of pairs of different draws with equal readings in each candidate; [c].

    An unbiased estimate of the expected share left; pairs of a draw with itself would add up to 1 / draws.

    keys: [c, d] key of every candidate and draw
    """
    num_members = keys.shape[1]
    if num_members < 2:
        return np.ones(len(keys))
    alike = np.empty(len(keys), np.int64)
    count_alike(np.sort(keys, axis=1), alike)
    shares: F64 = 2 * alike / (num_members * (num_members - 1))
    return shares


# --- Drawn members as arrays, and their readings of many worlds -------------------------------------------------------


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
        """Return the observed values of every row; [d, r]. flips: [d, r] cells to flip, None for none."""
        return self.programs.replay(Rows(words, targets), flips) & self.observed

    def mismatches(self, reading: U64, targets: U64, spans: I64) -> I64:
        """Return how many free cells of the reading of world c differ from the mechanisms of member d; [d, c].

        reading: [r] observed values; spans: [c + 1] first row of each world
        """
        noisy = np.array([self.noisy_mask])
        wrong = np.empty((len(self), len(spans) - 1), np.int64)
        arrays = self.programs.order, self.programs.masks, self.programs.tables
        count_mismatches(*arrays, noisy, reading, targets, spans, wrong)
        return wrong

    def draw_flips(self, rng: np.random.Generator, rates: Sequence[Fraction], num_rows: int) -> U64:
        """Draw independent flips of the observed endogenous cells, each member with its own rate; [d, r]."""
        flips = np.zeros((len(self), num_rows), np.uint64)
        limits = np.array([float(rate) for rate in rates])[:, None]
        for v in self.noisy:
            flips |= (rng.random(flips.shape) < limits).astype(np.uint64) << np.uint64(v)
        return flips


def _packed(function: LocalFunction, index: dict[str, int]) -> tuple[int, int]:
    """Return the parent set as a mask, and the bits of the table over the parents in ascending order."""
    parents = [index[u] for u in function.parents]
    ranked = sorted(range(len(parents)), key=parents.__getitem__)
    # the kernel reads parents ascending, mechanisms list them in any order
    table = permute(function.table, ranked) if ranked != list(range(len(ranked))) else function.table
    return sum(1 << parent for parent in parents), table.bits


def numpy_rng(rng: Random) -> np.random.Generator:
    """Return a NumPy generator seeded by a draw."""
    # PCG64 by name: the generator of `default_rng` may change with NumPy
    return np.random.Generator(np.random.PCG64(rng.getrandbits(63)))


# --- Witnesses that some candidate splits: two members that fit all worlds and have different readings in it ----------


@dataclass
class Witnesses:
    """Noise-free members that fit some worlds, with keys of their readings in every candidate.

    index: index of each observed variable in the arrays; keys: [c, d]; worlds: worlds that all these members fit
    """

    scm_class: MechanismClass
    index: Mapping[str, int]
    members: TablePrograms
    keys: U64
    worlds: list[EvidenceWorld]

    def split_after(self, worlds: Sequence[EvidenceWorld]) -> bool:
        """Drop members that later worlds refute; return whether two of the others have different readings."""
        num_seen = len(self.worlds)
        # members drawn for other evidence prove nothing
        if list(worlds[:num_seen]) != self.worlds:
            return False
        fitting = np.ones(self.keys.shape[1], np.bool_)
        for world in worlds[num_seen:]:
            fitting &= self._fit(world)
        self.worlds = list(worlds)
        if not fitting.any():
            return False
        self.keys = self.keys[:, fitting]
        self.members = self.members.select(fitting)
        return self.is_split

    @property
    def is_split(self) -> bool:
        """Whether two members have different readings in some candidate."""
        return bool((self.keys != self.keys[:, :1]).any())

    def _fit(self, world: EvidenceWorld) -> npt.NDArray[np.bool_]:
        """Return whether each member replays a world; [d]."""
        observed_indices = [self.index[v] for v in self.scm_class.observed]
        words = np.array(
            [sum(int(bit) << i for bit, i in zip(row, observed_indices, strict=True)) for row in world.rows], np.uint64
        )
        targets = np.full(len(words), sum(1 << self.index[v] for v in world.constants), np.uint64)
        readings = self.members.replay(Rows(words, targets))
        observed = np.uint64(sum(1 << i for i in observed_indices))
        fits: npt.NDArray[np.bool_] = ((readings ^ words) & observed == 0).all(axis=1)
        return fits


# --- Worlds of an episode as the solvers of plain items take them: panels, version spaces, rows as words --------------


def plain_task(task: Task, scm_class: MechanismClass, worlds: Iterable[EvidenceWorld]) -> Task:
    """Return the noise-free passive task of these worlds, without hidden variables."""
    named = tuple(evidence_panel_world(f"world{index}", scm_class, world) for index, world in enumerate(worlds))
    training = Panel(natural(scm_class.observed), named)
    return replace(task, kind=TaskKind.SCM, training=training, extension=None)


def version_space(task: Task, scm_class: MechanismClass, worlds: Iterable[EvidenceWorld]) -> VersionSpace:
    """Return the SCMs of the class that fit all rows; noise-free, without hidden variables."""
    return VersionSpace(plain_task(task, scm_class, worlds), ModelClass(scm_class.max_parents))


def candidate_rows(
    scm_class: MechanismClass, worlds: Sequence[tuple[Mapping[str, int], Sequence[int]]]
) -> tuple[Rows, npt.NDArray[np.int64]]:
    """Return the rows of candidate worlds, as words over the variables in natural order, and each world's first row.

    worlds: constants and contexts of each; first rows: [worlds + 1], the last entry is the number of rows
    """
    # version spaces have variables in natural order, extended classes in the order of the item
    index = {v: i for i, v in enumerate(natural(scm_class.observed))}
    root_indices = [index[name] for name in scm_class.roots]
    words, targets, spans = [], [], [0]
    for constants, contexts in worlds:
        clamped = sum(1 << index[v] for v in constants)
        values = sum(bit << index[v] for v, bit in constants.items())
        for context in contexts:
            word = sum((context >> i & 1) << root for i, root in enumerate(root_indices))
            # a root that is intervened on has its constant, whatever the context
            words.append(word & ~clamped | values)
            targets.append(clamped)
        spans.append(len(words))
    return Rows(np.array(words, np.uint64), np.array(targets, np.uint64)), np.array(spans, np.int64)
