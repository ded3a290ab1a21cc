"""The command `python -m calibrant.bench.lab.causalab`: rows over the released suites; labels computed again."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from multiprocessing import get_context
from pathlib import Path

from calibrant.baselines.causalab.rows import ROWS
from calibrant.bench.lab.causalab.findings import released_findings
from calibrant.bench.lab.causalab.relabelling import relabelled_suite, relabelling_table
from calibrant.bench.lab.causalab.results import (
    LINEAR,
    OTHERS,
    QUADRATIC,
    SOLVERS,
    TO_SIX_DECIMALS,
    linear_table,
    method_results,
    reach_table,
    solver_table,
)
from calibrant.dsl.causalab.generation import PLANS
from calibrant.dsl.errors import CalibrantError, short_repr

MAX_WRONG_LABELS = 20  # labels that differ and are told
TRIPLES = "accuracy % / F1 / SHD"
LINEAR_OTHERS = ("4nodes_freqparent", "6nodes_freqparent", "6nodes_golden")


def main(arguments: Sequence[str] | None = None) -> int:
    """Play, average, print; 0, or 2 if a file cannot be read."""
    options = _arguments().parse_args(arguments)
    return {"rows": _rows, "labels": _labels, "findings": _findings}[options.what](options)


def _rows(options: argparse.Namespace) -> int:
    """0, or 2 if a file cannot be read."""
    try:
        rows = tuple(row for row in ROWS if row != TO_SIX_DECIMALS)
        linear = method_results(options.folder, LINEAR, rows, options.seeds, options.records, options.jobs)
        other_suites = method_results(options.folder, OTHERS, ("exact",), options.seeds, options.records, options.jobs)
        other_suites |= method_results(options.folder, (QUADRATIC,), (TO_SIX_DECIMALS,), options.seeds, options.records)
        reach = reach_table(options.folder, (*LINEAR, *LINEAR_OTHERS))
    except CalibrantError as error:
        print(f"bench.lab.causalab: {error}", file=sys.stderr)
        return 2
    solved = {key: of for key, of in linear.items() if key[1] in SOLVERS}
    about = f"Means over {options.seeds} drawn episodes of each config, {options.records} records;"
    print(f"{about} \N{PLUS-MINUS SIGN}: standard error over seeds", f"Linear suites: {TRIPLES}", sep="\n")
    print("", linear_table(linear), "", "Solvers on all suites", "", solver_table({**solved, **other_suites}), sep="\n")
    print("", "Targets beyond the dial, from the exact distribution of the drawn crystal", "", reach, sep="\n")
    return 0


def _findings(options: argparse.Namespace) -> int:
    """0, or 2 if a file cannot be read."""
    try:
        for finding in released_findings(options.folder, options.seeds):
            print(f"{finding.kind}, {finding.verdict}: {finding.where}: {finding.claim}")
    except CalibrantError as error:
        print(f"bench.lab.causalab: {error}", file=sys.stderr)
        return 2
    return 0


def _labels(options: argparse.Namespace) -> int:
    """0 if no label differs, 1 if one does; what differs goes to standard error."""
    with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn")) as workers:
        reports = list(workers.map(relabelled_suite, options.suites, repeat(options.seed), repeat(options.count)))
    print(relabelling_table(reports))
    wrong = [text for report in reports for text in report.wrong]
    print(*wrong[:MAX_WRONG_LABELS], sep="\n", end="\n" if wrong else "", file=sys.stderr)
    return 1 if wrong else 0


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m calibrant.bench.lab.causalab", description="Rows and labels.")
    commands = parser.add_subparsers(dest="what", required=True)
    rows = commands.add_parser("rows", help="the calibration rows over the released suites")
    rows.add_argument("folder", type=Path, metavar="DIR", help="where the released files are, such as 4nodes.jsonl")
    rows.add_argument("--seeds", type=_positive, default=10, help="drawn episodes of each config [default: 10]")
    rows.add_argument("--records", choices=("released", "fresh"), default="released", help="which [default: released]")
    rows.add_argument("--jobs", type=_positive, default=2, help="processes [default: 2]")
    findings = commands.add_parser("findings", help="what can be proved about the released suites and the printed rows")
    findings.add_argument("folder", type=Path, metavar="DIR", help="as for rows")
    findings.add_argument("--seeds", type=_positive, default=2, help="drawn episodes of each config [default: 2]")
    labels = commands.add_parser("labels", help="labels of generated items beside brute force")
    labels.add_argument("--count", type=_positive, default=1000, help="items of each suite [default: 1000]")
    labels.add_argument("--seed", type=int, default=0)
    labels.add_argument("--suites", nargs="+", choices=list(PLANS), default=list(PLANS), metavar="NAME")
    labels.add_argument("--jobs", type=_positive, default=1)
    return parser


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"a whole number of 1 or more was expected, found {short_repr(text)}")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
