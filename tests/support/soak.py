"""Long versions of the tests, within a time: `python3 tasks.py soak`, or `python -m tests.support.soak --minutes 60`.

One line for each part: cases, failures, seconds. A part begins nothing after its share of the time that is left; what
failed is shown below its line with the command that repeats it, and the exit code is 1. Files of tests come in another
order each time, so that short soaks reach all of them in the end.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent.parent
FUZZED = ("submissions", "responses", "pools", "blickets", "causalab", "texts")
SHOWN = 60  # lines of what failed
AT_A_TIME = 8  # files, which are collected in seconds


@dataclass
class Tally:
    """What a part has done; reports are of what failed."""

    cases: int = 0
    failures: int = 0
    reports: tuple[str, ...] = ()

    def add(self, cases: int, failures: int, report: str) -> None:
        self.cases += cases
        self.failures += failures
        if failures:
            self.reports += ("\n".join(report.splitlines()[-SHOWN:]),)


def run_python(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a module in a process of its own, from the root of the project."""
    line = [sys.executable, "-m", *arguments]
    done = subprocess.run(line, cwd=ROOT, env={**os.environ, **variables}, capture_output=True, text=True, check=False)
    done.stdout += f"\n{done.stderr}\n$ {' '.join(['python', '-m', *arguments])}"
    return done


def files_with(text: str) -> list[str]:
    """Files of tests in which it stands: to collect all of them would take longer than a short soak has."""
    files = [path for path in (ROOT / "tests").rglob("test_*.py") if "integrations" not in path.parts]
    return [str(path.relative_to(ROOT)) for path in sorted(files) if text in path.read_text(encoding="utf-8")]


def run_tests(tally: Tally, until: float, *arguments: str) -> None:
    """Run tests at full length; those that would begin after the end are skipped, and not counted."""
    with TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        line = ("pytest", "-q", "-n", "2", "--dist", "worksteal", *arguments)
        variables = {"CALIBRANT_SOAK": "1", "CALIBRANT_SOAK_UNTIL": str(until)}
        done = run_python(*line, f"--junit-xml={report}", **variables)
        if not report.exists():
            tally.add(0, 1, done.stdout)
            return
        cases, failures = counted(report)
    tally.add(cases, max(failures, int(done.returncode not in (0, 1))), done.stdout)


def counted(report: Path) -> tuple[int, int]:
    """Count the tests that were run, and those of them that failed."""
    suites = list(ElementTree.parse(report).getroot().iter("testsuite"))
    number = {name: sum(int(suite.get(name, 0)) for suite in suites) for name in ("tests", "skipped", "failures")}
    broken = sum(int(suite.get("errors", 0)) for suite in suites)
    return number["tests"] - number["skipped"], number["failures"] + broken


def long_versions(tally: Tally, until: float) -> None:
    run_tests(tally, until, "-m", "soak", f"--order-seed={until}", *files_with("mark.soak"))


def properties(tally: Tally, until: float) -> None:
    """All tests that draw their examples, a few files at a time, again and again with other examples."""
    seed, left = int(time.time()), list[str]()
    while True:
        seed, left = seed + 1, left or Random(seed).sample(files := files_with("given("), len(files))
        few, left = left[:AT_A_TIME], left[AT_A_TIME:]
        run_tests(tally, until, "-m", "hypothesis", f"--hypothesis-seed={seed}", *few)
        if tally.failures or time.time() >= until:
            break


def fuzzing(target: str) -> Callable[[Tally, float], None]:
    def fuzzed(tally: Tally, until: float) -> None:
        seconds = max(1.0, until - time.time())
        done = run_python("tests.fuzz", target, "--count", "100000000", "--seconds", f"{seconds:.0f}", "--workers", "2")
        cases = re.match(r"(\d+) cases", done.stdout)
        failures = done.stdout.count("\nFAILED case") or int(done.returncode != 0)
        tally.add(int(cases[1]) if cases else 0, failures, done.stdout)

    return fuzzed


PARTS: dict[str, Callable[[Tally, float], None]] = {
    "long versions": long_versions,
    "properties": properties,
    **{f"fuzz {target}": fuzzing(target) for target in FUZZED},
}
SHARES = {"long versions": 5, "properties": 5}
"""Of the time, where a fuzzer gets one."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.support.soak", description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--part", choices=PARTS, action="append", help="only these parts")
    given = parser.parse_args()
    end, failed = time.time() + 60 * given.minutes, False
    names = given.part or list(PARTS)
    for index, name in enumerate(names):
        started, tally = time.time(), Tally()
        left = sum(SHARES.get(other, 1) for other in names[index:])
        PARTS[name](tally, started + max(0.0, end - started) * SHARES.get(name, 1) / left)
        print(
            f"{name:16} {tally.cases:9,} cases {tally.failures:4} failures {time.time() - started:6.0f} s", flush=True
        )
        for report in tally.reports:
            print(report, flush=True)
        failed |= tally.failures > 0
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
