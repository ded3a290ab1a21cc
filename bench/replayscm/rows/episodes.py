"""Answers of methods to extended items: in an episode after the worlds that a policy requests, else from all worlds.

Methods that only infer (`exact`, `posterior`, the blind ones, `majority`) get greedy's worlds in an episode, so that
they differ only in inference; `random` requests random worlds, `abstain` none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from calibrant.bench.protocols import Protocol, ProtocolResult, Ties, nothing_found
from calibrant.dsl.replayscm.extensions.extension import Question
from calibrant.dsl.replayscm.item import Task

if TYPE_CHECKING:
    from calibrant.dsl.replayscm.episode import ScmEpisode
    from calibrant.dsl.replayscm.extensions.reference import EvidenceWorld
    from calibrant.solvers.outcome import Outcome
    from calibrant.solvers.replayscm.experiments.policies import ExtendedAnswer

    Inference: TypeAlias = Callable[[Task, Sequence[EvidenceWorld], str], Outcome[ExtendedAnswer]]

NOT_EXTENDED = "the item is no episode, and has neither noise nor hidden variables"


def is_extended(handout: object) -> bool:
    """Return whether a handout is an extended item: an episode, or a task with noise or hidden variables."""
    return not isinstance(handout, Task) or handout.extension is not None


def answer_extended(method: str, handout: Any) -> ProtocolResult:
    """Return the answer of a method, by its name; an episode is played, and the answer submitted."""
    if not is_extended(handout):
        return ProtocolResult("impossible", provenance={"reason": NOT_EXTENDED})
    return _answer(method, _inferences()[method], handout)


def answer_structured(score: Literal["noisy-weights", "mbde"], search: Any, handout: Any) -> ProtocolResult:
    """Return the answer of structure learning by a score and a search; an episode is played with greedy's worlds."""
    from calibrant.baselines.replayscm.structure import answer_structure

    return _answer(score, lambda task, worlds, key: answer_structure(task, worlds, score, search), handout)


def _answer(method: str, infer: Inference, handout: Any) -> ProtocolResult:
    from calibrant.solvers.outcome import Found

    if isinstance(handout, Task):
        outcome = infer(handout, () if method == "abstain" else task_evidence(handout), task_key(handout))
    else:
        outcome = infer(handout.task, _play(method, handout), handout.id)
    if not isinstance(outcome, Found):
        return nothing_found(outcome)
    solved = outcome.value
    if not isinstance(handout, Task):
        step = handout.act({"submit": dict(solved.submission)})
        if step.refused:
            raise ValueError(f"the submission was refused: {step.refused}")
    share = {} if solved.posterior_share is None else {"posterior_share": float(solved.posterior_share)}
    provenance = {"from": solved.provenance, **share}
    return ProtocolResult("found", dict(solved.submission), None, provenance, _ties(solved))


def _ties(solved: ExtendedAnswer) -> Ties | None:
    """Return the SCMs that are as probable and as small as the answer; None if the method does not choose by these."""
    from calibrant.solvers.outcome import Found
    from calibrant.solvers.replayscm.experiments.policies import map_submission

    if solved.choice is None:
        return None
    tied = solved.choice.ties()
    if not isinstance(tied, Found):
        return Ties(None, note=tied.reached)
    return Ties(tied.value.count, [map_submission(formulas) for formulas in tied.value.maps])


def _play(method: str, episode: ScmEpisode) -> Sequence[EvidenceWorld]:
    from calibrant.dsl.replayscm.episode import steps_evidence
    from calibrant.solvers.replayscm.experiments.policies import play_worlds

    if method == "abstain":
        return steps_evidence(episode.steps)
    return play_worlds(episode, "random" if method == "random" else "greedy", episode.id)


def _inferences() -> Mapping[str, Inference]:
    from calibrant.baselines.replayscm.rows import answer_hidden_blind, answer_majority, answer_noise_blind
    from calibrant.solvers.replayscm.experiments.policies import answer_exact, answer_forecast, answer_posterior

    def posterior(task: Task, worlds: Sequence[EvidenceWorld], key: str) -> Outcome[ExtendedAnswer]:
        is_forecast = task.extension is not None and task.extension.question is Question.FORECAST
        return (answer_forecast if is_forecast else answer_posterior)(task, worlds, key)

    def exact(task: Task, worlds: Sequence[EvidenceWorld], key: str) -> Outcome[ExtendedAnswer]:
        return answer_exact(task, worlds)

    return {
        "exact": exact,
        "greedy": exact,
        "random": exact,
        "abstain": exact,
        "posterior": posterior,
        "noise-blind": lambda task, worlds, key: answer_noise_blind(task, worlds),
        "hidden-blind": lambda task, worlds, key: answer_hidden_blind(task, worlds),
        "majority": lambda task, worlds, key: answer_majority(task, worlds),
    }


def task_evidence(task: Task) -> list[EvidenceWorld]:
    """Return the training worlds of a passive item as evidence."""
    from calibrant.dsl.replayscm.episode import task_class, worlds_evidence

    return worlds_evidence(task_class(task), task.training.worlds)


def task_key(task: Task) -> str:
    """Return a digest of the public part of a passive item, the seed of samples."""
    worlds = [(world.intervention.signature, world.row_texts(task.variables)) for world in task.training.worlds]
    return sha256(repr((task.variables, worlds)).encode()).hexdigest()


# --- Protocols for episodes, noise and hidden variables; they refuse plain items --------------------------------------


class ExtendedRow(Protocol, frozen=True):
    """Base of methods for extended items."""

    reads_canonical = True

    def refusal(self, handout: object) -> str:
        return "" if is_extended(handout) else NOT_EXTENDED

    def answer(self, handout: Any) -> ProtocolResult:
        return answer_extended(self.name, handout)


class Greedy(ExtendedRow, frozen=True):
    """The world of least expected share, under noise of most expected bits, until nothing splits; then as exact.

    Episodes alone differ from exact in nothing: there exact is given greedy's worlds.
    """

    name = "greedy"


class RandomWorlds(ExtendedRow, frozen=True):
    """Worlds at random without repetition, with greedy's stop; then as exact."""

    name = "random"


class NoiseBlind(ExtendedRow, frozen=True):
    """Rows in order while a noise-free SCM fits all of them; then as exact without noise."""

    name = "noise-blind"


class HiddenBlind(ExtendedRow, frozen=True):
    """As exact in the class without hidden variables; where nothing fits, as noise-blind."""

    name = "hidden-blind"


class Abstain(ExtendedRow, frozen=True):
    """No worlds: as exact on the first world of an episode, and on no world at all of other items."""

    name = "abstain"


class NoisyWeights(ExtendedRow, frozen=True):
    """Structure learning by noisy local weights, then majority tables; noise with one rate, no hidden variables.

    search: the exact optimum of the score, hill climbing, or the parents of largest exact posterior
    """

    name = "noisy-weights"
    search: Literal["optimum", "hill-climbing", "posterior"] = "optimum"

    def answer(self, handout: Any) -> ProtocolResult:
        return answer_structured("noisy-weights", self.search, handout)


class MbdeMajority(ExtendedRow, frozen=True):
    """As noisy-weights by the score mbde, which knows neither the rate nor the prior.

    search: as of noisy-weights
    """

    name = "mbde-majority"
    search: Literal["optimum", "hill-climbing", "posterior"] = "optimum"

    def answer(self, handout: Any) -> ProtocolResult:
        return answer_structured("mbde", self.search, handout)


EXTENDED = (Greedy, RandomWorlds, NoiseBlind, HiddenBlind, Abstain, NoisyWeights, MbdeMajority)
