"""The command `python -m calibrant.bench.lab.logic`: the table of published data sets in docs/logic.md."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

from calibrant.bench.lab.logic.boolnet import compare_series
from calibrant.bench.lab.logic.rival import run_caspo
from calibrant.bench.lab.logic.states import state_lines
from calibrant.bench.lab.logic.table import CASES, Case, Measurement, case_task, measure, rows
from calibrant.dsl.errors import CalibrantError


def main() -> int:
    """Print the table; 1 if a number is another one than is known, 2 without the data."""
    parser = argparse.ArgumentParser(prog="python -m calibrant.bench.lab.logic", description=__doc__)
    parser.add_argument(
        "--caspo", action="store_true", help="Run caspo in the same process where it lists all members."
    )
    parser.add_argument(
        "--boolnet",
        type=int,
        metavar="N",
        help="Compare functions of N random series with BoolNet in R, and nothing else.",
    )
    parser.add_argument(
        "--states", action="store_true", help="Time the search on the data sets with most states, and nothing else."
    )
    options = parser.parse_args()
    agreed = []

    def measured() -> Iterator[tuple[Measurement, float | None]]:
        for case in CASES:
            entry = measure(case)
            agreed.append(entry.agrees)
            yield entry, _rival_seconds(case) if options.caspo and case.caspo_lists else None

    try:
        if options.boolnet:
            return _compare_series(options.boolnet)
        if options.states:
            for line in state_lines():
                print(line, flush=True)
            return 0
        for line in rows(measured()):
            print(line, flush=True)
    except CalibrantError as error:
        print(f"bench.lab.logic: {error}", file=sys.stderr)
        return 2
    return 0 if all(agreed) else 1


def _compare_series(number: int) -> int:
    comparison = compare_series(number, 1)
    for k, gene, counts, rival_counts in comparison.differences:
        print(f"series {k}, gene {gene}: {dict(counts)} here, {dict(rival_counts)} in BoolNet")
    print(
        f"{comparison.tasks} tasks, {comparison.functions:,} functions, {len(comparison.differences)} genes differ;"
        f" {comparison.seconds:.2f} s here, {comparison.rival_seconds:.1f} s in R with its start"
    )
    return 1 if comparison.differences else 0


def _rival_seconds(case: Case) -> float:
    """Return the seconds of caspo; `CalibrantError` if it lists another number of members."""
    result = run_caspo(case_task(case))
    if len(result.models) != case.members:
        raise CalibrantError(f"caspo lists {len(result.models)} networks of {case.data}, {case.members} are known")
    return result.seconds


if __name__ == "__main__":
    sys.exit(main())
