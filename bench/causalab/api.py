"""Public item functions of CausaLab (`calibrant.score`, `solve`, ...), and what training needs of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from calibrant.bench.causalab.benchmark import BENCHMARK
from calibrant.bench.core.attribution import Hypotheses, weighted_hypotheses
from calibrant.bench.core.capabilities import ItemScore, Solution
from calibrant.bench.pools.capabilities import ItemApi
from calibrant.bench.scoring.answers import invalid_answer_message, parse_answer
from calibrant.bench.scoring.scorer import replay_answer
from calibrant.dsl.answer_text import Thoughts
from calibrant.dsl.causalab.episode import LabEpisode, RunScore, run_score
from calibrant.dsl.causalab.item import LabItem
from calibrant.dsl.causalab.mechanism import Mechanism, state_mechanism
from calibrant.dsl.episode import Step, replay_transcript
from calibrant.dsl.errors import CalibrantError
from calibrant.solvers.outcome import BudgetSpent, Found, Outcome

if TYPE_CHECKING:
    from calibrant.audits.causalab.attribution import LabSpace
    from calibrant.bench.causalab.dialogues import Aid
    from calibrant.bench.episodes import TextEpisode


# --- Public item functions --------------------------------------------------------------------------------------------


class LabScore(ItemScore[RunScore]):
    """The score of a run in a laboratory; correct if the submitted frequency is within 5 of the true one."""


class LabFunctions(ItemApi[LabItem]):
    """Implements ItemFunctions (bench.core.capabilities)."""

    def score(self, item: LabItem, answer: object, *, steps: Sequence[Step[Any]] = ()) -> LabScore:
        """Return the score of an answer.

        steps: interventions before the answer, which are replayed first; without them it is submitted at once
        """
        item, parsed = self.check_item(item), parse_answer(answer)
        replay = replay_answer(self.benchmark, item, parsed or {}, steps)
        score = run_score(item, replay.steps)
        problem = (
            invalid_answer_message(answer)
            if parsed is None and replay.problem and answer is not None
            else replay.problem
        )
        failure = problem or replay.gap or _wrong(score)
        return LabScore(item.id, not replay.problem, score.accurate, failure, score, score.as_json())

    def solve(self, item: LabItem) -> Outcome[Solution[Mechanism]]:
        from calibrant.solvers.causalab.exact import solve

        episode = LabEpisode(self.check_item(item))
        outcome = solve(episode)
        if not isinstance(outcome, Found):
            return outcome
        solution = outcome.value
        answer = {"frequency": solution.frequency, "hypothesis": state_mechanism(solution.mechanism)}
        provenance = {"class": solution.in_words, "unique": solution.unique}
        return Found(Solution(answer, solution.mechanism, None, provenance, tuple(episode.steps)))

    def version_space(self, item: LabItem, *, steps: Sequence[Step[Any]] = (), bounded: bool = False) -> LabSpace:
        """Return the mechanisms consistent with the records and the readings of `steps`.

        bounded: whether bases are integers from 0 to 100, as the benchmark samples them
        """
        from calibrant.audits.causalab.attribution import space_of

        item = self.check_item(item)
        replay_transcript(LabEpisode(item), steps)
        try:
            return space_of(item.task, steps, bounded=bounded)
        except BudgetSpent as spent:
            raise CalibrantError(f"the hypotheses that fit {item.id} are not enumerated: {spent}") from None

    def text_episode(
        self,
        item: LabItem,
        *,
        schema: Literal["free", "paper"] = "free",
        verify: Literal["never", "once"] = "never",
        aid: str = "none",
        carry: bool = False,
        thoughts: Thoughts = "strip",
    ) -> TextEpisode:
        """Return an episode in messages.

        schema, verify, aid, carry: see bench.causalab.dialogues.DialogueOptions
        thoughts: how thoughts are separated from the rest of a reply (dsl.answer_text)
        """
        from calibrant.bench.causalab.dialogues import DialogueOptions, text_episode

        source = cast("Aid", aid) if aid in ("none", "members") else Path(aid)
        return text_episode(self.check_item(item), DialogueOptions(schema, verify, source, carry), thoughts)


def _wrong(score: RunScore) -> str | None:
    return None if score.accurate else "wrong: the frequency is not within 5 of the crystal's"


FUNCTIONS = LabFunctions(BENCHMARK, LabItem)


# --- CausaLab for trainers --------------------------------------------------------------------------------------------


class LabTraining:
    """Implements Trainable (bench.core.capabilities); `share` is over the frequency and the edges of the graph."""

    @property
    def stages(self) -> Sequence[str]:
        return ("3nodes", "4nodes", "5nodes", "6nodes", "7nodes", "4nodes_quad_hard")

    def difficulty(self, item: LabItem) -> Mapping[str, int]:
        edges = item.sealed.mechanism.edges
        return {"nodes": len(item.task.nodes), "settings": item.task.allowance, "edges": len(edges)}

    def gold(self, item: LabItem) -> dict[str, Any] | None:
        return {"frequency": item.sealed.target, "hypothesis": state_mechanism(item.sealed.mechanism)}

    def share(self, item: LabItem, verdict: LabScore) -> float:
        """Return .5 for a frequency within 5, plus half of the F1 of the edges."""
        return (verdict.details.accurate + verdict.details.hypothesis.all_edge.f1) / 2

    def fits(self, verdict: LabScore) -> bool:
        return verdict.correct is True

    def agrees(self, verdict: LabScore) -> bool:
        return verdict.correct is True


TRAINING = LabTraining()


# --- Sets of frequencies of the reactor crystal, before the first intervention ----------------------------------------


def hypotheses(item: LabItem) -> Hypotheses:
    """Return the frequencies that consistent mechanisms predict, to two decimals, weighted by their number."""
    space = FUNCTIONS.version_space(item)
    numbers: dict[str, int] = {}
    for frequency, count in space.verdicts().items():
        if not isfinite(frequency):
            continue  # mechanisms that predict no frequency are not answers
        text = f"{frequency:.2f}"
        numbers[text] = numbers.get(text, 0) + count
    return weighted_hypotheses("frequencies", space.in_words, numbers, _answer_key)


def _answer_key(score: Mapping[str, Any]) -> str | None:
    return None if score["frequency"] is None else f"{score['frequency']:.2f}"
