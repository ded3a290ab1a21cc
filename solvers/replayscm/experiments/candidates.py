"""Candidate worlds and drawn members as arrays: what members read, which read alike, which prove a split."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from random import Random

import numpy as np
import numpy.typing as npt

from calibrant.dsl.formulas.table import permute
from calibrant.dsl.replayscm.disclosure import natural
from calibrant.dsl.replayscm.episode import evidence_panel_world
from calibrant.dsl.replayscm.evaluator import TablePrograms, compile_tables
from calibrant.dsl.replayscm.extensions.extension import MechanismClass
from calibrant.dsl.replayscm.extensions.reference import EvidenceWorld, Mechanisms, evaluation_order
from calibrant.dsl.replayscm.item import Task, TaskKind
from calibrant.dsl.replayscm.scm import LocalFunction
from calibrant.dsl.replayscm.world import Panel, Rows
from calibrant.solvers.replayscm.experiments._kernels_members import count_alike, count_mismatches, reading_keys
from calibrant.solvers.replayscm.space import ModelClass, VersionSpace

# --- Rows of all candidate worlds as bit columns, 64 rows a word: what members read, and which of them read alike -----
F64 = npt.NDArray[np.float64]
U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]

WORD_BITS = 64


@dataclass(frozen=True)
class PackedCandidates:
    """Worlds with equally many rows each.

    values: [n, w] targets and roots, 0 elsewhere; clamped: [n, w]; row r of candidate c is bit (c % p) * num_rows + r
    of word c // p * b, for p candidates a word, or bits of b words a candidate
    endogenous: observed variables that readings show
    """

    values: U64
    clamped: U64
    num_candidates: int
    num_rows: int
    endogenous: I64

    def keys(self, members: TablePrograms) -> U64:
        """[c, d] number of what each member reads of each candidate: equal iff readings are.

        Hashed where a reading has more than 64 cells: two of 32,640 pairs collide with probability 2e-15.
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
    """Return the rows of candidates in the same contexts.

    index: number of each observed variable; contexts: bit i is the value of root i
    """
    places = [index[root] for root in roots]
    root_words = [sum((context >> i & 1) << place for i, place in enumerate(places)) for context in contexts]
    targets = np.array([sum(1 << index[v] for v in do) for do in candidates], np.uint64)
    constants = np.array([sum(bit << index[v] for v, bit in do.items()) for do in candidates], np.uint64)
    # a clamped root shows its constant, whatever the context
    words = np.array(root_words, np.uint64)[None, :] & ~targets[:, None] | constants[:, None]
    clamped = np.broadcast_to(targets[:, None], words.shape)
    variables = range(len(index))
    endogenous = np.array([v for v in variables if v not in places], np.int64)
    return PackedCandidates(
        np.array([_pack_column(words, v) for v in variables], np.uint64),
        np.array([_pack_column(clamped, v) for v in variables], np.uint64),
        len(candidates),
        len(contexts),
        endogenous,
    )


def _pack_column(words: U64, variable: int) -> U64:
    """[w] bits of one variable in all rows."""
    bits = (words >> np.uint64(variable) & np.uint64(1)).astype(np.uint8)
    num_candidates, num_rows = bits.shape
    per_word = max(1, WORD_BITS // num_rows)
    bits = np.pad(bits, ((0, -num_candidates % per_word), (0, 0))).reshape(-1, per_word * num_rows)
    bits = np.pad(bits, ((0, 0), (0, -bits.shape[1] % WORD_BITS)))
    packed: U64 = np.packbits(bits, axis=1, bitorder="little").view("<u8").astype(np.uint64).ravel()
    return packed


def alike_shares(keys: U64) -> F64:
    """[c] share of pairs of different members that read a candidate alike; an unbiased estimate of the expected share.

    Draws are not paired with themselves: the estimate would be too large by up to 1/256.

    keys: [c, d] of every candidate and member
    """
    num_members = keys.shape[1]
    if num_members < 2:
        return np.ones(len(keys))
    alike = np.empty(len(keys), np.int64)
    count_alike(np.sort(keys, axis=1), alike)
    shares: F64 = 2 * alike / (num_members * (num_members - 1))
    return shares


# --- Drawn members as arrays, and what they show of many worlds -------------------------------------------------------


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


# --- Members that prove that a candidate splits: two that still fit all worlds and read some candidate differently ----


@dataclass
class Witnesses:
    """Noise-free members that fit some worlds, with what they read of every candidate.

    index: number of each observed variable in the arrays; keys: [c, d]; worlds: that they fit
    """

    scm_class: MechanismClass
    index: Mapping[str, int]
    members: TablePrograms
    keys: U64
    worlds: list[EvidenceWorld]

    def split_after(self, worlds: Sequence[EvidenceWorld]) -> bool:
        """Drop members that more worlds refute; return whether two of the others read a candidate differently."""
        num_seen = len(self.worlds)
        # other worlds than those that they were drawn for: they prove nothing
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
        """Whether two read some candidate differently."""
        return bool((self.keys != self.keys[:, :1]).any())

    def _fit(self, world: EvidenceWorld) -> npt.NDArray[np.bool_]:
        """[d] whether each member replays a world."""
        places = [self.index[v] for v in self.scm_class.observed]
        words = np.array(
            [sum(int(bit) << i for bit, i in zip(row, places, strict=True)) for row in world.rows], np.uint64
        )
        targets = np.full(len(words), sum(1 << self.index[v] for v in world.constants), np.uint64)
        readings = self.members.replay(Rows(words, targets))
        observed = np.uint64(sum(1 << i for i in places))
        fits: npt.NDArray[np.bool_] = ((readings ^ words) & observed == 0).all(axis=1)
        return fits


# --- Worlds of an episode as the solvers of plain items take them: panels, version spaces, rows as words --------------


def plain_task(task: Task, scm_class: MechanismClass, worlds: Iterable[EvidenceWorld]) -> Task:
    """Return the noise-free passive task of these worlds, without hidden variables."""
    named = tuple(evidence_panel_world(f"world{number}", scm_class, world) for number, world in enumerate(worlds))
    training = Panel(natural(scm_class.observed), named)
    return replace(task, kind=TaskKind.SCM, training=training, extension=None)


def version_space(task: Task, scm_class: MechanismClass, worlds: Iterable[EvidenceWorld]) -> VersionSpace:
    """Return the SCMs of the class that fit all rows; noise-free, without hidden variables."""
    return VersionSpace(plain_task(task, scm_class, worlds), ModelClass(scm_class.max_parents))


def candidate_rows(
    scm_class: MechanismClass, worlds: Sequence[tuple[Mapping[str, int], Sequence[int]]]
) -> tuple[Rows, npt.NDArray[np.int64]]:
    """Return targets and roots of worlds that may be asked for as words over the variables in natural order.

    worlds: constants and contexts of each; the second part is where the rows of each begin, and their number
    """
    # natural order: version spaces number variables so, extended classes as the item lists them
    index = {v: i for i, v in enumerate(natural(scm_class.observed))}
    places = [index[root] for root in scm_class.roots]
    words, targets, spans = [], [], [0]
    for constants, contexts in worlds:
        clamped = sum(1 << index[v] for v in constants)
        values = sum(bit << index[v] for v, bit in constants.items())
        for context in contexts:
            word = sum((context >> i & 1) << place for i, place in enumerate(places))
            # a clamped root shows its constant, whatever the context
            words.append(word & ~clamped | values)
            targets.append(clamped)
        spans.append(len(words))
    return Rows(np.array(words, np.uint64), np.array(targets, np.uint64)), np.array(spans, np.int64)
