"""Hardening of a whole pool, parallel over instances, resumable; the same bytes whatever the number of workers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from calibrant.audits.replayscm.ambiguity import gold_class, restrict_to_grammar
from calibrant.audits.replayscm.hardening.harden import Hardening, counterexample_worlds, extra_worlds
from calibrant.audits.replayscm.hardening.limits import HardeningGoal
from calibrant.audits.replayscm.hardening.steps import AddedWorld
from calibrant.audits.replayscm.patterns import latent_scm
from calibrant.bench.replayscm.extended.plain import require_plain
from calibrant.bench.replayscm.pages import chosen_places
from calibrant.bench.replayscm.pools.known_alternatives import (
    CheckedAlternatives,
    SuppliedAnswer,
    by_instance,
    checked_alternatives,
)
from calibrant.bench.replayscm.pools.unfinished import Made, unfinished_pool
from calibrant.bench.runs.jobs import HERE, Execution, Jobs, Progress
from calibrant.bench.runs.records import config_digest
from calibrant.bench.runs.runner import EVERYTHING, Selection
from calibrant.dsl.records import file_digest
from calibrant.dsl.replayscm.item import Pool, Problem
from calibrant.dsl.replayscm.pools.files import as_written, read_pool
from calibrant.dsl.text import natural_key
from calibrant.solvers.budget import BudgetSpent
from calibrant.solvers.outcome import Found, Impossible
from calibrant.solvers.replayscm.space import ModelClass, VersionSpace

Mode: TypeAlias = Literal["extra-worlds", "cex"]
GoalName: TypeAlias = Literal["one-member", "heldout-agreement"]
GOALS: Mapping[GoalName, HardeningGoal] = {
    "one-member": HardeningGoal.SINGLE_MEMBER,
    "heldout-agreement": HardeningGoal.HELDOUT_AGREEMENT,
}


@dataclass(frozen=True, slots=True)
class HardenOptions:
    """Options of hardening, the same for every instance.

    max_parents: the class whose members are counted; by default the smallest that contains gold, at least 4
    goal: of the mode cex
    """

    mode: Mode
    seed: int
    max_parents: int | None = None
    goal: GoalName = "one-member"

    def class_of(self, problem: Problem) -> ModelClass:
        """Return the class of an instance; `ValueError` without gold."""
        if self.max_parents is None:
            return gold_class(problem)
        return restrict_to_grammar(ModelClass(self.max_parents), problem.task.grammar)


@dataclass(frozen=True)
class HardenJob:
    """One instance to harden, with the answers that were supplied to it; can be sent to another process."""

    problem: Problem
    options: HardenOptions
    supplied: tuple[SuppliedAnswer, ...] = ()


@dataclass(frozen=True)
class HardenedPool:
    """The hardened pool and one report line per instance, in its order."""

    pool: Pool
    reports: Sequence[dict[str, Any]]

    @property
    def num_short(self) -> int:
        """Return how many did not get what was asked for: proved impossible, out of budget, or failed."""
        return sum(report["outcome"] not in ("reached", "done") for report in self.reports)


@contextmanager
def hardened_pool(
    path: Path,
    out: Path,
    options: HardenOptions,
    *,
    alternatives: Sequence[SuppliedAnswer] = (),
    selection: Selection = EVERYTHING,
    execution: Execution = HERE,
    progress: Progress = lambda name, done, total: None,
) -> Iterator[HardenedPool]:
    """Every selected instance hardened, for the block to write to `out`; held-out worlds and gold stay as they are.

    What is done is kept beside `out` until the block has succeeded, so that the same call goes on after a kill.
    """
    source = read_pool(path, keep_results=False)
    supplied = by_instance(alternatives)
    places = {name: place for place, name in chosen_places(source, selection).items()}

    def job(name: str) -> HardenJob:
        problem = source.problems[places[name]]
        require_plain([problem], "`harden`")
        return HardenJob(problem, options, tuple(supplied.get(name, ())))

    jobs = Jobs(places, job)
    how = {**asdict(options), "of": file_digest(path)}
    if len(jobs) < len(source):
        how["instances"] = list(jobs)
    if alternatives:
        how["alternatives"] = config_digest({name: [s.answer for s in supplied.get(name, ())] for name in jobs})
    with unfinished_pool(out, {"harden": how, "lines": [alternative.line for alternative in alternatives]}) as work:
        results = work.make(source.name, jobs, harden_instance, execution=execution, progress=progress)
        yield HardenedPool(Pool(source.name, results.problems, {**source.metadata, "hardened": how}), results.reports)


def harden_instance(job: HardenJob) -> Made:
    """Harden one instance. That it has no gold is its outcome; it is then unchanged."""
    problem, options = job.problem, job.options
    place = {"instance": problem.id, "setting": problem.setting, "stratum": problem.stratum, "mode": options.mode}
    if problem.task.reference is not None:
        why = "it asks for an alternative to a reference, and hardening would leave none"
        return Made(problem, place | {"outcome": "failed", "why": why})
    try:
        model_class = options.class_of(problem)
        wide = [v for v, f in latent_scm(problem).local_functions.items() if len(f.parents) > model_class.max_parents]
        if wide:
            return Made(problem, place | _outside(problem, model_class, min(wide, key=natural_key)))
        harden = _by_counterexamples if options.mode == "cex" else _by_extra_worlds
        hardened, outcome = harden(job, model_class)
    except ValueError as error:
        return Made(problem, place | {"outcome": "failed", "why": str(error)})
    except BudgetSpent as spent:
        return Made(problem, place | {"outcome": "out_of_budget", "why": f"the members cannot be counted: {spent}"})
    return Made(hardened, place | {"class": model_class.describe(problem.task)} | outcome)


def _outside(problem: Problem, model_class: ModelClass, wide: str) -> dict[str, Any]:
    """Report that no world can help: gold, from which worlds are simulated, is outside the class."""
    parents = len(latent_scm(problem).local_functions[wide].parents)
    why = f"{wide} has {parents} functional parents in gold, so gold is not in the class, whatever worlds are added"
    return {"class": model_class.describe(problem.task), "outcome": "impossible", "why": why}


def _by_counterexamples(job: HardenJob, model_class: ModelClass) -> tuple[Problem, dict[str, Any]]:
    problem = job.problem
    checked = checked_alternatives(problem, job.supplied)
    goal, models = GOALS[job.options.goal], list(checked.models.values())
    hardening = counterexample_worlds(
        problem, job.options.seed, alternatives=models, model_class=model_class, goal=goal
    )
    match hardening.outcome:
        case Found():
            outcome, why = "reached", ""
        case Impossible(exhausted):
            outcome, why = "impossible", exhausted
        case spent:
            outcome, why = "out_of_budget", spent.reached
    summary = {
        "outcome": outcome,
        "why": why,
        **_before_and_after(problem, hardening.problem, hardening.before.members, hardening.after.members),
        "steps": [_step(step) for step in hardening.added],
        "least_members": str(hardening.least_members),
        "coverage": [float(hardening.before.coverage), float(hardening.after.coverage)],
        "heldout_agreement": [str(hardening.before.agreement), str(hardening.after.agreement)],
    }
    if job.supplied:
        summary["alternatives"] = _describe_alternatives(checked, hardening)
    return hardening.problem, summary


def _step(step: AddedWorld) -> dict[str, Any]:
    """Why a world was added: what it reduced, from how many to how many, and the members that it leaves."""
    counts = [str(step.before), str(step.after)]
    return {"world": step.draw.world.id, "for": step.objective, "left": counts, "members": str(step.members)}


def _describe_alternatives(checked: CheckedAlternatives, hardening: Hardening) -> list[dict[str, Any]]:
    """Report the outcome of every supplied line, in order of the lines."""
    rows = [{"line": line, "outcome": "refused", "world": "", "why": why} for line, why in checked.refused.items()]
    for line, alternative in zip(checked.models, hardening.alternatives, strict=True):
        outcome = "separated" if alternative.world else "not_separated"
        rows.append({"line": line, "outcome": outcome, "world": alternative.world, "why": alternative.why})
    return sorted(rows, key=lambda row: int(row["line"]))


def _by_extra_worlds(job: HardenJob, model_class: ModelClass) -> tuple[Problem, dict[str, Any]]:
    problem = job.problem
    hardened = extra_worlds(problem, job.options.seed)
    before, after = (VersionSpace(as_written(version).task, model_class).count for version in (problem, hardened))
    return hardened, {"outcome": "done", "why": "", **_before_and_after(problem, hardened, before, after)}


def _before_and_after(before: Problem, after: Problem, members: int, num_left: int) -> dict[str, Any]:
    added = after.task.training.worlds[len(before.task.training.worlds) :]
    return {
        "worlds": [len(before.task.training.worlds), len(after.task.training.worlds)],
        "members": [str(members), str(num_left)],
        "added": [{"id": world.id, "intervention": str(world.intervention)} for world in added],
    }
