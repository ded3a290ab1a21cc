"""calibrant prompts"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from bench.commands.guard import WRITES
from bench.commands.options import PoolPath
from dsl.errors import in_one_line
from dsl.whole_file import write_whole


def prompts(
    pool: PoolPath,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Write them there. [default: standard output]"), WRITES
    ] = None,
    only: Annotated[list[str] | None, typer.Option(metavar="ID", help="Only this instance; may be repeated.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first so many instances.")] = None,
    text: Annotated[bool, typer.Option("--text", help="Plain text to read, instead of JSON lines.")] = False,
) -> None:
    """Write the prompt of every instance, a JSON object a line: instanceId, system, prompt.

    They hold what is disclosed and the training worlds; held-out worlds and gold are not handed to what writes them.
    Responses, as JSON lines of instanceId, model and response, are scored by `calibrant score`.
    """
    from bench.pools.show import find_instance
    from bench.runs.runner import Selection
    from dsl.replayscm.pools.files import read_pool
    from dsl.replayscm.prompt import SYSTEM, prompt

    loaded = read_pool(pool, keep_results=False)
    for instance in only or ():
        find_instance(loaded, instance)  # refuses an unknown id, naming close ones
    chosen = [problem for _, problem in Selection(frozenset(only or ()), limit).of(loaded)]
    if text:
        written = "\n".join(f"# {in_one_line(problem.id)}\n\n{SYSTEM}\n\n{prompt(problem.task)}" for problem in chosen)
    else:
        records = ({"instanceId": p.id, "system": SYSTEM, "prompt": prompt(p.task)} for p in chosen)
        written = "".join(f"{json.dumps(record)}\n" for record in records)
    if out is None:
        typer.echo(written, nl=False)
    else:
        write_whole(out, written)
        typer.echo(f"{len(chosen)} prompts written to {out}", err=True)
