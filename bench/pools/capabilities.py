"""Capabilities that judge and make whole pools; those of single items are in bench.core.capabilities."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from calibrant.bench.core.benchmark import Benchmark
from calibrant.bench.core.capabilities import FINDINGS, Capability
from calibrant.bench.core.options import GivenOptions
from calibrant.dsl.answer_text import Thoughts
from calibrant.dsl.errors import CalibrantError, short_repr
from calibrant.dsl.item import Item, Pool

if TYPE_CHECKING:
    from calibrant.audits.claims import Certificate, Finding, ItemIdentity
    from calibrant.bench.core.scoring import AnswerContext
    from calibrant.bench.pools.item_options import ItemOptions
    from calibrant.bench.pools.soundness import CheckReport
    from calibrant.bench.protocols import Protocol as RunProtocol
    from calibrant.bench.runs.executors import Execution, Progress
    from calibrant.bench.runs.runner import Selection

DEFAULT_COUNT = 10  # items of a suite
CertificateCheck: TypeAlias = Callable[[Mapping[str, object]], tuple[bool, str]]
"""Whether a certificate holds, and one line."""


class Printed(NamedTuple):
    """Lines for standard output, and for standard error after them."""

    lines: Iterable[str]
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class HardenRequest:
    """Inputs and outputs of `calibrant harden`.

    report, certificates: not written where None
    """

    pool: Path
    out: Path
    report: Path | None
    certificates: Path | None
    selection: Selection
    execution: Execution
    progress: Progress


@dataclass(frozen=True)
class HardenedItem:
    """An item with more evidence, which leaves one answer.

    told: names of what it tells in addition, none if one answer was left before
    certificate: that no less does, about the item as it was
    """

    item: Any
    told: tuple[str, ...]
    certificate: Certificate


class Hardened(NamedTuple):
    """Result of `calibrant harden`.

    notes: lines for standard error; num_unreached: number of items that did not reach the goal
    """

    lines: Sequence[str]
    notes: Sequence[str]
    num_unreached: int


class Hardenable(Protocol):
    """A benchmark whose pools `calibrant harden` gives more evidence.

    workers: processes where --workers is not given; None for one per core
    """

    @property
    def workers(self) -> int | None: ...

    def check(self, given: Mapping[str, Any]) -> None:
        """Refuse given options that do not go together."""
        ...

    def harden(self, request: HardenRequest, options: Any) -> Hardened:
        """Write the hardened pool and what else is requested."""
        ...


@dataclass(frozen=True)
class GenerateRequest:
    """Outputs of `calibrant generate`.

    suites: names with commas between them, or `all`; count: of each, None for DEFAULT_COUNT
    item_options: NAME=VALUE texts; report: file for what drafts came to, None for none
    """

    out: Path
    suites: str
    seed: int
    count: int | None
    execution: Execution
    progress: Progress
    item_options: Sequence[str] = ()
    report: Path | None = None

    @property
    def num_items(self) -> int:
        """Items of each suite."""
        return DEFAULT_COUNT if self.count is None else self.count


class Generatable(Protocol):
    """A benchmark of which `calibrant generate` makes pools.

    workers: processes where --workers is not given; None for one per core
    """

    @property
    def workers(self) -> int | None: ...

    def generate(self, request: GenerateRequest, options: Any) -> Sequence[str]:
        """Write a pool; return lines that say what was written."""
        ...


class ItemConvertible(Protocol):
    """A benchmark whose released files become items under options, in `calibrant pool convert -o`."""

    def convert_with_options(self, source: Path, target: Path, options: ItemOptions) -> int:
        """Write a native pool; return the number of items. `CalibrantError` for what options do not apply to."""
        ...


class ProgramReport(Protocol):
    """Programs that `calibrant pool check` has checked."""

    @property
    def passed(self) -> bool: ...

    def lines(self) -> Iterator[str]:
        """Yield the lines of the terminal."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """Return everything, ready for JSON."""
        ...


class ProgramFiles(Protocol):
    """A benchmark about programs, which commands on pools also take from files that are no pools.

    benchmark: its name
    """

    benchmark: str

    def recognizes(self, path: Path) -> bool:
        """Return whether a path is a file or folder of programs."""
        ...

    def check(self, paths: Sequence[Path], options: Any) -> ProgramReport:
        """Check programs; nothing is executed.

        options: of `pool check`
        """
        ...

    def convert(self, source: Path, target: Path, options: ItemOptions | None) -> Sequence[str]:
        """Write a pool of questions about programs; return lines that say what was written."""
        ...

    def unpack(self, pool: Path, folder: Path) -> Sequence[str]:
        """Write a pool as files of programs and questions; return lines that say what was written."""
        ...


class Sampler(Protocol):
    """Function behind `calibrant sample`; returns the number of instances that it wrote."""

    def __call__(self, out: Path, strata: str, per_stratum: int, seed: int, setting: str) -> int: ...


class Checkable(Protocol):
    """A benchmark whose pool files `calibrant pool check` checks."""

    def check(self, pools: Sequence[Path], options: Any) -> Iterator[CheckReport]:
        """Yield a report for each file; a duplicate may stand in an earlier one."""
        ...

    @property
    def identity(self) -> ItemIdentity[Any]:
        """Keys by which items are the same, for `pool distinct` and `pool split` too."""
        ...


class AlternativesMakeable(Protocol):
    """A benchmark that makes items of another kind of a pool's, for `calibrant pool alternatives`."""

    def write_alternatives(
        self,
        source: Path,
        target: Path,
        seed: int,
        progress: Progress,
        *,
        discovered: Sequence[Path],
        open_ended: bool,
    ) -> Sequence[str]:
        """Write the pool; return lines that name what was left out and what was written.

        discovered: runs and files of answers that the alternatives are taken from; none: they are drawn
        open_ended: instances without a known alternative become items too
        """
        ...


class SeparationReport(Protocol):
    """Experiments that tell hypotheses about an item apart, as `calibrant separate` prints it."""

    def to_dict(self) -> Mapping[str, Any]: ...

    def text(self) -> str: ...


class Separator(Protocol):
    """Function behind `calibrant separate`.

    against: a file with an answer to compare; options: of `separate`
    """

    def __call__(self, pool: Path, instance: str, against: Path | None, options: Any) -> SeparationReport: ...


class Disagreement(Protocol):
    """A key of a stored verdict that comes out otherwise here."""

    @property
    def instance(self) -> str: ...
    @property
    def model(self) -> str: ...
    def _asdict(self) -> dict[str, Any]: ...


class StoredResults(Protocol):
    """Results of models that a pool file embeds, with their verdicts.

    num_results, num_evaluated: results read so far, and those with a verdict in the file
    disagreements: of verdicts read so far, in the order of the file
    """

    num_results: int
    num_evaluated: int

    @property
    def disagreements(self) -> Sequence[Disagreement]: ...

    def answers(self) -> Iterator[tuple[AnswerContext, Mapping[str, Any]]]:
        """Yield the context and the score of each result; `CalibrantError` if the file embeds none."""
        ...


class DistinctModels(Protocol):
    """Models that runs gave, each meaning once, and how often each system gave one."""

    def alternatives(self) -> Sequence[Any]: ...

    def rows(self) -> Sequence[Mapping[str, str]]: ...

    def json_rows(self) -> Any: ...

    def counts(self) -> Any: ...


class AlternativesCollectable(Protocol):
    """A benchmark whose runs `calibrant alternatives` collects models of."""

    def sweep_protocol(self, seed: int) -> RunProtocol:
        """Return the method that a sweep runs with each seed."""
        ...

    def collect(self, folders: Sequence[Path]) -> DistinctModels:
        """Return the models of the runs in these folders."""
        ...


HARDEN: Capability[Hardenable] = Capability("`harden`")
GENERATE: Capability[Generatable] = Capability("`generate`", "generation:GENERATE")
ITEM_CONVERSION: Capability[ItemConvertible] = Capability("`pool convert -o`")
PROGRAMS: Capability[ProgramFiles] = Capability("`pool unpack`")
SAMPLE: Capability[Sampler] = Capability("`sample`")
CHECK: Capability[Checkable] = Capability("`pool check`", "audit:CHECK")
ALTERNATIVE_ITEMS: Capability[AlternativesMakeable] = Capability("`pool alternatives`")
SEPARATE: Capability[Separator] = Capability("`separate`")
STORED_RESULTS: Capability[Callable[[Path, Thoughts], StoredResults]] = Capability("`--official`")
ALTERNATIVES: Capability[AlternativesCollectable] = Capability("`alternatives`")


# --- Base of the public names: operations on items that are alike for every benchmark, through its adapter ------------
I = TypeVar("I", bound=Item[Any, Any])  # noqa: E741  # an item


class ItemApi(Generic[I]):
    """Pools, findings and new items; scores and solvers are of each benchmark.

    kind: what its items are
    """

    def __init__(self, benchmark: Benchmark[I], kind: type[I]) -> None:
        self.benchmark = benchmark
        self.kind = kind

    def load_pool(self, path: Path) -> Pool[I]:
        pool = self.benchmark.items.read_pool(path)
        assert isinstance(pool, Pool)
        return replace(pool, file=path)

    def audit(self, item: I) -> tuple[Finding, ...]:
        return tuple(self.benchmark.require(FINDINGS).findings(self.check_item(item)))

    def record(self, verdict: Any) -> Mapping[str, Any]:
        record: Mapping[str, Any] = verdict.to_dict()
        return record

    def generate(self, seed: int, *, suite: str | None = None) -> I:
        """Return a generated item.

        suite: one of the benchmark's suites, by default the first
        """
        (item,) = self.benchmark.suites.draw((self.benchmark.suites.check_name(suite),), seed, 1)
        return item

    def check_item(self, item: object) -> I:
        """Return the item, if it is one of the benchmark's."""
        if not isinstance(item, self.kind):
            raise CalibrantError(f"{short_repr(type(item).__name__)} is no item of {self.benchmark.title}")
        return item


# --- Capability: families of models that fit a prior network and data of one's own ------------------------------------

FAILURES = ("overclaimed", "missing", "outside")
"""What of a list of another tool can fail the command."""


class CountedFamily(Protocol):
    """The models that fit, counted; or what ran out first.

    is_counted: whether they were counted
    """

    @property
    def is_counted(self) -> bool: ...

    def lines(self, *, ranks_candidates: bool) -> Iterator[str]:
        """Yield the lines of the terminal.

        ranks_candidates: with a table of the best next experiments
        """
        ...

    def to_dict(self) -> dict[str, Any]:
        """Return everything, ready for JSON; numbers of members are texts, they exceed 64 bits."""
        ...

    def failures(self, kinds: Sequence[str]) -> Sequence[str]:
        """Return why another tool's list fails, a line each.

        kinds: some of FAILURES
        """
        ...

    def write(self, *, out: Path | None, html: Path | None, certificates: Path | None) -> Iterator[str]:
        """Write a folder of tables and models, a page, and certificates, as far as asked for; yields notes.

        `CalibrantError` for what this family has not
        """
        ...


class Families(Protocol):
    """Counts families."""

    def count(self, prior: Path, data: Path, options: GivenOptions) -> CountedFamily:
        """Return the family of a prior network and data; `CalibrantError` names file, line and column of a fault."""
        ...

    def recognizes(self, path: Path) -> bool:
        """Return whether a path looks like a prior network."""
        ...

    def convert(self, prior: Path, data: Path, out: Path, options: GivenOptions) -> Sequence[str]:
        """Write the data as a pool of one item without a sealed part; return lines that say what was written."""
        ...


FAMILIES: Capability[Families] = Capability("`family`")
