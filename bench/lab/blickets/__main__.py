"""The command `python -m calibrant.bench.lab.blickets`: agents under the paper's conditions, its tables, findings.

`learners` is the table of the exact learners beside the figures that a prototype gave.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from calibrant.baselines.blickets.grid import GRID
from calibrant.bench.blickets.agents import agent
from calibrant.bench.blickets.paper import paper_tables, setup_tables
from calibrant.bench.lab.blickets.findings import paper_findings
from calibrant.bench.lab.blickets.learners import learner_table
from calibrant.bench.lab.blickets.results import (
    DEFAULT_AGENTS,
    DEFAULT_SUITES,
    SEED,
    agent_table,
    all_played,
)
from calibrant.bench.lab.table_text import text_of
from calibrant.dsl.blickets.generation import SUITES
from calibrant.dsl.errors import CalibrantError, short_repr

TABLES = ("standing", "learners", "paper", "findings", "setup")


def main(arguments: Sequence[str] | None = None) -> int:
    """Play, count, print; 0, or 2 if a library is missing."""
    options = _arguments().parse_args(arguments)
    try:
        sys.stdout.write(_findings() if options.table == "findings" else _tables(options))
    except CalibrantError as error:
        print(f"bench.lab.blickets: {error}", file=sys.stderr)
        return 2
    return 0


def _findings() -> str:
    return "".join(
        f"{finding.kind}, {finding.verdict}: {finding.where}: {finding.claim}\n" for finding in paper_findings()
    )


def _tables(options: argparse.Namespace) -> str:
    if options.table == "setup":
        return "\n\n".join(map(text_of, setup_tables())) + "\n"
    if options.table == "learners":
        return text_of(learner_table(options.episodes, seed=options.seed, jobs=options.jobs)) + "\n"
    agents = [member.name for member in GRID] if options.grid else options.agents
    episodes = all_played(agents, options.suites, options.episodes, seed=options.seed, jobs=options.jobs)
    tables = (agent_table(episodes),) if options.table == "standing" else paper_tables(episodes)
    return "\n\n".join(text_of(table) for table in tables) + "\n"


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m calibrant.bench.lab.blickets", description="Agents beside printed rows."
    )
    parser.add_argument(
        "table",
        choices=TABLES,
        help="where agents stand; learners beside a prototype's figures; Tables 5 to 11; what the paper's figures show",
    )
    parser.add_argument("--agents", nargs="+", type=_agent, default=DEFAULT_AGENTS, metavar="NAME")
    parser.add_argument("--grid", action="store_true", help="the 27 agents of the grid instead")
    parser.add_argument("--suites", nargs="+", choices=list(SUITES), default=DEFAULT_SUITES, metavar="NAME")
    parser.add_argument("--episodes", type=_positive, default=500, help="of each agent in each suite")
    parser.add_argument("--seed", type=int, default=SEED, help="of items and agents")
    parser.add_argument("--jobs", type=_positive, default=1)
    return parser


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"a whole number of 1 or more was expected, found {short_repr(text)}")
    return int(text)


def _agent(name: str) -> str:
    try:
        agent(name)
    except CalibrantError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return name


if __name__ == "__main__":
    sys.exit(main())
