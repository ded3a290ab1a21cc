"""Items of the extended blickets: what an agent is told, and the hidden mechanism of the detector."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from calibrant.dsl.blickets.rule import Rule
from calibrant.dsl.errors import in_one_line
from calibrant.dsl.texts.rewording import Wording

MIN_OBJECTS, MAX_OBJECTS = 2, 8


class Condition(StrEnum):
    """The kind of mechanism behind the detector."""

    CONJUNCTIVE = "conjunctive"
    DISJUNCTIVE = "disjunctive"
    MODERATOR = "moderator"  # a silent switch to another rule
    ORDER = "order"
    STOCHASTIC = "stochastic"
    NOISY_MODERATOR = "noisy-moderator"  # both a switch and an unreliable detector


class Count(StrEnum):
    """The events that count as activations: every ACTIVE reading, or only those that follow another (or no) reading."""

    LEVEL = "level"
    EDGE = "edge"


class OrderReading(StrEnum):
    """The reading of an order: whether distractors between ordered blickets matter."""

    RELATIVE = "relative"
    CONTIGUOUS = "contiguous"


class SwitchBy(StrEnum):
    """The unit of a switch point: activations, or moves (refused ones included)."""

    ACTIVATIONS = "activations"
    STEPS = "steps"


@dataclass(frozen=True, slots=True)
class Task:
    """All that a solver may read.

    objects: their names; everything else numbers them in this order
    budget: how many moves may be made
    count, order_reading: conventions of the environment that a learner has to share
    condition: only if the item is informed
    graded: whether an ACTIVE reading also tells how many blickets of the rule in force are on the detector
    wording: of the prompt
    """

    objects: tuple[str, ...]
    budget: int
    count: Count = Count.LEVEL
    order_reading: OrderReading = OrderReading.RELATIVE
    condition: Condition | None = None
    graded: bool = False
    wording: Wording = "standard"

    @property
    def n(self) -> int:
        return len(self.objects)

    def __repr__(self) -> str:
        return f"<Task: {self.n} objects, {self.budget} moves>"


@dataclass(frozen=True, slots=True)
class Mechanism:
    """A rule, and the order in which its blickets have to be placed if that matters (object numbers)."""

    rule: Rule
    order: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Exposure:
    """When a submission is first accepted: after a number of moves, or after the last switch has left evidence.

    moves: refused before that many moves
    after_switch: refused until a > N for the last switch point N, so that it is not the agent's choice
    """

    moves: int = 0
    after_switch: bool = False


@dataclass(frozen=True, slots=True)
class Sealed:
    """The part of an item that is hidden from the solver.

    mechanisms: in force one after the other, the first from the start
    switches: ascending; mechanism k + 1 comes into force when `switches[k]` activations (or moves) have happened
    p: probability that a satisfied rule reads ACTIVE; 1 without noise
    noise_seed: of the item's stream of uniform draws, one for each step number
    draws: the first draws of that stream, where they are given instead
    start_on: objects that are on the detector at the start, in list order; None starts empty and without a reading
    exposure: when submissions are accepted
    strict_singleton: whether a singleton has to be called by the word that the rule is written with
    """

    mechanisms: tuple[Mechanism, ...]
    switches: tuple[int, ...] = ()
    switch_by: SwitchBy = SwitchBy.ACTIVATIONS
    p: float = 1.0
    noise_seed: int = 0
    draws: tuple[float, ...] = ()
    start_on: tuple[int, ...] | None = None
    exposure: Exposure = Exposure()
    strict_singleton: bool = False

    def __repr__(self) -> str:
        return "<Sealed: what is behind the detector>"

    def phase(self, activations: int, moves: int) -> int:
        """Return the index of the mechanism in force after so many activations and moves."""
        return bisect_right(self.switches, activations if self.switch_by is SwitchBy.ACTIVATIONS else moves)


@dataclass(frozen=True, slots=True)
class BlicketItem:
    """One item. labels: stratum, seed and difficulty, for tables and matching."""

    id: str
    condition: Condition
    task: Task
    sealed: Sealed
    labels: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<BlicketItem {in_one_line(self.id)[:60]}: {self.task.n} objects, {self.task.budget} moves>"

    @property
    def benchmark(self) -> str:
        return "blickets"

    @property
    def setting(self) -> str:
        return str(self.condition)

    @property
    def stratum(self) -> str:
        return self.labels.get("stratum", "")
