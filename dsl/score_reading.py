"""Reading of the response behind a score: why it holds no answer, and what other readers make of it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Final


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
