"""The command `python -m tests.soak.causim.questions`: questions in bulk, answered exactly, and how easy.

Every version of every program passes the verifier while it grows. The digest is that of all records in their order: the
same for a seed, whatever the number of workers.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import NamedTuple

import msgspec

from calibrant.bench.answers.rates import wilson
from calibrant.bench.pages.terminal_tables import aligned
from calibrant.bench.runs.executors import Execution, Failure
from calibrant.bench.runs.workers import as_completed
from calibrant.dsl.causim.generated_functions import TOPOLOGIES
from calibrant.dsl.causim.generation import grow
from calibrant.dsl.causim.model import assignment_text
from calibrant.dsl.causim.question import TYPES
from calibrant.dsl.causim.records import record_of_item
from calibrant.solvers.causim.exact import Judge
from calibrant.solvers.causim.generation import items_of_version
from calibrant.solvers.outcome import Found

FLAGS = ("trivial", "copyable", "vacuous")


@dataclass(frozen=True)
class Program:
    """One program to grow to so many nodes, and how many questions to ask about each of its versions."""

    seed: int
    topology: str
    number: int
    nodes: int
    each: int


class Asked(NamedTuple):
    """What came of one program.

    counts: questions, right ones, and for each flag those that can have it and have it
    """

    versions: int
    counts: Counter[str]
    digest: bytes


def asked(program: Program) -> Asked:
    """Questions of the four types in turns about every version, each answered and judged as a reply."""
    scm_id, counts, digest = f"{program.topology}-{program.number:04d}", Counter[str](), hashlib.sha256()
    versions = grow(program.seed, scm_id, program.topology, program.nodes)
    for v, version in enumerate(versions):
        for k, kind in enumerate(TYPES):
            number = (program.each + (k - v) % len(TYPES)) // len(TYPES)
            for item in items_of_version(version, scm_id, num_questions=number, types=[kind], seed=program.seed):
                digest.update(msgspec.json.encode(record_of_item(item)) + b"\n")
                judge = Judge(item.task)
                found = judge.members.pick()
                right = isinstance(found, Found) and judge.judge_text(assignment_text(found.value)).reward == 1
                counts.update({"questions": 1, "right": int(right)})
                for flag in FLAGS:
                    value = getattr(judge.flags, flag)
                    counts.update({f"of {flag}": int(value is not None), flag: int(value is True)})
    return Asked(len(versions), counts, digest.digest())


def all_asked(programs: Sequence[Program], workers: int) -> list[Asked]:
    """In the order of the programs; `RuntimeError` names the first that could not be made."""
    found: dict[int, Asked] = {}
    for place, made in as_completed(asked, dict(enumerate(programs)), Execution(workers)):
        if isinstance(made, Failure):
            raise RuntimeError(f"{programs[place].topology}-{programs[place].number:04d}: {made.error}")
        found[place] = made
    return [found[place] for place in range(len(programs))]


def main(arguments: Sequence[str] | None = None) -> int:
    """Make, answer, count, print; 1 if an exact answer is not right."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak.causim.questions", description="Questions in bulk.")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--programs", type=int, default=200, help="of each topology")
    parser.add_argument("--nodes", type=int, default=10, help="of the last version of each")
    parser.add_argument("--each", type=int, default=5, help="questions about each version")
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args(arguments)
    programs = [
        Program(given.seed, topology, number, given.nodes, given.each)
        for topology in TOPOLOGIES
        for number in range(given.programs)
    ]
    start = perf_counter()
    found = all_asked(programs, given.workers)
    seconds = perf_counter() - start
    total = sum((one.counts for one in found), Counter[str]())
    digest = hashlib.sha256(b"".join(one.digest for one in found)).hexdigest()
    print(f"{len(programs)} programs, {sum(one.versions for one in found)} versions that pass the verifier")
    print(f"{total['questions']} questions, exact right on {total['right']}")
    work = sum(os.times()[:4])  # of this process and of those that it started and that have ended
    print(f"{seconds:.0f} s with {given.workers} workers, {work:.0f} s of processor time")
    print(f"sha256 of the records {digest}")
    rows = [
        _row(
            topology, sum((o.counts for p, o in zip(programs, found, strict=True) if p.topology == topology), Counter())
        )
        for topology in TOPOLOGIES
    ]
    print(aligned(["Topology", "Questions", *(flag.capitalize() for flag in FLAGS)], [*rows, _row("all", total)]))
    return 0 if total["right"] == total["questions"] else 1


def _row(name: str, counts: Counter[str]) -> list[str]:
    cells = []
    for flag in FLAGS:
        number = counts[f"of {flag}"]
        low, high = wilson(counts[flag], number) if number else (0.0, 1.0)
        cells.append(f"{counts[flag] / number:.3f} [{low:.3f}, {high:.3f}]" if number else "-")
    return [name, str(counts["questions"]), *cells]


if __name__ == "__main__":
    sys.exit(main())
