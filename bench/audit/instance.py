"""The audit of one instance: exact counts of what its evidence leaves open, and the bounded searches beside them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

from audits.replayscm.ambiguity import profile_classes
from audits.replayscm.bounded import LOCAL, PAIRS, SHORTCUT_SIZE, STRONGER, UPSTREAM_ALTERNATIVES, BoundedAudit
from audits.replayscm.exposure import exposure, heldout_balance, intervention_mix
from audits.replayscm.patterns import pattern_coverage
from bench.audit.findings import CappedCount, Ceiling, ClassCount, Coverage, Findings, Spectrum
from bench.audit.prior import ceiling_by_size, draws, prior_class, split, uniform_ceiling
from bench.audit.survivors import most_different, sized_class
from dsl.replayscm.disclosure import HiddenRoots
from dsl.replayscm.problem import Problem
from dsl.replayscm.sampling.strata import shortcut_floor
from solvers.budget import BudgetSpent
from solvers.replayscm.members_by_size import spectrum
from solvers.replayscm.version_space import ModelClass, VersionSpace

PROFILE = (2, 3, 4, 5)  # bounds of functional parents that every audit counts
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class AuditOptions:
    """What is asked.

    max_parents: the headline class; classes: all bounds that are counted, ascending
    nested_roots: in Hidden-roots, only root sets whose columns are nested over shared units
    """

    max_parents: int = 4
    classes: tuple[int, ...] = PROFILE
    nested_roots: bool = False

    def to_dict(self) -> dict[str, Any]:
        return {"max_parents": self.max_parents, "classes": list(self.classes), "nested_roots": self.nested_roots}


def audit_instance(problem: Problem, options: AuditOptions) -> Findings:
    """Everything about one instance. Reads what is sealed: this is for benchmark authors."""
    left_out: dict[str, str] = {}
    nested = options.nested_roots

    def attempted(part: str, make: Callable[[], T]) -> T | None:
        try:
            return make()
        except (ValueError, BudgetSpent) as error:  # the part does not apply to this instance, and says why
            left_out[part] = str(error)
            return None

    classes = [_counted(problem, ModelClass(k, None, options.nested_roots)) for k in options.classes]
    capped = [_capped(problem, options, chosen) for chosen in profile_classes() if chosen.max_size is not None]
    task, balance = problem.task, heldout_balance(problem)
    exposed = attempted("exposure", lambda: [asdict(row) for row in exposure(problem)])
    prior = attempted("draws", lambda: prior_class(problem, options.max_parents, classes, nested_roots=nested))
    ceilings: list[Ceiling | None] = []
    if prior is not None:
        ceilings.append(attempted("ceiling", lambda: uniform_ceiling(problem, prior)))
        ceilings.append(attempted("ceiling by size", lambda: ceiling_by_size(problem, prior)))
    return Findings(
        num_variables=len(task.variables),
        num_roots=task.disclosure.root_count
        if isinstance(task.disclosure, HiddenRoots)
        else len(task.disclosure.roots),
        num_worlds=len(task.training.worlds),
        num_rows=task.training.num_rows,
        num_heldout=len(problem.sealed.heldout.worlds),
        headline=options.max_parents,
        classes=classes,
        capped=capped,
        spectrum=attempted("spectrum", lambda: _spectrum(problem, options)),
        draws=draws(problem, prior) if prior else [],
        ceilings=[found for found in ceilings if found],
        bounded=attempted("bounded", lambda: _bounded(problem)),
        exposure=exposed,
        coverage=attempted("coverage", lambda: _coverage(problem)),
        mix=asdict(intervention_mix(problem)),
        balance=asdict(balance) if balance else None,
        survivors=attempted("survivors", lambda: _survivors(problem, options, classes)),
        split=attempted("split", lambda: split(problem, prior)) if prior else None,
        left_out=left_out,
    )


def _counted(problem: Problem, model_class: ModelClass) -> ClassCount:
    space = VersionSpace(problem.task, model_class)
    members, heldout = space.count, problem.sealed.heldout.worlds
    agreeing = None
    if heldout:
        agreeing = str(int(space.agreement(heldout) * members)) if members else "0"
    return ClassCount(model_class.max_parents, model_class.describe(problem.task), str(members), agreeing)


def _capped(problem: Problem, options: AuditOptions, model_class: ModelClass) -> CappedCount:
    assert model_class.max_size is not None
    chosen = ModelClass(model_class.max_parents, model_class.max_size, options.nested_roots)
    return CappedCount(chosen.max_parents, model_class.max_size, str(VersionSpace(problem.task, chosen).count))


def _coverage(problem: Problem) -> Coverage:
    found = pattern_coverage(problem)
    return Coverage(found.seen, found.total, {part.variable: [part.seen, part.total] for part in found.by_variable})


def _spectrum(problem: Problem, options: AuditOptions) -> Spectrum:
    sized = sized_class(problem, options.max_parents)
    model_class = ModelClass(sized.max_parents, sized.max_size, options.nested_roots)
    sizes = spectrum(VersionSpace(problem.task, model_class))
    return Spectrum(model_class.describe(problem.task), {size: str(number) for size, number in sizes.items()})


def _bounded(problem: Problem) -> dict[str, Any]:
    """Every search with its findings; budgets: what each may hold."""
    audit = BoundedAudit(problem)
    found = {
        "local": [asdict(finding) for finding in audit.local_alternatives(LOCAL)],
        "stronger": [asdict(finding) for finding in audit.local_alternatives(STRONGER)],
        "pairs": [asdict(finding) for finding in audit.coordinated_pairs()],
        "shortcuts": [asdict(finding) for finding in audit.shortcuts(floor=shortcut_floor(problem.stratum))],
    }
    for finding in (finding for findings in found.values() for finding in findings):
        finding["exact"] = str(finding["exact"])
    budgets = {"local": asdict(LOCAL), "stronger": asdict(STRONGER), "pairs": asdict(PAIRS), "shortcuts": asdict(LOCAL)}
    budgets["pairs"]["upstream_alternatives"] = UPSTREAM_ALTERNATIVES
    budgets["shortcuts"] |= {"slack": -1, "cap": SHORTCUT_SIZE}
    return {**found, "budgets": budgets}


def _survivors(problem: Problem, options: AuditOptions, classes: list[ClassCount]) -> Any:
    """From the headline class, or the next wider one with members; nothing to show if the headline is unique."""
    able = [c for c in classes if c.max_parents >= options.max_parents and c.members != "0"]
    if not able or able[0].members == "1":
        return None
    return most_different(problem, ModelClass(able[0].max_parents, None, options.nested_roots))
