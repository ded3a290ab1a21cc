"""Reasons for a failure: for each variable, where an answer differs from gold, and whether training rows show it.

The differing assignments of a wrong variable are over the functional parents of both formulas. An assignment that no
scored training row has was *never shown*; if a row has it, the answer is *contradicted by training*, since gold replays
every row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal, TypeAlias

import msgspec

from calibrant.audits.replayscm.attribution import HeldoutDecision
from calibrant.audits.why import Count, Fact, Span, Why, listed, number_text, spans
from calibrant.dsl.formulas.reference import evaluate
from calibrant.dsl.formulas.text import render
from calibrant.dsl.replayscm.disclosure import natural
from calibrant.dsl.replayscm.evaluator import compute
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.replayscm.reference import replay_row
from calibrant.dsl.replayscm.scm import LocalFunction, Scm
from calibrant.dsl.replayscm.score import Score
from calibrant.dsl.replayscm.world import Panel

Relation: TypeAlias = Literal["same", "other function", "other parents", "root in gold", "root in the answer"]
MAX_UNION = 12  # parents of both formulas together up to which assignments are listed: 4,096


class Assignment(msgspec.Struct, frozen=True):
    """An assignment at which gold and the answer differ; `train`, `heldout`: numbers of scored rows that have it."""

    values: dict[str, int]
    gold: int
    answer: int
    train: int
    heldout: int


class VariableComparison(msgspec.Struct, frozen=True):
    """A variable in gold and in the answer.

    gold, answer: formulas, "" if it is a root; gold_parents, answer_parents: functional parents
    num_assignments: over the parents of both; assignments: those at which the two differ, None beyond MAX_UNION parents
    contradicted: whether some scored training row has such an assignment
    """

    name: str
    relation: Relation
    gold: str
    answer: str
    gold_parents: tuple[str, ...]
    answer_parents: tuple[str, ...]
    num_assignments: int
    assignments: tuple[Assignment, ...] | None
    contradicted: bool

    @property
    def is_wrong(self) -> bool:
        """Whether it has a mechanism in both, with another local function."""
        return self.relation in ("other function", "other parents")

    @property
    def num_never_shown(self) -> int:
        return sum(row.train == 0 for row in self.assignments or ())


class HeldoutMismatch(msgspec.Struct, frozen=True):
    """The first wrong held-out cell: worlds and rows in file order, variables in gold's order.

    row: index in the world; values: observed values of the parents of both formulas in that row
    is_own_fault: whether the mechanism is wrong at the observed values; if not, the answer's values of `inherited` are
    """

    world: str
    row: int
    variable: str
    intervention: str
    values: dict[str, int]
    expected: int
    predicted: int
    is_own_fault: bool
    inherited: tuple[str, ...]


class Totals(msgspec.Struct, frozen=True):
    """Sizes and numbers of mentions of gold and answer, and the answer's shares of exact worlds and right cells.

    None for a share without worlds
    """

    gold_size: int
    answer_size: int
    gold_references: int
    answer_references: int
    train_world: float | None
    heldout_world: float | None
    train_cells: float | None
    heldout_cells: float | None


class SubmittedExperiment(msgspec.Struct, frozen=True):
    """Experiment and witness of an Alternative-SCM answer; rates are None if it was not evaluated."""

    experiment: str
    witness_valid: bool | None
    disagreement_rate: float | None
    cell_difference_rate: float | None
    failure: str


class FailureWhy(Why, frozen=True, kw_only=True):
    """The reason why an answer fails, or that it does not.

    system: name of the answer's system; target: "gold", or "reference" of an Alternative-SCM item
    """

    system: str
    target: str
    variables: tuple[VariableComparison, ...]
    mismatch: HeldoutMismatch | None
    totals: Totals
    experiment: SubmittedExperiment | None


def explain_failure(problem: Problem, score: Score, system: str, decision: HeldoutDecision | None = None) -> FailureWhy:
    """Compare a valid answer with gold or the reference; `ValueError` if the answer is invalid or there is no gold.

    decision: whether the training worlds decided the held-out ones; None if that was not counted
    """
    model = score.model
    if model is None:
        raise ValueError(f"the answer is not valid: {score.failure}")
    reference = problem.task.reference
    target = problem.sealed.gold if reference is None else reference
    if target is None:
        raise ValueError("the file has no gold SCM to compare with")
    comparisons = tuple(_compare(problem, target, model, variable) for variable in problem.task.variables)
    compared = tuple(c for c in comparisons if c.name in target.mechanisms or c.name in model.mechanisms)
    mismatch = _first_mismatch(problem, target, model)
    wrong = [c for c in compared if c.is_wrong]
    num_differing = str(sum(len(c.assignments or ()) for c in wrong))
    return FailureWhy(
        benchmark="replayscm",
        item=problem.id,
        title=_title(problem, score, wrong, decision),
        state="open" if wrong else "decided",
        reason=_reason(score, wrong, mismatch),
        facts=(*_facts(score, compared), *_decision_facts(decision)),
        open=tuple(c.name for c in compared if c.relation != "same"),
        decided=tuple(c.name for c in compared if c.relation == "same"),
        count=Count(lower=num_differing, upper=num_differing),
        class_in_words="assignments of functional parents at which the two differ",
        system=system,
        target="gold" if reference is None else "reference",
        variables=compared,
        mismatch=mismatch,
        totals=_totals(score, target, model),
        experiment=_experiment(score),
    )


def _title(problem: Problem, score: Score, wrong: list[VariableComparison], decision: HeldoutDecision | None) -> str:
    if not (score.correct and score.heldout_exact):
        return f"Why does this answer to {problem.id} fail?"
    luck = "" if decision is None or decision.decided else ", by luck"
    name = "an exact answer with another meaning" if wrong else "a right answer"
    return f"{problem.id}: {name}{luck}"


def _decision_facts(decision: HeldoutDecision | None) -> Iterator[Fact]:
    if decision is None:
        return
    remaining = "one answer" if decision.decided else "several answers"
    count_text = "1 SCM fits" if decision.members == 1 else f"{number_text(decision.members)} SCMs fit"
    yield Fact(
        f"the evidence left {remaining}: {count_text} ({decision.in_words})", "good" if decision.decided else "warn"
    )


def _compare(problem: Problem, target: Scm, model: Scm, variable: str) -> VariableComparison:
    gold, answer = target.mechanisms.get(variable), model.mechanisms.get(variable)
    gold_text, answer_text = ("" if formula is None else render(formula) for formula in (gold, answer))
    gold_parents, answer_parents = (
        scm.local_functions[variable].parents if variable in scm.mechanisms else () for scm in (target, model)
    )
    if gold is None or answer is None:
        relation: Relation = "root in gold" if gold is None else "root in the answer"
        return VariableComparison(
            variable, relation, gold_text, answer_text, gold_parents, answer_parents, 0, (), contradicted=False
        )
    first, second = target.local_functions[variable], model.local_functions[variable]
    union = natural({*gold_parents, *answer_parents})
    rows = tuple(_differing(problem, variable, union, first, second)) if len(union) <= MAX_UNION else None
    return VariableComparison(
        variable,
        _relation(first, second),
        gold_text,
        answer_text,
        gold_parents,
        answer_parents,
        1 << len(union),
        rows,
        contradicted=is_contradicted(problem.task.training, model, variable),
    )


def _relation(first: LocalFunction, second: LocalFunction) -> Relation:
    if first == second:
        return "same"
    return "other function" if first.parents == second.parents else "other parents"


def is_contradicted(training: Panel, model: Scm, variable: str) -> bool:
    """Return whether a mechanism is wrong at the observed values of some scored row."""
    computed = compute(model.mechanisms[variable], training.columns, training.all_rows)
    return bool((computed ^ training.columns[variable]) & ~training.clamped[variable] & training.all_rows)


def _differing(
    problem: Problem, variable: str, union: tuple[str, ...], first: LocalFunction, second: LocalFunction
) -> Iterator[Assignment]:
    """Yield the assignments at which two local functions differ, the first parent as the highest digit."""
    for index in range(1 << len(union)):
        bits = f"{index:0{len(union)}b}" if union else ""
        values = {parent: int(bit) for parent, bit in zip(union, bits, strict=True)}
        gold, answer = _value(first, values), _value(second, values)
        if gold != answer:
            counts = (_num_rows(panel, variable, values) for panel in (problem.task.training, problem.sealed.heldout))
            yield Assignment(values, gold, answer, *counts)


def _value(local: LocalFunction, values: Mapping[str, int]) -> int:
    row = sum(values[parent] << index for index, parent in enumerate(local.parents))
    return local.table.bits >> row & 1


def _num_rows(panel: Panel, variable: str, values: Mapping[str, int]) -> int:
    """Count the scored rows of a variable in which the other variables have these values."""
    rows = panel.all_rows & ~panel.clamped[variable]
    for name, value in values.items():
        rows &= panel.columns[name] if value else ~panel.columns[name]
    return rows.bit_count()


def _first_mismatch(problem: Problem, target: Scm, model: Scm) -> HeldoutMismatch | None:
    """Return the first wrong held-out cell by row-by-row replay; None if every cell is right."""
    position = {name: k for k, name in enumerate(problem.sealed.latent_order)}
    variables = sorted(model.mechanisms, key=lambda name: position.get(name, len(position)))
    for world in problem.sealed.heldout.worlds:
        free = [name for name in variables if name not in world.intervention.targets]
        for index, observed in enumerate(world.rows()):
            values = replay_row(model, world, observed)
            for variable in free:
                if values[variable] == observed[variable]:
                    continue
                formula = model.mechanisms[variable]
                is_own_fault = evaluate(formula, {u: observed[u] for u in formula.mentioned}) != observed[variable]
                parents = {*model.local_functions[variable].parents}
                if variable in target.mechanisms:
                    parents |= {*target.local_functions[variable].parents}
                return HeldoutMismatch(
                    world.id,
                    index,
                    variable,
                    str(world.intervention),
                    {u: observed[u] for u in natural(parents)},
                    observed[variable],
                    values[variable],
                    is_own_fault,
                    tuple(u for u in natural(set(formula.mentioned)) if values[u] != observed[u]),
                )
    return None


def _totals(score: Score, target: Scm, model: Scm) -> Totals:
    train, heldout = score.train, score.heldout
    gold_references, answer_references = (
        sum(len(formula.mentioned) for formula in scm.mechanisms.values()) for scm in (target, model)
    )
    return Totals(
        target.size,
        model.size,
        gold_references,
        answer_references,
        None if train is None else train.world_accuracy,
        None if heldout is None else heldout.world_accuracy,
        None if train is None else train.accuracy,
        None if heldout is None else heldout.accuracy,
    )


def _experiment(score: Score) -> SubmittedExperiment | None:
    alternative = score.alternative
    if alternative is None:
        return None
    separation = alternative.separation
    return SubmittedExperiment(
        "not understood" if alternative.experiment is None else str(alternative.experiment.to_dict()["assignments"]),
        alternative.witness_valid,
        None if separation is None else float(separation.disagreement_rate),
        None if separation is None else float(separation.cell_rate),
        alternative.failure or "",
    )


def _reason(score: Score, wrong: list[VariableComparison], mismatch: HeldoutMismatch | None) -> tuple[Span, ...]:
    if not wrong:
        return spans("Every mechanism means the same.")
    names = listed([c.name for c in wrong])
    never = [c for c in wrong if not c.contradicted]
    verb = "has" if len(wrong) == 1 else "have"
    first = spans((names,), f" {verb} another local function. ")
    if len(never) == len(wrong):
        second = "No scored training row has an assignment at which they differ."
    elif never:
        second = f"Training rows contradict {listed([c.name for c in wrong if c.contradicted])}."
    else:
        second = f"Training rows contradict {'it' if len(wrong) == 1 else 'each of them'}."
    third = ""
    if mismatch is not None:
        fault = "its own fault" if mismatch.is_own_fault else f"the fault of {listed(mismatch.inherited)}"
        third = f" The first wrong held-out cell is {mismatch.variable} in {mismatch.world}, {fault}."
    elif score.heldout_exact:
        third = " All training and held-out cells are right."
    return (*first, *spans(second, third))


def _facts(score: Score, compared: tuple[VariableComparison, ...]) -> Iterator[Fact]:
    same = sum(c.relation == "same" for c in compared)
    yield Fact(f"{same} of {len(compared)} variables the same", "good" if same == len(compared) else "warn")
    yield Fact("train-exact" if score.train_exact else "not train-exact", "good" if score.train_exact else "bad")
    yield Fact(
        "held-out exact" if score.heldout_exact else "not held-out exact", "good" if score.heldout_exact else "bad"
    )
    wrong = [c for c in compared if c.is_wrong]
    never = sum(not c.contradicted for c in wrong)
    if wrong:
        yield Fact(f"{never} never shown, {len(wrong) - never} contradicted by training", "warn")
    if score.roots is not None and not score.roots.exact:
        yield Fact("other root set", "bad")
