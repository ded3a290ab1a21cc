"""Sentences of the start: what there is to do, how long it takes, what is kept and where."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from calibrant.bench.play.plan import ItemStop, QuestionsStop, Stop
from calibrant.bench.play.pool import PlayPool
from calibrant.bench.runs.records import FILE_NAME
from calibrant.dsl.text import plural

PRIVACY = "Every move with its time, your answers, and your participant id. No name, no address, no recording."
IN_BROWSER = "It stays in this browser until you save it as a file."
IN_MEMORY = "Nothing is written to a file."


def task_text(stops: Sequence[Stop], pools: Mapping[str, PlayPool], minutes: int = 0) -> str:
    """Return what there is to do, such as "You will solve 3 items (2 detectors, 1 program). It takes about 5 minutes".

    pools: by digest; minutes: as the study states them; 0 where it states none
    """
    kinds = Counter(pools[stop.key.pool_digest].words.kind for stop in stops if isinstance(stop, ItemStop))
    num_pages = sum(isinstance(stop, QuestionsStop) for stop in stops)
    parts = []
    if kinds:
        listed = ", ".join(f"{number} {kind[number != 1]}" for kind, number in kinds.items())
        parts.append(f"solve {plural(kinds.total(), 'items')} ({listed})")
    if num_pages:
        parts.append(f"answer {plural(num_pages, 'pages')} of questions")
    duration = f" It takes about {plural(minutes, 'minutes')}." if minutes else ""
    return f"You will {' and '.join(parts)}.{duration} There is nothing to prepare."


def served_place(folder: Path | None) -> str:
    """Return where a server writes, for participants who may sit elsewhere: without the path of the folder."""
    if folder is None:
        return IN_MEMORY
    return f"It stays on the computer that serves this page, in {folder.absolute().name}/{FILE_NAME}."


def local_place(folder: Path) -> str:
    """Return where a game in the terminal writes."""
    return f"It stays on this computer, in {folder / FILE_NAME}."
