"""Command `calibrant play`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from calibrant.bench.commands.guard import READS, WRITES_PAGE, Writes
from calibrant.bench.commands.options import Aid, refuse_options
from calibrant.bench.help import EXECUTION, OUTPUT
from calibrant.dsl.text import plural

if TYPE_CHECKING:
    from calibrant.bench.play.game import Game
    from calibrant.bench.play.study.config import Study
    from calibrant.bench.terminal import NextCommand

RECORDS_FILE = "records.jsonl"
PLAY_FOLDER = Writes(
    (RECORDS_FILE, "records.lock", "moves.jsonl", "moves.lock", "address.json", "links.csv", "clock.json"),
    is_resumable=True,
)
DEFAULT_PARTICIPANT = "you"


Out: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="DIR",
        help="Folder of records, each move on disk before it is answered; the same line goes on there.",
        rich_help_panel=OUTPUT,
    ),
    PLAY_FOLDER,
]
Port: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--port",
        min=1,
        max=65_535,
        help="With --serve. [default: that of the folder, or a free one]",
        rich_help_panel=EXECUTION,
    ),
]
Participant: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--participant",
        metavar="ID",
        help=f"Who plays, in records. [default: {DEFAULT_PARTICIPANT}]",
        rich_help_panel=EXECUTION,
    ),
]
Jsonl: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--jsonl",
        help="For programs: a JSON object a line, observations out and actions in.",
        rich_help_panel=OUTPUT,
    ),
]
Html: TypeAlias = Annotated[
    Path | None,
    typer.Option("--html", metavar="FILE", help="Write the episode, step by step, as a page.", rich_help_panel=OUTPUT),
    WRITES_PAGE,
]
Serve: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--serve",
        help="Play in the browser, on this machine alone; without ID all items in order.",
        rich_help_panel=EXECUTION,
    ),
]
StudyPath: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--study",
        metavar="FILE",
        help="Study file: blocks, participants, consent, questions.",
        rich_help_panel=EXECUTION,
    ),
    READS,
]
# repeated calls during a study replace their own table, CSV or JSON
WRITES_RESULTS = Writes(
    beside=("{stem}.moves.csv", "{stem}.codebook.md"),
    replaces=(
        *(b"participant,position,benchmark,", b"participant,number,event,", b"# columns of the results of "),
        *(b'[\n {\n  "participant":', b"[]\n"),
    ),
)
Static: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--static",
        metavar="FILE",
        help="With --study: write a questionnaire page without a server.",
        rich_help_panel=OUTPUT,
    ),
    WRITES_PAGE,
]
Results: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--results",
        metavar="FILE",
        help="With --study: write people as CSV and moves, or FILE.json, and the codebook named after it; print means.",
        rich_help_panel=OUTPUT,
    ),
    WRITES_RESULTS,
]
Finished: TypeAlias = Annotated[
    bool,
    typer.Option("--finished", help="With --results: those alone who came to the end.", rich_help_panel=OUTPUT),
]
Review: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--review",
        metavar="FILE",
        help="Write a page of a participant's ended items beside the ideal learner's; nothing is played.",
        rich_help_panel=OUTPUT,
    ),
    WRITES_PAGE,
]
Downloads: TypeAlias = Annotated[
    list[Path] | None,
    typer.Option(
        "--import",
        metavar="FILE",
        help="With --study: read what such a page saved; may be repeated.",
        rich_help_panel=EXECUTION,
    ),
    READS,
]
PlayedPool: TypeAlias = Annotated[
    Path | None,
    typer.Argument(metavar="[POOL]", help="Pool file: official YAML or native JSONL; of a study --study."),
    READS,
]


def play(
    pool: PlayedPool = None,
    instance: Annotated[str | None, typer.Argument(metavar="[ID]", help="Which instance. [default: the first]")] = None,
    jsonl: Jsonl = False,
    html: Html = None,
    out: Out = None,
    participant: Participant = None,
    serve: Serve = False,
    port: Port = None,
    aid: Aid = None,
    study: StudyPath = None,
    static: Static = None,
    results: Results = None,
    finished: Finished = False,
    downloads: Downloads = None,
    review: Review = None,
) -> int:
    """Play items in words, or with --serve in the browser; then the verdict.

    In the terminal, a line on standard input is a move: `help` lists the words of the item, such as place A; a line
    that is none costs nothing. The item ends with a submission, when the allowance is spent, or with the input; with
    --out it can be left by `quit` and gone on with later. The exit code is 0 if the answer was right, else 1. The
    instance is called by its public id; ID may be either. A study has its pools, participants and folder in its file.
    """
    if study is not None:
        stated = {"POOL": pool, "--jsonl": jsonl, "--html": html, "--out": out, "--aid": aid}
        refuse_options(stated, "the file of --study states it")
        actions = {
            "--serve": serve,
            "--static": static,
            "--results": results,
            "--import": downloads,
            "--review": review,
        }
        _refuse_second({name: value for name, value in actions.items() if value})
        if results is None:
            refuse_options({"--finished": finished}, "it is of results: give --results")
        else:
            return _write_results(study, results, participant, port, is_finished=finished)
        return _play_study(study, participant, static, downloads, review, port, serve=serve)
    of_studies = {"--static": static, "--results": results, "--finished": finished, "--import": downloads or None}
    refuse_options(of_studies, "it is of studies: give --study")
    if pool is None:
        raise typer.BadParameter("give a pool, or --study", param_hint="POOL")
    if pool.suffix == ".toml" and pool.is_file():
        hint = f"calibrant play --study {quote(str(pool))} --participant p001, or --serve"
        raise typer.BadParameter(f"{pool} is a study's file, not a pool: {hint}", param_hint="POOL")
    if review is not None:
        refuse_options({"--jsonl": jsonl, "--html": html, "--serve": serve, "--aid": aid}, "--review plays nothing")
    if serve:
        refuse_options({"--jsonl": jsonl, "--html": html, "--participant": participant}, "it is of the terminal")
        return _serve(pool, instance, out, port, aid)
    refuse_options({"--port": port}, "it is of the server: give --serve")
    if out is None:
        refuse_options({"--participant": participant, "--review": review}, "it stands in records: give --out")
    name = DEFAULT_PARTICIPANT if participant is None else participant
    if review is not None and out is not None:
        refuse_options({"ID": instance}, "--review shows all ended items")
        return _write_review(review, out, [pool], pool.name, name)
    return _play_one(pool, instance, html, out, name, aid, jsonl=jsonl)


def _refuse_second(actions: Mapping[str, object]) -> None:
    """Raise `CalibrantError` for several of the options that state what to do with a study."""
    if len(actions) > 1:
        raise typer.BadParameter(f"give one of {', '.join(actions)}", param_hint="--study")


def _write_review(file: Path, out: Path, pools: list[Path], title: str, participant: str) -> int:
    """Write the review page of a participant's ended items."""
    from calibrant.bench.play.game import PlayPool
    from calibrant.bench.play.results import stored_reviews
    from calibrant.bench.play.review import review_page
    from calibrant.dsl.atomic_write import write_atomically

    items = stored_reviews(out, [PlayPool(pool) for pool in pools], participant)
    write_atomically(file, review_page(title, participant, items))
    typer.echo(f"{plural(len(items), 'items')} of {participant}: {file}")
    return 0


def _play_one(
    pool: Path, instance: str | None, html: Path | None, out: Path | None, name: str, aid: Path | None, *, jsonl: bool
) -> int:
    """Play one item in the terminal."""
    from calibrant.bench.pages.capabilities import TIMELINES
    from calibrant.bench.play.clocks import ticking
    from calibrant.bench.play.folder import Player, PlayFolder, check_participant
    from calibrant.bench.play.game import PlayPool, aid_config
    from calibrant.bench.play.terminal import TerminalGame, input_lines
    from calibrant.bench.terminal import print_next, print_written

    check_participant(name)
    source = PlayPool(pool)
    if aid is not None:
        source.check_aid(aid)
    with PlayFolder(out, [source], aid_config(aid)) as folder:
        player = Player(folder, name, source.key(instance))
        if html is not None:  # raises before the game if the benchmark has no such page
            timelines = source.benchmark.require(TIMELINES)
            if not source.benchmark.is_interactive(player.game.shown):
                raise typer.BadParameter("the item has no episode to show: it is answered at once", param_hint="--html")
            timelines(player.game.shown, player.game.steps, "you")
        game = TerminalGame(player, typer.echo, is_stored=out is not None, aid=aid)
        lines = input_lines(None if jsonl else partial(typer.echo, nl=False))
        with ticking(lambda: folder.store_elapsed({name: player.elapsed})):
            is_ended = (game.play_json if jsonl else game.play)(lines)
        if not is_ended:
            typer.echo(f"left open; its moves are in {out}, and the same command goes on from here", err=True)
            return 1
        right = game.verdict(as_json=jsonl)
    if html is not None:
        _write_page(html, player.game)
        print_written(html)
    if out is not None:
        print_written(out / RECORDS_FILE, "record")
        print_next([] if jsonl else _next_commands(pool, out, name))
    return 0 if right else 1


def _next_commands(pool: Path, out: Path, participant: str) -> list[NextCommand]:
    """Return the commands to suggest after a game."""
    from calibrant.bench.terminal import NextCommand, unused_path

    who = () if participant == DEFAULT_PARTICIPANT else ("--participant", participant)
    review = ("play", pool, "--out", out, *who, "--review", unused_path("review.html"))
    return [NextCommand(("table", out), "the rates"), NextCommand(review, "beside the ideal learner")]


def _write_page(file: Path, game: Game) -> None:
    from calibrant.bench.pages.capabilities import TIMELINES
    from calibrant.bench.pages.timeline import timeline_page
    from calibrant.dsl.atomic_write import write_atomically

    timelines = game.pool.benchmark.require(TIMELINES)
    write_atomically(file, timeline_page(game.shown.id, [timelines(game.shown, game.steps, "you")]))


def _serve(pool: Path, instance: str | None, out: Path | None, port: int | None, aid: Path | None) -> int:
    """Serve one pool until Ctrl-C."""
    from calibrant.bench.play.folder import PlayFolder
    from calibrant.bench.play.game import PlayPool, Terms, aid_config, pool_plan
    from calibrant.bench.play.service.routes import open_service, serve_until_stopped

    source = PlayPool(pool)
    plan = pool_plan(source, instance)
    if aid is not None:
        source.check_aid(aid)
    terms = Terms(source.name, feedback="cells", aid=aid)
    with (
        PlayFolder(out, [source], {"feedback": terms.feedback, **aid_config(aid)}) as folder,
        open_service(folder, terms, lambda name, group: plan, port=port) as service,
    ):
        typer.echo(f"open {service.url}")
        typer.echo("moves are kept in memory alone; --out DIR writes them" if out is None else f"moves are in {out}")
        typer.echo("Ctrl-C stops the server; the same line goes on")
        serve_until_stopped(service)
    return 0


def _write_results(file: Path, results: Path, participant: str | None, port: int | None, *, is_finished: bool) -> int:
    """Write the results of a study, and print means."""
    from calibrant.bench.play.results import summary_lines, write_results
    from calibrant.bench.play.study.config import Study

    refuse_options({"--port": port}, "it is of the server: give --serve")
    refuse_options({"--participant": participant}, "results are of all participants")
    typer.echo("\n".join(summary_lines(write_results(results, Study(file), finished_only=is_finished))))
    return 0


def _play_study(
    file: Path,
    participant: str | None,
    static: Path | None,
    downloads: list[Path] | None,
    review: Path | None,
    port: int | None,
    *,
    serve: bool,
) -> int:
    """Serve a study, write its static page, import downloads of it, or play it in the terminal."""
    from calibrant.bench.play.study.config import Study, import_downloads, static_page
    from calibrant.bench.play.terminal import play_study
    from calibrant.dsl.atomic_write import write_atomically

    study = Study(file)
    if not serve:
        refuse_options({"--port": port}, "it is of the server: give --serve")
    if review is not None:
        if participant is None:
            raise typer.BadParameter("whose? give --participant", param_hint="--review")
        return _write_review(review, study.out, [pool.path for pool in study.pools], study.terms.title, participant)
    if downloads:
        refuse_options({"--participant": participant}, "the files name theirs")
        for line in import_downloads(study, downloads):
            typer.echo(line)
        return 0
    if static is not None:
        write_atomically(static, static_page(study, participant or ""))
        typer.echo(f"{study.terms.title}: {static}")
        if study.practice is not None:
            typer.echo("it offers no practice: the file has no verdicts", err=True)
        return 0
    if serve:
        refuse_options({"--participant": participant}, "participants enter their ids, or have links of their own")
        return _serve_study(study, port)
    if participant is None:
        actions = "--participant, --serve, --static, --import, --results or --review"
        raise typer.BadParameter(f"give {actions}", param_hint="--study")
    return play_study(study, participant, typer.echo)


def _serve_study(study: Study, port: int | None) -> int:
    """Serve a study until Ctrl-C."""
    from calibrant.bench.play.folder import PlayFolder
    from calibrant.bench.play.service.routes import open_service, serve_until_stopped
    from calibrant.bench.play.study.pages import missing_texts
    from calibrant.dsl.errors import short_repr

    with (
        PlayFolder(study.out, study.pools, study.config) as folder,
        open_service(
            folder,
            study.terms,
            study.plan,
            study.names,
            port=port,
            public_origin=study.section.origin,
            practice=study.practice,
        ) as service,
    ):
        typer.echo(f"open {service.url}")
        if study.section.origin and not study.names:
            token = service.address.token
            typer.echo(
                f"participants open {study.section.origin}/{token}/?participant=ID, with their ids in place of ID"
            )
        for language in study.terms.langs:
            if missing := missing_texts(language):
                text = f"{language.code}.toml lacks {plural(len(missing), 'texts')}, which stay English, such as"
                typer.echo(f"{text} {short_repr(missing[0])}", err=True)
        if study.names:
            typer.echo(f"links of {plural(len(study.names), 'participants')} are in {study.out / 'links.csv'}")
        typer.echo(f"moves are in {study.out}; Ctrl-C stops the server, and the same line goes on")
        serve_until_stopped(service)
    return 0
