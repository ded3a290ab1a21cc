"""The audit report of a pool: one HTML file that needs no network and is the same bytes for the same audits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import log10
from typing import Any

from calibrant.audits.replayscm.findings import Ceiling, Findings, Survivors
from calibrant.bench.pages.html_page import html_page
from calibrant.bench.replayscm.audit.calibration import PRIORS, WEIGHTS, AnswerRow, Bounds, Calibration, ceiling_under
from calibrant.bench.replayscm.audit.plots import agreement_plot, profile_plot
from calibrant.bench.replayscm.audit.records import AuditRecord
from calibrant.bench.replayscm.audit.reliability import diagram
from calibrant.bench.replayscm.audit.text import (
    LONGEST,
    MEASURES,
    NOTHING,
    answers_name,
    bounds_text,
    counted_bounds,
    heldout_share,
    measures,
    share_text,
    short_count,
    verdict,
)
from calibrant.bench.runs.audits import AuditedPool
from calibrant.bench.version import program_version
from calibrant.dsl.formulas.text import parse
from calibrant.dsl.names import natural_key
from calibrant.dsl.replayscm.problem import Problem
from calibrant.dsl.replayscm.scm import scm
from calibrant.dsl.replayscm.separation import Experiment, PairwiseExperiments

_UNSORTABLE = -1.0  # sorts before every logarithm of a count and every share


def report(audited: AuditedPool[AuditRecord], calibrated: Calibration) -> str:
    """The whole file. Everything that comes from the pool is escaped."""
    return html_page("audit.html", _context(audited, calibrated))


def _context(audited: AuditedPool[AuditRecord], calibrated: Calibration) -> dict[str, Any]:
    records = audited.records
    anchors = {record.instance: f"i{record.index}" for record in records}
    problems = {problem.id: problem for problem in audited.items}
    done = [record.findings for record in records if record.findings]
    return {
        "pool": audited.name,
        "digest": audited.digest,
        "program": program_version(),
        "headlines": _headlines(done),
        "tiles": _tiles(records),
        "bounds": counted_bounds(records),
        "measures": MEASURES,
        "rows": [_row(record, anchors, counted_bounds(records)) for record in records],
        "profile": profile_plot(records, anchors),
        "agreement": agreement_plot(records, anchors),
        "means": [
            (prior, PRIORS[prior], number, _between(low, high))
            for prior, (number, low, high) in calibrated.means.items()
        ],
        "diagrams": [diagram(prior, found) for prior, found in calibrated.reliability.items()],
        "answers": [_answers(row) for row in calibrated.rows],
        "sections": [_section(record, anchors, problems[record.instance]) for record in records],
    }


def _headlines(done: Sequence[Findings]) -> list[tuple[str, int]]:
    """Return the classes that verdicts are of, and for how many instances."""
    numbers = Counter(found.headline for found in done)
    words = {found.headline: found.class_count(found.headline).in_words for found in reversed(done)}
    return [(words[bound], number) for bound, number in sorted(numbers.items())]


def _tiles(records: Sequence[AuditRecord]) -> list[tuple[str, str]]:
    verdicts = Counter(map(verdict, records))
    done = [record.findings for record in records if record.findings]
    shares = [heldout_share(found.class_count(found.headline)) for found in done]
    known = sorted(share for share in shares if share is not None)
    tiles = [("instances", str(len(records)))]
    tiles += [(name, str(verdicts[name])) for name in ("unique", "ambiguous", "empty")]
    tiles += [(name.replace("_", " "), str(verdicts[name])) for name in ("out_of_budget", "crashed") if verdicts[name]]
    if known:
        middle = (known[(len(known) - 1) // 2] + known[len(known) // 2]) / 2
        tiles.append(("median share of members that are held-out exact", share_text(middle)))
    missed = sum(_bounded_is_silent(found) and found.members(found.headline) > 1 for found in done)
    if any(found.bounded for found in done):
        tiles.append(("ambiguous, though no bounded search finds anything", str(missed)))
    return tiles


def _bounded_is_silent(found: Findings) -> bool:
    if found.bounded is None:
        return False
    local = (*found.bounded.local, *found.bounded.stronger)
    return not any(one.found for one in local) and not any(pair.found for pair in found.bounded.pairs)


def _row(record: AuditRecord, anchors: dict[str, str], bounds: list[int]) -> dict[str, Any]:
    found = record.findings
    made: dict[str, Any] = {
        "anchor": anchors[record.instance],
        "instance": record.instance,
        "stratum": record.stratum,
        "setting": record.setting,
        "error": record.error,
    }
    if found is None:
        return made | {"verdict": record.outcome, "counts": None}
    by_bound = {counted.max_parents: counted.members for counted in found.classes}
    return made | {
        "verdict": verdict(record),
        "bound": found.headline,
        "sizes": [found.num_variables, found.num_worlds],
        "counts": [_count(by_bound.get(k)) for k in bounds],
        "measures": _measures(record),
        "bounded": _bounded_total(found),
    }


def _measures(record: AuditRecord) -> list[dict[str, Any]]:
    """Return the columns of MEASURES (bench.replayscm.audit.text) with sort keys; intervals sort by the upper end."""
    found = record.findings
    assert found is not None
    keys: list[float | None] = [found.coverage.share if found.coverage else None]
    keys += [heldout_share(found.class_count(found.headline))]
    keys += [next((draw.probability for draw in found.draws if draw.size_penalty is not None), None)]
    keys += [bounds.upper if (bounds := ceiling_under(prior, record)) else None for prior in PRIORS]
    texts = measures(record)
    return [{"text": t, "sort": _UNSORTABLE if key is None else key} for t, key in zip(texts, keys, strict=True)]


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


def _bounded_total(found: Findings) -> dict[str, Any]:
    """Return how many local alternatives the stronger bounded search finds in all; a plus where some budget was hit."""
    if found.bounded is None:
        return {"text": "-", "sort": _UNSORTABLE}
    number = sum(finding.found for finding in found.bounded.stronger)
    hit = any(finding.budget_hit for finding in found.bounded.stronger)
    return {"text": f"{number}{'+' if hit else ''}", "sort": number}


def _count(members: str | None) -> dict[str, Any]:
    """Return a count as it is shown, in full for a pointer over it, and its sort key; None was not counted."""
    if members is None:
        return {"text": NOTHING, "full": "", "sort": _UNSORTABLE}
    return {
        "text": short_count(members),
        "full": members if len(members) > LONGEST else "",
        "sort": _UNSORTABLE if members == "0" else round(log10(int(members)), 6),
    }


def _section(record: AuditRecord, anchors: dict[str, str], problem: Problem) -> dict[str, Any]:
    found = record.findings
    made = {"anchor": anchors[record.instance], "record": record, "findings": found}
    if found is None:
        return made | {"verdict": record.outcome}
    classes = [
        {
            "bound": counted.max_parents,
            "members": counted.members,
            "heldout_exact": counted.heldout_exact,
            "share": share_text(heldout_share(counted)),
            "log10": _log10(counted.members),
            "capped": {
                one.max_size: _log10(one.members) for one in found.capped if one.max_parents == counted.max_parents
            },
        }
        for counted in found.classes
    ]
    return made | {
        "verdict": verdict(record),
        "classes": classes,
        "caps": sorted({one.max_size for one in found.capped}, reverse=True),
        "draws": [(draw.in_words, WEIGHTS[draw.size_penalty], share_text(draw.probability)) for draw in found.draws],
        "ceilings": [*_generator_row(record), *map(_ceiling_row, found.ceilings)],
        "spectrum": _spectrum(found),
        "survivors": _survivors(found.survivors, problem) if found.survivors else None,
    }


def _generator_row(record: AuditRecord) -> list[tuple[str, str, str, bool | None]]:
    """Return the ceiling under the published process, where it applies: weights, class, share, whether it came true."""
    made = record.generator
    if made is None or made.probability is None:
        return []
    return [("generator", PRIORS["generator"], f"{made.probability:.3f} ± {made.standard_error:.3f}", made.realised)]


def _ceiling_row(found: Ceiling) -> tuple[str, str, str, bool | None]:
    bounds = bounds_text(Bounds(found.lower, found.upper, found.realised))
    return f"if {WEIGHTS[found.size_penalty]}", found.in_words, bounds, found.realised


def _log10(members: str) -> str:
    return NOTHING if members == "0" else f"{log10(int(members)):.2f}"


def _spectrum(found: Findings) -> dict[str, Any] | None:
    """Bars of the spectrum: heights are log10 of the number, one more for each factor of ten, at least one."""
    if found.spectrum is None or not found.spectrum.by_size:
        return None
    heights = [round(6 + 6 * log10(int(members)), 1) for members in found.spectrum.by_size.values()]
    bars = zip(found.spectrum.by_size.items(), heights, strict=True)
    sizes = [{"size": size, "members": members, "height": height} for (size, members), height in bars]
    return {"in_words": found.spectrum.in_words, "sizes": sizes, "tallest": max(heights)}


def _survivors(survivors: Survivors, problem: Problem) -> dict[str, Any]:
    """Both mechanisms of every variable side by side, and every value of both where the witness separates them."""
    endogenous = sorted(survivors.one, key=natural_key)
    return {
        "pair": survivors,
        "mechanisms": [(v, survivors.one[v], survivors.other[v]) for v in endogenous],
        "witnessed": _witnessed(survivors, problem),
    }


def _witnessed(survivors: Survivors, problem: Problem) -> dict[str, Any] | None:
    if survivors.experiment is None or survivors.witness is None:
        return None
    ((variable, value),) = survivors.experiment["assignments"].items()
    grammar = problem.task.grammar
    models = [
        scm(survivors.roots, {v: parse(text, grammar) for v, text in texts.items()})
        for texts in (survivors.one, survivors.other)
    ]
    roots: dict[str, int] = survivors.witness["rootAssignment"]
    one, other = PairwiseExperiments(*models).values_at(Experiment(variable, value), roots)
    names = sorted(one, key=natural_key)
    return {
        "intervention": f"do({variable}={value})",
        "target": variable,
        "roots": roots,
        "rows": [(name, one[name], other[name]) for name in names],
    }
