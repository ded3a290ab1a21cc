"""Tasks: a prior network, a setup, experiments with measured values, options and tolerances; all a solver may read."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Final, Literal, TypeAlias

from calibrant.dsl.errors import CalibrantError, short_repr
from calibrant.dsl.logic.prior import Edge, class_edges, node_names
from calibrant.dsl.text import Wording

Rounding: TypeAlias = Literal["round", "floor", "ceil"]
ROUNDINGS: Final = ("round", "floor", "ceil")
MAX_FACTOR = 1_000_000
MAX_FIT_CHARS = 40
ANY_FIT = "any"
_DECIMAL = re.compile(r"[0-9]+(\.[0-9]*)?|\.[0-9]+", re.ASCII)


class LogicError(CalibrantError):
    """A task, option or experiment is invalid; the message states what is allowed."""


@dataclass(frozen=True, slots=True)
class Experiment:
    """Clamps of one experiment.

    on: stimuli that are present; inhibited: nodes that are forced to 0
    """

    on: frozenset[str] = frozenset()
    inhibited: frozenset[str] = frozenset()

    def text(self, setup: Setup) -> str:
        """Return the clamps in header order, such as `tgfa + tnfa, p38 inhibited`."""
        on = [*(name for name in setup.stimuli if name in self.on), *sorted(self.on - set(setup.stimuli))]
        off = [*(n for n in setup.inhibitors if n in self.inhibited), *sorted(self.inhibited - set(setup.inhibitors))]
        return (" + ".join(on) or "no stimulus") + (f", {' + '.join(off)} inhibited" if off else "")


@dataclass(frozen=True, slots=True)
class Setup:
    """Names in header order; stimuli and inhibitors are disjoint, readouts may meet both."""

    stimuli: tuple[str, ...]
    inhibitors: tuple[str, ...]
    readouts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Options:
    """Discretisation of values and limits of the class.

    factor: values are multiplied by it before rounding; compress: merge nodes that are neither clamped nor measured
    max_clause: most literals of a clause; 0 sets no limit
    """

    factor: int = 100
    rounding: Rounding = "round"
    compress: bool = True
    max_clause: int = 0


@dataclass(frozen=True, slots=True)
class Tolerance:
    """Limits of the family.

    fit: a decimal text, or "any"; size: literals beyond the optimum's, None for no limit
    """

    fit: str = "0"
    size: int | None = 0


@dataclass(frozen=True)
class Task:
    """All that a solver may read.

    values: a row an experiment, in the order of readouts; None where nothing was measured
    questions: held-out clamps, whose answers are asked for; none of plain data; wording: of the prompt
    """

    prior: tuple[Edge, ...]
    setup: Setup
    experiments: tuple[Experiment, ...]
    values: tuple[tuple[float | None, ...], ...]
    options: Options = Options()
    tolerance: Tolerance = Tolerance()
    questions: tuple[Experiment, ...] = ()
    wording: Wording = "standard"

    def __post_init__(self) -> None:
        check_setup(self.setup)
        check_options(self.options)
        check_tolerance(self.tolerance)
        check_experiments(self.experiments, self.setup)
        check_experiments(self.questions, self.setup)
        if any(edge.sign not in (1, -1) for edge in self.prior):
            raise LogicError("an edge with a sign that is neither 1 nor -1")
        if len(self.values) != len(self.experiments):
            raise LogicError(f"{len(self.values)} rows of values for {len(self.experiments)} experiments")
        for row in self.values:
            if len(row) != len(self.setup.readouts):
                raise LogicError(f"a row of {len(row)} values for {len(self.setup.readouts)} readouts")
            for value in row:
                if value is not None and not math.isfinite(self.options.factor * value):
                    raise LogicError(f"value {value} is not finite, or not after multiplication by the factor")

    def __repr__(self) -> str:
        return (
            f"<Task: {len(self.prior)} edges, {len(self.experiments)} experiments, {len(self.setup.readouts)} readouts>"
        )

    @cached_property
    def edges(self) -> tuple[Edge, ...]:
        """The edges of the class, sorted."""
        return class_edges(self.prior, self.setup.stimuli, kept_names(self.setup), compress=self.options.compress)

    @cached_property
    def merged_nodes(self) -> frozenset[str]:
        """The nodes of the prior that compression merged."""
        if not self.options.compress:
            return frozenset()
        return frozenset(node_names(self.prior) - node_names(self.edges) - kept_names(self.setup))

    @cached_property
    def discretised(self) -> tuple[tuple[int | None, ...], ...]:
        """The values multiplied by the factor and rounded; None stays."""
        return tuple(
            tuple(None if value is None else discretise(value, self.options) for value in row) for row in self.values
        )

    def without_data(self) -> Task:
        """Return the task of all models of the class, within any limits."""
        bare = replace(self, experiments=(), values=(), tolerance=Tolerance(ANY_FIT, None))
        vars(bare)["edges"] = self.edges  # the same: compressing 100,000 edges takes a second
        return bare

    def with_tolerance(self, fit: str, size: int | None) -> Task:
        """Return the task with other tolerances."""
        return replace(self, tolerance=Tolerance(fit, size))


def kept_names(setup: Setup) -> set[str]:
    """Return the names that compression never merges."""
    return {*setup.stimuli, *setup.inhibitors, *setup.readouts}


def discretise(value: float, options: Options) -> int:
    """Return `rounding(factor * value)`, the product in IEEE doubles, `round` half to even."""
    product = options.factor * float(value)
    if options.rounding == "round":
        return round(product)
    return math.floor(product) if options.rounding == "floor" else math.ceil(product)


def fit_fraction(fit: str) -> Fraction | None:
    """Return the fit tolerance as an exact fraction, None for "any"; `LogicError` if it is no decimal of 0 or more."""
    if fit == ANY_FIT:
        return None
    if len(fit) > MAX_FIT_CHARS or _DECIMAL.fullmatch(fit) is None:
        raise LogicError(f"fit {short_repr(fit)}; a decimal of 0 or more, such as 0.1, or '{ANY_FIT}'")
    return Fraction(fit)


def fit_limit(least_misfit: int, fit: str) -> int | None:
    """Return the greatest misfit of members, floor(m* (1 + fit)); None without a limit."""
    fraction = fit_fraction(fit)
    return None if fraction is None else math.floor(least_misfit * (1 + fraction))


def check_tolerance(tolerance: Tolerance) -> None:
    """`LogicError` for a fit that is no decimal, or a negative size."""
    fit_fraction(tolerance.fit)
    if tolerance.size is not None and tolerance.size < 0:
        raise LogicError(f"size {tolerance.size}; an integer of 0 or more, or none")


def check_options(options: Options) -> None:
    """`LogicError` names the option that is out of range."""
    if not 1 <= options.factor <= MAX_FACTOR:
        raise LogicError(f"factor {options.factor}; an integer from 1 to {MAX_FACTOR}")
    if options.rounding not in ROUNDINGS:
        raise LogicError(f"rounding {short_repr(options.rounding)}; one of {', '.join(ROUNDINGS)}")
    if options.max_clause < 0:
        raise LogicError(f"max_clause {options.max_clause}; an integer of 0 or more, 0 sets no limit")


def check_setup(setup: Setup) -> None:
    """`LogicError` for a name twice in a list, or a stimulus that is an inhibitor."""
    for role, names in (
        ("stimulus", setup.stimuli),
        ("inhibitor", setup.inhibitors),
        ("readout", setup.readouts),
    ):
        repeated = next((name for name in names if names.count(name) > 1), None)
        if repeated is not None:
            raise LogicError(f"{role} {short_repr(repeated)} occurs twice")
    clash = next((name for name in setup.stimuli if name in setup.inhibitors), None)
    if clash is not None:
        raise LogicError(f"{short_repr(clash)} is a stimulus and an inhibitor; stimuli and inhibitors are disjoint")


def check_experiments(experiments: tuple[Experiment, ...], setup: Setup) -> None:
    """`LogicError` for a clamp that the setup lacks."""
    stimuli, inhibitors = set(setup.stimuli), set(setup.inhibitors)
    for number, experiment in enumerate(experiments, 1):
        strange = sorted(experiment.on - stimuli) or sorted(experiment.inhibited - inhibitors)
        if strange:
            role = "a stimulus" if experiment.on - stimuli else "an inhibitor"
            raise LogicError(f"experiment {number}: {short_repr(strange[0])} is not {role} of the setup")
