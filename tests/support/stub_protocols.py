"""Protocols for tests of the runner. Spawned workers import them from here.

Instances are told apart by what a protocol can see of them: the id of their first training world.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from itertools import count
from pathlib import Path

from calibrant.bench.protocols import Protocol, ProtocolResult
from calibrant.bench.replayscm.rows.exact import scm_answer
from calibrant.dsl.errors import MissingExtraError
from calibrant.dsl.formulas.text import Grammar, parse
from calibrant.dsl.replayscm.disclosure import Ordered
from calibrant.dsl.replayscm.item import Pool, Task
from calibrant.dsl.replayscm.pools.records import (
    OrderedRecord,
    ProblemRecord,
    SealedRecord,
    WorldRecord,
    problem_from_record,
)
from calibrant.dsl.replayscm.scm import Scm

GRAMMAR = Grammar(("not", "and", "or", "xor", "iff"), False)


MOST_ANSWERS = "STUB_MOST_ANSWERS"  # variable: answers of a process, whose next one takes 600 s
_answers = count(1)


class Stub(Protocol, frozen=True):
    """Answers X3 = (and X1 X2) everywhere after a pause.

    misbehaves: what the instances whose world is so named make it do instead: raise, die, hang, give_up
    """

    name = "stub"
    pause: float = 0.0
    warm_up_pause: float = 0.0

    def warm_up(self) -> None:
        time.sleep(self.warm_up_pause)

    def answer(self, task: Task) -> ProtocolResult:
        is_over = next(_answers) > int(os.environ.get(MOST_ANSWERS, sys.maxsize))
        time.sleep(600 if is_over else self.pause)
        match task.training.worlds[0].id.partition("-")[0]:
            case "raise":
                raise RuntimeError("no idea")
            case "die":
                os._exit(3)
            case "hang":
                time.sleep(600)
            case "give_up":
                return ProtocolResult("out_of_budget")
        assert isinstance(task.disclosure, Ordered)
        model = Scm(("X1", "X2"), {"X3": parse("(and X1 X2)", GRAMMAR, {"X1", "X2"})})
        return ProtocolResult("found", scm_answer(task.kind, model), model.size, {"by": "stub"})


class LacksLibrary(Protocol, frozen=True):
    """Notices only when it answers that a library cannot be imported."""

    name = "lacks_library"

    def answer(self, task: Task) -> ProtocolResult:
        raise MissingExtraError("a library cannot be imported")


class Raises(Protocol, frozen=True):
    """Crashes on every instance."""

    name = "raises"

    def answer(self, task: Task) -> ProtocolResult:
        raise KeyError("missing")


class NeedsLibrary(Protocol, frozen=True):
    """States before anything starts that a library is missing."""

    name = "needs_library"

    def require(self) -> None:
        raise MissingExtraError("install calibrant[extra]")


class DiesWarming(Protocol, frozen=True):
    """Cannot even start."""

    name = "dies_warming"

    def warm_up(self) -> None:
        os._exit(4)


def small_pool(behaviours: Sequence[str], *, name: str = "small") -> Pool:
    """Instances of X3 = X1 and X2 in four rows, one per behaviour; "or" is one that X3 = X1 or X2 made."""
    return Pool(name, tuple(problem_from_record(_record(i, behaviour)) for i, behaviour in enumerate(behaviours)))


def _record(index: int, behaviour: str) -> ProblemRecord:
    rows = ["000", "101", "011", "111"] if behaviour == "or" else ["000", "100", "010", "111"]
    held = ["001", "101", "011", "111"]  # X3 is clamped to 1: nothing is scored there but by its own world
    return ProblemRecord(
        id=f"I{index}",
        kind="CIND_A_SCM",
        variables=["X1", "X2", "X3"],
        units=["u0", "u1", "u2", "u3"],
        disclosure=OrderedRecord(["X1", "X2", "X3"], ["X1", "X2"]),
        training=[WorldRecord(f"{behaviour}-{index}", rows)],
        sealed=SealedRecord(
            heldout=[WorldRecord("held", rows), WorldRecord("clamped", held, {"X3": 1})],
            gold={"X3": "(or X1 X2)" if behaviour == "or" else "(and X1 X2)"},
            labels={"stratum": "even" if index % 2 == 0 else "odd"},
        ),
    )


KILLABLE_RUN = """
import sys
from pathlib import Path
from calibrant.bench.runs.executors import Execution
from calibrant.bench.runs.runner import run
from tests.support.stub_protocols import Stub

if __name__ == "__main__":
    pool, out, workers, pause = sys.argv[1:]
    run(Stub(pause=float(pause)), [Path(pool)], Path(out), execution=Execution(int(workers)))
"""


def killable_script(folder: Path) -> Path:
    """Return a program that runs the stub over a pool: arguments POOL OUT WORKERS PAUSE."""
    script = folder / "killable_run.py"
    script.write_text(KILLABLE_RUN, encoding="utf-8")
    return script
