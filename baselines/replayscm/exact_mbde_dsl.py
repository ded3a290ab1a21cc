"""The exact score optimum, then exact formulas: `bnlearn+DSL` without its luck.

Stages, each only where the earlier ones fit nothing: the network of highest mbde score under every root hypothesis;
the k best networks; the parent sets of highest exact posterior probability, in place of bootstrap supports; then
the parents of highest posterior arc probability, one more at a time until every admissible parent is proposed, under
the hypotheses that the evidence favours and at last under all. The last stage is complete for its number of parents:
if it finds nothing, no train-exact model has mechanisms of at most `max_parents` mentions (or formula search ran out
of states).
"""

from __future__ import annotations

from collections.abc import Iterator

from calibrant.baselines.replayscm.fit import MAX_STATES, Fitter
from calibrant.baselines.replayscm.frames import frame_from_panel
from calibrant.baselines.replayscm.portfolio import (
    MAX_HYPOTHESES,
    FittedModel,
    RootedDag,
    Roots,
    all_root_sets,
    best_supported,
    by_score,
    fitted_dags,
    named_sets,
    root_hypotheses,
    rooted_constraints,
)
from calibrant.baselines.structure_learning.score_optimum import Posteriors, ScoreOptimum
from calibrant.baselines.structure_learning.scores import MAX_TABLE_VARIABLES, LocalScores, mbde
from calibrant.dsl.replayscm.problem import Task
from calibrant.dsl.replayscm.scm import Scm
from calibrant.solvers.budget import BudgetSpent

NETWORKS = 100  # of the k-best list
PARENT_SETS = 16  # of each variable, likeliest first


def exact_mbde_candidates(
    task: Task, *, iss: float = 1.0, max_parents: int = 5, networks: int = NETWORKS, states: int = MAX_STATES
) -> Iterator[FittedModel]:
    """Return the train-exact models of the portfolio, in its order; stages: optimum, k best, parent sets, widening.

    `BudgetSpent` where dynamic programming over all variables, or a choice among parent sets, is out of reach.

    iss: imaginary rows of mbde
    networks: length of the k-best lists
    states: of formula search, for one parent set
    """
    return _Portfolio(task, iss, max_parents, networks, states).candidates()


class _Portfolio:
    def __init__(self, task: Task, iss: float, max_parents: int, networks: int, states: int) -> None:
        self.task = task
        self.max_parents = max_parents
        self.networks = networks
        self.frame = frame_from_panel(task.training)
        self.scores = LocalScores(self.frame, mbde(iss))
        self.fitter = Fitter(task, max_parents=max_parents, states=states)

    def candidates(self) -> Iterator[FittedModel]:
        if self.frame.num_vars > MAX_TABLE_VARIABLES:
            raise BudgetSpent(
                f"{self.frame.num_vars} variables; exact mbde optima are for at most {MAX_TABLE_VARIABLES}"
            )
        best = by_score(self.best(roots) for roots in root_hypotheses(self.task))
        for model in fitted_dags(self.fitter, self.frame, best):
            yield FittedModel("optimum", model)
        optima = {rooted.roots: self.optimum(rooted.roots) for rooted in best[:MAX_HYPOTHESES]}
        ranked = by_score(
            RootedDag(roots, *scored) for roots, optimum in optima.items() for scored in optimum.k_best(self.networks)
        )
        for model in fitted_dags(self.fitter, self.frame, ranked):
            yield FittedModel("k best", model)
        posteriors = {roots: optimum.posteriors() for roots, optimum in optima.items()}
        for roots, beliefs in posteriors.items():
            yield from self.likeliest_sets(roots, beliefs)
        yield from self.widening(posteriors)

    def optimum(self, roots: Roots) -> ScoreOptimum:
        constraints = rooted_constraints(self.task, self.frame, roots, max_parents=self.max_parents)
        return ScoreOptimum(self.scores, constraints)

    def best(self, roots: Roots) -> RootedDag:
        return RootedDag(roots, *self.optimum(roots).best())

    def likeliest_sets(self, roots: Roots, beliefs: Posteriors) -> Iterator[FittedModel]:
        sets = {
            v: [likely.parents for likely in beliefs.likeliest_parent_sets(v, PARENT_SETS)]
            for v in range(self.frame.num_vars)
        }
        model = self.fitter.fit_proposals(named_sets(self.frame, sets), roots)
        if isinstance(model, Scm):
            yield FittedModel("parent sets", model)

    def widening(self, posteriors: dict[Roots, Posteriors]) -> Iterator[FittedModel]:
        """Pools of the likeliest parents, then all parents under every root set."""
        for width in range(self.max_parents + 1, self.frame.num_vars - 1):
            for roots, beliefs in posteriors.items():
                frequency = beliefs.arcs().frequency()
                sets = {v: [best_supported(frequency[:, v].tolist(), width)] for v in range(self.frame.num_vars)}
                model = self.fitter.fit_proposals(named_sets(self.frame, sets), roots)
                if isinstance(model, Scm):
                    yield FittedModel("widening", model)
        everything = {v: [self.frame.variables] for v in self.frame.variables}
        for roots in dict.fromkeys((*posteriors, *all_root_sets(self.task))):
            model = self.fitter.fit_proposals(everything, roots)
            if isinstance(model, Scm):
                yield FittedModel("widening", model)
