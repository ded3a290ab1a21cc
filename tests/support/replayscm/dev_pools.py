"""The shared development pools, read once per process."""

from __future__ import annotations

from functools import cache

from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.replayscm.pools.files import read_pool
from tests.support.shared import shared_file

POOLS = ("ordered", "block", "hidden_order", "hidden_roots")
T1_POOLS = tuple(f"t1_{name}" for name in POOLS)


def dev_problems(name: str) -> tuple[Problem, ...]:
    return shared_problems(f"pool_dev_{name}.runtime.yaml")


@cache
def shared_problems(file: str) -> tuple[Problem, ...]:
    """Of any shared pool, without model results; to parse one takes a second."""
    problems = tuple(read_pool(shared_file(file), keep_results=False).problems)
    assert problems, f"{file} has no problems: nothing would be compared"
    return problems
