"""The report as one HTML file that needs no network and is the same bytes for the same answers."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from calibrant.bench.core.capabilities import PLAY
from calibrant.bench.core.metrics import MetricSet
from calibrant.bench.core.registry import benchmark, benchmark_of
from calibrant.bench.core.samples import Item
from calibrant.bench.pages.capabilities import ANSWER_EXPLANATIONS
from calibrant.bench.report.answers.named import named_answers
from calibrant.bench.report.intervals import FEWEST_PROBLEMS, Interval, bootstrap_intervals, wilson_if_constant
from calibrant.bench.report.overview.page import PageSection, report_page
from calibrant.bench.report.overview.responses import Responses, ResponseSources, guide_of, read_responses
from calibrant.bench.report.overview.results import Results, SystemResult, read_results
from calibrant.bench.report.people.group import group_people
from calibrant.bench.report.people.measures import right_mean
from calibrant.bench.report.rows import Answer
from calibrant.bench.report.sections import ReportContents, Section
from calibrant.bench.statistics import wilson
from calibrant.dsl.memory import gc_paused


def as_html(answers: Mapping[str, Sequence[Answer]], sections: Mapping[str, Section], contents: ReportContents) -> str:
    """Return the whole file: the sections of the benchmarks by name, with an overview of their answers."""
    with gc_paused():  # 10^5 answers are as many objects, which all live to the end
        parts = [_page_section(name, section, answers[name], contents) for name, section in sections.items()]
        return report_page(parts, paper_on=contents.with_paper)


def _page_section(name: str, section: Section, answers: Sequence[Answer], contents: ReportContents) -> PageSection:
    of, guide = benchmark(name), guide_of(name)
    if guide is None:
        return PageSection(name, section, None, Responses(), {})
    results = read_results(
        name, section.title, group_people(named_answers(answers)), of.metrics, guide, with_times=contents.with_times
    )
    if not results.systems:  # no item has anything held out
        return PageSection(name, section, None, Responses(), {})
    sources = ResponseSources(contents.runs, contents.predictions, contents.pools, contents.fields, contents.embed)
    responses = read_responses(results, sources)
    results.intervals = {system.name: _interval(system, results, of.metrics) for system in results.systems}
    pools = [path for path in contents.pools if benchmark_of(path).name == name]
    commands = {}
    if len(pools) == 1:
        pool = shlex.quote(str(pools[0]))
        commands["why"] = f"calibrant show {pool} {{id}} --why --html why.html"
        folders = [path for path in contents.runs if path.is_dir()]
        explanations = responses.explanations.values()
        has_moves = not explanations or any(entry.moves and not entry.moves_title for entry in explanations)
        if folders:
            command = f"calibrant show {pool} {{id}} --run {shlex.quote(str(folders[0]))}"
            if PLAY in of.provides and has_moves:
                commands["episode"] = f"{command} --html episode.html"
            elif ANSWER_EXPLANATIONS in of.provides:
                commands["gold"] = f"{command} --gold --html answer.html"
    return PageSection(name, section, results, responses, commands, _count_options(contents))


def _count_options(contents: ReportContents) -> str:
    """Return the options with which the same command counts what the evidence decided."""
    return "--attribution" if contents.pools else "--pool POOL --attribution"


def _interval(system: SystemResult, results: Results, metrics: MetricSet) -> Interval | None:
    """Return the 95 % interval of right answers: Wilson's, or a bootstrap over units; None for one item."""
    import numpy as np

    if system.is_group:
        return right_mean(system).interval
    if system.num_items < 2:
        return None
    if not results.guide.words.is_resampled:
        return Interval(*wilson(float(system.right), system.num_items))
    if system.num_items < FEWEST_PROBLEMS:
        return None
    shares: dict[Item, tuple[str, float]] = {}
    for outcome in system.outcomes:
        item = results.items[outcome.item]
        key = item.digest, item.id
        value = float(outcome.weight) if outcome.is_right else 0.0
        shares[key] = metrics.unit(item.id), shares.get(key, ("", 0.0))[1] + value
    units = {unit: place for place, unit in enumerate(sorted({unit for unit, _ in shares.values()}))}
    sums, counts = np.zeros((len(units), 1)), np.zeros((len(units), 1))
    for _, (unit, share) in sorted(shares.items()):
        sums[units[unit], 0] += share
        counts[units[unit], 0] += 1
    (interval,) = bootstrap_intervals(sums, counts)
    return wilson_if_constant(interval, counts[:, 0])
