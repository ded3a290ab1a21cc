"""Rows of CauSim: the exact answer, shortcuts, single errors, capped pipelines and chance (baselines.causim.rows)."""

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
    """Base of the rows: an answer as a JSON object, or the reason why there is none."""

    reads_canonical = True

    def warm_up(self) -> None:
        import calibrant.baselines.causim.rows  # noqa: F401

    def outcome(self, task: Task) -> Outcome[Answer]:
        from calibrant.baselines.causim.rows import ROWS

        return ROWS[self.name](task, 0)

    def answer(self, given: Task) -> ProtocolResult:
        from calibrant.dsl.causim.model import plain
        from calibrant.solvers.outcome import Found

        outcome = self.outcome(given)
        return ProtocolResult("found", plain(outcome.value)) if isinstance(outcome, Found) else nothing_found(outcome)


class DrawnRow(CausimRow, frozen=True):
    """A row that draws.

    seed: together with the question it decides the draws
    """

    seed: int = 0

    def outcome(self, task: Task) -> Outcome[Answer]:
        from calibrant.baselines.causim.rows import ROWS

        return ROWS[self.name](task, self.seed)


class Exact(CausimRow, frozen=True):
    """One of all right answers, found by exhaustion."""

    name = "exact"


class MostProbableNoise(CausimRow, frozen=True):
    """What the most probable fitting world answers."""

    name = "most_probable_noise"


class MostProbableAnswer(CausimRow, frozen=True):
    """The answer of greatest probability given fixed noise and evidence."""

    name = "most_probable_answer"


class RunOnce(DrawnRow, frozen=True):
    """One forward sample, the evidence ignored.

    seed: together with the question it decides the draws
    """

    name = "run_once"


class ResampledNoise(DrawnRow, frozen=True):
    """A fitting world, in which the noise of everything that `do` reaches is drawn again.

    seed: together with the question it decides the draws
    """

    name = "resampled_noise"


class NoDo(CausimRow, frozen=True):
    """Right but for the intervention, which is ignored."""

    name = "no_do"


class GraphOnly(CausimRow, frozen=True):
    """Repeats the values given that `do` does not reach; elsewhere the first value, no mechanism is read."""

    name = "graph_only"


class Copy(CausimRow, frozen=True):
    """Repeats the values given, and over them those of `do`."""

    name = "copy"


class Truncated(CausimRow, frozen=True):
    """The first answer among so many worlds: a pipeline with a cap.

    max_worlds: how many are looked at
    """

    name = "truncated"
    max_worlds: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] = 10_000

    def outcome(self, task: Task) -> Outcome[Answer]:
        from calibrant.baselines.causim.rows import take_first_worlds

        return take_first_worlds(self.max_worlds)(task, 0)


class RandomSymbols(DrawnRow, frozen=True):
    """Each key by itself, evenly from its values.

    seed: together with the question it decides the draws
    """

    name = "random_symbols"


EXACT = (Exact, MostProbableNoise, MostProbableAnswer)
ROWS = (*EXACT, RunOnce, ResampledNoise, NoDo, GraphOnly, Copy, Truncated, RandomSymbols)


# --- Canonical presentation of questions about programs: rows read the model, over canonical names and values ---------
_NAME = re.compile(r"\b[KQ][0-9]+\b")


def present(task: Task) -> Presentation:
    """Return a question over canonical names; as it is where its tables are too large to order."""
    names = canonical_names(task)
    if names is None:
        return Presentation(task, lambda content: content)
    keys = {new: old for old, new in names.keys.items()}
    values = {
        names.keys[key]: {value_of(new): value_of(old) for old, new in listed.items()}
        for key, listed in names.values.items()
    }

    def restore(content: Any) -> Any:
        if isinstance(content, Mapping) and content.keys() <= keys.keys():
            return {keys[key]: values[key].get(value, value) for key, value in content.items()}
        return replace_words(content, _NAME, keys)

    return Presentation(rename_task(task, names), restore)
