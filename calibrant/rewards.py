"""Rewards for trainers: a batch of completions in, one number each out.

They have the signature that TRL's trainers call, and take the columns that `calibrant export` writes:
`GRPOTrainer(..., reward_funcs=[verdict, shaped])` on the part with gold. Pure, and without a clock.

completions: texts, or lists of messages; on an interactive item every message of the model is a reply in its
    conversation, and a text is a conversation of one reply
record, benchmark: the columns of these names, an entry for each completion
thoughts: what of a text is thoughts, and neither answer nor action: what marks enclose (`strip`), also what stands
    before a closing mark that the prompt opened (`opened`), or nothing (`keep`)
log_metric: called as `log_metric(name, mean over the batch)`
columns: whatever else a data set has; not read

A completion without an answer gets 0. None stands for what cannot be scored: a completion that is neither text nor
messages, an entry of `record` that is None or empty (a row of another task in the same data set), and in `attributed`
an item of which it is not known what its evidence decides. `CalibrantError` names the entry of a record that cannot be
meant, and columns of unequal length.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from calibrant.bench import training
from calibrant.bench.training import Completion
from calibrant.dsl.answer_text import Thoughts, check_thoughts
from calibrant.dsl.errors import CalibrantError
from calibrant.verbs import text_episode

if TYPE_CHECKING:
    from calibrant.bench.episodes import TextEpisode

__all__ = ["Environment", "attributed", "shaped", "verdict"]

LogMetric = Callable[[str, float], object]


def verdict(
    completions: Sequence[Completion | None],
    record: Sequence[str | None],
    benchmark: Sequence[str | None],
    log_metric: LogMetric | None = None,
    thoughts: Thoughts = "strip",
    **columns: Any,
) -> list[float | None]:
    """1 for a correct answer, 0 for any other, as the benchmark counts; None where nothing is held out."""
    return _reward_each(training.verdict, completions, record, benchmark, log_metric, thoughts)


def shaped(
    completions: Sequence[Completion | None],
    record: Sequence[str | None],
    benchmark: Sequence[str | None],
    log_metric: LogMetric | None = None,
    thoughts: Thoughts = "strip",
    **columns: Any,
) -> list[float | None]:
    """Return the share of an answer that is right: of replayed cells, sets of objects, frequency and edges, nodes."""
    return _reward_each(training.shaped, completions, record, benchmark, log_metric, thoughts)


def attributed(
    completions: Sequence[Completion | None],
    record: Sequence[str | None],
    benchmark: Sequence[str | None],
    log_metric: LogMetric | None = None,
    thoughts: Thoughts = "strip",
    **columns: Any,
) -> list[float | None]:
    """1 for an answer that the evidence decided and that is right; 0.5 for one that fits evidence which leaves others.

    So luck is not paid, and an agent that experiments until the question is decided gets more than one that guesses.
    """
    return _reward_each(training.attributed, completions, record, benchmark, log_metric, thoughts)


class Environment:
    """An episode of several turns, for `GRPOTrainer(environment_factory=Environment)`: the model acts by one tool.

    Rows are those of an export with gold whose items are interactive. The reward is that of the submitted answer, 0
    for an episode that ends without one.
    """

    def __init__(self) -> None:
        self._episode: TextEpisode | None = None
        self._reward = 0.0

    def reset(self, record: str = "", benchmark: str = "", prompt: object = "", **columns: Any) -> str | None:
        """Open the item of a row; return those first messages of its episode that `prompt` lacks, None if it has all.

        `CalibrantError` for a row without a record, and for an item that is answered at once.
        """
        _require_texts(0, {"record": record, "benchmark": benchmark})
        self._reward = 0.0
        self._episode = text_episode(training.lesson(benchmark, record).item)
        prompt_text = str(prompt) if isinstance(prompt, str) else "".join(m["content"] for m in cast(Any, prompt))
        missing = [m["content"] for m in self._episode.reset() if m["content"] not in prompt_text]
        return "\n\n".join(missing) or None

    def act(self, action: str) -> str:
        """Take one action in the laboratory, or submit the answer.

        Args:
            action: One JSON object, as the task describes actions and answers.

        Returns:
            The reading, or why nothing was done.
        """
        if self._episode is None:
            raise CalibrantError("no episode is open; call reset with a row of an export")
        text, reward, is_done, _ = self._episode.reply(action)
        if is_done:
            self._reward = float(reward or 0.0)
        return text

    def get_reward(self) -> float:
        """Return the reward of the episode so far: 0 until an answer is submitted."""
        return self._reward


def _reward_each(
    reward: training.Worth,
    completions: Sequence[Completion | None],
    record: Sequence[str | None],
    benchmark: Sequence[str | None],
    log_metric: LogMetric | None,
    thoughts: Thoughts,
) -> list[float | None]:
    check_thoughts(thoughts)
    if not len(completions) == len(record) == len(benchmark):
        lengths = f"{len(completions)} completions, {len(record)} records, {len(benchmark)} names of benchmarks"
        raise CalibrantError(f"{lengths}: there has to be one of each for every completion")
    values: list[float | None] = []
    answered = []
    for index, (completion, text, name) in enumerate(zip(completions, record, benchmark, strict=True)):
        if completion is None or not text or not name:
            values.append(None)
            continue
        _require_texts(index, {"record": text, "benchmark": name})
        try:
            task = training.lesson(name, text)
        except CalibrantError as error:
            raise CalibrantError(f"entry {index}: {error}") from None
        conversation = task.score_completion(completion, thoughts)
        values.append(None if conversation is None else reward(task, conversation))
        if conversation is not None:
            answered.append(conversation.answered)
    if log_metric is not None and answered:
        log_metric("calibrant/answered", sum(answered) / len(answered))
    return values


def _require_texts(index: int, entries: Mapping[str, object]) -> None:
    """Raise `CalibrantError` for an entry that is no text, such as a record that is parsed already.

    index: of the completion; entries: column -> its entry for this completion
    """
    for column, value in entries.items():
        if not isinstance(value, str):
            kind = type(value).__name__
            raise CalibrantError(
                f"entry {index}: {column}: expected a text, as `calibrant export` writes it, found {kind}"
            )
