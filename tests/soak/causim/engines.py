"""The command `python -m tests.soak.causim.engines`: engines against every world, and against SAT at ten nodes.

Questions are about grown programs, of all four types and six topologies, with one and with several answers, half of the
counterfactuals with every other node seen, so that the twin engine is asked too.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import islice

from calibrant.bench.runs.executors import Execution, Failure
from calibrant.bench.runs.workers import as_completed
from calibrant.dsl.causim.generated_functions import TOPOLOGIES
from calibrant.dsl.causim.generation import grow
from calibrant.dsl.causim.model import Model, assignment_text, symbol
from calibrant.dsl.causim.question import TYPES, Question
from calibrant.dsl.causim.reference import work_out
from calibrant.solvers.causim.exact import AnswerSet
from calibrant.solvers.causim.experiments import SatQuestion
from calibrant.solvers.causim.generation import questions
from calibrant.solvers.outcome import Budget, Found
from tests.oracles.causim import TwinAnswerSet

SMALL, LARGE = 6, 10  # nodes: every world is run; the SAT engine is asked
EACH = 5  # questions of a type about a program, and as many counterfactuals with partial evidence
LISTED = 60  # answers that the SAT engine lists


@dataclass(frozen=True)
class Batch:
    """One program and the engines that its questions are put to."""

    seed: int
    topology: str
    number: int
    nodes: int


def compared(batch: Batch) -> Counter[str]:
    """Return how many questions were compared, and how many engines differ on them."""
    counts = Counter[str]()
    name = f"{batch.topology}-{batch.number:04d}"
    model = grow(batch.seed, name, batch.topology, batch.nodes)[-1].model
    compare = _with_worlds if batch.nodes <= SMALL else _with_clauses
    for question in _questions(model, f"{batch.seed}/{name}"):
        counts["questions"] += 1
        counts["differences"] += not compare(model, question)
    return counts


def _questions(model: Model, key: str) -> Iterator[Question]:
    for kind in TYPES:
        for found in questions(model, kind, EACH, key=key):
            yield found.question
            if kind == "counterfactual":
                seen = dict(islice(found.question.observed.items(), 0, None, 2))
                yield replace(found.question, observed=seen)


def _with_worlds(model: Model, question: Question) -> bool:
    """Return whether counts, sets, flags, probabilities and membership are those of running every world."""
    worked = work_out(model, question)
    for members in (AnswerSet(model, question), TwinAnswerSet(model, question)):
        effect = None if worked.effect_all is None else (worked.effect_all, worked.effect_some)
        same = (members.worlds, members.fitting) == (worked.worlds, worked.fitting)
        same = same and sorted(map(assignment_text, members.answers(Budget(None)))) == list(worked.answers)
        same = same and (members.effect, members.copy) == (effect, worked.copy)
        for text, answer in islice(worked.answers.items(), 5):
            same = same and members.probability(answer) == worked.probabilities[text]
        if not same or _strangers(members, set(worked.answers)):
            return False
    return True


def _strangers(members: AnswerSet, right: set[str]) -> bool:
    """Return whether an answer with one value from elsewhere is taken for right, or for wrong where it is right."""
    first = next(iter(members.answers(Budget(None))), None)
    if first is None:
        return False
    for key in first:
        for value in {*first.values(), symbol("nowhere")}:
            changed = {**first, key: value}
            if members.contains(changed) is not (assignment_text(changed) in right):
                return True
    return False


def _with_clauses(model: Model, question: Question) -> bool:
    """Return whether the SAT engine finds the same answers, or, where there are many, agrees on single ones."""
    members = AnswerSet(model, question)
    picked = members.pick()
    with closing(SatQuestion(model, question)) as sat:
        if sat.is_satisfiable(()) is not isinstance(picked, Found):
            return False
        if not isinstance(picked, Found):
            return True
        for key in picked.value:
            for value in {*picked.value.values(), symbol("nowhere")}:
                changed = {**picked.value, key: value}
                if sat.contains(changed) is not members.contains(changed):
                    return False
        size = members.size(Budget(2_000))
        return not (isinstance(size, Found) and size.value <= LISTED) or sat.size(Budget(None)) == size


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare, count, print; 1 if an engine differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak.causim.engines", description="Engines compared.")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--small", type=int, default=34, help="programs of six nodes of each topology")
    parser.add_argument("--large", type=int, default=7, help="programs of ten nodes of each topology")
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args(arguments)
    differences = 0
    for title, nodes, number in (
        ("every world is run", SMALL, given.small),
        ("SAT is asked", LARGE, given.large),
    ):
        batches = [Batch(given.seed, topology, k, nodes) for topology in TOPOLOGIES for k in range(number)]
        total = Counter[str]()
        for place, counts in as_completed(compared, dict(enumerate(batches)), Execution(given.workers)):
            if isinstance(counts, Failure):
                raise RuntimeError(f"{batches[place]}: {counts.error}")
            total += counts
        print(f"{nodes} nodes, {title}: {total['questions']} questions, {total['differences']} differences")
        differences += total["differences"]
    return 0 if differences == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
