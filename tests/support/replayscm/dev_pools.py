"""The shared development pools, read once per process."""

from __future__ import annotations

from functools import cache

from dsl.replayscm.pools.files import read_pool
from dsl.replayscm.problem import Problem
from tests.support.shared import shared_file

POOLS = ("ordered", "block", "hidden_order", "hidden_roots")
T1_POOLS = tuple(f"t1_{name}" for name in POOLS)


@cache
def dev_problems(name: str) -> tuple[Problem, ...]:
    return tuple(read_pool(shared_file(f"pool_dev_{name}.runtime.yaml"), keep_results=False).problems)
