"""Hardening of ReplaySCM pools: worlds simulated from gold are added until one SCM of the class is left.

A file of alternatives has a JSON object a line: {"instance": id, "mechanisms": {variable: formula}}, with "roots" if
these are hidden. A line that is no alternative is reported with the reason.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from statistics import fmean, median
from typing import Any, Literal, TypeAlias

import msgspec

from calibrant.audits.replayscm.ambiguity import gold_class, restrict_to_grammar
from calibrant.audits.replayscm.bounded import latent_scm
from calibrant.audits.replayscm.hardening.harden import (
    AddedWorld,
    Discoveries,
    Hardening,
    Search,
    SearchResult,
    counterexample_worlds,
    extra_worlds,
)
from calibrant.audits.replayscm.hardening.objectives import HardeningGoal, SuppliedAlternative
from calibrant.bench.core.benchmark import TaskHandout, load_benchmark
from calibrant.bench.core.options import OptionError
from calibrant.bench.pools.capabilities import Hardened, HardenRequest
from calibrant.bench.protocols import Protocol, chosen_protocols, protocols_of
from calibrant.bench.replayscm.alternatives import ALTERNATIVES
from calibrant.bench.replayscm.audit.records import write_certificates
from calibrant.bench.replayscm.audit.separations import submitted_scm
from calibrant.bench.replayscm.items import require_plain
from calibrant.bench.replayscm.options import HardenOptions as HardenArguments
from calibrant.bench.replayscm.pages import selected_ids
from calibrant.bench.replayscm.pools.unfinished import Made, unfinished_pool
from calibrant.bench.replayscm.rows.exact import scm_answer
from calibrant.bench.runs.executors import HERE, Execution, Jobs, Progress
from calibrant.bench.runs.records import config_digest
from calibrant.bench.runs.runner import EVERYTHING, Selection
from calibrant.bench.runs.workers import crash_text, timed_answer
from calibrant.dsl.atomic_write import write_pieces
from calibrant.dsl.errors import CalibrantError, in_one_line, short_repr
from calibrant.dsl.parse_limits import MAX_JSON_BYTES, TooLargeError, json_fault, load_json
from calibrant.dsl.records import file_digest
from calibrant.dsl.replayscm.generation.strata import STRATA
from calibrant.dsl.replayscm.item import BENCHMARK, Pool, Problem, Task
from calibrant.dsl.replayscm.pools.files import as_written, read_pool, write_pool
from calibrant.dsl.replayscm.reference import first_mismatch
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.replayscm.submission import Rejection
from calibrant.dsl.text import natural_key, plural
from calibrant.solvers.outcome import BudgetSpent, Found, Impossible
from calibrant.solvers.replayscm.space import ModelClass, VersionSpace

# --- Supplied alternatives: consistent SCMs other than gold, which hardening has to separate from it ------------------


@dataclass(frozen=True, slots=True)
class SuppliedAnswer:
    """One line of the file: a submission to one instance.

    line: number of the line; systems: methods and models that gave the answer, if the line states them
    """

    line: int
    instance: str
    answer: dict[str, Any]
    systems: tuple[str, ...] = ()


@dataclass(frozen=True)
class CheckedAlternatives:
    """Checked alternatives to one instance.

    models: line number -> alternative; refused: line number -> why the answer is no alternative
    """

    models: dict[int, Scm]
    refused: dict[int, str]


def read_alternatives(path: Path) -> list[SuppliedAnswer]:
    """Return the alternatives of a file, skipping blank lines; `CalibrantError` names an invalid line."""
    with path.open(encoding="utf-8", errors="strict") as lines:
        # one character above the limit, so that `load_json` refuses a longer line and memory stays bounded
        bounded = iter(partial(lines.readline, MAX_JSON_BYTES + 1), "")
        try:
            return [_read_answer(path, number, line) for number, line in enumerate(bounded, 1) if line.strip()]
        except UnicodeDecodeError as error:
            raise CalibrantError(f"{path}: not UTF-8 at byte {error.start}") from None


def _read_answer(path: Path, number: int, line: str) -> SuppliedAnswer:
    try:
        record = load_json(line)
    except TooLargeError as error:
        raise CalibrantError(f"{path}: line {number}: {error}") from None
    except (ValueError, RecursionError) as error:
        raise CalibrantError(f"{path}: line {number}: {json_fault(error)}") from None
    if not isinstance(record, dict) or not isinstance(record.get("instance"), str):
        raise CalibrantError(f"{path}: line {number}: not an object with 'instance' and 'mechanisms'")
    if not isinstance(record.get("mechanisms"), dict):
        shown_mechanisms = short_repr(record.get("mechanisms"))
        raise CalibrantError(
            f"{path}: line {number}: 'mechanisms' is {shown_mechanisms}, not an object of variable: formula"
        )
    systems = record.get("systems", [])
    if not isinstance(systems, list) or not all(isinstance(system, str) for system in systems):
        raise CalibrantError(f"{path}: line {number}: 'systems' is {short_repr(systems)}, not an array of names")
    answer = {key: record[key] for key in ("roots", "mechanisms") if key in record}
    return SuppliedAnswer(number, record["instance"], answer, tuple(systems))


def discovered_alternatives(paths: Sequence[Path]) -> list[SuppliedAnswer]:
    """Return the alternatives in files of `calibrant alternatives` and folders of `calibrant run`, lines renumbered."""
    supplied: list[SuppliedAnswer] = []
    for path in paths:
        if not path.is_dir():
            supplied += read_alternatives(path)
            continue
        for model in ALTERNATIVES.collect([path]).alternatives():
            systems = tuple(sorted(model.systems))
            supplied.append(SuppliedAnswer(0, model.instance, dict(model.answer or {}), systems))
    return [replace(answer, line=number) for number, answer in enumerate(supplied, 1)]


def check_alternatives(problem: Problem, supplied: Iterable[SuppliedAnswer]) -> CheckedAlternatives:
    """Check that answers are valid and train-exact, and differ in meaning from gold and from earlier ones."""
    checked = CheckedAlternatives({}, {})
    for answer in supplied:
        model = submitted_scm(problem, answer.answer)
        reason = model.reason if isinstance(model, Rejection) else _refusal_reason(problem, model, checked)
        if isinstance(model, Rejection) or reason:
            checked.refused[answer.line] = reason
        else:
            checked.models[answer.line] = model
    return checked


def _refusal_reason(problem: Problem, model: Scm, checked: CheckedAlternatives) -> str:
    cell = first_mismatch(model, problem.task.training.worlds)
    if cell is not None:
        return f"does not fit the training worlds: {cell.variable} in world {cell.world}"
    gold = problem.sealed.gold
    if gold is not None and gold.equivalent(model):
        return "means the same as gold"
    for line, earlier in checked.models.items():
        if earlier.equivalent(model):
            return f"means the same as line {line}"
    return ""


def group_by_instance(supplied: Sequence[SuppliedAnswer]) -> dict[str, list[SuppliedAnswer]]:
    """Return the answers to each instance, in the order of their lines."""
    answers: dict[str, list[SuppliedAnswer]] = {}
    for answer in supplied:
        answers.setdefault(answer.instance, []).append(answer)
    return answers


# --- Hardening of a whole pool, parallel over instances, resumable; equal bytes for any number of workers -------------
Mode: TypeAlias = Literal["extra-worlds", "cex"]
GoalName: TypeAlias = Literal["one-member", "heldout-agreement", "no-discovered"]
GOALS: Mapping[GoalName, HardeningGoal] = {
    "one-member": HardeningGoal.SINGLE_MEMBER,
    "heldout-agreement": HardeningGoal.HELDOUT_AGREEMENT,
    "no-discovered": HardeningGoal.NONE_DISCOVERED,
}


@dataclass(frozen=True, slots=True)
class NamedSearches:
    """The searches of the goal no-discovered.

    names: methods of `calibrant run`, separated by commas
    num_seeds: number of runs of each method with an option `seed`, under the seeds 0, 1, ...
    """

    names: str
    num_seeds: int

    @property
    def protocols(self) -> list[tuple[str, Protocol]]:
        """(name, protocol) of every search, one for each seed; `UnknownNameError` for an unknown name."""
        searches: list[tuple[str, Protocol]] = []
        for protocol in chosen_protocols(protocols_of(load_benchmark(BENCHMARK)), self.names, {}):
            if "seed" in protocol.__struct_fields__:
                seeds = range(self.num_seeds)
                searches += [(f"{protocol.name}, seed {k}", msgspec.structs.replace(protocol, seed=k)) for k in seeds]
            else:
                searches.append((protocol.name, protocol))
        return searches

    def search(self, problem: Problem) -> Search:
        """Return a function: task -> results of all searches on it."""
        protocols = self.protocols

        def results(task: Task) -> Iterator[SearchResult]:
            hardened = replace(problem, task=task)
            for name, protocol in protocols:
                result = timed_answer(protocol, TaskHandout(task, BENCHMARK)).result
                if result.outcome == "crashed":
                    raise ValueError(f"{name} crashed: {crash_text(result.provenance)}")
                model = None if result.answer is None else submitted_scm(hardened, result.answer)
                yield SearchResult(name, result.outcome, None if isinstance(model, Rejection) else model)

        return results


@dataclass(frozen=True, slots=True)
class HardenOptions:
    """Options of hardening, the same for every instance.

    max_parents: largest number of parents in the counted class; None: the least one of at least 4 that gold needs
    goal: goal of mode cex; searches: searches of the goal no-discovered, None for other goals
    """

    mode: Mode
    seed: int
    max_parents: int | None = None
    goal: GoalName = "one-member"
    searches: NamedSearches | None = None

    def class_of(self, problem: Problem) -> ModelClass:
        """Return the class of an instance; `ValueError` without gold."""
        if self.max_parents is None:
            return gold_class(problem)
        return restrict_to_grammar(ModelClass(self.max_parents), problem.task.grammar)


@dataclass(frozen=True)
class HardenJob:
    """One instance to harden, with the answers supplied to it; picklable."""

    problem: Problem
    options: HardenOptions
    supplied: tuple[SuppliedAnswer, ...] = ()


@dataclass(frozen=True)
class HardenedPool:
    """The hardened pool, and a report for each instance, in the order of the pool."""

    pool: Pool
    reports: Sequence[dict[str, Any]]

    @property
    def num_unreached(self) -> int:
        """Number of instances that did not reach the goal: proved impossible, out of budget, or failed."""
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
    """Yield the pool with every selected instance hardened, for the caller's block to write to `out`.

    Held-out worlds and gold do not change. Results are stored beside `out` until the block succeeds, so that the same
    call resumes after a kill.
    """
    source = read_pool(path, keep_results=False)
    supplied = group_by_instance(alternatives)
    index_by_id = {name: index for index, name in selected_ids(source, selection).items()}

    def job(name: str) -> HardenJob:
        problem = source.problems[index_by_id[name]]
        require_plain([problem], "`harden`")
        return HardenJob(problem, options, tuple(supplied.get(name, ())))

    jobs = Jobs(index_by_id, job)
    description = {**asdict(options), "of": file_digest(path)}
    if options.searches is None:
        del description["searches"]  # other goals have no searches
    if len(jobs) < len(source):
        description["instances"] = list(jobs)
    if alternatives:
        description["alternatives"] = config_digest({name: [s.answer for s in supplied.get(name, ())] for name in jobs})
    with unfinished_pool(
        out, {"harden": description, "lines": [alternative.line for alternative in alternatives]}
    ) as work:
        results = work.make(source.name, jobs, harden_instance, execution=execution, progress=progress)
        yield HardenedPool(
            Pool(source.name, results.problems, {**source.metadata, "hardened": description}), results.reports
        )


def harden_instance(job: HardenJob) -> Made:
    """Harden one instance; one without gold is returned unchanged, with outcome `failed`."""
    problem, options = job.problem, job.options
    head = {"instance": problem.id, "setting": problem.setting, "stratum": problem.stratum, "mode": options.mode}
    if problem.task.reference is not None:
        why = "it asks for an alternative to a reference, and hardening would leave none"
        return Made(problem, head | {"outcome": "failed", "why": why})
    try:
        model_class = options.class_of(problem)
        too_wide = [
            v for v, f in latent_scm(problem).local_functions.items() if len(f.parents) > model_class.max_parents
        ]
        if too_wide:
            return Made(problem, head | _report_gold_outside(problem, model_class, min(too_wide, key=natural_key)))
        harden = _harden_by_counterexamples if options.mode == "cex" else _harden_by_extra_worlds
        hardened, outcome = harden(job, model_class)
    except ValueError as error:
        return Made(problem, head | {"outcome": "failed", "why": str(error)})
    except BudgetSpent as spent:
        return Made(problem, head | {"outcome": "out_of_budget", "why": f"the members cannot be counted: {spent}"})
    return Made(hardened, head | {"class": model_class.describe(problem.task)} | outcome)


def _report_gold_outside(problem: Problem, model_class: ModelClass, wide: str) -> dict[str, Any]:
    """Report that no world can reach the goal: gold is outside the class. wide: a variable of too many parents."""
    num_parents = len(latent_scm(problem).local_functions[wide].parents)
    why = f"{wide} has {num_parents} functional parents in gold, so gold is not in the class, whatever worlds are added"
    return {"class": model_class.describe(problem.task), "outcome": "impossible", "why": why}


def _harden_by_counterexamples(job: HardenJob, model_class: ModelClass) -> tuple[Problem, dict[str, Any]]:
    problem = job.problem
    checked = check_alternatives(problem, job.supplied)
    hardening = counterexample_worlds(
        problem,
        job.options.seed,
        alternatives=list(checked.models.values()),
        model_class=model_class,
        goal=GOALS[job.options.goal],
        search=None if job.options.searches is None else job.options.searches.search(problem),
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
        "steps": [_step_record(step) for step in hardening.added],
        "least_members": str(hardening.least_members),
        "coverage": [float(hardening.before.coverage), float(hardening.after.coverage)],
        "heldout_agreement": [str(hardening.before.agreement), str(hardening.after.agreement)],
    }
    if job.supplied:
        summary["alternatives"] = _describe_alternatives(checked, hardening)
    if hardening.discoveries is not None:
        summary |= _describe_discoveries(problem, hardening.discoveries, hardening.alternatives[len(checked.models) :])
    return hardening.problem, summary


def _step_record(step: AddedWorld) -> dict[str, Any]:
    """Return the record of an added world: its objective, the objective's counts before and after, the members left."""
    counts = [str(step.before), str(step.after)]
    return {"world": step.draw.world.id, "for": step.objective, "left": counts, "members": str(step.members)}


def _describe_alternatives(checked: CheckedAlternatives, hardening: Hardening) -> list[dict[str, Any]]:
    """Return the outcome of every supplied line, in the order of lines."""
    rows = [{"line": line, "outcome": "refused", "world": "", "why": why} for line, why in checked.refused.items()]
    # discovered alternatives follow the supplied ones
    for line, alternative in zip(checked.models, hardening.alternatives, strict=False):
        outcome = "separated" if alternative.world else "not_separated"
        rows.append({"line": line, "outcome": outcome, "world": alternative.world, "why": alternative.why})
    return sorted(rows, key=lambda row: int(row["line"]))


def _describe_discoveries(
    problem: Problem, discoveries: Discoveries, separations: Sequence[SuppliedAlternative]
) -> dict[str, Any]:
    """Report every discovered alternative with the world that separates it, and the outcomes of the last round."""
    discovered = [
        {"search": name, **scm_answer(problem.task.kind, model), "world": separation.world, "why": separation.why}
        for (name, model), separation in zip(discoveries.models, separations, strict=True)
    ]
    last_round: dict[str, dict[str, int]] = {}
    for result in discoveries.last:
        outcomes = last_round.setdefault(result.search.partition(", seed ")[0], {})
        outcomes[result.outcome] = outcomes.get(result.outcome, 0) + 1
    return {"discovered": discovered, "last_round": last_round}


def _harden_by_extra_worlds(job: HardenJob, model_class: ModelClass) -> tuple[Problem, dict[str, Any]]:
    problem = job.problem
    hardened = extra_worlds(problem, job.options.seed)
    before, after = (VersionSpace(as_written(version).task, model_class).count for version in (problem, hardened))
    return hardened, {"outcome": "done", "why": "", **_before_and_after(problem, hardened, before, after)}


def _before_and_after(before: Problem, after: Problem, num_before: int, num_after: int) -> dict[str, Any]:
    """Return the record of worlds and members before and after. num_before, num_after: numbers of members."""
    added = after.task.training.worlds[len(before.task.training.worlds) :]
    return {
        "worlds": [len(before.task.training.worlds), len(after.task.training.worlds)],
        "members": [str(num_before), str(num_after)],
        "added": [{"id": world.id, "intervention": str(world.intervention)} for world in added],
    }


PUBLISHED = "the published CEx has 8-11 training worlds before, 14.27 on average after, 11-23 (paper, Tables B.1, F.2)"


class ScmHardening:
    """Implements Hardenable (bench.pools.capabilities)."""

    workers = None  # an instance takes seconds

    def check(self, options: Mapping[str, Any]) -> None:
        """Raise `OptionError` for options that the requested mode or goal does not read."""
        if options.get("mode", "cex") != "cex":
            for name in ("alternatives", "goal"):
                if name in options:
                    raise OptionError("it needs --mode cex", f"--{name}")
        if options.get("goal") != "no-discovered":
            for name in ("searches", "seeds"):
                if name in options:
                    raise OptionError("it needs --goal no-discovered", f"--{name}")

    def harden(self, request: HardenRequest, options: HardenArguments) -> Hardened:
        """Write the hardened pool once all instances are done; until then, results are in OUT.unfinished."""
        supplied = read_alternatives(options.alternatives) if options.alternatives else []
        searches = NamedSearches(options.searches, options.seeds) if options.goal == "no-discovered" else None
        if searches is not None:
            _ = searches.protocols  # refuses unknown names before anything is read
        hardening = HardenOptions(options.mode, options.seed, options.max_parents, options.goal, searches)
        pool_context = hardened_pool(
            request.pool,
            request.out,
            hardening,
            alternatives=supplied,
            selection=request.selection,
            execution=request.execution,
            progress=request.progress,
        )
        with pool_context as pool:
            notes = [*_write(pool, hardening, request.out, request.report, request.certificates), *_failures(pool)]
            lines = list(_summary(pool))
            if supplied:
                notes += _refused_alternatives(pool)
                lines.append(_alternatives_summary(pool, len(supplied)))
            if searches is not None:
                lines.append(_discoveries_summary(pool))
            return Hardened(lines, notes, pool.num_unreached, request.out)


def _write(
    pool: HardenedPool, options: HardenOptions, out: Path, report: Path | None, certificates: Path | None
) -> Iterator[str]:
    if report:
        write_pieces(report, (f"{json.dumps(line)}\n" for line in pool.reports))
    if certificates:
        hardened = (
            problem for problem, line in zip(pool.pool.problems, pool.reports, strict=True) if "members" in line
        )
        yield from write_certificates(hardened, certificates, options.class_of)
    write_pool(pool.pool, out)
    yield f"{plural(len(pool.pool), 'instances')} written to {out}"


def _failures(pool: HardenedPool) -> Iterator[str]:
    for line in pool.reports:
        if line["outcome"] not in ("reached", "done"):
            yield in_one_line(f"{line['instance']}: {line['outcome'].replace('_', ' ')}: {line['why']}")


def _summary(pool: HardenedPool) -> Iterator[str]:
    """Yield the numbers of instances by outcome, and statistics of the added worlds."""
    outcomes = Counter(line["outcome"] for line in pool.reports)
    yield ", ".join(f"{number} {name.replace('_', ' ')}" for name, number in sorted(outcomes.items()))
    worlds = [line["worlds"] for line in pool.reports if "worlds" in line]
    if worlds:
        num_unique = sum(line.get("members", ["", ""])[1] == "1" for line in pool.reports)
        before, after = [start for start, _ in worlds], [end for _, end in worlds]
        added = [end - start for start, end in worlds]
        yield (
            f"training worlds, median: {median(before):g} before, {median(added):g} added (up to {max(added)}), "
            f"{median(after):g} after; mean {fmean(after):.2f} (range {min(after)}-{max(after)}); "
            f"{plural(num_unique, 'instances')} {'has' if num_unique == 1 else 'have'} one member"
        )
        published = {stratum.name for stratum in STRATA}
        if any(problem.stratum in published for problem in pool.pool.problems):
            yield PUBLISHED


def _alternative_reports(pool: HardenedPool) -> Sequence[tuple[str, Mapping[str, Any]]]:
    return [(line["instance"], entry) for line in pool.reports for entry in line.get("alternatives", ())]


def _refused_alternatives(pool: HardenedPool) -> Iterator[str]:
    for instance, entry in _alternative_reports(pool):
        if entry["why"]:
            outcome = entry["outcome"].replace("_", " ")
            yield in_one_line(f"{instance}: line {entry['line']}: {outcome}: {entry['why']}")


def _alternatives_summary(pool: HardenedPool, num_supplied: int) -> str:
    entries = _alternative_reports(pool)
    outcomes = Counter(entry["outcome"] for _, entry in entries)
    parts = [f"{outcomes[name]} {name.replace('_', ' ')}" for name in ("separated", "not_separated", "refused")]
    num_others = num_supplied - len(entries)
    more = f"; {num_others} are about no instance that was hardened" if num_others else ""
    return f"alternatives: {', '.join(parts)}{more}"


def _discoveries_summary(pool: HardenedPool) -> str:
    entries = [entry for line in pool.reports for entry in line.get("discovered", ())]
    num_items = sum(bool(line.get("discovered")) for line in pool.reports)
    counts: Counter[tuple[str, str]] = Counter()
    for line in pool.reports:
        for name, outcomes in line.get("last_round", {}).items():
            for outcome, count in outcomes.items():
                counts[name, outcome.replace("_", " ")] += count
    rounds = ", ".join(f"{name} {count} {outcome}" for (name, outcome), count in sorted(counts.items()))
    num_separated = sum(bool(entry["world"]) for entry in entries)
    discovered = f"{plural(len(entries), 'alternatives')} in {plural(num_items, 'instances')}"
    return (
        f"discovered: {discovered}, {num_separated} separated;"
        f" last round, which discovered none: {rounds or 'no search'}"
    )


HARDEN = ScmHardening()
