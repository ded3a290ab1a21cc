"""Pages of the reasons of many items, made by several processes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from markupsafe import Markup

from calibrant.bench.core.registry import benchmark
from calibrant.bench.pages.capabilities import EXPLANATIONS
from calibrant.bench.pages.why.index import MAX_EMBEDDED
from calibrant.bench.runs.audits import explain_item
from calibrant.bench.runs.executors.opening import as_completed
from calibrant.bench.runs.jobs import Execution, Failure, Jobs


def page_bodies(name: str, items: Sequence[Any], places: Iterable[int], execution: Execution) -> Mapping[int, Markup]:
    """Return the contents of the pages of the first MAX_EMBEDDED of these items, by their place in the pool.

    name: of the benchmark; items and places: of the same length. Items without a reason have none.
    """
    chosen = dict(zip(places, range(MAX_EMBEDDED), strict=False))
    jobs = Jobs(chosen, lambda place: (place, items[chosen[place]]))
    bodies = dict(as_completed(partial(_body, name), jobs, execution))
    return {place: body for place, body in sorted(bodies.items()) if body and not isinstance(body, Failure)}


def _body(name: str, job: tuple[int, Any]) -> Markup:
    place, item = job
    why = explain_item(benchmark(name), item)
    return Markup("") if isinstance(why, str) else benchmark(name).require(EXPLANATIONS).body(why, f"i{place}")
