"""The reason why evidence leaves an item open, or decides it: one object for pages, JSON and the terminal.

A `Why` is computed exactly from what a solver may see. Each benchmark extends it by its evidence, two hypotheses that
fit, an experiment that separates them, and the experiments that would decide the item.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Literal, TypeAlias

import msgspec

State: TypeAlias = Literal["decided", "open", "empty", "uncounted"]
"""Answers of the hypotheses that fit: one, several, none (nothing of the class fits), or an unknown number."""

Tone: TypeAlias = Literal["", "good", "warn", "bad", "gold"]
"""Colour of a fact: good if decided, warn if open, bad if contradicted, gold if hidden from solvers."""


class Span(msgspec.Struct, frozen=True, omit_defaults=True):
    """A piece of a sentence; `marked`: highlighted."""

    text: str
    marked: bool = False


class Fact(msgspec.Struct, frozen=True, omit_defaults=True):
    """A short statement with its tone."""

    text: str
    tone: Tone = ""


class Count(msgspec.Struct, frozen=True, kw_only=True):
    """Number of hypotheses that fit the evidence, as decimal strings: it may exceed the integers of JSON parsers.

    lower, upper: certified bounds, equal where the count is exact; upper is None where none is known
    total: number of all hypotheses of the class; None if it is infinite or not counted
    """

    lower: str
    upper: str | None
    total: str | None = None

    @property
    def is_exact(self) -> bool:
        return self.lower == self.upper

    def in_words(self) -> str:
        """Return the count as people read it: 1,152; 3.6 × 10²⁹; at least 8.5 × 10⁸."""
        if self.is_exact:
            return number_text(int(self.lower))
        if self.lower == "0":
            return "not counted"
        return f"at least {number_text(int(self.lower))}"


class Why(msgspec.Struct, frozen=True, kw_only=True):
    """The reason why evidence leaves an item open, or decides it.

    benchmark, item: name of the benchmark, id of the item; title: the question that the reason answers
    state: whether the evidence decides the item; reason: one or two sentences; facts: at most six
    open, decided: names of the parts of the answer in which the hypotheses that fit differ, or agree
    count: number of hypotheses that fit; class_in_words: the class that they are counted in
    sealed: facts about gold (the true model), empty unless it is revealed
    """

    benchmark: str
    item: str
    title: str
    state: State
    reason: tuple[Span, ...]
    facts: tuple[Fact, ...]
    open: tuple[str, ...]
    decided: tuple[str, ...]
    count: Count
    class_in_words: str
    sealed: tuple[Fact, ...] = ()

    @property
    def reason_text(self) -> str:
        """The reason as one line of plain text."""
        return "".join(span.text for span in self.reason)

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        content: dict[str, Any] = msgspec.to_builtins(self)
        return content


class Outcome(msgspec.Struct, frozen=True):
    """A reading that an experiment may give.

    remaining: number of hypotheses consistent with it, a decimal string; answers: number of their answers
    """

    reading: str
    remaining: str
    answers: int


class Experiment(msgspec.Struct, frozen=True):
    """A next move or setting, or a value to reveal, with every outcome that is possible under the hypotheses that fit.

    expected: mean number of hypotheses left, if those that fit are equally probable
    sealed: number of hypotheses that the true outcome leaves, a decimal string; None unless gold is revealed
    """

    in_words: str
    outcomes: tuple[Outcome, ...]
    expected: float
    sealed: str | None = None

    @property
    def decides(self) -> bool:
        """Whether every outcome leaves one answer."""
        return all(outcome.answers == 1 for outcome in self.outcomes)

    @property
    def rank(self) -> tuple[int, float]:
        """Sort key, best experiment first: number of answers left in the worst case, then `expected`."""
        return max((outcome.answers for outcome in self.outcomes), default=0), self.expected


class AnswerShare(msgspec.Struct, frozen=True):
    """An answer; `number`: how many of the hypotheses that fit give it, a decimal string."""

    answer: str
    number: str


def experiment(in_words: str, outcomes: Sequence[Outcome], sealed: str | None = None) -> Experiment:
    """Return an experiment from its outcomes, which partition the hypotheses that fit."""
    counts = [int(outcome.remaining) for outcome in outcomes]
    ordered = tuple(sorted(outcomes, key=lambda outcome: (int(outcome.remaining), outcome.reading)))
    expected = float(Fraction(sum(n * n for n in counts), max(1, sum(counts))))
    return Experiment(in_words, ordered, expected, sealed)


def spans(*parts: str | tuple[str]) -> tuple[Span, ...]:
    """Return a sentence from its parts; a part within a tuple is marked."""
    return tuple(Span(part[0], marked=True) if isinstance(part, tuple) else Span(part) for part in parts if part)


_SUPERSCRIPTS = str.maketrans("0123456789", "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079")


def expected_text(number: float) -> str:
    """Return an expected number: whole ones without decimals, others with one, large ones rounded."""
    return f"{number:.1f}" if number < 1000 and number != round(number) else number_text(round(number))


def percent(share: Fraction | float) -> str:
    """Return a share in percent; "0 %" and "100 %" only for shares of exactly 0 and 1."""
    value = 100 * float(share)  # a fraction just below 1 is rounded to 1 here
    if share in (0, 1):
        return f"{value:.0f} %"
    return "below 0.1 %" if value < 0.1 else "above 99.9 %" if value > 99.9 else f"{value:.1f} %"


def number_text(number: int) -> str:
    """Return a number as people read it: with separators below ten million, then two digits and a power of ten."""
    if number < 10_000_000:
        return f"{number:,}"
    digits = str(number)
    power, leading = len(digits) - 1, int(digits[:2]) + (digits[2] >= "5")
    if leading == 100:
        power, leading = power + 1, 10
    return f"{leading // 10}.{leading % 10} \u00d7 10{str(power).translate(_SUPERSCRIPTS)}"


def listed(names: tuple[str, ...] | list[str], limit: int = 6) -> str:
    """Join names for a sentence: "a, b and c"; beyond the limit, "a, b and 3 more"; "none" without names."""
    visible = list(names[:limit]) + ([f"{len(names) - limit} more"] if len(names) > limit else [])
    return visible[0] if len(visible) == 1 else f"{', '.join(visible[:-1])} and {visible[-1]}" if visible else "none"
