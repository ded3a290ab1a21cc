"""Findings about one item, with certificates that a checker without a solver confirms, and its held-out answers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from calibrant.audits.attribution import Attribution
from calibrant.audits.claims import ClaimStatus, Finding
from calibrant.audits.logic.certificates import better_certificate, count_certificate, open_certificate
from calibrant.dsl.logic import reference
from calibrant.dsl.logic.item import LogicItem
from calibrant.solvers.logic.elimination.lattice import LatticeLimitError
from calibrant.solvers.logic.family import LogicFamily, solve_family
from calibrant.solvers.outcome import Found

MEMBERS, OPEN_CLAUSE, OPEN_CELLS, NOT_OPTIMAL = "several-models", "open-clause", "open-cells", "truth-not-optimal"


def item_findings(item: LogicItem) -> Iterator[Finding]:
    """Yield what an item's data leave open: models, a clause, held-out answers; and whether its truth fits best."""
    outcome = solve_family(item.task)
    if not isinstance(outcome, Found):
        yield Finding(MEMBERS, ClaimStatus.OPEN, item.id, outcome.reached)
        return
    family = outcome.value
    yield _number_of_models(family, item)
    open_clauses = sorted(family.open_clauses(), key=str)
    if open_clauses:
        claim = f"{len(open_clauses)} clauses are in some models and not in others, {open_clauses[0]} among them"
        data = {"open": len(open_clauses), "always": len(family.always())}
        yield Finding(OPEN_CLAUSE, ClaimStatus.PROVED, item.id, claim, data, open_certificate(family, open_clauses[0]))
    yield from _held_out_answers(family, item)
    if item.sealed is not None and reference.misfit(item.sealed.gold, item.task) > family.optimum[0]:
        claim = "another model has less misfit than the one that the values come from"
        certificate = better_certificate(family, item.sealed.gold)
        yield Finding(NOT_OPTIMAL, ClaimStatus.PROVED, item.id, claim, {}, certificate)


def _number_of_models(family: LogicFamily, item: LogicItem) -> Finding:
    status = ClaimStatus.PROVED if family.count > 1 else ClaimStatus.REFUTED
    claim = f"{family.count} models fit" if family.count != 1 else "one model fits"
    data: dict[str, int | float | str] = {
        "members": str(family.count),
        "misfit": family.optimum[0],
        "size": family.optimum[1],
    }
    return Finding(MEMBERS, status, item.id, claim, data, count_certificate(family))


def _held_out_answers(family: LogicFamily, item: LogicItem) -> Iterator[Finding]:
    if not item.task.questions:
        return
    try:
        predictions = family.predict(item.task.questions)
    except LatticeLimitError as error:
        yield Finding(OPEN_CELLS, ClaimStatus.OPEN, item.id, str(error))
        return
    shares = [share for number in range(len(item.task.questions)) for share in predictions.shares(number)]
    num_open = sum(share not in (0, 1) for share in shares)
    status = ClaimStatus.PROVED if num_open else ClaimStatus.REFUTED
    claim = f"models that fit disagree about {num_open} of {len(shares)} held-out answers"
    yield Finding(OPEN_CELLS, status, item.id, claim, {"open": num_open, "cells": len(shares)})


@dataclass(frozen=True, slots=True)
class HeldoutDecision:
    """Decision of the held-out answers by the models that fit.

    decided: all of them give the same table of held-out answers; members: how many fit; in_words: the class
    agreement: share of them that gives the true table; None without a sealed truth
    ceiling: largest share of them that gives one table
    """

    decided: bool
    members: int
    in_words: str
    agreement: Fraction | None
    ceiling: Fraction

    def attribution(self, *, fits: bool | None, correct: bool) -> Attribution:
        """Attribute an answer.

        fits: it is a model within the tolerances, None for a table; correct: every held-out answer is right
        """
        return Attribution(self.decided, correct, fits, self.members, self.in_words)


def heldout_decision(item: LogicItem) -> HeldoutDecision | None:
    """Return whether the data decide the held-out answers, and exact shares of models; reads the sealed part.

    None without questions, and where models or answers are too many to count.
    """
    outcome = solve_family(item.task)
    if not isinstance(outcome, Found) or not item.task.questions:
        return None
    family = outcome.value
    try:
        tables = family.verdicts()
    except LatticeLimitError:
        return None
    agreement = None if item.sealed is None else Fraction(tables.get(item.sealed.answers, 0), family.count)
    ceiling = Fraction(max(tables.values()), family.count)
    return HeldoutDecision(len(tables) == 1, family.count, family.in_words, agreement, ceiling)
