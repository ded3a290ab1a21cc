"""The project's own sampler: problems and pools of the published kind, from a seed.

The same arguments give the same bytes: every draw comes from one `random.Random` per problem, seeded by the stratum's
name and the instance seed. A problem is accepted by the checks of dsl.replayscm.generation.worlds; this is not the
complete generator of the paper's Algorithm 3; the modules of audits.replayscm.generation name what they leave out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import accumulate
from random import Random

from calibrant.dsl.formulas.text import STANDARD
from calibrant.dsl.replayscm.disclosure import Blocks, Disclosure, HiddenOrder, HiddenRoots, Ordered, natural
from calibrant.dsl.replayscm.generation.scms import LatentScm, sample_scm
from calibrant.dsl.replayscm.generation.strata import Stratum
from calibrant.dsl.replayscm.generation.worlds import Evidence, rejections, sample_evidence
from calibrant.dsl.replayscm.item import Pool, Problem, Sealed, Task, TaskKind
from calibrant.dsl.replayscm.world import Panel

ATTEMPTS = 10  # sets of worlds for one SCM before another SCM is drawn; nearly always the first will do
SEEDS_PER_POOL = (
    10**6
)  # instance j of a stratum has seed SEEDS_PER_POOL * pool seed + j: larger pools extend smaller ones

SETTINGS = ("ordered", "block", "hidden-order", "hidden-roots")


def sample_pool(strata: Iterable[Stratum], per_stratum: int, seed: int, setting: str) -> Pool:
    """Problems of each stratum in turn, under one of SETTINGS; latent SCMs and worlds are the same in all settings."""
    chosen = tuple(strata)
    problems = [
        disclose_problem(sample_problem(stratum, SEEDS_PER_POOL * seed + index), setting)
        for stratum in chosen
        for index in range(per_stratum)
    ]
    metadata = {
        "sampler": "calibrant 1",
        "seed": seed,
        "per_stratum": per_stratum,
        "strata": [stratum.name for stratum in chosen],
        "setting": setting,
    }
    return Pool(f"sample_{setting.replace('-', '_')}", tuple(problems), metadata)


def sample_problem(stratum: Stratum, seed: int) -> Problem:
    """Sample the problem of that seed, in Hidden-order form."""
    rng = Random(f"{stratum.name}:{seed}")
    while True:
        latent = sample_scm(stratum, rng)
        for _ in range(ATTEMPTS):
            evidence = sample_evidence(stratum, latent, rng)
            if not any(rejections(stratum, latent, evidence)):
                return problem_of(stratum, f"CAL_{stratum.name}_{seed}", seed, latent, evidence)


def problem_of(stratum: Stratum, name: str, seed: int, latent: LatentScm, evidence: Evidence) -> Problem:
    """Return the problem of an SCM and its worlds, in Hidden-order form.

    `name` is its id without the suffix of a setting.
    """
    model = latent.model
    training, heldout = (Panel(model.variables, worlds) for worlds in (evidence.training, evidence.heldout))
    task = Task(
        TaskKind.SCM,
        HiddenOrder(model.variables, model.roots),
        STANDARD,
        training,
        shares_units=True,
        num_heldout=len(heldout.worlds),
    )
    sealed = Sealed(
        model,
        model.size,
        heldout,
        latent.order,
        stratum.max_parents,
        environments=evidence.environments,
        labels={"stratum": stratum.name, "difficulty": stratum.difficulty, "seed": str(seed), "latent": name},
    )
    return Problem(name, task, sealed)


def disclose_problem(problem: Problem, setting: str) -> Problem:
    """Disclose a sampled problem's latent SCM and worlds under any of SETTINGS, with the id suffix of published pools.

    Block shows two blocks where the seed is even and three where it is odd.
    """
    gold, order = problem.sealed.gold, problem.sealed.latent_order
    if gold is None:
        raise ValueError(f"problem '{problem.id}' has no latent SCM to disclose")
    num_blocks = 2 + int(problem.sealed.labels["seed"]) % 2
    disclosures: dict[str, tuple[Disclosure, str]] = {
        "ordered": (Ordered(order, gold.roots), ""),
        "block": (cut_blocks(order, gold.roots, num_blocks), f"__PARTIAL_ORDER_{num_blocks}BLOCK"),
        "hidden-order": (HiddenOrder(gold.variables, gold.roots), ""),
        "hidden-roots": (HiddenRoots(gold.variables, len(gold.roots)), "__ROOT_UNKNOWN"),
    }
    if setting not in disclosures:
        raise ValueError(f"unknown setting '{setting}'; known: {', '.join(SETTINGS)}")
    disclosure, suffix = disclosures[setting]
    kind = TaskKind.ROOTS if disclosure.roots is None else TaskKind.SCM
    task = replace(problem.task, kind=kind, disclosure=disclosure)
    return replace(problem, id=problem.sealed.labels["latent"] + suffix, task=task)


def cut_blocks(order: Sequence[str], roots: Sequence[str], num_blocks: int) -> Blocks:
    """Precedence blocks: the endogenous order cut into near-equal parts, longer ones first; roots join the first."""
    endogenous = [variable for variable in order if variable not in roots]
    length, extra = divmod(len(endogenous), num_blocks)
    ends = list(accumulate(length + (part < extra) for part in range(num_blocks)))
    parts = [endogenous[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    return Blocks(tuple(natural(part) for part in ([*roots, *parts[0]], *parts[1:])), natural(roots))
