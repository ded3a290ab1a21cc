"""The appendix tables by number. They are made where they are named, cohorts also where --cohort names some."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TypeAlias

from calibrant.bench.replayscm.tables.appendix import cohorts, construction, differences, levels, supplied
from calibrant.bench.replayscm.tables.appendix.facts import PoolFacts
from calibrant.bench.replayscm.tables.appendix.specs import APPENDIX_SPECS
from calibrant.bench.report.layout import Table
from calibrant.bench.report.rows import Row
from calibrant.dsl.records import file_digest

Maker: TypeAlias = Callable[[], Table | None]
COHORT_TABLES = ("F.1", "F.3", "F.4", "F.5")
APPENDIX_IDS = (
    *(spec.id for spec in APPENDIX_SPECS),
    *("D.2", "F.2", "F.6", "F.7", "F.8A", "F.8B", "F.9A", "F.9B", "F.10A", "F.10B", "F.13", "F.14"),
    *("G.1", "G.2", "G.5A", "G.5B"),
    *COHORT_TABLES,
)


def appendix_makers(
    rows: Sequence[Row], facts: PoolFacts, named_pools: Sequence[tuple[str, Path]], *, with_paper: bool
) -> Mapping[str, Maker]:
    """Return what makes each table. named_pools: of --cohort."""
    paper = with_paper
    makers: dict[str, Maker] = {spec.id: partial(spec.make, rows, with_paper=paper) for spec in APPENDIX_SPECS}
    makers |= {
        "D.2": lambda: levels.train_exact_matrix(rows, with_paper=paper),
        "F.2": lambda: construction.construction(facts.pools, with_paper=paper),
        "F.6": lambda: cohorts.by_kill_coverage(rows, facts.kill_coverage, with_paper=paper),
        "F.7": lambda: levels.replay_by_level(rows, with_paper=paper),
        "F.9A": lambda: levels.parents_before_and_after(rows, with_paper=paper),
        "F.9B": lambda: levels.replay_before_and_after(rows, with_paper=paper),
        "F.13": lambda: differences.alternatives_before_and_after(rows, with_paper=paper),
        "F.14": lambda: differences.alternatives_solved_on_both_sides(rows, with_paper=paper),
        "G.1": lambda: supplied.against_paired_task(rows, with_paper=paper),
        "G.2": lambda: supplied.by_source(rows, facts.sources, with_paper=paper),
    }
    for panel in ("A", "B"):
        makers[f"F.8{panel}"] = partial(levels.extra_worlds_by_disclosure, rows, panel, with_paper=paper)
        makers[f"F.10{panel}"] = partial(differences.structure_differences, rows, panel, with_paper=paper)
        makers[f"G.5{panel}"] = partial(supplied.by_depth, rows, panel, with_paper=paper)
    if named_pools:
        listed = cohorts.cohorts(rows, [(name, file_digest(path)) for name, path in named_pools])
        makers["F.3"] = partial(cohorts.cohort_levels, listed, with_paper=paper)
        for number in ("F.1", "F.4", "F.5"):
            makers[number] = partial(cohorts.cohort_differences, listed, number, with_paper=paper)
    return makers
