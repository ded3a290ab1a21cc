"""Certificates about families of logic models, made from a solved family."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from calibrant.audits.claims import Certificate, certify
from calibrant.audits.logic.evidence import evidence_of
from calibrant.audits.logic.verification import Limits, class_words, conditional_words, family_words
from calibrant.dsl.logic.clause import Clause, Model, model_texts
from calibrant.dsl.logic.prior import Edge
from calibrant.solvers.logic.family import LogicFamily, first_member


def count_certificate(family: LogicFamily, clauses: Iterable[Clause] = ()) -> Certificate:
    """Certify optimum, spectrum and count of a family, and the numbers of members that have some clauses."""
    limits, counts = _limits(family), family.clauses()
    data = {
        "limits": msgspec.to_builtins(limits),
        "count": str(family.count),
        "spectrum": [[misfit, size, str(number)] for (misfit, size), number in family.spectrum.items()],
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
    if isinstance(part, Clause):
        return first_member(family.condition(part)), first_member(family.condition(part, present=False))
    using = [clause for clause in family.clauses() if part in clause.edges]
    lacking = family
    for clause in using:
        lacking = lacking.condition(clause, present=False)
    return first_member(family.condition(using[0])) if using else None, first_member(lacking)


def better_certificate(family: LogicFamily, model: Model) -> Certificate:
    """Certify that a model of the class has less misfit than a given model: the optimum of the family."""
    evidence = evidence_of(family.task)
    data = {"model": model_texts(model), "better": model_texts(family.witness)}
    return certify("logic-better", class_words(evidence), evidence, data)


def missing_certificate(family: LogicFamily, listed: Sequence[Model]) -> Certificate | None:
    """Certify that a list lacks a member; None if it has all of them."""
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
    """`ValueError` for a part of a family: claims are about all members within the tolerances."""
    if family.readings or family.restriction.present or family.restriction.absent:
        raise ValueError("a certificate is about a whole family, without readings and conditions")
    tolerance = family.task.tolerance
    return Limits(tolerance.fit, tolerance.size, *family.optimum)
