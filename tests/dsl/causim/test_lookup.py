"""Programs with tables have the model that they were written from."""

from __future__ import annotations

import json

from calibrant.bench.core.registry import bundled_sample
from calibrant.dsl.causim.bundle import load_bundle, load_source, table_bundle_of
from calibrant.dsl.causim.networks import nihss
from calibrant.dsl.causim.prompt import same_model

MIXED = """import random


def U_A():
    return random.choice(['x', True, 1])


def U_B():
    return random.choices([1.0, 2], weights=[1, 3])[0]


def f_A(u):
    return 'true' if str([u]) == '[True]' else 1 if u == 'x' else 1.0


def f_B(a, u):
    return str([a, u])


def run_once(seed=None):
    u_a = U_A()
    a = f_A(u_a)
    u_b = U_B()
    b = f_B(a, u_b)
    return {'A': a, 'B': b}
"""


def test_the_model_comes_back() -> None:
    lines = bundled_sample("causim").read_text(encoding="utf-8").splitlines()[1:]
    for program in [MIXED, *sorted({json.loads(line)["program"] for line in lines})]:
        model = load_source(program)
        bundle = table_bundle_of(model)
        assert bundle is not None
        assert same_model(load_bundle(bundle), model)
        assert sum(definition.body.startswith("table = {") for definition in bundle.structural) == len(model)


def test_a_table_of_many_cells_is_not_written() -> None:
    model = nihss(6)  # the sum of 6 items
    assert table_bundle_of(model) is None
