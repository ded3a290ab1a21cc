"""Methods for CauSim: exact answers, shortcuts, single errors, a capped pipeline and chance."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from calibrant.bench.protocols import Presentation, Protocol, ProtocolResult, nothing_found, replace_words
from calibrant.dsl.causim.item import Task
from calibrant.dsl.causim.model import value_of
from calibrant.solvers.causim.canonical import canonical_names, rename_task

if TYPE_CHECKING:
    from calibrant.dsl.causim.question import Answer
    from calibrant.solvers.outcome import Outcome


class CausimRow(Protocol, frozen=True):
    """Base of the methods (baselines.causim.rows); `answer` is a JSON object, or the reason why there is none."""

    reads_canonical = True

    def warm_up(self) -> None:
        import calibrant.baselines.causim.rows  # noqa: F401

    def outcome(self, task: Task) -> Outcome[Answer]:
        from calibrant.baselines.causim.rows import ROWS

        return ROWS[self.name](task, 0)

    def answer(self, task: Task) -> ProtocolResult:
        from calibrant.dsl.causim.model import plain
        from calibrant.solvers.outcome import Found

        outcome = self.outcome(task)
        return ProtocolResult("found", plain(outcome.value)) if isinstance(outcome, Found) else nothing_found(outcome)


class DrawnRow(CausimRow, frozen=True):
    """A method that draws its answer.

    seed: the draws depend on it and on the question
    """

    seed: int = 0

    def outcome(self, task: Task) -> Outcome[Answer]:
        from calibrant.baselines.causim.rows import ROWS

        return ROWS[self.name](task, self.seed)


class Exact(CausimRow, frozen=True):
    """A right answer, found by exhaustive search."""

    name = "exact"


class MostProbableNoise(CausimRow, frozen=True):
    """The answer of the most probable world that is consistent with the evidence."""

    name = "most_probable_noise"


class MostProbableAnswer(CausimRow, frozen=True):
    """The answer with the greatest posterior probability, given fixed noise and evidence."""

    name = "most_probable_answer"


class RunOnce(DrawnRow, frozen=True):
    """One forward sample of the noise; the evidence is ignored.

    seed: the draws depend on it and on the question
    """

    name = "run_once"


class ResampledNoise(DrawnRow, frozen=True):
    """A world consistent with the evidence, with the noise of all descendants of `do` drawn again.

    seed: the draws depend on it and on the question
    """

    name = "resampled_noise"


class NoDo(CausimRow, frozen=True):
    """An exact answer to the question without its intervention."""

    name = "no_do"


class GraphOnly(CausimRow, frozen=True):
    """Repeats given values of nodes that `do` does not reach, else a node's first value; reads no mechanism."""

    name = "graph_only"


class Copy(CausimRow, frozen=True):
    """Repeats the given values, overwritten by those of `do`."""

    name = "copy"


class Truncated(CausimRow, frozen=True):
    """The first answer found within a number of worlds, as a pipeline with a cap gives it.

    max_worlds: number of worlds tried
    """

    name = "truncated"
    max_worlds: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] = 10_000

    def outcome(self, task: Task) -> Outcome[Answer]:
        from calibrant.baselines.causim.rows import take_first_worlds

        return take_first_worlds(self.max_worlds)(task, 0)


class RandomSymbols(DrawnRow, frozen=True):
    """Draws the value of each key independently and uniformly from its domain.

    seed: the draws depend on it and on the question
    """

    name = "random_symbols"


EXACT = (Exact, MostProbableNoise, MostProbableAnswer)
ROWS = (*EXACT, RunOnce, ResampledNoise, NoDo, GraphOnly, Copy, Truncated, RandomSymbols)


# --- Canonical presentation of questions: methods read the model over canonical names and values ----------------------
_NAME = re.compile(r"\b[KQ][0-9]+\b")


def present(task: Task) -> Presentation:
    """Return a question over canonical names and values; unchanged if its tables are too large to order."""
    names = canonical_names(task)
    if names is None:
        return Presentation(task, lambda content: content)
    keys = {new: old for old, new in names.keys.items()}
    values = {
        names.keys[key]: {value_of(new): value_of(old) for old, new in new_values.items()}
        for key, new_values in names.values.items()
    }

    def restore(content: Any) -> Any:
        if isinstance(content, Mapping) and content.keys() <= keys.keys():
            return {keys[key]: values[key].get(value, value) for key, value in content.items()}
        return replace_words(content, _NAME, keys)

    return Presentation(rename_task(task, names), restore)
