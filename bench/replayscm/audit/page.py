"""The audit page of a pool: reasons and charts; needs no network; equal audits give equal bytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from math import ceil, floor, log10
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from markupsafe import Markup

from calibrant.audits.replayscm.findings import Ceiling, Findings, Survivors
from calibrant.audits.why import number_text
from calibrant.bench.answers.rates import Reliability
from calibrant.bench.pages.charts import Axis, Line, Look, Mark, Panel, bar_chart, panels_svg
from calibrant.bench.pages.page import html_page
from calibrant.bench.pages.why import MAX_EMBEDDED, IndexItem, IndexText, index_page
from calibrant.bench.pools.findings_audit import FindingsReport
from calibrant.bench.replayscm.audit.extended import PRIORS, WEIGHTS, AnswerRow, Bounds, Calibration
from calibrant.bench.replayscm.audit.records import AuditRecord
from calibrant.bench.replayscm.audit.text import (
    MEASURES,
    NOTHING,
    answers_name,
    bounds_text,
    counted_bounds,
    heldout_share,
    measures,
    share_text,
    verdict,
)
from calibrant.bench.runs.audits import reason_of
from calibrant.dsl.formulas.text import parse
from calibrant.dsl.replayscm.alternatives import Experiment, PairwiseExperiments
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.replayscm.scm import scm
from calibrant.dsl.text import natural_key, plural

# --- Charts of an audit page: members by stratum and class, held-out agreement, reliability of ceilings, sizes --------
SIZE = (960.0, 340.0)  # pixels
EMPTY = 0.6  # distance below the scale, in decades, of points at 0, which have no logarithm
MAX_POINTS = 2_000  # points of a plot; of more, every k-th is drawn
MAX_TICKS = 9
LANES, SPREAD = 0.86, 0.62  # share of a stratum's width that its classes fill; of a class's width that its points fill
DIAGRAM = (360.0, 352.0)  # pixels
MEDIAN = "median of the nonempty ones"


class ScatterPlot(NamedTuple):
    """A chart of points; left_out: number of points that are not drawn."""

    svg: Markup
    left_out: int


def profile_plot(records: Sequence[AuditRecord], anchors: Mapping[str, str]) -> ScatterPlot:
    """Plot log10 of the number of members, in a column for each stratum and class, with medians of nonzero counts.

    anchors: instance -> anchor of its section
    """
    audited = [record for record in records if record.findings]
    strata = list(dict.fromkeys(record.stratum for record in audited))
    bounds = counted_bounds(audited)
    lane = LANES / max(1, len(bounds))
    columns = dict[tuple[int, str], list[Mark]]()
    for record in audited:
        for count in record.findings.classes if record.findings else ():
            members, bound = int(count.members), count.max_parents
            column = columns.setdefault((bound, record.stratum), [])
            centre = _lane_centre(strata.index(record.stratum), bounds.index(bound), lane)
            offset = ((len(column) * 7) % 10 - 4.5) / 10 * lane * SPREAD  # side by side, in a fixed order
            title = f"{record.instance}, parents <= {bound}: {plural(members, 'SCMs')}"
            item = anchors.get(record.instance, "")
            y = log10(members) if members else -EMPTY
            column.append(Mark(centre + offset, y, title=title, item=item, radius=3.2))
    lines = [
        Line(f"parents \N{LESS-THAN OR EQUAL TO} {bound}", tuple(marks), kind="points")
        for bound in bounds
        if (
            marks := [
                mark
                for (column_bound, _), column_marks in columns.items()
                if column_bound == bound
                for mark in column_marks
            ]
        )
    ]
    lines, left_out = _thin_out(lines)
    medians = []
    for (bound, stratum), column in columns.items():
        if positive := [mark.y for mark in column if mark.y != -EMPTY]:
            x, half_width = _lane_centre(strata.index(stratum), bounds.index(bound), lane), lane * 0.42
            medians.append(Mark(x, median(positive), x_low=x - half_width, x_high=x + half_width))
    lines.append(Line(MEDIAN, tuple(medians), kind="levels"))
    names = tuple((float(index), name or "all instances") for index, name in enumerate(strata))
    x_axis, y_axis = Axis("", -0.5, max(0.5, len(strata) - 0.5), names), _powers(lines, "empty")
    look = {line.name: Look(f"scale-{1 + index % 4}", "circle") for index, line in enumerate(lines)}
    label = f"SCMs that fit, as a power of ten, by stratum and class: {_num_points(lines)} points"
    svg = panels_svg([Panel("", tuple(lines))], x_axis, y_axis, label, look=look, size=SIZE)
    return ScatterPlot(Markup(svg), left_out)


def _lane_centre(stratum: int, bound: int, lane: float) -> float:
    return stratum - LANES / 2 + lane * (bound + 0.5)


def agreement_plot(records: Sequence[AuditRecord], anchors: Mapping[str, str]) -> ScatterPlot:
    """Plot the share of held-out exact members against log10 of the members, both of the class of verdicts."""
    marks = []
    for record in records:
        if record.findings:
            class_count = record.findings.class_count(record.findings.headline)
            share, members = heldout_share(class_count), int(class_count.members)
            if share is not None:
                title = f"{record.instance}: {plural(members, 'SCMs')}, {share:.3g} of them held-out exact"
                item = anchors.get(record.instance, "")
                marks.append(Mark(log10(members), log10(share) if share else -9e9, title=title, item=item, radius=3.2))
    low = floor(min([-1.0, *(mark.y for mark in marks if mark.y > -9e9)]))
    placed = tuple(mark if mark.y > -9e9 else mark._replace(y=low - EMPTY) for mark in marks)
    (line,), left_out = _thin_out([Line("", placed, kind="points")])
    exponents = range(low, 1, max(1, ceil(-low / MAX_TICKS)))
    ticks = ((low - EMPTY, "none"), *((float(exponent), _share_text(exponent)) for exponent in exponents))
    label = f"share of held-out exact SCMs by how many fit: {_num_points([line])} points"
    x_axis = Axis("SCMs that fit, log10", 0, max([1.0, *(mark.x for mark in placed)]))
    y_axis = Axis("held-out exact share", low - 1, 0.1, ticks)
    look = {"": Look("scale-3", "circle")}
    svg = panels_svg([Panel("", (line,))], x_axis, y_axis, label, look=look, size=SIZE)
    return ScatterPlot(Markup(svg), left_out)


def _powers(lines: Sequence[Line], below: str) -> Axis:
    """Return an axis of powers of ten from 1, with a tick `below` for zero."""
    high = max(1, ceil(max((mark.y for line in lines for mark in line.marks), default=1.0)))
    ticks = ((float(value), str(value)) for value in range(0, high + 1, max(1, ceil(high / MAX_TICKS))))
    return Axis("SCMs that fit, log10", -1, high, ((-EMPTY, below), *ticks))


def _share_text(exponent: int) -> str:
    """Return 10 to `exponent`, at most 0, as text: in full down to 0.0001."""
    return f"{10.0**exponent:.{-exponent}f}" if exponent >= -4 else f"10^{exponent}"


def _thin_out(lines: Sequence[Line]) -> tuple[list[Line], int]:
    """Return lines of at most MAX_POINTS marks together, every k-th of each, and the number of omitted marks."""
    num_points = _num_points(lines)
    if num_points <= MAX_POINTS:
        return list(lines), 0
    chosen = [line._replace(marks=line.marks[:: ceil(num_points / MAX_POINTS)]) for line in lines]
    return chosen, num_points - _num_points(chosen)


def _num_points(lines: Sequence[Line]) -> int:
    return sum(len(line.marks) for line in lines if line.kind != "levels")


def reliability_diagram(prior: str, reliability: Reliability) -> Markup:
    """Plot mean predicted against realised rates; areas of marks grow with the number of instances."""
    largest = max((bin_.number for bin_ in reliability.bins), default=1)
    marks = tuple(
        Mark(
            bin_.predicted,
            bin_.realised,
            *bin_.interval,
            title=f"{plural(bin_.number, 'instances')}, predicted {bin_.predicted:.3f}, realised {bin_.realised:.3f} "
            f"(95 % interval {bin_.interval[0]:.3f} to {bin_.interval[1]:.3f})",
            radius=round(3 + 6 * (bin_.number / largest) ** 0.5, 1),
        )
        for bin_ in reliability.bins
    )
    lines = (Line("right", (Mark(0, 0), Mark(1, 1)), kind="reference"), Line("bins", marks, kind="points"))
    x, y = Axis("predicted", 0, 1), Axis("realised", 0, 1)
    label = f"reliability diagram, {prior}"
    return Markup(panels_svg([Panel("", lines)], x, y, label, size=DIAGRAM, with_legend=False))


def spectrum_bars(by_size: Mapping[int, str]) -> Markup:
    """Plot the number of members by total formula size."""
    numbers = list(map(int, by_size.values()))
    label = "members by total formula size"
    return Markup(bar_chart(list(map(str, by_size)), numbers, list(map(number_text, numbers)), label))


def audit_page(
    findings: FindingsReport[AuditRecord],
    records: Sequence[AuditRecord],
    calibrated: Calibration,
    pool: Path,
    bodies: Mapping[int, Markup],
) -> str:
    """Return the HTML file; text from the pool is escaped.

    findings: of extended items, if any; records: of plain items; bodies: index of an item -> its page of reasons
    """
    audited, bounds = findings.audited, counted_bounds(records)
    extended = {record.index for record in findings.records}
    sections = Markup(html_page("audit/scm_pool.html", _pool_sections(records, calibrated)))
    chips = [(value, name) for name, value in _tiles(records)]
    if extended:
        sections += findings.section()
        chips[0] = chips[0][0], "without a stated class"
        chips.append((plural(len(extended), "instances"), "with one"))
    text = IndexText(
        title=f"Audit of {audited.name}",
        crumb="Audit",
        command=f"calibrant audit {pool.name} --only ID --html FILE",
        columns=(
            "stratum",
            "setting",
            "vars",
            "worlds",
            *(f"k \u2264 {k}" for k in bounds),
            *MEASURES,
            "bounded search",
        ),
        chips=chips,
        sections=sections,
        footer=f" \u00b7 pool file sha256 {audited.digest} \u00b7 This page reads what is sealed: "
        "gold, held-out worlds and the latent order.",
    )
    items = (
        _index_item(record, problem, bounds, bodies, index < MAX_EMBEDDED)
        if record.index not in extended
        else _extended_item(findings.item(record, bodies, index < MAX_EMBEDDED), record, problem, bounds)
        for index, (record, problem) in enumerate(zip(audited.records, audited.items, strict=True))
    )
    return index_page(audited.name, items, text)


def _extended_item(item: IndexItem, record: AuditRecord, problem: Problem, bounds: Sequence[int]) -> IndexItem:
    """Return the line of an extended item: findings in place of a verdict, no counts by class."""
    sizes = (str(len(problem.task.variables)), str(len(problem.task.training.worlds)))
    cells = (record.stratum, record.setting, *sizes, *[NOTHING] * (1 + len(bounds) + len(MEASURES)))
    return replace(item, verdict=f"{item.reason.state}; findings: {item.cells[0]}", cells=cells)


def _pool_sections(records: Sequence[AuditRecord], calibrated: Calibration) -> dict[str, Any]:
    anchors = {record.instance: record.instance for record in islice(records, MAX_EMBEDDED)}
    return {
        "headlines": _headlines([record.findings for record in records if record.findings]),
        "profile": profile_plot(records, anchors),
        "agreement": agreement_plot(records, anchors),
        "means": [
            (prior, PRIORS[prior], number, _between(low, high))
            for prior, (number, low, high) in calibrated.means.items()
        ],
        "diagrams": [_diagram(prior, reliability) for prior, reliability in calibrated.reliability.items()],
        "answers": [_answers(row) for row in calibrated.rows],
    }


def _diagram(prior: str, reliability: Reliability) -> dict[str, Any]:
    return {
        "prior": prior,
        "svg": reliability_diagram(prior, reliability),
        "number": reliability.number,
        "predicted": f"{reliability.predicted:.2f}",
        "realised": reliability.realised,
        "standard_error": f"{reliability.standard_error:.2f}",
    }


def _index_item(
    record: AuditRecord, problem: Problem, bounds: Sequence[int], bodies: Mapping[int, Markup], has_page: bool
) -> IndexItem:
    body = Markup("")
    if has_page:
        body = bodies.get(record.index, body) + Markup(
            html_page("audit/scm_item.html", {"section": _section(record, problem)})
        )
    return IndexItem(record.instance, reason_of(record), body, _verdict_words(record), _cells(record, bounds))


def _verdict_words(record: AuditRecord) -> str:
    words = verdict(record).replace("_", " ")
    return words if record.findings is None else f"{words}, k \u2264 {record.findings.headline}"


def _cells(record: AuditRecord, bounds: Sequence[int]) -> tuple[str, ...]:
    """Return the cells of the pool list after the verdict."""
    findings = record.findings
    labels = (record.stratum, record.setting)
    if findings is None:
        return (*labels, *[NOTHING] * (3 + len(bounds) + len(MEASURES)))
    members = {class_count.max_parents: number_text(int(class_count.members)) for class_count in findings.classes}
    sizes = (str(findings.num_variables), str(findings.num_worlds))
    return (*labels, *sizes, *(members.get(k, NOTHING) for k in bounds), *measures(record), _bounded_total(findings))


def _headlines(done: Sequence[Findings]) -> list[tuple[str, int]]:
    """Return (headline class in words, number of instances whose verdict is about it), by bound."""
    numbers = Counter(findings.headline for findings in done)
    words = {findings.headline: findings.class_count(findings.headline).in_words for findings in reversed(done)}
    return [(words[bound], number) for bound, number in sorted(numbers.items())]


def _tiles(records: Sequence[AuditRecord]) -> list[tuple[str, str]]:
    verdicts = Counter(map(verdict, records))
    done = [record.findings for record in records if record.findings]
    shares = [heldout_share(findings.class_count(findings.headline)) for findings in done]
    sorted_shares = sorted(share for share in shares if share is not None)
    tiles = [("", plural(len(records), "instances"))]
    tiles += [(name, str(verdicts[name])) for name in ("unique", "ambiguous", "empty")]
    tiles += [(name.replace("_", " "), str(verdicts[name])) for name in ("out_of_budget", "crashed") if verdicts[name]]
    if sorted_shares:
        median_share = (sorted_shares[(len(sorted_shares) - 1) // 2] + sorted_shares[len(sorted_shares) // 2]) / 2
        tiles.append(("median share of SCMs that fit and are held-out exact", share_text(median_share)))
    num_missed = sum(_has_no_bounded_finding(findings) and findings.members(findings.headline) > 1 for findings in done)
    if any(findings.bounded for findings in done):
        tiles.append(("ambiguous, though no bounded search finds anything", str(num_missed)))
    return tiles


def _has_no_bounded_finding(findings: Findings) -> bool:
    if findings.bounded is None:
        return False
    local = (*findings.bounded.local, *findings.bounded.stronger)
    return not any(search.found for search in local) and not any(pair.found for pair in findings.bounded.pairs)


def _between(low: float, high: float) -> str:
    return f"{low:.3f}" if low == high else f"between {low:.3f} and {high:.3f}"


def _answers(row: AnswerRow) -> dict[str, str]:
    return {
        "name": answers_name(row),
        "prior": row.prior,
        "number": str(row.number),
        "rate": f"{row.rate:.3f}",
        "ceiling": _between(*row.ceiling),
        "below": f"{row.below:+.3f}",
    }


def _bounded_total(findings: Findings) -> str:
    """Return the number of local alternatives of the stronger bounded search, with a plus if a budget was spent."""
    if findings.bounded is None:
        return NOTHING
    num_found = sum(finding.found for finding in findings.bounded.stronger)
    hit = any(finding.budget_hit for finding in findings.bounded.stronger)
    return f"{num_found}{'+' if hit else ''}"


def _section(record: AuditRecord, problem: Problem) -> dict[str, Any]:
    findings = record.findings
    section = {"record": record, "findings": findings}
    if findings is None:
        return section | {"verdict": record.outcome}
    classes = [
        {
            "bound": class_count.max_parents,
            "members": class_count.members,
            "heldout_exact": class_count.heldout_exact,
            "share": share_text(heldout_share(class_count)),
            "log10": _log10(class_count.members),
            "capped": {
                cap.max_size: _log10(cap.members)
                for cap in findings.capped
                if cap.max_parents == class_count.max_parents
            },
        }
        for class_count in findings.classes
    ]
    return section | {
        "verdict": verdict(record),
        "classes": classes,
        "caps": sorted({cap.max_size for cap in findings.capped}, reverse=True),
        "draws": [(draw.in_words, WEIGHTS[draw.size_penalty], share_text(draw.probability)) for draw in findings.draws],
        "ceilings": [*_generator_row(record), *map(_ceiling_row, findings.ceilings)],
        "spectrum": _spectrum(findings),
        "survivors": _survivors(findings.survivors, problem) if findings.survivors else None,
    }


def _generator_row(record: AuditRecord) -> list[tuple[str, str, str, bool | None]]:
    """Return the ceiling under the published process, if any: (weights, class, share, whether it was realised)."""
    ceiling = record.generator
    if ceiling is None or ceiling.probability is None:
        return []
    return [
        (
            "generator",
            PRIORS["generator"],
            f"{ceiling.probability:.3f} ± {ceiling.standard_error:.3f}",
            ceiling.realised,
        )
    ]


def _ceiling_row(ceiling: Ceiling) -> tuple[str, str, str, bool | None]:
    bounds = bounds_text(Bounds(ceiling.lower, ceiling.upper, ceiling.realised))
    return f"if {WEIGHTS[ceiling.size_penalty]}", ceiling.in_words, bounds, ceiling.realised


def _log10(members: str) -> str:
    return NOTHING if members == "0" else f"{log10(int(members)):.2f}"


def _spectrum(findings: Findings) -> dict[str, Any] | None:
    if findings.spectrum is None or not findings.spectrum.by_size:
        return None
    return {"in_words": findings.spectrum.in_words, "svg": spectrum_bars(findings.spectrum.by_size)}


def _survivors(survivors: Survivors, problem: Problem) -> dict[str, Any]:
    """Return both mechanisms of every variable, and both values of every variable under the witness."""
    endogenous = sorted(survivors.one, key=natural_key)
    return {
        "pair": survivors,
        "mechanisms": [(v, survivors.one[v], survivors.other[v]) for v in endogenous],
        "witnessed": _show_witness(survivors, problem),
    }


def _show_witness(survivors: Survivors, problem: Problem) -> dict[str, Any] | None:
    if survivors.experiment is None or survivors.witness is None:
        return None
    ((variable, value),) = survivors.experiment["assignments"].items()
    grammar = problem.task.grammar
    models = [
        scm(survivors.roots, {v: parse(text, grammar) for v, text in texts.items()})
        for texts in (survivors.one, survivors.other)
    ]
    roots: dict[str, int] = survivors.witness["rootAssignment"]
    first, second = PairwiseExperiments(*models).values_at(Experiment(variable, value), roots)
    names = sorted(first, key=natural_key)
    return {
        "intervention": f"do({variable}={value})",
        "target": variable,
        "roots": roots,
        "rows": [(name, first[name], second[name]) for name in names],
    }
