"""The command `python -m calibrant.bench.lab.causim`: the tables of the paper alone, or with answers beside them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from calibrant.bench.causim.paper import paper_tables, questions_asked, shown_programs
from calibrant.bench.lab.table_text import text_of
from calibrant.bench.report.answers.named import named_answers
from calibrant.bench.report.scored_answers import scored_answers
from calibrant.bench.report.sources import items_of_pools
from calibrant.dsl.errors import CalibrantError


def main(arguments: Sequence[str] | None = None) -> int:
    """Count, print; 0, or 2 if a source has no answers."""
    parser = argparse.ArgumentParser(
        prog="python -m calibrant.bench.lab.causim", description="Answers beside printed rows."
    )
    parser.add_argument(
        "sources", nargs="*", type=Path, metavar="SOURCE", help="folders of `calibrant run`, files of `calibrant score`"
    )
    parser.add_argument(
        "--pool",
        action="append",
        default=[],
        type=Path,
        help="pool of the answers: what prompts show decides on tables",
    )
    options = parser.parse_args(arguments)
    try:
        answers = [answer for answer in scored_answers(options.sources) if answer[0].benchmark == "causim"]
    except CalibrantError as error:
        print(f"bench.lab.causim: {error}", file=sys.stderr)
        return 2
    programs = shown_programs(items_of_pools("causim", options.pool))
    tables = paper_tables(questions_asked(named_answers(answers), programs))
    sys.stdout.write("\n\n".join(text_of(table) for table in tables) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
