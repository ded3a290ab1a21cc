"""Facts that pool files state about their items, for tables: latent SCM, level, sources, coverage."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from calibrant.bench.core.metrics import Item
from calibrant.bench.core.registry import benchmark_of
from calibrant.bench.report.rows import Answer
from calibrant.dsl.records import file_digest
from calibrant.dsl.replayscm.item import BENCHMARK, Pool
from calibrant.dsl.replayscm.pools.files import read_pool

LEVELS = {"extra-worlds": "Ext", "cex": "CEx"}  # mode of `calibrant harden` -> suffix of the paper's settings
_DISCLOSED = {"Ordered": "Ord", "Hidden-order": "Hid"}


@dataclass(frozen=True)
class PoolFacts:
    """Facts of the pools of a report, items by pool digest and id.

    paths: files of the pools; pools: by digest; latents: id of the latent SCM, where the file states it
    sources: models whose answers held the known alternative of an Alternative-SCM item; absent for items without one
    kill_coverage: share of variables with a shortcut that generation ruled out
    """

    pools: Mapping[str, Pool] = field(default_factory=dict)
    paths: Sequence[Path] = ()
    latents: Mapping[Item, str] = field(default_factory=dict)
    sources: Mapping[Item, frozenset[str]] = field(default_factory=dict)
    kill_coverage: Mapping[Item, float] = field(default_factory=dict)

    def setting(self, digest: str, setting: str) -> str:
        """Return the setting of a pool's rows: a hardened pool's is that of its level, as in the paper."""
        pool = self.pools.get(digest)
        mode = level_of(pool) if pool is not None else None
        return f"{_DISCLOSED[setting]}-{mode}" if mode and setting in _DISCLOSED else setting

    def relabelled(self, answers: Sequence[Answer]) -> Iterable[Answer]:
        """Return the answers, those to hardened pools under the setting of their level."""
        if not any(level_of(pool) for pool in self.pools.values()):
            return answers
        return (
            (context._replace(setting=self.setting(context.pool_digest, context.setting)), score)
            for context, score in answers
        )


def level_of(pool: Pool) -> str | None:
    """Return the level of the support-audit ladder that a pool was hardened to; None for others."""
    hardened = pool.metadata.get("hardened")
    return LEVELS.get(str(hardened.get("mode"))) if isinstance(hardened, dict) else None


def pool_facts(paths: Sequence[Path]) -> PoolFacts:
    """Read the pools of this benchmark among these files; those of others are passed over."""
    pools: dict[str, Pool] = {}
    latents: dict[Item, str] = {}
    sources: dict[Item, frozenset[str]] = {}
    kills: dict[Item, float] = {}
    own_paths = [path for path in paths if benchmark_of(path).name == BENCHMARK]
    for path in own_paths:
        digest = file_digest(path)
        pools[digest] = read_pool(path, keep_results=False)
        for problem in pools[digest].problems:
            item, labels = (digest, problem.id), problem.sealed.labels
            if "latent" in labels:
                latents[item] = labels["latent"]
            if "kill_coverage" in labels:
                kills[item] = float(labels["kill_coverage"])
            if "alternative_sources" in labels:
                sources[item] = frozenset(json.loads(labels["alternative_sources"]))
            elif "known_answer" in labels:  # drawn from the version space: no model's
                sources[item] = frozenset()
    return PoolFacts(pools, own_paths, latents, sources, kills)
