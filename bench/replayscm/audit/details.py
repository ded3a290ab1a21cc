"""Everything that an audit found in one instance, as plain text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from calibrant.audits.replayscm.bounded import LocalFinding, PairFinding, Shortcut
from calibrant.audits.replayscm.findings import Findings, Split, Survivors
from calibrant.bench.replayscm.audit.calibration import WEIGHTS, Bounds
from calibrant.bench.replayscm.audit.generator_ceiling import GeneratorCeiling
from calibrant.bench.replayscm.audit.records import AuditRecord
from calibrant.bench.replayscm.audit.text import bounds_text, share_text, short_count
from calibrant.dsl.errors import in_one_line


def details_text(record: AuditRecord) -> str:
    """Return the instance's id, then a line for each thing."""
    findings = record.findings
    lines = [f"error  {record.error}"] if findings is None else [*_lines(findings, record.generator)]
    return "\n".join([in_one_line(record.instance), *(f"  {line}" for line in lines)])


def _lines(findings: Findings, generator: GeneratorCeiling | None) -> Iterator[str]:
    for capped in findings.capped:
        yield f"members  {short_count(capped.members)} with k<={capped.max_parents}, formula sizes <= {capped.max_size}"
    for draw in findings.draws:
        yield f"a draw   {share_text(draw.probability)} held-out exact, {WEIGHTS[draw.size_penalty]}: {draw.in_words}"
    came = {None: "", True: "; the best answer is exact", False: "; the best answer is not exact"}
    if generator and generator.probability is not None:
        share = f"{share_text(generator.probability)} (standard error {generator.standard_error:.3f})"
        yield f"ceiling  {share}, generator: gold drawn by the published process{came[generator.realised]}"
    elif generator:
        yield f"left out  ceiling, generator: {generator.left_out}"
    for ceiling in findings.ceilings:
        bounds = bounds_text(Bounds(ceiling.lower, ceiling.upper, ceiling.realised))
        yield f"ceiling  {bounds}, if {WEIGHTS[ceiling.size_penalty]}: {ceiling.in_words}{came[ceiling.realised]}"
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
    for part, reason in findings.left_out.items():
        yield f"left out  {part}: {reason}"


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
        novelty = findings.balance
        yield f"held-out novelty  {novelty.smallest:.3f} to {novelty.largest:.3f}, mean {novelty.mean:.3f}"


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
    sets = ", ".join(f"{number} sets of {size}" for size, number in survivors.separating_sets.items())
    best = ", ".join(survivors.targets.targets) or "no intervention"
    yield f"separation  {sets}; best: {best}, {survivors.targets.disagreement_rate:.4f} of the assignments"


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
