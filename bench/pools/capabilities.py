"""Capabilities that check and generate whole pools; those of single items are in bench.core.capabilities."""

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

DEFAULT_COUNT = 10  # number of items of each suite
CertificateCheck: TypeAlias = Callable[[Mapping[str, object]], tuple[bool, str]]
"""Certificate -> (whether it holds, a line on why)."""


class Printed(NamedTuple):
    """Lines for standard output; notes: lines for standard error, printed after them."""

    lines: Iterable[str]
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class HardenRequest:
    """Inputs and outputs of `calibrant harden`.

    report, certificates: file and folder to write; None for neither
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
    """An item with added evidence that leaves one answer.

    revealed: names of the added facts; empty if the original item leaves one answer
    certificate: proof about the original item that no smaller set of facts leaves one answer
    """

    item: Any
    revealed: tuple[str, ...]
    certificate: Certificate


class Hardened(NamedTuple):
    """Result of `calibrant harden`.

    notes: lines for standard error; num_unreached: number of items that did not reach the goal
    certified: the pool that certificates are about
    """

    lines: Sequence[str]
    notes: Sequence[str]
    num_unreached: int
    certified: Path


class Hardenable(Protocol):
    """A benchmark whose pools `calibrant harden` can extend by evidence.

    workers: number of processes if --workers is not given; None for one per core
    """

    @property
    def workers(self) -> int | None: ...

    def check(self, given: Mapping[str, Any]) -> None:
        """Raise `CalibrantError` for given options that exclude each other."""
        ...

    def harden(self, request: HardenRequest, options: Any) -> Hardened:
        """Write the hardened pool and the other requested files."""
        ...


@dataclass(frozen=True)
class GenerateRequest:
    """Outputs of `calibrant generate`.

    suites: comma-separated names, or `all`; count: number of items of each suite, None for DEFAULT_COUNT
    item_options: NAME=VALUE texts; report: file for the outcomes of drafts, None for no file
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
        """Number of items of each suite."""
        return DEFAULT_COUNT if self.count is None else self.count


class Generatable(Protocol):
    """A benchmark for which `calibrant generate` makes pools.

    workers: number of processes if --workers is not given; None for one per core
    """

    @property
    def workers(self) -> int | None: ...

    def generate(self, request: GenerateRequest, options: Any) -> Sequence[str]:
        """Write a pool; return lines on what was written."""
        ...


class ItemConvertible(Protocol):
    """A benchmark whose published files `calibrant pool convert -o` converts into items with options."""

    def convert_with_options(self, source: Path, target: Path, options: ItemOptions) -> int:
        """Write a native pool; return the number of items. `CalibrantError` if the options do not apply to it."""
        ...


class ProgramReport(Protocol):
    """Result of `calibrant pool check` on programs."""

    @property
    def passed(self) -> bool: ...

    def lines(self) -> Iterator[str]:
        """Yield the lines of the terminal."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """Return everything, ready for JSON."""
        ...


class ProgramFiles(Protocol):
    """A benchmark about programs; commands on pools also take files of programs.

    benchmark: its name
    """

    benchmark: str

    def recognizes(self, path: Path) -> bool:
        """Return whether a path is a file or folder of programs."""
        ...

    def check(self, paths: Sequence[Path], options: Any) -> ProgramReport:
        """Check programs without executing them.

        options: options of `pool check`
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
        """Yield a report for each file; an item can be a duplicate of one in an earlier file."""
        ...

    @property
    def identity(self) -> ItemIdentity[Any]:
        """Keys of equal items, models and structures, also for `pool distinct` and `pool split`."""
        ...


class AlternativesMakeable(Protocol):
    """A benchmark for which `calibrant pool alternatives` turns items into questions about alternative hypotheses."""

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
        """Write the pool; return lines on omitted items and on what was written.

        discovered: runs and files of answers with the alternatives; empty: alternatives are drawn at random
        open_ended: whether instances without a known alternative become items too
        """
        ...


class SeparationReport(Protocol):
    """Experiments that separate hypotheses about an item, for `calibrant separate`."""

    def to_dict(self) -> Mapping[str, Any]: ...

    def text(self) -> str: ...


class Separator(Protocol):
    """Function behind `calibrant separate`.

    against: file with an answer to separate from the others; options: options of `separate`
    """

    def __call__(self, pool: Path, instance: str, against: Path | None, options: Any) -> SeparationReport: ...


class Disagreement(Protocol):
    """A field of a stored verdict that differs from the recomputed one."""

    @property
    def instance(self) -> str: ...
    @property
    def model(self) -> str: ...
    def _asdict(self) -> dict[str, Any]: ...


class StoredResults(Protocol):
    """Results of models that a pool file embeds, with their verdicts.

    num_results: number of results read so far; num_evaluated: number of these with a stored verdict
    disagreements: fields in which stored verdicts of these differ from recomputed ones, in the order of the file
    """

    num_results: int
    num_evaluated: int

    @property
    def disagreements(self) -> Sequence[Disagreement]: ...

    def answers(self) -> Iterator[tuple[AnswerContext, Mapping[str, Any]]]:
        """Yield the context and the score of each result; `CalibrantError` if the file embeds none."""
        ...


class DistinctModels(Protocol):
    """Models in the answers of runs, one per equivalence class, with counts by system."""

    def alternatives(self) -> Sequence[Any]: ...

    def rows(self) -> Sequence[Mapping[str, str]]: ...

    def json_rows(self) -> Any: ...

    def counts(self) -> Any: ...


class AlternativesCollectable(Protocol):
    """A benchmark for whose runs `calibrant alternatives` collects models."""

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


# --- Base class of the public functions that are equal for all benchmarks ---------------------------------------------
I = TypeVar("I", bound=Item[Any, Any])  # noqa: E741  # an item


class ItemApi(Generic[I]):
    """Pools, findings and generated items of a benchmark; subclasses add scores and solvers.

    kind: class of its items
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
        """Return the item; `CalibrantError` unless it is an item of this benchmark."""
        if not isinstance(item, self.kind):
            raise CalibrantError(f"{short_repr(type(item).__name__)} is no item of {self.benchmark.title}")
        return item


# --- Capability: families of all models that fit a user's prior network and data --------------------------------------

FAILURES = ("overclaimed", "missing", "outside")
"""Differences from another tool's list of models by which the command may fail."""


class CountedFamily(Protocol):
    """The number of models that fit, or the budget that was exhausted first.

    is_counted: whether the models were counted
    """

    @property
    def is_counted(self) -> bool: ...

    def lines(self, *, ranks_candidates: bool) -> Iterator[str]:
        """Yield the lines of the terminal.

        ranks_candidates: whether to add a table of the best next experiments
        """
        ...

    def to_dict(self) -> dict[str, Any]:
        """Return everything, ready for JSON; numbers of members are texts because they may exceed 64 bits."""
        ...

    def failures(self, kinds: Sequence[str]) -> Sequence[str]:
        """Return a line for each difference of these kinds from another tool's list.

        kinds: some of FAILURES
        """
        ...

    def write(self, *, out: Path | None, html: Path | None, certificates: Path | None) -> Iterator[str]:
        """Write what is requested, yielding notes; `CalibrantError` for a request that this family cannot fulfil.

        out: folder of tables and models; html: page; certificates: folder; None: not written
        """
        ...


class Families(Protocol):
    """Counter of families."""

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
