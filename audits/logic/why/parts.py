"""The parts of the reason for logic models."""

from __future__ import annotations

import msgspec

from calibrant.audits.why import Why


class PartShare(msgspec.Struct, frozen=True):
    """An edge or a clause with the members that have it; members: in decimal; share: of the family."""

    text: str
    members: str
    share: float


class EdgeShare(PartShare, frozen=True):
    """An edge of the class; members 0: none has it."""

    source: str
    sign: int
    target: str


class SpectrumPoint(msgspec.Struct, frozen=True):
    """Members of one misfit and size."""

    misfit: int
    size: int
    members: str


class PredictedRow(msgspec.Struct, frozen=True):
    """An experiment that was not measured, with the share of members that answer 1 for each readout.

    is_question: a held-out experiment of the item
    """

    in_words: str
    shares: tuple[float, ...]
    is_question: bool


class Candidate(msgspec.Struct, frozen=True):
    """An experiment that was not measured.

    share: of the members, expected to be left; readings: answers of all readouts with the members that give them
    """

    in_words: str
    share: float
    readings: tuple[tuple[str, str], ...]


class Disagreement(msgspec.Struct, frozen=True):
    """Two members, an experiment that was not measured, and the answers of both, a digit a readout."""

    first: tuple[str, ...]
    second: tuple[str, ...]
    stimuli: tuple[str, ...]
    inhibited: tuple[str, ...]
    first_answers: str
    second_answers: str


class LogicWhy(Why, frozen=True, kw_only=True):
    """The reason for logic models.

    stimuli, readouts: in header order
    edges: of the class; clauses: that some member has; spectrum: ascending
    predictions: experiments that were asked for, else the candidates that tell members apart best
    candidates: of the next experiment, those that leave least first
    pair: None where no two members were found to differ; the reason states what was compared
    """

    stimuli: tuple[str, ...]
    readouts: tuple[str, ...]
    optimum: tuple[int, int]
    edges: tuple[EdgeShare, ...]
    clauses: tuple[PartShare, ...]
    spectrum: tuple[SpectrumPoint, ...]
    predictions: tuple[PredictedRow, ...]
    candidates: tuple[Candidate, ...]
    pair: Disagreement | None = None
