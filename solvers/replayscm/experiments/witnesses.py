"""Members that prove that a candidate splits: two that still fit all worlds and read some candidate differently."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from calibrant.dsl.replayscm.evaluator import TablePrograms
from calibrant.dsl.replayscm.extensions.extension import MechanismClass
from calibrant.dsl.replayscm.extensions.reference import EvidenceWorld
from calibrant.dsl.replayscm.world import Rows

U64 = npt.NDArray[np.uint64]


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
