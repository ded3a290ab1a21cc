"""The command `python -m bench.causalab rows DIR`: the calibration rows over the released suites in a folder."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from baselines.causalab.rows import ROWS
from bench.causalab.standing import LINEAR, OTHERS, SOLVERS, linear_table, solver_table, standing
from dsl.errors import CalibrantError, shown


def main(arguments: Sequence[str] | None = None) -> int:
    """Play, average, print; 0, or 2 if a file cannot be read."""
    given = _arguments().parse_args(arguments)
    try:
        linear = standing(given.folder, LINEAR, tuple(ROWS), given.seeds)
        others = standing(given.folder, OTHERS, ("exact",), given.seeds)
    except CalibrantError as error:
        print(f"bench.causalab: {error}", file=sys.stderr)
        return 2
    solved = {key: of for key, of in linear.items() if key[1] in SOLVERS}
    title = f"Means over {given.seeds} drawn episodes of each config; linear suites: accuracy % / F1 / SHD"
    print(
        title, "", linear_table(linear), "", "Solvers on all suites", "", solver_table({**solved, **others}), sep="\n"
    )
    return 0


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.causalab", description="Rows over the released suites.")
    parser.add_argument("what", choices=("rows",), help="the calibration rows")
    parser.add_argument("folder", type=Path, metavar="DIR", help="where the released files are, such as 4nodes.jsonl")
    parser.add_argument("--seeds", type=_positive, default=10, help="drawn episodes of each config [default: 10]")
    return parser


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"a whole number of 1 or more was expected, found {shown(text)}")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
