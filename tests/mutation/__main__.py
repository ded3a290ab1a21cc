"""Put mutants into a module and count those that its tests notice: `python -m tests.mutation FILE TESTS...`.

`--sample N` takes N mutants at random (seed 0) instead of all. A mutant is killed if a test fails or the tests take ten
times as long as without it. Survivors are listed: each is a test to write, or a change without effect.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random

from tests.mutation.mutants import list_mutants

PATIENCE = 10  # times the tests without a mutant, after which they are taken for endless
GRACE_SECONDS = 20.0
PYTEST = ("-m", "pytest", "-x", "-q", "--no-header", "-p", "no:cacheprovider")


def run_tests(tests: Sequence[str], variables: dict[str, str], limit: float | None) -> bool:
    """Return whether the tests pass within the limit of seconds."""
    plugin = ("-p", "tests.mutation.plugin") if variables else ()
    environment = os.environ | variables | {"PYTHONDONTWRITEBYTECODE": "1"}
    line = [sys.executable, *PYTEST, *plugin, *tests]
    try:
        return subprocess.run(line, env=environment, capture_output=True, timeout=limit).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 1 if the tests fail without a mutant, else 0."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=(__doc__ or "").split("\n\n")[1])
    parser.add_argument("file", type=Path, metavar="FILE", help="the module to change; it is never written")
    parser.add_argument("tests", nargs="+", metavar="TESTS", help="what pytest runs for each mutant")
    parser.add_argument("--sample", type=int, metavar="N", help="so many mutants, drawn with seed 0; all by default")
    options = parser.parse_args(arguments)
    mutants = list_mutants(options.file.read_text(encoding="utf-8"))
    start = time.monotonic()
    if not run_tests(options.tests, {}, None):
        print("the tests fail without a mutant")
        return 1
    limit = PATIENCE * (time.monotonic() - start) + GRACE_SECONDS
    numbers = list(range(len(mutants)))
    if options.sample is not None and options.sample < len(mutants):
        numbers = sorted(Random(0).sample(numbers, options.sample))
    survivors = []
    for number in numbers:
        variables = {"MUTATED_FILE": str(options.file), "MUTANT": str(number)}
        if run_tests(options.tests, variables, limit):
            survivors.append(mutants[number])
            print(
                f"survived: line {mutants[number].line}: {mutants[number].before} -> {mutants[number].after}",
                flush=True,
            )
    killed = len(numbers) - len(survivors)
    print(f"{options.file}: {killed} of {len(numbers)} mutants killed ({killed / max(1, len(numbers)):.0%})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
