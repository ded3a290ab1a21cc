"""Methods that learn a structure first, then formulas: greedily, exactly, or on noisy rows.

`bnlearn_candidates`, as published, has four stages; each runs only if the earlier ones fit nothing. Structures are
tried in falling order of their mbde score, learned DAGs before parent proposals. The paper states 500, 2,000, 4,000 and
5,000 iterations, 5 and 6 parents, 96 bootstrap replicates, size caps 10, 12 and 13. The rest is chosen here: the
ensemble searches under equivalent sample sizes 1 and 10, with tabu lists of 10 and 50 and by hill climbing, from the
empty graph and from random ones. The first three stages cap formulas at 10. The order of columns is drawn from the
seed, as a greedy search breaks ties by it. 600 seconds are replaced by states of formula search, so that a rerun finds
the same.

`exact_mbde_candidates` also has stages that run only if the earlier ones fit nothing: the network of highest mbde score
under every root hypothesis; the k best networks; the parent sets of highest exact posterior probability; then the
parents of highest posterior arc probability, one more at a time until every admissible parent is proposed, under the
hypotheses that the evidence favours and at last under all. The last stage is complete for its number of parents: if it
finds nothing, no train-exact model has mechanisms of at most `max_parents` mentions (or formula search ran out of
states).

`answer_structure` is for noisy rows, with one of two scores: noisy local weights, which use the stated prior and rate,
and mbde (baselines.structure_learning.scores), which uses neither. Searches are the exact optimum, hill climbing, and
an acyclic choice of the parent sets of largest exact posterior.

The noisy local weight of parents S is the logarithm of prior x w(S): the sum over all functions that depend on exactly
S of the probability of the child's free cells under a known rate (solvers.replayscm.noise.subset_tables). So the exact
optimum is the most probable graph of functional parents. Posteriors of baselines.structure_learning also weight a graph
by its number of topological orders; exact ones are those of solvers.replayscm.noise.posterior.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import inf, log
from random import Random
from typing import Literal, TypeAlias

import numpy as np

from calibrant.baselines.replayscm.fit import (
    MAX_HYPOTHESES,
    MAX_STATES,
    FittedModel,
    Fitter,
    RootedDag,
    Roots,
    all_root_sets,
    best_supported,
    by_score,
    disclosed_constraints,
    fitted_dags,
    frame_from_panel,
    named_sets,
    root_hypotheses,
    rooted_constraints,
)
from calibrant.baselines.structure_learning.constraints import Constraints, Dag, Frame, Mask
from calibrant.baselines.structure_learning.levels import Posteriors, ScoreOptimum
from calibrant.baselines.structure_learning.scores import CACHE_BITS, F64, MAX_TABLE_VARIABLES, LocalScores, mbde
from calibrant.baselines.structure_learning.search import (
    HillClimbing,
    Method,
    Tabu,
    bootstrap_dags,
    draw_resamples,
    learn,
)
from calibrant.dsl.formulas.formula import STANDARD_OPERATORS
from calibrant.dsl.formulas.table import TruthTable
from calibrant.dsl.replayscm.episode import task_class
from calibrant.dsl.replayscm.extensions.extension import NoiseKind, Prior, parent_weights
from calibrant.dsl.replayscm.extensions.reference import EvidenceWorld
from calibrant.dsl.replayscm.item import Task
from calibrant.dsl.replayscm.scm import Scm
from calibrant.solvers.formulas.synthesis import formula_for
from calibrant.solvers.outcome import BudgetSpent, Found, Impossible, Outcome
from calibrant.solvers.replayscm.experiments.candidates import plain_task
from calibrant.solvers.replayscm.experiments.policies import ExtendedAnswer, map_submission
from calibrant.solvers.replayscm.noise import subset_tables
from calibrant.solvers.replayscm.noise.posterior import Posterior

# --- Greedy structure learning, then exact formulas: the published `bnlearn+DSL` (ReplaySCM, appendix H) ----------
SAMPLE_SIZES = (1.0, 10.0)  # imaginary rows of mbde; networks are ranked under the first
NUM_REPLICATES = 96  # bootstrap samples
STATES_PER_SECOND = 200_000_000  # states of formula search, in place of a published second
RESIDUAL_STATES = 600 * STATES_PER_SECOND


@dataclass(frozen=True, slots=True)
class Ensemble:
    """Searches of one stage, each under every sample size and from every start.

    starts: number of random start graphs besides the empty one
    pool: number of best-supported variables in a parent proposal; None means all with support
    caps: largest formula sizes, tried in turn
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

    `FittedModel.stage` is one of initial, ensemble, proposals, residual dags, residual proposals; proposals have
    ", order search" appended if the least acyclic assignment was out of budget.

    seed: for column order, random starts and bootstrap rows
    states: states of formula search after which the residual stage tries no further cap
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
        """Yield models of structures under every cap, smallest first, then of proposals, with one common budget."""
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
        """Return a fitter; states: budget of the stage, at most STATES_PER_SECOND of it for one parent set."""
        return Fitter(self.task, max_parents=stage.max_parents, max_size=cap, states=min(states, STATES_PER_SECOND))

    # --- structures -------------------------------------------------------------------------------------------------

    @cached_property
    def initial(self) -> list[RootedDag]:
        """Return the networks of one tabu search for each root hypothesis, by falling score."""
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
        """Yield for each root hypothesis the least acyclic assignment, or out of budget one by a search over orders."""
        for roots in self.likely_roots:
            dags = [rooted.dag for rooted in learned if rooted.roots == roots] + self.bootstrap_stage(roots, stage)
            proposed = named_sets(self.frame, proposed_sets(dags, stage.pool))
            stage_name = name
            try:
                model = fitter.fit_proposals(proposed, roots)
            except BudgetSpent:
                stage_name, model = f"{name}, order search", fitter.fit_by_order(proposed, roots)
            if isinstance(model, Scm):
                yield FittedModel(stage_name, model)

    def bootstrap_stage(self, roots: Roots, stage: Ensemble) -> list[Dag]:
        generator = np.random.Generator(np.random.PCG64(self.seed))
        resamples = draw_resamples(generator, self.frame.num_rows, self.frame.num_vars, replicates=NUM_REPLICATES)
        score = mbde(SAMPLE_SIZES[0])
        return bootstrap_dags(self.frame, score, self.constraints(roots, stage), stage.methods[0], resamples)


def proposed_sets(dags: Sequence[Dag], pool: int | None) -> dict[int, list[int]]:
    """Return for each variable its parent sets in the graphs, and the set of its `pool` most frequent parents."""
    num_vars = len(dags[0])
    proposed = {}
    for child in range(num_vars):
        support = [float(sum(dag[child] >> parent & 1 for dag in dags)) for parent in range(num_vars)]
        proposed[child] = [*(dag[child] for dag in dags), best_supported(support, pool)]
    return proposed


def random_dag(constraints: Constraints, rng: Random) -> Dag:
    """Sample a graph within the constraints: a random order, with up to two earlier parents for each variable."""
    dag, placed, waiting = [0] * constraints.num_vars, 0, list(range(constraints.num_vars))
    while waiting:
        ready = [v for v in waiting if (constraints.required[v] | constraints.earlier[v]) & ~placed == 0]
        child = rng.choice(ready)
        candidates = [u for u in range(constraints.num_vars) if constraints.allowed[child] & placed >> u & 1]
        chosen = rng.sample(candidates, min(len(candidates), constraints.max_parents, rng.randint(0, 2)))
        dag[child] = constraints.required[child] | sum(1 << u for u in chosen)
        placed |= 1 << child
        waiting.remove(child)
    return tuple(dag)


# --- The exact score optimum, then exact formulas: `bnlearn+DSL` without random starts --------------------------------
NUM_NETWORKS = 100  # networks of the k-best list
NUM_PARENT_SETS = 16  # parent sets of each variable, most probable first


def exact_mbde_candidates(
    task: Task, *, iss: float = 1.0, max_parents: int = 5, networks: int = NUM_NETWORKS, states: int = MAX_STATES
) -> Iterator[FittedModel]:
    """Return the train-exact models of the portfolio, in its order; stages: optimum, k best, parent sets, widening.

    `BudgetSpent` if there are too many variables for dynamic programming, or for an assignment of parent sets.

    iss: imaginary sample size of mbde, in rows
    networks: length of the k-best lists
    states: states of formula search for one parent set
    """
    return _OptimumPortfolio(task, iss, max_parents, networks, states).candidates()


class _OptimumPortfolio:
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
            v: [likely.parents for likely in beliefs.likeliest_parent_sets(v, NUM_PARENT_SETS)]
            for v in range(self.frame.num_vars)
        }
        model = self.fitter.fit_proposals(named_sets(self.frame, sets), roots)
        if isinstance(model, Scm):
            yield FittedModel("parent sets", model)

    def widening(self, posteriors: dict[Roots, Posteriors]) -> Iterator[FittedModel]:
        """Yield models over growing sets of the most probable parents, then over all parents under every root set."""
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


# --- The noisy local weights as a score for structure learning: search, exact optimum and posteriors use it like mbde


class NoisyWeightScores(LocalScores):
    """Local scores of one frame under mechanism noise; sets of more than `max_parents` have none (minus infinity)."""

    def __init__(
        self, frame: Frame, rate: Fraction, *, roots: Mask = 0, max_parents: int = 4, prior: Prior = Prior.BY_PARENTS
    ) -> None:
        """Tabulate all scores; `ValueError` for more than CACHE_BITS variables, or a rate outside of (0, 1/2).

        roots: variables without a mechanism
        """
        if frame.num_vars > CACHE_BITS:
            raise ValueError(f"{frame.num_vars} variables; noisy weights are tabulated for up to {CACHE_BITS}")
        if not 0 < rate < Fraction(1, 2):
            raise ValueError(f"a rate of {rate}; noisy weights need one between 0 and 1/2")
        super().__init__(frame, mbde())
        self._scores = _tabulate(frame, rate, roots, max_parents, prior)
        sets = np.arange(1 << frame.num_vars)
        self.scoring.keys[:, : len(sets)] = sets  # the cache has every set, so kernels compute no score
        self.scoring.values[:, : len(sets)] = self._scores

    def table(self, constraints: Constraints, listen: Callable[[int, int], None] = lambda done, total: None) -> F64:
        """Return the local scores that the constraints admit, [variables, 2**variables]; minus infinity elsewhere."""
        admitted = super().table(constraints, listen)
        scores: F64 = np.where(np.isfinite(admitted), self._scores, -inf)
        return scores


def _tabulate(frame: Frame, rate: Fraction, roots: Mask, max_parents: int, prior: Prior) -> F64:
    """Return the logarithms of exact weights, [variables, 2**variables]."""
    pairs = zip(frame.values.tolist(), frame.clamped.tolist(), strict=True)
    rows = [subset_tables.EvidenceRow(word, clamped) for word, clamped in pairs]
    priors = parent_weights(prior, frame.num_vars, max_parents)
    scores = np.full((frame.num_vars, 1 << frame.num_vars), -inf)
    scaled = subset_tables.scaled_rate(rate)
    for child in range(frame.num_vars):
        if roots >> child & 1:
            scores[child, 0] = 0.0
            continue
        evidence = subset_tables.variable_rows(rows, child)
        others = [v for v in range(frame.num_vars) if v != child]
        scale = evidence.num_cells * log(scaled.base)
        for mask, weight in subset_tables.set_weights(
            evidence, child, subset_tables.parent_masks(others, max_parents), scaled
        ).items():
            share = priors[mask.bit_count()]
            if weight and share:
                scores[child, mask] = log(weight) - scale + log(share.numerator) - log(share.denominator)
    return scores


# --- Structure learning on noisy rows: a graph of highest score, then for every variable its best table over
# the parents
Score: TypeAlias = Literal["noisy-weights", "mbde"]
Search: TypeAlias = Literal["optimum", "hill-climbing", "posterior"]


def answer_structure(
    task: Task, worlds: Sequence[EvidenceWorld], score: Score, search: Search
) -> Outcome[ExtendedAnswer]:
    """Return majority tables over the parents of a learned graph.

    `Impossible` unless there is noise of one rate for all variables, and no hidden variable.
    """
    scm_class = task_class(task)
    if scm_class.hidden_parents or scm_class.noise.is_noiseless or scm_class.noise.kind is NoiseKind.EACH:
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
    for index, variable in enumerate(frame.variables):
        if variable in scm_class.endogenous:
            parents = frame.names(dag[index])
            table = majority_table(worlds, scm_class.observed, variable, parents)
            formulas[variable] = formula_for(table, parents or scm_class.roots[:1], STANDARD_OPERATORS)
    return Found(ExtendedAnswer(map_submission(formulas), None, f"{search} of {score}"))


def learn_graph(scores: LocalScores, constraints: Constraints, search: Search) -> Dag:
    """Return the graph that a search finds."""
    if search == "hill-climbing":
        return learn(scores, constraints, HillClimbing()).dag
    optimum = ScoreOptimum(scores, constraints)
    return optimum.best().dag if search == "optimum" else _likeliest_parents(optimum, len(constraints.allowed))


def _likeliest_parents(optimum: ScoreOptimum, num_vars: int) -> Dag:
    """Choose parent sets greedily by falling posterior, each the most probable of its variable that closes no cycle."""
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
    """Return whether a variable is one of these parents or an ancestor of one."""
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
    """Return the disclosed rate of noise, or the rate of largest posterior on the item's grid."""
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
    positions = [observed.index(u) for u in parents]
    child = observed.index(variable)
    balance = [0] * (1 << len(parents))
    for world in worlds:
        if variable not in world.constants:
            for row in world.rows:
                pattern = sum(int(row[position]) << i for i, position in enumerate(positions))
                balance[pattern] += 1 if row[child] == "1" else -1
    return TruthTable(len(parents), sum((count > 0) << pattern for pattern, count in enumerate(balance)))
