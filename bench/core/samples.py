"""Several answers of one model to one item: pass@k without bias, and what a majority of them means.

pass@k is the probability that k of the n samples, drawn without replacement, hold a right one: 1 - C(n-c, k) / C(n, k)
with c right ones (Chen et al. 2021, Evaluating Large Language Models Trained on Code, eq. 1). The majority is the
meaning that most valid samples have; where several are equally frequent it is the mean over these, and an item
without a valid sample counts as wrong.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import comb
from typing import NamedTuple, TypeAlias, overload


class Sample(NamedTuple):
    """Outcome of one answer.

    meaning: equal for two answers that mean the same; None where that is not known
    """

    valid: bool
    correct: bool
    train_exact: bool
    heldout_exact: bool
    meaning: str | None


class SampleList(Sequence[Sample]):
    """Samples in the order in which they came, in nine bytes each if their meanings are digests of ReplaySCM."""

    __slots__ = ("_digests", "_flags", "_others")

    def __init__(self, samples: Iterable[Sample] = ()) -> None:
        self._flags = bytearray()  # the first four fields, a bit each
        self._digests = bytearray()  # eight bytes of each meaning
        self._others: dict[int, str | None] = {}  # meanings that are not sixteen hexadecimal digits, by place
        for sample in samples:
            self.append(sample)

    def append(self, sample: Sample) -> None:
        valid, correct, train_exact, heldout_exact, meaning = sample
        digest = _pack_digest(meaning)
        if digest is None:
            self._others[len(self._flags)] = meaning
        self._flags.append(valid | correct << 1 | train_exact << 2 | heldout_exact << 3)
        self._digests += digest or bytes(_DIGEST)

    def __len__(self) -> int:
        return len(self._flags)

    def __iter__(self) -> Iterator[Sample]:
        return map(self._sample, range(len(self)))

    @overload
    def __getitem__(self, which: int) -> Sample: ...
    @overload
    def __getitem__(self, which: slice) -> Sequence[Sample]: ...
    def __getitem__(self, which: int | slice) -> Sample | Sequence[Sample]:
        places = range(len(self))[which]
        return self._sample(places) if isinstance(places, int) else [*map(self._sample, places)]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SampleList):
            return NotImplemented
        return (self._flags, self._digests, self._others) == (other._flags, other._digests, other._others)

    __hash__ = None  # type: ignore[assignment]  # as for a list

    def _sample(self, place: int) -> Sample:
        flags = self._flags[place]
        digest = self._digests[place * _DIGEST : (place + 1) * _DIGEST].hex()
        return Sample(*_FLAGS[flags], self._others.get(place, digest))


_DIGEST = 8
_FLAGS = [(bool(f & 1), bool(f & 2), bool(f & 4), bool(f & 8)) for f in range(16)]


def _pack_digest(meaning: str | None) -> bytes | None:
    """Return the bytes that the digits spell; None for any other text."""
    if meaning is None or len(meaning) != 2 * _DIGEST:
        return None
    try:
        digest = bytes.fromhex(meaning)
    except ValueError:
        return None
    return digest if digest.hex() == meaning else None  # no capitals, no spaces


Item: TypeAlias = tuple[str, str]  # pool digest, instance
Right: TypeAlias = Callable[[Sample], bool]


@dataclass(frozen=True)
class Sampled:
    """One system's samples.

    latents: unit that each item is resampled with; rights: correct samples by item
    """

    setting: str
    system: str
    pool: str
    items: Mapping[Item, Sequence[Sample]]
    latents: Mapping[Item, str]
    rights: tuple[tuple[str, str, Right], ...]

    @property
    def sizes(self) -> tuple[int, int]:
        """The smallest and the largest number of samples of an item."""
        numbers = [len(samples) for samples in self.items.values()]
        return min(numbers), max(numbers)

    @property
    def is_several(self) -> bool:
        return bool(self.items) and self.sizes[1] > 1


@lru_cache(maxsize=1 << 12)
def pass_at(num_samples: int, num_right: int, k: int) -> Fraction:
    """Return the probability that k of the samples hold a right one; k is at most their number."""
    return 1 - Fraction(comb(num_samples - num_right, k), comb(num_samples, k))


def share(samples: Sequence[Sample], right: Callable[[Sample], bool]) -> Fraction:
    return Fraction(sum(map(right, samples)), len(samples))


def majority(samples: Sequence[Sample], right: Callable[[Sample], bool]) -> Fraction | None:
    """Return how right the most frequent meaning is, from 0 to 1; None if some valid sample's meaning is not known."""
    votes: defaultdict[str, list[Sample]] = defaultdict(list)
    for sample in samples:
        if sample.valid:
            if sample.meaning is None:
                return None
            votes[sample.meaning].append(sample)
    max_votes = max(map(len, votes.values()), default=0)
    leading = [share(group, right) for group in votes.values() if len(group) == max_votes]
    return sum(leading, Fraction(0)) / len(leading) if leading else Fraction(0)
