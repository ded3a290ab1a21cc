"""Commands: calibrant prompts, export (data sets of prompts) and training (worked solutions)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypeAlias

import typer

from calibrant.bench.commands.guard import READS, WRITES
from calibrant.bench.commands.options import Aid, Limit, NewFolder, Only, PoolPath, PoolPaths
from calibrant.bench.help import INPUT, METHOD, OUTPUT
from calibrant.bench.terminal import json_text, typed_json
from calibrant.dsl.atomic_write import write_pieces
from calibrant.dsl.errors import in_one_line
from calibrant.dsl.text import known_names, plural

if TYPE_CHECKING:
    from calibrant.bench.core.benchmark import Benchmark
    from calibrant.bench.terminal import NextCommand

FIRST_CORRECT = "first-correct"
THINK = (
    "Reason first, between <think> and </think>. After the closing tag give your answer alone, in the form that is"
    " asked for; nothing between the tags counts as an answer."
)


def prompts(
    pool: PoolPath,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="FILE", help="Write them there. [default: standard output]", rich_help_panel=OUTPUT
        ),
        WRITES,
    ] = None,
    only: Only = None,
    limit: Limit = None,
    text: Annotated[
        bool, typer.Option("--text", help="Plain text to read, instead of JSON lines.", rich_help_panel=OUTPUT)
    ] = False,
    system: Annotated[
        Literal["usual", "think"],
        typer.Option(
            help="System text: the usual one, or with a request to reason in <think> tags.", rich_help_panel=OUTPUT
        ),
    ] = "usual",
    phase: Annotated[
        Literal["experiment", "reactor"] | None,
        typer.Option(
            help="Of CausaLab: one phase of its paper's protocol, with replies in the paper's format.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    aid: Aid = None,
    template: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write prompts by this Jinja2 template over fields of the items; standard: the bundled one.",
            rich_help_panel=OUTPUT,
        ),
        READS,
    ] = None,
) -> None:
    """Write what a model is asked for every item, a JSON object a line: instanceId, system, prompt, promptDigest.

    They hold what is disclosed and the training worlds; held-out worlds and gold are not handed to what writes them.
    instanceId is the public id: it tells nothing of the item. Responses, as JSON lines of instanceId, model and
    response, are scored by `calibrant score POOL`, which takes either id. Where a line repeats promptDigest, the
    SHA-256 of prompt (with --phase, --aid and --template of the usual one), `score` refuses it for another item of the
    same id. With --template lines state the template's digest; a field that it does not read, or that is none, is an
    error (docs/prompts.md).
    """
    from calibrant.bench.core.benchmark import PublicPool
    from calibrant.bench.core.items import refuse_empty
    from calibrant.bench.core.registry import benchmark_of
    from calibrant.bench.runs.runner import Selection
    from calibrant.bench.terminal import NextCommand, print_next, unused_path

    bench = benchmark_of(pool)
    write = _prompt_writer(bench, phase, aid, template)
    items = PublicPool(bench, pool)
    refuse_empty(len(items.items), pool)
    chosen = (items.shown(item) for _, item in Selection(items.check(only or ()), limit).of(items.items))

    texts = map(write, chosen)
    if system == "think":
        texts = map(_with_think_tags, texts)
    _write(texts, out, text=text)
    if out is not None:
        print_next([NextCommand(("run", "exact", pool, "--out", unused_path("runs")), "what the exact solver answers")])


def _prompt_writer(
    bench: Benchmark[Any], phase: str | None, aid: Path | None, template: Path | None
) -> Callable[[Any], _Prompt]:
    """Return the function item -> prompt; `CalibrantError` if the benchmark lacks the phase or the aid."""
    from calibrant.bench.core.capabilities import AIDS, PHASES, PROMPT_FIELDS
    from calibrant.bench.prompt_template import PromptTemplate  # imports jinja2

    own_template = None if template is None else PromptTemplate(template, bench.require(PROMPT_FIELDS))
    phases = None if phase is None else bench.require(PHASES)
    aided = None if aid is None else bench.require(AIDS)

    def write(item: Any) -> _Prompt:
        usual_system, usual = bench.items.system_and_prompt(item)
        prompt = _Prompt(item.id, usual_system, usual, usual)
        if own_template is not None:
            of_template, user = own_template.render(item.id, item.task, phase or "")
            prompt = prompt._replace(system=of_template, prompt=user, template=own_template.digest)
        elif phases is not None and phase is not None:
            of_phase, user = (message["content"] for message in phases(item, phase))
            prompt = prompt._replace(system=of_phase, prompt=user)
        if aided is not None and aid is not None:
            prompt = prompt._replace(prompt=f"{prompt.prompt}\n\n{aided(item, (), aid)}", aid=aid.name)
        return prompt

    return write


def _with_think_tags(prompt: _Prompt) -> _Prompt:
    return prompt._replace(system="\n\n".join(filter(None, (prompt.system, THINK))))


class _Prompt(NamedTuple):
    """The prompt of an instance.

    usual: the default prompt, whose digest identifies the item; `prompt` may differ by phase, aid or template
    aid: name of the shown aid; template: digest of the user's template; empty for none
    """

    instance: str
    system: str
    prompt: str
    usual: str
    aid: str = ""
    template: str = ""


def _write(prompts: Iterable[_Prompt], out: Path | None, *, text: bool) -> None:
    """Write one prompt after the other."""
    if text:
        texts = (
            "\n\n".join(part for part in (f"# {in_one_line(name)}", system, prompt) if part)
            for name, system, prompt, *_ in prompts
        )
        pieces = (f"\n{prompt_text}" if index else prompt_text for index, prompt_text in enumerate(texts))
    else:
        write_line = typed_json if out is not None else partial(json_text, indent=None)
        pieces = (f"{write_line(_record(prompt))}\n" for prompt in prompts)
    if out is None:
        for piece in pieces:
            typer.echo(piece, nl=False)
    else:
        from calibrant.bench.terminal import print_written

        number = write_pieces(out, pieces)
        print_written(out, plural(number, "prompts"))


def _record(prompt: _Prompt) -> dict[str, str]:
    from calibrant.bench.scoring.predictions import PROMPT_DIGEST, prompt_digest

    digest = prompt_digest(prompt.usual)
    record = {"instanceId": prompt.instance, "system": prompt.system, "prompt": prompt.prompt, PROMPT_DIGEST: digest}
    origin = {"aid": prompt.aid, "template": prompt.template}
    return record | {name: text for name, text in origin.items() if text}


def export(
    pools: PoolPaths,
    out: NewFolder,
    name: Annotated[
        str,
        typer.Option(metavar="TEXT", help="Title of the data set. [default: the pools' names]", rich_help_panel=OUTPUT),
    ] = "",
    license_: Annotated[
        str,
        typer.Option(
            "--license", metavar="ID", help="License of the data, as the Hub names it.", rich_help_panel=OUTPUT
        ),
    ] = "",
    split: Annotated[
        str,
        typer.Option(
            "--split", metavar="NAME", help="Split that the items are, as train or test.", rich_help_panel=OUTPUT
        ),
    ] = "test",
    audits: Annotated[
        Path | None,
        typer.Option(
            "--audits",
            metavar="DIR",
            help="Folder of `calibrant audit --out`, whose counts cards state.",
            rich_help_panel=INPUT,
        ),
        READS,
    ] = None,
) -> None:
    """Write pools as data sets for the Hub: Parquet, a card and Croissant metadata, with gold apart.

    DIR/questions has prompts and nothing sealed, and may be published; DIR/gold has records, right answers and labels
    of difficulty too, as trainers need them. Items are read back before DIR appears. Needs the extra `hub`.
    """
    from calibrant.bench.hub.export import export as write_export
    from calibrant.bench.terminal import NextCommand, print_next, print_written, unused_path

    number = write_export(pools, out, name=name, license_=license_, split=split, audits=audits)
    print_written(out, plural(number, "items"))
    check = NextCommand(("pool", "check", pools[0]), "is gold legal")
    counts = NextCommand(("audit", pools[0], "--out", unused_path("audits")), "counts for its card")
    print_next([check, *([counts] if audits is None else [])])


ResponsesOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--responses",
        metavar="FILE",
        help="Sampled completions, as `score` takes them; with --select.",
        rich_help_panel=INPUT,
    ),
    READS,
]


OrderOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Order of the curriculum, from easy to hard: version, topology, scenario.",
        rich_help_panel=METHOD,
    ),
]


def training(
    pool: PoolPath,
    out: Annotated[
        Path,
        typer.Option("--out", metavar="FILE", help="JSON lines to write: a header, examples.", rich_help_panel=OUTPUT),
        WRITES,
    ],
    order: OrderOption = None,
    curriculum: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Write a folder with a file for each block: block, at-once, easy, hard of the paper.",
            rich_help_panel=METHOD,
        ),
    ] = None,
    responses: ResponsesOption = None,
    select: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Write chats of completions: first-correct, the first right one a prompt.",
            rich_help_panel=METHOD,
        ),
    ] = None,
    only: Only = None,
    limit: Limit = None,
) -> None:
    """Write worked solutions to train on: prompt, steps, an answer, all right answers, level.

    Solutions are worked out by the exact solver: abduction, action, prediction. `calibrant schema training` has every
    field. Questions that no answer is right for are left out, and so are those beyond the solver's budget. CauSim only.
    """
    from calibrant.bench.core.capabilities import WORKED_SOLUTIONS
    from calibrant.bench.core.registry import benchmark_of
    from calibrant.bench.scoring.predictions import Predictions
    from calibrant.bench.scoring.scorer import PoolScorer
    from calibrant.bench.terminal import print_next, print_written

    bench = benchmark_of(pool)
    solutions = bench.require(WORKED_SOLUTIONS)
    orders = solutions.orders
    if curriculum is not None and curriculum not in solutions.curricula:
        names = known_names(curriculum, solutions.curricula)
        raise typer.BadParameter(f"unknown curriculum '{curriculum}'; {names}", param_hint="--curriculum")
    if select not in (None, FIRST_CORRECT):
        raise typer.BadParameter(f"unknown selection '{select}'; known: {FIRST_CORRECT}", param_hint="--select")
    if (select is None) is not (responses is None):
        raise typer.BadParameter("give both --responses and --select", param_hint="--select")
    if sum(option is not None for option in (order, curriculum, select)) > 1:
        raise typer.BadParameter("give one of --order, --curriculum and --select", param_hint="--curriculum")
    if order is not None and order not in orders:
        raise typer.BadParameter(f"unknown order '{order}'; known: {', '.join(orders)}", param_hint="--order")
    items = _selected_items(bench, pool, only or (), limit)
    if curriculum is not None or responses is not None:
        lines = (
            solutions.write_curriculum(out, items, curriculum)
            if responses is None and curriculum is not None
            else solutions.select(out, items, Predictions(responses or out, PoolScorer([pool])))
        )
        for line in lines:
            typer.echo(line, err=True)
        print_next(_after_training(pool))
        return
    num_written, left_out = solutions.write(out, items, order or orders[0])
    print_written(out, plural(num_written, "examples"))
    if left_out:
        typer.echo(f"left out, without a solution: {plural(left_out, 'instances')}", err=True)
    print_next(_after_training(pool, solutions.curricula[0]))


def _selected_items(bench: Benchmark[Any], pool: Path, only: Collection[str], limit: int | None) -> list[Any]:
    """Return the selected items of a pool; `CalibrantError` for an unknown id."""
    from calibrant.bench.core.items import refuse_empty, unknown_item
    from calibrant.bench.runs.runner import Selection

    content = bench.items.read_pool(pool)
    refuse_empty(len(content), pool)
    items = [item for _, item in Selection(frozenset(only), limit).of(content)]
    missing = sorted(set(only) - {item.id for item in items})
    if missing:
        raise unknown_item(pool.name, missing[0], [item.id for item in content.items])
    return items


def _after_training(pool: Path, curriculum: str = "") -> Iterator[NextCommand]:
    """Yield the commands to suggest after writing examples. curriculum: name, empty for none."""
    from calibrant.bench.terminal import NextCommand, unused_path

    if curriculum:
        yield NextCommand(("schema", "training"), "the fields")
        blocks = ("training", pool, "--curriculum", curriculum, "--out", unused_path("curriculum"))
        yield NextCommand(blocks, "from easy to hard")
    yield NextCommand(("prompts", pool, "--out", unused_path("prompts.jsonl")), "what a model is asked")
