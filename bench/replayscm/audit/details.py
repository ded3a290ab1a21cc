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
    """The instance's id, then a line for each thing."""
    found = record.findings
    lines = [f"error  {record.error}"] if found is None else [*_lines(found, record.generator)]
    return "\n".join([in_one_line(record.instance), *(f"  {line}" for line in lines)])


def _lines(found: Findings, generator: GeneratorCeiling | None) -> Iterator[str]:
    for one in found.capped:
        yield f"members  {short_count(one.members)} with k<={one.max_parents}, formula sizes <= {one.max_size}"
    for draw in found.draws:
        yield f"a draw   {share_text(draw.probability)} held-out exact, {WEIGHTS[draw.size_penalty]}: {draw.in_words}"
    came = {None: "", True: "; the best answer is exact", False: "; the best answer is not exact"}
    if generator and generator.probability is not None:
        share = f"{share_text(generator.probability)} (standard error {generator.standard_error:.3f})"
        yield f"ceiling  {share}, generator: gold drawn by the published process{came[generator.realised]}"
    elif generator:
        yield f"left out  ceiling, generator: {generator.left_out}"
    for ceiling in found.ceilings:
        bounds = bounds_text(Bounds(ceiling.lower, ceiling.upper, ceiling.realised))
        yield f"ceiling  {bounds}, if {WEIGHTS[ceiling.size_penalty]}: {ceiling.in_words}{came[ceiling.realised]}"
    yield from _evidence(found)
    if found.bounded:
        yield _bounded("local alternatives", found.bounded.local)
        yield _bounded("stronger search", found.bounded.stronger)
        yield _bounded("coordinated pairs", found.bounded.pairs)
        yield f"bounded  shortcuts: {_shortcuts(found.bounded.shortcuts)}"
    if found.survivors:
        yield from _survivors(found.survivors)
    if found.split:
        yield _split(found.split)
    for part, reason in found.left_out.items():
        yield f"left out  {part}: {reason}"


def _bounded(words: str, findings: Sequence[LocalFinding | PairFinding]) -> str:
    total, exact = sum(one.found for one in findings), sum(int(one.exact) for one in findings)
    hit = ", a budget was hit" if any(one.budget_hit for one in findings) else ""
    return f"bounded  {words}: {total} found{hit}; {short_count(str(exact))} there are"


def _evidence(found: Findings) -> Iterator[str]:
    mix = found.mix
    targets = ", ".join(f"{worlds} with {number}" for number, worlds in mix.by_targets.items())
    modes = f"{mix.none} without, {mix.hard_constant} constant, {mix.hard_assigned} assigned"
    yield f"interventions  {modes}; targets: {targets}"
    if found.coverage:
        yield f"coverage  {found.coverage.seen} of {found.coverage.total} local predecessor patterns"
    if found.exposure:
        least = min(found.exposure, key=lambda row: row.scored_cells)
        yield f"exposure  least for {least.variable}: {least.scored_cells} cells in {least.scored_worlds} worlds"
    if found.balance:
        novelty = found.balance
        yield f"held-out novelty  {novelty.smallest:.3f} to {novelty.largest:.3f}, mean {novelty.mean:.3f}"


def _shortcuts(findings: Sequence[Shortcut]) -> str:
    left = [f"{one.variable} at size {one.size}" for one in findings if one.size is not None]
    return ", ".join(left) or "none"


def _survivors(found: Survivors) -> Iterator[str]:
    for variable, text in found.one.items():
        if text != found.other[variable]:
            yield f"survivors  {variable} = {text}   |   {found.other[variable]}"
    if found.targets is None:
        yield "separation  no hard intervention on up to three targets"
        return
    sets = ", ".join(f"{number} sets of {size}" for size, number in found.separating_sets.items())
    best = ", ".join(found.targets.targets) or "no intervention"
    yield f"separation  {sets}; best: {best}, {found.targets.disagreement_rate:.4f} of the assignments"


def _split(found: Split) -> str:
    shares = []
    if found.removed is not None:
        low, high = found.removed
        share = f"{low:.4f}" if low == high else f"{low:.4f} to {high:.4f} (drawn truths: {found.estimate:.4f})"
        shares.append(f"{share} of the members")
    if found.removed_from_gold is not None:
        shares.append(f"{found.removed_from_gold:.4f}{'' if shares else ' of the members'} with gold's outcome")
    contexts = f"{len(found.rows)} rows of {' '.join(found.columns)}: {' '.join(found.rows)}"
    return f"split  {found.mode} on {', '.join(found.targets)} removes {', '.join(shares)}; {contexts}"
