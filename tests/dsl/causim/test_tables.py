"""Tables of mechanisms, augmented assignments and the layout of modules, against Python itself."""

from __future__ import annotations

import ast
import json
import random
import time
from itertools import product
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from calibrant.bench.core.registry import bundled_sample
from calibrant.dsl.causim.bundle import load_bundle, load_source, module_text, table_bundle_of
from calibrant.dsl.causim.generated_functions import TOPOLOGIES
from calibrant.dsl.causim.generation import grow
from calibrant.dsl.causim.language import execution_limits as work
from calibrant.dsl.causim.language.driver import statements
from calibrant.dsl.causim.language.randomness import Unsupported
from calibrant.dsl.causim.model import symbol, value_of
from calibrant.dsl.causim.networks import nihss
from calibrant.dsl.causim.prompt import same_model
from tests.dsl.causim.test_language import MODULE, returned
from tests.support.effort import examples

# --- Tables of mechanisms against Python itself, which runs our own generated programs; and what they may cost --------


def native(source: str) -> dict[str, Any]:
    """Python's own functions of a module that we wrote ourselves."""
    names: dict[str, Any] = {}
    exec(compile(source, "<ours>", "exec"), names)
    return names


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_generated_programs_have_the_tables_and_supports_that_python_gives(topology: str) -> None:
    for number in range(2):
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


# --- Augmented assignments and the layout of modules against Python itself, on programs that are generated here -------
OPERATORS = ("+=", "-=", "*=", "//=", "%=", "|=", "&=", "^=")
NAMES = ("a", "b", "c")
OPERANDS = (
    "0", "1", "2", "-1", "3", "True", "1.5", "'x'", "'xy'", "''", "(1, 2)", "()", "[]", "[1]", "[1, 2, 3]", "[[1], 2]",
    "{1}", "{1, 2, 3}", "{2, 5}", "{1: 2}", "{'k': {1, 2}}", "{'k': [1], 0: 3}", "range(3)", "[{1, 2}, {2}]",
    "zip([1], [2])",
)  # fmt: skip
INDEXES = ("0", "1", "-1", "'k'", "a[0]", "len(b)", "0 + 0")
READS = (*NAMES, "a[0]", "b['k']", "c[-1]", "a.copy()", "[a, b]", "{'k': a, 0: b}", "b[0][0]", "a.pop(0)", "b.pop()")


def in_python(body: str) -> Any:
    """Return the value of a body in Python, or the exception that it raises."""
    names: dict[str, Any] = {}
    text = "def f():\n" + "\n".join("    " + line for line in body.split("\n"))
    exec(compile(text, "<test>", "exec"), names)  # a text of our own: Python is the oracle
    try:
        return names["f"]()
    except Exception as error:
        return error


def in_the_language(body: str) -> Any:
    try:
        return value_of(returned(body))
    except Unsupported as refusal:
        return refusal


@st.composite
def bodies(draw: st.DrawFn) -> str:
    """Three names, aliases among them, some augmented assignments to names and items, and all of it as a text."""
    values = st.sampled_from(OPERANDS)
    lines = [f"{name} = {draw(st.one_of(values, st.sampled_from(NAMES[:k] or ['1'])))}" for k, name in enumerate(NAMES)]
    lines.append("r = ''")
    for _ in range(draw(st.integers(1, 4))):
        target = draw(st.sampled_from(NAMES))
        if draw(st.booleans()):
            target += f"[{draw(st.sampled_from(INDEXES))}]"
        operator = draw(st.sampled_from(OPERATORS[:3] * 3 + OPERATORS))
        line = f"{target} {operator} {draw(st.one_of(values, st.sampled_from(READS)))}"
        lines.append(draw(st.sampled_from([line, line, f"for i in range(2):\n    {line}"])))
        if draw(st.integers(0, 4)) == 0:
            lines.append(f"{draw(st.sampled_from(NAMES))} = {draw(st.sampled_from(READS))}")
    return "\n".join([*lines, "r = str(a) + str(b) + str(c)", "return r"])


@settings(max_examples=examples(600), deadline=None)
@given(bodies())
@example("a = 1\nb = {1}\nc = 0\na += b.pop()\nr = str(a) + str(b) + str(c)\nreturn r")
@example("a = 1\nb = 'x'\nb %= [a, b]\nreturn b")
def test_augmented_assignments_do_what_python_does_or_are_refused(body: str) -> None:
    expected, actual = in_python(body), in_the_language(body)
    if not isinstance(actual, Unsupported):
        assert actual == expected
    elif isinstance(expected, str) and " at 0x" not in expected:
        holds_itself = "[...]" in expected or "{...}" in expected  # as `a += [a]` does
        # what Python itself leaves open, and formatting, which raises with most operands but not with a list
        reasons = ("the order of a set", "set has no listed method 'pop'", "% on a string")
        refused = any(operator in body for operator in ("|=", "&=", "^=")) or any(w in str(actual) for w in reasons)
        assert refused or (holds_itself and "nest too deeply" in str(actual))


# Of each line the result in Python, written down; None for what is refused.
@pytest.mark.parametrize(
    ("body", "value"),
    [
        ("s = {1, 2, 3}\nt = s\ns -= {1}\nreturn len(t)", 2),
        ("s = [{1, 2}]\nt = s[0]\ns[0] -= {1}\nreturn len(t)", 1),
        ("d = {'k': {1, 2}}\nt = d['k']\nd['k'] -= {1}\nreturn len(t)", 1),
        ("d = {'k': {1, 2}}\nd['k'] -= d['k']\nreturn len(d['k'])", 0),
        ("s = {1}\ns -= [1]\nreturn len(s)", None),
        ("x = [1]\ny = x\nx *= 2\nreturn len(y)", 2),
        ("x = [[1], 2]\ny = x[0]\nx[0] += (3,)\nreturn len(y)", 2),
        ("x = [1, 2]\nx += x\nreturn len(x)", 4),
        ("x = [1, 2]\nx += (v for v in x if len(x) < 5)\nreturn len(x)", None),
        ("x = [1, 2]\nx.extend(v for v in x if len(x) < 5)\nreturn len(x)", 5),
        ("n = [0, 1]\nx = [10, 20]\nx[n[0]] += n.pop(0)\nreturn str(x)", "[10, 20]"),
        ("n = [1, 0]\nx = [10, 20]\nx[n.pop(0)] += 5\nreturn str(x) + str(n)", "[10, 25][0]"),
        ("t = (1,)\nu = t\nt += (2,)\nreturn len(u)", 1),
        ("t = ([1],)\nt[0] += [2]\nreturn 1", None),
        ("s = 'a'\nu = s\ns *= 3\nreturn u + s", "aaaa"),
        ("d = {1: 2}\nd |= {3: 4}\nreturn len(d)", None),
        ("s = {1}\ns ^= {3}\nreturn len(s)", None),
        ("x = [1, 2, 3]\nx[0:2] += [1]\nreturn len(x)", None),
        ("x = {1: 2}\nx += {3: 4}\nreturn 1", None),
    ],
)
def test_what_is_shared_changes_for_all_names(body: str, value: object) -> None:
    if value is None:
        with pytest.raises(Unsupported):
            returned(body)
    else:
        assert in_python(body) == value
        assert in_the_language(body) == value


# --- layout -----------------------------------------------------------------------------------------------------------

EMPTY = (
    "#!/usr/bin/env python3", "# -*- coding: latin-1 -*-", "# note", "", "   ", "\t", "\f", "\f# note", "  # note", "#",
    " \f ", "# 'open", '# """',
)  # fmt: skip
SOURCE = MODULE.format(body="    x = '''\n\f#\n'''\n    return random.choice([1,\n2])").strip("\n")


@settings(max_examples=examples(300), deadline=None)
@given(
    st.lists(st.sampled_from(EMPTY), max_size=4),
    st.lists(st.tuples(st.integers(0, 14), st.sampled_from(EMPTY)), max_size=6),
    st.sets(st.sampled_from([0, 1, 7, 9]), max_size=3),
)
def test_comments_blank_lines_and_form_feeds_are_where_python_has_them(
    first: list[str], among: list[tuple[int, str]], feeds: set[int]
) -> None:
    """Anywhere between lines; form feeds before lines without indentation; inside a string they are what they are."""
    lines = [("\f" if index in feeds else "") + line for index, line in enumerate(SOURCE.split("\n"))]
    for place, empty in sorted(among, reverse=True):
        lines.insert(place, empty)
    source = "\n".join([*first, *lines])
    assert [ast.dump(node) for node in statements(source)] == [ast.dump(node) for node in ast.parse(source).body]


@pytest.mark.parametrize(
    "source", [" x = 1", "\f x = 1", "# note\n x = 1", "x = 1\n y = 2", "x = 1\n\f y = 2", "\fdef f(:"]
)
def test_an_indentation_that_python_refuses_is_refused_too(source: str) -> None:
    with pytest.raises(SyntaxError):
        ast.parse(source)
    with pytest.raises(Unsupported, match=r"does not parse, line \d+$"):
        statements(source)


# --- Programs with tables have the model that they were written from -------------------------------------------------


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
