"""Part of a report about people: its tables, and the picture of what they learn over items."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from calibrant.bench.answers.intervals import ClusteredMean
from calibrant.bench.core.registry import benchmark
from calibrant.bench.core.scoring import participant_of
from calibrant.bench.pages.charts import Axis, Line, Mark, Panel, panels_svg
from calibrant.bench.report.answers.named import named_answers
from calibrant.bench.report.overview.contract import GUIDE
from calibrant.bench.report.overview.results import Results, read_results
from calibrant.bench.report.people.group import group_people
from calibrant.bench.report.people.measures import PersonAnswer, group_mean, groups_of, person_answers, read_right
from calibrant.bench.report.people.tables import TABLE_IDS, kind_of_answer, learning_positions, people_tables
from calibrant.bench.report.people.timings import PersonTiming, Subject, read_timings
from calibrant.bench.report.rows import Answer
from calibrant.bench.report.sections import Plot, ReportContents, Section

INTERVALS = " Means over participants with 95 % intervals (clustered bootstrap)."
LEARNING = "Shares of right and of earned answers by the position of the item." + INTERVALS
SECONDS = "Mean seconds before a move by the position of the item." + INTERVALS


def add_people(section: Section, name: str, answers: Sequence[Answer], contents: ReportContents) -> Section:
    """Return the section with tables of people first, if some answers are of people; unchanged without any."""
    if contents.tables and not contents.tables & {*TABLE_IDS}:
        return section
    guide = benchmark(name).capability(GUIDE)
    if guide is None or not any(participant_of(context.system) for context, _ in answers):
        return section
    metrics = benchmark(name).metrics
    results = read_results(name, section.title, group_people(named_answers(answers)), metrics, guide)
    timings = read_timings(contents.runs) if contents.with_times else {}
    tables = [table for table in people_tables(results, timings) if not contents.tables or table.id in contents.tables]
    plots = _learning_plots(results, timings, name) if contents.with_pictures else ()
    return replace(section, tables=(*tables, *section.tables), plots=(*plots, *section.plots))


def _learning_plots(results: Results, timings: Mapping[Subject, PersonTiming], name: str) -> Iterator[Plot]:
    """Yield learning curves of the groups, if positions are known and there are several."""
    shares: list[Line] = []
    seconds: list[Line] = []
    for group in groups_of(results):
        positions = learning_positions(person_answers(group, timings))
        shares.append(_line(f"{group.name}: right", positions, read_right))
        shares.append(_line(f"{group.name}: earned", positions, kind_of_answer("earned")))
        seconds.append(_line(group.name, positions, lambda answer: answer.seconds_a_move))
    titles = ("People: right answers over items", "People: seconds a move over items")
    for key, title, caption, lines in (
        ("learning", titles[0], LEARNING, shares),
        ("seconds", titles[1], SECONDS, seconds),
    ):
        if any(line.marks for line in lines):
            tops = [mark.y if mark.high is None else mark.high for line in lines for mark in line.marks]
            axis = Axis("share of answers", 0, 1) if key == "learning" else Axis("seconds", 0, max(tops))
            svg = panels_svg([Panel("", tuple(lines))], Axis("position of the item"), axis, title)
            yield Plot(f"people-{key}-{name}", title, caption, svg, in_page=True)


def _line(
    name: str, positions: Sequence[tuple[int, list[PersonAnswer]]], read: Callable[[PersonAnswer], float | None]
) -> Line:
    means = [(position, group_mean(at, read)) for position, at in positions]
    return Line(name, tuple(_mark(position, mean) for position, mean in means if mean is not None))


def _mark(position: int, mean: ClusteredMean) -> Mark:
    low, high = mean.interval or (None, None)
    return Mark(float(position), mean.mean, low, high)
