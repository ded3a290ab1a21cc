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
    """Texts and pages of episodes.

    Systems have display names; `TranscriptError` if the item's answers differ from the readings in the steps.
    """

    def text(self, item: Any, steps: Sequence[Step[Any]], system: str) -> str:
        """Return an episode step by step as text."""
        ...

    def page(self, item: Any, episodes: Sequence[tuple[str, Sequence[Step[Any]]]]) -> str:
        """Return an HTML file of episodes of an item, given as (system, steps)."""
        ...


class Explainable(Protocol):
    """Explanations of why items are open: several hypotheses fit. why: result of `explain` of the same object."""

    def explain(self, item: Any, steps: Sequence[Step[Any]], *, reveal_sealed: bool = False) -> Why:
        """Return the reason for an item after these steps; sealed fields are read only if `reveal_sealed`."""
        ...

    def body(self, why: Any, prefix: str) -> Markup:
        """Return the contents of its page. prefix: of ids, unique in a page of several items."""
        ...

    def lesson(self, item: Any, why: Any) -> Lesson:
        """Return the reason as a lesson in steps, in plain words, for a class of pupils."""
        ...

    def drawing(self, why: Any) -> str:
        """Return a picture as an SVG file; `CalibrantError` if there is none."""
        ...

    def lines(self, why: Any) -> Iterator[str]:
        """Yield the lines of the terminal."""
        ...


class AnswerExplainable(Protocol):
    """Explanations of why answers fail. why: result of `explain` of the same object."""

    def explain(self, item: Any, answer: str | Mapping[str, Any], system: str) -> Why:
        """Compare an answer object, or a response, with gold; `CalibrantError` for an invalid answer."""
        ...

    def body(self, why: Any, prefix: str) -> Markup:
        """Return the contents of its page. prefix: of ids, unique in a page of several answers."""
        ...

    def lines(self, why: Any) -> Iterator[str]:
        """Yield the lines of the terminal."""
        ...


EXPLANATIONS: Capability[Explainable] = Capability("`show --why`", "why:EXPLANATIONS")
ANSWER_EXPLANATIONS: Capability[AnswerExplainable] = Capability("`show --run --gold`")
EPISODE_VIEWS: Capability[EpisodeViews] = Capability("`show --run`")
REVEALED_VIEWS: Capability[EpisodeViews] = Capability("`show --run --gold`")
"""Views of episodes that show sealed fields too."""
TIMELINES: Capability[TimelineMaker] = Capability("`play --html`")
