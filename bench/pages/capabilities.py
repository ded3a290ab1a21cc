"""Capabilities that show items and episodes; those of items alone are in bench.core.capabilities."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from calibrant.bench.core.capabilities import Capability

if TYPE_CHECKING:
    from markupsafe import Markup

    from calibrant.audits.why import Why
    from calibrant.bench.pages.page import Lesson
    from calibrant.bench.pages.timeline import TimelineMaker
    from calibrant.dsl.episode import Step


class EpisodeViews(Protocol):
    """Episodes as people read them.

    systems are named as they are shown; `TranscriptError` if the item does not answer so
    """

    def text(self, item: Any, steps: Sequence[Step[Any]], system: str) -> str:
        """Return the course of an episode as text."""
        ...

    def page(self, item: Any, episodes: Sequence[tuple[str, Sequence[Step[Any]]]]) -> str:
        """Return episodes of an item as an HTML file, each with the name of its system."""
        ...


class Explainable(Protocol):
    """Items of which can be said why they are open; `why` is always what `explain` of the same object returned."""

    def explain(self, item: Any, steps: Sequence[Step[Any]], *, reveal_sealed: bool = False) -> Why:
        """Return the reason for an item after these steps of an episode; nothing sealed is read without the flag."""
        ...

    def body(self, why: Any, prefix: str) -> Markup:
        """Return the contents of its page; prefix: of ids, unique in a page that shows several items."""
        ...

    def lesson(self, item: Any, why: Any) -> Lesson:
        """Return the reason in steps for a class, in plain words."""
        ...

    def drawing(self, why: Any) -> str:
        """Return one picture as an SVG file; `CalibrantError` where there is none."""
        ...

    def lines(self, why: Any) -> Iterator[str]:
        """Yield the lines of the terminal."""
        ...


class AnswerExplainable(Protocol):
    """Items of which can be said why an answer fails; `why` is always what `explain` of the same object returned."""

    def explain(self, item: Any, answer: str | Mapping[str, Any], system: str) -> Why:
        """Compare an answer object, or a response, with what is sealed; `CalibrantError` for an invalid answer."""
        ...

    def body(self, why: Any, prefix: str) -> Markup:
        """Return the contents of its page; prefix: of ids, unique in a page that shows several answers."""
        ...

    def lines(self, why: Any) -> Iterator[str]:
        """Yield the lines of the terminal."""
        ...


EXPLANATIONS: Capability[Explainable] = Capability("`show --why`", "why:EXPLANATIONS")
ANSWER_EXPLANATIONS: Capability[AnswerExplainable] = Capability("`show --run --gold`")
EPISODE_VIEWS: Capability[EpisodeViews] = Capability("`show --run`")
REVEALED_VIEWS: Capability[EpisodeViews] = Capability("`show --run --gold`")
"""Episodes with what is sealed."""
TIMELINES: Capability[TimelineMaker] = Capability("`play --html`")
