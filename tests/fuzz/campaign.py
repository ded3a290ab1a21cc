"""Running numbered cases: in this process or in several, always with the same result."""

from __future__ import annotations

import hashlib
import random
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from multiprocessing import get_context

Case = Callable[[random.Random], str]
"""Makes one input from the generator, feeds it in and tells the outcome; raises if something is wrong with it."""


@dataclass
class CampaignTally:
    """What happened in a run of cases.

    outcomes: how often each outcome was told; failures: (case, what was wrong)
    digest: of all outcomes in order: equal for equal seeds, whatever the number of workers
    slowest: (seconds, case)
    """

    num_cases: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    failures: list[tuple[int, str]] = field(default_factory=list)
    digest: str = ""
    slowest: tuple[float, int] = (0.0, -1)

    def add(self, other: CampaignTally) -> None:
        """Append a later run."""
        self.num_cases += other.num_cases
        self.outcomes.update(other.outcomes)
        self.failures += other.failures
        self.digest = hashlib.sha256(f"{self.digest}{other.digest}".encode()).hexdigest()[:16]
        self.slowest = max(self.slowest, other.slowest)


def run_chunk(case: Case, seed: int, first: int, count: int) -> CampaignTally:
    """Cases `first` to `first + count - 1`, one after another."""
    tally = CampaignTally(count)
    digest = hashlib.sha256()
    for number in range(first, first + count):
        started = time.perf_counter()
        try:
            outcome = case(random.Random(seed << 40 | number))
        except Exception as error:  # whatever it is, it is what we are looking for
            outcome = "failure"
            tally.failures.append((number, f"{type(error).__name__}: {error}"))
        tally.slowest = max(tally.slowest, (time.perf_counter() - started, number))
        tally.outcomes[outcome] += 1
        digest.update(f"{outcome}\n".encode())
    tally.digest = digest.hexdigest()[:16]
    return tally


@dataclass(frozen=True)
class CampaignPlan:
    """How much to run: cases `first` to `first + count - 1`, in chunks, for at most so many seconds."""

    seed: int
    count: int
    first: int = 0
    seconds: float = float("inf")
    workers: int = 1
    chunk: int = 1_000

    def chunks(self) -> Iterator[tuple[int, int]]:
        end = self.first + self.count
        for start in range(self.first, end, self.chunk):
            yield start, min(self.chunk, end - start)


def run(case: Case, plan: CampaignPlan) -> CampaignTally:
    """All cases of a plan; chunks that no time is left for are not begun."""
    return _run_here(case, plan) if plan.workers == 1 else _run_apart(case, plan)


def _run_here(case: Case, plan: CampaignPlan) -> CampaignTally:
    tally = CampaignTally()
    deadline = time.monotonic() + plan.seconds
    for first, count in plan.chunks():
        if time.monotonic() >= deadline:
            break
        tally.add(run_chunk(case, plan.seed, first, count))
    return tally


def _run_apart(case: Case, plan: CampaignPlan) -> CampaignTally:
    tally = CampaignTally()
    deadline = time.monotonic() + plan.seconds
    with ProcessPoolExecutor(plan.workers, mp_context=get_context("spawn")) as executor:
        chunks = plan.chunks()
        running: deque[Future[CampaignTally]] = deque()
        while True:
            room = 2 * plan.workers - len(running) if time.monotonic() < deadline else 0
            running.extend(executor.submit(run_chunk, case, plan.seed, *chunk) for chunk in islice(chunks, room))
            if not running:
                return tally
            tally.add(running.popleft().result())
