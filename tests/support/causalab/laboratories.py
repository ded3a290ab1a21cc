"""Released suites and vectors of CausaLab, and hypothesis strategies for laboratories."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

from hypothesis import strategies as st

from calibrant.dsl.causalab.configs import Config, read_configs
from calibrant.dsl.causalab.generation import PLANS, generate_items
from calibrant.dsl.causalab.item import LabItem, Name, Terms, lab_item
from calibrant.dsl.causalab.mechanism import FREQUENCY, Mechanism
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


def item_with_base(base: float, suite: str = "4nodes", seed: int = 0, num_records: int | None = None) -> LabItem:
    """Return a generated item whose frequency has another base; everything shown follows from it."""
    item = made_item(suite, seed)
    equations = item.sealed.mechanism.equations
    changed = Mechanism({**equations, FREQUENCY: replace(equations[FREQUENCY], base=base)})
    terms = Terms(item.task.family, item.task.allowance, item.task.freq_parent, item.task.weights, item.task.tries)
    bases = replace(item.sealed.bases, records=item.sealed.bases.records[:num_records])
    return lab_item(Name(item.id, item.suite), terms, changed, bases, item.sealed.noise)


def items(suites: tuple[str, ...] = SUITES) -> st.SearchStrategy[LabItem]:
    return st.builds(made_item, st.sampled_from(suites), st.integers(0, 10**6))
