"""The command `python -m calibrant.bench.lab.causim`: the tables of the paper alone, or with answers beside them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

from calibrant.bench.causim.paper import paper_tables, questions_asked, shown_programs
from calibrant.bench.lab.renamings import Alike, RenamedItem, permuted_names
from calibrant.bench.papers import text_of
from calibrant.bench.report.rows import named_answers
from calibrant.bench.report.sources import items_of_pools, scored_answers
from calibrant.dsl.causim.item import CausimItem, Sealed
from calibrant.dsl.causim.model import Model, value_of
from calibrant.dsl.errors import CalibrantError
from calibrant.solvers.causim.canonical import ModelNames, rename_task, value_roles


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the paper's tables with rows on these answers. Return 0, or 2 if a source cannot be read."""
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


# --- Questions about programs with other nodes, noise and values, and functions in another order ----------------------


def alike(item: CausimItem) -> Alike:
    """Return the roles of the values of nodes and noise variables."""
    return Alike({}, {key: {value_of(s): role for s, role in v.items()} for key, v in value_roles(item.task).items()})


def rename(item: CausimItem, random: Random) -> RenamedItem:
    """Return a question over permuted names of nodes and noise and permuted values, in another topological order."""
    model = item.task.model
    keys = permuted_names(model.names, random) | permuted_names(model.noises, random)
    values = {
        key: permuted_names(domain, random)
        for node, local in zip(model.nodes, model.system, strict=True)
        for key, domain in ((node.name, local.domain), (node.noise, node.support))
    }
    names = ModelNames(_random_order(model, random), keys, values)
    sealed = Sealed(names.assignment(item.sealed.world))
    plain = {key: {value_of(old): value_of(new) for old, new in listed.items()} for key, listed in values.items()}
    renamed = replace(item, task=rename_task(item.task, names), sealed=sealed)
    return RenamedItem(renamed, keys, values=plain, value_roles=alike(renamed).value_roles)


def _random_order(model: Model, random: Random) -> tuple[int, ...]:
    waiting = [len(node.parents) for node in model.nodes]
    ready = [position for position, number in enumerate(waiting) if not number]
    order = []
    while ready:
        order.append(ready.pop(random.randrange(len(ready))))
        for child in model.children[order[-1]]:
            waiting[child] -= 1
            if not waiting[child]:
                ready.append(child)
    return tuple(order)


if __name__ == "__main__":
    sys.exit(main())
