"""Command `calibrant play`."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from calibrant.bench.commands.guard import WRITES
from calibrant.bench.commands.options import PoolPath

if TYPE_CHECKING:
    from calibrant.bench.core.benchmark import Benchmark
    from calibrant.dsl.episode import Episode


def play(
    pool: PoolPath,
    instance: Annotated[str | None, typer.Argument(metavar="[ID]", help="Which instance. [default: the first]")] = None,
    jsonl: Annotated[
        bool, typer.Option("--jsonl", help="For programs: a JSON object a line, observations out and actions in.")
    ] = False,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write the episode, step by step, as a page."), WRITES
    ] = None,
) -> int:
    """Play an episode: an action a line on standard input, what came of it on standard output, then the verdict.

    An action is a JSON object such as {"place": "A"}, or without --jsonl two words for one, such as place A. The
    episode ends with a submission, when the allowance is spent, or with the input; the exit code is 0 if the answer was
    right, else 1. The instance is called by its public id; ID may be either.
    """
    from calibrant.bench.core.registry import benchmark_of
    from calibrant.bench.pages.capabilities import TIMELINES
    from calibrant.bench.pools.public_items import PublicPool

    of = benchmark_of(pool)
    items = PublicPool(of, pool)
    item = items.shown(items.item(instance))
    episode: Episode[Any, Any] = of.play.open(item)
    if html is not None:
        of.require(TIMELINES)(item, episode.steps, "you")  # said before the game where there is no such page
    _say({"event": "task", "instance": item.id, "text": of.items.prompt(item), "left": episode.left}, jsonl=jsonl)
    # a prompt may end with what the episode begins with: a person reads it once
    for step in [] if of.play.prompts_show_opening and not jsonl else list(episode.steps):
        _say(_observation(of, episode, step), jsonl=jsonl)
    for line in _lines(jsonl=jsonl):
        action = _action(line) if jsonl else _typed_action(of, item, line)
        if isinstance(action, str):
            _say({"event": "unreadable", "text": action, "left": episode.left}, jsonl=jsonl)
            continue
        _say(_observation(of, episode, episode.act(action)), jsonl=jsonl)
        if episode.closed:
            break
    verdict = (
        of.scoring.score(item, {}, list(episode.steps))
        if episode.steps
        else of.scoring.score(item, of.scoring.no_answer(item), ())
    )
    attribution = of.attribution(item, {}, list(episode.steps), verdict) if episode.steps else None
    right = verdict.get("correct") is True
    text = f"{'right' if right else 'not right'}; {attribution['kind'] if attribution else 'nothing was read'}"
    _say({"event": "verdict", "text": text, "score": verdict, "attribution": attribution}, jsonl=jsonl)
    if html is not None:
        from calibrant.bench.pages.filmstrip import timeline_page
        from calibrant.dsl.atomic_write import write_atomically

        write_atomically(html, timeline_page(item.id, [of.require(TIMELINES)(item, episode.steps, "you")]))
    return 0 if right else 1


def _observation(of: Benchmark[Any], episode: Episode[Any, Any], step: Any) -> dict[str, Any]:
    return {
        "event": "step",
        "action": dict(step.action),
        "reading": step.reading,
        "refused": step.refused,
        "cost": step.cost,
        "left": episode.left,
        "closed": episode.closed,
        "text": of.play.describe(episode, step),
    }


def _say(event: dict[str, Any], *, jsonl: bool) -> None:
    typer.echo(json.dumps(event) if jsonl else event["text"])


def _lines(*, jsonl: bool) -> Iterator[str]:
    while True:
        if not jsonl and sys.stdin.isatty():
            typer.echo("> ", nl=False)
        line = sys.stdin.readline()
        if not line:
            return
        if line.strip():
            yield line


def _action_json(line: str) -> str:
    """Return a typed action (`place A`, `ACTION: place A`) as JSON; anything else as it is."""
    text = line.strip().removeprefix("ACTION:").strip()
    match = re.fullmatch(r"([a-z]+)\s+([^\s{].*)", text)
    if match is None:
        return text
    verb, about = match.groups()
    return json.dumps({verb: float(about) if re.fullmatch(r"-?\d+(\.\d+)?", about) else about})


def _typed_action(of: Benchmark[Any], item: Any, line: str) -> Any:
    """Return the action of a line that a person typed, or why it is none."""
    from calibrant.dsl.action import ActionError

    try:
        return of.play.parse_action(item, line)
    except ActionError:
        pass
    try:
        return of.play.parse_action(item, _action_json(line))
    except ActionError as error:
        return str(error)


def _action(line: str) -> Any:
    """Return the action of a line, or why it is none."""
    from calibrant.dsl.action import ActionError, action_of_text

    try:
        return action_of_text(line)
    except ActionError as error:
        return str(error)
