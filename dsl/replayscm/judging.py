"""Candidates judged from their mechanism texts in compiled code: what mechanisms are, and where the map is wrong.

Importing this module imports the kernels, which takes 120 MB and a third of a second, so only who meets many new
mechanisms does (dsl.replayscm.submission). Texts that are not plain are left to the parser of dsl.formulas.text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from calibrant.dsl.formulas.table import WORD_BITS, projection
from calibrant.dsl.formulas.text import Grammar
from calibrant.dsl.replayscm import _kernels_texts
from calibrant.dsl.replayscm._kernels_texts import OTHER, RIGHT
from calibrant.dsl.replayscm.batch import pack_panels, text_tables
from calibrant.dsl.replayscm.mechanisms import MAX_WORD_VARS
from calibrant.dsl.replayscm.world import Column, Panel

MAX_CANDIDATE_CHARS = 8_000  # characters of all texts of a candidate; longer ones are rare, and have time
_PROJECTIONS = np.array([projection(index, MAX_WORD_VARS).bits for index in range(MAX_WORD_VARS)], np.uint64)


class Verdict(NamedTuple):
    """On one candidate, by place of the mechanism.

    wrong: the rows in which it is wrong; None if it is nowhere
    order: places, as they are evaluated; None if they are so in the order of places
    """

    wrong: list[Column] | None
    order: list[int] | None


_RIGHT = Verdict(None, None)


class Judge:
    """Judges candidates with the same endogenous variables on one panel.

    variables: in natural order; numbers of bits are theirs
    order: the endogenous variables as they are evaluated wherever what they mention leaves that choice
    """

    def __init__(
        self,
        variables: Sequence[str],
        order: Sequence[str],
        grammar: Grammar,
        parents: Mapping[str, frozenset[str]],
        panel: Panel,
    ) -> None:
        self._num = len(order)
        packed = pack_panels([panel])
        places = [packed.variables.index(variable) for variable in variables]
        observed, scored = packed.observed[places].ravel(), packed.scored[places].ravel()
        self._width = len(observed) // len(variables)
        self._wrong = np.zeros((self._num, self._width), np.uint64)
        self._facts = np.zeros((self._num, _kernels_texts.FACTS), np.int64)
        self._order, self._in_order = np.zeros(self._num, np.int64), [*range(self._num)]
        tables = text_tables(variables, order, grammar, parents)
        self._given = None
        if tables is not None and 0 < self._num < WORD_BITS - 1:
            code = np.empty(MAX_CANDIDATE_CHARS // 2 + 2 * self._num + 1, np.int32)
            stack = np.empty(_kernels_texts.MAX_HEIGHT * max(1, self._width), np.uint64)
            was_read, ends = np.zeros(self._num, np.uint8), np.zeros(self._num, np.int64)
            self._given = (*tables, code, observed, scored, stack, _PROJECTIONS, was_read, ends)

    def judge(self, texts: Sequence[str]) -> Verdict | None:
        """Return the verdict on the mechanisms with these texts.

        None if one is not plain, or if they mention each other.
        """
        joined = "\n".join(texts) + "\n"
        if (
            self._given is None
            or len(joined) > MAX_CANDIDATE_CHARS
            or not joined.isascii()
            or joined.count("\n") != self._num
        ):
            return None
        lines = np.frombuffer(joined.encode("ascii"), np.uint8)
        outcome = _kernels_texts.judge_texts(lines, *self._given, self._facts, self._order, self._wrong)
        if outcome == RIGHT:
            return _RIGHT
        return self._verdict() if outcome == OTHER else None

    def facts(self) -> list[list[int]]:
        """Return the facts of each mechanism of the last judged candidate.

        Nodes, longest path, variables as bits, two words of operators; AS_OBSERVED and WRONG, as it is; its truth table
        over the variables that it mentions, if they are MAX_WORD_VARS at most, with bits that mean nothing.
        """
        facts: list[list[int]] = self._facts.tolist()
        return facts

    def _verdict(self) -> Verdict:
        spelled, size = self._wrong.tobytes(), 8 * self._width
        wrong = [int.from_bytes(spelled[at : at + size], "little") for at in range(0, size * self._num, size or 1)]
        order = self._order.tolist()
        return Verdict(wrong or [0] * self._num, None if order == self._in_order else order)
