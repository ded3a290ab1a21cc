"""The adapter through which the runner, the tables and the commands use a benchmark.

To add one, subclass `Benchmark` in a file of its own and list that in `registry`; nothing else tells benchmarks apart.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NoReturn, Protocol, TypeVar

import msgspec

from calibrant.bench.core.capabilities import PAGES, Capability, Providers
from calibrant.bench.core.evaluator import AnswerEvaluator, Evaluator
from calibrant.bench.core.items import ItemPool, item_of
from calibrant.bench.core.metrics import MetricSet
from calibrant.bench.core.names import TITLES
from calibrant.bench.core.solutions import ItemFunctions
from calibrant.bench.core.statistics import PoolStatistic
from calibrant.bench.core.training import Training
from calibrant.bench.episodes import Chat, json_chat, sole_action
from calibrant.bench.pages.timeline import Timeline
from calibrant.bench.protocols.registry import Protocols
from calibrant.bench.report.rows import Answer
from calibrant.bench.report.sections import ReportContents, Section
from calibrant.bench.runs.jobs import Progress
from calibrant.dsl.action import Action
from calibrant.dsl.episode import Episode, Step
from calibrant.dsl.errors import CalibrantError, in_one_line, short_repr
from calibrant.dsl.item import Item, Pool
from calibrant.dsl.message import Message

if TYPE_CHECKING:
    from calibrant.audits.claims import Certificate

I = TypeVar("I", bound=Item[Any, Any])  # noqa: E741  # an item
C = TypeVar("C")


class Handout(Protocol):
    """Message to a worker about one item, which opens it before the protocol answers. It can be pickled."""

    def open(self) -> Any:
        """Return the task, or an open episode."""
        ...


@dataclass(frozen=True)
class TaskHandout:
    """A task. What is sealed does not travel."""

    task: Any

    def open(self) -> Any:
        return self.task


@dataclass(frozen=True)
class EpisodeHandout:
    """An item and how an episode of it is opened. What is sealed stays behind the episode's `act`."""

    item: Any
    episode: Callable[[Any], Episode[Any, Any]]

    def open(self) -> Episode[Any, Any]:
        return self.episode(self.item)


@dataclass(frozen=True)
class HardenedItem:
    """An item with more evidence, which leaves one answer.

    told: names of what it tells in addition, none if one answer was left before
    certificate: that no less does, about the item as it was
    """

    item: Any
    told: tuple[str, ...]
    certificate: Certificate


class Benchmark(ABC, Generic[I]):
    """One benchmark.

    name: as pool files and records have it; title: as people read it
    settings: the row groups of tables, in their order
    provides: by the key of a capability, where in the benchmark's folder it is: `module:NAME`
    public_fields: all that `shown_record` may hold; what else the native record has is hidden from solvers and models
    transcripts: whether `calibrant score` replays the steps of its predictions; traces: or reads its own trace format
    prompts_show_opening: whether messages show what an episode begins with
    extracts_when_scored: whether responses become answers with their verdict, not when they are read
    report_options: of `calibrant score`, with which a report scores predictions; None for the defaults
    demo_protocols: those that `calibrant demo` runs
    bundled: names of the pools that come with the package, in its folder as data/sample_NAME.jsonl
    reports_read_pools: whether a report depends on the pool's file where nothing is scored or attributed with it
    """

    name: ClassVar[str]
    title: ClassVar[str]
    settings: ClassVar[tuple[str, ...]]
    provides: ClassVar[Providers] = {}
    public_fields: ClassVar[tuple[str, ...]]
    transcripts: ClassVar[bool] = False
    traces: ClassVar[bool] = True
    prompts_show_opening: ClassVar[bool] = False
    extracts_when_scored: ClassVar[bool] = False
    report_options: ClassVar[Any] = None
    demo_protocols: ClassVar[tuple[str, ...]] = ()
    bundled: ClassVar[tuple[str, ...]] = ()
    reports_read_pools: ClassVar[bool] = False

    def __getstate__(self) -> dict[str, Any]:
        """Return what it keeps is made again where it is sent, which not all of it can be."""
        return {}

    def capability(self, key: Capability[C]) -> C | None:
        """Return what provides a capability, imported when it is first asked for; None if the benchmark lacks it."""
        place = self.provides.get(key)
        if place is None:
            return None
        module, _, name = place.partition(":")
        provider: C = getattr(import_module(f"calibrant.bench.{self.name}.{module}"), name)
        return provider

    def require(self, key: Capability[C]) -> C:
        """Return what provides a capability; `CalibrantError` names the benchmarks that have it."""
        provider = self.capability(key)
        if provider is None:
            titles = " and ".join(title for name, title in TITLES.items() if key in load_benchmark(name).provides)
            raise CalibrantError(f"{key.subject} does not support {self.title}; it supports {titles}")
        return provider

    @property
    @abstractmethod
    def protocols(self) -> Protocols:
        """The rows that `calibrant run` knows, by name."""

    def applicable_protocols(self, pools: Sequence[Path]) -> Protocols:
        """Return the rows that `all` stands for on these pools."""
        return self.protocols

    @property
    @abstractmethod
    def measures(self) -> MetricSet:
        """Return how tables read its scores."""

    @property
    def verbs(self) -> ItemFunctions:
        """Return what the public face does with its items."""
        raise CalibrantError(f"the public names do not know {self.title} yet")

    @property
    def training(self) -> Training:
        """Return what trainers are told beside its verdicts."""
        self._absent("rewards")

    @abstractmethod
    def read_pool(self, path: Path) -> ItemPool[I]:
        """Return the pool in a file, without what only tables need; `PoolError` names what cannot be meant."""

    @abstractmethod
    def handout(self, item: I) -> Handout:
        """Return what a protocol's worker is sent."""

    @abstractmethod
    def no_answer(self, item: I) -> dict[str, Any]:
        """Return the answer that stands in where a protocol gives none; it is of the item's schema and not right."""

    @abstractmethod
    def score(self, item: I, answer: Mapping[str, Any], steps: Sequence[Step[Any]]) -> dict[str, Any]:
        """Return the verdict on an answer as records keep it, ready for JSON; a transcript is replayed first."""

    def evaluator(self, item: I, options: Any) -> Evaluator:
        """Return the evaluator of answers to an item.

        options: the Struct of `calibrant score`
        """
        return AnswerEvaluator(self, item)

    def setting_in_tables(self, setting: str, pool_digest: str) -> str:
        """Return the row group of tables for an item of a pool."""
        return setting

    def _absent(self, feature: str) -> NoReturn:
        raise CalibrantError(f"{self.title} does not support {feature}")

    @property
    def report_tables(self) -> Sequence[str]:
        """Ids of the tables in its section of a report, in their order."""
        return ()

    def report(self, answers: Sequence[Answer], wanted: ReportContents, progress: Progress) -> Section:
        """Its section of a report; `CalibrantError` if these answers belong into none of the tables."""
        self._absent("reports")

    def prompt(self, item: I) -> str:
        """Return what a language model is told before anything else."""
        self._absent("prompts")

    def system_and_prompt(self, item: I) -> tuple[str, str]:
        """Return the system text, empty if there is none, and the prompt, as `calibrant prompts` writes them."""
        return "", self.prompt(item)

    def messages(self, item: I) -> list[Message]:
        """Return the prompt as messages of a chat."""
        return [{"role": "user", "content": self.prompt(item)}]

    def record(self, item: I) -> dict[str, Any]:
        """Return the native record, the sealed part too, ready for JSON."""
        self._absent("records")

    def shown_record(self, item: I) -> dict[str, Any]:
        """Return the native record as far as a solver may see it: the public fields, ready for JSON."""
        return {name: value for name, value in self.record(item).items() if name in self.public_fields}

    def item_of_record(self, record: Mapping[str, Any]) -> I:
        """Return the item that `record` was made of; `PoolError` names the field of what cannot be meant."""
        self._absent("records")

    def is_interactive(self, item: I) -> bool:
        """Return whether an item is played."""
        return self.transcripts

    def episode(self, item: I) -> Episode[Any, Any]:
        """Return a fresh episode."""
        self._absent("episodes")

    def chat(self, item: I, instructions: str = "") -> Chat:
        """Open a conversation about an interactive item, with one action a reply."""
        return json_chat(self, item, instructions)

    def handing_in(self, answer: Mapping[str, Any], steps: Sequence[Step[Any]]) -> Sequence[Action]:
        """Return the actions that hand an answer in after these steps; the last one submits and has one key."""
        return ({"submit": dict(answer)},)

    def handed_in(self, steps: Sequence[Step[Any]]) -> dict[str, Any] | None:
        """Return the answer that these steps submit, as `handing_in` is given it; None if they submit none."""
        (verb,) = self.handing_in({}, ())[-1]
        return next((dict(step.action[verb]) for step in steps if verb in step.action and not step.refused), None)

    def extract(self, item: I, response: str | Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer that a response gives, of the item's schema; `ActionError` says why there is none."""
        self._absent("responses")

    def read_answer(self, item: I, response: str | Mapping[str, Any]) -> tuple[dict[str, Any], str]:
        """Return the answer of `extract`, and what of the response could not be read; empty if all was."""
        return self.extract(item, response), ""

    def omission(self, steps: Sequence[Step[Any]]) -> str:
        """Return what counts and a submitted run does not have; empty if it has all."""
        return ""

    def reply_action(self, item: I, text: str) -> Action:
        """Return the action that a reply states; `ActionError` for one that states none, or several."""
        return sole_action(text)

    def same_answer(self, item: I, one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
        """Return whether two answers of the item's schema state the same."""
        return dict(one) == dict(other)

    def parse_trace(self, item: I, line: Mapping[str, Any]) -> Sequence[Step[Any]]:
        """Return the steps of a line in its own trace format; `CalibrantError` names the invalid step or field."""
        self._absent("traces")

    def scored_log(self, path: Path) -> Iterator[Answer]:
        """Yield the verdicts of a file of episodes and their items, played elsewhere; lines as `score` writes."""
        self._absent("logs")

    @property
    def pool_records(self) -> tuple[type[msgspec.Struct], ...]:
        """Return what the lines of its native pool files hold: the header, then an item."""
        self._absent("native pool files")

    def line_records(self, kind: str) -> tuple[type[msgspec.Struct], ...]:
        """Return its own records of lines of audits, certificates or training; none where it has none of its own."""
        return ()

    @property
    def verdict_record(self) -> type[msgspec.Struct]:
        """Return what a line of `calibrant score` holds."""
        self._absent("lines of verdicts")

    def unit(self, item: I) -> str:
        """Return what items that are drawn together in a resampling share."""
        return self.measures.unit(item.id)

    def describe_step(self, episode: Episode[Any, Any], step: Step[Any]) -> str:
        """Return one line on what came of the last step."""
        self._absent("episodes")

    def revealed_record(self, item: I) -> dict[str, Any]:
        """Return the record as `show --gold --json` prints it, with the sealed part."""
        return self.record(item)

    def text(self, item: I, *, reveal_sealed: bool) -> str:
        """Return the item as a person reads it: its picture if it has one, the prompt, and what is sealed if asked."""
        pages = self.capability(PAGES)
        drawing = "" if pages is None else pages.drawing(item, reveal_sealed=reveal_sealed)
        sealed = json.dumps({"sealed": self.record(item)["sealed"]}, indent=1) if reveal_sealed else ""
        return "\n\n".join(part for part in (drawing, self.prompt(item), sealed) if part)

    def find(self, pool: ItemPool[I], instance: str | None) -> I:
        """Return the item of that id, by default the first; `CalibrantError` names close ids."""
        return item_of(pool, instance)

    def account(self, item: I, steps: Sequence[Step[Any]], system: str) -> str:
        """Return what became of an episode, as text."""
        from calibrant.bench.pages.text_timeline import timeline_text

        return timeline_text(self.timeline(item, steps, system))

    def episodes_page(self, item: I, episodes: Sequence[tuple[str, Sequence[Step[Any]]]]) -> str:
        """Episodes of an item as an HTML file, each with what its system is called."""
        from calibrant.bench.pages.filmstrip import timeline_page

        return timeline_page(in_one_line(item.id), [self.timeline(item, steps, name) for name, steps in episodes])

    def timeline(self, item: I, steps: Sequence[Step[Any]], system: str) -> Timeline:
        """Return an episode step by step; `TranscriptError` if the item does not answer so."""
        self._absent("timelines of episodes")

    def suite_of(self, item: I) -> str:
        """Return the group that `calibrant pool stats` counts an item in, beside its setting."""
        return item.stratum

    @property
    def figures(self) -> Mapping[str, PoolStatistic[I]]:
        """Return what items are made of, as `calibrant pool stats` shows it."""
        self._absent("statistics")

    @property
    def suites(self) -> Sequence[str]:
        """Names of what items are drawn from."""
        self._absent("suites")

    def drawn(self, suites: Sequence[str], seed: int, count: int) -> Sequence[I]:
        """Draw so many items of each suite. The same arguments give the same items."""
        self._absent("suites")

    def drawn_part(self, suite: str, seed: int, places: range) -> Sequence[I]:
        """Return the items of a suite at these places, in order."""
        return self.drawn((suite,), seed, places.stop)[places.start :]

    def parts(self, count: int) -> Sequence[range]:
        """Split so many items of a suite into parts that are little more work apart than together."""
        return (range(count),)

    def suite(self, name: str | None) -> str:
        """Return the suite of that name, by default the first; `CalibrantError` says which there are."""
        if name is not None and name not in self.suites:
            raise CalibrantError(f"unknown suite {short_repr(name)}; known: {', '.join(self.suites)}")
        return self.suites[0] if name is None else name

    def write_drawn(self, path: Path, suites: Sequence[str], seed: int, count: int) -> int:
        """Write a pool of so many items of each suite; how many in all. The same arguments give the same bytes."""
        return self.write_items(path, tuple(self.drawn(suites, seed, count)), suites, seed, count)

    def write_items(self, path: Path, items: Sequence[I], suites: Sequence[str], seed: int, count: int) -> int:
        """Write what was drawn, wherever it was; how many items."""
        about = {"seed": seed, "suites": list(suites), "count": count}
        self.write_native(Pool(path.name.partition(".")[0], self.name, items, about), path)
        return len(items)

    def write_native(self, pool: Any, path: Path) -> None:
        """Write a pool that `read_pool` gave in the native format; the file appears complete or not at all."""
        self._absent("conversion")

    def convert(self, source: Path, target: Path, options: Any) -> int:
        """Write a pool in the native format; return the number of items.

        options: of `pool convert`
        """
        pool = self.read_pool(source)
        self.write_native(pool, target)
        return len(pool)

    @property
    def pool_schema(self) -> dict[str, Any] | None:
        """Return the JSON Schema that `pool schema` prints; None for that of `pool_records`."""
        return None

    @abstractmethod
    def attribution(
        self, item: I, answer: Mapping[str, Any], steps: Sequence[Step[Any]], score: Mapping[str, Any]
    ) -> dict[str, Any] | None:
        """Return whether the evidence decided what was asked (bench.core.attribution); None where unknown."""


@cache
def load_benchmark(name: str) -> Benchmark[Any]:
    """Import the benchmark of one of the names."""
    benchmark: Benchmark[Any] = import_module(f"calibrant.bench.{name}.benchmark").BENCHMARK
    return benchmark
