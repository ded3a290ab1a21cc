"""Capabilities of a benchmark: items, scores, episodes, suites, trainers and public functions.

The key of a capability that all benchmarks have states the `module:NAME` of its provider in a benchmark's folder.
`Benchmark.provides` states it for optional capabilities, and for providers at another place. A provider is imported at
first use (`Benchmark.capability`, `Benchmark.require`). Commands look capabilities up and never test for a benchmark's
name. Further keys stand beside their types in bench.pages, bench.pools, bench.protocols and bench.report.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, NamedTuple, Protocol, TypeAlias, TypedDict, TypeVar

from calibrant.bench.episodes import Chat, json_chat
from calibrant.dsl.answer_text import UNREAD, ReadScore, ScoreReading, Thoughts
from calibrant.dsl.episode import Action, Episode, Step, sole_action
from calibrant.dsl.errors import CalibrantError, in_one_line, short_repr
from calibrant.dsl.item import Item, Pool
from calibrant.dsl.pictures import Picture, Pictured, solution_picture, verdict_picture
from calibrant.dsl.text import known_names

if TYPE_CHECKING:
    import msgspec

    from calibrant.audits.claims import Finding, Verifier
    from calibrant.audits.search import Examiner
    from calibrant.bench.core.items import ItemFormats, PoolStatistics
    from calibrant.bench.core.metrics import MetricSet
    from calibrant.bench.core.scoring import AnswerContext, Attribute, EvaluatorMaker, Prediction, Scorable
    from calibrant.bench.core.typed_moves import Words
    from calibrant.dsl.item import Message
    from calibrant.dsl.knowledge import Knowledge
    from calibrant.solvers.outcome import Outcome  # listing benchmarks imports no solver


# --- Capabilities: what benchmarks provide, each under a typed key ----------------------------------------------------
C = TypeVar("C")


@dataclass(frozen=True, eq=False)  # compared by identity: keys with equal fields stay distinct
class Capability(Generic[C]):
    """A key to an object of type C.

    subject: the command or function that needs it, as refusals name it
    place: `module:NAME` of its provider in a benchmark's folder, if every benchmark has it; empty if it is optional
    """

    subject: str
    place: str = ""


@dataclass(frozen=True)
class PromptFields:
    """Fields of the tasks of one benchmark, for templates of prompts.

    meanings: field -> its meaning, in the order of the documentation
    values: (task, phase) -> field -> its value, None for a field that the task lacks
    bundled: file of the template with the project's own wording
    """

    meanings: Mapping[str, str]
    values: Callable[[Any, str], Mapping[str, object]]
    bundled: Path


class Measured(Protocol):
    """Result of a measurement."""

    def text(self) -> str:
        """Return the result for a terminal of 80 columns."""
        ...

    def to_dict(self) -> dict[str, Any]: ...


Providers: TypeAlias = Mapping[Capability[Any], str]

# capabilities of every benchmark
ITEMS: Capability[ItemFormats[Any]] = Capability("reading of pools", "items:ITEMS")
SCORING: Capability[Scorable[Any]] = Capability("`score`", "scoring:SCORING")
METRICS: Capability[MetricSet] = Capability("`table`", "scoring:METRICS")
FUNCTIONS: Capability[ItemFunctions] = Capability("`calibrant.score`", "api:FUNCTIONS")
PROMPT_FIELDS: Capability[PromptFields] = Capability("`prompts --template`", "items:PROMPT_FIELDS")
TRAINING: Capability[Trainable] = Capability("`calibrant.rewards`", "api:TRAINING")

# capabilities of some benchmarks
PLAY: Capability[Playable[Any]] = Capability("episodes")
WORDS: Capability[Words[Any]] = Capability("`play`", "play:WORDS")
AIDS: Capability[Callable[[Any, Sequence[Step[Any]], Path], str]] = Capability("`--aid`")
"""Text of an aid for an item after some steps; the path is a file, or the name of an aid."""
PHASES: Capability[Callable[[Any, str], Sequence[Message]]] = Capability("`prompts --phase`")
"""System and user message of one phase of a two-phase protocol, experiment or reactor."""
TRACES: Capability[Callable[[Any, Mapping[str, Any]], Sequence[Step[Any]]]] = Capability("`score` of traces")
REPLIES: Capability[Callable[[Any, Sequence[Any], Mapping[str, Any], Thoughts], PlayedReplies]] = Capability(
    "`score` of replies"
)
"""Play the replies of a system, one a turn, under the stated options of the dialogue."""
EVALUATOR_RATES: Capability[Callable[[float], Measured]] = Capability("`bench evaluator`")
"""Measure the evaluator beside rivals for a number of seconds."""
EVALUATOR: Capability[EvaluatorMaker] = Capability("scoring of responses with their verdict")
ATTRIBUTION: Capability[Attribute] = Capability("attribution", "scoring:attribute")
SUITES: Capability[Drawable[Any]] = Capability("drawing of items", "generation:SUITES")
STATISTICS: Capability[PoolStatistics[Any]] = Capability("`pool stats`", "items:STATISTICS")
LOGS: Capability[Callable[[Path], Iterator[tuple[AnswerContext, Mapping[str, Any]]]]] = Capability("`score` of logs")
LINE_RECORDS: Capability[Mapping[str, tuple[type[msgspec.Struct], ...]]] = Capability("records of its own")
"""Kind of file (audits, certificates, training) -> the benchmark's own Structs of its lines."""


Suggestion: TypeAlias = tuple[tuple[str, ...], str]
"""Options to add to a command, and the result that they would show."""


class FittedTable(Protocol):
    """Hypotheses that fit a user's table.

    fits: whether any hypothesis fits; may_fit_wider: none fits, but one of a wider class may
    suggestions: options for a next call of `fit`; empty if the next steps are pages, pools or certificates
    has_page: whether `write` can make a page; needed_parents: fewest columns that determine the target, None if unknown
    """

    @property
    def suggestions(self) -> Sequence[Suggestion]: ...

    @property
    def has_page(self) -> bool: ...

    @property
    def fits(self) -> bool: ...

    @property
    def may_fit_wider(self) -> bool: ...

    @property
    def needed_parents(self) -> int | None: ...

    def lines(self, *, verbose: bool = False) -> Iterator[str]:
        """Yield lines for a terminal; verbose: with all notes on how the table was read."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """Return everything, ready for JSON."""
        ...

    def write(
        self,
        name: str,
        *,
        html: Path | None,
        steps: Path | None,
        svg: Path | None,
        out: Path | None,
        certificates: Path | None,
    ) -> Iterator[str]:
        """Write the requested files, yielding notes: page, page in steps, picture, pool of one item, certificates."""
        ...


class FormulaQuestion(TypedDict, total=False):
    """Question about functions; docs/names/fit.md states what each option of `calibrant.fit` means."""

    target: str | None
    roots: str | None
    max_parents: int
    operators: Literal["all", "and-or-not", "sop", "pos"]
    errors: str | None
    ties: int
    rates: str | None
    prior: Literal["uniform", "by_parents"]
    graph: str | None
    consistency: str | None
    cases: int
    assume: Path | None


Steps: TypeAlias = Callable[[str, int, int], None]
"""Progress callback: (name of the step, number of its parts done, number of its parts)."""


class NetworkQuestion(TypedDict, total=False):
    """Question about networks; docs/names/learn_networks.md states what each option means."""

    score: str
    iss: float
    k: int
    knowledge: Knowledge
    graph: str | None
    effect: str | None
    prior: Literal["dags", "orders"] | None
    seconds: float
    is_search: bool


class FittedNetworks(Protocol):
    """Networks of highest score on a user's table."""

    @property
    def refutes_graph(self) -> bool:
        """Whether the user's graph scores less than other networks; False without one."""
        ...

    def export(self, path: Path) -> None:
        """Write the first network, in the format of the suffix."""
        ...

    def write_page(self, name: str, path: Path) -> None:
        """Write a page of the networks. name: name of the table, for the page's title."""
        ...

    def write_certificates(self, folder: Path) -> Iterator[str]:
        """Write certificates of the optimum and its equivalence class; yields notes."""
        ...

    def lines(self, *, verbose: bool = False) -> Iterator[str]:
        """Yield lines for a terminal; verbose: with all notes on how the table was read."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """Return everything, ready for JSON."""
        ...


class Fittable(Protocol):
    """Users' tables, fitted by hypotheses of the benchmark."""

    def fit(
        self,
        data: Path,
        question: FormulaQuestion,
        *,
        gaps: Literal["complete", "drop"],
        reading: Mapping[str, Any],
        progress: Steps,
    ) -> FittedTable:
        """Return the hypotheses that fit a CSV file; `CalibrantError` names row and column of a fault."""
        ...

    def networks(
        self,
        data: Path,
        question: NetworkQuestion,
        *,
        gaps: Literal["complete", "drop"],
        reading: Mapping[str, Any],
        progress: Steps,
        report: Callable[[str], None],
    ) -> FittedNetworks:
        """Return networks of highest score on a file; `CalibrantError` names row and column of a fault.

        progress: called as scores are computed; report: called with lines on the state of an integer program
        """
        ...

    def check_against(self, table: Path) -> Callable[[Mapping[str, object]], tuple[bool, str]]:
        """Return a function that checks certificates against a table: certificate -> (whether it holds, why)."""
        ...

    def claim_files(self, folder: Path) -> Sequence[Path]:
        """Return the certificates of a folder that are about tables."""
        ...


FITTING: Capability[Fittable] = Capability("`fit`")


class Assumable(Protocol):
    """Items that can be explained under additional assumptions about the hypotheses."""

    def assume(self, item: Any, knowledge: Knowledge) -> Any:
        """Return the item under these assumptions; `check` is called separately."""
        ...

    def check(self, item: Any, knowledge: Knowledge) -> None:
        """Raise `CalibrantError` for assumptions that contradict an item or each other."""
        ...


ASSUME: Capability[Assumable] = Capability("`--assume`")


class Verifiable(Protocol):
    """Items about which claims can be proved, with certificates that others can check.

    verifiers: kind of claim -> its checker, which shares no code with the prover
    examiners: kind of claim -> its proof by search, for claims that have an encoding
    """

    @property
    def verifiers(self) -> Mapping[str, Verifier]: ...

    @property
    def examiners(self) -> Mapping[str, Examiner]: ...

    def findings(self, item: Any) -> Iterator[Finding]:
        """Yield the claims that can be proved about an item; reads sealed fields."""
        ...

    def evidence(self, item: Any) -> object:
        """Return the evidence that the certificates of its findings refer to."""
        ...


FINDINGS: Capability[Verifiable] = Capability("`audit`")


class WorkedSolutions(Protocol):
    """Solutions of items that `calibrant training` writes.

    orders: names of the orders of items, the default first; curricula: names of the paper's curricula
    """

    @property
    def orders(self) -> Sequence[str]: ...
    @property
    def curricula(self) -> Sequence[str]: ...

    def write(self, path: Path, items: Sequence[Any], order: str) -> tuple[int, int]:
        """Write worked solutions as JSON lines; return (number of solutions, number of items without one)."""
        ...

    def write_curriculum(self, folder: Path, items: Sequence[Any], curriculum: str) -> Sequence[str]:
        """Write a file for each block of a curriculum, and a manifest; return lines that name them."""
        ...

    def select(self, path: Path, items: Sequence[Any], completions: Iterable[Prediction]) -> Sequence[str]:
        """Write the first right completion of each prompt as a chat; return lines on what was written."""
        ...


WORKED_SOLUTIONS: Capability[WorkedSolutions] = Capability("`training`")


# --- Suites of a benchmark: named, seeded sources of any number of items ----------------------------------------------
I = TypeVar("I", bound=Item[Any, Any])  # noqa: E741  # an item


@dataclass(frozen=True)
class SuiteUnits(Generic[I]):
    """The units of a suite, such as programs: each is generated from its index alone and has 0 or more items.

    noun: plural name of the units, for messages
    max_items: largest number of items in a unit
    max_empty: number of units in a row without an item after which generation fails
    draw: (seed, index of the unit) -> its items
    """

    noun: str
    max_items: int
    max_empty: int
    draw: Callable[[int, int], Iterator[I]]

    def iterate(self, seed: int) -> Iterator[I]:
        """Yield the items of all units without end; `CalibrantError` after `max_empty` units in a row without any."""
        num_empty = 0
        for index in count():
            num_empty += 1
            for item in self.draw(seed, index):
                num_empty = 0
                yield item
            self.check_run(num_empty)

    def check_run(self, num_empty: int) -> None:
        """Raise `CalibrantError` after `max_empty` units in a row without an item."""
        if num_empty >= self.max_empty:
            raise CalibrantError(f"none of {self.max_empty} {self.noun} in a row has such an item")


class Drawable(ABC, Generic[I]):
    """Suites from which items are generated; equal arguments give equal items.

    are_sequences: whether each item of a suite without units depends on earlier ones, so that one process draws all
    """

    are_sequences: ClassVar[bool] = False

    @property
    @abstractmethod
    def names(self) -> Sequence[str]:
        """The names of the suites, the default first."""

    @abstractmethod
    def draw(self, suites: Sequence[str], seed: int, count: int) -> Sequence[I]:
        """Generate the first `count` items of each suite."""

    def draw_part(self, suite: str, seed: int, indices: range) -> Sequence[I]:
        """Return the items of a suite at these indices, in order."""
        return self.draw((suite,), seed, indices.stop)[indices.start :]

    def iterate_part(self, suite: str, seed: int, indices: range) -> Iterator[I]:
        """Yield the items of `draw_part`; if `are_sequences`, each as soon as it is drawn, for reports of progress."""
        return iter(self.draw_part(suite, seed, indices))

    def parts(self, count: int) -> Sequence[range]:
        """Split `count` items of a suite into index ranges that cost little more when drawn separately."""
        return (range(count),)

    def units(self, suite: str, options: Any = None) -> SuiteUnits[I] | None:
        """Return the units of a suite under options; None if it has none, so that any index can be drawn directly."""
        return None

    def check_name(self, name: str | None) -> str:
        """Return the name, by default the first suite's; `CalibrantError` for an unknown one lists the names."""
        if name is not None and name not in self.names:
            raise CalibrantError(f"unknown suite {short_repr(name)}; {known_names(name, self.names)}")
        return self.names[0] if name is None else name


# --- Capability of a benchmark to train a model: the functions beyond the verdict -------------------------------------


class Trainable(Protocol):
    """A benchmark as trainers see it; verdicts are those of its `ItemFunctions.score`."""

    @property
    def stages(self) -> Sequence[str]:
        """Names of suites for a curriculum, from easy to hard."""
        ...

    def difficulty(self, item: Any) -> Mapping[str, int]:
        """Return numeric labels of an item's difficulty; they may reveal sealed fields."""
        ...

    def gold(self, item: Any) -> dict[str, Any] | None:
        """Return an answer that is right without any step of an episode; None if the item requires steps first."""
        ...

    def share(self, item: Any, verdict: Any) -> float:
        """Return the share of an answer's parts that are right, 0 to 1; 0 for an invalid answer."""
        ...

    def fits(self, verdict: Any) -> bool:
        """Return whether an answer is consistent with the evidence; called only if an item shows all of it at once."""
        ...

    def agrees(self, verdict: Any) -> bool:
        """Return whether an answer is right as attributions define it (bench.core.attribution); called as `fits` is."""
        ...


# --- Solutions and verdicts that the public functions return, and a benchmark's functions behind the public ones
M_co = TypeVar("M_co", covariant=True)
D_co = TypeVar("D_co", covariant=True)


@dataclass(frozen=True)
class Solution(Pictured, Generic[M_co]):
    """Answer of a solver.

    answer: the submission, an object of the item's answer schema, ready for JSON and for `score`
    model: the hypothesis that the answer states; size: its minimised size; None where no size is minimised
    provenance: the class that was searched, and other premises of its claims
    steps: of an interactive item, the experiments made; the submission is not among them
    """

    answer: dict[str, Any]
    model: M_co
    size: int | None = None
    provenance: Mapping[str, Any] = field(default_factory=dict)
    steps: Sequence[Step[Any]] = ()

    def picture(self) -> Picture:
        """Return a picture of the model, or of the answer."""
        return solution_picture(self.model, self.answer, self.size, self.provenance)

    def __repr__(self) -> str:
        return f"<Solution: {self.model!r}>"


@dataclass(frozen=True, repr=False)
class ItemScore(ReadScore, Pictured, Generic[D_co]):
    """Score of an answer, on benchmarks whose verdict has more fields than the published one.

    instance: id of the item
    valid: whether an answer was read and the item accepted it
    correct: whether the answer is right by the benchmark's definition; None where nothing is held out
    failure: why the answer is wrong or invalid; None if it is right
    details: the benchmark's own score; record: the same, flat and ready for JSON
    reading: how the response was read
    """

    instance: str
    valid: bool
    correct: bool | None
    failure: str | None
    details: D_co
    record: Mapping[str, Any]
    reading: ScoreReading = UNREAD

    def with_reading(self, reading: ScoreReading) -> ItemScore[D_co]:
        """Return the score with another reading of its response."""
        return replace(self, reading=reading)

    def to_dict(self) -> dict[str, Any]:
        """Return a flat dictionary with the keys of records of runs."""
        return dict(self.record)

    def picture(self) -> Picture:
        """Return a picture of the verdict, with the reason where the answer is wrong."""
        return verdict_picture(self.instance, self.valid, self.correct, self.failure)

    def __repr__(self) -> str:
        reason = f": {in_one_line(self.failure)[:80]}" if self.failure else ""
        outcome = f"valid={self.valid}, correct={self.correct}{reason}"
        return f"<{type(self).__name__} of {in_one_line(self.instance)[:60]}: {outcome}>"


class ItemFunctions(Protocol):
    """A benchmark's functions behind the public ones of the same names; options (calibrant.options) are keywords.

    Some benchmarks also have `separate(item, answers)`, which returns evidence that separates hypotheses,
    `harden(item, seed)`, which adds evidence until one hypothesis is left, and `generate(seed)`, which makes an item.
    An argument that is no item, or one of another benchmark, raises `CalibrantError`.
    """

    def load_pool(self, path: Path) -> Pool[Any]:
        """Return the pool in a file."""
        ...

    @property
    def score(self) -> Callable[..., Any]:
        """(item, answer) -> verdict; the answer is a response text, an answer object, or any other JSON value."""
        ...

    def record(self, verdict: Any) -> Mapping[str, Any]:
        """Return a verdict of `score` as the mapping that records hold and metrics read."""
        ...

    @property
    def solve(self) -> Callable[..., Outcome[Solution[Any]]]:
        """(item) -> the exact solver's outcome, from the visible task alone."""
        ...

    @property
    def version_space(self) -> Callable[..., Any]:
        """(item) -> version space: the hypotheses of a class that fit the evidence and later readings."""
        ...

    @property
    def audit(self) -> Callable[..., Any]:
        """(item) -> audit of the questions that the evidence leaves undecided; reads sealed fields."""
        ...


# --- Episodes of a benchmark's items: opening, acting, submitting -----------------------------------------------------


class PlayedReplies(NamedTuple):
    """Outcome of the replies of a system.

    steps: steps of the episode that the replies caused
    totals: counts of replies by kind, a field of the verdict; `unread` counts replies without an action
    """

    steps: Sequence[Step[Any]]
    totals: Mapping[str, Any]


class Playable(ABC, Generic[I]):
    """Items that are answered in an episode; `calibrant score` replays the steps of their predictions.

    prompts_show_opening: whether prompts show the evidence with which an episode begins
    """

    prompts_show_opening: ClassVar[bool] = False

    def is_played(self, item: I) -> bool:
        """Return whether an item is answered in an episode, not by one answer without steps."""
        return True

    @abstractmethod
    def open(self, item: I) -> Episode[Any, Any]:
        """Return a fresh episode."""

    @abstractmethod
    def describe(self, episode: Episode[Any, Any], step: Step[Any]) -> str:
        """Return one line on the outcome of the last step."""

    def chat(self, item: I, instructions: str = "", thoughts: Thoughts = "strip") -> Chat:
        """Open a conversation about an item, with one action a reply."""
        return json_chat(self, item, instructions, thoughts)

    def submission(self, answer: Mapping[str, Any], steps: Sequence[Step[Any]]) -> Sequence[Action]:
        """Return the actions that submit an answer after these steps; the last has one key, the verb that submits."""
        return ({"submit": dict(answer)},)

    def submitted(self, steps: Sequence[Step[Any]]) -> dict[str, Any] | None:
        """Return the answer that these steps submit, in the form that `submission` takes; None if they submit none."""
        (verb,) = self.submission({}, ())[-1]
        return next((dict(step.action[verb]) for step in steps if verb in step.action and not step.refused), None)

    def omission(self, steps: Sequence[Step[Any]]) -> str:
        """Return a text on a scored part that the run lacks although it was submitted; empty if it lacks none."""
        return ""

    def parse_action(self, item: I, text: str) -> Action:
        """Return the action that a reply states; `ActionError` for one that states none, or several."""
        return sole_action(text)
