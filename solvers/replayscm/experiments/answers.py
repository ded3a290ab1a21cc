"""Answers after the evidence: the most probable map, the most probable behaviour, a forecast."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from random import Random

from calibrant.dsl.formulas.formula import STANDARD_OPERATORS, Formula
from calibrant.dsl.formulas.text import Grammar, render
from calibrant.dsl.replayscm.episode import clean_rows, task_class
from calibrant.dsl.replayscm.extensions.reference import EvidenceWorld, Mechanisms, replay_row
from calibrant.dsl.replayscm.item import Task
from calibrant.solvers.acyclic.least import members_of
from calibrant.solvers.formulas.lookup import formula_for
from calibrant.solvers.outcome import BudgetSpent, Found, Impossible, Outcome, OutOfBudget
from calibrant.solvers.replayscm.experiments.policies import stop_worlds
from calibrant.solvers.replayscm.experiments.shares import request_rows
from calibrant.solvers.replayscm.hidden.members import posterior_sampler
from calibrant.solvers.replayscm.noise.best_map import BestMap, TiedMaps, best_map, tied_maps
from calibrant.solvers.replayscm.noise.posterior import MAX_LISTED_CELLS, Posterior, cell_marginals, free_bits

# 256: a share is off by at most 0.031 (one standard error)
NUM_BEHAVIOUR_DRAWS = 256
# 4,096: a probability is off by at most 0.008 (one standard error)
NUM_FORECAST_DRAWS = 4_096


@dataclass(frozen=True)
class MapChoice:
    """A most probable map, and the posterior that it was chosen from."""

    posterior: Posterior
    grammar: Grammar
    best: BestMap

    def ties(self) -> Found[TiedMaps] | OutOfBudget:
        """Return all maps that are as probable and as small, or draws from them."""
        return tied_maps(self.posterior, self.grammar, self.best)


@dataclass(frozen=True)
class ExtendedAnswer:
    """An answer object of the task, and how it was found.

    submission: what `submit` takes; posterior_share: of a map; provenance: exact, or from how many draws
    choice: of a most probable map, among equals by a tie rule
    """

    submission: Mapping[str, object]
    posterior_share: Fraction | None
    provenance: str
    choice: MapChoice | None = None


def answer_exact(task: Task, worlds: Sequence[EvidenceWorld]) -> Outcome[ExtendedAnswer]:
    """Return the most probable map; ties by total formula size, hidden formulas included."""
    posterior = Posterior(task_class(task)).condition(*worlds)
    try:
        best = best_map(posterior, task.grammar)
    except BudgetSpent as spent:
        return OutOfBudget(str(spent))
    except ValueError as error:
        return Impossible(f"{error}; class: {posterior.scm_class.describe()}")
    provenance = "exact" if best.is_smallest else "exact; the smallest among many columns of hidden variables"
    choice = MapChoice(posterior, task.grammar, best)
    return Found(ExtendedAnswer(map_submission(best.formulas), best.share, provenance, choice))


def answer_posterior(task: Task, worlds: Sequence[EvidenceWorld], item_id: str) -> Outcome[ExtendedAnswer]:
    """Return a drawn member of the most frequent clean behaviour; the first drawn of equals."""
    scm_class = task_class(task)
    posterior = Posterior(scm_class).condition(*worlds)
    rng = Random(f"{item_id}|posterior")
    try:
        sampler = posterior_sampler(posterior)
        members = [sampler.draw(rng) for _ in range(NUM_BEHAVIOUR_DRAWS)]
    except BudgetSpent as spent:
        return OutOfBudget(str(spent))
    except ValueError:
        return Impossible(f"no SCM has positive posterior; class: {scm_class.describe()}")
    verdict_worlds = stop_worlds(task)
    behaviours = [
        tuple(clean_rows(scm_class, member, do, contexts) for do, contexts in verdict_worlds) for member in members
    ]
    # `most_common` keeps the order of first occurrence among equals
    top = Counter(behaviours).most_common(1)[0][0]
    member = members[behaviours.index(top)]
    return Found(
        ExtendedAnswer(map_submission(member_formulas(scm_class.roots, member)), None, f"{len(members)} drawn members")
    )


def answer_forecast(task: Task, worlds: Sequence[EvidenceWorld], item_id: str) -> Outcome[ExtendedAnswer]:
    """Return marginals of the worlds to forecast: exact where all rows have few free cells, else from drawn members."""
    scm_class = task_class(task)
    posterior = Posterior(scm_class).condition(*worlds)
    assert task.extension is not None
    # exact up to 2**7 masses a row, for all rows or none: the provenance names one method
    forecast: list[list[dict[str, float]]] = []
    requests = [
        request_rows(scm_class, world.constants, [int(context[::-1] or "0", 2) for context in world.contexts])
        for world in task.extension.forecast_worlds
    ]
    names = scm_class.variables
    try:
        if not posterior.mass:
            return Impossible(f"no SCM has positive posterior; class: {scm_class.describe()}")
        if all(len(free_bits(posterior, clamped)) <= MAX_LISTED_CELLS for rows in requests for _, clamped in rows):
            # worlds repeat rows: in one that clamps a root, half of the contexts coincide
            memo: dict[tuple[int, int], dict[str, float]] = {}
            for rows in requests:
                for row in rows:
                    if row not in memo:
                        memo[row] = {names[i]: float(share) for i, share in cell_marginals(posterior, *row).items()}
                forecast.append([memo[row] for row in rows])
            return Found(ExtendedAnswer({"forecast": forecast}, None, "exact"))
        drawn_forecast = _sampled_forecast(posterior, requests, Random(f"{item_id}|forecast"))
    except BudgetSpent as spent:
        return OutOfBudget(str(spent))
    return Found(ExtendedAnswer({"forecast": drawn_forecast}, None, f"{NUM_FORECAST_DRAWS} drawn rows"))


def _sampled_forecast(
    posterior: Posterior, requests: Sequence[Sequence[tuple[int, int]]], rng: Random
) -> list[list[dict[str, float]]]:
    scm_class, sampler = posterior.scm_class, posterior_sampler(posterior)
    counts = [[Counter[str]() for _ in rows] for rows in requests]
    for _ in range(NUM_FORECAST_DRAWS):
        member, rates = sampler.draw_with_rates(rng)
        for rows, counters in zip(requests, counts, strict=True):
            for (fixed, clamped), counter in zip(rows, counters, strict=True):
                constants = {scm_class.observed[i]: fixed >> i & 1 for i in members_of(clamped)}
                roots = {root: fixed >> scm_class.observed.index(root) & 1 for root in scm_class.roots}
                flipped = frozenset(v for v, rate in rates.items() if v not in constants and rng.random() < rate)
                values = replay_row(scm_class, member, roots, constants, flipped)
                counter.update(v for v in scm_class.endogenous if v not in constants and values[v])
    return [
        [
            {
                v: counter[v] / NUM_FORECAST_DRAWS
                for v in scm_class.endogenous
                if not clamped >> scm_class.observed.index(v) & 1
            }
            for (_, clamped), counter in zip(rows, counters, strict=True)
        ]
        for rows, counters in zip(requests, counts, strict=True)
    ]


def map_submission(formulas: Mapping[str, Formula]) -> dict[str, object]:
    """Return the answer object of a map."""
    return {"mechanisms": {v: render(formula) for v, formula in formulas.items()}}


def member_formulas(roots: Sequence[str], member: Mechanisms) -> dict[str, Formula]:
    """Return formulas of functions; a constant mentions the first root."""
    return {v: formula_for(f.table, f.parents or roots[:1], STANDARD_OPERATORS) for v, f in member.items()}
