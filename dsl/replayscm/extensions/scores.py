"""Submitted maps of extended items, and scores: clean held-out replay, proper scores against gold's exact law.

Keys are all observed endogenous variables; a hidden variable may have a mechanism, and may be mentioned only if it has.
Checks are those of plain items, in their order: schema, keys, parse, legal, acyclic.

A forecast states the probability of 1 of every free cell of the held-out worlds; a map implies one with its rate. Cells
are compared with the probability pi that gold and its true rates give them, not with drawn rows: the expectation of the
score over rows, without their variance.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import fsum, log2
from typing import Any

from calibrant.dsl.errors import CycleError, ParseError, PoolError, short_repr
from calibrant.dsl.formulas.formula import Formula
from calibrant.dsl.formulas.reference import evaluate
from calibrant.dsl.formulas.text import Grammar, parse
from calibrant.dsl.replayscm.disclosure import natural
from calibrant.dsl.replayscm.extensions.extension import MechanismClass, parse_rate
from calibrant.dsl.replayscm.scm import Scm, topological_order
from calibrant.dsl.replayscm.submission import Rejection
from calibrant.dsl.replayscm.world import World

# --- Submitted maps of extended items: hidden names are optional, and judged are visible rows -------------------------


@dataclass(frozen=True)
class SubmittedMap:
    """A legal map.

    formulas: observed endogenous and hidden variables; order: parents first; rate: as submitted, if it was
    """

    formulas: Mapping[str, Formula]
    order: tuple[str, ...]
    rate: Fraction | None = None

    @property
    def size(self) -> int:
        """Total formula size, hidden variables included."""
        return sum(formula.size for formula in self.formulas.values())

    def replay(self, roots: Mapping[str, int], clamped: Mapping[str, int], flipped: frozenset[str]) -> dict[str, int]:
        """Return all values in one row."""
        values = {**roots, **{v: bit for v, bit in clamped.items() if v in roots}}
        for variable in self.order:
            if variable in clamped:
                values[variable] = clamped[variable]
            else:
                values[variable] = evaluate(self.formulas[variable], values) ^ (variable in flipped)
        return values


def check_map(scm_class: MechanismClass, grammar: Grammar, answer: Any) -> SubmittedMap | Rejection:
    """Return the map of {"mechanisms": {..}, "noise": ..}, or the first reason why it is not legal."""
    if not isinstance(answer, Mapping) or not isinstance(answer.get("mechanisms"), Mapping):
        return Rejection("schema", "'mechanisms' is no object of variable: formula")
    texts: Mapping[str, Any] = answer["mechanisms"]
    problem = _key_problem(scm_class, texts)
    if problem:
        return Rejection("keys", problem)
    formulas: dict[str, Formula] = {}
    names = frozenset(scm_class.variables)
    for variable in natural(texts):
        text = texts[variable]
        if not isinstance(text, str) or not text.strip():
            return Rejection("parse", f"mechanism of '{variable}' is {short_repr(text)}, not a formula")
        try:
            formulas[variable] = parse(text, grammar, names)
        except ParseError as error:
            return Rejection("parse", f"mechanism of '{variable}': {error}")
    for variable, formula in formulas.items():
        allowed = {u for u in scm_class.admissible_parents(variable) if u in formulas or u in scm_class.roots}
        strangers = [u for u in formula.variables if u not in allowed]
        if strangers:
            listed = ", ".join(natural(allowed)) or "none"
            reason = f"mechanism of '{variable}' mentions {', '.join(strangers)}; admissible parents: {listed}"
            return Rejection("legal", reason)
    try:
        order = topological_order(formulas)
    except CycleError as error:
        return Rejection("acyclic", str(error))
    rate = None
    if answer.get("noise") is not None:
        try:
            rate = parse_rate(answer["noise"], "noise")
        except PoolError as error:
            return Rejection("schema", str(error))
    return SubmittedMap(formulas, order, rate)


def _key_problem(scm_class: MechanismClass, texts: Mapping[str, Any]) -> str:
    unknown = sorted(key for key in map(str, texts) if key not in (*scm_class.endogenous, *scm_class.hidden_parents))
    expected = ", ".join(natural(scm_class.endogenous))
    if unknown:
        return f"no endogenous variables: {', '.join(map(short_repr, unknown[:5]))}; expected: {expected}"
    missing = [v for v in natural(scm_class.endogenous) if v not in texts]
    return f"no mechanism for {', '.join(missing)}; expected: {expected}" if missing else ""


# --- Scores of extended items: clean held-out replay, training match, and proper scores against gold's exact law ------
MIN_PROBABILITY = 2.0**-20  # of a forecast, so that a wrong certainty costs 20 bits and not infinitely many
MIN_IMPLIED_RATE = Fraction(1, 1 << 10)  # of a map that is read as a forecast


@dataclass(frozen=True)
class FreeRow:
    """One row of a world.

    roots: values of the roots; clamped: of the targets, roots among them; free: observed endogenous variables
    """

    roots: Mapping[str, int]
    clamped: Mapping[str, int]
    free: tuple[str, ...]
    observed: Mapping[str, int]


@dataclass(frozen=True)
class ForecastScore:
    """Mean over cells, then over worlds; excess: over the forecast that states pi itself."""

    brier: float
    log_loss: float
    excess_brier: float
    excess_log_loss: float


@dataclass(frozen=True)
class MapScore:
    """Replay of a legal map.

    heldout_exact: all clean held-out cells are right; world_accuracy: share of held-out worlds; None without cells
    train_match: share of free training cells that agree, each mechanism judged on observed parents
    """

    heldout_exact: bool | None
    world_accuracy: float | None
    train_match: Fraction | None

    @property
    def train_exact(self) -> bool:
        return self.train_match == 1


def world_rows(scm_class: MechanismClass, world: World) -> Iterator[FreeRow]:
    """Yield the rows of a world."""
    targets = world.intervention.targets
    free = tuple(v for v in scm_class.endogenous if v not in targets)
    for values in world.rows():
        roots = {v: values[v] for v in scm_class.roots}
        yield FreeRow(roots, {v: values[v] for v in targets}, free, values)


def score_map(
    scm_class: MechanismClass, submitted: SubmittedMap, training: Sequence[World], heldout: Sequence[World]
) -> MapScore:
    """Return how a map replays; held-out rows are clean. Training rows are matched on observed parents."""
    exact: list[bool] = []
    for world in heldout:
        rows = [row for row in world_rows(scm_class, world) if row.free]
        if rows:
            exact.append(all(_replays(submitted, row) for row in rows))
    matches = [
        match for world in training for row in world_rows(scm_class, world) for match in _matches(submitted, row)
    ]
    return MapScore(
        all(exact) if exact else None,
        fsum(exact) / len(exact) if exact else None,
        Fraction(sum(matches), len(matches)) if matches else None,
    )


def _replays(submitted: SubmittedMap, row: FreeRow) -> bool:
    values = submitted.replay(row.roots, row.clamped, frozenset())
    return all(values[v] == row.observed[v] for v in row.free)


def _matches(submitted: SubmittedMap, row: FreeRow) -> Iterator[bool]:
    """Yield for each free cell whether its mechanism gives it from the observed values; hidden ones are computed."""
    values = dict(row.observed)
    for v in submitted.order:
        if v not in row.observed:
            values[v] = evaluate(submitted.formulas[v], values)
    for v in row.free:
        yield evaluate(submitted.formulas[v], values) == row.observed[v]


def cell_law(
    formulas: Mapping[str, Formula], order: Sequence[str], row: FreeRow, rates: Mapping[str, Fraction]
) -> dict[str, Fraction]:
    """Return the probability of 1 of each free cell, noise included; exact, variable by variable.

    rates: of noisy variables; others have none
    """
    values = {**row.roots, **{v: bit for v, bit in row.clamped.items() if v in row.roots}}
    states: dict[tuple[tuple[str, int], ...], Fraction] = {tuple(sorted(values.items())): Fraction(1)}
    law: dict[str, Fraction] = {}
    for index, variable in enumerate(order):
        needed = {u for later in order[index + 1 :] for u in formulas[later].mentioned}
        following: dict[tuple[tuple[str, int], ...], Fraction] = {}
        ones = Fraction(0)
        for state, weight in states.items():
            values_before = dict(state)
            for bit, share in _cell(formulas, variable, row, rates, values_before):
                ones += weight * share * bit
                after = tuple((u, b) for u, b in sorted({**values_before, variable: bit}.items()) if u in needed)
                following[after] = following.get(after, Fraction(0)) + weight * share
        if variable in row.free:
            law[variable] = ones
        states = following
    return law


def _cell(
    formulas: Mapping[str, Formula],
    variable: str,
    row: FreeRow,
    rates: Mapping[str, Fraction],
    values: Mapping[str, int],
) -> Iterator[tuple[int, Fraction]]:
    if variable in row.clamped:
        yield row.clamped[variable], Fraction(1)
        return
    bit = evaluate(formulas[variable], values)
    rate = rates.get(variable, Fraction(0)) if variable in row.free else Fraction(0)
    yield bit, 1 - rate
    if rate:
        yield 1 - bit, rate


def gold_law(gold: Scm, rates: Mapping[str, Fraction], row: FreeRow) -> dict[str, Fraction]:
    """Return gold's exact law of the free cells of a row."""
    return cell_law(gold.mechanisms, gold.order, row, rates)


def implied_law(submitted: SubmittedMap, rate: Fraction, row: FreeRow) -> dict[str, Fraction]:
    """Return the forecast that a map implies: with the disclosed or submitted rate, at least MIN_IMPLIED_RATE."""
    rates = dict.fromkeys(row.free, max(rate, MIN_IMPLIED_RATE))
    return cell_law(submitted.formulas, submitted.order, row, rates)


def score_forecast(
    laws: Sequence[Sequence[Mapping[str, Fraction]]], stated: Sequence[Sequence[Mapping[str, float | Fraction]]]
) -> ForecastScore:
    """Return proper scores; both by world, row, variable. Worlds without cells do not count."""
    worlds: list[tuple[float, ...]] = []
    for law_rows, stated_rows in zip(laws, stated, strict=True):
        cells = [
            _cell_scores(float(row[v]), float(stated_row[v]))
            for row, stated_row in zip(law_rows, stated_rows, strict=True)
            for v in row
        ]
        if cells:
            # exactly rounded: the order of rows and variables changes no digit
            worlds.append(tuple(fsum(column) / len(cells) for column in zip(*cells, strict=True)))
    if not worlds:
        raise ValueError("no free cells to forecast")
    brier, log_loss, excess_brier, excess_log_loss = (
        fsum(column) / len(worlds) for column in zip(*worlds, strict=True)
    )
    return ForecastScore(brier, log_loss, excess_brier, excess_log_loss)


def _cell_scores(pi: float, p: float) -> tuple[float, float, float, float]:
    brier, best_brier = (p - pi) ** 2 + pi * (1 - pi), pi * (1 - pi)
    log_loss, best_log_loss = _log_loss(pi, p), _log_loss(pi, pi)
    return brier, log_loss, brier - best_brier, log_loss - best_log_loss


def _log_loss(pi: float, p: float) -> float:
    p = min(max(p, MIN_PROBABILITY), 1 - MIN_PROBABILITY)
    return -pi * log2(p) - (1 - pi) * log2(1 - p)
