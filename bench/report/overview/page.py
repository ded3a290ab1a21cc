"""The report as one page: sections with their first screens, tables, and answers packed for its script."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from markupsafe import Markup

from calibrant.bench.core.registry import benchmark
from calibrant.bench.pages.filmstrip import timeline_content
from calibrant.bench.pages.page import design_page
from calibrant.bench.report.formats import heading_of
from calibrant.bench.report.layout import Source, Table, TableRow
from calibrant.bench.report.overview.packing import MAX_LISTED, pack_answers, pack_details, script_json
from calibrant.bench.report.overview.responses import Responses
from calibrant.bench.report.overview.results import Results
from calibrant.bench.report.overview.screen import UNIFORM, cell_counts, first_screen, overall_screen
from calibrant.bench.report.sections import Section
from calibrant.dsl.text import plural

ALL = "all"
MAX_PLAIN_ROWS = 400  # of a table; of more, ROWS_IN_VIEW are in view at a time, and all of them packed
ROWS_IN_VIEW = 100


class PackedRows(NamedTuple):
    """Rows of a large table. rows: all of them, compressed; in_view: how many are in the page at first."""

    rows: Markup
    number: int
    in_view: int


@dataclass(frozen=True)
class PageSection:
    """A benchmark's section, with its results and responses where it has a guide.

    commands: of an item or answer, by name, with {id} and {system} to fill in
    count_options: options of the report's command that count classes
    """

    name: str
    section: Section
    results: Results | None
    responses: Responses
    commands: dict[str, str]
    count_options: str = ""


def report_page(sections: Sequence[PageSection], *, paper_on: bool) -> str:
    """Return the whole file. Everything that comes from pools, records and predictions is escaped.

    paper_on: whether the paper's rows are shown at first
    """
    with_results = [part for part in sections if part.results is not None]
    number = sum(part.results.num_answers for part in with_results if part.results is not None)
    contents = [_section(part, place) for place, part in enumerate(sections)]
    tabs: list[dict[str, str]] = []
    if len(sections) > 1:
        all_results = [part.results for part in with_results if part.results is not None]
        whole = {**overall_screen(all_results), "name": ALL, "is_all": True, "episodes": ()}
        whole["contents"] = [_all_contents(sections)]
        contents.insert(0, whole)
        tabs = list(_tabs(sections))
    pools = [name for part in sections for name, _ in part.section.pools]
    crumb = (
        pools[0] + (f" and {plural(len(pools) - 1, 'more pools')}" if len(pools) > 1 else "") if pools else "no pool"
    )
    packs = [_pack(part, is_whole=number <= MAX_LISTED) for part in with_results]
    content = {
        "title": "Calibrant report",
        "crumbs": ["report", crumb],
        "sections": contents,
        "tabs": tabs,
        "packs": packs,
        "with_episodes": any(part.section.episodes for part in sections),
        "with_paper_switch": any(section.get("paper_tables") for section in contents),
        "paper_on": paper_on,
        "with_packed": any(
            table["packed"]
            for section in contents
            for kind in ("tables", "paper_tables", "other_tables")
            for table in section.get(kind, ())
        ),
    }
    return design_page("report/report.html", content)


def _tabs(sections: Sequence[PageSection]) -> Iterator[dict[str, str]]:
    systems = {system for part in sections for system in _systems(part)}
    yield {"name": ALL, "title": "All", "detail": plural(len(systems), "systems")}
    for part in sections:
        items = (
            ""
            if part.results is None
            else f"{part.results.num_items:,} \N{MULTIPLICATION SIGN} {len(part.results.systems)}"
        )
        yield {"name": part.name, "title": part.section.title, "detail": items}


def _systems(part: PageSection) -> list[str]:
    """Return the systems of a section, people of one study as one."""
    return [*part.section.systems] if part.results is None else [system.name for system in part.results.systems]


def _all_contents(sections: Sequence[PageSection]) -> dict[str, Any]:
    return {"title": "Benchmarks", "links": [{"anchor": part.name, "text": part.section.title} for part in sections]}


def _section(part: PageSection, number: int) -> dict[str, Any]:
    section = part.section
    result_tables = [
        _grid(table, [("", "", _rows(table, Source.OURS))])
        for table in section.tables
        if not table.printed or table.is_result
    ]
    printed = [_paper_table(table) for table in section.tables if table.printed]
    screen = None if part.results is None else first_screen(part.results, part.count_options)
    plots = [plot._replace(svg=Markup(plot.svg)) for plot in section.plots if plot.in_page]
    content = {
        "name": part.name,
        "title": section.title,
        "is_all": False,
        "screen": screen,
        "summary": f"{plural(len(_systems(part)), 'systems')}, {section.answers:,} scored answers.",
        "pools": section.pools,
        "plots": plots,
        "episodes": [timeline_content(episode, f"episode-{number}-{k}") for k, episode in enumerate(section.episodes)],
        "tables": [table for table in result_tables if any(group["rows"] for group in table["groups"])],
        "paper_tables": [table for table in printed if table["fits"]],
        "other_tables": [table for table in printed if not table["fits"]],
        "method": list(_method(part)),
    }
    content["contents"] = list(_contents(part.name, content))
    return content


def _contents(name: str, content: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the groups of the navigation."""
    screen = content["screen"]
    if screen is not None:
        links = [(name, "Who was scored"), (f"{name}-right", "Right, and why"), (f"{name}-conditions", "By condition")]
        yield _group("Summary", links)
    results = [(table["anchor"], table["heading"]) for table in content["tables"]]
    results += [(f"plot-{plot.name}", plot.title) for plot in content["plots"]]
    if content["episodes"]:
        results.append((f"{name}-episodes", "Episodes, step by step"))
    if results:
        yield _group("Results", results)
    if screen is not None:
        yield _group("Items", [(entry["anchor"], entry["text"]) for entry in screen["lists"]])
    printed = [
        (table["anchor"], f"{table['short']} \N{MIDDLE DOT} fits these items") for table in content["paper_tables"]
    ]
    if content["other_tables"]:
        more = "more" if printed else plural(len(content["other_tables"]), "tables").partition(" ")[2]
        printed.append((f"{name}-other", f"{len(content['other_tables'])} {more} \N{MIDDLE DOT} other items"))
    if printed:
        yield _group("The paper\N{RIGHT SINGLE QUOTATION MARK}s tables", printed)
    yield _group("Method", [(f"{name}-{entry['anchor']}", entry["title"]) for entry in content["method"]])


def _group(title: str, links: Sequence[tuple[str, str]]) -> dict[str, Any]:
    return {"title": title, "links": [{"anchor": anchor, "text": text} for anchor, text in links]}


def _method(part: PageSection) -> Iterator[dict[str, str]]:
    yield {"anchor": "intervals", "title": "Intervals", "text": part.section.about}
    if part.results is None:
        return
    success = benchmark(part.results.name).metrics.success
    classes = (
        "Decided: all hypotheses that fit the evidence a system had give the scored question one answer."
        f" Right: {success.meaning}. Earned is decided and right, missed decided and wrong, lucky undecided and right,"
        " short undecided and wrong."
    )
    if any(system.num_counted < system.num_items for system in part.results.systems):
        classes += " Answers whose evidence was not counted are drawn as outlined boxes."
    yield {"anchor": "classes", "title": "Classes", "text": classes}
    levels = (
        "Guess: an answer drawn before any evidence, all alike. Uniform draw: the mean share of the hypotheses that fit"
        " whose answer is right. Uniform ceiling: the mean of the largest share that one answer has among them, or"
        f" certified bounds of it. {UNIFORM} A level stands only where it is known for every answer of a system."
    )
    yield {"anchor": "levels", "title": "Levels", "text": levels}
    yield {"anchor": "files", "title": "Files", "text": "Pools, with the digest of what each file holds:"}


def _rows(table: Table, source: Source) -> list[TableRow]:
    return [row for row in table.rows if row.source is source]


def _paper_table(table: Table) -> dict[str, Any]:
    paper = ("paper", "In the paper", _rows(table, Source.PAPER))
    fitting = [row for row in _rows(table, Source.OURS) if row.fits]
    groups = [paper, ("", "This run", fitting)] if table.fits else [paper]
    content = _grid(table, groups)
    number = table.id.partition(" (")[0]  # without the benchmark, where several print a table of that number
    return content | {
        "anchor": content["anchor"] + ("-paper" if table.is_result else ""),
        "fits": table.fits,
        "about": table.printed,
        "short": f"Table {number}",
        "heading": f"Table {number}. {table.title}",
    }


def _grid(table: Table, groups: Sequence[tuple[str, str, Sequence[TableRow]]]) -> dict[str, Any]:
    filled = [(kind, title, rows) for kind, title, rows in groups if rows]
    with_interval = [any(row.cells[k].low for row in table.rows) for k in range(len(table.headings))]
    packed = None
    if filled and len(filled[-1][2]) > MAX_PLAIN_ROWS:
        kind, title, rows = filled[-1]
        packed = PackedRows(_pack_rows(rows), len(rows), ROWS_IN_VIEW)
        filled[-1] = kind, title, rows[:ROWS_IN_VIEW]
    return {
        "anchor": table.anchor,
        "heading": table.title if table.is_result or not table.printed else heading_of(table),
        "caption": table.caption,
        "num_labels": len(table.labels),
        "headings": [heading.text for heading in (*table.labels, *table.headings)],
        "with_interval": with_interval,
        "packed": packed,
        "groups": [{"kind": kind, "title": title, "rows": rows} for kind, title, rows in filled],
        "notes": table.notes,
    }


def _pack_rows(rows: Sequence[TableRow]) -> Markup:
    """Return rows as compressed JSON in base64: labels, then text of each cell, with its interval where it has one."""
    lists = [[*row.labels, *([c.text, c.interval] if c.low else c.text for c in row.cells)] for row in rows]
    packed = json.dumps(lists, ensure_ascii=False, separators=(",", ":"))
    return Markup(base64.b64encode(gzip.compress(packed.encode("utf-8", "replace"), mtime=0)).decode("ascii"))


def _pack(part: PageSection, *, is_whole: bool) -> dict[str, Any]:
    assert part.results is not None
    answers = pack_answers(part.results, part.responses, part.commands, is_whole=is_whole)
    answers["cells"] = cell_counts(part.results)
    return {
        "name": part.name,
        "answers": Markup(script_json(answers)),
        "details": Markup(script_json(pack_details(part.results, part.responses))),
    }
