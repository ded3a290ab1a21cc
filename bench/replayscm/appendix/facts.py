"""Facts that pool files state about their items, for tables: latent SCM, level, sources, coverage (Table F.2)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean

from calibrant.audits.replayscm.bounded import pattern_coverage, support_coverage
from calibrant.bench.core.metrics import Item
from calibrant.bench.core.registry import benchmark_of
from calibrant.bench.replayscm.paper import printed_rows
from calibrant.bench.report.layout import NOTHING, Cell, Heading, Source, Table, TableRow
from calibrant.bench.report.rows import Answer
from calibrant.dsl.records import file_digest
from calibrant.dsl.replayscm.item import BENCHMARK, Pool, Problem
from calibrant.dsl.replayscm.pools.files import read_pool
from calibrant.dsl.replayscm.pools.official import BY_DIGEST, latent_of

LEVELS = {"extra-worlds": "Ext", "cex": "CEx"}  # mode of `calibrant harden` -> suffix of the paper's settings
_DISCLOSED = {"Ordered": "Ord", "Hidden-order": "Hid"}


@dataclass(frozen=True)
class PoolFacts:
    """Facts of the pools of a report, items by pool digest and id.

    paths: files of the pools; pools: digest -> pool; latents: item -> id of its latent SCM, where the file states it
    sources: Alternative-SCM item with a known alternative -> models whose answers held this alternative
    kill_coverage: item -> share of variables for which generation ruled out a shortcut
    """

    pools: Mapping[str, Pool] = field(default_factory=dict)
    paths: Sequence[Path] = ()
    latents: Mapping[Item, str] = field(default_factory=dict)
    sources: Mapping[Item, frozenset[str]] = field(default_factory=dict)
    kill_coverage: Mapping[Item, float] = field(default_factory=dict)

    def setting(self, digest: str, setting: str) -> str:
        """Return the setting of a pool's rows; a hardened pool has the suffix of its level, as in the paper."""
        pool = self.pools.get(digest)
        mode = level_of(pool) if pool is not None else None
        return f"{_DISCLOSED[setting]}-{mode}" if mode and setting in _DISCLOSED else setting

    def relabel(self, answers: Sequence[Answer]) -> Iterable[Answer]:
        """Return the answers, with the setting of the level for those to hardened pools."""
        if not any(level_of(pool) for pool in self.pools.values()):
            return answers
        return (
            (context._replace(setting=self.setting(context.pool_digest, context.setting)), score)
            for context, score in answers
        )


def level_of(pool: Pool) -> str | None:
    """Return the suffix of the support-audit level that a pool was hardened to; None for others."""
    hardened = pool.metadata.get("hardened")
    return LEVELS.get(str(hardened.get("mode"))) if isinstance(hardened, dict) else None


def read_pool_facts(paths: Sequence[Path]) -> PoolFacts:
    """Read the facts of the ReplaySCM pools among these files; ignore other files."""
    pools: dict[str, Pool] = {}
    latents: dict[Item, str] = {}
    sources: dict[Item, frozenset[str]] = {}
    kill_coverage: dict[Item, float] = {}
    replayscm_paths = [path for path in paths if benchmark_of(path).name == BENCHMARK]
    for path in replayscm_paths:
        digest = file_digest(path)
        pools[digest] = read_pool(path, keep_results=False)
        for problem in pools[digest].problems:
            item, labels = (digest, problem.id), problem.sealed.labels
            if "latent" in labels:
                latents[item] = labels["latent"]
            if "kill_coverage" in labels:
                kill_coverage[item] = float(labels["kill_coverage"])
            if "alternative_sources" in labels:
                sources[item] = frozenset(json.loads(labels["alternative_sources"]))
            elif "known_answer" in labels:  # sampled from the version space, so it is from no model
                sources[item] = frozenset()
    return PoolFacts(pools, replayscm_paths, latents, sources, kill_coverage)


# --- Table F.2: what each level of the support-audit ladder adds, counted in the pools themselves ---------------------
_COLUMNS = {"original": "Original", "extra_worlds": "Extra Worlds", "counterexample_audit": "CEx"}
_COLUMN_OF_LEVEL = {None: "original", "Ext": "extra_worlds", "CEx": "counterexample_audit"}


def construction_table(pools: Mapping[str, Pool], *, with_paper: bool) -> Table | None:
    """Return Table F.2 over the latent SCMs that all levels share; None with one level or no common SCM."""
    by_level: dict[str, dict[str, Problem]] = {}
    for digest, pool in pools.items():
        official = BY_DIGEST.get(digest)
        suffix = level_of(pool) if official is None else official.setting.partition("-")[2]
        level = _COLUMN_OF_LEVEL.get(suffix if suffix in ("Ext", "CEx") else None)
        for problem in pool.problems:
            if level and problem.sealed.gold is not None and problem.task.reference is None:
                by_level.setdefault(level, {}).setdefault(_level_free_key(problem), problem)
    if len(by_level) < 2:
        return None
    shared = sorted(set.intersection(*(set(problems) for problems in by_level.values())))
    if not shared:
        return None
    levels = {level: [problems[key] for key in shared] for level, problems in by_level.items()}
    lines = [*_statistic_lines(levels, len(shared))]
    printed = printed_rows("F.2", [*_COLUMNS], ("statistic", "source")) if with_paper else []
    rows = [TableRow((name, "ours"), tuple(cells.get(level, NOTHING) for level in _COLUMNS)) for name, cells in lines]
    rows += [TableRow((row.labels[0], "paper"), row.cells, Source.PAPER) for row in printed]
    labels = (Heading("statistic", "Statistic"), Heading("source", "Source"))
    headings = tuple(Heading(key, text) for key, text in _COLUMNS.items())
    caption = (
        f"Counted in the pools, over {len(shared)} problems that every level has. Coverage: patterns of neighbours in a"
        " window of predecessors that two training worlds show, of all. The paper names no subsets; of the readings"
        " tried this one meets its figures (docs/findings.md). Every subset: patterns of any subset that a world shows."
    )
    return Table("F.2", "What the support-audit levels add", caption, labels, headings, tuple(rows))


def _level_free_key(problem: Problem) -> str:
    """Return the key that all levels of a problem share: disclosure and latent SCM."""
    latent = problem.sealed.labels.get("latent") or latent_of(problem.id)
    return f"{problem.setting} {latent}"


def _statistic_lines(levels: Mapping[str, Sequence[Problem]], num_problems: int) -> list[tuple[str, dict[str, Cell]]]:
    coverages = {level: [support_coverage(problem) for problem in values] for level, values in levels.items()}
    subsets = {level: [pattern_coverage(problem) for problem in values] for level, values in levels.items()}
    worlds = {level: [len(problem.task.training.worlds) for problem in values] for level, values in levels.items()}
    heldout = {level: {problem.task.num_heldout for problem in values} for level, values in levels.items()}
    lines = [
        (
            "mean local predecessor-pattern coverage",
            {level: Cell(f"{fmean(float(c.share) for c in values):.4f}") for level, values in coverages.items()},
        ),
        (
            f"problems with full local coverage, of {num_problems}",
            {level: Cell(str(sum(c.num_seen == c.total for c in values))) for level, values in coverages.items()},
        ),
    ]
    if "original" in levels and "extra_worlds" in levels:
        added = [after - before for before, after in zip(worlds["original"], worlds["extra_worlds"], strict=True)]
        patterns = [
            after.num_seen - before.num_seen
            for before, after in zip(coverages["original"], coverages["extra_worlds"], strict=True)
        ]
        lines.append(
            ("worlds added per problem by Extra Worlds, mean (range)", {"extra_worlds": Cell(_mean_and_range(added))})
        )
        lines.append(("new predecessor patterns per problem, mean", {"extra_worlds": Cell(f"{fmean(patterns):.2f}")}))
    lines.append(
        (
            "final training worlds per problem, mean (range)",
            {level: Cell(_mean_and_range(values)) for level, values in worlds.items() if level != "original"},
        )
    )
    lines.append(
        (
            "held-out worlds per problem",
            {
                level: Cell(", ".join(map(str, sorted(values))))
                for level, values in heldout.items()
                if level != "original"
            },
        )
    )
    lines.append(
        (
            "coverage of every subset, mean",
            {level: Cell(f"{fmean(float(c.share) for c in values):.4f}") for level, values in subsets.items()},
        )
    )
    return lines


def _mean_and_range(numbers: Sequence[int]) -> str:
    return f"{fmean(numbers):.2f} ({min(numbers)}-{max(numbers)})"
