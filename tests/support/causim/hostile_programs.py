"""A campaign of damaged and hostile programs and replies; run as a module it reports what the interpreter touched.

    python -m tests.support.causim.hostile_programs COUNT SEED

An audit hook (PEP 578) sees every import, file, socket, process and execution of code from the moment it is installed;
only parsing is let through. Prints one JSON object.
"""

from __future__ import annotations

import json
import random
import sys
import time
from typing import Any

from calibrant.dsl.causim.bundle import load_source, module_text
from calibrant.dsl.causim.generation import grow
from calibrant.dsl.causim.language.randomness import Unsupported
from calibrant.dsl.causim.model import Model, ModelError, assignment_text
from calibrant.dsl.causim.prompt import read_prose
from calibrant.dsl.causim.score import extract

STATEMENTS = """
import os
import os; os.system('true')
from os import system
__import__('os').system('true')
open('touched', 'w').write('x')
exec('import os')
eval('1')
while True: pass
with open('touched') as f: pass
try: pass
except: pass
raise SystemExit
global x
nonlocal x
del random
class A: pass
async def f(): pass
lambda: 0
yield 1
return __builtins__
return random.__dict__
return random.os.getpid()
return random.Random().random()
return random.choice.__globals__['os']
return ().__class__.__bases__[0].__subclasses__()
return 'a'.__class__.__mro__
return f'{().__class__}'
return f'{1:>{10 ** 9}}'
return '{0.__class__}'.format(1)
return '%1000000000s' % 'a'
return 'a' * 10 ** 9
return [0] * 10 ** 9
return list(range(10 ** 9))
return sum(range(10 ** 12))
return 10 ** 10 ** 10
return 2 ** 99
return 1 << 99
return ~1
return [*range(3)]
return {**{}}
return (x := 1)
return max(range(10 ** 9))
return sorted([0] * 9999) * 9
return str([[[[]]]] * 9999)
return 'a'.join('b' * 9999 for i in range(9999))
return ('a' * 9999).replace('a', 'b' * 9999)
return [[i for i in range(999)] for j in range(999)]
return any(True for i in range(10 ** 9))
return {i: i for i in range(10 ** 6)}
return print('x')
return input()
return vars()
return globals()['random']
return locals()
return getattr(random, 'os')
return type('A', (), {})
return help()
return breakpoint()
return compile('1', 'x', 'exec')
return memoryview(b'')
return bytes(10 ** 9)
return open
return id(1)
return hash('a')
return dir()
return float('nan')
return float('inf')
return int('9' * 5000)
return round(1, -10 ** 9)
return random.random()
return [random.random()]
return str(random.random())
return random.random() ** 2
return random.random() * 2 < 1
return min(random.random(), random.random())
return random.choices([1], k=10 ** 9)
return random.choices([1, 2], weights=[float('nan'), 1])
return random.choices([1, 2], weights=[-1, 2])
return random.sample(range(10 ** 9), 3)
return random.randint(0, 10 ** 12)
return random.randrange(0)
return random.getrandbits(10 ** 9)
return random.seed(1)
return random.shuffle([1])
x = []; x.append(x); return x
x = []; x.append(x); return str(x)
x = []; x.append(x); return x == x
x = {}; x[0] = x; return x == x
x = (1,); x = (x, x); x = (x, x); x = (x, x); return {x: 1}
x = [1]; x += x; x += x; x.extend(x); return x
for i in range(10 ** 9): pass
for i in range(9999): x = [i] * 9999
for i in range(9999): x = 'a' * 9999 == 'b' * 9999
for i in range(60): x = [x]
for x in {'a', 'b', 'c'}: return x
x = 'a'\nfor i in range(99): x = x + x
x = 1\nfor i in range(99): x = x * 9
x = [1]\nfor y in x: x.append(y)
x = {1}\nfor y in x: x.add(y + 1)
x = {1: 1}\nfor y in x: x[y + 1] = 1
break
continue
return
pass
""".strip().split("\n")
NESTED = [
    "(" * 300,
    "[" * 5000,
    "-" * 3000 + "1",
    "not " * 2000 + "1",
    "1" + "+1" * 5000,
    "a" + ".b" * 3000,
    "f'{" * 20,
    "{" * 300,
]
REPLIES = [
    "{",
    "}",
    "[",
    "]",
    '"',
    "\\",
    ":",
    ",",
    "NaN",
    "1e999",
    "9" * 5000,
    "null",
    "\ud800",
    "\x00",
    "```json",
    "{}",
    "[" * 3000,
]
ALLOWED_EVENTS = {"compile", "object.__getattr__"}


def damaged(rng: random.Random, text: str) -> str:
    """Return a program with a hostile statement, a damaged line, or both, or several."""
    lines = text.split("\n")
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        at = rng.randrange(len(lines))
        kind = rng.randrange(8)
        indent = lines[at][: len(lines[at]) - len(lines[at].lstrip())]
        if kind < 3:
            statement = rng.choice(STATEMENTS).replace("\\n", "\n" + indent).replace("; ", "\n" + indent)
            lines[at] = indent + statement
        elif kind == 3:
            lines.insert(at, indent + rng.choice(STATEMENTS).replace("\\n", "\n" + indent))
        elif kind == 4:
            lines[at] = indent + "return " + rng.choice(NESTED)
        elif kind == 5 and lines[at]:
            k = rng.randrange(len(lines[at]))
            lines[at] = (
                lines[at][:k]
                + chr(rng.choice([0, 9, 10, 34, 39, 40, 91, 123, 0x661, 0x2028, 0x1F600, 58]))
                + lines[at][k + 1 :]
            )
        elif kind == 6:
            del lines[at]
            lines = lines or [""]
        else:
            lines.insert(at, lines[rng.randrange(len(lines))])
    return "\n".join(lines)


def damaged_reply(rng: random.Random, text: str) -> str:
    for _ in range(rng.randrange(1, 5)):
        k = rng.randrange(len(text) + 1)
        text = text[:k] + rng.choice(REPLIES) + text[k + rng.randrange(3) :]
    return text


def campaign(count: int, seed: int) -> dict[str, Any]:
    """Load `count` damaged programs and score as many damaged replies under the hook."""
    rng = random.Random(seed)
    sources = [module_text(grow(seed, str(k), "poly_tree", 4)[-1].bundle) for k in range(8)]
    load_source(sources[0])
    touched: list[str] = []
    watching = False

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if watching and event not in ALLOWED_EVENTS:
            touched.append(event)

    sys.addaudithook(hook)
    watching = True
    loaded = refused = answered = 0
    slowest = 0.0
    slow_source = ""
    for number in range(count):
        source = damaged(rng, rng.choice(sources))
        started = time.perf_counter()
        try:
            model: Model = load_source(source)
            loaded += len(model) > 0
        except Unsupported as error:
            refused += 1
            if not str(error).isprintable():
                touched.append(f"a refusal of more than a line: {error!a}")
        taken = time.perf_counter() - started
        if taken > slowest:
            slowest, slow_source = taken, source
        reply = damaged_reply(rng, '{"Aba":"x","Bob":1.0,"Cic":null}')
        answer = extract(reply, ["Aba", "Bob", "Cic"]).answer
        answered += answer is not None and len(assignment_text(answer)) > 0
        if number % 10 == 0:
            try:
                read_prose(damaged_reply(rng, 'The noise "U_A" is 1 with probability 1/1.\n'))
            except ModelError as error:
                if not str(error).isprintable():
                    touched.append(f"a refusal of more than a line: {error!a}")
    watching = False
    return {
        "programs": count,
        "loaded": loaded,
        "refused": refused,
        "answered": answered,
        "touched": sorted(set(touched)),
        "slowest": round(slowest, 3),
        "slow_source": slow_source,
    }


if __name__ == "__main__":
    print(json.dumps(campaign(int(sys.argv[1]), int(sys.argv[2]))))
