"""CausaLab items as text environments: in the paper's format or by verbs, with aids, live or from recorded replies."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import msgspec

from calibrant.audits.causalab.attribution import run_space
from calibrant.bench.causalab.items import ITEMS
from calibrant.bench.causalab.play import PLAY
from calibrant.bench.core.capabilities import PlayedReplies
from calibrant.bench.episodes import TextEpisode
from calibrant.dsl.answer_text import Thoughts, read_reply_text
from calibrant.dsl.causalab.configs import Config, Transition, candidates, read_configs
from calibrant.dsl.causalab.episode import (
    HYPOTHESIS,
    LabEpisode,
    LabStep,
    missed_readings,
    own_readings,
    run_score,
    stated_raw,
)
from calibrant.dsl.causalab.item import LabItem
from calibrant.dsl.causalab.mechanism import hypothesis
from calibrant.dsl.causalab.prompt import reading_text
from calibrant.dsl.causalab.replies import MAX_RETURNS, PAST, Ledger, schema_fault
from calibrant.dsl.episode import Action, ActionError, Step, sole_action
from calibrant.dsl.errors import CalibrantError, in_one_line, short_repr
from calibrant.dsl.item import Message
from calibrant.solvers.outcome import BudgetSpent

# --- Aids of a text episode: the released configs that fit (as the paper's helper lists them), or the members left ----
Aid: TypeAlias = Literal["none", "members"] | Path
"""members, or a released file whose configs are the candidates."""

MEMBERS: Final = "members"
MAX_LISTED = 50


def shown_aid(item: LabItem, steps: Sequence[LabStep], aid: Path) -> str:
    """Return what an aid shows after these steps; `CalibrantError` for a path that is neither an aid nor a suite."""
    return aid_text(MEMBERS if aid == Path(MEMBERS) else aid, item, steps)


def aid_text(aid: Aid, item: LabItem, steps: Sequence[LabStep]) -> str:
    """Return what an aid shows after these steps; empty for none."""
    if aid == "none":
        return ""
    return _members_text(item, steps) if aid == "members" else _candidates_text(Path(aid), item, steps)


def _members_text(item: LabItem, steps: Sequence[LabStep]) -> str:
    try:
        space = run_space(item, steps)
    except BudgetSpent:
        return "Mechanisms that fit all readings: too many to count."
    certain = ", ".join(f"{parent} -> {child}" for parent, child in sorted(space.certain_edges)) or "none"
    return f"Mechanisms that fit all readings: {space.count}. Edges that all of them have: {certain}."


def _candidates_text(path: Path, item: LabItem, steps: Sequence[LabStep]) -> str:
    fitting = candidates(_configs(path), item.task.properties, _transitions(item, steps))
    names = ", ".join(config.id for config in fitting[:MAX_LISTED]) or "none"
    return f"Candidates of {path.name} that fit all settings: {len(fitting)}: {names}."


@lru_cache(maxsize=8)
def _configs(path: Path) -> tuple[Config, ...]:
    configs = tuple(read_configs(path))
    if not configs:
        raise CalibrantError(f"{path.name}: no configs")
    return configs


def _transitions(item: LabItem, steps: Sequence[LabStep]) -> list[Transition]:
    """Return the settings of a run in their order, each from the values before it."""
    transitions, before = [], item.task.baseline
    for step in steps:
        if step.cost and step.reading is not None:
            name, value = str(step.action["set"]), float(step.action["value"])
            transitions.append(Transition(before, step.reading, name, value))
            before = step.reading
    return transitions


# --- CausaLab items as text environments, in the paper's format or by verbs, with the paper's options -----------------
Schema: TypeAlias = Literal["free", "paper"]
Verify: TypeAlias = Literal["never", "once"]
TURNS_PER_ACTION, TURNS_BESIDE = 2, 8


@dataclass(frozen=True)
class DialogueOptions:
    """Options of a text episode.

    schema: paper returns a reply whose hypothesis breaks the schema of the paper, at most twice in a row
    verify: once returns the first dial or submission whose equation misses readings of the run, while settings are left
    aid: what is shown after each reading beside it; carry: whether the last notebook and hypothesis are repeated
    """

    schema: Schema = "free"
    verify: Verify = "never"
    aid: Aid = "none"
    carry: bool = False


@dataclass
class DialogueTotals:
    """Totals of a run.

    replies: taken; unread: without an action; malformed: whose hypothesis broke the schema once too often
    returned: that came back for their schema; verified: whether one came back for its own readings
    """

    replies: int = 0
    unread: int = 0
    malformed: int = 0
    returned: int = 0
    verified: bool = False
    ledger: Ledger = field(default_factory=Ledger)

    def as_json(self) -> dict[str, Any]:
        """Ready for JSON; shares are over replies, None without any."""
        shares = {
            "unread_share": self.unread / self.replies if self.replies else None,
            "malformed_share": self.malformed / self.replies if self.replies else None,
        }
        counts = {"replies": self.replies, "unread": self.unread, "malformed": self.malformed}
        return {
            **counts,
            **shares,
            "returned": self.returned,
            "verified": self.verified,
            "ledger": self.ledger.as_json(),
        }


class LabChat:
    """An episode in messages; whatever a reply is, it is answered."""

    def __init__(self, item: LabItem, options: DialogueOptions | None = None, thoughts: Thoughts = "strip") -> None:
        self.episode = LabEpisode(item)
        self.options = options or DialogueOptions()
        self._thoughts = thoughts
        self.totals = DialogueTotals()
        self.messages: list[Message] = ITEMS.messages(item)
        if note := aid_text(self.options.aid, item, ()):
            self.messages[-1] = {"role": "user", "content": f"{self.messages[-1]['content']}\n\n{note}"}
        self._item = item
        self._turns_left = TURNS_PER_ACTION * self.episode.left + TURNS_BESIDE
        self._returns = 0  # of the present reply, for its schema
        self._notebook: Mapping[str, Any] = {}

    @property
    def closed(self) -> bool:
        return self.episode.closed or self._turns_left <= 0

    def hear(self, text: object) -> None:
        """Take a reply."""
        self._turns_left -= 1
        self.totals.replies += 1
        answer = self._answer(text)
        if self.options.carry and self._notebook and not self.closed:
            answer += f"\n\nYour previous state:\n{_carried(self._notebook)}"
        self.messages.append({"role": "assistant", "content": text if isinstance(text, str) else ""})
        self.messages.append({"role": "user", "content": answer})

    def _answer(self, text: object) -> str:
        try:
            if not isinstance(text, str):
                raise ActionError(f"expected text, found {short_repr(text)}")
            text = read_reply_text(text, self._thoughts)
            action = PLAY.parse_action(self._item, text)
            raw = sole_action(text)
        except ActionError as error:
            self.totals.unread += 1
            return f"Not understood: {error}."
        if returned := self._schema_fault(action):
            return returned
        self._note(raw, action)
        if missed := self._missed(action):
            return missed
        step = self.episode.act(action)
        lines = [PLAY.describe(self.episode, step)]
        if step.cost and (note := aid_text(self.options.aid, self._item, self.episode.steps)):
            lines.append(note)
        return "\n".join(lines)

    def _schema_fault(self, action: Action) -> str:
        """Return the answer to a reply that breaks the schema; empty for one that does not, and without the option."""
        raw = _stated(action)
        if self.options.schema != "paper" or raw is None:
            return ""
        fault = schema_fault(raw, self._item.task.properties)
        if not fault:
            self._returns = 0
            return ""
        if self._returns < MAX_RETURNS:
            self._returns += 1
            self.totals.returned += 1
            return f"The hypothesis was not taken: {fault}. Repeat the reply with another one."
        self._returns = 0
        self.totals.malformed += 1
        self.totals.unread += 1
        return f"Not understood: {fault}."

    def _note(self, raw: Mapping[str, Any], action: Action) -> None:
        readings = list(own_readings(self._item.task, self.episode.steps))
        self.totals.ledger.add(raw, readings, self._item.task.properties)
        stated = _stated(action)
        copied = {PAST: raw[PAST]} if PAST in raw else {}
        self._notebook = {**self._notebook, **copied, **({} if stated is None else {HYPOTHESIS: stated})}

    def _missed(self, action: Action) -> str:
        """Return the readings that a dial or a submission misses, once; empty without any, and without the option."""
        if self.options.verify != "once" or self.totals.verified or "set" in action or self.episode.left <= 0:
            return ""
        stated = _stated(action)
        last = stated if stated is not None else self._notebook.get(HYPOTHESIS)
        missed = missed_readings(hypothesis(last), self._item.task, self.episode.steps)
        if not missed:
            return ""
        self.totals.verified = True
        lines = [
            f"Before that: your equation does not give these of your readings. Settings left: {self.episode.left}.",
            *map(reading_text, missed),
        ]
        return "\n".join(lines)


def _stated(action: Action) -> Mapping[str, Any] | None:
    return stated_raw(Step(action, None))


def _carried(notebook: Mapping[str, Any]) -> str:

    return json.dumps(notebook)


def text_episode(item: LabItem, options: DialogueOptions | None = None, thoughts: Thoughts = "strip") -> TextEpisode:
    """Return an item as an environment: reward 1 for a frequency within 5, else 0.

    The score has the totals of the dialogue under `dialogue`.
    """
    opened: list[LabChat] = []

    def open_chat() -> LabChat:
        opened[:] = [LabChat(item, options, thoughts)]
        return opened[0]

    def score(steps: Sequence[Step[Any]]) -> dict[str, Any]:
        return run_score(item, steps).as_json() | {"dialogue": opened[0].totals.as_json()}

    return TextEpisode(open_chat, score, _reward)


def _reward(record: Mapping[str, Any]) -> float:
    return float(record["accuracy"])


# --- Recorded replies of a system, played again: in the paper's format, or by verbs -----------------------------------


class ReplyOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Options of a dialogue that decide what a reply does; what is shown beside the answers decides nothing."""

    schema: Schema = "free"
    verify: Verify = "never"


def play_replies(
    item: LabItem, replies: Sequence[Any], stated: Mapping[str, Any], thoughts: Thoughts = "strip"
) -> PlayedReplies:
    """Play replies, texts or objects, one a turn; `CalibrantError` for one after the end and for unknown options."""
    try:
        options = msgspec.convert(stated, ReplyOptions)
    except msgspec.ValidationError as error:
        choices = "known: schema free or paper, verify never or once"
        raise CalibrantError(f"dialogue: {in_one_line(str(error))}; {choices}") from None
    chat = LabChat(item, DialogueOptions(options.schema, options.verify), thoughts)
    for number, reply in enumerate(replies):
        if chat.closed:
            raise CalibrantError(f"reply {number} of {len(replies)} comes after the end of the episode")
        chat.hear(json.dumps(reply) if isinstance(reply, Mapping) else reply)
    return PlayedReplies(chat.episode.steps, chat.totals.as_json())
