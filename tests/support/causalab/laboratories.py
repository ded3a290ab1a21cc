"""Released suites and vectors of CausaLab, and hypothesis strategies for laboratories."""

from __future__ import annotations

from functools import cache
from typing import Any

from hypothesis import strategies as st

from calibrant.dsl.causalab.configs import Config, read_configs
from calibrant.dsl.causalab.generation import PLANS, generate_items
from calibrant.dsl.causalab.item import LabItem
from tests.support.shared import shared_file, shared_records

SUITES = tuple(sorted(PLANS))
LINEAR = tuple(f"{k}nodes" for k in range(3, 8))


def released_suite(name: str) -> tuple[Config, ...]:
    """Return the configs of a released file; skips the test where the shared data are not."""
    shared_file("data", part="causalab")
    return _released(name)


@cache
def _released(name: str) -> tuple[Config, ...]:
    return read_configs(shared_file(f"data/{name}.jsonl", part="causalab"))


def vectors() -> list[dict[str, Any]]:
    return list(shared_records("conformance.jsonl", part="causalab"))


def made_item(suite: str, seed: int = 0) -> LabItem:
    """Return the first generated item of a suite."""
    (item,) = generate_items(PLANS[suite], seed, 1)
    return item


def items(suites: tuple[str, ...] = SUITES) -> st.SearchStrategy[LabItem]:
    return st.builds(made_item, st.sampled_from(suites), st.integers(0, 10**6))
