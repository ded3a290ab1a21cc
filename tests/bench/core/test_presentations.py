"""Rows under other names and orders: a few rows of each benchmark, on the first items of its bundled pool."""

from __future__ import annotations

import pytest

from calibrant.bench.core.registry import benchmark, bundled_sample
from calibrant.bench.lab.renamings import changer, measure
from calibrant.bench.protocols.base import PROTOCOLS, Protocol
from calibrant.bench.variants.contract import VARIANTS

# a row that ties decide, one that draws and one that is exact; python -m calibrant.bench.lab.renamings has them all
ROWS = {
    "blickets": ("static", "random", "copy"),
    "causalab": ("exact", "total-effects", "random"),
    "causim": ("exact", "truncated", "random_symbols"),
    "logic": ("exact", "vote", "greedy"),
}


def _row(name: str, row: str) -> Protocol:
    return next(protocol() for protocol in benchmark(name).require(PROTOCOLS) if protocol.name == row)


@pytest.mark.parametrize(("name", "row"), [(name, row) for name, rows in ROWS.items() for row in rows])
def test_rates_and_answers_do_not_move(name: str, row: str) -> None:
    of = benchmark(name)
    items = of.items.read_pool(bundled_sample(name)).items[:3]
    result = measure(of, items, _row(name, row), times=2, seed=5)
    assert (result.moved, result.num_different, result.num_crashed) == ({}, 0, 0)


@pytest.mark.parametrize(
    ("name", "row"),
    [("blickets", "static"), ("causalab", "total-effects"), ("causim", "graph_only"), ("logic", "random")],
)
def test_without_the_canonical_form_they_move(name: str, row: str) -> None:
    protocol = _row(name, row)
    raw = type("Raw", (type(protocol),), {"reads_canonical": False}, frozen=True)()
    of = benchmark(name)
    items = of.items.read_pool(bundled_sample(name)).items[:6]
    result = measure(of, items, raw, times=3, seed=5)
    assert result.moved or result.num_different


COPIES = {
    "blickets": "static",
    "causalab": "total-effects",
    "causim": "truncated",
    "logic": "greedy",
    "replayscm": "exact-mbde+dsl",
}
SHOWN_READINGS = {"conjunctive distinct_configurations"}  # a first reading of the empty detector counts among them


@pytest.mark.parametrize("name", COPIES)
def test_copies_of_every_kind_have_the_mapped_answers(name: str) -> None:
    of = benchmark(name)
    items = of.items.read_pool(bundled_sample("hidden_order" if name == "replayscm" else name)).items[:3]
    for kind in of.require(VARIANTS).kinds:
        result = measure(of, items, _row(name, COPIES[name]), times=1, seed=5, change=changer(of, kind))
        moved = result.moved.keys() - (SHOWN_READINGS if (name, kind) == ("blickets", "equivalent") else set())
        assert (moved, result.num_different, result.num_crashed) == (set(), 0, 0), kind
