"""Games of one person on one item: pools under public ids, plans, moves or one answer, and the state for a page."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from math import fsum
from pathlib import Path
from random import Random
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias
from urllib.parse import quote

import msgspec
from msgspec import Meta

from calibrant.bench.core.attribution import KEY, NO_ANSWER, UNDEFINED_VERDICT, verdict_text
from calibrant.bench.core.benchmark import Benchmark, PublicPool
from calibrant.bench.core.capabilities import AIDS, WORDS
from calibrant.bench.core.metrics import InvalidHandling
from calibrant.bench.core.registry import benchmark_of, is_stated
from calibrant.bench.core.scoring import PEOPLE
from calibrant.bench.core.typed_moves import Draft, Position, Words, WordsError
from calibrant.bench.pages.graphs import Graph, GraphNode, draw_together
from calibrant.bench.runs import records
from calibrant.bench.version import program_version
from calibrant.dsl.episode import Action, ActionError, Episode, Step
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.records import file_digest, item_ids

# --- The items of a pool file, shown under public ids and recorded under the pool's own -------------------------------


class ItemKey(NamedTuple):
    """An item of a pool. instance: the pool's own id."""

    pool_digest: str
    instance: str


class PlayPool:
    """A pool file whose items people play."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.benchmark: Benchmark[Any] = benchmark_of(path)
        self.words: Words[Any] = self.benchmark.require(WORDS)
        self.public = PublicPool(self.benchmark, path)
        self.digest = file_digest(path)

    @property
    def name(self) -> str:
        """The pool's name."""
        return str(self.public.items.name)

    @cached_property
    def indices(self) -> dict[str, int]:
        """Index of each item in the pool, by the pool's own id."""
        return {instance: index for index, instance in enumerate(item_ids(self.public.items.items))}

    def item(self, name: str | None) -> Any:
        """Return the item of a public or own id, by default the first; `CalibrantError` if there is none."""
        return self.public.item(name)

    def check_aid(self, aid: Path) -> None:
        """Raise `CalibrantError` for an aid that these items lack, or a file that is no aid."""
        self.benchmark.require(AIDS)(self.public.shown(self.item(None)), (), aid)

    def key(self, name: str | None) -> ItemKey:
        """Return the key of the item of a public or own id."""
        return ItemKey(self.digest, self.item(name).id)


# --- Plans: the items and pages of questions of a participant, in order -----------------------------------------------
Feedback: TypeAlias = Literal["none", "cells"]
START = ItemKey("", "start")
AID = "aid"  # key in conditions, and in the event that opens an item
MEMBERS = "members"  # name of the only aid that is no file
QUESTIONS = "questions:"  # prefix of the name of a page of questions in journals
FINISH = ItemKey("", "end")
CORRECT = "correct"  # key of a question's right answer


@dataclass(frozen=True)
class ItemStop:
    """An item to play. limit: seconds after which it ends without an answer, 0 for none."""

    key: ItemKey
    limit: int = 0


class PageTexts(NamedTuple):
    """Texts of a page of questions in another language."""

    title: str
    instructions: str
    questions: Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class QuestionsStop:
    """A page of questions, or of instructions.

    name: unique in the plan; questions: checked questions of a file of `study.toml`
    instructions: Markdown text whose questions must be answered correctly; empty for other pages
    tries: number of wrong attempts after which the study ends, 0 for no limit
    translations: language -> texts in place of those of the first language
    limit: seconds after which the page ends with the answers so far, 0 for none
    """

    name: str
    title: str
    questions: Sequence[Mapping[str, Any]]
    instructions: str = ""
    tries: int = 0
    translations: Mapping[str, PageTexts] = field(default_factory=dict, hash=False)
    limit: int = 0

    @property
    def checks_instructions(self) -> bool:
        """Whether all questions must be answered correctly before the study goes on."""
        return bool(self.instructions and self.questions)

    def texts(self, lang: str) -> PageTexts:
        """Return the texts of the page in a language, without right answers."""
        questions = [{key: value for key, value in q.items() if key != CORRECT} for q in self.questions]
        if lang not in self.translations:
            return PageTexts(self.title, self.instructions, questions)
        title, instructions, texts = self.translations[lang]
        return PageTexts(title, instructions, [q | dict(text) for q, text in zip(questions, texts, strict=True)])

    @property
    def key(self) -> ItemKey:
        """The key of its answers in the journal."""
        return ItemKey("", f"{QUESTIONS}{self.name}")


Stop: TypeAlias = ItemStop | QuestionsStop


class Assignment(NamedTuple):
    """Group of a participant. rank: number of participants who began in the group before."""

    group: str
    rank: int


Plan: TypeAlias = Callable[[str, Assignment | None], Sequence[Stop]]
"""(participant, assignment) -> their stops; the assignment is None in studies without groups."""


def balanced_assignment(groups: Sequence[str], seed: str, num_before: int) -> Assignment:
    """Assign a group to the participant who begins after `num_before` others, by permuted blocks of all groups."""
    block, rank_in_block = divmod(num_before, len(groups))
    return Assignment(Random(f"{seed} groups {block}").sample(groups, len(groups))[rank_in_block], block)


class Completion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Proof that a participant finished, for the site that sent them: a code or an address."""

    code: Annotated[str, Meta(max_length=200, description="shown at the end")] = ""
    url: Annotated[
        str,
        Meta(
            max_length=2_000,
            pattern=r"^(https?://[!-~]+)?$",
            description="begins with https:// or http:// and has no blanks; {participant} stands for the id",
        ),
    ] = ""

    def stated(self, participant: str) -> dict[str, str]:
        """Return the proof for the end page of a participant."""
        return {"code": self.code} if self.code else {"url": self.url.replace("{participant}", quote(participant))}


class Language(NamedTuple):
    """Language of a page. texts: English text -> translation, as JSON, so that the language is hashable."""

    code: str
    name: str
    texts: str = "{}"


ENGLISH = Language("en", "English")


@dataclass(frozen=True)
class Terms:
    """Terms that hold for all participants.

    title: of the study, or the pool; consent: text to agree to; empty if none is requested
    feedback: "cells" shows which cells a formula reproduces while it is typed
    reveal: whether the verdict is shown when an item ends
    aid: file or name of the aid that is shown after each reading; None for none
    minutes: stated duration, 0 if none is stated
    completion: proof for participants who finished; screen_out: for those who failed the instructions
    groups, seed: groups that participants are assigned to, and seed of the assignment
    langs: languages of the page, the default first; consents: language -> consent text, for the others
    limit: seconds after which the study ends, 0 for none
    """

    title: str
    consent: str = ""
    feedback: Feedback = "none"
    reveal: bool = True
    aid: Path | None = None
    minutes: int = 0
    completion: Completion | None = None
    screen_out: Completion | None = None
    groups: tuple[str, ...] = ()
    seed: str = ""
    langs: tuple[Language, ...] = (ENGLISH,)
    consents: Mapping[str, str] = field(default_factory=dict, hash=False)
    limit: int = 0

    def consent_in(self, lang: str) -> str:
        """Return the text of consent in a language."""
        return self.consents.get(lang, self.consent)


@dataclass(frozen=True)
class Practice:
    """Items to try before the start, with verdicts and without records. pools: pools of the stops.

    The pools are opened separately from those of the study, because both may be read at the same time.
    """

    pools: Sequence[PlayPool]
    stops: Sequence[Stop]


def aid_config(aid: Path | None) -> dict[str, str]:
    """Return the conditions of records that name the aid; {} without one."""
    return {} if aid is None else {AID: aid.name}


def pool_plan(pool: PlayPool, instance: str | None) -> tuple[Stop, ...]:
    """Return the plan of one pool: one item, or all items in order."""
    if instance is not None:
        return (ItemStop(pool.key(instance)),)
    return tuple(ItemStop(ItemKey(pool.digest, name)) for name in pool.indices)


# --- A game: an episode move by move, or a question with one answer ---------------------------------------------------
_OBJECT = re.compile(r"\{[^{}]*\}")
SUBMIT = "submit"  # key of a question's only action


class Game:
    """State of an item after some events; equal events give equal states.

    item: under the pool's own id; shown: under its public id
    answer: submitted answer, None if there is none
    seconds: time before each step, including that of drafts and refused lines
    gave_up: whether the person gave up; is_late: whether the time was up
    num_moves: number of actions so far, with refused ones
    """

    def __init__(self, pool: PlayPool, instance: str) -> None:
        self.pool = pool
        self.item = pool.item(instance)
        self.shown = pool.public.shown(self.item)
        bench = pool.benchmark
        self.episode: Episode[Any, Any] | None = bench.play.open(self.item) if bench.is_interactive(self.item) else None
        self.draft: Draft = {}
        self.answer: dict[str, Any] | None = None
        self.gave_up = self.is_late = False
        self.num_moves = 0
        self.seconds: list[float] = [0.0 for _ in self.steps]
        self._waiting = 0.0
        self._earlier_drafts: list[Draft] = []

    @property
    def steps(self) -> Sequence[Step[Any]]:
        """Steps of the episode so far; empty for a question."""
        return () if self.episode is None else self.episode.steps

    @property
    def num_left(self) -> int:
        """Remaining budget of moves; 0 for a question."""
        return 0 if self.episode is None else self.episode.left

    @property
    def closed(self) -> bool:
        """Whether the game is over."""
        if self.gave_up or self.is_late:
            return True
        return self.answer is not None if self.episode is None else self.episode.closed

    @property
    def position(self) -> Position:
        """Public state, against which typed lines are parsed."""
        return Position(self.steps, self.num_left, self.draft)

    def step_text(self, step: Step[Any]) -> str:
        """Return the outcome of a step as text, with readings as `ph = 3.0, density = 1.5` in place of JSON."""
        assert self.episode is not None
        return _OBJECT.sub(_plain_object, self.pool.benchmark.play.describe(self.episode, step))

    def aid_text(self, aid: Path) -> str:
        """Return the text of an aid for the current state."""
        text: str = self.pool.benchmark.require(AIDS)(self.shown, self.steps, aid)
        return text

    def check(self, action: Action) -> None:
        """Raise `WordsError` for an action that is no move, at no cost; an episode checks its actions itself."""
        if self.closed:
            raise WordsError("the item is closed")
        if self.episode is None:
            self._stated_answer(action)

    def act(self, action: Action, seconds: float = 0.0) -> Step[Any] | None:
        """Carry out an action; return the step of an episode, None for the answer to a question."""
        self.check(action)
        self._waiting += seconds
        self.num_moves += 1
        if self.episode is None:
            self.answer = self._stated_answer(action)
            self.seconds.append(self._waiting)
            return None
        step: Step[Any] = self.episode.act(action)
        self.seconds.append(self._waiting)
        self._waiting = 0.0
        if self.episode.closed:
            self.answer = self.pool.benchmark.play.submitted(self.episode.steps)
        return step

    def write(self, draft: Draft, seconds: float = 0.0) -> None:
        """Replace the draft; the change can be undone."""
        self._waiting += seconds
        self._earlier_drafts.append(self.draft)
        self.draft = draft

    @property
    def earlier_draft(self) -> Draft | None:
        """The draft before the last change; None if there is none."""
        return self._earlier_drafts[-1] if self._earlier_drafts else None

    def take_back(self, seconds: float = 0.0) -> None:
        """Return to the draft before the last change."""
        self._waiting += seconds
        self.draft = self._earlier_drafts.pop()

    def give_up(self, seconds: float = 0.0) -> None:
        """Close the item without an answer."""
        self._waiting += seconds
        self.seconds.append(self._waiting)
        self.gave_up = True

    def run_out(self, seconds: float = 0.0) -> None:
        """Close the item without an answer because its time is up."""
        self._waiting += seconds
        self.seconds.append(self._waiting)
        self.is_late = True

    def wait(self, seconds: float) -> None:
        """Count time without an event."""
        self._waiting += seconds

    def _stated_answer(self, action: Action) -> dict[str, Any]:
        if action.keys() != {SUBMIT} or not isinstance(action[SUBMIT], Mapping):
            raise WordsError(f'a question takes one action, {{"{SUBMIT}": {{...}}}} with the answer')
        try:
            answer = self.pool.benchmark.scoring.extract(self.item, action[SUBMIT])
            self.pool.words.check_answer(self.item, answer)
        except ActionError as error:
            raise WordsError(str(error)) from None
        except WordsError:
            raise
        except CalibrantError as error:
            raise WordsError(str(error)) from None
        return answer


def _plain_object(match: re.Match[str]) -> str:
    try:
        values = json.loads(match[0])
    except ValueError:
        return match[0]
    end = "." if match.string[match.end() :].startswith(" ") else ""
    return ", ".join(f"{name} = {value}" for name, value in values.items()) + end


# --- State of an item for its page, for JSON: the public part, readings, the draft; nothing sealed --------------------


def item_state(game: Game, *, with_cells: bool, aid: Path | None = None) -> dict[str, Any]:
    """Return the state of a game for its page.

    with_cells: add the cells of the evidence that the draft's formulas reproduce; aid: aid whose text is added
    """
    words, item = game.pool.words, game.shown
    steps = [
        {
            "action": dict(step.action),
            "reading": step.reading,
            "refused": step.refused,
            "cost": step.cost,
        }
        for step in game.steps
    ]
    described = game.step_text(game.steps[-1]) if game.steps else ""
    state: dict[str, Any] = {
        "id": item.id,
        "kind": words.kind[0].capitalize(),
        "opening": words.opening(item),
        "view": words.view(item),
        "steps": steps,
        "moves": game.num_moves,
        "left": game.num_left,
        "closed": game.closed,
        "late": game.is_late,
        "draft": dict(game.draft),
        "can_undo": game.earlier_draft is not None,
        "problems": dict(words.problems(item, game.draft)),
        "last": described.partition("\n")[0],
    }
    graph = words.graph(item, game.draft)
    if graph is not None:
        loop = _loop(graph)
        state |= {"loop": loop} if loop else {"picture": _picture(graph)}
    if with_cells:
        state["cells"] = dict(words.cells(item, game.position))
    if aid is not None:
        state[AID] = game.aid_text(aid)
    return state


def _loop(parents: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the variables of a cycle, each a cause of the next, with the first again at the end; [] if acyclic."""
    try:
        TopologicalSorter(parents).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def _picture(parents: Mapping[str, Sequence[str]]) -> str:
    """Return an SVG of the graph that a draft states."""
    edges = [f"{cause} to {effect}" for effect, causes in parents.items() for cause in causes]
    label = f"The graph that you wrote: {', '.join(edges) or 'no causes yet'}"
    graph = Graph(parents, {name: GraphNode(name) for name in parents}, label)
    (picture,) = draw_together([graph], "draft")
    return picture


# --- Records of closed games in the format of runs, for `table`, `report`, `show --run` and `score` -------------------


def protocol_of(participant: str) -> str:
    """Return the protocol in a participant's records."""
    return PEOPLE + participant


def game_record(game: Game, participant: str, config: Mapping[str, Any], started: str) -> records.Record:
    """Return the record of a closed game.

    config: conditions, which are part of the record's key; started: UTC, ISO 8601
    """
    bench, item, steps = game.pool.benchmark, game.item, list(game.steps)
    is_episode = game.episode is not None
    answer = bench.scoring.no_answer(item) if game.answer is None else game.answer
    score = bench.scoring.score(item, answer, steps)
    attribution = bench.attribution(item, answer, steps, score) if steps else None
    return records.Record(
        pool=game.pool.name,
        pool_digest=game.pool.digest,
        pool_size=len(game.pool.public.items),
        index=game.pool.indices[item.id],
        instance=item.id,
        setting=item.setting,
        stratum=item.stratum,
        protocol=protocol_of(participant),
        config=dict(config),
        outcome="out_of_budget" if game.answer is None else "found",
        answer=answer,
        size=None,
        score=score,
        provenance=_provenance(game),
        program=program_version(),
        benchmark=item.benchmark if is_stated(item.benchmark) else msgspec.UNSET,
        steps=records.step_records(steps) if is_episode else msgspec.UNSET,
        attribution=msgspec.UNSET if attribution is None else attribution,
        timing=records.Timing(round(fsum(game.seconds), 3), started, [round(number, 3) for number in game.seconds]),
    )


def evidence_attribution(bench: Benchmark[Any], item: Any, record: records.Record) -> dict[str, Any]:
    """Return the attribution of a record, computed here for questions, whose records lack it; {} if unknown."""
    attribution = record.attribution
    if attribution is msgspec.UNSET and record.steps is msgspec.UNSET:
        attribution = bench.attribution(item, record.answer, (), record.score) or {}
    return attribution if isinstance(attribution, dict) else {}


def game_verdict(bench: Benchmark[Any], item: Any, record: records.Record) -> dict[str, Any]:
    """Return the verdict on a record for JSON: whether the answer is right, score and attribution, and both as text."""
    is_right = bench.metrics.success.judge(record.score, record.setting)
    attribution = evidence_attribution(bench, item, record)
    if is_right is None:
        verdict = bench.metrics.verdict(record.score, record.setting, InvalidHandling.PUBLISHED)
        fits = bench.metrics.sample(verdict).train_exact
        text = f"{'fits every row' if fits else 'does not fit every row'}; {UNDEFINED_VERDICT}"
    elif record.steps is msgspec.UNSET or record.steps:
        score = {**record.score, KEY: attribution, NO_ANSWER: record.outcome != "found"}
        text = verdict_text(score, is_right=is_right)
    else:
        text = f"{'right' if is_right else 'not right'}; nothing was read"
    return {"right": is_right, "text": text, "score": record.score, "attribution": attribution or None}


def _provenance(game: Game) -> dict[str, Any]:
    if game.is_late:
        return {"reason": "the time was up"}
    if game.gave_up:
        return {"reason": "the participant gave no answer"}
    return {} if game.answer is not None else {"reason": "the allowance was spent without an answer"}
