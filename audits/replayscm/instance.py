"""The audit of one instance: exact counts of what its evidence leaves open, and the bounded searches beside them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from calibrant.audits.replayscm.ambiguity import PARENTS, headline_parents, profile_classes, sized_class
from calibrant.audits.replayscm.bounded import BoundedAudit
from calibrant.audits.replayscm.exposure import exposure, heldout_balance, intervention_mix
from calibrant.audits.replayscm.findings import (
    CappedCount,
    Ceiling,
    ClassCount,
    Coverage,
    Findings,
    Spectrum,
    Survivors,
)
from calibrant.audits.replayscm.patterns import pattern_coverage
from calibrant.audits.replayscm.prior import ceiling_by_size, draws, prior_parents, split, split_cuts, uniform_ceiling
from calibrant.audits.replayscm.spaces import MAX_SETS, Spaces
from calibrant.audits.replayscm.survivors import most_different
from calibrant.dsl.replayscm.generation.strata import shortcut_floor
from calibrant.dsl.replayscm.item import Problem
from calibrant.solvers.budget import BudgetSpent
from calibrant.solvers.replayscm.members import count_by_size

T = TypeVar("T")

CEILINGS = {"ceiling": uniform_ceiling, "ceiling by size": ceiling_by_size}  # as findings name them


@dataclass(frozen=True, slots=True)
class AuditOptions:
    """Options of an audit.

    max_parents: the headline class, which verdicts are about; None: the smallest that has gold, at least four parents
    classes: bounds that are counted beside it
    nested_roots: in Hidden-roots, only root sets whose columns are nested over shared units
    """

    max_parents: int | None = None
    classes: tuple[int, ...] = PARENTS
    nested_roots: bool = False

    def headline(self, problem: Problem) -> int:
        """Return the bound of parents of the headline class of an instance."""
        return headline_parents(problem) if self.max_parents is None else self.max_parents

    def to_dict(self) -> dict[str, Any]:
        return {"max_parents": self.max_parents, "classes": list(self.classes), "nested_roots": self.nested_roots}


def audit_instance(problem: Problem, options: AuditOptions) -> Findings:
    """Audit one instance. Reads the sealed part: this is for benchmark authors."""
    left_out: dict[str, str] = {}
    spaces = Spaces(problem, nested_roots=options.nested_roots)
    headline = options.headline(problem)

    def attempt(part: str, make: Callable[[], T]) -> T | None:
        try:
            return make()
        except (
            ValueError,
            BudgetSpent,
        ) as error:  # the part does not apply to this instance; the message is the reason
            left_out[part] = str(error)
            return None

    classes = [_count_class(spaces, k) for k in sorted({*options.classes, headline})]
    capped = _count_all_capped(spaces, max(headline, spaces.widest), left_out)
    task = problem.task
    exposed = attempt("exposure", lambda: exposure(problem))
    prior = attempt("draws", lambda: prior_parents(problem, headline, classes))
    ceilings: list[Ceiling] = []
    if prior is not None:
        for part, make in CEILINGS.items():
            if (ceiling := attempt(part, partial(make, spaces, prior))) is not None:
                ceilings.append(ceiling.ceiling)
                left_out |= {f"{part}, narrower": ceiling.cut} if ceiling.cut else {}
    divided = attempt("split", lambda: split(spaces, prior)) if prior else None
    left_out |= split_cuts(problem, divided) if divided is not None else {}
    return Findings(
        num_variables=len(task.variables),
        num_roots=task.disclosure.num_roots,
        num_worlds=len(task.training.worlds),
        num_rows=task.training.num_rows,
        num_heldout=len(problem.sealed.heldout.worlds),
        headline=headline,
        classes=classes,
        capped=capped,
        spectrum=attempt("spectrum", lambda: _spectrum(spaces, headline)),
        draws=draws(spaces, prior) if prior else [],
        ceilings=ceilings,
        bounded=attempt(
            "bounded", lambda: BoundedAudit(problem).everything(shortcut_floor=shortcut_floor(problem.stratum))
        ),
        exposure=exposed,
        coverage=attempt("coverage", lambda: _coverage(problem)),
        mix=intervention_mix(problem),
        balance=heldout_balance(problem),
        survivors=attempt("survivors", lambda: _survivors(spaces, headline, classes)),
        split=divided,
        left_out=left_out,
    )


def _count_class(spaces: Spaces, max_parents: int) -> ClassCount:
    space = spaces.space(max_parents)
    members, agreeing = space.count, None
    if spaces.heldout:
        share = spaces.heldout_exact(space)
        agreeing = "0" if share is None else str(int(share * members))
    return ClassCount(max_parents, space.model_class.describe(space.task), str(members), agreeing)


def _count_capped(spaces: Spaces, max_parents: int, max_size: int) -> CappedCount:
    return CappedCount(max_parents, max_size, str(spaces.space(max_parents, max_size).count))


def _count_all_capped(spaces: Spaces, widest: int, left_out: dict[str, str]) -> list[CappedCount]:
    """Return the profile's classes with a cap, as far as parent sets are gone through."""
    counts = []
    for model_class in profile_classes():
        if model_class.max_size is None:
            continue
        if model_class.max_parents <= widest:
            counts.append(_count_capped(spaces, model_class.max_parents, model_class.max_size))
        else:
            reason = f"{spaces.num_sets:,} parent sets; at most {MAX_SETS:,} are gone through"
            left_out[f"k <= {model_class.max_parents}, size <= {model_class.max_size}"] = reason
    return counts


def _coverage(problem: Problem) -> Coverage:
    measured = pattern_coverage(problem)
    return Coverage(
        measured.num_seen, measured.total, {part.variable: [part.num_seen, part.total] for part in measured.by_variable}
    )


def _spectrum(spaces: Spaces, max_parents: int) -> Spectrum:
    sized = sized_class(spaces.problem.task, max_parents)
    space = spaces.space(sized.max_parents, sized.max_size)
    sizes = count_by_size(space)
    words = space.model_class.describe(space.task)
    return Spectrum(words, {size: str(number) for size, number in sizes.items()})


def _survivors(spaces: Spaces, headline: int, classes: Sequence[ClassCount]) -> Survivors | None:
    """Choose two members of the headline class, or of the next wider one with members; None if one is unique."""
    able = [c for c in classes if c.max_parents >= headline and c.members != "0"]
    if not able or able[0].members == "1":
        return None
    return most_different(spaces, able[0].max_parents)
