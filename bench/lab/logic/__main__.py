"""The command `python -m calibrant.bench.lab.logic`: the table of published data sets in docs/logic.md."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

from calibrant.bench.lab.logic.rival import run_caspo
from calibrant.bench.lab.logic.table import CASES, Case, Measurement, case_task, measure, rows
from calibrant.dsl.errors import CalibrantError


def main() -> int:
    """Print the table; 1 if a number is another one than is known, 2 without the data."""
    parser = argparse.ArgumentParser(prog="python -m calibrant.bench.lab.logic", description=__doc__)
    parser.add_argument(
        "--caspo", action="store_true", help="Run caspo in the same process where it lists all members."
    )
    options = parser.parse_args()
    agreed = []

    def measured() -> Iterator[tuple[Measurement, float | None]]:
        for case in CASES:
            entry = measure(case)
            agreed.append(entry.agrees)
            yield entry, _rival_seconds(case) if options.caspo and case.caspo_lists else None

    try:
        for line in rows(measured()):
            print(line, flush=True)
    except CalibrantError as error:
        print(f"bench.lab.logic: {error}", file=sys.stderr)
        return 2
    return 0 if all(agreed) else 1


def _rival_seconds(case: Case) -> float:
    """Return the seconds of caspo; `CalibrantError` if it lists another number of members."""
    result = run_caspo(case_task(case))
    if len(result.models) != case.members:
        raise CalibrantError(f"caspo lists {len(result.models)} networks of {case.data}, {case.members} are known")
    return result.seconds


if __name__ == "__main__":
    sys.exit(main())
