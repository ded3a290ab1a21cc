"""Checks certificates about logic models by replay and by a count of its own; imports no solver."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from calibrant.audits.claims import Certificate, ClaimKind, Verifier
from calibrant.audits.logic.evidence import Case, model_from_texts
from calibrant.audits.logic.recount import Points, Recount
from calibrant.dsl.logic import reference
from calibrant.dsl.logic.clause import Model, model_size, parse_clause
from calibrant.dsl.logic.task import fit_limit


class Limits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Tolerances, and the optimum that they start from.

    fit: decimal text or "any"; size: None for no limit
    """

    fit: str
    size: int | None
    least_misfit: int
    least_size: int

    @property
    def misfit_limit(self) -> int | None:
        """The greatest misfit of members."""
        return fit_limit(self.least_misfit, self.fit)

    @property
    def size_limit(self) -> int | None:
        """The greatest size of members."""
        return None if self.size is None else self.least_size + self.size


class CountData(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Numbers as texts: they exceed 64 bits.

    spectrum: (misfit, size, members); clauses: members by clause
    """

    limits: Limits
    count: str
    spectrum: list[tuple[int, int, str]]
    clauses: dict[str, str]


class OpenData(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Two members, as clause texts.

    part: a clause, or an edge as `source sign target`, that one has and one lacks
    """

    limits: Limits
    part: str
    having: list[str]
    lacking: list[str]


class BetterData(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Two models, as clause texts: the first one, and a model of the class with less misfit."""

    model: list[str]
    better: list[str]


class MissingData(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A list of models and a member that is not in it, as clause texts."""

    limits: Limits
    member: list[str]
    listed: list[list[str]]


def _count(evidence: Any, certificate: Certificate) -> str:
    data = msgspec.convert(certificate.data, CountData, strict=True)
    case, limits = Case(evidence), data.limits
    if reason := _other_tolerances(case, limits):
        return reason
    recount = Recount(case)
    points = recount.points(limits.misfit_limit)
    least = min(points)
    if least != (limits.least_misfit, limits.least_size):
        return f"the optimum is misfit {least[0]}, size {least[1]}"
    members = _within(points, limits)
    spectrum = [(misfit, size, str(number)) for (misfit, size), number in sorted(members.items())]
    if spectrum != data.spectrum:
        return "the spectrum is another one"
    if str(members.total()) != data.count:
        return f"there are {members.total()} members"
    for text, number in data.clauses.items():
        clause = parse_clause(text)
        if str(clause) != text:
            return f"clause {text} is written {clause}"
        lacking = _within(recount.points(limits.misfit_limit, without=clause), limits).total()
        if str(members.total() - lacking) != number:
            return f"{members.total() - lacking} members have {text}"
    return ""


def _other_tolerances(case: Case, limits: Limits) -> str:
    """Return that a certificate states other tolerances than those of the item; "" if it states these."""
    tolerance = case.task.tolerance
    if (limits.fit, limits.size) == (tolerance.fit, tolerance.size):
        return ""
    stated, actual = (
        f"fit {fit} and size {'none' if size is None else size}"
        for fit, size in ((limits.fit, limits.size), (tolerance.fit, tolerance.size))
    )
    return f"it states {stated}; the item has {actual}"


def _within(points: Points, limits: Limits) -> Points:
    size_limit = limits.size_limit
    return Counter({point: n for point, n in points.items() if n and (size_limit is None or point[1] <= size_limit)})


def _open(evidence: Any, certificate: Certificate) -> str:
    data = msgspec.convert(certificate.data, OpenData, strict=True)
    case = Case(evidence)
    having, lacking = model_from_texts(data.having), model_from_texts(data.lacking)
    for model in (having, lacking):
        reason = _not_member(model, case, data.limits)
        if reason:
            return reason
    if not _has(having, data.part):
        return f"the first member has no {data.part}"
    return f"the second member has {data.part}" if _has(lacking, data.part) else ""


def _has(model: Model, part: str) -> bool:
    parts = {str(clause) for clause in model} | {str(edge) for clause in model for edge in clause.edges}
    return part in parts


def _not_member(model: Model, case: Case, limits: Limits) -> str:
    """Return why a model is no member of the item's family with the stated optimum, "" if it is one."""
    if reason := _other_tolerances(case, limits):
        return reason
    rule = reference.broken_rule(model, case.task)
    if rule:
        return f"a model outside the class: {rule}"
    misfit, size = case.misfit(model), model_size(model)
    if limits.misfit_limit is not None and misfit > limits.misfit_limit:
        return f"a model of misfit {misfit}, above the limit {limits.misfit_limit}"
    if limits.size_limit is not None and size > limits.size_limit:
        return f"a model of size {size}, above the limit {limits.size_limit}"
    if (misfit, size) < (limits.least_misfit, limits.least_size):
        return f"a model of misfit {misfit} and size {size}, below the stated optimum"
    return ""


def _better(evidence: Any, certificate: Certificate) -> str:
    data = msgspec.convert(certificate.data, BetterData, strict=True)
    case = Case(evidence)
    model, better = model_from_texts(data.model), model_from_texts(data.better)
    rule = reference.broken_rule(better, case.task)
    if rule:
        return f"the better model is outside the class: {rule}"
    if not reference.is_acyclic(model):
        return "the given model has a cycle"
    misfits = case.misfit(model), case.misfit(better)
    return "" if misfits[1] < misfits[0] else f"misfit {misfits[1]} is not less than {misfits[0]}"


def _missing(evidence: Any, certificate: Certificate) -> str:
    data = msgspec.convert(certificate.data, MissingData, strict=True)
    member = model_from_texts(data.member)
    reason = _not_member(member, Case(evidence), data.limits)
    if reason:
        return reason
    return "the list has the member" if member in map(model_from_texts, data.listed) else ""


def class_words(evidence: Any) -> str:
    """Return the class of the evidence in words."""
    case = Case(evidence)
    longest = case.task.options.max_clause
    merged = "merged " if case.task.options.compress else ""
    clauses = f"clauses of at most {longest} literals" if longest else "clauses of any length"
    return f"acyclic logic models over {len(case.task.edges)} {merged}edges, {clauses}"


def family_words(evidence: Any, limits: Limits) -> str:
    """Return a family in words."""
    misfit = "any misfit" if limits.misfit_limit is None else f"misfit at most {limits.misfit_limit}"
    size = "any size" if limits.size_limit is None else f"size at most {limits.size_limit}"
    return f"{class_words(evidence)}, {misfit}, {size}"


def conditional_words(evidence: Any, limits: Limits) -> str:
    """Return in words a family whose optimum is stated and not verified."""
    return (
        f"{family_words(evidence, limits)}, if the least misfit is {limits.least_misfit} "
        f"and the least size at it {limits.least_size}"
    )


def _count_words(evidence: Any, certificate: Certificate) -> str:
    return family_words(evidence, msgspec.convert(certificate.data, CountData, strict=True).limits)


def _open_words(evidence: Any, certificate: Certificate) -> str:
    return conditional_words(evidence, msgspec.convert(certificate.data, OpenData, strict=True).limits)


def _missing_words(evidence: Any, certificate: Certificate) -> str:
    return conditional_words(evidence, msgspec.convert(certificate.data, MissingData, strict=True).limits)


VERIFIERS: Mapping[str, Verifier] = MappingProxyType(
    {
        "logic-count": ClaimKind(CountData, _count_words, _count),
        "logic-open": ClaimKind(OpenData, _open_words, _open),
        "logic-better": ClaimKind(BetterData, lambda evidence, certificate: class_words(evidence), _better),
        "logic-missing": ClaimKind(MissingData, _missing_words, _missing),
    }
)
