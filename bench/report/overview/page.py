"""The report as one self-contained HTML file, byte-equal for equal answers."""

from __future__ import annotations

import base64
import gzip
import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from markupsafe import Markup

from calibrant.audits.why import number_text
from calibrant.bench.core.attribution import CLASSES, KEY
from calibrant.bench.core.capabilities import PLAY
from calibrant.bench.core.registry import benchmark, benchmark_of
from calibrant.bench.core.scoring import participant_of
from calibrant.bench.pages.capabilities import ANSWER_EXPLANATIONS
from calibrant.bench.pages.page import design_page
from calibrant.bench.pages.timeline import timeline_content
from calibrant.bench.report.comparisons import PAIRED, describe_pair
from calibrant.bench.report.comparisons import TITLE as READING_TITLE
from calibrant.bench.report.layout import Source, Table, TableRow, heading_of, own_rows
from calibrant.bench.report.overview.contract import Explanation
from calibrant.bench.report.overview.results import Outcome, Results, read_results
from calibrant.bench.report.overview.screen import UNIFORM, cell_counts, first_screen, overall_screen
from calibrant.bench.report.overview.sentences import (
    MAX_TEXT_CHARS,
    TITLES,
    AnswerKey,
    Responses,
    ResponseSources,
    answer_key,
    guide_of,
    read_responses,
)
from calibrant.bench.report.people import group_people, right_interval
from calibrant.bench.report.rows import Answer, named_answers
from calibrant.bench.report.sections import ReportContents, Section
from calibrant.dsl.errors import in_one_line
from calibrant.dsl.text import plural

# --- Answers of a benchmark as packed JSON for the page's script: lists behind cells, and embedded responses ----------
MAX_LISTED = 400_000  # answers up to which a report lists all of them behind cells; of more, only embedded ones
LETTERS = {kind: kind[0] for kind in CLASSES}  # one letter per answer in the packed JSON
assert len(set(LETTERS.values())) == len(CLASSES)


def script_json(value: Any) -> str:
    """Return JSON that cannot end a script element."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e").replace("\u2028", "\\u2028")


def pack_answers(
    results: Results,
    responses: Responses,
    embedded: Sequence[AnswerKey],
    commands: Mapping[str, str],
    *,
    is_whole: bool,
) -> Any:
    """Return the data from which the page's script lists answers. is_whole: of all answers, else of embedded ones.

    embedded: as of `embedded_keys`
    Per system there are lists of equal length, see `_pack_outcomes`: indices of items, letters of classes, costs, ...
    """
    conditions = {condition: index for index, condition in enumerate(results.conditions)}
    pools = sorted({item.digest for item in results.items})
    remaining: dict[str, int] = {}
    details: dict[AnswerKey, int] = {key: index for index, key in enumerate(embedded)}
    files: dict[str, int] = {}
    return {
        "name": results.name,
        "title": results.title,
        "items": results.guide.words.items,
        "hypotheses": results.guide.words.hypotheses,
        "cost": "" if results.guide.words.cost is None else results.guide.words.cost.unit,
        "letters": {letter: kind for kind, letter in LETTERS.items()},
        "titles": TITLES,
        "conditions": results.conditions,
        "ids": [in_one_line(item.id) for item in results.items],
        "of": [conditions[item.condition] for item in results.items],
        "pool": [pools.index(item.digest) for item in results.items] if len(pools) > 1 else None,
        "systems": [
            {"name": system.name}
            | _pack_outcomes(
                system.outcomes if is_whole else [o for o in system.outcomes if answer_key(o.context) in details],
                responses,
                details,
                remaining,
                files,
            )
            for system in results.systems
        ],
        "left": list(remaining),
        "files": list(files),
        "lists": {keep: results.items_without(keep) for keep in ("decided", "right", "all-missed")},
        "whole": is_whole,
        "commands": dict(commands),
    }


def _pack_outcomes(
    outcomes: list[Outcome],
    responses: Responses,
    details: Mapping[AnswerKey, int],
    remaining: dict[str, int],
    files: dict[str, int],
) -> dict[str, Any]:
    """Return lists of equal length by one-letter key; file and line number only of responses that are not embedded.

    p: participants, i: items, k: classes, c: costs, l: index of the number of remaining hypotheses in "left",
    s: samples, f: files, n: line numbers, d: pairs (index of the outcome, index of its details)
    """
    keys = [answer_key(outcome.context) for outcome in outcomes]
    places = [None if key in details else responses.places.get(key) for key in keys]
    file_indices = [
        -1 if place is None else files.setdefault(responses.files[place.file], len(files)) for place in places
    ]
    samples = [outcome.context.sample for outcome in outcomes]
    people = [participant_of(outcome.context.system) for outcome in outcomes]
    return ({"p": people} if any(people) else {}) | {
        "i": [outcome.item for outcome in outcomes],
        "k": "".join(LETTERS[outcome.kind] for outcome in outcomes),
        "c": [None if outcome.cost is None else _short(outcome.cost) for outcome in outcomes],
        "l": [remaining.setdefault(_members(outcome.members), len(remaining)) for outcome in outcomes],
        "s": samples if any(samples) else None,
        "f": file_indices if any(place is not None for place in places) else None,
        "n": [0 if place is None else place.line for place in places]
        if any(place is not None for place in places)
        else None,
        "d": [[index, details[key]] for index, key in enumerate(keys) if key in details],
    }


def _short(cost: float) -> int | float:
    return int(cost) if cost == int(cost) else float(f"{cost:.3g}")


def _members(members: str) -> str:
    return number_text(int(members)) if members else ""


def embedded_keys(results: Results, responses: Responses) -> list[AnswerKey]:
    """Return the answers whose responses are embedded, sorted by system and item."""
    keys = (answer_key(outcome.context) for system in results.systems for outcome in system.outcomes)
    return [key for key in keys if key in responses.explanations]


def pack_details(responses: Responses, embedded: Sequence[AnswerKey]) -> list[Any]:
    """Return the embedded responses, in this order."""
    return [_detail(responses.explanations[key], responses.lines[key]) for key in embedded]


def _detail(explanation: Explanation, line: str) -> dict[str, Any]:
    detail = {
        key: value for key, value in asdict(explanation).items() if value or (key == "differs" and value is not None)
    }
    for key in ("response", "gold"):
        if key in detail:
            detail[key] = _cut(detail[key])
    if "moves" in detail:
        detail["moves"] = [[list(move.cells), int(move.is_highlighted)] for move in explanation.moves]
    if explanation.remaining is not None:
        remaining = explanation.remaining
        detail["remaining"] = [remaining.heading, remaining.lines(), remaining.note]
    detail["sentences"] = [sentence for sentence in explanation.sentences if sentence]
    return detail | ({"line": line} if line else {})


def _cut(text: str) -> str:
    if len(text) <= MAX_TEXT_CHARS:
        return text
    return f"{text[:MAX_TEXT_CHARS]}\N{HORIZONTAL ELLIPSIS} ({len(text):,} characters)"


# --- The report as one page: sections with their first screens, tables, and answers packed for its script -------------
ALL = "all"
MAX_PLAIN_ROWS = 400  # largest table that is plain HTML; the rows of larger ones are packed
ROWS_IN_VIEW = 100  # rows of a packed table that are shown at a time


class PackedRows(NamedTuple):
    """Rows of a large table. rows: compressed (`_pack_rows`); number: of rows; in_view: rows shown at first."""

    rows: Markup
    number: int
    in_view: int


@dataclass(frozen=True)
class PageSection:
    """A benchmark's section; with results and responses if the benchmark has a guide.

    commands: name -> command line about an item or answer, with the placeholders {id} and {system}
    count_options: options that add attributions to the report's command; empty if there are any
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
    num_answers = sum(part.results.num_answers for part in with_results if part.results is not None)
    contents = [_section(part, index) for index, part in enumerate(sections)]
    tabs: list[dict[str, str]] = []
    if len(sections) > 1:
        all_results = [part.results for part in with_results if part.results is not None]
        whole = {**overall_screen(all_results), "name": ALL, "is_all": True, "episodes": ()}
        pairs = {part["name"]: part["pairs"] for part in contents}
        whole["cards"] = [card | {"pairs": pairs[card["name"]]} for card in whole["cards"]]
        whole["contents"] = [_all_contents(sections)]
        contents.insert(0, whole)
        tabs = list(_tabs(sections))
    pools = [name for part in sections for name, _ in part.section.pools]
    crumb = (
        pools[0] + (f" and {plural(len(pools) - 1, 'more pools')}" if len(pools) > 1 else "") if pools else "no pool"
    )
    packs = [_pack(part, is_whole=num_answers <= MAX_LISTED) for part in with_results]
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
    """Return the names of a section's systems, in which people of one study are one system."""
    return [*part.section.systems] if part.results is None else [system.name for system in part.results.systems]


def _all_contents(sections: Sequence[PageSection]) -> dict[str, Any]:
    return {"title": "Benchmarks", "links": [{"anchor": part.name, "text": part.section.title} for part in sections]}


def _section(part: PageSection, section_index: int) -> dict[str, Any]:
    section = part.section
    result_tables = [
        _grid(results := own_rows(table), [("", "", results.rows)])
        for table in section.tables
        if not table.printed or table.is_result
    ]
    printed = [_paper_table(table) for table in section.tables if table.printed]
    screen = None if part.results is None else first_screen(part.results, part.count_options)
    plots = [plot._replace(svg=Markup(plot.svg)) for plot in section.plots if plot.in_page]
    paired = next((table for table in section.tables if table.id.partition(" (")[0] == PAIRED), None)
    content = {
        "name": part.name,
        "title": section.title,
        "is_all": False,
        "screen": screen,
        "pairs": "" if paired is None or part.results is None else describe_pair(paired, _systems(part)),
        "pairs_anchor": "" if paired is None else paired.anchor,
        "reading": section.reading,
        "reading_anchor": next((table.anchor for table in section.tables if table.title == READING_TITLE), ""),
        "summary": f"{plural(len(_systems(part)), 'systems')}, {section.answers:,} scored answers.",
        "pools": section.pools,
        "plots": plots,
        "episodes": [
            timeline_content(episode, f"episode-{section_index}-{k}") for k, episode in enumerate(section.episodes)
        ],
        "tables": [
            table for table in result_tables if table["groups"] and len(table["headings"]) > table["num_labels"]
        ],
        "paper_tables": [table for table in printed if table["fits"]],
        "other_tables": [table for table in printed if not table["fits"]],
        "method": list(_method(part)),
    }
    content["contents"] = list(_contents(part.name, content))
    return content


def _contents(name: str, content: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the groups of links of the navigation."""
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
    """Return rows as base64 of gzipped JSON: labels, then each cell as a text or as [text, interval]."""
    lists = [[*row.labels, *([c.text, c.interval] if c.low else c.text for c in row.cells)] for row in rows]
    packed = json.dumps(lists, ensure_ascii=False, separators=(",", ":"))
    return Markup(base64.b64encode(gzip.compress(packed.encode("utf-8", "replace"), mtime=0)).decode("ascii"))


def _pack(part: PageSection, *, is_whole: bool) -> dict[str, Any]:
    assert part.results is not None
    embedded = embedded_keys(part.results, part.responses)
    answers = pack_answers(part.results, part.responses, embedded, part.commands, is_whole=is_whole)
    answers["cells"] = cell_counts(part.results)
    return {
        "name": part.name,
        "answers": Markup(script_json(answers)),
        "details": Markup(script_json(pack_details(part.responses, embedded))),
    }


def as_html(answers: Mapping[str, Sequence[Answer]], sections: Mapping[str, Section], contents: ReportContents) -> str:
    """Return the HTML file of the sections, with an overview of their answers; both by name of the benchmark."""
    parts = [_page_section(name, section, answers[name], contents) for name, section in sections.items()]
    return report_page(parts, paper_on=contents.with_paper)


def benchmark_results(name: str, answers: Sequence[Answer], *, with_times: bool = True) -> Results:
    """Return the results of a benchmark, which must have a guide."""
    bench, named = benchmark(name), group_people(named_answers(answers))
    return read_results(name, bench.title, named, bench.metrics, guide_of(name), with_times=with_times)


def _page_section(name: str, section: Section, answers: Sequence[Answer], contents: ReportContents) -> PageSection:
    bench = benchmark(name)
    results = benchmark_results(name, answers, with_times=contents.with_times) if guide_of(name) else None
    if results is None or not results.systems:  # no systems: no item defines a right answer
        return PageSection(name, section, None, Responses(), {})
    sources = ResponseSources(contents.runs, contents.predictions, contents.pools, contents.fields, contents.embed)
    responses = read_responses(results, sources)
    results.intervals = {system.name: right_interval(system, bench.metrics) for system in results.systems}
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
            if bench.has(PLAY) and has_moves:
                commands["episode"] = f"{command} --html episode.html"
            elif bench.has(ANSWER_EXPLANATIONS):
                commands["gold"] = f"{command} --gold --html answer.html"
    is_attributed = any(KEY in score for _, score in answers)
    options = "" if is_attributed else _count_options(contents)
    return PageSection(name, section, results, responses, commands, options)


def _count_options(contents: ReportContents) -> str:
    """Return the options by which the same command adds attributions."""
    return "--attribution" if contents.pools else "--pool POOL --attribution"
