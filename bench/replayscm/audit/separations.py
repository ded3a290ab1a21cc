"""Separation of SCMs of one instance: every single-variable hard intervention, its rates, and a witness."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import Any

from calibrant.audits.replayscm.ambiguity import sized_class
from calibrant.audits.replayscm.findings import PairAudit, TargetSeparation
from calibrant.audits.replayscm.items import mechanism_texts
from calibrant.bench.pages.terminal_tables import aligned
from calibrant.bench.replayscm.items import require_plain
from calibrant.bench.replayscm.options import SeparateOptions
from calibrant.bench.replayscm.pages import find_instance
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.parse_limits import TooLargeError, load_json, read_bounded
from calibrant.dsl.replayscm.alternatives import Experiment, PairwiseExperiments, Separation, witness_for
from calibrant.dsl.replayscm.generation.strata import MAX_TARGETS
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.replayscm.pools.files import read_pool
from calibrant.dsl.replayscm.reference import first_mismatch
from calibrant.dsl.replayscm.scm import Scm, scm
from calibrant.dsl.replayscm.submission import Rejection, Submission, SubmissionChecker
from calibrant.dsl.text import plural
from calibrant.solvers.replayscm.members import SmallestMembers, smallest_members
from calibrant.solvers.replayscm.space import VersionSpace

MAX_SETS_SHOWN = 20  # target sets that are printed; JSON has all of them
MAX_ROOTS = 16  # experiments are simulated over every assignment of the roots


@dataclass(frozen=True)
class SeparatedPair:
    """Two SCMs, and the single-variable interventions that separate them.

    best: the intervention with the highest rate; witness: a root assignment under `best` at which the two differ
    target_sets: interventions on sets of variables (audits.replayscm.findings); empty unless requested
    """

    names: tuple[str, str]
    models: tuple[Scm, Scm]
    separating: tuple[Separation, ...]
    best: Separation
    witness: dict[str, Any] | None
    target_sets: tuple[TargetSeparation, ...] = ()

    def __repr__(self) -> str:
        best = f"{_intervention(self.best.experiment)} shows most, {self.best.disagreement_rate:.4f}"
        summary = (
            f"{len(self.separating)} interventions separate them, {best}" if self.separating else "none separates them"
        )
        return f"<SeparatedPair {self.names[0]}, {self.names[1]}: {summary}>"

    def to_dict(self) -> dict[str, Any]:
        """Return a dictionary for JSON; `best` and `witness` are None if no intervention separates the two."""
        return {
            "reference": {"name": self.names[0], "mechanisms": mechanism_texts(self.models[0])},
            "alternative": {"name": self.names[1], "mechanisms": mechanism_texts(self.models[1])},
            "same_meaning": self.models[0].equivalent(self.models[1]),
            "separating": [_rates(separation) for separation in self.separating],
            "best": _rates(self.best) if self.best.separates else None,
            "witness": self.witness,
            "target_sets": [asdict(target_set) for target_set in self.target_sets],
        }


def separate_pair(names: tuple[str, str], models: tuple[Scm, Scm], *, max_targets: int = 1) -> SeparatedPair:
    """Rate every single-variable intervention on two SCMs; `CalibrantError` if their roots differ or are too many.

    max_targets: above 1, also rate every set of at most max_targets variables
    """
    if models[0].roots != models[1].roots:
        raise CalibrantError(f"{names[0]} and {names[1]} have different roots; no shared experiment compares them")
    if len(models[0].roots) > MAX_ROOTS:
        raise CalibrantError(f"{len(models[0].roots)} roots: experiments are simulated for at most {MAX_ROOTS}")
    pair = PairwiseExperiments(*models)
    separations = pair.separations()
    best = pair.best()
    witness = witness_for(pair, best.experiment)
    target_sets = PairAudit(*models, max_targets=max_targets).any_targets if max_targets > 1 else ()
    return SeparatedPair(names, models, tuple(s for s in separations if s.separates), best, witness, target_sets)


def smallest_of_class(problem: Problem, num_members: int, max_parents: int) -> SmallestMembers:
    """Return the smallest members of the class; `CalibrantError` beyond 4 parents or 15 formula nodes."""
    try:
        return smallest_members(VersionSpace(problem.task, sized_class(problem.task, max_parents)), num_members)
    except ValueError as error:
        raise CalibrantError(f"{problem.id}: {error}") from None


def member_pairs(models: Sequence[Scm], *, max_targets: int = 1) -> list[SeparatedPair]:
    """Separate all pairs of members over the same roots, named by their rank in size."""
    numbered = enumerate(models, 1)
    return [
        separate_pair((f"member {i}", f"member {j}"), (first, second), max_targets=max_targets)
        for (i, first), (j, second) in combinations(numbered, 2)
        if first.roots == second.roots
    ]


def closing_text(pairs: Sequence[SeparatedPair], max_targets: int) -> str:
    """Return one line on the intervention that separates the most pairs; ties go to the highest mean rate.

    Interventions set single variables if max_targets is 1, else every set of at most max_targets variables.
    """
    different = [pair for pair in pairs if not pair.models[0].equivalent(pair.models[1])]
    if not different:
        return "closes most: there is nothing to tell apart"
    rates: dict[str, list[float]] = {}
    for pair in different:
        for name, share in _named_rates(pair, max_targets):
            rates.setdefault(name, []).append(share)
    # of equal interventions, the first
    best = max(rates, key=lambda name: (len(rates[name]), fmean(rates[name])), default=None)
    num_separated = len(rates[best]) if best else 0
    can_try_more = num_separated < len(different) and max_targets < MAX_TARGETS
    hint = f"; --targets {max_targets + 1} tries so many variables at once" if can_try_more else ""
    if best is None:
        return f"closes most: nothing that was tried separates any pair{hint}"
    rate = f"rate {fmean(rates[best]):.4f}"
    if len(different) == 1:
        return f"closes most: {best}, {rate}"
    return f"closes most: {best} separates {num_separated} of {plural(len(different), 'pairs')}, mean {rate}{hint}"


def _named_rates(pair: SeparatedPair, max_targets: int) -> list[tuple[str, float]]:
    """Return (text of an intervention, rate) for each one that separates a pair: target sets if max_targets > 1."""
    if max_targets == 1:
        return [(_intervention(separation.experiment), separation.disagreement_rate) for separation in pair.separating]
    target_sets = [(separation.targets, separation.disagreement_rate) for separation in pair.target_sets]
    return [(f"per-row values of {', '.join(t)}" if t else "no intervention", rate) for t, rate in target_sets]


def against_file(problem: Problem, path: Path, *, max_targets: int = 1) -> SeparatedPair:
    """Separate the SCM of an answer file from the instance's reference, or gold without one."""
    name, model = known_model(problem)
    return separate_pair((name, path.name), (model, answer_scm(problem, path)), max_targets=max_targets)


def known_model(problem: Problem) -> tuple[str, Scm]:
    """Return (name, SCM) with which answers are compared: the instance's reference, else gold."""
    name = "reference" if problem.task.reference is not None else "gold"
    model = problem.task.reference or problem.sealed.gold
    if model is None:
        raise CalibrantError(f"{problem.id} has neither a reference nor gold; compare members instead")
    return name, model


def answer_scm(problem: Problem, path: Path) -> Scm:
    """Return the SCM of a JSON answer, by the published checks of an answer."""
    try:
        answer = load_json(read_bounded(path))
    except TooLargeError as error:
        raise CalibrantError(f"{path}: {error}") from None
    except (ValueError, RecursionError) as error:
        raise CalibrantError(f"{path}: not JSON: {error}") from None
    if not isinstance(answer, dict):
        raise CalibrantError(f"{path}: not a JSON object with 'mechanisms'")
    model = submitted_scm(problem, answer)
    if isinstance(model, Rejection):
        raise CalibrantError(f"{path}: {model.reason}")
    return model


def submitted_scm(problem: Problem, answer: Mapping[str, Any]) -> Scm | Rejection:
    """Return the SCM of an answer by the published checks, or the reason why it is invalid."""
    submission = _read_submission(problem, answer)
    return submission if isinstance(submission, Rejection) else scm(submission.roots, submission.candidate.mechanisms)


def _read_submission(problem: Problem, answer: Mapping[str, Any]) -> Submission | Rejection:
    checker = SubmissionChecker(problem)
    if problem.task.disclosure.roots is None:
        roots = checker.roots(answer)
        return roots if isinstance(roots, Rejection) else checker.given_roots(roots, answer["mechanisms"])
    return checker.alternative(answer) if "alternative" in answer else checker.mechanisms(answer)


def fit_text(problem: Problem, model: Scm) -> str:
    """Return a phrase on whether an SCM replays the training worlds, with the first mismatch."""
    cell = first_mismatch(model, problem.task.training.worlds)
    return "fits the training worlds" if cell is None else f"does not fit: {cell.variable} in world {cell.world}"


def pair_text(pair: SeparatedPair) -> str:
    """Return a pair as text: mechanisms that differ, interventions, witness and target sets."""
    lines = [f"{pair.names[0]} against {pair.names[1]}"]
    first, second = mechanism_texts(pair.models[0]), mechanism_texts(pair.models[1])
    for variable in pair.models[0].endogenous:
        if first[variable] != second[variable]:
            lines.append(f"  {variable} = {first[variable]}   |   {second[variable]}")
    if not pair.separating:
        is_equivalent = pair.models[0].equivalent(pair.models[1])
        no_separation = "  no single-variable intervention separates them"
        lines.append(
            "  the same model"
            if is_equivalent
            else no_separation
            if pair.target_sets
            else f"{no_separation}; --targets 2 tries two at once"
        )
        return "\n".join([*lines, *_target_lines(pair)])
    rows = [
        [
            _intervention(s.experiment),
            f"{s.disagreement_rate:.4f}",
            f"{s.cell_rate:.4f}",
            "best" if s == pair.best else "",
        ]
        for s in pair.separating
    ]
    table = aligned(["intervention", "rate", "cells", ""], rows).split("\n")
    lines += [
        *(f"  {line}".rstrip() for line in table),
        f"  witness  {witness_text(pair.witness, pair.best.experiment)}",
    ]
    return "\n".join([*lines, *_target_lines(pair)])


def _target_lines(pair: SeparatedPair) -> list[str]:
    """Return the first MAX_SETS_SHOWN target sets that separate, fewest targets first, as table lines."""
    if not pair.target_sets:
        return []
    rows = [
        [
            f"{{{', '.join(target_set.targets)}}}",
            f"{target_set.disagreement_rate:.4f}",
            " ".join(f"{name}={bit}" for name, bit in target_set.constants.items()),
            f"{target_set.constants_rate:.4f}",
        ]
        for target_set in pair.target_sets[:MAX_SETS_SHOWN]
    ]
    table = aligned(["targets", "rate", "constants", "rate"], rows).split("\n")
    num_hidden = len(pair.target_sets) - len(rows)
    return [
        *(f"  {line}".rstrip() for line in table),
        *([f"  and {num_hidden} more sets of targets"] if num_hidden else []),
    ]


def witness_text(witness: dict[str, Any] | None, experiment: Experiment) -> str:
    """Return a witness in one line: intervention and root assignment, then the values of each model under both."""
    if witness is None:
        return "none"
    roots = " ".join(f"{root}={bit}" for root, bit in witness["rootAssignment"].items())
    differences = ", ".join(f"{d['variable']} is {d['reference']} | {d['alternative']}" for d in witness["differences"])
    return f"{_intervention(experiment)}, {roots}: {differences}"


def _intervention(experiment: Experiment) -> str:
    return f"do({experiment.variable}={experiment.value})"


def _rates(separation: Separation) -> dict[str, Any]:
    rates = {"disagreement_rate": separation.disagreement_rate, "cell_rate": separation.cell_rate}
    return {"experiment": separation.experiment.to_dict(), **rates}


# --- Separation of two SCMs of one problem, as `calibrant separate` prints it -----------------------------------------


@dataclass(frozen=True)
class SeparationText:
    """Implements SeparationReport (bench.pools.capabilities).

    notes: lines on which SCMs were compared; targets: largest number of variables set at once
    """

    instance: str
    pairs: Sequence[SeparatedPair]
    notes: Sequence[str]
    targets: int

    def to_dict(self) -> Mapping[str, Any]:
        return {"instance": self.instance, "notes": self.notes, "pairs": [pair.to_dict() for pair in self.pairs]}

    def text(self) -> str:
        return "\n\n".join([*map(pair_text, self.pairs), *self.notes, closing_text(self.pairs, self.targets)])


def separate(pool: Path, instance: str, against: Path | None, options: SeparateOptions) -> SeparationText:
    """Compare the smallest consistent SCMs, or an answer with the reference or gold."""
    problem = find_instance(read_pool(pool, keep_results=False), instance)
    require_plain([problem], "`separate`")
    targets = options.targets
    if against:
        pairs = [against_file(problem, against, max_targets=targets)]
        notes = [f"{against.name} {fit_text(problem, pairs[0].models[1])}"]
    else:
        members = smallest_of_class(problem, options.members, options.max_parents)
        pairs = member_pairs(members.models, max_targets=targets)
        qualifier = "smallest" if members.more else "only"
        summary = f"{len(members.models)} {qualifier} members, {options.max_parents} parents at most"
        notes = [f"{summary}; {plural(len(pairs), 'pairs')} with the same roots"]
    return SeparationText(problem.id, pairs, notes, targets)


SEPARATE = separate
