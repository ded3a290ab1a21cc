"""The detector's state after each step: the objects on it, in the order of placement, and the reading."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from calibrant.dsl.blickets.item import Task
from calibrant.dsl.episode import Step


def apply_move(placed: tuple[int, ...], verb: str, index: int) -> tuple[int, ...]:
    """Return the objects on the detector after an accepted move (object numbers, first placed first)."""
    return (*placed, index) if verb == "place" else tuple(number for number in placed if number != index)


def readings(task: Task, steps: Iterable[Step[str]]) -> Iterator[tuple[tuple[int, ...], str]]:
    """Yield (what is on the detector, reading) for every step that has a reading, oldest first."""
    for placed, step in steps_with_state(task, steps):
        if step.reading is not None:
            yield placed, step.reading


def placed_after(task: Task, steps: Sequence[Step[str]]) -> tuple[int, ...]:
    """Return the objects on the detector after these steps."""
    placed: tuple[int, ...] = ()
    for placed, _ in steps_with_state(task, steps):  # noqa: B007  # the last one is wanted
        pass
    return placed


def steps_with_state(task: Task, steps: Iterable[Step[str]]) -> Iterator[tuple[tuple[int, ...], Step[str]]]:
    """Yield every step with the objects on the detector after it."""
    index = {name: i for i, name in enumerate(task.objects)}
    placed: tuple[int, ...] = ()
    for step in steps:
        if not step.refused:
            action = step.action
            if "start" in action:
                placed = tuple(index[name] for name in action["start"])
            elif "place" in action:
                placed = apply_move(placed, "place", index[action["place"]])
            elif "remove" in action:
                placed = apply_move(placed, "remove", index[action["remove"]])
        yield placed, step
