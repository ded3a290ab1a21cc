"""Capabilities: what some benchmarks have and others lack, each under a typed key.

`Benchmark.provides` maps a key to `module:NAME` in the benchmark's folder, which is imported when it is first asked for
(`Benchmark.capability`, `Benchmark.require`). A command asks for its key; no command asks which benchmark it has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias, TypeVar

if TYPE_CHECKING:
    from pathlib import Path

    from markupsafe import Markup

    from calibrant.audits.claims import Verifier
    from calibrant.audits.finding import Finding
    from calibrant.audits.why import Why
    from calibrant.dsl.episode import Step

C = TypeVar("C")


@dataclass(frozen=True, eq=False)  # two keys with one subject are two keys
class Capability(Generic[C]):
    """A key to an object of type C.

    subject: the command or function that needs it, as refusals name it
    """

    subject: str


Providers: TypeAlias = Mapping[Capability[Any], str]


class Pageable(Protocol):
    """Items that have a picture.

    reveal_sealed: with what is hidden from solvers
    """

    def drawing(self, item: Any, *, reveal_sealed: bool) -> str:
        """Return the picture in text, empty if there is none."""
        ...

    def page(self, item: Any, *, reveal_sealed: bool) -> str:
        """Return the picture as an HTML file."""
        ...


PAGES: Capability[Pageable] = Capability("`show --html` without --run")


class Explainable(Protocol):
    """Items of which can be said why they are open; `why` is always what `explain` of the same object returned."""

    def explain(self, item: Any, steps: Sequence[Step[Any]]) -> Why:
        """Return the reason for an item after these steps of an episode; nothing sealed is read."""
        ...

    def body(self, why: Any, prefix: str) -> Markup:
        """Return the contents of its page; prefix: of ids, unique in a page that shows several items."""
        ...

    def drawing(self, why: Any) -> str:
        """Return one picture as an SVG file; `CalibrantError` where there is none."""
        ...

    def lines(self, why: Any) -> Iterator[str]:
        """Yield the lines of the terminal."""
        ...


class AnswerExplainable(Protocol):
    """Items of which can be said why an answer fails; `why` is always what `explain` of the same object returned."""

    def explain(self, item: Any, answer: str | Mapping[str, Any], system: str) -> Why:
        """Compare an answer object, or a response, with what is sealed; `CalibrantError` for an invalid answer."""
        ...

    def body(self, why: Any, prefix: str) -> Markup:
        """Return the contents of its page; prefix: of ids, unique in a page that shows several answers."""
        ...

    def lines(self, why: Any) -> Iterator[str]:
        """Yield the lines of the terminal."""
        ...


class FittedTable(Protocol):
    """Hypotheses that fit a table of one's own.

    fits: whether any does
    """

    @property
    def fits(self) -> bool: ...

    def lines(self) -> Iterator[str]:
        """Yield the lines of the terminal."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """Return everything, ready for JSON."""
        ...

    def write(
        self, name: str, *, html: Path | None, svg: Path | None, out: Path | None, certificates: Path | None
    ) -> Iterator[str]:
        """Write a page, a picture, a pool of one item and certificates, as far as asked for; yields notes."""
        ...


class Fittable(Protocol):
    """Tables of one's own, fitted by hypotheses of the benchmark."""

    def fit(
        self, data: Path, *, target: str | None, do: str | None, roots: Sequence[str] | None, max_parents: int
    ) -> FittedTable:
        """Return what fits a CSV file; `CalibrantError` names row and column of a fault."""
        ...


FITTING: Capability[Fittable] = Capability("`fit`")
EXPLANATIONS: Capability[Explainable] = Capability("`show --why`")
ANSWER_EXPLANATIONS: Capability[AnswerExplainable] = Capability("`show --run --gold`")


class Verifiable(Protocol):
    """Items about which something can be proved, with certificates that others can check.

    verifiers: checkers of claims that share no code with what makes them
    """

    @property
    def verifiers(self) -> Mapping[str, Verifier]: ...

    def findings(self, item: Any) -> Iterator[Finding]:
        """Yield what can be proved about an item; reads what is sealed."""
        ...

    def evidence(self, item: Any) -> object:
        """Return what the certificates of its findings are about."""
        ...


FINDINGS: Capability[Verifiable] = Capability("`audit`")


class WorkedSolutions(Protocol):
    """Solutions of items that `calibrant training` writes.

    orders: of a curriculum, the usual one first
    """

    @property
    def orders(self) -> Sequence[str]: ...

    def write(self, path: Path, items: Sequence[Any], order: str) -> tuple[int, int]:
        """Write worked solutions as JSON lines; return their number, and how many items have none."""
        ...


WORKED_SOLUTIONS: Capability[WorkedSolutions] = Capability("`training`")
