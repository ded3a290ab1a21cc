"""The next experiment: the candidate that is expected to leave the least share of the family."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from calibrant.dsl.logic.task import Experiment, Task
from calibrant.solvers.logic.predictions import Predictions


@dataclass(frozen=True)
class NextExperiment:
    """A candidate and what it is expected to leave, with an exact reading and a uniform member as truth.

    number: position among the candidates; squares: sum of squares of its outcome numbers; share: that / count squared
    is_done: of each candidate whether it is among the task's experiments
    """

    experiment: Experiment
    number: int
    squares: int
    share: Fraction
    predictions: Predictions
    is_done: tuple[bool, ...]


def choose_next(task: Task, predictions: Predictions) -> NextExperiment | None:
    """Return the first candidate of the least sum of squares; None without candidates or members."""
    if not predictions.experiments or not predictions.count:
        return None
    squares = [predictions.sum_of_squared_counts(number) for number in range(len(predictions.experiments))]
    number = min(range(len(squares)), key=lambda i: (squares[i], i))
    done = set(task.experiments)
    return NextExperiment(
        predictions.experiments[number],
        number,
        squares[number],
        Fraction(squares[number], predictions.count**2),
        predictions,
        tuple(experiment in done for experiment in predictions.experiments),
    )
