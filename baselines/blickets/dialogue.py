"""A blicket episode as a conversation: the paper's three ways of prompting an agent.

Base; with a context graph (CG); with dynamic behaviours, which extend the graph, too (CG+DB).

A `Dialogue` is driven reply by reply by its caller: a loop, a symbolic policy or a training environment. Source: arXiv
2604.20039, section 3; a turn without a readable action costs no move, which the paper leaves open, and the number of
turns is bounded instead.

An answer may also be in the paper's lines `RULE_TYPE:` and `BLICKETS:`; how actions are read is in
dsl.blickets.replies.

A reply is untrusted text of any length. It is read in linear time, and nothing in it is executed; the episode and the
context graph judge its requests. A reply has one action; if it has two that differ, neither is chosen.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from msgspec import UNSET

from calibrant.baselines.blickets import context
from calibrant.dsl.answer_text import Thoughts, read_reply_text
from calibrant.dsl.blickets import episode as trace
from calibrant.dsl.blickets.item import Task
from calibrant.dsl.blickets.prompt import instructions, observation
from calibrant.dsl.blickets.replies import marked_parts, stated_action
from calibrant.dsl.episode import Action, ActionError, Episode, Step
from calibrant.dsl.errors import short_repr
from calibrant.dsl.item import Message, Model

# --- Requests of a model's reply: lines that begin with `REASONING:`, `ACTION:` and `TRANSITION:` ---------------------
_NAMES = re.compile(r"\w+")

MAX_NAME_CHARS = 64  # characters of a state's name that are read
MAX_SEARCHED_CHARS = 200  # characters behind `TRANSITION:` in which a name is searched


@dataclass(frozen=True, slots=True)
class Reply:
    """Parts of a reply.

    reasoning: free text; action: None without a readable one; transition: empty without one
    problems: a line for an unreadable or missing action, and a line for an unreadable transition
    """

    reasoning: str = ""
    action: Action | None = None
    transition: str = ""
    problems: tuple[str, ...] = ()


def read_reply(text: object, objects: Sequence[str] = (), thoughts: Thoughts = "strip") -> Reply:
    """Parse a reply; never raises. A transition without an action is a valid reply.

    objects: names of the item's objects, matched with case ignored
    thoughts: how a model's thinking blocks are recognised; nothing is read in them
    """
    if not isinstance(text, str):
        return Reply(problems=(f"expected text, found {short_repr(text)}",))
    try:
        text = read_reply_text(text, thoughts)
    except ActionError as error:
        return Reply(problems=(str(error),))
    parts = marked_parts(text)
    problems: list[str] = []
    action = None
    try:
        action = stated_action(text, objects)
    except ActionError as error:
        problems.append(str(error))
    transition = _sole_transition(parts["TRANSITION"], problems)
    if action is None and not problems and not parts["TRANSITION"]:
        problems.append("no line `ACTION:`")
    return Reply("\n".join(part.strip() for part in parts["REASONING"]), action, transition, tuple(problems))


def _sole_transition(parts: list[str], problems: list[str]) -> str:
    names = {_name(part) for part in parts}
    if len(names) > 1:
        problems.append("several transitions; a reply carries at most one")
        return ""
    name = next(iter(names), "")
    if parts and not name:
        problems.append("expected the name of a state after `TRANSITION:`")
    return name


def _name(part: str) -> str:
    """Return the first word behind the mark, in the spelling of states."""
    word = _NAMES.search(part[:MAX_SEARCHED_CHARS])
    return word[0].upper()[:MAX_NAME_CHARS] if word else ""


def written_reply(reply: Reply) -> str:
    """Return a reply as text, which `read_reply` reads back."""
    lines = [f"REASONING: {reply.reasoning}"]
    if reply.action is not None:
        lines.append(f"ACTION: {json.dumps(reply.action)}")
    if reply.transition:
        lines.append(f"TRANSITION: {reply.transition}")
    return "\n".join(lines)


ActionStyle: TypeAlias = Literal["named", "numbered"]
# `ACTION: 3`, also emphasised or quoted: group 1 is the label, group 2 the number
_NUMBERED = re.compile(r"^([ \t>*_]*ACTION[*_]*:[*_ \t]*)([0-9]{1,3})(?=[*_ \t.]*$)", re.IGNORECASE | re.MULTILINE)
TURNS_PER_MOVE, SPARE_TURNS = 2, 20  # the bound on turns: so many for each move of the budget, and these


@dataclass(frozen=True, slots=True)
class Prompting:
    """A way of prompting: the context graph to start in, if any, and the monitors that may add states to it."""

    name: str
    start: context.Context | None = None
    behaviours: tuple[context.Behaviour, ...] = ()


BASE = Prompting("Base")
CG = Prompting("CG", context.START)
CG_DB = Prompting("CG+DB", context.START, context.BEHAVIOURS)


@dataclass(frozen=True, slots=True)
class Turn:
    """Outcome of one reply.

    step: None if the reply had no action
    activations: number of activations after the reply
    placed: names of the objects on the detector after the reply, first placed first
    state: after the reply's transition; empty without a context graph
    transition: None if the reply requested none
    scores: scores of the behaviours; notice: message to the agent about those that fired
    problems: as in `Reply`
    """

    step: Step[str] | None
    activations: int
    placed: tuple[str, ...]
    state: str
    transition: context.TransitionOutcome | None
    scores: tuple[context.BehaviourScore, ...]
    notice: str
    problems: tuple[str, ...]


class Dialogue:
    """One episode in messages.

    messages: all messages so far; until the dialogue is closed, the last one is to the agent
    turns: the outcome of each reply
    context: the context graph with the agent's state in it, None without a graph
    actions: if "numbered", the moves are listed after each reading, and `ACTION: 1` means the first of them
    thoughts: how a model's thinking blocks in replies are recognised
    """

    def __init__(
        self,
        episode: Episode[Task, str],
        prompting: Prompting,
        scorer: context.Scorer = context.deterministic_scorer,
        actions: ActionStyle = "named",
        thoughts: Thoughts = "strip",
    ) -> None:
        self.episode = episode
        self._thoughts = thoughts
        self.prompting = prompting
        self.context = prompting.start
        self.actions = actions
        self.memory = context.EpisodeMemory(episode.task)
        self.turns: list[Turn] = []
        for step in episode.steps:  # a detector may start with objects on it, which gives a first reading
            self.memory.note(step)
        self._watch = context.Watch(prompting.behaviours, scorer)
        self._max_turns = TURNS_PER_MOVE * episode.task.budget + SPARE_TURNS
        opening = [instructions(episode.task)]
        opening += [observation(step, self.memory.placed_names, episode.left) for step in episode.steps[-1:]]
        opening += [*self._shown_moves(), *self._shown_context()]
        self.messages: list[Message] = [{"role": "user", "content": "\n\n".join(opening)}]

    @property
    def closed(self) -> bool:
        """Return whether no reply is accepted any more: the episode is over, or the turns are used up."""
        return self.episode.closed or len(self.turns) >= self._max_turns

    def take_text(self, text: object) -> Turn:
        """Take the text of a model's reply; a value that is no text counts as an unreadable reply."""
        words = self._named_action(text) if self.actions == "numbered" and isinstance(text, str) else text
        reply = read_reply(words, self.episode.task.objects, self._thoughts)
        return self._take(reply, text if isinstance(text, str) else "")

    @property
    def unread_share(self) -> float | None:
        """Share of the replies without an action, also those with a transition alone; None before any reply."""
        unread = sum(turn.step is None for turn in self.turns)
        return unread / len(self.turns) if self.turns else None

    @property
    def moves(self) -> list[str]:
        """The possible moves, in the order of the objects."""
        placed = self.memory.placed_names
        return [f"{'remove' if name in placed else 'place'} {name}" for name in self.episode.task.objects]

    def _named_action(self, text: str) -> str:
        """Return a reply with the move in place of its number; a number without a move stays."""

        def move(match: re.Match[str]) -> str:
            move_number = int(match.group(2))
            return (
                f"{match.group(1)}{self.moves[move_number - 1]}"
                if 1 <= move_number <= len(self.moves)
                else match.group()
            )

        return _NUMBERED.sub(move, text)

    def _shown_moves(self) -> list[str]:
        if self.actions == "named":
            return []
        return ["\n".join(f"{move_number}. {move}" for move_number, move in enumerate(self.moves, 1))]

    def take(self, reply: Reply) -> Turn:
        """Take a structured reply of a symbolic policy; its text is derived from it."""
        return self._take(reply, written_reply(reply))

    def notes(self) -> dict[int, trace.Notes]:
        """Return the transitions and behaviours of each step for a trace, by its index in `episode.steps`.

        The transition of a reply without an action is recorded at the next step, unless that has one of its own.
        """
        notes: dict[int, trace.Notes] = {}
        requested: str | None = None
        # steps before the dialogue belong to no turn
        step_index = len(self.episode.steps) - sum(turn.step is not None for turn in self.turns)
        for turn in self.turns:
            requested = turn.transition.requested if turn.transition else requested
            if turn.step is not None:
                moved = trace.Transition(requested, turn.state) if self.context else UNSET
                monitors = tuple(trace.Monitor(s.behaviour.name, s.score, s.fired) for s in turn.scores)
                notes[step_index] = trace.Notes(moved, monitors, turn.notice)
                step_index, requested = step_index + 1, None
        return notes

    def _take(self, reply: Reply, text: str) -> Turn:
        """Take a reply; `ValueError` if the dialogue is closed."""
        if self.closed:
            raise ValueError("the dialogue is closed")
        self.messages.append({"role": "assistant", "content": text})
        transition = self._follow_transition(reply.transition)
        state = self.context.state.name if self.context else ""
        step, scores = None, tuple[context.BehaviourScore, ...]()
        if reply.action is not None:
            step = self.episode.act(reply.action)
            self.memory.note(step)
            if not self.episode.closed:
                scores = self._watch.scores(context.Situation(self.memory, state, self._recent()))
        notice = self._extend_context(scores)
        turn = Turn(
            step, self.memory.activations, self.memory.placed_names, state, transition, scores, notice, reply.problems
        )
        self.turns.append(turn)
        self.messages.append({"role": "user", "content": self._answer(turn)})
        return turn

    def _follow_transition(self, requested: str) -> context.TransitionOutcome | None:
        if not requested:
            return None
        if self.context is None:
            return context.TransitionOutcome(requested, False, "there is no context graph")
        self.context, transition = self.context.move(requested)
        return transition

    def _extend_context(self, scores: tuple[context.BehaviourScore, ...]) -> str:
        fired = [score.behaviour for score in scores if score.fired]
        for behaviour in fired:
            if self.context is not None:
                self.context = behaviour.extend_context(self.context)
        return "\n".join(f"{behaviour.notice} New state: {behaviour.state.name}." for behaviour in fired)

    def _recent(self) -> tuple[Message, ...]:
        recent = self.messages[-context.NUM_MESSAGES :]
        return tuple({"role": m["role"], "content": m["content"][: context.MAX_MESSAGE_CHARS]} for m in recent)

    def _answer(self, turn: Turn) -> str:
        """Return the message that answers the agent's reply."""
        lines = [f"Not understood: {problem}." for problem in turn.problems]
        if turn.transition is not None and not turn.transition.is_taken:
            lines.append(f"Transition refused: {turn.transition.refused}.")
        if turn.step is not None:
            lines.append(observation(turn.step, turn.placed, self.episode.left))
        if turn.notice:
            lines.append(f"NOTICE: {turn.notice}")
        if self.episode.closed:
            return "\n\n".join(lines)
        return "\n\n".join(["\n".join(lines), *self._shown_moves(), *self._shown_context()])

    def _shown_context(self) -> list[str]:
        return [self.context.render()] if self.context else []


Policy: TypeAlias = Callable[[Dialogue], Reply]  # dialogue -> structured reply


def converse(dialogue: Dialogue, model: Model) -> Dialogue:
    """Exchange messages with a model until the dialogue is closed; return the dialogue."""
    while not dialogue.closed:
        dialogue.take_text(model(dialogue.messages))
    return dialogue


def play_dialogue(dialogue: Dialogue, policy: Policy) -> Dialogue:
    """Let a symbolic policy reply until the dialogue is closed; return the dialogue."""
    while not dialogue.closed:
        dialogue.take(policy(dialogue))
    return dialogue
