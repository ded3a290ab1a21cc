"""Findings about one item of logic models, with certificates, and its soundness."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import msgspec

from calibrant.audits.attribution import Attribution
from calibrant.audits.claims import Certificate, ClaimStatus, Finding, ItemIdentity, Soundness, certify
from calibrant.audits.logic import trajectories
from calibrant.audits.logic.claims_of_trajectories import trajectory_evidence
from calibrant.audits.logic.verify import Limits, class_words, conditional_words, evidence_of, family_words
from calibrant.dsl.logic import reference
from calibrant.dsl.logic.item import Clause, Edge, LogicItem, Model, model_texts
from calibrant.dsl.logic.trajectories import TrajectoryItem, is_trajectory_item
from calibrant.solvers.canonical import canonical_key
from calibrant.solvers.logic.canonical import model_structure, network_structure
from calibrant.solvers.logic.elimination.lattice import LatticeLimitError
from calibrant.solvers.logic.family import LogicFamily, first_member, solve_family
from calibrant.solvers.outcome import Found

# --- Certificates about families (models within the tolerances) ------------------------------------------------------


def count_certificate(family: LogicFamily, clauses: Iterable[Clause] = ()) -> Certificate:
    """Certify optimum, spectrum and count of a family, and for each of `clauses` the number of members with it."""
    limits, counts = _limits(family), family.clauses()
    data = {
        "limits": msgspec.to_builtins(limits),
        "count": str(family.count),
        "spectrum": [[misfit, size, str(count)] for (misfit, size), count in family.spectrum.items()],
        "clauses": {str(clause): str(counts.get(clause, 0)) for clause in clauses},
    }
    evidence = evidence_of(family.task)
    return certify("logic-count", family_words(evidence, limits), evidence, data)


def open_certificate(family: LogicFamily, part: Clause | Edge) -> Certificate | None:
    """Certify that a clause or edge is open, by a member with it and one without; None if it is not open."""
    having, lacking = _witnesses(family, part)
    if having is None or lacking is None:
        return None
    data = {"part": str(part), "having": model_texts(having), "lacking": model_texts(lacking)}
    return _conditional("logic-open", family, data)


def _witnesses(family: LogicFamily, part: Clause | Edge) -> tuple[Model | None, Model | None]:
    """Return a member with the part and one without, each None if there is none."""
    if isinstance(part, Clause):
        return first_member(family.condition(part)), first_member(family.condition(part, present=False))
    using = [clause for clause in family.clauses() if part in clause.edges]
    lacking = family
    for clause in using:
        lacking = lacking.condition(clause, present=False)
    return first_member(family.condition(using[0])) if using else None, first_member(lacking)


def better_certificate(family: LogicFamily, model: Model) -> Certificate:
    """Certify that the optimal model of the family has less misfit than `model`."""
    evidence = evidence_of(family.task)
    data = {"model": model_texts(model), "better": model_texts(family.witness)}
    return certify("logic-better", class_words(evidence), evidence, data)


def missing_certificate(family: LogicFamily, listed: Sequence[Model]) -> Certificate | None:
    """Certify that a list of models lacks a member; None if it has all members."""
    models = set(listed)
    member = next((model for model in family.models() if model not in models), None)
    if member is None:
        return None
    data = {"member": model_texts(member), "listed": [model_texts(model) for model in listed]}
    return _conditional("logic-missing", family, data)


def _conditional(claim: str, family: LogicFamily, data: dict[str, Any]) -> Certificate:
    limits, evidence = _limits(family), evidence_of(family.task)
    content = {"limits": msgspec.to_builtins(limits), **data}
    return certify(claim, conditional_words(evidence, limits), evidence, content)


def _limits(family: LogicFamily) -> Limits:
    """Return tolerances and optimum; `ValueError` for a conditioned family, as claims are about all members."""
    if family.readings or family.restriction.present or family.restriction.absent:
        raise ValueError("a certificate is about a whole family, without readings and conditions")
    tolerance = family.task.tolerance
    return Limits(tolerance.fit, tolerance.size, *family.optimum)


# --- Findings about one item, with certificates that a verifier without a solver confirms -----------------------------
MEMBERS, OPEN_CLAUSE, OPEN_CELLS, NOT_OPTIMAL = "several-models", "open-clause", "open-cells", "truth-not-optimal"


def item_findings(item: LogicItem) -> Iterator[Finding]:
    """Yield findings on what the data leave open (models, clauses, held-out answers), and on a truth not optimal."""
    if is_trajectory_item(item):
        yield from trajectories.trajectory_findings(item)
        return
    outcome = solve_family(item.task)
    if not isinstance(outcome, Found):
        yield Finding(MEMBERS, ClaimStatus.OPEN, item.id, outcome.reached)
        return
    family = outcome.value
    yield _count_finding(family, item)
    open_clauses = sorted(family.open_clauses(), key=str)
    if open_clauses:
        claim = f"{len(open_clauses)} clauses are in some models and not in others, {open_clauses[0]} among them"
        data = {"open": len(open_clauses), "always": len(family.always())}
        yield Finding(OPEN_CLAUSE, ClaimStatus.PROVED, item.id, claim, data, open_certificate(family, open_clauses[0]))
    yield from _held_out_findings(family, item)
    if item.sealed is not None and reference.misfit(item.sealed.gold, item.task) > family.optimum[0]:
        claim = "another model has less misfit than the one that the values come from"
        certificate = better_certificate(family, item.sealed.gold)
        yield Finding(NOT_OPTIMAL, ClaimStatus.PROVED, item.id, claim, {}, certificate)


def _count_finding(family: LogicFamily, item: LogicItem) -> Finding:
    status = ClaimStatus.PROVED if family.count > 1 else ClaimStatus.REFUTED
    claim = f"{family.count} models fit" if family.count != 1 else "one model fits"
    data: dict[str, int | float | str] = {
        "members": str(family.count),
        "misfit": family.optimum[0],
        "size": family.optimum[1],
    }
    return Finding(MEMBERS, status, item.id, claim, data, count_certificate(family))


def _held_out_findings(family: LogicFamily, item: LogicItem) -> Iterator[Finding]:
    if not item.task.questions:
        return
    try:
        predictions = family.predict(item.task.questions)
    except LatticeLimitError as error:
        yield Finding(OPEN_CELLS, ClaimStatus.OPEN, item.id, str(error))
        return
    shares = [share for k in range(len(item.task.questions)) for share in predictions.shares(k)]
    num_open = sum(share not in (0, 1) for share in shares)
    status = ClaimStatus.PROVED if num_open else ClaimStatus.REFUTED
    claim = f"models that fit disagree about {num_open} of {len(shares)} held-out answers"
    yield Finding(OPEN_CELLS, status, item.id, claim, {"open": num_open, "cells": len(shares)})


@dataclass(frozen=True, slots=True)
class HeldoutDecision:
    """Whether all models that fit agree on the table of held-out answers.

    decided: they do; members: number of models that fit; in_words: the class
    agreement: share of them that give the true table; None without a sealed truth
    ceiling: largest share of them that give one table
    """

    decided: bool
    members: int
    in_words: str
    agreement: Fraction | None
    ceiling: Fraction

    def attribution(self, *, fits: bool | None, correct: bool) -> Attribution:
        """Attribute an answer; `fits`: it is a model within the tolerances, None for a table; `correct`: all right."""
        return Attribution(self.decided, correct, fits, self.members, self.in_words)


def heldout_decision(item: LogicItem) -> HeldoutDecision | None:
    """Return whether the data decide the held-out answers, with exact shares of models; reads the sealed part.

    None without questions, and if models or answers are too many to count.
    """
    if is_trajectory_item(item):
        return _answer_decision(item)
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


def _answer_decision(item: TrajectoryItem) -> HeldoutDecision | None:
    """Return the decision for an item of trajectories; None if networks or answers are too many to count."""
    decision = trajectories.decide_answer(item)
    if decision is None or decision.ceiling is None:
        return None
    words = item.task.in_words
    return HeldoutDecision(decision.agreement == 1, decision.count, words, decision.agreement, decision.ceiling)


# --- Soundness of an item of logic models: its optimum, truth and labels are those of its family ----------------------


def optimum_holds(item: LogicItem) -> str | None:
    """Return why the stated optimum is not the family's, "" if it is; None without one, or if it is not counted."""
    if is_trajectory_item(item):
        return None
    family = _family(item)
    if item.sealed is None or family is None:
        return None
    optimum = family.optimum
    return "" if optimum == item.sealed.optimum else f"misfit and size {item.sealed.optimum}, found {optimum}"


def truth_fits(item: LogicItem) -> str | None:
    """Return why the model behind the values is no member of the family, "" if it is one; None without one."""
    if is_trajectory_item(item):
        return trajectories.agreement_holds(item)
    family = _family(item)
    if item.sealed is None or family is None:
        return None
    return "" if family.fits(item.sealed.gold) else "the model behind the values is not within the tolerances"


def members_hold(item: LogicItem) -> str | None:
    """Return why the labelled number of members is wrong, "" if it is right; None without the label."""
    if is_trajectory_item(item):
        return trajectories.count_holds(item)
    family = _family(item)
    if family is None or "members" not in item.labels:
        return None
    stated = item.labels["members"]
    return "" if stated == str(family.count) else f"members {stated}, found {family.count}"


def explain_undecided(item: LogicItem) -> str | None:
    """Return why the held-out answers are open; "" if all models that fit give the same, None without questions."""
    if is_trajectory_item(item):
        return trajectories.explain_open_answer(item)
    family = _family(item)
    if family is None or not item.task.questions:
        return None
    try:
        num_tables = len(family.verdicts())
    except LatticeLimitError:
        return "models that fit give too many different answers to list"
    return "" if num_tables == 1 else f"models that fit give {num_tables} different tables of held-out answers"


def duplicate_key(item: LogicItem) -> bytes:
    """Encode data, options, tolerances and questions."""
    if is_trajectory_item(item):
        return trajectories.trajectory_key(item)
    task = item.task
    questions = [(sorted(question.on), sorted(question.inhibited)) for question in task.questions]
    return msgspec.json.encode((evidence_of(task), questions))


def _family(item: LogicItem) -> LogicFamily | None:
    outcome = solve_family(item.task)
    return outcome.value if isinstance(outcome, Found) else None


def _model_keys(item: LogicItem) -> tuple[bytes, ...]:
    if is_trajectory_item(item):
        return (trajectories.network_key(item),)
    return () if item.sealed is None else (canonical_key(model_structure(item.sealed.gold)),)


def _structure_key(item: LogicItem) -> bytes:
    if is_trajectory_item(item):
        return msgspec.json.encode(trajectory_evidence(item.task)["candidates"])
    return canonical_key(network_structure(item.task.edges))


IDENTITY = ItemIdentity("networks", duplicate_key, _model_keys, _structure_key)
SOUNDNESS = Soundness(
    {
        "the stated optimum is the least": optimum_holds,
        "the model behind the values fits": truth_fits,
        "stated members are those that fit": members_hold,
    },
    explain_undecided,
    IDENTITY,
)
