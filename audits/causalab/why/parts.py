"""The parts of the reason for a laboratory."""

from __future__ import annotations

import msgspec

from calibrant.audits.why import AnswerShare, Experiment, Why


class EdgeCount(msgspec.Struct, frozen=True):
    """In how many of the mechanisms that fit an edge occurs."""

    cause: str
    effect: str
    number: str


class RuledOut(msgspec.Struct, frozen=True):
    """An edge of no mechanism that fits.

    reading: number of the first reading, from 1, after which none has it; 0: the class has no such edge
    """

    cause: str
    effect: str
    reading: int


class LabReading(msgspec.Struct, frozen=True):
    """A row of the records or a reading of the manipulator; changed: the property that was set, empty for none."""

    changed: str
    values: dict[str, float]


class LabMember(msgspec.Struct, frozen=True):
    """A mechanism that fits.

    equations: of each node in words; prediction: frequency of the reactor
    """

    equations: dict[str, str]
    prediction: str


class LabWitness(msgspec.Struct, frozen=True):
    """A setting that tells the pair apart, and what each of the two then reads, node by node."""

    in_words: str
    first: dict[str, float]
    second: dict[str, float]


class LabWhy(Why, frozen=True, kw_only=True):
    """The reason for a laboratory after some settings; experiments: every property that may be set, best first.

    edges: that some mechanism has; ruled_out: the others; never_set: causes in open edges that were not set
    weighted: whether counts are weights of a posterior, because readings are noisy
    pair, witness: two mechanisms that fit, and a setting that tells them apart, where mechanisms are listed
    jointly: two settings that together decide, whatever they read; () where one does, or none was proven to
    contradicted: stated edges that no mechanism has; true_edges: of the sealed mechanism, where that is revealed
    """

    nodes: tuple[str, ...]
    readings: tuple[LabReading, ...]
    edges: tuple[EdgeCount, ...]
    ruled_out: tuple[RuledOut, ...]
    frequencies: tuple[AnswerShare, ...]
    never_set: tuple[str, ...]
    experiments: tuple[Experiment, ...]
    weighted: bool = False
    pair: tuple[LabMember, LabMember] | None = None
    witness: LabWitness | None = None
    jointly: tuple[str, ...] = ()
    contradicted: tuple[tuple[str, str], ...] = ()
    true_edges: tuple[tuple[str, str], ...] | None = None
