"""Reference pages made from the program: `python -m tests.support.pages.reference` writes commands.md and formats.md.

Usage, options and exit codes come from the command tree, fields from the JSON Schemas, and what examples print from a
run of each in a folder of its own. tests/test_pages.py runs the examples again.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import chdir
from pathlib import Path
from typing import Any
from unittest.mock import patch

from calibrant.bench.cli import _command
from calibrant.bench.core.names import TITLES
from calibrant.bench.help import GROUPS, exit_codes
from calibrant.bench.schemas import SCHEMAS
from calibrant.dsl.knowledge import ARC_WORDS, ARITIES, MAX_DEPTH, SCM_WORDS, SKIPPED_COMMANDS
from tests.support.commands import CHECKOUT
from tests.support.pages.blocks import ELLIPSIS, run_line
from tests.support.pages.declared import SETUPS
from tests.support.pages.pictures import gallery_page

COMMANDS_PAGE, FORMATS_PAGE = CHECKOUT / "docs" / "commands.md", CHECKOUT / "docs" / "formats.md"
GALLERY_PAGE = CHECKOUT / "docs" / "gallery.md"
NOT_EXECUTED = {
    "demo": "`make demo` runs it; it takes one to two minutes.",
    "difficulty": "It needs answers of several systems; [difficulty](difficulty.md) shows one.",
    "pool subset": "It needs runs of several systems; [difficulty](difficulty.md) shows one.",
    "release": "It takes a minute; [releases](releases.md) builds a suite.",
    "submission": "It needs a suite; [releases](releases.md) builds one, and submits to it.",
    "board": "It needs a suite; [releases](releases.md) builds one, and its board.",
    "bench evaluator": "Its figures are those of the machine; [the evaluator](evaluator.md) has some.",
    "export": "It needs the extra `hub`; [data sets](hub.md) shows an export.",
}
EXAMPLES: Mapping[str, str] = {
    "list": "calibrant list switches.jsonl --why",
    "show": "calibrant show switches.jsonl lamp --why",
    "family": "calibrant family prior.sif cells.csv --fit 0.1 --size 2",
    "network": "calibrant network feedback.bnet --attractors --clamp signal=1",
    "fit": "calibrant fit switches.csv --target lamp",
    "play": "calibrant play detectors.jsonl",
    "prompts": "calibrant prompts detectors.jsonl --limit 1 --text",
    "score": "calibrant score switches.jsonl answers.jsonl --out scores.jsonl",
    "table": "calibrant table scores.jsonl",
    "report": "calibrant report scores.jsonl --table 1 --no-paper",
    "run": "calibrant run exact switches.jsonl --out runs",
    "protocols": "calibrant protocols static --benchmark blickets",
    "alternatives": "calibrant alternatives runs --out alternatives.jsonl",
    "audit": "calibrant audit switches.jsonl --certificates certificates",
    "separate": "calibrant separate switches.jsonl lamp",
    "verify": "calibrant verify certificates/*.json switches.jsonl",
    "generate": "calibrant generate --benchmark blickets --seed 1 --strata conjunctive --per-stratum 2 --out new.jsonl",
    "sample": "calibrant sample --seed 1 --per-stratum 1 --strata hs_n6_easy_calibration --out pool.jsonl",
    "harden": "calibrant harden pool.jsonl --out hard.jsonl",
    "training": "calibrant training causim.jsonl --limit 4 --out training.jsonl",
    "variants": "calibrant variants switches.jsonl --kinds rename --copies 1 --out variants.jsonl",
    "pool distinct": "calibrant pool distinct detectors.jsonl different.jsonl",
    "pool split": "calibrant pool split detectors.jsonl --by model --shares .5,.5 --out parts",
    "pool check": "calibrant pool check pool.jsonl",
    "pool stats": "calibrant pool stats detectors.jsonl",
    "pool convert": "calibrant pool convert pool.jsonl pool.yaml",
    "pool alternatives": "calibrant pool alternatives pool.jsonl alternative_scm.jsonl --seed 1",
    "pool unpack": "calibrant pool unpack causim.jsonl programs",
    "pool schema": "calibrant pool schema",
    "schema": "calibrant schema verdicts",
}
MAX_LINES, FIRST_LINES, LAST_LINES = 14, 6, 4  # of what an example prints

COMMANDS_HEAD = """# Commands

Every command with its usage, options, exit codes and an example, generated from the program
(`python -m tests.support.pages.reference`). `-h` and `--help` print the same on a terminal. The files `switches.jsonl`,
`switches.csv`, `answers.jsonl`, `prior.sif`, `cells.csv` and `feedback.bnet` are in `docs/examples`; `detectors.jsonl`
and `causim.jsonl` are the bundled pools of the extended blickets and of CauSim. A line `...` stands for lines
that are left out here.

Tables go to standard output, JSON too; what was recognised, hints and commands to run next go to standard error.
The width is that of the terminal; in a pipe or a file it is 80. `COLUMNS` (40 to 400) sets another. An error is a line
`error`, and where another command would work a line `hint`.

No command replaces a file that is there already: it is refused (exit code 2), and the `hint` is the same command with
a free path. Two kinds are made again: a page (HTML) takes the place of a page that Calibrant wrote, a picture (SVG)
that of one that it drew. In folders that a command can continue (`run`, `audit --out`, `play --out`, `POOL.unfinished`
of `harden` and `generate`) it continues; `demo` replaces its own report.
"""
FORMATS_HEAD = """# File formats

Fields of the files that commands read and write, generated from the JSON Schemas
(`python -m tests.support.pages.reference`). `calibrant schema NAME --benchmark BENCHMARK` prints a schema. All but
certificates are JSON lines, and a table is about one line. [Pools](pools.md) and [predictions](predictions.md) have
examples.
"""


KNOWLEDGE_SECTION = f"""## Knowledge and assumptions

The file of `--knowledge` of `fit --score`, and of `--assume` of `fit` and `list --why`: plain text in UTF-8, one statement a line. A line that
begins with `#` or `;` is a comment. Meanings: [side knowledge of SCMs](engines.md#side-knowledge), [knowledge of
networks](structure_learning.md#knowledge), which has no {", ".join(f"`{word}`" for word in SCM_WORDS)}.

| line begins with | what follows |
|---|---|
| {", ".join(f"`{word}`" for word in ARC_WORDS)} | arcs `A -> B`, separated by commas |
| `tiers` | names, separated by commas within a tier and by `<` between tiers |
| `order`, `roots`, `no-common-parent` | names, separated by commas |
| `max-parents` | a number |
| `max-parents-of` | `NAME=NUMBER`, separated by commas |
| `(assert` | one formula of SMT-LIB 2 and `)`, on one line: {", ".join(f"`{operator}`" for operator in ARITIES)}, `true`, `false`, arcs `\\|A -> B\\|`; at most {MAX_DEPTH} parentheses inside each other |
| {", ".join(f"`({command}`" for command in SKIPPED_COMMANDS)} | skipped |

Names are those of columns or variables. One with a comma, an arrow or `<` is quoted like a CSV cell.
"""  # noqa: E501  # rows of a table


def commands() -> Iterator[tuple[str, str, Any]]:
    """Yield heading, name and command of every command, in the order of the help."""
    tree = _command().commands
    for heading, names in GROUPS.items():
        for name in names:
            if hasattr(tree[name], "commands"):
                yield from ((heading, f"{name} {inner}", found) for inner, found in tree[name].commands.items())
            else:
                yield heading, name, tree[name]


def commands_page(*, run: bool = True) -> str:
    """Return the page of commands; their examples are run in a folder of their own, or printed without output."""
    parts, last = [COMMANDS_HEAD], ""
    variables = SETUPS["docs/commands.md"].variables
    with tempfile.TemporaryDirectory() as folder, chdir(folder), patch.dict(os.environ, variables):
        for heading, name, command in commands():
            if heading != last:
                parts.append(f"## {heading}\n")
                last = heading
            parts.append("\n".join(_section(name, command, run=run)))
    return "\n".join(parts)


def _section(name: str, command: Any, *, run: bool) -> Iterator[str]:
    context = command.make_context(f"calibrant {name}", [], resilient_parsing=True)
    yield f"### `calibrant {name}`"
    yield from (f"{' '.join(paragraph.split())}\n" for paragraph in (command.help or "").split("\n\n"))
    usage = re.sub(r"[{}]", "", command.get_usage(context).removeprefix("Usage: "))
    yield f"Usage: `{' '.join(usage.split())}`\n"
    yield "| argument or option | meaning |\n|---|---|"
    for parameter in command.params:
        record = parameter.get_help_record(context)
        if record is not None:
            spelling = record[0].replace("<path>", "").replace("<str>", "").strip()
            yield f"| `{_cell(spelling)}` | {_cell(record[1])} |"
    yield ""
    codes = "; ".join(f"{code}: {meaning}" for code, meaning in exit_codes(name).items())
    yield f"Exit codes: {codes}.\n"
    yield f"{NOT_EXECUTED[name]}\n" if name in NOT_EXECUTED else _example(EXAMPLES[name], run=run)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _example(line: str, *, run: bool) -> str:
    if not run:
        return f"```console\n$ {line}\n```\n"
    for file, write in SETUPS["docs/commands.md"].files.items():
        if file in line and not Path(file).exists():
            write(Path(file))
    done = run_line(line)
    printed = (done.stdout + done.stderr).rstrip().splitlines()
    if len(printed) > MAX_LINES:
        printed = [*printed[:FIRST_LINES], ELLIPSIS, *printed[-LAST_LINES:]]
    return "\n".join(["```console", f"$ {line}", *printed, "```", ""])


def formats_page() -> str:
    """Return the page of file formats."""
    parts = [FORMATS_HEAD]
    for name, schema in SCHEMAS.items():
        parts.append(f"## {name.capitalize()}\n")
        written: dict[str, list[str]] = {}
        for benchmark in TITLES:
            try:
                text = _schema_tables(schema(benchmark))
            except Exception as error:  # a benchmark without such files
                text = f"There are none: {error}.\n"
            written.setdefault(text, []).append(TITLES[benchmark])
        for text, titles in written.items():
            parts.append(f"### {name.capitalize()}: {', '.join(titles)}\n\n{text}")
    return "\n".join([*parts, KNOWLEDGE_SECTION])


def _schema_tables(schema: Mapping[str, Any]) -> str:
    """Return a table for each object of a schema, the whole first."""
    definitions = schema.get("$defs", {})
    root = schema.get("$ref", "").rpartition("/")[2]
    named = {root: definitions[root]} if root else {"": schema}
    named |= {name: part for name, part in definitions.items() if name != root}
    values = {f"#/$defs/{name}": part for name, part in definitions.items() if "enum" in part}
    return "\n".join(_table(name, part, values) for name, part in named.items() if part.get("properties"))


def _table(name: str, part: Mapping[str, Any], values: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the fields of an object; values: enumerations by reference, whose values stand in place of their name."""
    required = part.get("required", ())
    rows = [
        f"| `{field}` | {_type(of, values)}{'' if field in required else ', optional'} | {_cell(_meaning(of))} |"
        for field, of in part["properties"].items()
    ]
    title = f"**{name}**. {part.get('description', '')}".strip() if name else ""
    return "\n".join([title, "", "| field | type | meaning |", "|---|---|---|", *rows, ""])


def _meaning(of: Mapping[str, Any]) -> str:
    return str(of.get("description", ""))


def _type(of: Mapping[str, Any], values: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the type of a field in words."""
    of = values.get(of.get("$ref", ""), of)
    if "$ref" in of:
        return f"*{of['$ref'].rpartition('/')[2]}*"
    if "anyOf" in of:
        return " or ".join(dict.fromkeys(_type(part, values) for part in of["anyOf"]))
    if "enum" in of:
        return ", ".join(f"`{value}`" for value in of["enum"])
    if "const" in of:
        return f"`{of['const']}`"
    kind = of.get("type", "any")
    if kind == "array":
        return f"list of {_type(of['items'], values)}" if of.get("items") else "list"
    if kind == "object" and isinstance(of.get("additionalProperties"), Mapping):
        return f"object of {_type(of['additionalProperties'], values)}"
    return " or ".join(kind) if isinstance(kind, Sequence) and not isinstance(kind, str) else str(kind)


def main() -> None:
    COMMANDS_PAGE.write_text(commands_page(), encoding="utf-8")
    FORMATS_PAGE.write_text(formats_page(), encoding="utf-8")
    GALLERY_PAGE.write_text(gallery_page(), encoding="utf-8")


if __name__ == "__main__":
    main()
