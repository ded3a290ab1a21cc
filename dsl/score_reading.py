"""Reading of the response behind a score: why it holds no answer, and what other readers make of it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Final


class ScoreReading:
    """Reading of a response; verdicts of other readers are made when they are asked for.

    reason: why the response holds no answer, empty if it does; source: text, object or tool_call, empty without one
    repairs: what the lenient reader needed
    read_published, read_lenient: `correct` by that reader; None where it is that of the score
    """

    def __init__(
        self,
        reason: str = "",
        source: str = "",
        repairs: tuple[str, ...] = (),
        read_published: Callable[[], bool | None] | None = None,
        read_lenient: Callable[[], bool | None] | None = None,
    ) -> None:
        self.reason = reason
        self.source = source
        self.repairs = repairs
        self._read_published = read_published
        self._read_lenient = read_lenient

    def published(self, correct: bool | None) -> bool | None:
        """Return `correct` by the published reader; correct: of the score."""
        return correct if self._read_published is None else self._published

    def lenient(self, correct: bool | None) -> bool | None:
        """Return `correct` by the lenient reader; correct: of the score."""
        return correct if self._read_lenient is None else self._lenient

    @cached_property
    def _published(self) -> bool | None:
        assert self._read_published is not None
        return self._read_published()

    @cached_property
    def _lenient(self) -> bool | None:
        assert self._read_lenient is not None
        return self._read_lenient()


UNREAD: Final = ScoreReading()


class ReadScore:
    """Properties of a score that state how the response behind it was read."""

    if TYPE_CHECKING:  # attributes of one score, properties of another

        @property
        def correct(self) -> bool | None: ...
        @property
        def reading(self) -> ScoreReading: ...

    @property
    def reason(self) -> str:
        """Why the response holds no answer (docs/predictions.md); empty if it does."""
        return self.reading.reason

    @property
    def repairs(self) -> tuple[str, ...]:
        """Repairs that the lenient reader needed, where the paper's rule reads nothing."""
        return self.reading.repairs

    @property
    def correct_published(self) -> bool | None:
        """`correct` by the published extractor, of the whole text."""
        return self.reading.published(self.correct)

    @property
    def correct_lenient(self) -> bool | None:
        """`correct` by the lenient reader."""
        return self.reading.lenient(self.correct)
