"""The audit page of a pool: reasons first; needs no network, and is the same bytes for the same audits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from math import log10
from pathlib import Path
from typing import Any

from markupsafe import Markup

from calibrant.audits.replayscm.findings import Ceiling, Findings, Survivors
from calibrant.audits.why import number_text
from calibrant.bench.pages.page import html_page
from calibrant.bench.pages.why import MAX_EMBEDDED, IndexItem, IndexText, index_page
from calibrant.bench.pools.findings_audit import FindingsRecord, FindingsReport, findings_item
from calibrant.bench.replayscm.audit.calibration import PRIORS, WEIGHTS, AnswerRow, Bounds, Calibration
from calibrant.bench.replayscm.audit.plots import agreement_plot, profile_plot, reliability_diagram, spectrum_bars
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
from calibrant.bench.runs.audits import AuditedPool, reason_of
from calibrant.bench.statistics import Reliability
from calibrant.dsl.formulas.text import parse
from calibrant.dsl.replayscm.alternatives import Experiment, PairwiseExperiments
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.replayscm.scm import scm
from calibrant.dsl.text import natural_key


def report(
    audited: AuditedPool[AuditRecord],
    records: Sequence[AuditRecord],
    calibrated: Calibration,
    pool: Path,
    bodies: Mapping[int, Markup],
    findings: FindingsReport | None = None,
) -> str:
    """Return the whole file. Everything that comes from the pool is escaped.

    records: of plain items; bodies: pages of reasons by place; findings: of extended items, where the pool has some
    """
    bounds = counted_bounds(records)
    extended = {} if findings is None else {record.index: record for record in findings.audited.records}
    sections = Markup(html_page("audit/scm_pool.html", _pool_sections(records, calibrated)))
    chips = [(value, name) for name, value in _tiles(records)]
    if findings is not None:
        sections += findings.section()
        chips[0] = chips[0][0], "instances without a stated class"
        chips.append((str(len(extended)), "instances with one"))
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
        _index_item(record, problem, bounds, bodies, number < MAX_EMBEDDED)
        if record.index not in extended
        else _extended_item(extended[record.index], problem, bounds, bodies, number < MAX_EMBEDDED)
        for number, (record, problem) in enumerate(zip(audited.records, audited.items, strict=True))
    )
    return index_page(audited.name, items, text)


def _extended_item(
    record: FindingsRecord, problem: Problem, bounds: Sequence[int], bodies: Mapping[int, Markup], has_page: bool
) -> IndexItem:
    """Return the line of an extended item: what was found in place of a verdict, and no counts by class."""
    item = findings_item(record, bodies, has_page)
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
    """Return the further columns of the list."""
    findings = record.findings
    labels = (record.stratum, record.setting)
    if findings is None:
        return (*labels, *[NOTHING] * (3 + len(bounds) + len(MEASURES)))
    members = {class_count.max_parents: number_text(int(class_count.members)) for class_count in findings.classes}
    sizes = (str(findings.num_variables), str(findings.num_worlds))
    return (*labels, *sizes, *(members.get(k, NOTHING) for k in bounds), *measures(record), _bounded_total(findings))


def _headlines(done: Sequence[Findings]) -> list[tuple[str, int]]:
    """Return the classes that verdicts are of, and for how many instances."""
    numbers = Counter(findings.headline for findings in done)
    words = {findings.headline: findings.class_count(findings.headline).in_words for findings in reversed(done)}
    return [(words[bound], number) for bound, number in sorted(numbers.items())]


def _tiles(records: Sequence[AuditRecord]) -> list[tuple[str, str]]:
    verdicts = Counter(map(verdict, records))
    done = [record.findings for record in records if record.findings]
    shares = [heldout_share(findings.class_count(findings.headline)) for findings in done]
    values = sorted(share for share in shares if share is not None)
    tiles = [("instances", str(len(records)))]
    tiles += [(name, str(verdicts[name])) for name in ("unique", "ambiguous", "empty")]
    tiles += [(name.replace("_", " "), str(verdicts[name])) for name in ("out_of_budget", "crashed") if verdicts[name]]
    if values:
        middle = (values[(len(values) - 1) // 2] + values[len(values) // 2]) / 2
        tiles.append(("median share of SCMs that fit and are held-out exact", share_text(middle)))
    missed = sum(_bounded_is_silent(findings) and findings.members(findings.headline) > 1 for findings in done)
    if any(findings.bounded for findings in done):
        tiles.append(("ambiguous, though no bounded search finds anything", str(missed)))
    return tiles


def _bounded_is_silent(findings: Findings) -> bool:
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
    """Return how many local alternatives the stronger bounded search finds in all; a plus where some budget was hit."""
    if findings.bounded is None:
        return NOTHING
    number = sum(finding.found for finding in findings.bounded.stronger)
    hit = any(finding.budget_hit for finding in findings.bounded.stronger)
    return f"{number}{'+' if hit else ''}"


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
    """Return the ceiling under the published process, where it applies: weights, class, share, whether it came true."""
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
    """Both mechanisms of every variable side by side, and every value of both where the witness separates them."""
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
