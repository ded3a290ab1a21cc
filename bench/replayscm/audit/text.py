"""Audits as plain text: a table of a pool, the classes of verdicts, and all findings about one instance."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from math import inf
from statistics import median

from calibrant.audits.replayscm.bounded import LocalFinding, PairFinding, Shortcut
from calibrant.audits.replayscm.findings import ClassCount, Findings, Split, Survivors
from calibrant.audits.why import listed
from calibrant.bench.pages.terminal_tables import Fitted, aligned, fit_columns
from calibrant.bench.replayscm.audit.extended import PRIORS, WEIGHTS, AnswerRow, Bounds, Calibration, ceiling_under
from calibrant.bench.replayscm.audit.records import AuditRecord, GeneratorCeiling
from calibrant.bench.report.table import legend_lines
from calibrant.dsl.errors import CalibrantError, in_one_line, short_repr
from calibrant.dsl.text import nearest_names, plural

# --- Audits as a plain text table, and the classes that verdicts are about --------------------------------------------
MAX_CLASS = 6  # largest parent limit of a class in `ambiguous:CLASS`
NOTHING = "-"
CEILINGS = ("Ceiling", "If uniform", "If by size")
MEASURES = ("Coverage", "HeldoutExact", "HE by size", *CEILINGS)
MEANINGS = {
    "Vars": "variables",
    "Worlds": "training worlds",
    "Coverage": "share of the local predecessor patterns that a training row shows",
    "HeldoutExact": "share of the SCMs that fit which replay the held-out worlds",
    "HE by size": "the same share, with SCMs weighed by 2^-size",
    "Ceiling": "probability that the best possible answer is right if the published process drew gold (- if it cannot)",
    "If uniform": "that probability if all SCMs that fit are equally probable",
    "If by size": "that probability if SCMs that fit weigh 2^-size",
    "Verdict": "unique, ambiguous or empty: one, several or no SCM of the class fits",
}  # heading -> meaning; columns of counts have no fixed headings
PREDICTED = (
    "ceiling: probability that the best possible answer is held-out exact. Predicted: instances by their ceiling;"
    " n: how many; mean: of their ceilings; realised: share of their best answers that are held-out exact."
)
MAX_COUNT_DIGITS = 9  # beyond, a count is written as 1.23e15
_CLASS = re.compile(r"(?:k|parents<=)([1-6])")


def gate_class(text: str) -> int | None:
    """Return the limit N of functional parents in `ambiguous:CLASS`, where CLASS is kN or parents<=N, N from 1 to 6.

    None without a class: the verdict is about the headline class of each audit (the smallest class with gold).
    """
    condition, colon, class_text = text.partition(":")
    match = _CLASS.fullmatch(class_text)
    if condition != "ambiguous" or (colon and not match):
        allowed = f"ambiguous, ambiguous:k4 or 'ambiguous:parents<=4', with 1 to {MAX_CLASS} parents"
        near = [] if condition == "ambiguous" else nearest_names(condition, ["ambiguous"])
        reason = f"; did you mean {near[0]}{colon}{class_text}? It" if near else ": it"
        raise CalibrantError(f"--fail-on {short_repr(text)}{reason} has to be {allowed}")
    return int(match[1]) if match else None


def short_count(members: str) -> str:
    """Return a count in full, or its first three digits and the power of ten; truncated, not rounded."""
    return members if len(members) <= MAX_COUNT_DIGITS else f"{members[0]}.{members[1:3]}e{len(members) - 1}"


def verdict(record: AuditRecord, max_parents: int | None = None) -> str:
    """Return the verdict: unique, ambiguous, empty (no member in the class), or why there are no findings.

    max_parents: the class; None: the headline class of the audit
    """
    if record.findings is None:
        return record.outcome
    members = record.findings.members(record.findings.headline if max_parents is None else max_parents)
    return "unique" if members == 1 else "ambiguous" if members else "empty"


def verdict_with_class(record: AuditRecord) -> str:
    """Return the verdict and its class, such as `unique, k<=3`."""
    return verdict(record) if record.findings is None else f"{verdict(record)}, k<={record.findings.headline}"


def heldout_share(class_count: ClassCount) -> float | None:
    """Return the share of members that replay the held-out worlds; None without members or a count."""
    if class_count.heldout_exact is None or class_count.members == "0":
        return None
    return int(class_count.heldout_exact) / int(class_count.members)


def share_text(share: float | None) -> str:
    return NOTHING if share is None else "0" if share == 0 else "1" if share == 1 else f"{share:.3g}"


def audits_table(records: Sequence[AuditRecord], width: int | None, *, with_ceilings: bool) -> Fitted:
    """Return the table with a row for each instance; columns that do not fit the width are dropped, verdict last."""
    bounds = counted_bounds(records)
    counts = [f"k<={k}" for k in bounds]
    headings = {"instance": "Instance", "setting": "Setting"}
    headings |= {name: name for name in ("Vars", "Worlds", *counts, *MEASURES, "Verdict")}
    cached: dict[str, str] = {}  # one string for equal cells of many instances
    rows = [
        {key: cached.setdefault(cell, cell) for key, cell in zip(headings, _row(record, bounds), strict=True)}
        for record in records
    ]
    first, labels = ("Verdict", *counts, "Ceiling", "Coverage"), ("instance", "setting")
    headings = {key: text for key, text in headings.items() if with_ceilings or key not in CEILINGS}
    return fit_columns(headings, rows, first=first, labels=labels, width=width)


def table_legend(headings: Sequence[str], width: int) -> list[str]:
    """Return the legend of these headings of `audits_table`."""
    counts = [heading for heading in headings if heading.startswith("k<=")]
    span = " to ".join(dict.fromkeys((*counts[:1], *counts[-1:])))
    meanings = {span: "SCMs that fit, with at most so many functional parents"} | MEANINGS
    return legend_lines([span, *headings] if span else headings, meanings, width)


MODE_WORDS = {"hard_constant": "set to a constant", "hard_assigned": "set row by row", "none": "with nothing set"}
VERDICT_WORDS = {"unique": "one SCM fits", "ambiguous": "several fit", "empty": "none fits"}


def answer_lines(records: Sequence[AuditRecord]) -> Iterator[str]:
    """Yield a sentence for each class: the numbers of instances that one SCM fits, several fit or none fits."""
    for bound, verdicts in _verdict_groups(records, None).items():
        if bound is None:
            kinds = dict.fromkeys(verdicts)
            failed = " and ".join(f"{verdicts.count(kind)} {kind.replace('_', ' ')}" for kind in kinds)
            yield f"No verdict on {plural(len(verdicts), 'instances')}: {failed}."
            continue
        parts = [f"{words} {verdicts.count(kind)}" for kind, words in VERDICT_WORDS.items() if kind in verdicts]
        parts[0] = parts[0].replace("several fit", "several SCMs fit").replace("none fits", "no SCM fits")
        parents = plural(bound, "functional parents")
        yield f"With at most {parents}, {listed(parts)} of {plural(len(verdicts), 'instances')}."


def closing_lines(records: Sequence[AuditRecord]) -> Iterator[str]:
    """Yield `closing_text` after an empty line, if it is not empty."""
    if closing := closing_text(records):
        yield from ("", closing)


def closing_text(records: Sequence[AuditRecord]) -> str:
    """Return sentences on the smallest and largest share that one more world removes, and these worlds."""
    shares: list[float] = []
    low, high, lowest, highest = inf, -inf, "", ""
    for record in records:
        split = record.findings and record.findings.split
        if split and (share := removed_share(split)):
            if share < low:
                low, lowest = share, _closing(share, record.instance, split)
            if share > high:
                high, highest = share, _closing(share, record.instance, split)
            shares.append(share)
    if len(shares) < 2:
        return f"One more world, {highest}." if shares else ""
    middle = f"median {100 * median(shares):.1f} %, of {plural(len(shares), 'instances')}"
    span = f"{100 * low:.1f} to {100 * high:.1f} % of the SCMs that fit ({middle})"
    return f"One more world removes, at best, {span}. Least: {lowest}. Most: {highest}."


def removed_share(split: Split) -> float | None:
    """Return the expected share of members that the world removes, else the share removed with gold's outcome."""
    return split.estimate if split.estimate is not None else split.removed_from_gold


def _closing(share: float, instance: str, split: Split) -> str:
    how = MODE_WORDS.get(split.mode, split.mode)
    return f"{', '.join(split.targets)} {how}, removes {100 * share:.1f} % in {in_one_line(instance)}"


def counted_bounds(records: Sequence[AuditRecord]) -> list[int]:
    """Return the parent limits with a count for some instance, ascending."""
    return sorted({class_count.max_parents for r in records if r.findings for class_count in r.findings.classes})


def _row(record: AuditRecord, bounds: Sequence[int]) -> list[str]:
    findings = record.findings
    if findings is None:
        return [
            record.instance,
            record.setting,
            *[NOTHING] * (len(bounds) + 2 + len(MEASURES)),
            verdict_with_class(record),
        ]
    by_bound = {class_count.max_parents: short_count(class_count.members) for class_count in findings.classes}
    counts = [by_bound.get(k, NOTHING) for k in bounds]
    sizes = [str(findings.num_variables), str(findings.num_worlds)]
    return [record.instance, record.setting, *sizes, *counts, *measures(record), verdict_with_class(record)]


def measures(record: AuditRecord) -> list[str]:
    """Return the cells under MEASURES: coverage, held-out exact shares (plain, by size), ceilings under PRIORS."""
    findings = record.findings
    if findings is None:
        return [NOTHING] * len(MEASURES)
    by_size = next((draw.probability for draw in findings.draws if draw.size_penalty is not None), None)
    shares = [
        findings.coverage.share if findings.coverage else None,
        heldout_share(findings.class_count(findings.headline)),
        by_size,
    ]
    bounds = [ceiling_under(prior, record) for prior in PRIORS]
    return [*map(share_text, shares), *(NOTHING if bound is None else bounds_text(bound) for bound in bounds)]


def bounds_text(bounds: Bounds) -> str:
    """Return one number for equal bounds, else the interval."""
    low, high, _ = bounds
    return share_text(low) if low == high else f"{low:.3g}-{high:.3g}"


def calibration_text(result: Calibration, width: int) -> str:
    """Return the ceilings of the pool, their reliability, and answers compared with them, as text."""
    lines = []
    for prior, (number, lower, upper) in result.means.items():
        between = f"{lower:.3f}" if lower == upper else f"between {lower:.3f} and {upper:.3f}"
        lines.append(f"ceiling, {prior}: mean {between}, of {plural(number, 'instances')} ({PRIORS[prior]})")
    for prior, reliability in result.reliability.items():
        lines.append(
            f"ceiling, {prior}: {reliability.predicted:.2f} best answers held-out exact predicted, "
            f"{reliability.realised} realised "
            f"(standard error {reliability.standard_error:.2f}, {plural(reliability.number, 'instances')})"
        )
        rows = [
            [f"{b.low:.1f}-{b.high:.1f}", str(b.number), f"{b.predicted:.3f}", f"{b.realised:.3f}"]
            for b in reliability.bins
        ]
        lines.append(aligned(["Predicted", "n", "mean", "realised"], rows))
    if result.reliability:
        lines += textwrap.wrap(PREDICTED, width)
    if result.rows:
        headings = ["Answers", "Weights", "n", "HeldoutExact", "Ceiling", "Below"]
        rows = [
            [
                answers_name(row),
                row.prior,
                str(row.number),
                f"{row.rate:.3f}",
                f"{row.ceiling[1]:.3f}",
                f"{row.below:+.3f}",
            ]
            for row in result.rows
        ]
        lines.append(aligned(headings, rows))
    return "\n".join(lines)


def answers_name(row: AnswerRow) -> str:
    """Return the protocol with its options that are not None."""
    options = ", ".join(f"{name}={value}" for name, value in sorted(row.config.items()) if value is not None)
    return f"{row.protocol} ({options})" if options else row.protocol


def summary(records: Sequence[AuditRecord], max_parents: int | None = None) -> str:
    """Return a line for each class with the number of instances by verdict.

    max_parents: one class for all; None: the headline class of each audit
    """
    groups = _verdict_groups(records, max_parents)
    lines = [f"{_class_name(bound)}: {_verdict_counts(verdicts)}" for bound, verdicts in groups.items()]
    return "\n".join(lines) or "no instances"


def _verdict_groups(records: Sequence[AuditRecord], max_parents: int | None) -> dict[int | None, list[str]]:
    """Return parent limit of the class -> verdicts; None, for instances without a verdict, comes last."""
    groups: dict[int | None, list[str]] = {}
    for record in records:
        bound = record.findings.headline if record.findings and max_parents is None else max_parents
        groups.setdefault(bound, []).append(verdict(record, max_parents))
    return {bound: groups[bound] for bound in sorted(groups, key=lambda k: k or MAX_CLASS + 1)}


def _class_name(bound: int | None) -> str:
    return "no verdict" if bound is None else f"functional parents <= {bound}"


def _verdict_counts(verdicts: Sequence[str]) -> str:
    kinds = ("unique", "ambiguous", "empty", "out_of_budget", "crashed")
    parts = [f"{verdicts.count(kind)} {kind}" for kind in kinds if kind in verdicts]
    return f"{', '.join(parts)}, of {plural(len(verdicts), 'instances')}"


# --- All findings of the audit of one instance, as plain text ---------------------------------------------------------


def details_text(record: AuditRecord) -> str:
    """Return the instance's id, then a line for each finding."""
    findings = record.findings
    lines = [f"error  {record.error}"] if findings is None else [*_finding_lines(findings, record.generator)]
    return "\n".join([in_one_line(record.instance), *(f"  {line}" for line in lines)])


def _finding_lines(findings: Findings, generator: GeneratorCeiling | None) -> Iterator[str]:
    for capped in findings.capped:
        yield f"members  {short_count(capped.members)} with k<={capped.max_parents}, formula sizes <= {capped.max_size}"
    for draw in findings.draws:
        yield f"a draw   {share_text(draw.probability)} held-out exact, {WEIGHTS[draw.size_penalty]}: {draw.in_words}"
    realised = {None: "", True: "; the best answer is exact", False: "; the best answer is not exact"}
    if generator and generator.probability is not None:
        share = f"{share_text(generator.probability)} (standard error {generator.standard_error:.3f})"
        yield f"ceiling  {share}, generator: gold drawn by the published process{realised[generator.realised]}"
    elif generator:
        yield f"left out  ceiling, generator: {generator.left_out}"
    for ceiling in findings.ceilings:
        bounds = bounds_text(Bounds(ceiling.lower, ceiling.upper, ceiling.realised))
        yield f"ceiling  {bounds}, if {WEIGHTS[ceiling.size_penalty]}: {ceiling.in_words}{realised[ceiling.realised]}"
    yield from _evidence(findings)
    if findings.bounded:
        yield _bounded_line("local alternatives", findings.bounded.local)
        yield _bounded_line("stronger search", findings.bounded.stronger)
        yield _bounded_line("coordinated pairs", findings.bounded.pairs)
        yield f"bounded  shortcuts: {_shortcuts(findings.bounded.shortcuts)}"
    if findings.survivors:
        yield from _survivors(findings.survivors)
    if findings.split:
        yield _split(findings.split)
    for stage, reason in findings.left_out.items():
        yield f"left out  {stage}: {reason}"


def _bounded_line(words: str, findings: Sequence[LocalFinding | PairFinding]) -> str:
    total, exact = sum(finding.found for finding in findings), sum(int(finding.exact) for finding in findings)
    hit = ", a budget was hit" if any(finding.budget_hit for finding in findings) else ""
    return f"bounded  {words}: {total} found{hit}; {short_count(str(exact))} there are"


def _evidence(findings: Findings) -> Iterator[str]:
    mix = findings.mix
    targets = ", ".join(f"{worlds} with {number}" for number, worlds in mix.by_targets.items())
    modes = f"{mix.none} without, {mix.hard_constant} constant, {mix.hard_assigned} assigned"
    yield f"interventions  {modes}; targets: {targets}"
    if findings.coverage:
        yield f"coverage  {findings.coverage.seen} of {findings.coverage.total} local predecessor patterns"
    if findings.exposure:
        least_exposed = min(findings.exposure, key=lambda row: row.scored_cells)
        scored = f"{least_exposed.scored_cells} cells in {least_exposed.scored_worlds} worlds"
        yield f"exposure  least for {least_exposed.variable}: {scored}"
    if findings.balance:
        balance = findings.balance
        yield f"held-out novelty  {balance.smallest:.3f} to {balance.largest:.3f}, mean {balance.mean:.3f}"


def _shortcuts(findings: Sequence[Shortcut]) -> str:
    remaining = [f"{shortcut.variable} at size {shortcut.size}" for shortcut in findings if shortcut.size is not None]
    return ", ".join(remaining) or "none"


def _survivors(survivors: Survivors) -> Iterator[str]:
    for variable, text in survivors.one.items():
        if text != survivors.other[variable]:
            yield f"survivors  {variable} = {text}   |   {survivors.other[variable]}"
    if survivors.targets is None:
        yield "separation  no hard intervention on up to three targets"
        return
    set_counts = ", ".join(f"{plural(number, 'sets')} of {size}" for size, number in survivors.separating_sets.items())
    best = ", ".join(survivors.targets.targets) or "no intervention"
    yield f"separation  {set_counts}; best: {best}, {survivors.targets.disagreement_rate:.4f} of the assignments"


def _split(split: Split) -> str:
    shares = []
    if split.removed is not None:
        low, high = split.removed
        share = f"{low:.4f}" if low == high else f"{low:.4f} to {high:.4f} (drawn truths: {split.estimate:.4f})"
        shares.append(f"{share} of the members")
    if split.removed_from_gold is not None:
        shares.append(f"{split.removed_from_gold:.4f}{'' if shares else ' of the members'} with gold's outcome")
    contexts = f"{len(split.rows)} rows of {' '.join(split.columns)}: {' '.join(split.rows)}"
    return f"split  {split.mode} on {', '.join(split.targets)} removes {', '.join(shares)}; {contexts}"
