"""Views of episodes that have a timeline: as text, and as a page that a reader steps through."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from calibrant.bench.pages.capabilities import TimelineMaker
from calibrant.bench.pages.filmstrip import timeline_page
from calibrant.bench.pages.text_timeline import timeline_text
from calibrant.dsl.episode import Step
from calibrant.dsl.errors import in_one_line


@dataclass(frozen=True)
class TimelineViews:
    """Implements EpisodeViews (bench.pages.capabilities) by timelines."""

    timeline: TimelineMaker

    def text(self, item: Any, steps: Sequence[Step[Any]], system: str) -> str:
        return timeline_text(self.timeline(item, steps, system))

    def page(self, item: Any, episodes: Sequence[tuple[str, Sequence[Step[Any]]]]) -> str:
        return timeline_page(in_one_line(item.id), [self.timeline(item, steps, name) for name, steps in episodes])
