"""Greedy structure learning, then exact formulas: the published row `bnlearn+DSL` (ReplaySCM, appendix H).

Four stages, each only where the earlier ones fit nothing. Structures are tried in falling order of their mbde score,
learned DAGs before parent proposals. What the paper prints is kept: 500, 2,000, 4,000 and 5,000 iterations, 5 and 6
parents, 96 bootstrap replicates, size caps 10, 12 and 13. What it leaves open is chosen here. The ensemble searches
under equivalent sample sizes 1 and 10, with tabu lists of 10 and 50 and by hill climbing, from the empty graph and from
random ones. The first three stages cap formulas at 10. Columns come in an order drawn from the seed, as a greedy search
breaks ties by it. And 600 seconds are so many states of formula search, so that a rerun finds the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from random import Random

import numpy as np

from calibrant.baselines.replayscm.fit import Fitter
from calibrant.baselines.replayscm.frames import frame_from_panel
from calibrant.baselines.replayscm.portfolio import (
    MAX_HYPOTHESES,
    FittedModel,
    RootedDag,
    Roots,
    best_supported,
    by_score,
    fitted_dags,
    named_sets,
    root_hypotheses,
    rooted_constraints,
)
from calibrant.baselines.structure_learning.bootstrap import bootstrap_dags, draw_resamples
from calibrant.baselines.structure_learning.constraints import Constraints
from calibrant.baselines.structure_learning.frame import Dag, Frame
from calibrant.baselines.structure_learning.scores import LocalScores, mbde
from calibrant.baselines.structure_learning.search import HillClimbing, Method, Tabu, learn
from calibrant.dsl.replayscm.problem import Task
from calibrant.dsl.replayscm.scm import Scm
from calibrant.solvers.budget import BudgetSpent

SAMPLE_SIZES = (1.0, 10.0)  # imaginary rows of mbde; networks are ranked under the first
REPLICATES = 96
STATES_PER_SECOND = 200_000_000  # of formula search
RESIDUAL_STATES = 600 * STATES_PER_SECOND


@dataclass(frozen=True, slots=True)
class Ensemble:
    """Searches of one stage, each under every sample size and from every start.

    starts: random graphs besides the empty one
    pool: how many best-supported variables a parent proposal may draw from; None means all with support
    """

    max_parents: int
    methods: tuple[Method, ...]
    starts: int
    pool: int | None
    caps: tuple[int, ...]


INITIAL = Ensemble(5, (Tabu(10, 500),), 0, 5, (10,))
MIDDLE = Ensemble(5, (Tabu(10, 2_000), Tabu(50, 2_000), HillClimbing(2_000)), 8, 5, (10,))
RESIDUAL = Ensemble(6, (Tabu(10, 4_000), Tabu(50, 4_000), HillClimbing(5_000)), 24, None, (10, 12, 13))


def bnlearn_candidates(task: Task, *, seed: int = 0, states: int = RESIDUAL_STATES) -> Iterator[FittedModel]:
    """Return the train-exact models of the portfolio, in its order.

    `FittedModel.stage` is one of initial, ensemble, proposals, residual dags, residual proposals; the proposals with
    ", order search" behind them where the least acyclic choice among them was out of reach.

    seed: of column order, random starts and bootstrap rows
    states: of formula search that the residual stage may spend before it tries no further cap
    """
    return _Portfolio(task, seed, states).candidates()


class _Portfolio:
    def __init__(self, task: Task, seed: int, states: int) -> None:
        self.task = task
        self.seed = seed
        self.states = states
        in_order = list(task.variables)
        Random(seed).shuffle(in_order)
        self.frame: Frame = frame_from_panel(task.training).reorder(in_order)
        self.scores = {size: LocalScores(self.frame, mbde(size)) for size in SAMPLE_SIZES}

    def candidates(self) -> Iterator[FittedModel]:
        fitter = self.fitter(MIDDLE, MIDDLE.caps[0], self.states)
        for model in fitted_dags(fitter, self.frame, self.initial):
            yield FittedModel("initial", model)
        learned = self.learn_stage(MIDDLE)
        for model in fitted_dags(fitter, self.frame, learned):
            yield FittedModel("ensemble", model)
        yield from self.fitted_proposals("proposals", fitter, MIDDLE, learned)
        yield from self.residual()

    def residual(self) -> Iterator[FittedModel]:
        """Structures under every cap, smallest first, then proposals; all formula search goes to one account."""
        fitters = [self.fitter(RESIDUAL, cap, self.states) for cap in RESIDUAL.caps]
        learned = self.learn_stage(RESIDUAL)
        for fitter in fitters:
            for model in fitted_dags(fitter, self.frame, learned):
                yield FittedModel("residual dags", model)
        for fitter in fitters:
            if sum(f.spent for f in fitters) >= self.states:
                return
            yield from self.fitted_proposals("residual proposals", fitter, RESIDUAL, learned)

    def fitter(self, stage: Ensemble, cap: int, states: int) -> Fitter:
        """states: of the stage; no parent set may take more than a second of it."""
        return Fitter(self.task, max_parents=stage.max_parents, max_size=cap, states=min(states, STATES_PER_SECOND))

    # --- structures -------------------------------------------------------------------------------------------------

    @cached_property
    def initial(self) -> list[RootedDag]:
        """One tabu search for each root hypothesis."""
        dags = []
        for roots in root_hypotheses(self.task):
            learned = learn(self.scores[SAMPLE_SIZES[0]], self.constraints(roots, INITIAL), INITIAL.methods[0])
            dags.append(RootedDag(roots, learned.dag, learned.score))
        return by_score(dags)

    @cached_property
    def likely_roots(self) -> list[Roots]:
        return [rooted.roots for rooted in self.initial[:MAX_HYPOTHESES]]

    def constraints(self, roots: Roots, stage: Ensemble) -> Constraints:
        return rooted_constraints(self.task, self.frame, roots, max_parents=stage.max_parents)

    def learn_stage(self, stage: Ensemble) -> list[RootedDag]:
        """Run the searches of a stage under every likely root hypothesis."""
        rooted_dags: list[RootedDag] = []
        ranking, rng = self.scores[SAMPLE_SIZES[0]], Random(self.seed)
        for roots in self.likely_roots:
            constraints = self.constraints(roots, stage)
            starts = [constraints.required, *(random_dag(constraints, rng) for _ in range(stage.starts))]
            for scores in self.scores.values():
                for method in stage.methods:
                    dags = (learn(scores, constraints, method, start=start).dag for start in starts)
                    rooted_dags.extend(RootedDag(roots, dag, ranking.total(dag)) for dag in dags)
        return by_score(rooted_dags)

    # --- parent proposals -------------------------------------------------------------------------------------------

    def fitted_proposals(
        self, name: str, fitter: Fitter, stage: Ensemble, learned: Sequence[RootedDag]
    ) -> Iterator[FittedModel]:
        """For each root hypothesis the acyclic choice of least total size; a search over orders beyond its reach."""
        for roots in self.likely_roots:
            dags = [rooted.dag for rooted in learned if rooted.roots == roots] + self.bootstrap_stage(roots, stage)
            proposed = named_sets(self.frame, proposed_sets(dags, stage.pool))
            found_by = name
            try:
                model = fitter.fit_proposals(proposed, roots)
            except BudgetSpent:
                found_by, model = f"{name}, order search", fitter.fit_by_order(proposed, roots)
            if isinstance(model, Scm):
                yield FittedModel(found_by, model)

    def bootstrap_stage(self, roots: Roots, stage: Ensemble) -> list[Dag]:
        generator = np.random.Generator(np.random.PCG64(self.seed))
        resamples = draw_resamples(generator, self.frame.num_rows, self.frame.num_vars, replicates=REPLICATES)
        score = mbde(SAMPLE_SIZES[0])
        return bootstrap_dags(self.frame, score, self.constraints(roots, stage), stage.methods[0], resamples)


def proposed_sets(dags: Sequence[Dag], pool: int | None) -> dict[int, list[int]]:
    """Per variable its parent sets in the graphs, and the parents that most graphs give it, at most `pool` of them."""
    num_vars = len(dags[0])
    proposed = {}
    for child in range(num_vars):
        support = [float(sum(dag[child] >> parent & 1 for dag in dags)) for parent in range(num_vars)]
        proposed[child] = [*(dag[child] for dag in dags), best_supported(support, pool)]
    return proposed


def random_dag(constraints: Constraints, rng: Random) -> Dag:
    """Draw a legal graph.

    Variables are in a random order that the constraints admit, with up to two earlier parents for each.
    """
    dag, placed, waiting = [0] * constraints.num_vars, 0, list(range(constraints.num_vars))
    while waiting:
        ready = [v for v in waiting if (constraints.required[v] | constraints.earlier[v]) & ~placed == 0]
        child = rng.choice(ready)
        may = [u for u in range(constraints.num_vars) if constraints.allowed[child] & placed >> u & 1]
        chosen = rng.sample(may, min(len(may), constraints.max_parents, rng.randint(0, 2)))
        dag[child] = constraints.required[child] | sum(1 << u for u in chosen)
        placed |= 1 << child
        waiting.remove(child)
    return tuple(dag)
