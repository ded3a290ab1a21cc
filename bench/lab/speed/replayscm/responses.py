"""A pool of many instances and a file of responses of several models to them, as large as asked for.

Every response is made for its own instance. In a mixed file 30 % repeat an earlier response of the same instance, as
samples at a low temperature do; the others choose each mechanism from some spellings that a model comes back to, or
make a new one; 5 % of the responses are no valid answer. In a file of new formulas no instance sees a mechanism twice.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import cycle, islice
from pathlib import Path
from random import Random
from typing import Any

from calibrant.bench.lab.speed.replayscm.candidates import gold_of
from calibrant.dsl.formulas.text import render
from calibrant.dsl.replayscm.pools.files import write_pool
from calibrant.dsl.replayscm.problem import Pool, Problem, TaskKind

SEED = 14
MODELS = tuple(f"model-{number}" for number in range(1, 6))
SPELLINGS = 40  # of one mechanism that answers come back to
REPEATED, KNOWN, BROKEN = 0.3, 0.7, 0.05
_LISTS = ("and", "or", "xor", "iff")


def write_large_pool(problems: Sequence[Problem], path: Path, count: int) -> tuple[Problem, ...]:
    """Write that many instances: the problems, repeated under other ids."""
    indexed = enumerate(islice(cycle(problems), count))
    problems_copied = tuple(replace(p, id=f"{p.id}~{index}", results=tuple) for index, p in indexed)
    write_pool(Pool("bulk", problems_copied), path)
    return problems_copied


def write_responses(problems: Sequence[Problem], path: Path, count: int, *, mixed: bool) -> int:
    """Write that many predictions, by model and sample; return the number of different responses."""
    speakers = [_Speaker(problem, Random(f"{SEED} {problem.id}"), mixed=mixed) for problem in problems]
    per_model = -(-count // len(MODELS))
    with path.open("w", encoding="utf-8") as file:
        for number, speaker in enumerate(islice(cycle(speakers), count)):
            line = {"instanceId": speaker.problem.id, "model": MODELS[number // per_model], "response": speaker.say()}
            file.write(json.dumps(line) + "\n")
    return sum(len(speaker.different) for speaker in speakers)


def new_responses(problem: Problem, count: int) -> list[str]:
    """Return that many responses to one problem, bare and fenced, with no mechanism twice."""
    speaker = _Speaker(problem, Random(f"{SEED} {problem.id}"), mixed=False)
    return [speaker.say() for _ in range(count)]


class _Speaker:
    """Responses of models to one problem.

    different: digests of its responses so far
    """

    def __init__(self, problem: Problem, rng: Random, *, mixed: bool) -> None:
        self.problem = problem
        self.different: set[int] = set()
        self._rng = rng
        self._mixed = mixed
        gold = gold_of(problem)
        self._roots = list(gold.roots)
        earlier = list(gold.roots)
        self._parents: dict[str, list[str]] = {}
        for variable in gold.order:
            admissible = problem.task.disclosure.admissible_parents(variable)
            self._parents[variable] = [v for v in earlier if v in admissible]
            earlier.append(variable)
        self._new = {variable: self._formulas(variable) for variable in self._parents}
        self._known = {v: [render(gold.mechanisms[v]), *islice(new, SPELLINGS)] for v, new in self._new.items()}
        self._said: list[str] = []

    def say(self) -> str:
        rng = self._rng
        if self._mixed and self._said and rng.random() < REPEATED:
            return rng.choice(self._said)
        text = self._spell({variable: self._mechanism(variable) for variable in self._parents})
        self.different.add(hash(text))
        if self._mixed:
            if rng.random() < BROKEN:
                text = text[: rng.randrange(len(text))] if rng.random() < 0.5 else text.replace("X", "Y", 3)
            if len(self._said) < SPELLINGS:
                self._said.append(text)
            else:
                self._said[rng.randrange(SPELLINGS)] = text
        return text

    def _mechanism(self, variable: str) -> str:
        if self._mixed and self._rng.random() < KNOWN:
            texts = self._known[variable]
            return texts[min(int(self._rng.expovariate(0.2)), len(texts) - 1)]
        return next(self._new[variable])

    def _spell(self, mechanisms: dict[str, str]) -> str:
        answer: dict[str, Any] = {"mechanisms": mechanisms}
        if self.problem.task.kind is TaskKind.ROOTS:
            answer = {"roots": self._roots, **answer}
        if self._rng.random() < 0.5:
            return json.dumps(answer)
        return f"The worlds leave this model:\n```json\n{json.dumps(answer, indent=1)}\n```\n"

    def _formulas(self, variable: str) -> Iterator[str]:
        """Formulas over the variables before this one, none twice."""
        sizes_used: set[int] = set()
        names, rng, size = self._parents[variable], self._rng, 3
        while True:
            text = _formula(rng, names, size)
            if hash(text) in sizes_used:
                size += 1  # over few variables there are few small ones
                continue
            sizes_used.add(hash(text))
            size = max(3, size - 1)
            yield text


def _formula(rng: Random, names: Sequence[str], leaves: int) -> str:
    if leaves == 1:
        name = names[int(rng.random() * len(names))]
        return f"(not {name})" if rng.random() < 0.25 else name
    cut = 1 + int(rng.random() * (leaves - 1))
    operator = _LISTS[int(rng.random() * 4)]
    return f"({operator} {_formula(rng, names, cut)} {_formula(rng, names, leaves - cut)})"
