"""Tables of mechanisms against Python itself, which runs our own generated programs; and what they may cost."""

from __future__ import annotations

import random
import time
from itertools import product
from typing import Any

import pytest

from calibrant.dsl.causim.bundle import load_source, module_text
from calibrant.dsl.causim.generation import grow
from calibrant.dsl.causim.language import execution_limits as work
from calibrant.dsl.causim.language.driver import parse
from calibrant.dsl.causim.language.execution_limits import StepBudget
from calibrant.dsl.causim.language.randomness import Unsupported
from calibrant.dsl.causim.language.tables import table
from calibrant.dsl.causim.model import run, symbol, value_of
from calibrant.dsl.causim.topology import TOPOLOGIES

HAND = """
def f_A(p, q, u):
    seen = []
    for x in (p, u):
        seen.append(x)
    other = seen
    other += [q]
    if len(seen) == 3 and p == 'a':
        return str(seen)
    d = {'k': seen}
    d['k'].append(q)
    return len(other)
def f_B(p, q, u):
    table = {('a', 1): 'x'}
    if u:
        table[(p, q)] = 'y'
    keys = sorted(str(k) for k in table)
    n = 0
    for k in keys:
        n += len(k)
    return table.get((p, 2), n)
def f_C(p, q, u):
    t = (p, q)
    s = [c for c in str(p)]
    r = reversed(s)
    first = [x for x in r]
    again = [x for x in r]
    if t == ('b', 2):
        return 'pair'
    return ''.join(first) + str(len(again))
def f_D(p, q, u):
    c = 0
    if p == 'a':
        c += 1
    if q in (1, True):
        c += 1
    if u:
        c += 2
    if c > 2:
        return 'high'
    if c == 0:
        return
    return c
def f_E(p, q, u):
    p = 'same'
    x = None
    if q == 2:
        x = [1]
    if u and x is not None:
        x.append(p)
        return len(x)
    return x is None
"""
VALUES: list[list[Any]] = [["a", "b"], [1, 2, True, None], [0, 1.5, ""]]


def native(source: str) -> dict[str, Any]:
    """Python's own functions of a module that we wrote ourselves."""
    names: dict[str, Any] = {}
    exec(compile(source, "<ours>", "exec"), names)
    return names


@pytest.mark.parametrize("name", ["f_A", "f_B", "f_C", "f_D", "f_E"])
def test_hand_written_mechanisms_have_the_tables_that_python_gives(name: str) -> None:
    header = "import random\ndef U_X():\n    return 1\n"
    lone = HAND[HAND.index(f"def {name}") :].split("\ndef ")[0]
    driver = "\ndef run_once():\n    u = U_X()\n    v = U_Y()\n    w = U_Z()\n"
    source = f"{header}def U_Y():\n    return 1\ndef U_Z():\n    return 1\n{lone}{driver}"
    source += f"    x = {name}(u, v, w)\n    return {{'{name[2:]}': x}}\n"
    called, python = parse(source).functions[name], native(HAND)[name]
    codes, symbols = table(called, VALUES, symbol, StepBudget())
    for row in product(*(range(len(own)) for own in VALUES)):
        arguments = [own[k] for k, own in zip(row, VALUES, strict=True)]
        assert symbols[codes[row]] == symbol(python(*arguments)) == symbol(called.call(arguments))


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_generated_programs_have_the_tables_and_supports_that_python_gives(topology: str) -> None:
    for number in range(4):
        version = grow(51, str(number), topology, 7)[-1]
        model, names = version.model, native(module_text(version.bundle))
        for node, local in zip(model.nodes, model.system, strict=True):
            domains = [model.system[parent].domain for parent in local.parents]
            for row in product(*(range(len(own)) for own in (*domains, node.support))):
                given = [own[k] for k, own in zip(row, (*domains, node.support), strict=True)]
                assert local.domain[local.table[row]] == symbol(names[f"f_{node.name}"](*map(value_of, given)))
            random.seed(number)
            drawn = {symbol(names[node.noise]()) for _ in range(600)}
            assert drawn <= set(node.support)
            assert {value for value, weight in zip(node.support, node.weights, strict=True) if weight > 1 / 20} <= drawn


def test_a_run_of_the_driver_is_a_world_of_the_model() -> None:
    version = grow(52, "d", "layered", 7)[-1]
    names, model = native(module_text(version.bundle)), version.model
    for seed in range(30):
        random.seed(seed)
        noise = {node.noise: symbol(names[node.noise]()) for node in model.nodes}
        random.seed(seed)
        outputs = names["run_once"](seed)
        assert run(model, noise, {}) == {name: symbol(value) for name, value in outputs.items()}


def _wide(parents: int, body: str) -> str:
    names = [f"p{k}" for k in range(parents)]
    parts = ["import random"]
    for k in range(parents):
        parts.append(f"def U_P{k}():\n    return random.choice(['a', 'b', 'c'])\ndef f_P{k}(u):\n    return u")
    parts.append("def U_S():\n    return random.choice(['a', 'b', 'c', 'd'])")
    parts.append(f"def f_S({', '.join(names)}, u):\n{body}")
    steps = "".join(f"    u{k} = U_P{k}()\n    p{k} = f_P{k}(u{k})\n" for k in range(parents))
    outputs = ", ".join(f"'P{k}': p{k}" for k in range(parents))
    parts.append(
        f"def run_once():\n{steps}    u = U_S()\n    s = f_S({', '.join(names)}, u)\n    return {{{outputs}, 'S': s}}"
    )
    return "\n".join(parts) + "\n"


def test_a_counter_over_twelve_parents_is_tabulated_at_once() -> None:
    body = (
        "    c = 0\n" + "".join(f"    if p{k} == 'a':\n        c += 1\n" for k in range(12)) + "    return c + len(u)"
    )
    started = time.process_time()
    model = load_source(_wide(12, body))
    assert model.system[-1].table.size == 3**12 * 4
    assert time.process_time() - started < 3
    assert [value_of(value) for value in model.system[-1].domain] == [1, 10, 11, 12, 13, 2, 3, 4, 5, 6, 7, 8, 9]
    corner = (0,) * 12
    assert value_of(model.system[-1].domain[model.system[-1].table[(*corner, 2)]]) == 13


def test_what_costs_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "MAX_WORK", 300_000)
    every = "    t = " + " + ".join(f"p{k}" for k in range(12)) + "\n    s = 0\n    for c in t:\n"
    every += "        for d in t:\n            s += len(c + d)\n    return s"
    with pytest.raises(Unsupported, match="more than 300000 steps"):
        load_source(_wide(12, every))
    with pytest.raises(Unsupported, match="combinations"):
        load_source(_wide(16, "    return u"))
    slow = "import random\ndef U_A():\n    s = 0\n    for i in range(3000):\n        s += 1\n"
    slow += "    return random.randint(1, 9000) + random.randint(1, 9000)\ndef f_A(u):\n    return u\n"
    slow += "def run_once():\n    u = U_A()\n    a = f_A(u)\n    return {'A': a}\n"
    with pytest.raises(Unsupported, match="steps"):
        load_source(slow)
