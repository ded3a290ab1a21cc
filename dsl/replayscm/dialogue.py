"""Episodes by text, for models: a prompt, one action a reply, worlds as tables with names.

A reply acts by its last line that begins with `ACTION:`, followed by one JSON object; other replies get one line and
count as refused. After 2 * worlds + 10 replies the episode ends without an answer.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from calibrant.dsl.answer_text import Thoughts, read_reply_text
from calibrant.dsl.episode import ActionError, Step, action_of_text
from calibrant.dsl.errors import in_one_line, short_repr
from calibrant.dsl.formulas.formula import OPERATORS
from calibrant.dsl.replayscm.disclosure import natural
from calibrant.dsl.replayscm.episode import Reading, ScmEpisode
from calibrant.dsl.replayscm.extensions.extension import Contexts, Extension, NoiseKind, Question
from calibrant.dsl.replayscm.item import Task
from calibrant.dsl.replayscm.prompt import forecast_worlds_text, hidden_text, noise_text

MARK = "ACTION:"
MAX_REPLY_CHARS = 1_000_000
MAX_REFUSAL_CHARS = 300
NO_ACTION = f"No action found. End your reply with a line such as {MARK} {{...}} with one JSON object."


class TextDialogue:
    """An episode that replies act in. `closed` once it was submitted to, or all replies are spent."""

    def __init__(self, episode: ScmEpisode, thoughts: Thoughts = "strip") -> None:
        self.episode = episode
        self._thoughts = thoughts
        extension = episode.task.extension
        assert extension is not None
        assert extension.allowance is not None
        self.max_replies = 2 * extension.allowance.worlds + 10
        self.num_replies = 0

    @property
    def closed(self) -> bool:
        return self.episode.closed or self.num_replies >= self.max_replies

    @property
    def refusals(self) -> int:
        """Return how many replies were refused, those without an action too."""
        return self.episode.refusals

    def prompt(self) -> str:
        """Return the first message: the item, and the world that is shown at the start."""
        return episode_prompt(self.episode.task) + "\n" + self._show(self.episode.steps[0])

    def reply(self, text: str) -> str:
        """Act by a reply; return the next message. Never raises because of what the reply is."""
        if self.closed:
            return "The episode is over."
        self.num_replies += 1
        try:
            action = read_reply(read_reply_text(text, self._thoughts))
        except ActionError as error:
            # a step too, so that transcripts count what was refused
            self.episode.act({"unreadable": short_repr(text)})
            return in_one_line(str(error))[:MAX_REFUSAL_CHARS]
        step = self.episode.act(action)
        if step.refused:
            return f"Refused: {in_one_line(step.refused)[:MAX_REFUSAL_CHARS]}"
        if step.reading is None:
            return "Submitted. The episode is over."
        return self._show(step)

    def _show(self, step: Step[Reading]) -> str:
        assert step.reading is not None
        lines = world_table(self.episode.task, step)
        return "\n".join([*lines, f"{self.episode.left} worlds left."])


def read_reply(text: str) -> dict[str, Any]:
    """Return the action of a reply; `ActionError` in one line if there is none."""
    if len(text) > MAX_REPLY_CHARS:
        raise ActionError(f"a reply of {len(text):,} characters; at most {MAX_REPLY_CHARS:,} are read")
    marked = [line for line in text.splitlines() if line.startswith(MARK)]
    if not marked:
        raise ActionError(NO_ACTION)
    return action_of_text(marked[-1].removeprefix(MARK))


def world_table(task: Task, step: Step[Reading]) -> Iterator[str]:
    """Yield the lines that show a world: its number, the intervention, a row of named values for each unit."""
    assert task.extension is not None
    assert step.reading is not None
    do = step.action.get("do", {})
    setting = ", ".join(f"{v}={do[v]}" for v in natural(do)) or "nothing is set"
    yield f"World {step.reading['world']} ({setting}):"
    for row in step.reading["rows"]:
        yield "- " + " ".join(f"{v}={bit}" for v, bit in zip(task.extension.variables, row, strict=True))


def episode_prompt(task: Task) -> str:
    """Return the rules of an episode, without any world."""
    return "\n".join([episode_facts(task), *_actions(task)])


def episode_facts(task: Task) -> str:
    """Return the rules of an episode without the form of replies."""
    assert task.extension is not None
    parts = [_variables(task), _class(task), noise_text(task.extension), hidden_text(task.extension), _allowance(task)]
    return "\n".join(filter(None, parts))


def _variables(task: Task) -> str:
    assert task.extension is not None
    roots = ", ".join(task.extension.roots)
    order = task.disclosure.order
    blocks = task.disclosure.blocks
    known_order = f" Causal order: {', '.join(order)}." if order else ""
    if blocks:
        known_order = " Blocks, causes in the same or an earlier one: " + " | ".join(", ".join(b) for b in blocks) + "."
    return (
        f"A causal model over the binary variables {', '.join(task.extension.variables)}. Roots: {roots}. Every other "
        f"variable is a Boolean function of other variables; there are no cycles.{known_order}"
    )


def _class(task: Task) -> str:
    assert task.extension is not None
    names = ", ".join(f"{name} ({OPERATORS[name].arity_text})" for name in task.grammar.operators)
    constants = "" if task.grammar.allow_constants else " The literals 0 and 1 are not allowed."
    return (
        f"A function depends on at most {task.extension.max_parents} variables. A mechanism is a variable or "
        f"(operator argument ...), operators: {names}.{constants}"
    )


def _allowance(task: Task) -> str:
    assert task.extension is not None
    allowance = task.extension.allowance
    assert allowance is not None
    contexts = {
        Contexts.ALL: "one for every assignment of the roots",
        Contexts.SAMPLED: "with root values that you cannot choose",
        Contexts.CHOSEN: "with the root values that you list",
    }[allowance.contexts]
    return (
        f"You may ask for {allowance.worlds} worlds. A world sets up to {allowance.max_targets} variables to constants "
        f"and shows up to {allowance.rows} rows, {contexts}."
    )


def _actions(task: Task) -> Iterator[str]:
    assert task.extension is not None
    extension, allowance = task.extension, task.extension.allowance
    assert allowance is not None
    yield f"End every reply with one line that begins with {MARK} and holds one JSON object:"
    example: dict[str, Any] = {"do": {extension.variables[0]: 1} if allowance.max_targets else {}}
    if allowance.contexts is Contexts.CHOSEN:
        example["contexts"] = ["0" * len(extension.roots)]
    yield f"{MARK} {json.dumps(example)}"
    if extension.question is Question.FORECAST:
        yield from _forecast_shape(extension)
    endogenous = [v for v in extension.variables if v not in extension.roots]
    shape: dict[str, Any] = {"submit": {"mechanisms": dict.fromkeys(endogenous, "...")}}
    if not extension.noise.is_silent and extension.noise.kind is not NoiseKind.RATE:
        shape["submit"]["noise"] = str(extension.noise.grid[0][0])
    yield f"{MARK} {json.dumps(shape)}"
    yield "The first submission ends the episode. It is scored on held-out worlds without errors."


def _forecast_shape(extension: Extension) -> Iterator[str]:
    yield from forecast_worlds_text(extension)
    rows: Sequence[Any] = [
        [
            {v: 0.5 for v in extension.variables if v not in extension.roots and v not in world.constants}
            for _ in world.contexts
        ]
        for world in extension.forecast_worlds[:1]
    ]
    yield f"{MARK} {json.dumps({'submit': {'forecast': [*rows, '...']}})}"
