"""Latent SCMs that pool files state, by instance."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from calibrant.bench.core.registry import benchmark_of
from calibrant.bench.core.samples import Item
from calibrant.dsl.pool_text import file_digest
from calibrant.dsl.replayscm.pools.files import read_pool
from calibrant.dsl.replayscm.problem import BENCHMARK


def latent_ids(pools: Sequence[Path]) -> dict[Item, str]:
    """Return the id of the latent SCM of each (pool digest, instance), as pool files state it.

    Pools of other benchmarks are passed over.
    """
    latents: dict[Item, str] = {}
    for path in pools:
        if benchmark_of(path).name != BENCHMARK:
            continue
        digest = file_digest(path)
        for problem in read_pool(path, keep_results=False).problems:
            if "latent" in problem.sealed.labels:
                latents[digest, problem.id] = problem.sealed.labels["latent"]
    return latents
