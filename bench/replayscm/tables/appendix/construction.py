"""Table F.2: what each level of the support-audit ladder adds, counted in the pools themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from calibrant.audits.replayscm.patterns import pattern_coverage
from calibrant.bench.core.metrics import UNDEFINED
from calibrant.bench.replayscm.tables.appendix.facts import level_of
from calibrant.bench.replayscm.tables.paper import printed_rows
from calibrant.bench.report.layout import Cell, Heading, Source, Table, TableRow
from calibrant.dsl.replayscm.item import Pool, Problem
from calibrant.dsl.replayscm.pools.published_files import BY_DIGEST, latent_of

COLUMNS = {"original": "Original", "extra_worlds": "Extra Worlds", "counterexample_audit": "CEx"}
_OF_LEVEL = {None: "original", "Ext": "extra_worlds", "CEx": "counterexample_audit"}


def construction(pools: Mapping[str, Pool], *, with_paper: bool) -> Table | None:
    """Return the statistics of the given pools by level, over the latent SCMs that all levels have; None for one."""
    by_level: dict[str, dict[str, Problem]] = {}
    for digest, pool in pools.items():
        official = BY_DIGEST.get(digest)
        suffix = level_of(pool) if official is None else official.setting.partition("-")[2]
        level = _OF_LEVEL.get(suffix if suffix in ("Ext", "CEx") else None)
        for problem in pool.problems:
            if level and problem.sealed.gold is not None and problem.task.reference is None:
                by_level.setdefault(level, {}).setdefault(_key(problem), problem)
    if len(by_level) < 2:
        return None
    shared = sorted(set.intersection(*(set(problems) for problems in by_level.values())))
    if not shared:
        return None
    levels = {level: [problems[key] for key in shared] for level, problems in by_level.items()}
    lines = [*_lines(levels, len(shared))]
    printed = printed_rows("F.2", [*COLUMNS], ("statistic", "source")) if with_paper else []
    rows = [
        TableRow((name, "ours"), tuple(cells.get(level, Cell(UNDEFINED)) for level in COLUMNS)) for name, cells in lines
    ]
    rows += [TableRow((row.labels[0], "paper"), row.cells, Source.PAPER) for row in printed]
    labels = (Heading("statistic", "Statistic"), Heading("source", "Source"))
    headings = tuple(Heading(key, text) for key, text in COLUMNS.items())
    caption = (
        f"Counted in the pools, over {len(shared)} problems that every level has. Coverage: local predecessor patterns"
        " that the training worlds show, of all."
    )
    return Table("F.2", "What the support-audit levels add", caption, labels, headings, tuple(rows))


def _key(problem: Problem) -> str:
    """Return what the levels of one problem share: disclosure and latent SCM."""
    latent = problem.sealed.labels.get("latent") or latent_of(problem.id)
    return f"{problem.setting} {latent}"


def _lines(levels: Mapping[str, Sequence[Problem]], number: int) -> list[tuple[str, dict[str, Cell]]]:
    coverages = {level: [pattern_coverage(problem) for problem in listed] for level, listed in levels.items()}
    worlds = {level: [len(problem.task.training.worlds) for problem in listed] for level, listed in levels.items()}
    heldout = {level: {problem.task.num_heldout for problem in listed} for level, listed in levels.items()}
    lines = [
        (
            "mean local predecessor-pattern coverage",
            {level: Cell(f"{fmean(float(c.share) for c in listed):.4f}") for level, listed in coverages.items()},
        ),
        (
            f"problems with full local coverage, of {number}",
            {level: Cell(str(sum(c.num_seen == c.total for c in listed))) for level, listed in coverages.items()},
        ),
    ]
    if "original" in levels and "extra_worlds" in levels:
        added = [after - before for before, after in zip(worlds["original"], worlds["extra_worlds"], strict=True)]
        patterns = [
            after.num_seen - before.num_seen
            for before, after in zip(coverages["original"], coverages["extra_worlds"], strict=True)
        ]
        lines.append(("worlds added per problem by Extra Worlds, mean (range)", {"extra_worlds": Cell(_range(added))}))
        lines.append(("new predecessor patterns per problem, mean", {"extra_worlds": Cell(f"{fmean(patterns):.2f}")}))
    lines.append(
        (
            "final training worlds per problem, mean (range)",
            {level: Cell(_range(listed)) for level, listed in worlds.items() if level != "original"},
        )
    )
    lines.append(
        (
            "held-out worlds per problem",
            {
                level: Cell(", ".join(map(str, sorted(listed))))
                for level, listed in heldout.items()
                if level != "original"
            },
        )
    )
    return lines


def _range(numbers: Sequence[int]) -> str:
    return f"{fmean(numbers):.2f} ({min(numbers)}-{max(numbers)})"
