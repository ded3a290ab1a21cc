"""The report as one HTML file that needs no network and is the same bytes for the same answers."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from calibrant.bench.core.attribution import KEY
from calibrant.bench.core.capabilities import PLAY
from calibrant.bench.core.registry import benchmark, benchmark_of
from calibrant.bench.pages.capabilities import ANSWER_EXPLANATIONS
from calibrant.bench.report.answers.named import named_answers
from calibrant.bench.report.overview.page import PageSection, report_page
from calibrant.bench.report.overview.responses import Responses, ResponseSources, guide_of, read_responses
from calibrant.bench.report.overview.results import read_results
from calibrant.bench.report.people.group import group_people
from calibrant.bench.report.people.measures import right_interval
from calibrant.bench.report.rows import Answer
from calibrant.bench.report.sections import ReportContents, Section
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
    results.intervals = {system.name: right_interval(system, of.metrics) for system in results.systems}
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
            if of.has(PLAY) and has_moves:
                commands["episode"] = f"{command} --html episode.html"
            elif of.has(ANSWER_EXPLANATIONS):
                commands["gold"] = f"{command} --gold --html answer.html"
    is_attributed = any(KEY in score for _, score in answers)  # nothing more to count, if nothing is counted
    options = "" if is_attributed else _count_options(contents)
    return PageSection(name, section, results, responses, commands, options)


def _count_options(contents: ReportContents) -> str:
    """Return the options with which the same command counts what the evidence decided."""
    return "--attribution" if contents.pools else "--pool POOL --attribution"
