"""Capabilities: what benchmarks provide, each under a typed key.

`Benchmark.provides` maps a key to `module:NAME` in the benchmark's folder, which is imported when it is first asked for
(`Benchmark.capability`, `Benchmark.require`). A command asks for its key; no command asks which benchmark it has. Keys
of capabilities whose types are further out stand there: bench.pages, bench.pools, bench.protocols, bench.report.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias, TypeVar

if TYPE_CHECKING:
    import msgspec

    from calibrant.audits.claims import Finding, Verifier
    from calibrant.bench.core.answer_context import AnswerContext
    from calibrant.bench.core.items import ItemFormats
    from calibrant.bench.core.metrics import MetricSet
    from calibrant.bench.core.play import Playable, PlayedReplies
    from calibrant.bench.core.scoring import Attribute, EvaluatorMaker, Scorable
    from calibrant.bench.core.solutions import ItemFunctions
    from calibrant.bench.core.statistics import PoolStatistics
    from calibrant.bench.core.suites import Drawable
    from calibrant.bench.core.training import Trainable
    from calibrant.bench.core.words import Words
    from calibrant.dsl.episode import Step
    from calibrant.dsl.item import Message

C = TypeVar("C")


@dataclass(frozen=True, eq=False)  # two keys with one subject are two keys
class Capability(Generic[C]):
    """A key to an object of type C.

    subject: the command or function that needs it, as refusals name it
    """

    subject: str


Providers: TypeAlias = Mapping[Capability[Any], str]

# what every benchmark has
ITEMS: Capability[ItemFormats[Any]] = Capability("reading of pools")
SCORING: Capability[Scorable[Any]] = Capability("`score`")
METRICS: Capability[MetricSet] = Capability("`table`")
FUNCTIONS: Capability[ItemFunctions] = Capability("`calibrant.score`")
TRAINING: Capability[Trainable] = Capability("`calibrant.rewards`")

# what some have
PLAY: Capability[Playable[Any]] = Capability("episodes")
WORDS: Capability[Words[Any]] = Capability("`play`")
AIDS: Capability[Callable[[Any, Sequence[Step[Any]], Path], str]] = Capability("`--aid`")
"""Text of an aid for an item after some steps; the path is a file, or the name of an aid."""
PHASES: Capability[Callable[[Any, str], Sequence[Message]]] = Capability("`prompts --phase`")
"""System and user message of one phase of a two-phase protocol, experiment or reactor."""
TRACES: Capability[Callable[[Any, Mapping[str, Any]], Sequence[Step[Any]]]] = Capability("`score` of traces")
REPLIES: Capability[Callable[[Any, Sequence[Any], Mapping[str, Any]], PlayedReplies]] = Capability("`score` of replies")
"""Plays the replies of a system, one a turn, under the stated options of the dialogue."""
EVALUATOR: Capability[EvaluatorMaker] = Capability("scoring of responses with their verdict")
ATTRIBUTION: Capability[Attribute] = Capability("attribution")
SUITES: Capability[Drawable[Any]] = Capability("drawing of items")
STATISTICS: Capability[PoolStatistics[Any]] = Capability("`pool stats`")
LOGS: Capability[Callable[[Path], Iterator[tuple[AnswerContext, Mapping[str, Any]]]]] = Capability("`score` of logs")
LINE_RECORDS: Capability[Mapping[str, tuple[type[msgspec.Struct], ...]]] = Capability("records of its own")
"""Structs of lines by kind of file (audits, certificates, training), where a benchmark has some of its own."""


class FittedTable(Protocol):
    """Hypotheses that fit a table of one's own.

    fits: whether any does; may_fit_wider: none does, and one of a wider class may
    """

    @property
    def fits(self) -> bool: ...

    @property
    def may_fit_wider(self) -> bool: ...

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


class FittedNetworks(Protocol):
    """Networks of highest score on a table of one's own."""

    def lines(self) -> Iterator[str]:
        """Yield the lines of the terminal."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """Return everything, ready for JSON."""
        ...


class Fittable(Protocol):
    """Tables of one's own, fitted by hypotheses of the benchmark."""

    def fit(
        self,
        data: Path,
        *,
        target: str | None,
        do: str | None,
        roots: Sequence[str] | None,
        max_parents: int,
        progress: Callable[[str, int, int], None],
    ) -> FittedTable:
        """Return what fits a CSV file; `CalibrantError` names row and column of a fault."""
        ...

    def networks(
        self,
        data: Path,
        *,
        do: str | None,
        score: str,
        best: int,
        max_parents: int | None,
        progress: Callable[[str, int, int], None],
    ) -> FittedNetworks:
        """Return networks of highest score on a CSV file; `CalibrantError` names row and column of a fault."""
        ...


FITTING: Capability[Fittable] = Capability("`fit`")


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

    orders: of a curriculum, the usual one first; curricula: of the paper
    """

    @property
    def orders(self) -> Sequence[str]: ...
    @property
    def curricula(self) -> Sequence[str]: ...

    def write(self, path: Path, items: Sequence[Any], order: str) -> tuple[int, int]:
        """Write worked solutions as JSON lines; return their number, and how many items have none."""
        ...

    def write_curriculum(self, folder: Path, items: Sequence[Any], curriculum: str) -> Sequence[str]:
        """Write a file for each block of a curriculum and a manifest; return lines that say what was written."""
        ...

    def select(self, path: Path, items: Sequence[Any], responses: Path) -> Sequence[str]:
        """Write the first right completion of each prompt as a chat; return lines that say what was written."""
        ...


WORKED_SOLUTIONS: Capability[WorkedSolutions] = Capability("`training`")
