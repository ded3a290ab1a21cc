"""Extended items as the benchmark's adapter handles them: episodes, and scores of all items with a stated class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibrant.bench.core.benchmark import Benchmark
from calibrant.bench.core.evaluator import Evaluator
from calibrant.bench.episodes import Chat
from calibrant.bench.pages.timeline import Timeline
from calibrant.bench.protocols.registry import Protocols
from calibrant.bench.replayscm.options import ScoreOptions
from calibrant.bench.report.rows import Answer
from calibrant.bench.report.sections import Plot, ReportContents
from calibrant.bench.scoring.evaluator_cache import EvaluatorCache
from calibrant.dsl.action import Action
from calibrant.dsl.episode import Episode, Step
from calibrant.dsl.errors import CalibrantError, in_one_line
from calibrant.dsl.replayscm.episodes.episode import ScmEpisode
from calibrant.dsl.replayscm.problem import Problem, TaskKind

if TYPE_CHECKING:
    from calibrant.bench.replayscm.extended.scoring import ExtendedVerdicts

MAX_VERDICTS = 64  # items whose counts are cached


class ExtendedItems(Benchmark[Problem]):
    """Base of the adapter: what it does with episodes, noise and hidden variables."""

    transcripts = True  # of episodes; other items are answered at once
    traces = False
    prompts_show_opening = True

    def applicable_protocols(self, pools: Sequence[Path]) -> Protocols:
        """Rows for episodes, noise and hidden variables where a pool has some."""
        from calibrant.bench.replayscm.extended.protocols import EXTENDED

        if any(item.task.extension is not None for path in pools for item in self.read_pool(path).items):
            return self.protocols
        return {name: protocol for name, protocol in self.protocols.items() if protocol not in EXTENDED}

    def is_interactive(self, item: Problem) -> bool:
        return item.task.kind is TaskKind.EPISODE

    def episode(self, item: Problem) -> ScmEpisode:
        if not self.is_interactive(item):
            raise CalibrantError(f"{in_one_line(item.id)} is no episode: it is answered at once")
        return ScmEpisode(item)

    def chat(self, item: Problem, instructions: str = "") -> Chat:
        from calibrant.bench.replayscm.extended.text_episode import ScmChat

        return ScmChat(self.episode(item), instructions)

    def opening_prompt(self, item: Problem) -> str:
        """Return the rules of an episode, and the world that is shown at the start."""
        from calibrant.bench.replayscm.extended.text_episode import opening_prompt

        return opening_prompt(item)

    def reply_action(self, item: Problem, text: str) -> Action:
        from calibrant.bench.replayscm.extended.text_episode import read_action_text

        return read_action_text(text)

    def describe_step(self, episode: Episode[Any, Any], step: Step[Any]) -> str:
        from calibrant.bench.replayscm.extended.text_episode import describe_step

        return describe_step(episode, step)

    def timeline(self, item: Problem, steps: Sequence[Step[Any]], system: str) -> Timeline:
        from calibrant.bench.replayscm.extended.timeline import scm_timeline

        return scm_timeline(item, steps, system)

    def extract(self, item: Problem, response: str | Mapping[str, Any]) -> dict[str, Any]:
        from calibrant.bench.replayscm.extended.scoring import read_submission

        return read_submission(item, response)

    def score_extended(self, item: Problem, answer: Mapping[str, Any], steps: Sequence[Step[Any]]) -> dict[str, Any]:
        """Return the score of an answer to an extended item as records keep it."""
        verdicts = self._extended_verdicts(item)
        return verdicts.record(verdicts.score(answer, steps), steps)

    def attribute_extended(
        self, item: Problem, steps: Sequence[Step[Any]], score: Mapping[str, Any]
    ) -> dict[str, Any] | None:
        """Return whether the evidence decided the clean held-out behaviour."""
        fits, correct = score.get("trainExact"), score.get("correct") is True
        return self._extended_verdicts(item).decision(fits, steps, correct=correct)

    def extended_evaluator(self, item: Problem, options: ScoreOptions) -> Evaluator:
        """Return what gives lines of verdicts on answers to an extended item."""
        from calibrant.bench.replayscm.extended.scoring import ExtendedLineEvaluator

        return ExtendedLineEvaluator(item, options)

    def extended_plots(self, answers: Sequence[Answer], contents: ReportContents) -> list[Plot]:
        """Return the plots of episodes and of posteriors, if there are such answers."""
        if not any("worlds" in score or "trainMatch" in score for _, score in answers):
            return []
        from calibrant.bench.replayscm.extended.plots import episode_plots

        return episode_plots(self, answers, contents)

    def _extended_verdicts(self, item: Problem) -> ExtendedVerdicts:
        from calibrant.bench.replayscm.extended.scoring import ExtendedVerdicts

        return self._verdicts.get_for(item, lambda: ExtendedVerdicts(item))

    @cached_property
    def _verdicts(self) -> EvaluatorCache[ExtendedVerdicts]:
        return EvaluatorCache(MAX_VERDICTS)
