"""Methods of ReplaySCM in the order in which `all` runs them; the method `posterior`, and simple baselines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from calibrant.bench.protocols import Protocol, ProtocolResult
from calibrant.bench.replayscm.rows import exact
from calibrant.bench.replayscm.rows.episodes import EXTENDED, answer_extended, is_extended
from calibrant.bench.replayscm.rows.structures import DISCOVERY, SCORE_PROTOCOLS
from calibrant.dsl.formulas.text import STANDARD
from calibrant.dsl.replayscm.item import Pool, Task, TaskKind
from calibrant.dsl.replayscm.scm import Scm

if TYPE_CHECKING:
    from calibrant.baselines.replayscm.posterior.choice import Choice
    from calibrant.baselines.replayscm.posterior.posterior import Posterior


# --- The protocol `posterior`: the most probable, or most agreeing, train-exact SCM under the generator's prior -------


class MostPosterior(exact.PlainRow, frozen=True):
    """Formulas that reproduce all, probable under the generator's prior; `exact` out of its reach.

    Sums over latent orders are exact; where there are too many for more than 16 variables, order MCMC draws members.

    choose: "agreeing", the member that most probably replays held-out worlds, or "probable", the most probable one
    configurations: what the prior mixes: "shape", the published ones with the task's numbers of variables and rows, or
        "all" nine
    draws: members drawn from the posterior, from whose mechanisms the answer is put together
    """

    name = "posterior"
    choose: Literal["probable", "agreeing"] = "agreeing"
    configurations: Literal["shape", "all"] = "shape"
    draws: int = 256

    def __post_init__(self) -> None:
        if self.draws < 1:
            raise ValueError(f"draws is {self.draws}; it has to be 1 or more")

    def warm_up(self) -> None:
        exact.Exact().warm_up()
        self.answer(exact.warming_task())

    def refusal(self, handout: object) -> str:
        return ""

    def answer(self, task: Task) -> ProtocolResult:
        if is_extended(task):
            return answer_extended(self.name, task)
        from calibrant.solvers.outcome import BudgetSpent

        if task.kind is TaskKind.ALTERNATIVE:
            return self._fall_back_to_exact(task, "the task asks for an alternative SCM, whatever its probability")
        if task.grammar != STANDARD:
            return self._fall_back_to_exact(
                task, "the prior is of formulas over the standard operators without constants"
            )
        from calibrant.baselines.replayscm.posterior.posterior import Posterior
        from calibrant.baselines.replayscm.posterior.prior import CONFIGURATIONS, MAX_MIXED_VARIABLES

        try:
            posterior = Posterior(task, configurations=CONFIGURATIONS if self.configurations == "all" else ())
            if posterior.components:
                return self._choose_member(task, posterior)
        except BudgetSpent as spent:
            if len(task.variables) > MAX_MIXED_VARIABLES:
                return self._choose_by_order_mcmc(task)
            return self._fall_back_to_exact(task, str(spent) or "too many latent orders or functions to go through")
        return self._fall_back_to_exact(task, "no configuration of the prior explains the evidence")

    def _fall_back_to_exact(self, task: Task, reason: str) -> ProtocolResult:
        result = exact.Exact().answer(task)
        provenance: dict[str, Any] = {**result.provenance, "posterior": f"not used: {reason}"}
        return ProtocolResult(result.outcome, result.answer, result.size, provenance)

    def _choose_member(self, task: Task, posterior: Posterior) -> ProtocolResult:
        from calibrant.baselines.replayscm.posterior.choice import certified_member, most_agreeing, most_probable

        choose = most_agreeing if self.choose == "agreeing" else most_probable
        choice = choose(posterior, self.draws)
        model = certified_member(task, choice.member)
        provenance = {**self._provenance(choice), "configurations": posterior.configurations()}
        return ProtocolResult(
            "found", exact.scm_answer(task.kind, model), model.size, {**provenance, "certified_by": "dsl.reference"}
        )

    def _choose_by_order_mcmc(self, task: Task) -> ProtocolResult:
        """Choose by order MCMC; the recorded value of a probable member is then its share of the samples."""
        from calibrant.baselines.replayscm.posterior.choice import certified_member, most_agreeing, most_frequent
        from calibrant.baselines.replayscm.posterior.posterior import SampledPosterior
        from calibrant.baselines.replayscm.posterior.prior import CONFIGURATIONS
        from calibrant.solvers.outcome import BudgetSpent

        try:
            chains = SampledPosterior(task, configurations=CONFIGURATIONS if self.configurations == "all" else ())
            choice = (most_agreeing if self.choose == "agreeing" else most_frequent)(chains, self.draws)
            model = certified_member(task, choice.member)
        except BudgetSpent as spent:
            return self._fall_back_to_exact(task, str(spent) or "too many functions to go through")
        provenance = {**self._provenance(choice), **chains.report, "certified_by": "dsl.reference"}
        return ProtocolResult("found", exact.scm_answer(task.kind, model), model.size, provenance)

    def _provenance(self, choice: Choice) -> dict[str, Any]:
        return {
            "prior": "baselines.generator_prior",
            "choose": self.choose,
            "draws": self.draws,
            "value": choice.value,
            "considered": choice.considered,
        }


# --- Simple baselines: first-found, random-legal, copy-parent, majority -----------------------------------------------


class SimpleRow(exact.PlainRow, frozen=True):
    """Base of simple baselines; they give no answer to an Alternative-SCM task."""

    def warm_up(self) -> None:
        self.answer(exact.warming_task())

    def model(self, task: Task) -> Scm | None:
        """Return the answer; None if the allowed operators cannot express it."""
        raise NotImplementedError

    def answer(self, task: Task) -> ProtocolResult:
        if task.kind is TaskKind.ALTERNATIVE:
            return ProtocolResult("impossible", provenance={"reason": "no Alternative-SCM row"})
        model = self.model(task)
        if model is None:
            return ProtocolResult("impossible", provenance={"reason": "nothing it can say fits"})
        return ProtocolResult("found", exact.scm_answer(task.kind, model), model.size)


class FirstFound(SimpleRow, frozen=True):
    """The first parent sets in a fixed order that fit and close no cycle; what the rows do not show is 0."""

    name = "first-found"

    def model(self, task: Task) -> Scm | None:
        from calibrant.baselines.replayscm.rows import first_found

        return first_found(task)


class RandomLegal(SimpleRow, frozen=True):
    """A random legal SCM that ignores the evidence.

    seed: together with the content of the task it decides the draw
    """

    name = "random-legal"
    seed: int = 0

    def model(self, task: Task) -> Scm | None:
        from calibrant.baselines.replayscm.rows import random_legal

        return random_legal(task, self.seed)


class CopyParent(SimpleRow, frozen=True):
    """Every variable copies or negates one other, with as few wrong training cells as possible."""

    name = "copy-parent"

    def model(self, task: Task) -> Scm | None:
        from calibrant.baselines.replayscm.rows import copy_parent

        return copy_parent(task)


class Majority(SimpleRow, frozen=True):
    """Every variable has the value that it has in most of its rows."""

    name = "majority"

    def refusal(self, handout: object) -> str:
        return ""

    def answer(self, task: Task) -> ProtocolResult:
        return answer_extended(self.name, task) if is_extended(task) else super().answer(task)

    def model(self, task: Task) -> Scm | None:
        from calibrant.baselines.replayscm.rows import majority

        return majority(task)


SIMPLE = (FirstFound, RandomLegal, CopyParent, Majority)


# --- Protocols of ReplaySCM in the order in which `all` runs them -----------------------------------------------------
PLAIN = (
    exact.Exact,
    exact.ExactSat,
    exact.ExactSmt,
    exact.ExactDp,
    exact.ExactIntegerProgram,
    MostPosterior,
    exact.StagedExactSearch,
    *SCORE_PROTOCOLS,
    *DISCOVERY,
    *SIMPLE,
)
ROWS = (*PLAIN, *EXTENDED)


def applicable_rows(pools: Sequence[Pool]) -> Sequence[type[Protocol]]:
    """Return all methods if a pool has episodes, noise or hidden variables, else those for plain items."""
    return ROWS if any(pool.has_extensions for pool in pools) else PLAIN
