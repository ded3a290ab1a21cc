"""Capabilities of a benchmark: items, scores, episodes, suites, trainers and public functions.

A key states the `module:NAME` at which every benchmark's folder has its object; `Benchmark.provides` maps the keys of
what only some have, or have elsewhere. The module is imported when it is first asked for (`Benchmark.capability`,
`Benchmark.require`). A command asks for its key; no command asks which benchmark it has. Keys of capabilities whose
types are further out stand there: bench.pages, bench.pools, bench.protocols, bench.report.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
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
    from calibrant.bench.core.scoring import AnswerContext, Attribute, EvaluatorMaker, Scorable
    from calibrant.bench.core.typed_moves import Words
    from calibrant.dsl.item import Message
    from calibrant.dsl.knowledge import Knowledge
    from calibrant.solvers.outcome import Outcome  # listing benchmarks imports no solver


# --- Capabilities: what benchmarks provide, each under a typed key ----------------------------------------------------
C = TypeVar("C")


@dataclass(frozen=True, eq=False)  # two keys with one subject are two keys
class Capability(Generic[C]):
    """A key to an object of type C.

    subject: the command or function that needs it, as refusals name it
    place: `module:NAME` of it in a benchmark's folder, if every benchmark has it; empty for one that some have
    """

    subject: str
    place: str = ""


@dataclass(frozen=True)
class PromptFields:
    """Fields of the tasks of one benchmark.

    meanings: by name, in the order of the documentation; values: of a task and a phase, None for what it lacks
    bundled: our own wording as a template
    """

    meanings: Mapping[str, str]
    values: Callable[[Any, str], Mapping[str, object]]
    bundled: Path


class Measured(Protocol):
    """Result of a measurement."""

    def text(self) -> str:
        """Return it for a terminal of 80 columns."""
        ...

    def to_dict(self) -> dict[str, Any]: ...


Providers: TypeAlias = Mapping[Capability[Any], str]

# what every benchmark has
ITEMS: Capability[ItemFormats[Any]] = Capability("reading of pools", "items:ITEMS")
SCORING: Capability[Scorable[Any]] = Capability("`score`", "scoring:SCORING")
METRICS: Capability[MetricSet] = Capability("`table`", "scoring:METRICS")
FUNCTIONS: Capability[ItemFunctions] = Capability("`calibrant.score`", "api:FUNCTIONS")
PROMPT_FIELDS: Capability[PromptFields] = Capability("`prompts --template`", "items:PROMPT_FIELDS")
TRAINING: Capability[Trainable] = Capability("`calibrant.rewards`", "api:TRAINING")

# what some have
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
"""Plays the replies of a system, one a turn, under the stated options of the dialogue."""
EVALUATOR_RATES: Capability[Callable[[float], Measured]] = Capability("`bench evaluator`")
"""Measures the evaluator beside rivals for so many seconds."""
EVALUATOR: Capability[EvaluatorMaker] = Capability("scoring of responses with their verdict")
ATTRIBUTION: Capability[Attribute] = Capability("attribution", "scoring:attribute")
SUITES: Capability[Drawable[Any]] = Capability("drawing of items", "generation:SUITES")
STATISTICS: Capability[PoolStatistics[Any]] = Capability("`pool stats`", "items:STATISTICS")
LOGS: Capability[Callable[[Path], Iterator[tuple[AnswerContext, Mapping[str, Any]]]]] = Capability("`score` of logs")
LINE_RECORDS: Capability[Mapping[str, tuple[type[msgspec.Struct], ...]]] = Capability("records of its own")
"""Structs of lines by kind of file (audits, certificates, training), where a benchmark has some of its own."""


Suggestion: TypeAlias = tuple[tuple[str, ...], str]
"""Options to add to a command, and what they show."""


class FittedTable(Protocol):
    """Hypotheses that fit a table of one's own.

    fits: whether any does; may_fit_wider: none does, and one of a wider class may
    suggestions: options that go on; none if pages, pools and certificates do
    needed_parents: fewest columns that determine the target, where they are known
    """

    @property
    def suggestions(self) -> Sequence[Suggestion]: ...

    @property
    def fits(self) -> bool: ...

    @property
    def may_fit_wider(self) -> bool: ...

    @property
    def needed_parents(self) -> int | None: ...

    def lines(self, *, verbose: bool = False) -> Iterator[str]:
        """Yield the lines of the terminal; verbose: all notes on how the table was read."""
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
        """Write a page, one in steps for a class, a picture, a pool of one item and certificates; yields notes."""
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
"""Progress: called with a step, how many of its parts are done, and of how many."""


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
    """Networks of highest score on a table of one's own."""

    @property
    def refutes_graph(self) -> bool:
        """Whether a graph was given that other networks beat."""
        ...

    def export(self, path: Path) -> None:
        """Write the first network, in the format of the suffix."""
        ...

    def write_page(self, name: str, path: Path) -> None:
        """Write a page of the networks. name: of the table."""
        ...

    def write_certificates(self, folder: Path) -> Iterator[str]:
        """Write certificates of the optimum and its class; yields notes."""
        ...

    def lines(self, *, verbose: bool = False) -> Iterator[str]:
        """Yield the lines of the terminal; verbose: all notes on how the table was read."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """Return everything, ready for JSON."""
        ...


class Fittable(Protocol):
    """Tables of one's own, fitted by hypotheses of the benchmark."""

    def fit(
        self,
        data: Path,
        question: FormulaQuestion,
        *,
        gaps: Literal["complete", "drop"],
        reading: Mapping[str, Any],
        progress: Steps,
    ) -> FittedTable:
        """Return what fits a CSV file; `CalibrantError` names row and column of a fault."""
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

        progress: called with the share of the scores; report: with the state of an integer program, in words
        """
        ...

    def check_against(self, table: Path) -> Callable[[Mapping[str, object]], tuple[bool, str]]:
        """Return the check of one certificate against a table: whether it holds, and a line."""
        ...

    def claim_files(self, folder: Path) -> Sequence[Path]:
        """Return the certificates of a folder that are about tables."""
        ...


FITTING: Capability[Fittable] = Capability("`fit`")


class Assumable(Protocol):
    """Items that can be explained under statements that a hypothesis has to satisfy."""

    def assume(self, item: Any, knowledge: Knowledge) -> Any:
        """Return the item with the statements; what they do not fit is refused where it is explained."""
        ...

    def check(self, item: Any, knowledge: Knowledge) -> None:
        """Raise `CalibrantError` for statements that an item does not fit, or that clash with each other."""
        ...


ASSUME: Capability[Assumable] = Capability("`--assume`")


class Verifiable(Protocol):
    """Items about which something can be proved, with certificates that others can check.

    verifiers: checkers of claims that share no code with what makes them
    examiners: proofs by search of the claims that have an encoding
    """

    @property
    def verifiers(self) -> Mapping[str, Verifier]: ...

    @property
    def examiners(self) -> Mapping[str, Examiner]: ...

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


# --- Suites of a benchmark: named sources of as many items as are asked for -------------------------------------------
I = TypeVar("I", bound=Item[Any, Any])  # noqa: E741  # an item


@dataclass(frozen=True)
class SuiteUnits(Generic[I]):
    """The units of a suite, such as programs: drawn apart, in the order of their numbers; each has some items or none.

    noun: of several units
    max_items: largest number of items of a unit
    max_empty: units in a row without an item, after which the suite is given up
    draw: function of seed and number of the unit that yields its items
    """

    noun: str
    max_items: int
    max_empty: int
    draw: Callable[[int, int], Iterator[I]]

    def iterate(self, seed: int) -> Iterator[I]:
        """Yield the items of all units without end; `CalibrantError` after `max_empty` units in a row without any."""
        num_empty = 0
        for number in count():
            num_empty += 1
            for item in self.draw(seed, number):
                num_empty = 0
                yield item
            self.check_run(num_empty)

    def check_run(self, num_empty: int) -> None:
        """Raise `CalibrantError` for too many units in a row without an item."""
        if num_empty >= self.max_empty:
            raise CalibrantError(f"none of {self.max_empty} {self.noun} in a row has such an item")


class Drawable(ABC, Generic[I]):
    """Suites from which items are drawn; the same arguments give the same items.

    are_sequences: whether a suite without units is drawn in order, by one process, which reports each item
    """

    are_sequences: ClassVar[bool] = False

    @property
    @abstractmethod
    def names(self) -> Sequence[str]:
        """The names of the suites, the usual one first."""

    @abstractmethod
    def draw(self, suites: Sequence[str], seed: int, count: int) -> Sequence[I]:
        """Draw so many items of each suite."""

    def draw_part(self, suite: str, seed: int, places: range) -> Sequence[I]:
        """Return the items of a suite at these places, in order."""
        return self.draw((suite,), seed, places.stop)[places.start :]

    def iterate_part(self, suite: str, seed: int, places: range) -> Iterator[I]:
        """Yield the items of `draw_part`, each once it is drawn where a suite is a sequence."""
        return iter(self.draw_part(suite, seed, places))

    def parts(self, count: int) -> Sequence[range]:
        """Split so many items of a suite into parts that are little more work apart than together."""
        return (range(count),)

    def units(self, suite: str, options: Any = None) -> SuiteUnits[I] | None:
        """Return the units of a suite under options, if it has any: where its items begin is known once it is drawn."""
        return None

    def check_name(self, name: str | None) -> str:
        """Return the suite of that name, by default the first; `CalibrantError` says which there are."""
        if name is not None and name not in self.names:
            raise CalibrantError(f"unknown suite {short_repr(name)}; {known_names(name, self.names)}")
        return self.names[0] if name is None else name


# --- Capability of a benchmark to train a model: what it needs beyond the verdict -------------------------------------


class Trainable(Protocol):
    """A benchmark as trainers see it. Verdicts are those that its functions give."""

    @property
    def stages(self) -> Sequence[str]:
        """Suites for a curriculum, easy ones first."""
        ...

    def difficulty(self, item: Any) -> Mapping[str, int]:
        """Flat labels that make items comparable. They may tell of what is sealed."""
        ...

    def gold(self, item: Any) -> dict[str, Any] | None:
        """Return an answer that is right when it is handed in at once; None where the item accepts none at once."""
        ...

    def share(self, item: Any, verdict: Any) -> float:
        """Return how much of an answer is right, 0 to 1: 1 if all of it is, 0 for one that is not valid."""
        ...

    def fits(self, verdict: Any) -> bool:
        """Return whether an answer agrees with the evidence that the item shows.

        Asked where all evidence is shown at once.
        """
        ...

    def agrees(self, verdict: Any) -> bool:
        """Return whether it is right in what attributions are about (bench.core.attribution); asked there too."""
        ...


# --- Solutions and verdicts as the public functions return them, and the functions that a benchmark has behind them
M_co = TypeVar("M_co", covariant=True)
D_co = TypeVar("D_co", covariant=True)


@dataclass(frozen=True)
class Solution(Pictured, Generic[M_co]):
    """Answer of a solver.

    answer: the submission, an object of the item's answer schema, ready for JSON and for `score`
    model: what the answer stands for; size: what was minimised, where anything was
    provenance: the class that was searched, and what else a claim rests on
    steps: of an interactive item, what was done to find it; nothing is submitted in them
    """

    answer: dict[str, Any]
    model: M_co
    size: int | None = None
    provenance: Mapping[str, Any] = field(default_factory=dict)
    steps: Sequence[Step[Any]] = ()

    def picture(self) -> Picture:
        """Return the model, or the answer."""
        return solution_picture(self.model, self.answer, self.size, self.provenance)

    def __repr__(self) -> str:
        return f"<Solution: {self.model!r}>"


@dataclass(frozen=True, repr=False)
class ItemScore(ReadScore, Pictured, Generic[D_co]):
    """Score of an answer, on the benchmarks whose verdict is more than one that was published.

    instance: id of the item
    valid: an answer was read, and the item accepted it
    correct: as the benchmark counts it; None where nothing is held out
    failure: why it is not valid, or what is wrong with it; None if nothing is
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
        """Return the score of a response that was read so."""
        return replace(self, reading=reading)

    def to_dict(self) -> dict[str, Any]:
        """Flat, under the keys that records of runs have."""
        return dict(self.record)

    def picture(self) -> Picture:
        """Return the verdict, and the reason where the answer is wrong."""
        return verdict_picture(self.instance, self.valid, self.correct, self.failure)

    def __repr__(self) -> str:
        reason = f": {in_one_line(self.failure)[:80]}" if self.failure else ""
        outcome = f"valid={self.valid}, correct={self.correct}{reason}"
        return f"<{type(self).__name__} of {in_one_line(self.instance)[:60]}: {outcome}>"


class ItemFunctions(Protocol):
    """A benchmark behind the public names; the options of a verb, those of calibrant.options that it has, are keywords.

    `separate`, `harden` and `generate` are there if the benchmark has them: `separate(item, answers)` says what tells
    hypotheses apart, `harden(item, seed)` adds evidence until nothing is open, `generate(seed)` makes an item. An item
    of another benchmark, or something that is no item, is a `CalibrantError`.
    """

    def load_pool(self, path: Path) -> Pool[Any]:
        """Return the items of a file, with whatever else it holds."""
        ...

    @property
    def score(self) -> Callable[..., Any]:
        """(item, answer): the verdict on a response text, on an answer object, or on any other value that JSON has."""
        ...

    def record(self, verdict: Any) -> Mapping[str, Any]:
        """Return a verdict of `score` as records have it, which is what metrics read."""
        ...

    @property
    def solve(self) -> Callable[..., Outcome[Solution[Any]]]:
        """(item): the exact solver's answer, from what a solver may see."""
        ...

    @property
    def version_space(self) -> Callable[..., Any]:
        """(item): all hypotheses of a class that fit what the item shows, and what was read since."""
        ...

    @property
    def audit(self) -> Callable[..., Any]:
        """(item): what the evidence leaves open. Reads what is sealed."""
        ...


# --- Episodes of a benchmark's items: how they are opened, acted in and submitted -------------------------------------


class PlayedReplies(NamedTuple):
    """Outcome of the replies of a system.

    steps: of the episode, those that the replies caused
    totals: ready for JSON, a field of the verdict; `unread` is the number of replies without an action
    """

    steps: Sequence[Step[Any]]
    totals: Mapping[str, Any]


class Playable(ABC, Generic[I]):
    """Items that are answered in an episode: `calibrant score` replays the steps of their predictions.

    prompts_show_opening: whether prompts show what an episode begins with
    """

    prompts_show_opening: ClassVar[bool] = False

    def is_played(self, item: I) -> bool:
        """Return whether an item is answered in an episode, and not at once."""
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
        """Return the actions that submit an answer after these steps; the last one submits and has one key."""
        return ({"submit": dict(answer)},)

    def submitted(self, steps: Sequence[Step[Any]]) -> dict[str, Any] | None:
        """Return the answer that these steps submit, as `submission` is given it; None if they submit none."""
        (verb,) = self.submission({}, ())[-1]
        return next((dict(step.action[verb]) for step in steps if verb in step.action and not step.refused), None)

    def omission(self, steps: Sequence[Step[Any]]) -> str:
        """Return what counts and a submitted run does not have; empty if it has all."""
        return ""

    def parse_action(self, item: I, text: str) -> Action:
        """Return the action that a reply states; `ActionError` for one that states none, or several."""
        return sole_action(text)
