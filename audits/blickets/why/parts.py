"""The parts of the reason for a detector."""

from __future__ import annotations

import msgspec

from calibrant.audits.why import AnswerShare, Experiment, Why


class DetectorMove(msgspec.Struct, frozen=True):
    """A move: what was done, objects on the detector after it, reading, hypotheses and answers left."""

    in_words: str
    placed: tuple[str, ...]
    reading: str
    remaining: str
    answers: int


class RuleChip(msgspec.Struct, frozen=True):
    """A rule of the class; fits: whether it gives every reading; is_true: where gold is revealed."""

    form: str
    blickets: tuple[str, ...]
    fits: bool
    is_true: bool = False


class DetectorWhy(Why, frozen=True, kw_only=True):
    """The reason for a detector after some moves; experiments: every toggle from here, best first.

    budget: moves that are allowed
    rules: all of a class of one rule, () of others; learner_moves: least and most moves of an exact learner over all
    rules of such a class, before the first move
    pair: two rules that fit, of a class of one rule; witness: objects with which they differ, least of them
    """

    objects: tuple[str, ...]
    moves: tuple[DetectorMove, ...]
    answers: tuple[AnswerShare, ...]
    experiments: tuple[Experiment, ...]
    budget: int
    rules: tuple[RuleChip, ...] = ()
    learner_moves: tuple[int, int] | None = None
    pair: tuple[str, str] | None = None
    witness: tuple[str, ...] | None = None
