"""Fuzzers of the two doors through which untrusted input comes in: answers to be scored, and pool files.

    python -m tests.fuzz submissions --count 1000000 --seed 1
    python -m tests.fuzz responses --count 200000 --seed 1 --workers 2
    python -m tests.fuzz pools --count 10000 --seed 1 --workers 2

A case is determined by the seed and its number alone, so `--first 4711 --count 1` repeats one.
The exit code is 1 if a case failed.
"""

from __future__ import annotations

import argparse
import sys
import time
from importlib import import_module

from tests.fuzz.campaign import CampaignPlan, Case, run

DESCRIPTION = (
    "Fuzz the scorer, whole responses, the pool reader, compiled texts, or what reads blickets, CausaLab, CauSim,"
    " episodes of ReplaySCM, logic models, networks or the papers' formats; or the readers of answers."
)
SHOWN_FAILURES = 20
# module with a function case(rng), or one of its other cases, loaded when it is asked for -> cases per chunk
TARGETS = {
    "submissions": 1_000,
    "responses": 1_000,
    "pools": 100,
    "blickets": 1_000,
    "causalab": 1_000,
    "causim": 1_000,
    "episodes": 1_000,
    "texts": 1_000,
    "papers": 1_000,
    "logic": 1_000,
    "networks": 1_000,
    "readings": 1_000,
    "readings.unpaid": 1_000,
    "readings.superset": 1_000,
    "formats": 1_000,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=DESCRIPTION)
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument("--count", type=int, default=10_000, help="number of cases")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin nothing after this long")
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args()
    module, _, name = options.target.partition(".")
    case: Case = getattr(import_module(f"tests.fuzz.{module}"), f"{name}_case" if name else "case")
    chunk = TARGETS[options.target]
    started = time.perf_counter()
    plan = CampaignPlan(options.seed, options.count, options.first, options.seconds, options.workers, chunk)
    tally = run(case, plan)
    seconds = time.perf_counter() - started
    print(
        f"{tally.num_cases} cases in {seconds:.0f} s, {tally.num_cases / seconds:.0f} a second; digest {tally.digest}"
    )
    for outcome, number in tally.outcomes.most_common():
        print(f"{number:9}  {outcome}")
    print(f"slowest: case {tally.slowest[1]} with {tally.slowest[0]:.3f} s")
    for number, what in tally.failures[:SHOWN_FAILURES]:
        print(f"FAILED case {number}: {what}")
    sys.exit(1 if tally.failures else 0)


if __name__ == "__main__":
    main()
