"""Protocols: named ways to answer an item, with options.

A protocol is handed a task or an open episode, never what is sealed. To add one, subclass `Protocol`, give it a name,
options as fields and an `answer`, and list it in `bench/<benchmark>/protocols.py`, or leave it where it is
(bench.protocols.registry); runner, records, resuming and tables need nothing else.

A row that breaks a tie by the first name, or seeds a draw by the task's text, then answers equally up to the renaming.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

import msgspec

from calibrant.bench.core.capabilities import Capability
from calibrant.dsl.episode import Step

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from calibrant.bench.core.items import ItemPool
    from calibrant.solvers.outcome import Impossible, OutOfBudget


Outcome: TypeAlias = Literal["found", "impossible", "out_of_budget", "crashed"]


class Ties(msgspec.Struct, frozen=True):
    """The answers that a protocol chose its own from by nothing but a tie rule.

    count: how many there are, None where they are not counted
    answers: each of them, or independent uniform draws if there are fewer answers than `count`; the chosen one is among
        them where they are all listed
    note: what is not counted, and why; empty if all is
    """

    count: int | None
    answers: list[dict[str, Any]] = []
    note: str = ""


class ProtocolResult(msgspec.Struct, frozen=True):
    """Result of a protocol on one item.

    answer: an answer object of the task's schema; None if there is none, and the benchmark's own stands in for it
    size: total formula size of the answer, where it has one
    provenance: its origin, ready for JSON; nothing that differs between two runs
    ties: equally good answers, whose mean score is the row's rate; None of rows that have no such notion
    """

    outcome: Outcome
    answer: dict[str, Any] | None = None
    size: int | None = None
    provenance: dict[str, Any] = {}
    ties: Ties | None = None

    def __repr__(self) -> str:
        return f"<ProtocolResult: {self.outcome}{'' if self.size is None else f', size {self.size}'}>"


class Protocol(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A way to answer items. Its fields are its options; together with its name they are part of a record's key.

    benchmark: of rows that are not ours, the benchmark whose items they answer; empty if any will do
    code: of rows that are not ours, which code answers: a digest of its file, or a package with its version
    reads_canonical: whether it is handed canonical items, and its answers are renamed
    """

    name: ClassVar[str] = ""
    benchmark: ClassVar[str] = ""
    code: ClassVar[str] = ""
    reads_canonical: ClassVar[bool] = False

    @property
    def config(self) -> dict[str, Any]:
        """The options, ready for JSON, and whose code it is if it is not ours."""
        return dict(msgspec.to_builtins(self)) | ({"code": self.code} if self.code else {})

    def require(self) -> None:
        """`MissingExtraError` if an optional dependency is not installed; called before anything is started."""

    def warm_up(self) -> None:
        """Load and compile whatever an answer needs, so that no instance's time contains it."""

    def refusal(self, handout: Any, /) -> str:
        """Return why this protocol does not answer a kind of item; empty if it does. Not asked of rows from outside."""
        return ""

    def class_in_words(self, task: Any, /) -> str:
        """Return the class that an exact learner considers, where that is not the class of attributions; else empty."""
        return ""

    def answer(self, given: Any, /) -> ProtocolResult:
        """Return the answer to one item, from its task or in its open episode; the same every time."""
        raise NotImplementedError


PROTOCOLS: Capability[Sequence[type[Protocol]]] = Capability("`run`", "rows:ROWS")
"""The protocols of a benchmark, in the order in which `all` runs them."""


APPLICABLE: Capability[Callable[[Sequence[ItemPool[Any]]], Sequence[type[Protocol]]]] = Capability("`run all` of some")
"""Protocols that `all` stands for on some pools, where that depends on them."""


def nothing_found(outcome: Impossible | OutOfBudget) -> ProtocolResult:
    """Return the result that says why there is no answer."""
    from calibrant.solvers.outcome import BestSoFar, Impossible

    kind: Outcome = "impossible" if isinstance(outcome, Impossible) else "out_of_budget"
    fields = {field.name: getattr(outcome, field.name) for field in dataclasses.fields(outcome)}
    if isinstance(outcome, BestSoFar):
        del fields["value"]  # an answer that is not proven is no answer of a row that promises the best
    return ProtocolResult(kind, provenance=fields)


# --- Canonical presentations: items as rows of the project are handed them, whatever their names and orders -----------


@dataclass(frozen=True)
class Presentation:
    """A task or an item of an episode in canonical form.

    content: the task or item; restore: from JSON over its names to JSON over the names of the pool
    """

    content: Any
    restore: Callable[[Any], Any]

    def restore_step(self, step: Step[Any]) -> Step[Any]:
        """Return a step over the names of the pool."""
        action: Mapping[str, Any] = self.restore(step.action)
        return Step(action, self.restore(step.reading), self.restore(step.refused), step.cost)


PRESENT: Capability[Callable[[Any], Presentation]] = Capability("canonical presentation", "rows:present")
"""Presents a task, or the item of an episode."""


def replace_words(content: Any, word: re.Pattern[str], names: Mapping[str, str]) -> Any:
    """Return JSON in which every match of a pattern that is a name is replaced, in texts and keys."""
    if isinstance(content, str):
        return word.sub(lambda match: names.get(match[0], match[0]), content)
    if isinstance(content, Mapping):
        return {replace_words(key, word, names): replace_words(value, word, names) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [replace_words(part, word, names) for part in content]
    return content
