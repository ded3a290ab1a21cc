"""Expected HeldoutExact of two guessers who use all evidence: a random consistent SCM, and the best possible answer.

A behaviour is the values of all variables in the held-out worlds. Under the generator's prior, its probability is the
posterior mass of the SCMs that have it: the prior mass of the SCMs that fit the evidence and this behaviour, divided by
that of the SCMs that fit the evidence. A random SCM is right with the probability of gold's behaviour. The best answer
has the most probable behaviour, which is searched among sampled members; its probability is exact. Under noise,
behaviours are noise-free.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import fsum
from pathlib import Path
from random import Random
from typing import Any, NamedTuple, TypeAlias

from calibrant.audits.replayscm.ambiguity import headline_parents
from calibrant.audits.replayscm.ceiling import ceiling
from calibrant.audits.replayscm.extended.items import heldout_requests, item_evidence
from calibrant.audits.replayscm.findings import Findings
from calibrant.baselines.replayscm.posterior.latent_orders import LocalPosterior, MechanismEvidence
from calibrant.baselines.replayscm.posterior.posterior import MAX_STATES, Component, Posterior
from calibrant.bench.core.scoring import EvaluatorCache
from calibrant.bench.papers import rate_cell
from calibrant.bench.replayscm.audit import records
from calibrant.bench.replayscm.audit.text import heldout_share
from calibrant.bench.replayscm.episodes import evidence_key, is_episode
from calibrant.bench.replayscm.paper import HELDOUT_EXACT, ROW_LABELS, is_alternative, pool_name
from calibrant.bench.replayscm.scoring import ATTRIBUTE
from calibrant.bench.report.layout import Heading, Table, TableRow
from calibrant.bench.report.rows import Row
from calibrant.dsl.episode import Step
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.formulas.text import STANDARD
from calibrant.dsl.replayscm.episode import evidence_panel_world, task_class, worlds_evidence
from calibrant.dsl.replayscm.extensions.extension import Prior, Question
from calibrant.dsl.replayscm.item import Problem, Task, TaskKind
from calibrant.dsl.replayscm.world import Panel, World
from calibrant.solvers.outcome import Budget, BudgetSpent
from calibrant.solvers.replayscm.canonical import canonical_task, rename_panel, rename_problem, unchanged_order
from calibrant.solvers.replayscm.experiments.candidates import AskedWorlds, behaviour_share, rank_behaviours
from calibrant.solvers.replayscm.experiments.candidates import Behaviour as ClampedBehaviour
from calibrant.solvers.replayscm.hidden.mass import exact_mass
from calibrant.solvers.replayscm.noise.posterior import Posterior as MemberPosterior
from calibrant.solvers.replayscm.space import ModelClass, VersionSpace

# --- Items with noise or hidden variables, and episodes: by exact masses ----------------------------------------------
UNKNOWN: dict[str, float | None] = {"uniform": None, "draw": None, "best": None}


def expect_extended(item: Problem, steps: Sequence[Step[Any]]) -> dict[str, float | None]:
    """Return probabilities of being right: `uniform`, `draw` and `best`.

    The first two are those of a random SCM under the uniform and under the stated prior, the last of the best answer.
    All three are None for forecasts, for items without held-out worlds, for episodes without steps, and out of budget.
    """
    extension = item.task.extension
    assert extension is not None
    if extension.question is Question.FORECAST or not item.sealed.heldout.worlds or (is_episode(item) and not steps):
        return UNKNOWN
    posterior, worlds, gold = _canonical_extended(item, steps)
    uniform = replace(posterior, scm_class=replace(posterior.scm_class, prior=Prior.UNIFORM))
    try:
        if not exact_mass(posterior):
            return UNKNOWN
        draw = behaviour_share(posterior, worlds, gold)
        best = max(draw, rank_behaviours(posterior, worlds, Random(0)).share)
        return {
            "uniform": float(draw if uniform == posterior else behaviour_share(uniform, worlds, gold)),
            "draw": float(draw),
            "best": float(best),
        }
    except BudgetSpent:
        return UNKNOWN


def _canonical_extended(
    item: Problem, steps: Sequence[Step[Any]]
) -> tuple[MemberPosterior, AskedWorlds, ClampedBehaviour]:
    """Return posterior, held-out interventions and their rows, in canonical names: samples must not depend on names."""
    scm_class = task_class(item.task)
    evidence = item_evidence(item, steps)
    worlds = tuple(evidence_panel_world(f"w{index}", scm_class, world) for index, world in enumerate(evidence))
    panel = Panel(item.task.variables, worlds)
    names = canonical_task(replace(item.task, training=panel, shares_units=False)).canonical_names
    training = replace(item, task=replace(item.task, training=panel))
    renamed = rename_problem(training, names, unchanged_order(panel), unchanged_order(item.sealed.heldout))
    scm_class = task_class(renamed.task)
    heldout = worlds_evidence(scm_class, renamed.sealed.heldout.worlds)
    posterior = MemberPosterior(scm_class).condition(*worlds_evidence(scm_class, renamed.task.training.worlds))
    return posterior, heldout_requests(renamed, scm_class), tuple(world.rows for world in heldout)


NUM_DRAWS = 400  # posterior samples whose most frequent behaviours are candidates for the best answer
NUM_CANDIDATES = 4  # behaviours whose exact share is computed
TOLERANCE = 1e-9  # rounding of sums of shares

Expected = dict[str, float | None]


class ReplayExpectations:
    """Expected rates by item: `uniform`, `draw` and `best`, the last two under the generator's prior where it applies.

    For other items, all SCMs of the class of attributions are equally probable, and `best` is a certified upper bound.
    A guesser may use held-out interventions and root values, as the scorer does.
    """

    def __init__(self) -> None:
        self._by_item: EvaluatorCache[Expected] = EvaluatorCache()

    def __call__(self, item: Problem, steps: Sequence[Any], score: Mapping[str, Any]) -> Expected:
        if item.task.extension is None:
            return self._by_item.get_for(item, lambda: _expect(item))
        # the evidence of an episode depends on the system's requests
        return self._by_item.get_for(item, lambda: expect_extended(item, steps), evidence_key(steps))


def _expect(item: Problem) -> Expected:
    if item.task.kind is TaskKind.ALTERNATIVE or not item.sealed.heldout.worlds:
        return UNKNOWN
    decision = ATTRIBUTE.decide_heldout(item)
    uniform = None if decision is None or decision.agreement is None else float(decision.agreement)
    try:
        return {"uniform": uniform} | (expect_under_prior(item) or _expect_uniformly(item, uniform))
    except BudgetSpent:
        return {"uniform": uniform, "draw": None, "best": None}


def _expect_uniformly(item: Problem, uniform: float | None) -> Expected:
    if uniform is None:
        return {"draw": None, "best": None}
    space = VersionSpace(item.task, ModelClass(headline_parents(item)))
    return {"draw": uniform, "best": float(ceiling(space, item.sealed.heldout.worlds, Random(0)).upper)}


def expect_under_prior(item: Problem) -> Expected | None:
    """Return `draw` and `best` under the generator's prior; None where it does not apply or exceeds its budget."""
    if item.task.grammar != STANDARD:
        return None
    task, heldout = _canonical(item)
    try:
        posterior = Posterior(task)
    except BudgetSpent:
        return None
    if not posterior.components:
        return None
    draw = _behaviour_probability(posterior, heldout)
    return {"draw": draw, "best": _largest_share(posterior, heldout, draw)}


def _frequent_behaviours(posterior: Posterior, heldout: Panel) -> Iterator[records.Behaviour]:
    """Yield the NUM_CANDIDATES most frequent behaviours of sampled members."""
    rng, replay = Random(0), records.BehaviourReplay(heldout)
    behaviours = Counter(replay.behaviours([posterior.sample(rng) for _ in range(NUM_DRAWS)]))
    yield from sorted(behaviours, key=lambda values: (-behaviours[values], repr(values)))[:NUM_CANDIDATES]


def _largest_share(posterior: Posterior, heldout: Panel, gold_share: float) -> float:
    """Return the largest share among gold's behaviour and the most frequent behaviours of sampled members.

    Shares of different behaviours sum to at most 1, so what remains of 1 bounds every further share. If gold's share is
    above a half, nothing is sampled, because 400 samples take longer than all shares together.
    """
    shares: dict[tuple[object, ...], float] = {tuple(heldout.columns.values()): gold_share}
    if 1 - gold_share < gold_share - TOLERANCE:
        return gold_share
    for _, *columns in _frequent_behaviours(posterior, heldout):
        if 1 - fsum(shares.values()) < max(shares.values()) - TOLERANCE:
            break
        key = tuple(columns)
        if key not in shares:  # behaviours with other roots may have equal columns
            shares[key] = _behaviour_probability(posterior, _with_columns(heldout, key))
    return max(shares.values())


def _canonical(item: Problem) -> tuple[Task, Panel]:
    """Return task and held-out worlds under canonical names, because samples must not depend on the pool's names."""
    canonical, heldout = canonical_task(item.task), item.sealed.heldout
    return canonical.task, rename_panel(heldout, canonical.canonical_names, unchanged_order(heldout))


def _behaviour_probability(posterior: Posterior, heldout: Panel) -> float:
    """Return the posterior probability of the values in these held-out worlds."""
    training = posterior.task.training
    worlds = (*training.worlds, *(replace(world, id=f"heldout {world.id}") for world in heldout.worlds))
    evidence = MechanismEvidence(replace(posterior.task, training=Panel(training.variables, worlds)))
    budget = Budget(MAX_STATES)
    masses = [
        Component(
            LocalPosterior(evidence, component.local.configuration), component.roots, component.prior, budget
        ).mass
        for component in posterior.components
    ]
    return fsum(masses) / posterior.mass


def _with_columns(heldout: Panel, columns: Sequence[object]) -> Panel:
    """Return the held-out worlds with other values; columns: bits of each variable over all held-out rows."""
    worlds = []
    for world, start in zip(heldout.worlds, heldout.starts, strict=False):
        mask = (1 << world.num_rows) - 1
        shown_columns = tuple(int(column) >> start & mask for column in columns)  # type: ignore[call-overload]
        worlds.append(World(world.id, world.intervention, heldout.variables, world.units, shown_columns))
    return Panel(heldout.variables, tuple(worlds))


EXPECTATIONS = ReplayExpectations()


# --- Ambiguity of answered instances, from audits: number of consistent SCMs, and expected scores ---------------------


class Ambiguity(NamedTuple):
    """Ambiguity of one instance, in the class of its audit's verdict; a field is None where the audit lacks it.

    members: number of consistent SCMs; draw: share of these that replays every held-out world
    ceiling: expected HeldoutExact of the best answer, if the published generator drew gold
    if_alike: certified upper bound of it, if gold were drawn uniformly from the members
    if_by_size: the same, if gold were drawn with weight 2^-size
    """

    members: int
    draw: float | None
    ceiling: float | None
    if_alike: float | None
    if_by_size: float | None


Ambiguities: TypeAlias = Mapping[tuple[str, str], Ambiguity]  # (digest of the pool, instance) -> its ambiguity


def ambiguities(folders: Sequence[Path]) -> dict[tuple[str, str], Ambiguity]:
    """Return the ambiguity of audited instances that some SCM fits; `CalibrantError` for a folder without audits."""
    by_instance: dict[tuple[str, str], Ambiguity] = {}
    for record in sorted(_records(folders), key=lambda record: repr(record.key)):
        if record.findings is not None and (ambiguity := _ambiguity(record.findings, record.generator)).members:
            by_instance[record.pool_digest, record.instance] = ambiguity
    return by_instance


def _records(folders: Sequence[Path]) -> Iterable[records.AuditRecord]:
    for folder in folders:
        path = folder / records.AUDIT_RECORDS.file_name
        if not path.is_file():
            raise CalibrantError(f"{folder}: no {path.name} there; give a folder that `calibrant audit --out` wrote")
        yield from records.AUDIT_RECORDS.read_records(path)


def _ambiguity(findings: Findings, generator: records.GeneratorCeiling | None) -> Ambiguity:
    class_count = findings.class_count(findings.headline)
    alike = [ceiling.upper for ceiling in findings.ceilings if ceiling.size_penalty is None]
    by_size = [ceiling.upper for ceiling in findings.ceilings if ceiling.size_penalty is not None]
    share = heldout_share(class_count)
    probability = None if generator is None else generator.probability
    return Ambiguity(int(class_count.members), share, probability, next(iter(alike), None), next(iter(by_size), None))


_HEADINGS = (
    Heading("heldout_exact", "HeldoutExact"),
    Heading("draw", "Fair draw"),
    Heading("ceiling", "Ceiling"),
    Heading("ceiling_if_alike", "If all were alike"),
    Heading("ceiling_if_by_size", "If by size alone"),
)


def ceilings(rows: Sequence[Row], audited: Ambiguities) -> Table | None:
    """Return the table of HeldoutExact beside the ceilings, over audited instances; None without any."""
    lines = [line for row in rows if (line := _line(row, audited))]
    if not lines:
        return None
    caption = (
        "What an answer can expect, over the audited instances that some SCM of the class fits. Fair draw: a member of"
        " the class drawn at random. Ceiling: what the best answer can expect if the truth is what the published"
        " generator draws, estimated from draws of its posterior. The last two columns are certified bounds for truths"
        " that no pool is drawn from, all members alike or by formula size alone: rows above them are no error."
    )
    return Table("ceiling", "Held-out replay and its ceiling", caption, ROW_LABELS, _HEADINGS, tuple(lines))


def _line(row: Row, audited: Ambiguities) -> TableRow | None:
    pairs = [(o, audited[o.item]) for o in row.observations if o.item in audited]
    if not pairs or is_alternative(row.setting):
        return None
    quantities = [
        [(o, o.values[row.column_indices[HELDOUT_EXACT.key]]) for o, _ in pairs],
        [(o, ambiguity.draw) for o, ambiguity in pairs],
        [(o, ambiguity.ceiling) for o, ambiguity in pairs],
        [(o, ambiguity.if_alike) for o, ambiguity in pairs],
        [(o, ambiguity.if_by_size) for o, ambiguity in pairs],
    ]
    cells = tuple(
        rate_cell((o.item, o.unit, None if v is None else float(v)) for o, v in values) for values in quantities
    )
    return TableRow((row.setting, row.system, pool_name(row), str(len(pairs))), cells)
