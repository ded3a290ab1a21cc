"""What steps say of the detector: which objects were on it, in the order of placement, and what it read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from calibrant.dsl.blickets.item import Task
from calibrant.dsl.episode import Step


def moved(placed: tuple[int, ...], verb: str, index: int) -> tuple[int, ...]:
    """What is on the detector after a move that was carried out (object numbers, first placed first)."""
    return (*placed, index) if verb == "place" else tuple(other for other in placed if other != index)


def readings(task: Task, steps: Iterable[Step[str]]) -> Iterator[tuple[tuple[int, ...], str]]:
    """(what is on the detector, reading) for every step that has a reading, oldest first."""
    for placed, step in followed(task, steps):
        if step.reading is not None:
            yield placed, step.reading


def placed_after(task: Task, steps: Sequence[Step[str]]) -> tuple[int, ...]:
    """What is on the detector after these steps."""
    placed: tuple[int, ...] = ()
    for placed, _ in followed(task, steps):  # noqa: B007  # the last one is wanted
        pass
    return placed


def followed(task: Task, steps: Iterable[Step[str]]) -> Iterator[tuple[tuple[int, ...], Step[str]]]:
    """Every step with what is on the detector after it."""
    index = {name: i for i, name in enumerate(task.objects)}
    placed: tuple[int, ...] = ()
    for step in steps:
        if not step.refused:
            action = step.action
            if "start" in action:
                placed = tuple(index[name] for name in action["start"])
            elif "place" in action:
                placed = moved(placed, "place", index[action["place"]])
            elif "remove" in action:
                placed = moved(placed, "remove", index[action["remove"]])
        yield placed, step
