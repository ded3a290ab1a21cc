"""Off-the-shelf causal discovery as protocols: a library proposes parents, the shared exact fitter finds formulas.

There is no rescue: a variable whose values the proposed parents do not determine leaves the problem without an answer.
The libraries come with the extra `discovery`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import msgspec

from calibrant.bench.protocols.base import ProtocolResult
from calibrant.bench.replayscm.protocols.answers import scm_answer
from calibrant.bench.replayscm.protocols.exact import warming_task
from calibrant.bench.replayscm.protocols.plain_row import PlainRow
from calibrant.dsl.replayscm.item import Task, TaskKind

if TYPE_CHECKING:
    from calibrant.baselines.replayscm.discovery import GraphProposal
    from calibrant.baselines.structure_learning.frame import Frame
    from calibrant.baselines.structure_learning.graph import Constraints

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
        from calibrant.baselines.replayscm.discovery import require_extra

        require_extra(EXTRA, *self.modules)

    def warm_up(self) -> None:
        self.answer(warming_task())

    def proposal(self, task: Task, frame: Frame, constraints: Constraints) -> GraphProposal:
        """Return what the library learns from the rows, as parents for every variable."""
        raise NotImplementedError

    def answer(self, task: Task) -> ProtocolResult:
        from calibrant.baselines.replayscm.fit import Fitter, Unfit, disclosed_constraints, frame_from_panel

        if task.kind is TaskKind.ALTERNATIVE:  # a structure that is learned from rows is no second explanation of them
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
