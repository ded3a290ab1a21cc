"""Reference pages made from the program: `python -m tests.support.pages.reference` writes them.

commands.md, formats.md and api.md are lists; the folders of these names have a page for each group of commands and for
each kind of file. Usage, options and exit codes come from the command tree, fields from the JSON Schemas, and what
examples print from a run of each page in a folder of its own. tests/test_pages.py runs the examples again. The pages of
docs/names are written by hand around signatures and docstrings, which Sphinx reads; their list is made from both.
"""

from __future__ import annotations

import inspect
import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import chdir
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest.mock import patch

import calibrant
from calibrant.bench.cli import _command
from calibrant.bench.core.names import TITLES
from calibrant.bench.core.registry import benchmark
from calibrant.bench.help import GROUPS, exit_codes, short_help
from calibrant.bench.pools.capabilities import HARDEN
from calibrant.bench.schemas import SCHEMAS
from calibrant.dsl.knowledge import ARC_WORDS, ARITIES, MAX_DEPTH, SCM_WORDS, SKIPPED_COMMANDS
from tests.support.commands import CHECKOUT
from tests.support.pages.blocks import ELLIPSIS, run_line
from tests.support.pages.declared import SETUPS, PageSetup
from tests.support.pages.pictures import gallery_page

DOCS = CHECKOUT / "docs"
NOT_EXECUTED = {
    "demo": "`make demo` runs it; it takes one to two minutes.",
    "difficulty": "It needs answers of several systems; [difficulty](../difficulty.md) shows one.",
    "pool subset": "It needs runs of several systems; [difficulty](../difficulty.md) shows one.",
    "release": "It takes a minute; [releases](../releases.md) builds a suite.",
    "submission": "It needs a suite; [releases](../releases.md) builds one, and submits to it.",
    "board": "It needs a suite; [releases](../releases.md) builds one, and its board.",
    "bench evaluator": "Its figures are those of the machine; [the evaluator](../evaluator.md) has some.",
    "export": "It needs the extra `hub`; [data sets](../hub.md) shows an export.",
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

Every command with its usage, options, exit codes and an example, generated from the program (`python -m
tests.support.pages.reference`). `-h` and `--help` print the same on a terminal. In the examples `switches.jsonl`,
`switches.csv`, `answers.jsonl`, `prior.sif`, `cells.csv` and `feedback.bnet` are in `docs/examples`;
`detectors.jsonl` and `causim.jsonl` are the bundled pools of the extended blickets and of CauSim, `pool.jsonl` is
that of `calibrant sample`. A line `...` stands for lines that are left out.
"""
COMMANDS_FOOT = """
## Output, errors and files
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
FILE_KINDS = {  # of a schema: who writes such files
    "records": "written by `calibrant run` and `play`, a line for each item that a method or a person answered",
    "verdicts": "written by `calibrant score --out`, a line for each answer",
    "audits": "written by `calibrant audit --out`, a line for each item",
    "certificates": "written by `calibrant audit --certificates`, a claim that `verify` checks",
    "pools": "items: written by {}, or by yourself",
    "training": "written by `calibrant training`, worked solutions",
}
NAMES_HEAD = """# Public names

Each name below is `calibrant.NAME`. It is loaded at its first use and typed for strict checkers. Names that are not
on these pages may change without notice. A page has the signature, the docstring and an example that runs as it
stands.

Wrong arguments raise a `CalibrantError` of one line. Reprs fit a line and show nothing that is sealed; `print` of a
fit or of an outcome without an answer shows its text. Functions take the benchmark from the item, so they are the
same for all benchmarks. Options are keywords and are checked before any work starts. `separate` and `harden` support
ReplaySCM alone and refuse other items.

In a notebook items, SCMs, families, answers, version spaces, fits, tables and records are pictures: the graph, the
evidence and the formulas as the pages draw them, in light and dark, in one HTML element that loads nothing. A picture
has at most 24 rows and 24 nodes. It shows what the value holds; nothing is counted, solved or compiled for it, and of
an item nothing sealed.
"""
NAMES: Mapping[str, tuple[str, ...]] = {  # pages of docs/names by task
    "Pools, items and episodes": ("load_pool", "generate", "open_episode", "text_episode", "datasets"),
    "Scoring": ("score", "score_many", "table", "evaluate", "rewards"),
    "Solving": ("solve", "protocols", "run"),
    "What the evidence leaves open": ("version_space", "audit", "separate", "harden"),
    "Tables of your own": ("read_table", "fit", "learn_networks", "rank_graph", "network_class", "BooleanSCM"),
    "Models of cells": ("logic_family", "read_network"),
    "Errors and version": ("errors",),
}

KNOWLEDGE_PAGE = f"""# Knowledge and assumptions

The file of `--knowledge` of `fit --score`, and of `--assume` of `fit` and `list --why`: plain text in UTF-8, one statement a line. A line that
begins with `#` or `;` is a comment. Meanings: [side knowledge of SCMs](../engines.md#side-knowledge), [knowledge of
networks](../structure_learning.md#knowledge), which has no {", ".join(f"`{word}`" for word in SCM_WORDS)}.

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


def command_pages(*, run: bool = True) -> dict[Path, str]:
    """Return the pages of commands by file; examples of a page are run in one folder, or printed without output."""
    groups: dict[str, list[tuple[str, Any]]] = {}
    for heading, name, command in commands():
        groups.setdefault(heading, []).append((name, command))
    pages, index = {}, [COMMANDS_HEAD]
    for heading, members in groups.items():
        file = f"commands/{_slug(heading)}.md"
        rows = [f"| [`{name}`]({file}#calibrant-{_slug(name, '-')}) | {_short_help(name)} |" for name, _ in members]
        index.append("\n".join([f"## {heading}", "| command | what it does |", "|---|---|", *rows, ""]))
        pages[DOCS / file] = _group_page(heading, members, f"docs/{file}", run=run)
    tree = _toctree([f"commands/{_slug(heading)}" for heading in groups])
    return {DOCS / "commands.md": "\n".join([*index, COMMANDS_FOOT, tree])} | pages


def _slug(text: str, separator: str = "_") -> str:
    return text.lower().replace(" ", separator)


def _toctree(pages: Sequence[str]) -> str:
    """Return the list of pages below one, which the site shows beside its text."""
    return "\n".join(["```{toctree}", ":hidden:", "", *pages, "```", ""])


def _short_help(name: str) -> str:
    """Return the first sentence of a command's help in the list of `--help`, or of its own."""
    command = next(command for _, other, command in commands() if other == name)
    try:
        return short_help(name)
    except StopIteration:  # below a group, which is in the list
        return _cell((command.help or "").partition(".")[0])


def _group_page(heading: str, members: Sequence[tuple[str, Any]], page: str, *, run: bool) -> str:
    parts = [f"# Commands: {heading.lower()}\n\n[All commands](../commands.md) says which files the examples read.\n"]
    setup = SETUPS[page]
    with tempfile.TemporaryDirectory() as folder, chdir(folder), patch.dict(os.environ, setup.variables):
        parts += ["\n".join(_section(name, command, setup, run=run)) for name, command in members]
    return "\n".join(parts)


def _section(name: str, command: Any, setup: PageSetup, *, run: bool) -> Iterator[str]:
    context = command.make_context(f"calibrant {name}", [], resilient_parsing=True)
    yield f"## `calibrant {name}`"
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
    yield f"{NOT_EXECUTED[name]}\n" if name in NOT_EXECUTED else _example(EXAMPLES[name], setup, run=run)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _example(line: str, setup: PageSetup, *, run: bool) -> str:
    if not run:
        return f"```console\n$ {line}\n```\n"
    for file, write in setup.files.items():
        if file in line and not Path(file).exists():
            write(Path(file))
    done = run_line(line)
    printed = (done.stdout + done.stderr).rstrip().splitlines()
    if len(printed) > MAX_LINES:
        printed = [*printed[:FIRST_LINES], ELLIPSIS, *printed[-LAST_LINES:]]
    return "\n".join(["```console", f"$ {line}", *printed, "```", ""])


def format_pages() -> dict[Path, str]:
    """Return the pages of file formats by file: one for each schema and the benchmarks that share it."""
    pages: dict[Path, str] = {}
    rows = ["| files | of | what they are |", "|---|---|---|"]
    for name, schema in SCHEMAS.items():
        written: dict[str, list[str]] = {}
        for owner in TITLES:
            written.setdefault(_schema_tables(schema(owner)), []).append(owner)
        for text, benchmarks in written.items():
            titles = ", ".join(TITLES[each] for each in benchmarks)
            file = f"formats/{name}.md" if len(benchmarks) > 1 else f"formats/{name}_{benchmarks[0]}.md"
            about = f" of {titles}" if len(written) > 1 else ""
            kind = FILE_KINDS[name].format(_pool_makers(benchmarks))
            rows.append(f"| [{name}]({file}) | {titles} | {kind} |")
            pages[DOCS / file] = f"# {name.capitalize()}{about}\n\n{_sentence(kind)}.\n\n{text}"
    pages[DOCS / "formats" / "knowledge.md"] = KNOWLEDGE_PAGE
    rows.append("| [knowledge](formats/knowledge.md) | ReplaySCM, networks | lines of `--knowledge` and `--assume` |\n")
    tree = _toctree([f"formats/{file.stem}" for file in pages])
    return {DOCS / "formats.md": "\n".join([FORMATS_HEAD, *rows, tree])} | pages


def _pool_makers(benchmarks: Sequence[str]) -> str:
    """Return the commands that write pools of these benchmarks; `sample` is ReplaySCM's."""
    commands = ["`calibrant generate`", *(["`sample`"] if [*benchmarks] == ["replayscm"] else [])]
    commands += ["`harden`"] if all(benchmark(name).capability(HARDEN) is not None for name in benchmarks) else []
    *others, last = commands
    return f"{', '.join(others)} and {last}" if others else last


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def names_page() -> str:
    """Return the list of public names: by task, each with the first sentence of its docstring."""
    parts = [NAMES_HEAD]
    for task, pages in NAMES.items():
        rows = ["| page | what it does | also there |", "|---|---|---|"]
        for page in pages:
            title, *others = re.findall(r"^##? `?([\w. ]+)`?$", (DOCS / f"names/{page}.md").read_text("utf-8"), re.M)
            about = inspect.getdoc(_public(page)) or ""
            first = re.sub(r"(?<!`)`([^`]+)`(?!`)", r"`\1`", _cell(about.split("\n\n")[0].split(". ")[0].rstrip(".")))
            rows.append(f"| [{title}](names/{page}.md) | {first} | {', '.join(f'`{name}`' for name in others)} |")
        parts.append("\n".join([f"## {task}", *rows, ""]))
    parts.append("Tasks and solvers for Inspect are in calibrant.inspect: [Inspect](inspect.md).\n")
    return "\n".join([*parts, _toctree([f"names/{page}" for pages in NAMES.values() for page in pages])])


def _public(page: str) -> Any:
    """Return the function or module that a page of docs/names is about; of errors the base of all."""
    if page == "errors":
        return calibrant.CalibrantError
    return getattr(calibrant, page) if page in calibrant.__all__ else import_module(f"calibrant.{page}")


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
    texts = command_pages() | format_pages() | {DOCS / "gallery.md": gallery_page(), DOCS / "api.md": names_page()}
    for file, text in texts.items():
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
