"""Answers to extended items: checks of a submitted SCM (a map from variables to formulas), and scores.

A map has all observed endogenous variables as keys. A hidden variable may have a mechanism, and may be mentioned only
if it has one. Checks are those of plain items, in their order: schema, keys, parse, legal, acyclic.

A free cell is one of an observed endogenous variable that no intervention sets. A forecast states the probability of 1
of every free held-out cell; a map with a noise rate implies one. Cells are compared with the probability pi under gold
and its true rates (gold's law), not with sampled rows: the expected score without sampling variance.
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

# --- Submitted maps ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SubmittedMap:
    """A legal map.

    formulas: by observed endogenous or hidden variable; order: parents first; rate: submitted noise rate, or None
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
    """Check an answer {"mechanisms": {..}, "noise": ..}; return its map, or the first reason why it is not legal."""
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
            allowed_text = ", ".join(natural(allowed)) or "none"
            reason = f"mechanism of '{variable}' mentions {', '.join(strangers)}; admissible parents: {allowed_text}"
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
MIN_PROBABILITY = 2.0**-20  # bounds a forecast, so that a wrong certainty costs 20 bits, not infinitely many
MIN_IMPLIED_RATE = Fraction(1, 1 << 10)  # noise rate of the forecast that a map implies, for the same reason


@dataclass(frozen=True)
class FreeRow:
    """One row of a world.

    roots: values of the roots; clamped: values of the targets, roots included; observed: all observed values
    free: observed endogenous variables that are no targets
    """

    roots: Mapping[str, int]
    clamped: Mapping[str, int]
    free: tuple[str, ...]
    observed: Mapping[str, int]


@dataclass(frozen=True)
class ForecastScore:
    """Means over cells, then over worlds; log_loss in bits; excess: minus the score of the forecast pi itself."""

    brier: float
    log_loss: float
    excess_brier: float
    excess_log_loss: float


@dataclass(frozen=True)
class MapScore:
    """Replay of a legal map.

    heldout_exact: whether all noise-free held-out cells are right; world_accuracy: share of exact held-out worlds
    Both are None without held-out cells.
    train_match: share of free training cells that agree, each computed from observed parents; None without cells
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
    """Replay a map on the held-out worlds, which are noise-free, and match it with the training worlds."""
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
    """Yield for each free cell whether its mechanism computes it from observed values; hidden values are computed."""
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

    rates: noise rate by variable, 0 for others
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
            for bit, share in _cell_values(formulas, variable, row, rates, values_before):
                ones += weight * share * bit
                after = tuple((u, b) for u, b in sorted({**values_before, variable: bit}.items()) if u in needed)
                following[after] = following.get(after, Fraction(0)) + weight * share
        if variable in row.free:
            law[variable] = ones
        states = following
    return law


def _cell_values(
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
    """Return gold's law: free variable -> exact probability of 1."""
    return cell_law(gold.mechanisms, gold.order, row, rates)


def implied_law(submitted: SubmittedMap, rate: Fraction, row: FreeRow) -> dict[str, Fraction]:
    """Return the forecast that a map implies: with the disclosed or submitted rate, at least MIN_IMPLIED_RATE."""
    rates = dict.fromkeys(row.free, max(rate, MIN_IMPLIED_RATE))
    return cell_law(submitted.formulas, submitted.order, row, rates)


def score_forecast(
    laws: Sequence[Sequence[Mapping[str, Fraction]]], stated: Sequence[Sequence[Mapping[str, float | Fraction]]]
) -> ForecastScore:
    """Return proper scores; laws, stated: [world][row][variable]. Worlds without free cells are ignored."""
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
