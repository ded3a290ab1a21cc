"""Programs that ask for far more than they may have; run as a module it loads each of them under limits.

    python -m tests.support.causim.bombs [--work STEPS] [NAME ...]

Prints one JSON object a line: the program, what became of it, and its seconds on the processor.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from unittest import mock

from calibrant.dsl.causim.bundle import load_source
from calibrant.dsl.causim.language import execution_limits
from calibrant.dsl.causim.model import ModelError

MAX_BYTES = 1 << 30
WHOLE = ("wide tables",)  # has to reach the limit on tables, which it does after most of its steps
HEADER = "import random\n"


def module(sampler: str, mechanism: str) -> str:
    """Return a program of one node."""
    return (
        f"{HEADER}def U_A():\n{sampler}\ndef f_A(u):\n{mechanism}\n"
        "def run_once(seed=None):\n    u = U_A()\n    a = f_A(u)\n    return {'A': a}\n"
    )


def indented(body: str) -> str:
    return "\n".join("    " + line for line in body.split("\n"))


def mechanism(body: str) -> str:
    return module("    return random.choice([0, 1])", indented(body))


def sampler(body: str) -> str:
    return module(indented(body), "    return u")


def chain(nodes: int, noise: str, first: str, step: str) -> str:
    """Return a chain of nodes with alike samplers and mechanisms."""
    parts, driver, outputs = [HEADER], ["def run_once(seed=None):"], []
    for k in range(nodes):
        given, body = ("u", first) if k == 0 else ("p, u", step)
        parts.append(f"def U_N{k}():\n{indented(noise)}\ndef f_N{k}({given}):\n{indented(body)}")
        before = "" if k == 0 else f"n{k - 1}, "
        driver += [f"    u{k} = U_N{k}()", f"    n{k} = f_N{k}({before}u{k})"]
        outputs.append(f"'N{k}': n{k}")
    return "\n".join([*parts, *driver, f"    return {{{', '.join(outputs)}}}"]) + "\n"


def wide(parents: int, children: int, noise: str, child: str) -> str:
    """Children that all have the same parents."""
    parts, driver, outputs = [HEADER], ["def run_once(seed=None):"], []
    for k in range(parents):
        parts.append(f"def U_P{k}():\n{indented(noise)}\ndef f_P{k}(u):\n    return u")
        driver += [f"    up{k} = U_P{k}()", f"    p{k} = f_P{k}(up{k})"]
        outputs.append(f"'P{k}': p{k}")
    names = ", ".join(f"p{k}" for k in range(parents))
    for k in range(children):
        parts.append(f"def U_C{k}():\n    return random.choice([0, 1])\ndef f_C{k}({names}, u):\n{indented(child)}")
        driver += [f"    uc{k} = U_C{k}()", f"    c{k} = f_C{k}({names}, uc{k})"]
        outputs.append(f"'C{k}': c{k}")
    return "\n".join([*parts, *driver, f"    return {{{', '.join(outputs)}}}"]) + "\n"


BOMBS = {
    "float in range": mechanism("for i in range(2000):\n    if 0.5 in range(10**12):\n        return 1\nreturn u"),
    "string in range": mechanism("return 'x' in range(10**12)"),
    "not in range": mechanism("return 'x' not in range(10**12)"),
    "range count": mechanism("return range(10**12).count('x')"),
    "sum range": mechanism("return sum(range(10**12))"),
    "slices list held": mechanism("x = [0] * 10000\ny = []\nfor i in range(4000):\n    y.append(x[:])\nreturn len(y)"),
    "slices nested comp": mechanism("x = [0] * 10000\nreturn len([x[:] for i in range(9000)])"),
    "string slices held": mechanism("x = 'ab' * 5000\nreturn len([x[1:] for i in range(9000)])"),
    "list() held": mechanism("x = [0] * 10000\ny = []\nfor i in range(4000):\n    y.append(list(x))\nreturn len(y)"),
    "concat held": mechanism("x = [0] * 5000\nreturn len([x + x for i in range(9000)])"),
    "times held": mechanism("return len([[0] * 10000 for i in range(9000)])"),
    "string times held": mechanism("return len(['ab' * 5000 for i in range(9000)])"),
    "set copies": mechanism("x = set(range(10000))\nreturn len([x.copy() for i in range(4000)])"),
    "dict copies": mechanism("x = {i: i for i in range(9999)}\nreturn len([dict(x) for i in range(4000)])"),
    "set()": mechanism("x = set(range(10000))\nreturn len([set(x) for i in range(4000)])"),
    "set minus": mechanism("x = set(range(10000))\nreturn len([x - {1} for i in range(4000)])"),
    "upper held": mechanism("x = 'ab' * 5000\nreturn len([x.upper() for i in range(9000)])"),
    "split held": mechanism("x = 'a ' * 5000\nreturn len([x.split() for i in range(3000)])"),
    "fstring held": mechanism("x = 'a' * 9990\nreturn len([f'{x}{i}' for i in range(9000)])"),
    "join held": mechanism("x = ['a'] * 9000\nreturn len([''.join(x) for i in range(5000)])"),
    "tuple slices": mechanism("x = tuple([0] * 9000)\nreturn len([x[1:] for i in range(9000)])"),
    "range list": mechanism("return len([list(range(9000)) for i in range(9000)])"),
    "sorted held": mechanism("return len([sorted(range(9000)) for i in range(9000)])"),
    "nested comp": mechanism("return len([[[k for k in range(99)] for j in range(99)] for i in range(99)])"),
    "wide tables": wide(
        3, 20, "return random.choice(list(range(200)))", "return 0 if p0 == p1 and p1 == p2 and u else 1"
    ),
    "wide tables 2": wide(2, 20, "return random.choice(list(range(3000)))", "return p0 if u else p1"),
    "sampler 65536": sampler("return (random.choice(range(256)), random.choice(range(256)))"),
    "sampler 10000": sampler("return random.choice(range(10000))"),
    "growing domains": chain(8, "return random.choice(list(range(40)))", "return u", "return p * 41 + u"),
    "growing strings": chain(6, "return random.choice(list('abcdefghij'))", "return u", "return p + u"),
    "doubling": chain(20, "return random.choice('ab')", "return u", "return p + u"),
    "coins 3000": sampler("return sum([random.choice([0, 1]) for i in range(3000)])"),
    "sample 100": sampler("return random.sample(range(100), 100)[0]"),
    "thresholds": sampler(
        "r = random.random()\nfor i in range(5000):\n    if r < i / 5000:\n        return i\nreturn -1"
    ),
    "thresholds if": sampler(
        "r = random.random()\n"
        + "\n".join(f"if r < {i / 5000}:\n    return {i}" for i in range(1, 4000))
        + "\nreturn 0"
    ),
    "loop of coins": sampler("n = 0\nfor i in range(200):\n    if random.random() < .5:\n        n += 1\nreturn n"),
    "geometric": sampler(
        "n = 0\nfor i in range(15000):\n    if random.random() < .5:\n        return n\n    n += 1\nreturn n"
    ),
    "weights": sampler("return random.choices(range(9999), weights=[i + 0.123456789 for i in range(9999)])[0]"),
    "many weights": sampler(
        "x = list(range(9999))\nw = [i + 0.123456789 for i in range(9999)]\n"
        "for i in range(1900):\n    y = random.choices(x, weights=w)\nreturn 1"
    ),
    "one option big": sampler(
        "for i in range(9000):\n    y = random.choices(range(9999), k=100, weights=[1] + [0] * 9998)\nreturn 1"
    ),
    "many samplers": chain(300, "return random.choice(range(500))", "return u % 2", "return (p + u) % 2"),
    "many long strings": sampler("return random.choice(range(9000)) and 'x' * 9000 + str(random.choice(range(5)))"),
    "support of long strings": sampler("return 'x' * 9990 + str(random.choice(range(9000)))"),
    "support of long tuples": sampler("return tuple([random.choice(range(9000))] * 9000)"),
    "huge literal": mechanism("return " + "9" * 150000),
    "deep parens": mechanism("return " + "(" * 5000 + "1" + ")" * 5000),
    "deep lists": mechanism("x = []\nfor i in range(9000):\n    x = [x]\nreturn len(x)"),
    "self hold": mechanism("x = []\nx.append(x)\nreturn str(x)"),
    "self hold eq": mechanism("x = []\nx.append(x)\ny = []\ny.append(y)\nreturn x == y"),
    "exp nesting": mechanism("x = [1]\nfor i in range(200):\n    x = [x, x]\nreturn str(x)"),
    "exp tuple": mechanism("x = (1,)\nfor i in range(200):\n    x = (x, x)\nreturn 1"),
    "power": mechanism("return 10 ** 10 ** 10"),
    "mul loop": mechanism("x = 7\nfor i in range(9000):\n    x = x * x\nreturn x"),
    "int of long": mechanism("return int('9' * 9999)"),
    "str count": mechanism("x = 'a' * 9999\nn = 0\nfor i in range(9000):\n    n += x.count('b' * 500)\nreturn n"),
    "str find bad": mechanism(
        "x = 'a' * 9999\ny = 'a' * 5000 + 'b'\nn = 0\nfor i in range(9000):\n    n += x.find(y)\nreturn n"
    ),
    "str in bad": mechanism(
        "x = 'a' * 9999\ny = 'a' * 5000 + 'b' + 'a' * 4000\nn = 0\n"
        "for i in range(9000):\n    if y in x:\n        n += 1\nreturn n"
    ),
    "replace bad": mechanism(
        "x = 'a' * 9999\nn = 0\nfor i in range(9000):\n    n += len(x.replace('a', 'b'))\nreturn n"
    ),
    "list index": mechanism("x = [0] * 9999\nn = 0\nfor i in range(9000):\n    n += x.count(1)\nreturn n"),
    "insert": mechanism("x = [0] * 5000\nfor i in range(4900):\n    x.insert(0, 1)\nreturn len(x)"),
    "in list": mechanism("x = [0] * 9999\nn = 0\nfor i in range(9000):\n    if 1 in x:\n        n += 1\nreturn n"),
    "list eq": mechanism(
        "x = ['a' * 900] * 9\ny = ['a' * 900] * 9\nn = 0\nfor i in range(9000):\n"
        "    if x == y:\n        n += 1\nreturn n"
    ),
    "max of range": mechanism("return max(range(10**12))"),
    "any of range": mechanism("return any(i > 10**11 for i in range(10**12))"),
    "range of range": mechanism("for i in range(10**12):\n    for j in range(10**12):\n        pass\nreturn 1"),
    "range eq": mechanism("return range(10**12) == range(10**12)"),
    "hash collide floats": mechanism("x = {}\nfor i in range(9000):\n    x[i * 1.0] = 1\nreturn len(x)"),
    "sort bad": mechanism("x = [[1] * 2000] * 9\nn = 0\nfor i in range(900):\n    n += len(sorted(x))\nreturn n"),
    "zip": mechanism(
        "n = 0\nfor i in range(900):\n    for a in zip(range(9999), range(9999), range(9999)):\n"
        "        n += 1\n        break\nreturn n"
    ),
    "zip held": mechanism("return len([zip(range(9999), range(9999)) for i in range(5000)])"),
    "reversed held": mechanism("return len([reversed(range(9999)) for i in range(5000)])"),
    "state explosion": wide(
        14,
        1,
        "return random.choice([0, 1, 2])",
        "x = p0\n" + "\n".join(f"x = x * 3 + p{k}" for k in range(1, 14)) + "\nreturn x",
    ),
    "min of sets": mechanism("x = set(range(9999))\nn = 0\nfor i in range(9000):\n    n += max(x)\nreturn n"),
    "dict views": mechanism(
        "x = {i: i for i in range(9999)}\nn = 0\nfor i in range(9000):\n    n += len(x.keys() - {1})\nreturn n"
    ),
    "uniform many": sampler(
        "x = [random.random() for i in range(18)]\nn = 0\nfor r in x:\n    if r < .5:\n        n += 1\nreturn n"
    ),
}


def outcome(source: str) -> str:
    """Return the outcome of a program: refused and why, or loaded."""
    try:
        return f"loaded {len(load_source(source))}"
    except ModelError as error:
        return f"refused: {error}"
    except MemoryError:
        return "out of memory"
    except RecursionError:
        return "out of stack"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--work", type=int, default=execution_limits.MAX_WORK, help="steps that a program may take")
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MAX_BYTES, MAX_BYTES))
    for name in given.names or BOMBS:
        source = BOMBS[name]
        started = time.process_time()
        steps = execution_limits.MAX_WORK if name in WHOLE else given.work
        with mock.patch.object(execution_limits, "MAX_WORK", steps):
            found = outcome(source)
        line = {"name": name, "outcome": found, "steps": steps, "seconds": round(time.process_time() - started, 3)}
        print(json.dumps(line), flush=True)
    print(json.dumps({"peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}))


if __name__ == "__main__":
    main()
