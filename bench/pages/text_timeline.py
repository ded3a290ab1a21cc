"""Timelines as text: a line a step."""

from __future__ import annotations

from calibrant.bench.core.attribution import UNDEFINED_VERDICT
from calibrant.bench.pages.aligned import aligned
from calibrant.bench.pages.timeline import Moment, Timeline

HEADINGS = ["Step", "In place", "Reading", "Left", "Answers", "What it did"]


def timeline_text(timeline: Timeline) -> str:
    """Return the steps of an episode in words, then its decision."""
    decision = timeline.decision
    wrong = UNDEFINED_VERDICT if decision.correct is None else f"not right, the right answer was {decision.truth}"
    verdict = "right" if decision.correct else wrong
    rows = [_row(moment, timeline) for moment in timeline.moments]
    return "\n".join(
        [
            f"{timeline.system} on {timeline.item}",
            aligned(HEADINGS, rows),
            f"{decision.kind}: answered {decision.answer}; {verdict}. {decision.why}",
            f"Hypotheses: {timeline.in_words}.",
        ]
    )


def _row(moment: Moment, timeline: Timeline) -> list[str]:
    placed = " ".join(timeline.objects[place] for place in moment.objects)
    news = f"{moment.news}: {moment.remark}" if moment.news else moment.remark
    return [moment.caption, placed, moment.reading, str(moment.members), str(len(moment.answers)), news]
