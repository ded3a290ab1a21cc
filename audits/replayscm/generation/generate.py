"""Generated instances and pools: the paper's Algorithms 1 to 3, every accepted instance with its audit.

The bounded searches are the paper's (audits.replayscm.bounded), each with the exact number beside it; the counts are
exact for the disclosure of the instance. No solver sees the audit.

Steps: a latent SCM that can be accepted (dsl.replayscm.generation.scms); training worlds that leave no shortcut, with
restarts; held-out worlds; every filter; worlds against local alternatives (audits.replayscm.generation.worlds); the
bounded audits beside exact counts.

Each instance draws from one `random.Random`, seeded by the stratum's name and the seed: the same arguments give the
same bytes. Worlds of targeted disambiguation come last and change nothing before them, so with `max_added` 0 the same
seed gives the same instance without them: the paper's base cohort, and what the released generator is comparable with.

Audits are of the instance as it is written to a file.

Departure from the published generator: an SCM that fails with all of its populations is replaced by another; the
published one never changes the SCM of a seed and ends without an instance. Other modules name their own departures.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count as count_from
from random import Random
from typing import Any

import msgspec

from calibrant.audits.replayscm.bounded import (
    LOCAL,
    STRONGER,
    BoundedAudit,
    Exposure,
    HeldoutBalance,
    InterventionMix,
    LocalFinding,
    PairFinding,
    Shortcut,
    all_probes,
    coverage,
    exposure,
    heldout_balance,
    intervention_mix,
)
from calibrant.audits.replayscm.generation import published
from calibrant.audits.replayscm.generation import worlds as generation_worlds
from calibrant.audits.replayscm.generation.worlds import Disambiguation, local_alternatives, separating_worlds
from calibrant.dsl.replayscm.generation import problems as generation_problems
from calibrant.dsl.replayscm.generation.scms import LatentScm, sample_scm
from calibrant.dsl.replayscm.generation.strata import Stratum
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.replayscm.pools.files import as_written
from calibrant.dsl.replayscm.world import World
from calibrant.solvers.acyclic.count import Bounds
from calibrant.solvers.networks.published_parts import MAX_WINDOWS, Source, UnreachableStratumError, WindowSize
from calibrant.solvers.replayscm.space import ModelClass, VersionSpace

# --- The audit that an accepted instance carries: how its worlds were found, and what they leave open -----------------
CLASSES = (3, 4, 5)  # bounds of the number of functional parents for which members are counted


@dataclass(frozen=True, slots=True)
class Effort:
    """Numbers of attempts until acceptance, the accepted ones included.

    scms: latent SCMs; those that can never pass are dropped before and do not count
    populations: of the accepted SCM; training_sets: of the accepted population
    """

    scms: int
    populations: int
    training_sets: int


@dataclass(frozen=True, slots=True)
class EvidenceAudit:
    """Alternatives that are consistent with one set of training worlds, and how the worlds are spread.

    counts: most functional parents -> number of SCMs of that class that fit, of any formula size
    bounds: most functional parents -> certified bounds of that number, for classes where counting ran out of budget
    coverage: share of the local predecessor patterns that rows show
    local: results of the targeted search; stronger: of the audit after generation; pairs: along gold's edges
    exposure, mix, balance: spread of the interventions; balance is None without held-out worlds
    """

    num_worlds: int
    counts: Mapping[int, int]
    bounds: Mapping[int, Bounds]
    coverage: float
    local: tuple[LocalFinding, ...]
    stronger: tuple[LocalFinding, ...]
    pairs: tuple[PairFinding, ...]
    shortcuts: tuple[Shortcut, ...]
    exposure: tuple[Exposure, ...]
    mix: InterventionMix
    balance: HeldoutBalance | None


@dataclass(frozen=True, slots=True)
class GenerationAudit:
    """The audit of one generated instance.

    stages: training world -> why it was chosen
    survivors: numbers of shortcut functions that fit the seed worlds, then after each step of the reduction, last all
    variables_with_shortcut: numbers of variables that have one, at the same steps
    alternatives: numbers of local alternatives before targeted disambiguation, then after each world that it added
    base, final: audits without and with those worlds; the same if none was added
    """

    effort: Effort
    stages: Mapping[str, str]
    survivors: tuple[int, ...]
    variables_with_shortcut: tuple[int, ...]
    alternatives: tuple[int, ...]
    base: EvidenceAudit
    final: EvidenceAudit

    def to_dict(self) -> dict[str, Any]:
        """Convert to JSON values; counts become text, because they exceed the integers of many readers."""
        record: dict[str, Any] = msgspec.to_builtins(self, str_keys=True)
        for part in ("base", "final"):
            record[part]["counts"] = {k: str(count) for k, count in record[part]["counts"].items()}
            uncounted = record[part].pop("bounds")
            if uncounted:
                record[part]["bounds"] = {k: [str(bound) for bound in bounds] for k, bounds in uncounted.items()}
        return record


def count_members(space: VersionSpace) -> dict[int, Bounds]:
    """Count the SCMs of a space by the most functional parents, for each of CLASSES."""
    return {k: space.within(k).bounds for k in CLASSES}


def widest_space(problem: Problem, max_parents: int = 0) -> VersionSpace:
    """Return the SCMs that fit the training worlds, with as many parents as the widest of CLASSES or `max_parents`."""
    return VersionSpace(problem.task, ModelClass(max(*CLASSES, max_parents)))


def evidence_audit(stratum: Stratum, problem: Problem, space: VersionSpace | None = None) -> EvidenceAudit:
    """Audit one set of training worlds; reads gold and the latent order.

    space: `widest_space` of the problem; None: it is computed
    """
    audit = BoundedAudit(problem)
    windows = {variable: audit.window(variable) for variable in audit.gold.endogenous}
    worlds: tuple[World, ...] = problem.task.training.worlds
    bounds_by_parents = count_members(space or widest_space(problem))
    return EvidenceAudit(
        len(worlds),
        {k: bounds.lower for k, bounds in bounds_by_parents.items() if bounds.lower == bounds.upper},
        {k: bounds for k, bounds in bounds_by_parents.items() if bounds.lower != bounds.upper},
        coverage(worlds, all_probes(windows)),
        tuple(audit.local_alternatives(LOCAL)),
        tuple(audit.local_alternatives(STRONGER)),
        tuple(audit.coordinated_pairs()),
        tuple(audit.shortcuts(floor=stratum.shortcut_floor)),
        tuple(exposure(problem)),
        intervention_mix(problem),
        heldout_balance(problem),
    )


@dataclass(frozen=True)
class Generated:
    """An accepted instance, and its audit under its disclosure."""

    problem: Problem
    audit: GenerationAudit

    def __repr__(self) -> str:
        counts = ", ".join(f"{count} at k <= {k}" for k, count in self.audit.final.counts.items())
        return f"<Generated {self.problem!r}, members: {counts}>"


@dataclass(frozen=True)
class _Accepted:
    """An SCM with worlds that pass every filter, before any is added; `training_sets`: how many were drawn for it."""

    latent: LatentScm
    population: generation_problems.Population
    training: generation_worlds.Training
    heldout: tuple[generation_problems.Drawn, ...]
    training_sets: int

    def evidence(self, added: Sequence[generation_problems.Drawn]) -> generation_problems.Evidence:
        training, heldout = (*self.training.draws, *added), self.heldout
        return generation_problems.Evidence(
            tuple(draw.world for draw in training),
            tuple(draw.world for draw in heldout),
            {draw.world.id: draw.environment for draw in (*training, *heldout)},
        )


def generate(
    stratum: Stratum,
    seed: int,
    *,
    setting: str = "hidden-order",
    max_added: int = published.MAX_ADDED_WORLDS,
    plan: published.StratumPlan | None = None,
) -> Generated:
    """Return the instance of a stratum and seed under one of the sampler's SETTINGS, which share SCM and worlds.

    max_added: most worlds that targeted disambiguation may add
    plan: budgets and filters; None for the stratum's own
    """
    plan = plan or published.plan_for(stratum)
    rng = Random(f"generate:{stratum.name}:{seed}")
    accepted, effort = _draw_accepted(stratum, plan, rng)
    separation = _separate(stratum, plan, accepted, max_added, rng)
    problem = partial(generation_problems.problem_of, stratum, f"GEN_{stratum.name}_{seed}", seed, accepted.latent)
    problems = (problem(accepted.evidence(added)) for added in ((), separation.added))
    return _with_audit(
        stratum, accepted, separation, effort, [generation_problems.disclose_problem(p, setting) for p in problems]
    )[0]


def generate_from_networks(
    sources: Sequence[Source],
    stratum: WindowSize,
    seed: int,
    *,
    setting: str = "hidden-order",
    max_added: int = published.MAX_ADDED_WORLDS,
) -> Generated:
    """Return the instance of a stratum and seed whose mechanisms are a window of one of the networks.

    `UnreachableStratumError` if the networks have no such window, or no window has worlds that pass the filters.

    sources: ordered by digest; the instance depends on their digests
    """
    digests = " ".join(source.network.digest for source in sources)
    rng = Random(f"network:{stratum.name}:{seed}:{digests}")
    rules, plan, window, accepted, effort = _accept_window(sources, stratum, rng)
    separation = _separate(rules, plan, accepted, max_added, rng)
    problems = []
    for added in ((), separation.added):
        evidence = accepted.evidence(added)
        problem = generation_problems.problem_of(rules, f"NET_{stratum.name}_{seed}", seed, window.latent, evidence)
        problem = generation_problems.disclose_problem(problem, setting)
        labels = {**problem.sealed.labels, **window.labels}
        problems.append(replace(problem, sealed=replace(problem.sealed, labels=labels)))
    generated, space = _with_audit(rules, accepted, separation, effort, problems, window.in_degree)
    fits = _count_labels(space, generated.audit.final, window.in_degree)
    sealed = generated.problem.sealed
    labels = {**sealed.labels, **fits}
    return replace(generated, problem=replace(generated.problem, sealed=replace(sealed, labels=labels)))


def _accept_window(
    sources: Sequence[Source], stratum: WindowSize, rng: Random
) -> tuple[Stratum, published.StratumPlan, published.Window, _Accepted, Effort]:
    """Return the first window with worlds that pass the filters, and the rules of its worlds."""
    for num_windows, window in enumerate(published.draw_windows(sources, stratum, rng), start=1):
        rules = published.world_stratum(stratum, len(window.names), window.in_degree)
        plan = published.network_plan(rules.num_worlds)
        for populations in range(1, plan.attempts + 1):
            accepted = _attempt(rules, plan, window.latent, rng)
            if accepted is not None:
                return rules, plan, window, accepted, Effort(num_windows, populations, accepted.training_sets)
        if num_windows == MAX_WINDOWS:
            break
    raise UnreachableStratumError(f"worlds of {MAX_WINDOWS} windows of {stratum.name} fail the filters")


def _count_labels(space: VersionSpace, audit: EvidenceAudit, in_degree: int) -> dict[str, str]:
    """Return labels of the number of SCMs that fit, in the least class of at least four parents that has the window.

    audit: of the same problem; its count is used if it has one, as a count over 30 variables takes a second
    """
    max_parents = max(4, in_degree)
    count = audit.counts.get(max_parents)
    if count is None and max_parents not in audit.bounds:
        bounds = space.within(max_parents).bounds
        count = bounds.lower if bounds.lower == bounds.upper else None
    if count is None:
        return {"evidence": "not counted"}
    return {"evidence": "decided" if count == 1 else "partly", "fits": str(count)}


def _with_audit(
    stratum: Stratum,
    accepted: _Accepted,
    separation: Disambiguation,
    effort: Effort,
    problems: Sequence[Problem],
    max_parents: int = 0,
) -> tuple[Generated, VersionSpace]:
    """Return an instance with its audit, and its version space.

    problems: without worlds against local alternatives, then with them; max_parents: as in `widest_space`
    """
    base, final = (as_written(_label_kill_coverage(problem, accepted.training)) for problem in problems)
    space = widest_space(final, max_parents)
    after = evidence_audit(stratum, final, space)
    before = evidence_audit(stratum, base) if separation.added else after
    stages = {**accepted.training.stages, **{draw.world.id: "disambiguation" for draw in separation.added}}
    survivors = accepted.training.survivors
    audit = GenerationAudit(
        effort,
        stages,
        tuple(generation_problems.num_functions(pool) for pool in survivors),
        tuple(len(generation_problems.with_shortcuts(pool)) for pool in survivors),
        separation.num_remaining,
        before,
        after,
    )
    return Generated(final, audit), space


def _label_kill_coverage(problem: Problem, training: generation_worlds.Training) -> Problem:
    """Return the problem with the label `kill_coverage`, by which Table F.6 of the paper groups items."""
    labels = {**problem.sealed.labels, "kill_coverage": repr(generation_worlds.kill_coverage(training))}
    return replace(problem, sealed=replace(problem.sealed, labels=labels))


def _draw_accepted(stratum: Stratum, plan: published.StratumPlan, rng: Random) -> tuple[_Accepted, Effort]:
    for scms in count_from(1):
        latent = sample_scm(stratum, rng)
        for populations in range(1, plan.attempts + 1):
            accepted = _attempt(stratum, plan, latent, rng)
            if accepted is not None:
                return accepted, Effort(scms, populations, accepted.training_sets)
    raise AssertionError("counting ended")


def _attempt(stratum: Stratum, plan: published.StratumPlan, latent: LatentScm, rng: Random) -> _Accepted | None:
    """Sample a population with training sets until one rules out enough shortcuts; None if worlds fail a filter."""
    population = generation_problems.sample_population(stratum, latent.model, rng)
    for restart in range(1, plan.restarts + 1):
        choice = generation_worlds.TrainingChoice(stratum, plan, latent, population, rng)
        training = choice.training()
        if generation_worlds.reduces_shortcuts(stratum, plan, latent, training):
            heldout = generation_worlds.sample_heldout(plan, choice.proposer)
            if heldout is None:
                return None
            accepted = _Accepted(latent, population, training, heldout, restart)
            return None if any(generation_worlds.list_unmet(stratum, plan, latent, accepted.evidence(()))) else accepted
    return None


def _separate(
    stratum: Stratum, plan: published.StratumPlan, accepted: _Accepted, max_added: int, rng: Random
) -> Disambiguation:
    """Return worlds against local alternatives that pass every filter and have new signatures."""
    evidence = accepted.evidence(())
    used = {world.intervention.signature for world in (*evidence.training, *evidence.heldout)}

    def admits(added: Sequence[generation_problems.Drawn]) -> bool:
        signatures = {draw.world.intervention.signature for draw in added}
        are_new = len(signatures) == len(added) and not signatures & used
        return are_new and not any(
            generation_worlds.list_unmet(stratum, plan, accepted.latent, accepted.evidence(added))
        )

    alternatives = local_alternatives(accepted.latent, stratum.max_parents, evidence.training)
    return separating_worlds(accepted.population, alternatives, max_added, admits, rng)


# --- Pools of generated instances: names, headers, and the instances as jobs for worker processes ---------------------


@dataclass(frozen=True, slots=True)
class Job:
    """One instance to generate; can be sent to another process."""

    stratum: Stratum
    seed: int
    setting: str
    max_added: int


def pool_name(setting: str) -> str:
    return f"generated_{setting.replace('-', '_')}"


def pool_metadata(
    strata: Iterable[Stratum], per_stratum: int, seed: int, setting: str, max_added: int
) -> dict[str, Any]:
    """Return the arguments that determine the pool, for its header."""
    return {
        "generator": "calibrant 1",
        "seed": seed,
        "per_stratum": per_stratum,
        "strata": [stratum.name for stratum in strata],
        "setting": setting,
        "max_added_worlds": max_added,
    }


def pool_jobs(strata: Iterable[Stratum], per_stratum: int, seed: int, setting: str, max_added: int) -> list[Job]:
    """Return the instances of a pool: instance j of a stratum has seed SEEDS_PER_POOL * pool seed + j."""
    seeds = range(generation_problems.SEEDS_PER_POOL * seed, generation_problems.SEEDS_PER_POOL * seed + per_stratum)
    return [Job(stratum, instance, setting, max_added) for stratum in strata for instance in seeds]


def run_job(job: Job) -> Generated:
    return generate(job.stratum, job.seed, setting=job.setting, max_added=job.max_added)
