"""Capabilities of benchmarks, and presentations that names do not decide."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import Any

import pytest

from calibrant.bench import protocols, variants
from calibrant.bench.core import capabilities as core
from calibrant.bench.core import sets
from calibrant.bench.core.capabilities import Capability, Drawable, Playable
from calibrant.bench.core.items import ItemFormats
from calibrant.bench.core.metrics import MetricSet
from calibrant.bench.core.registry import NAMES, benchmark, bundled_sample
from calibrant.bench.core.scoring import Scorable
from calibrant.bench.lab.renamings import changer, measure
from calibrant.bench.pages import capabilities as pages
from calibrant.bench.pools import capabilities as pools
from calibrant.bench.protocols import PROTOCOLS, Protocol
from calibrant.bench.report import capabilities as report
from calibrant.bench.report import remaining
from calibrant.bench.report.capabilities import REPORT
from calibrant.bench.report.overview import contract
from calibrant.bench.variants import VARIANTS
from calibrant.dsl.errors import CalibrantError

# --- Capabilities of the registered benchmarks: every key leads to an object, and a refusal names who has it ----------
MODULES = (core, pages, pools, protocols, report, contract, remaining, variants, sets)
KEYS = list(dict.fromkeys(key for module in MODULES for key in vars(module).values() if isinstance(key, Capability)))
REQUIRED = (core.ITEMS, core.SCORING, core.METRICS, core.FUNCTIONS, core.TRAINING, core.SUITES, PROTOCOLS, REPORT)
CLASSES: dict[Capability[Any], type] = {
    core.ITEMS: ItemFormats,
    core.SCORING: Scorable,
    core.METRICS: MetricSet,
    core.PLAY: Playable,
    core.SUITES: Drawable,
}
each = pytest.mark.parametrize("name", NAMES)


@each
def test_every_key_leads_to_an_object_of_its_class(name: str) -> None:
    of = benchmark(name)
    common = {key for key in KEYS if key.place}
    assert common >= set(REQUIRED)
    for key in common | of.provides.keys():
        provider = of.require(key)
        assert provider is of.capability(key)
        assert isinstance(provider, CLASSES.get(key, object)), key


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.subject)
def test_a_benchmark_without_a_capability_is_refused_with_those_that_have_it(key: Capability[Any]) -> None:
    having = [benchmark(name) for name in NAMES if benchmark(name).has(key)]
    assert having, "a key that nothing provides"
    for of in {benchmark(name) for name in NAMES} - {*having}:
        with pytest.raises(CalibrantError) as refusal:
            of.require(key)
        message, _, titles = str(refusal.value).partition("; it supports ")
        assert message == f"{key.subject} does not support {of.title}"
        assert titles.replace(" and ", ", ").split(", ") == [benchmark.title for benchmark in having]


@each
def test_a_benchmark_is_the_same_object_where_it_is_sent(name: str) -> None:
    assert pickle.loads(pickle.dumps(benchmark(name))) is benchmark(name)


def test_listing_benchmarks_loads_none_of_their_languages_and_solvers() -> None:
    program = (
        "import sys; from calibrant.bench.core.registry import benchmarks; benchmarks();"
        "names = ('calibrant.solvers.', 'calibrant.audits.', 'numba');"
        "print([name for name in sys.modules if name.startswith(names)])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == ("[]\n", "")


# --- Rows under other names and orders: a few rows of each benchmark, on the first items of its bundled pool ----------
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
