"""Methods that search for a structure first: causal discovery and score portfolios, then exact formulas.

If the proposed parents of some variable do not determine its values, there is no answer: nothing else is tried. The
libraries come with the extra `discovery`.

The score is mbde: Bayesian Dirichlet equivalent uniform for interventional rows (baselines.structure_learning.scores).
A portfolio answers an Alternative-SCM task with its first model that a single-variable intervention separates from the
reference.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import msgspec

from calibrant.bench.protocols import ProtocolResult
from calibrant.bench.replayscm.rows.exact import PlainRow, scm_answer, warming_task
from calibrant.dsl.errors import require_extra
from calibrant.dsl.replayscm.item import Task, TaskKind

if TYPE_CHECKING:
    from calibrant.baselines.replayscm.discovery import GraphProposal
    from calibrant.baselines.replayscm.fit import FittedModel
    from calibrant.baselines.structure_learning.constraints import Constraints, Frame
    from calibrant.dsl.replayscm.scm import Scm


# --- Off-the-shelf causal discovery as protocols: a library proposes parents, the shared exact fitter finds formulas
EXTRA = "discovery"

NumParents = Annotated[int, msgspec.Meta(ge=1, le=6)]
Level = Annotated[float, msgspec.Meta(gt=0, lt=1)]
ImaginaryRows = Annotated[float, msgspec.Meta(gt=0)]


class Discovery(PlainRow, frozen=True):
    """Base of the rows that call a discovery library.

    max_parents: how many parents a library may propose where it can be told, and a mechanism may mention
    """

    modules: ClassVar[tuple[str, ...]] = ()
    max_parents: NumParents = 5

    def require(self) -> None:
        require_extra(EXTRA, *self.modules)

    def warm_up(self) -> None:
        self.answer(warming_task())

    def proposal(self, task: Task, frame: Frame, constraints: Constraints) -> GraphProposal:
        """Run the library on the rows; return the proposed parents of every variable."""
        raise NotImplementedError

    def answer(self, task: Task) -> ProtocolResult:
        from calibrant.baselines.replayscm.fit import Fitter, Unfit, disclosed_constraints, frame_from_panel

        if task.kind is TaskKind.ALTERNATIVE:  # a structure learned from the rows is no alternative explanation of them
            return ProtocolResult("impossible", provenance={"reason": "no Alternative-SCM row"})
        frame = frame_from_panel(task.training)
        constraints = disclosed_constraints(task.disclosure, frame.variables, max_parents=self.max_parents)
        proposal = self.proposal(task, frame, constraints)
        model = Fitter(task, max_parents=self.max_parents).fit_proposals(proposal.parents, proposal.roots)
        proposed = {
            v: list(dict.fromkeys(u for parents in sets for u in parents)) for v, sets in proposal.parents.items()
        }
        provenance: dict[str, Any] = {"roots": list(proposal.roots), "proposed": proposed}
        if isinstance(model, Unfit):
            provenance["cyclic" if model.cyclic else "unfit"] = list(model.variables)
            return ProtocolResult("impossible", provenance=provenance)
        return ProtocolResult("found", scm_answer(task.kind, model), model.size, provenance)


class PcThenFit(Discovery, frozen=True):
    """PC from causal-learn, then exact formulas over each variable's neighbours.

    alpha: level of the independence tests
    test: gsq (likelihood ratio) or chisq (Pearson)
    """

    name = "pc+dsl"
    modules = ("causallearn",)
    alpha: Level = 0.05
    test: Literal["gsq", "chisq"] = "gsq"

    def proposal(self, task: Task, frame: Frame, constraints: Constraints) -> GraphProposal:
        from calibrant.baselines.replayscm.discovery import adjacency_proposal, pc_graph

        return adjacency_proposal(task, frame, pc_graph(frame, constraints, alpha=self.alpha, test=self.test))


class GesThenFit(Discovery, frozen=True):
    """GES from causal-learn, then exact formulas over the learned parents.

    score: bdeu, or bic for that of linear Gaussian models
    """

    name = "ges+dsl"
    modules = ("causallearn",)
    score: Literal["bdeu", "bic"] = "bdeu"

    def proposal(self, task: Task, frame: Frame, constraints: Constraints) -> GraphProposal:
        from calibrant.baselines.replayscm.discovery import dag_proposal, ges_graph

        return dag_proposal(task, frame, ges_graph(frame, max_parents=self.max_parents, score=self.score))


class PgmpyThenFit(Discovery, frozen=True):
    """Hill climbing from pgmpy, then exact formulas over the learned parents.

    score: bdeu, bic or k2, of pgmpy, without the rows in which the variable was set
    imaginary_rows: equivalent sample size of bdeu
    """

    name = "pgmpy-hc+dsl"
    modules = ("pgmpy",)
    score: Literal["bdeu", "bic", "k2"] = "bdeu"
    imaginary_rows: ImaginaryRows = 1.0

    def proposal(self, task: Task, frame: Frame, constraints: Constraints) -> GraphProposal:
        from calibrant.baselines.replayscm.discovery import dag_proposal, hill_climbing_graph

        graph = hill_climbing_graph(frame, constraints, score=self.score, imaginary_rows=self.imaginary_rows)
        return dag_proposal(task, frame, graph)


class GiesThenFit(Discovery, frozen=True):
    """GIES from the package gies with the mbde score, then exact formulas over the learned parents."""

    name = "gies+dsl"
    modules = ("gies", "threadpoolctl")

    def proposal(self, task: Task, frame: Frame, constraints: Constraints) -> GraphProposal:
        from calibrant.baselines.replayscm.discovery import dag_proposal, gies_graph, intervention_targets

        return dag_proposal(task, frame, gies_graph(frame, intervention_targets(task.training)))


DISCOVERY = (PcThenFit, GesThenFit, PgmpyThenFit, GiesThenFit)


# --- Protocols `bnlearn+dsl` and `exact-mbde+dsl`: structures of high score, then exact formulas over them ------------
Count = Annotated[int, msgspec.Meta(ge=1)]
States = Annotated[int, msgspec.Meta(ge=0)]


class ScorePortfolio(PlainRow, frozen=True):
    """Base of both portfolios: the answer is the first train-exact model that is found."""

    @property
    def searches(self) -> dict[str, str]:
        """Kind of structure search, for the provenance; empty if the protocol's name states it."""
        return {}

    def candidates(self, task: Task) -> Iterator[FittedModel]:
        """Yield train-exact models in the order in which the portfolio finds them."""
        raise NotImplementedError

    def warm_up(self) -> None:
        for _ in zip(range(2), self.candidates(warming_task()), strict=False):
            pass  # two models: the first of each stage of fitting, which use every kernel

    def answer(self, task: Task) -> ProtocolResult:
        from calibrant.solvers.outcome import BudgetSpent

        try:
            return self._alternative(task) if task.kind is TaskKind.ALTERNATIVE else self._first(task)
        except BudgetSpent as spent:
            return ProtocolResult("out_of_budget", provenance={"stage": None, "reached": str(spent)})

    def _first(self, task: Task) -> ProtocolResult:
        candidate = next(self.candidates(task), None)
        if candidate is None:
            return _no_model(task)  # no proof of absence: formula search and numbers of parents are bounded
        provenance = {"stage": candidate.stage, **self.searches}
        return ProtocolResult("found", scm_answer(task.kind, candidate.model), candidate.model.size, provenance)

    def _alternative(self, task: Task) -> ProtocolResult:
        assert task.reference is not None
        for stage, model in self.candidates(task):
            answer = _separating_answer(task.reference, model)
            if answer is not None:
                return ProtocolResult("found", answer, model.size, {"stage": stage})
        return _no_model(task)


class BnlearnThenFit(ScorePortfolio, frozen=True):
    """Greedy structure learning in four stages as published, then exact formulas over the learned parents.

    seed: of column order, random starts and bootstrap rows
    states: functions that formula search may compare in the residual stage; 600 seconds at 200 million a second
    """

    # the stages and their limits: baselines.replayscm.structure (ReplaySCM, appendix H); the residual one is the last
    name = "bnlearn+dsl"
    seed: int = 0
    states: States = 120_000_000_000

    @property
    def searches(self) -> dict[str, str]:
        return {"structures": "tabu search and hill climbing on mbde, greedy: no optimum is claimed"}

    def candidates(self, task: Task) -> Iterator[FittedModel]:
        from calibrant.baselines.replayscm.structure import bnlearn_candidates  # imports the compiler

        return bnlearn_candidates(task, seed=self.seed, states=self.states)


class ExactMbdeThenFit(ScorePortfolio, frozen=True):
    """The exact mbde optimum, the k best networks, then likely and at last all parents; exact formulas over them.

    iss: imaginary rows of mbde
    max_parents: how many variables a mechanism may mention
    networks: length of the k-best lists
    states: functions that formula search may compare for one parent set
    """

    # after the networks it tries parent sets, then single parents, by posterior probability, and at last all parents
    name = "exact-mbde+dsl"
    iss: ImaginaryRows = 1.0
    max_parents: NumParents = 5
    networks: Count = 100
    states: States = 200_000_000

    def candidates(self, task: Task) -> Iterator[FittedModel]:
        from calibrant.baselines.replayscm.structure import exact_mbde_candidates

        return exact_mbde_candidates(
            task, iss=self.iss, max_parents=self.max_parents, networks=self.networks, states=self.states
        )


def _no_model(task: Task) -> ProtocolResult:
    return ProtocolResult("out_of_budget", provenance={"stage": None})


def _separating_answer(reference: Scm, model: Scm) -> dict[str, Any] | None:
    """Return the answer object; None if no hard intervention on one variable separates the two."""
    from calibrant.bench.replayscm.rows.exact import alternative_answer
    from calibrant.dsl.replayscm.alternatives import find_separation
    from calibrant.solvers.replayscm.alternative import AlternativeAnswer

    if model.roots != reference.roots or model.equivalent(reference):
        return None
    separation = find_separation(reference, model)
    return None if separation is None else alternative_answer(AlternativeAnswer(model, *separation))


SCORE_PROTOCOLS = (BnlearnThenFit, ExactMbdeThenFit)
