"""Command `calibrant show`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from shlex import join, quote
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from calibrant.bench.commands import options
from calibrant.bench.commands.guard import READS, WRITES_PAGE, WRITES_PICTURE
from calibrant.bench.help import INPUT, OUTPUT, VIEW
from calibrant.bench.terminal import json_text
from calibrant.dsl.errors import CalibrantError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calibrant.bench.core.benchmark import Benchmark
    from calibrant.bench.scoring.answers import FieldNames


Runs: TypeAlias = Annotated[
    list[Path] | None,
    typer.Option(
        "--run",
        "--runs",
        metavar="DIR|FILE",
        help="Folder of a run, or predictions: whose episodes, or with --gold answers, are shown.",
        rich_help_panel=INPUT,
    ),
    READS,
]


Html: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--html",
        metavar="FILE",
        help="Write a page: why the item is open, or the episodes of --run.",
        rich_help_panel=OUTPUT,
    ),
    WRITES_PAGE,
]


Svg: TypeAlias = Annotated[
    Path | None,
    typer.Option("--svg", metavar="FILE", help="Write one picture of why the item is open.", rich_help_panel=OUTPUT),
    WRITES_PICTURE,
]


Public: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--public", help="Under the public id, which tells nothing of the item, to hand on.", rich_help_panel=VIEW
    ),
]


def show(
    pool: options.PoolPath,
    instance: Annotated[str, typer.Argument(metavar="ID", help="Which instance.")],
    gold: Annotated[
        bool, typer.Option("--gold", help="Also what is sealed: gold and held-out worlds.", rich_help_panel=VIEW)
    ] = False,
    runs: Runs = None,
    html: Html = None,
    steps: options.Steps = False,
    svg: Svg = None,
    why: Annotated[
        bool,
        typer.Option(
            "--why", help="Print why the item is open, also beside a page; with --json all of it.", rich_help_panel=VIEW
        ),
    ] = False,
    system: Annotated[
        str | None,
        typer.Option(
            "--system", metavar="NAME", help="Only the episodes of this protocol or model.", rich_help_panel=INPUT
        ),
    ] = None,
    id_field: options.IdField = None,
    text_field: options.TextField = None,
    model_field: options.ModelField = None,
    extractor: options.ExtractorOption = "paper",
    thoughts: options.ThoughtsChoice = None,
    as_json: options.AsJson = False,
    public: Public = False,
) -> None:
    """Show one item as a solver may see it, or why it is open; or, with --run, how it was played.

    The instance as text or --json is under its public id, as models see it; pages, pictures and reasons have ID as it
    was given, with --public the public one: ids of a pool may name stratum and seed.

    With --run the page shows every system's episode, without --html text does: on blickets step by step, with what was
    read, which hypotheses it left, and the decision; on CausaLab the graph that it stated, with what was set and which
    edges its readings proved, left open or contradicted, on the page after every step, with --gold beside the true
    graph. With --run and --gold it is shown why ReplaySCM's answers
    fail: where each mechanism differs from gold's, and whether training rows could tell. Without --run, or with --why,
    the page shows why the item is open: hypotheses that fit, where they differ, and what would settle it; with --gold
    also the truth, in a colour of its own. A page needs no network.
    """
    from calibrant.bench.core.registry import benchmark_of
    from calibrant.bench.scoring.answers import FieldNames

    fields = FieldNames(id_field, text_field, model_field, options.reading_options(extractor, thoughts))
    if not runs:
        episodes: dict[str, object] = {"--system": system, "--id-field": id_field, "--text-field": text_field}
        episodes |= {"--model-field": model_field, "--extractor": extractor != "paper", "--thoughts": thoughts}
        options.refuse_options(episodes, "it is about episodes: give --run")
    else:
        refused = {"--svg": svg, "--public": public} | ({} if why or gold else {"--json": as_json})
        options.refuse_options(refused, "with --run episodes or answers are shown, as text or as a page")
    if html is not None or svg is not None:
        options.refuse_options(
            {"--json": as_json}, f"{'--svg' if html is None else '--html'} writes a page: give one of the two"
        )
    if not (why or html or svg or gold):
        options.refuse_options({"--public": public}, "without --html, --svg, --why or --gold the id is the public one")
    options.refuse_steps_alone(html, steps=steps)
    is_unexplained = steps and runs and not why
    options.refuse_options({"--steps": is_unexplained}, "with --run it shows what readings leave: give --why too")
    bench = benchmark_of(pool)
    if runs:
        _show_answers(
            bench, pool, instance, runs, system, html, fields, gold=gold, why=why, in_steps=steps, as_json=as_json
        )
    else:
        _show(bench, pool, instance, html, svg, gold=gold, why=why, in_steps=steps, public=public, as_json=as_json)


def _show_answers(
    bench: Benchmark[Any],
    pool: Path,
    instance: str,
    runs: list[Path],
    system: str | None,
    html: Path | None,
    fields: FieldNames,
    *,
    gold: bool,
    why: bool,
    in_steps: bool,
    as_json: bool,
) -> None:
    """Show crashes on an item, then episodes, or with gold answers, of those that did not crash."""
    from calibrant.bench.scoring.answers import LineRules
    from calibrant.bench.scoring.lines import refuse_verdicts

    fields = fields._replace(rules=LineRules("skip"))  # the item's lines may be good
    refuse_verdicts(runs)
    if _print_crashes(bench, pool, instance, runs, system, writes=html is not None or as_json):
        return
    _require_views(bench, pool, runs, gold=gold and not why)
    if why:
        _explain_episode(
            bench, pool, instance, runs, system, html, fields, gold=gold, in_steps=in_steps, as_json=as_json
        )
    elif gold and _has_revealed_views(bench):
        options.refuse_options({"--json": as_json}, "episodes are shown as text or as a page")
        _show_episodes(bench, pool, instance, runs, system, html, fields, gold=True)
    elif gold:
        _explain_answers(bench, pool, instance, runs, system, html, fields, as_json=as_json)
    else:
        _show_episodes(bench, pool, instance, runs, system, html, fields)


def _require_views(bench: Benchmark[Any], pool: Path, runs: Sequence[Path], *, gold: bool) -> None:
    """Raise `HintedError`, with a command that shows answers, for a benchmark without views of single answers."""
    from calibrant.bench.pages.capabilities import ANSWER_EXPLANATIONS, EPISODE_VIEWS

    try:
        if gold and not _has_revealed_views(bench):
            bench.require(ANSWER_EXPLANATIONS)
        else:
            bench.require(EPISODE_VIEWS)
    except CalibrantError as error:
        if bench.has(EPISODE_VIEWS):
            raise CalibrantError(f"{error}; without --gold its episodes are shown") from None
        sources = [word for run in runs for word in ((run,) if run.is_dir() else ("--predictions", run))]
        line = join(map(str, ("calibrant", "report", *sources, "--pool", pool, "--out", "report.html")))
        raise CalibrantError(f"{error}; `{line}` shows each answer beside the right one") from None


def _print_crashes(
    bench: Benchmark[Any], pool: Path, instance: str, runs: list[Path], system: str | None, *, writes: bool
) -> bool:
    """Print the crashes of methods on an item; return whether there is nothing else to show.

    writes: whether a page or JSON is requested, which shows other answers: `CalibrantError` if there are none
    """
    from calibrant.bench.core.items import item_of
    from calibrant.bench.report.sources import crashes_on
    from calibrant.bench.runs.workers import crash_lines

    item = item_of(bench.items.read_pool(pool), instance)
    crashes, has_others = crashes_on(runs, pool, item.id, system)
    lines = [line for record in crashes for line in crash_lines(record)]
    if crashes and writes and not has_others:
        raise CalibrantError(f"no answer to show: {lines[0]}")
    for line in lines:
        typer.echo(line, err=writes or has_others)
    return bool(crashes) and not has_others


def _show(
    bench: Benchmark[Any],
    pool: Path,
    instance: str,
    html: Path | None,
    svg: Path | None,
    *,
    gold: bool,
    why: bool,
    in_steps: bool,
    public: bool,
    as_json: bool,
) -> None:
    """Show an item, or why it is open. public: show its public id."""
    from calibrant.bench.core.benchmark import PublicPool, with_id
    from calibrant.dsl.errors import in_one_line

    items = PublicPool(bench, pool)
    item = items.item(instance)
    explains = why or svg is not None or html is not None
    if not explains:
        _show_item(bench, item if gold and not public else items.shown(item), gold=gold, as_json=as_json)
        return
    visible = items.shown(item) if public else item if gold else with_id(item, instance)
    _explain(bench, pool, visible, (), html, svg, gold=gold, prints=why, in_steps=in_steps, as_json=as_json)
    if public and instance != visible.id and not (as_json and html is None and svg is None):
        typer.echo(
            f"{in_one_line(instance)} is {in_one_line(visible.id)} there, an id that tells nothing of it", err=True
        )


def _explain(
    bench: Benchmark[Any],
    pool: Path,
    item: Any,
    steps: Sequence[Any],
    html: Path | None,
    svg: Path | None,
    *,
    gold: bool,
    prints: bool,
    in_steps: bool,
    as_json: bool,
) -> None:
    """Write or print why an item is open after these steps.

    gold: show sealed facts too; prints: print text even if a file is written; in_steps: write the page of a lesson
    """
    import dataclasses

    from msgspec.structs import replace

    from calibrant.audits.why import Fact
    from calibrant.bench.pages.capabilities import EXPLANATIONS
    from calibrant.bench.pages.why import steps_page, why_page, with_pool
    from calibrant.bench.runs.workers import exact_episode
    from calibrant.bench.terminal import NextCommand, print_next, print_written
    from calibrant.dsl.atomic_write import write_atomically

    explanations = bench.require(EXPLANATIONS)
    why = explanations.explain(item, steps, reveal_sealed=gold)
    exact = exact_episode(bench, item) if gold else None  # its moves reveal sealed facts
    if exact is not None:
        why = replace(why, sealed=(*why.sealed, Fact(f"run exact {exact.describe()}", "gold")))
    if html is not None and in_steps:
        write_atomically(
            html, steps_page([dataclasses.replace(explanations.lesson(item, why), item="the item")], pool.name)
        )
    elif html is not None:
        write_atomically(html, why_page(why, with_pool(explanations.body(why, "why"), pool), pool.name, why.item))
    if svg is not None:
        write_atomically(svg, explanations.drawing(why))
    if as_json:
        typer.echo(json_text(why.to_dict()))
    elif prints or (html is None and svg is None):
        typer.echo("\n".join(explanations.lines(why)))
    for kind, file in (("page", html), ("picture", svg)):
        if file is not None:
            print_written(file, kind)
    if html or svg:
        print_next([NextCommand(("list", pool, "--why"), "why the others are")])


def _explain_episode(
    bench: Benchmark[Any],
    pool: Path,
    instance: str,
    runs: list[Path],
    system: str | None,
    html: Path | None,
    fields: FieldNames,
    *,
    gold: bool,
    in_steps: bool,
    as_json: bool,
) -> None:
    """Write or print why the item is open after the readings of one episode."""
    item, episodes = _episodes(bench, pool, instance, runs, system, fields)
    if len(episodes) > 1:
        names = ", ".join(quote(name) for name, _ in episodes)
        raise CalibrantError(f"{len(episodes)} episodes on {instance}: choose one with --system: {names}")
    ((_, steps),) = episodes
    _explain(bench, pool, item, steps, html, None, gold=gold, prints=True, in_steps=in_steps, as_json=as_json)


def _explain_answers(
    bench: Benchmark[Any],
    pool: Path,
    instance: str,
    runs: list[Path],
    system: str | None,
    html: Path | None,
    fields: FieldNames,
    *,
    as_json: bool,
) -> None:
    """Write or print where the answers to an item differ from gold, and the consequences."""
    from markupsafe import Markup

    from calibrant.bench.core.items import item_of
    from calibrant.bench.core.responses import NO_TEXT, REASONS
    from calibrant.bench.pages.capabilities import ANSWER_EXPLANATIONS
    from calibrant.bench.pages.why import why_page
    from calibrant.bench.report.sources import submitted_answers
    from calibrant.bench.terminal import NextCommand, print_next, print_written
    from calibrant.dsl.atomic_write import write_atomically
    from calibrant.dsl.errors import in_one_line

    explanations = bench.require(ANSWER_EXPLANATIONS)
    item = item_of(bench.items.read_pool(pool), instance)
    answers = submitted_answers(runs, pool, item.id, system, fields, partial(typer.echo, err=True))
    reasons: list[Any] = []
    refused: list[CalibrantError] = []
    for name, answer, missing in answers:
        try:
            if missing in NO_TEXT:
                others = (
                    "choose another with --system, or another item; `calibrant report` shows the text of the response"
                )
                raise CalibrantError(
                    f"{name} on {item.id}: no answer to compare ({missing.replace('_', ' ')}):"
                    f" {REASONS[missing]}; {others}"
                )
            reasons.append(explanations.explain(item, answer, name))
        except CalibrantError as error:
            refused.append(error)
    if not reasons:
        raise refused[0]
    notes = [f"not shown: {error}" for error in refused]
    for note in notes:
        typer.echo(in_one_line(note), err=True)
    if html is not None:
        bodies = [explanations.body(why, f"answer-{index}") for index, why in enumerate(reasons)]
        bodies += [Markup('<p class="note">{}</p>').format(note) for note in notes]
        write_atomically(html, why_page(reasons[0], Markup("\n").join(bodies), pool.name, reasons[0].item))
        print_written(html)
        print_next([NextCommand(("list", pool, "--why"), "why items are open")])
    elif as_json:
        typer.echo(json_text([why.to_dict() for why in reasons]))
    else:
        typer.echo("\n\n".join("\n".join(explanations.lines(why)) for why in reasons))


def _show_item(bench: Benchmark[Any], item: Any, *, gold: bool, as_json: bool) -> None:
    from calibrant.bench.core.benchmark import public_record

    if as_json:
        typer.echo(json_text(bench.items.revealed_record(item) if gold else public_record(bench, item)))
    else:
        typer.echo(bench.items.text(item, reveal_sealed=gold))


def _has_revealed_views(bench: Benchmark[Any]) -> bool:
    from calibrant.bench.pages.capabilities import REVEALED_VIEWS

    return bench.has(REVEALED_VIEWS)


def _show_episodes(
    bench: Benchmark[Any],
    pool: Path,
    instance: str,
    runs: list[Path],
    system: str | None,
    page: Path | None,
    fields: FieldNames,
    *,
    gold: bool = False,
) -> None:
    """Print episodes, or write their page. gold: show sealed facts too."""
    from calibrant.bench.pages.capabilities import EPISODE_VIEWS, REVEALED_VIEWS
    from calibrant.bench.terminal import NextCommand, print_next, print_written
    from calibrant.dsl.atomic_write import write_atomically

    item, episodes = _episodes(bench, pool, instance, runs, system, fields)
    views = bench.require(REVEALED_VIEWS if gold else EPISODE_VIEWS)
    if page is None:
        typer.echo("\n\n".join(views.text(item, steps, name) for name, steps in episodes))
        return
    write_atomically(page, views.page(item, episodes))
    print_written(page)
    print_next([NextCommand(("list", pool, "--why"), "why items are open")])


def _episodes(
    bench: Benchmark[Any],
    pool: Path,
    instance: str,
    runs: list[Path],
    system: str | None,
    fields: FieldNames,
) -> tuple[Any, list[tuple[str, Sequence[Any]]]]:
    """Return the item, and (display name of the system, replayed steps) of its episodes in these runs."""
    from calibrant.bench.core.items import item_of
    from calibrant.bench.report.sources import named_systems, transcripts
    from calibrant.dsl.episode import TranscriptError, replay_transcript
    from calibrant.dsl.records import pool_digest

    item, digest = item_of(bench.items.read_pool(pool), instance), pool_digest(pool)
    if not bench.play.is_played(item):
        raise CalibrantError(f"{instance} is answered at once, without steps: add --gold to compare answers with gold")
    chosen = [
        transcript
        for transcript in transcripts(runs, [pool], fields, partial(typer.echo, err=True))
        if (transcript.context.pool_digest, transcript.context.instance) == (digest, item.id)
    ]
    names = named_systems(transcript.context for transcript in chosen)  # crashes among them, as in tables
    played = [(name, entry) for name, entry in zip(names, chosen, strict=True) if entry.context.outcome != "crashed"]
    episodes = [(name, entry.steps) for name, entry in played if system in (None, entry.context.system, name)]
    if not episodes:
        of_system = "" if system is None else f" of {system}"
        others = f"; there are episodes of {', '.join(quote(name) for name, _ in played)}" if played else ""
        raise CalibrantError(f"no episode{of_system} on {instance} of this pool in {', '.join(map(str, runs))}{others}")
    for name, steps in episodes:
        try:
            replay_transcript(bench.play.open(item), steps)
        except TranscriptError as error:
            raise CalibrantError(f"{name} on {instance}: {error}") from None
    return item, episodes
