"""Structure learning on noisy rows: a graph of highest score, then for every variable its best table over the parents.

Two scores side by side: noisy local weights, whose optimum is the most probable graph of functional parents under the
stated prior and rate, and mbde (baselines.structure_learning.scores), which knows neither. Searches: the exact optimum,
hill climbing, and the parents of largest exact posterior, taken acyclically.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Literal, TypeAlias

from calibrant.baselines.replayscm.constraints import disclosed_constraints
from calibrant.baselines.replayscm.frames import frame_from_panel
from calibrant.baselines.replayscm.noisy_weights import NoisyWeightScores
from calibrant.baselines.structure_learning.constraints import Constraints
from calibrant.baselines.structure_learning.frame import Dag
from calibrant.baselines.structure_learning.score_optimum import ScoreOptimum
from calibrant.baselines.structure_learning.scores import LocalScores, mbde
from calibrant.baselines.structure_learning.search import HillClimbing, learn
from calibrant.dsl.formulas.formula import STANDARD_OPERATORS
from calibrant.dsl.formulas.table import TruthTable
from calibrant.dsl.replayscm.episodes.episode import task_class
from calibrant.dsl.replayscm.extensions.noise import NoiseKind
from calibrant.dsl.replayscm.extensions.reference import EvidenceWorld
from calibrant.dsl.replayscm.problem import Task
from calibrant.solvers.formulas.lookup import formula_for
from calibrant.solvers.outcome import Found, Impossible, Outcome
from calibrant.solvers.replayscm.experiments.answers import ExtendedAnswer, map_submission
from calibrant.solvers.replayscm.experiments.readings import plain_task
from calibrant.solvers.replayscm.noise.posterior import Posterior

Score: TypeAlias = Literal["noisy-weights", "mbde"]
Search: TypeAlias = Literal["optimum", "hill-climbing", "posterior"]


def answer_structure(
    task: Task, worlds: Sequence[EvidenceWorld], score: Score, search: Search
) -> Outcome[ExtendedAnswer]:
    """Return majority tables over the parents of a learned graph; noise with a rate common to all variables only."""
    scm_class = task_class(task)
    if scm_class.hidden_parents or scm_class.noise.is_silent or scm_class.noise.kind is NoiseKind.EACH:
        return Impossible("noise with one rate for all variables, and no hidden variables, is needed")
    panel = plain_task(task, scm_class, worlds).training
    frame = frame_from_panel(panel)
    roots = frame.mask(scm_class.roots)
    constraints = disclosed_constraints(task.disclosure, frame.variables, max_parents=scm_class.max_parents)
    scores: LocalScores
    if score == "noisy-weights":
        scores = NoisyWeightScores(
            frame, likeliest_rate(task, worlds), roots=roots, max_parents=scm_class.max_parents, prior=scm_class.prior
        )
    else:
        scores = LocalScores(frame, mbde())
    dag = learn_graph(scores, constraints, search)
    formulas = {}
    for place, variable in enumerate(frame.variables):
        if variable in scm_class.endogenous:
            parents = frame.names(dag[place])
            table = majority_table(worlds, scm_class.observed, variable, parents)
            formulas[variable] = formula_for(table, parents or scm_class.roots[:1], STANDARD_OPERATORS)
    return Found(ExtendedAnswer(map_submission(formulas), None, f"{search} of {score}"))


def learn_graph(scores: LocalScores, constraints: Constraints, search: Search) -> Dag:
    """Return the parents of every variable that a search arrives at."""
    if search == "hill-climbing":
        return learn(scores, constraints, HillClimbing()).dag
    optimum = ScoreOptimum(scores, constraints)
    return optimum.best().dag if search == "optimum" else _likeliest_parents(optimum, len(constraints.allowed))


def _likeliest_parents(optimum: ScoreOptimum, num_vars: int) -> Dag:
    """Return parent sets by falling posterior, each the likeliest of its variable that closes no cycle."""
    beliefs = optimum.posteriors()
    ranked = sorted(
        ((likely.value, v, likely.parents) for v in range(num_vars) for likely in beliefs.likeliest_parent_sets(v, 64)),
        key=lambda entry: (-entry[0], entry[1], entry[2]),
    )
    chosen: dict[int, int] = {}
    for _, v, parents in ranked:
        if v not in chosen and not _reaches(chosen, parents, v):
            chosen[v] = parents
    return tuple(chosen.get(v, 0) for v in range(num_vars))


def _reaches(chosen: dict[int, int], parents: int, variable: int) -> bool:
    """Return whether a variable is among the ancestors of these parents, or one of them."""
    visited, waiting = 0, parents
    while waiting:
        low = (waiting & -waiting).bit_length() - 1
        waiting &= waiting - 1
        if low == variable:
            return True
        if not visited >> low & 1:
            visited |= 1 << low
            waiting |= chosen.get(low, 0)
    return False


def likeliest_rate(task: Task, worlds: Sequence[EvidenceWorld]) -> Fraction:
    """Return the disclosed rate, or that of largest posterior on the item's grid."""
    scm_class = task_class(task)
    grid = scm_class.noise.grid
    if len(grid) == 1:
        return grid[0][0]
    shares = Posterior(scm_class).condition(*worlds).noise_posterior
    return max((share, rate) for (rate, _), share in zip(grid, shares, strict=True) if rate)[1]


def majority_table(
    worlds: Sequence[EvidenceWorld], observed: Sequence[str], variable: str, parents: Sequence[str]
) -> TruthTable:
    """Return the more frequent value of a variable for each pattern of its parents, over free cells; 0 of equals."""
    places = [observed.index(u) for u in parents]
    place = observed.index(variable)
    balance = [0] * (1 << len(parents))
    for world in worlds:
        if variable not in world.constants:
            for row in world.rows:
                pattern = sum(int(row[p]) << i for i, p in enumerate(places))
                balance[pattern] += 1 if row[place] == "1" else -1
    return TruthTable(len(parents), sum((count > 0) << pattern for pattern, count in enumerate(balance)))
