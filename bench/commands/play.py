"""Command `calibrant play`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from calibrant.bench.commands.guard import WRITES, Writes
from calibrant.bench.commands.options import PoolPath
from calibrant.bench.help_groups import EXECUTION, OUTPUT

if TYPE_CHECKING:
    from calibrant.bench.play.game import Game

PLAY_FOLDER = Writes(
    ("records.jsonl", "records.lock", "moves.jsonl", "moves.lock", "address.json", "links.csv"), goes_on=True
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


def play(
    pool: PoolPath,
    instance: Annotated[str | None, typer.Argument(metavar="[ID]", help="Which instance. [default: the first]")] = None,
    jsonl: Annotated[
        bool,
        typer.Option(
            "--jsonl",
            help="For programs: a JSON object a line, observations out and actions in.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    html: Annotated[
        Path | None,
        typer.Option(
            "--html", metavar="FILE", help="Write the episode, step by step, as a page.", rich_help_panel=OUTPUT
        ),
        WRITES,
    ] = None,
    out: Out = None,
    participant: Participant = None,
    serve: Annotated[
        bool,
        typer.Option(
            "--serve",
            help="Play in the browser, on this machine alone; without ID all items in order.",
            rich_help_panel=EXECUTION,
        ),
    ] = False,
    port: Port = None,
) -> int:
    """Play an item in words: a line on standard input, what came of it on standard output, then the verdict.

    `help` lists the words of the item, such as place A; a line that is none costs nothing. The item ends with a
    submission, when the allowance is spent, or with the input; with --out it can be left by `quit` and gone on with
    later. The exit code is 0 if the answer was right, else 1. The instance is called by its public id; ID may be
    either.
    """
    from calibrant.bench.pages.capabilities import TIMELINES
    from calibrant.bench.play.folder import PlayFolder
    from calibrant.bench.play.journal import check_participant
    from calibrant.bench.play.player import Player
    from calibrant.bench.play.pool import PlayPool
    from calibrant.bench.play.terminal import TerminalGame, input_lines

    if serve:
        _require_browser_options({"--jsonl": jsonl, "--html": html, "--participant": participant})
        return _serve(pool, instance, out, port)
    if port is not None:
        raise typer.BadParameter("it is of the server: give --serve", param_hint="--port")
    if participant is not None and out is None:
        raise typer.BadParameter("it stands in records: give --out", param_hint="--participant")
    name = check_participant(DEFAULT_PARTICIPANT if participant is None else participant)
    source = PlayPool(pool)
    with PlayFolder(out, [source], {}) as folder:
        player = Player(folder, name, source.key(instance))
        if html is not None:  # refused before the game where there is no such page
            source.benchmark.require(TIMELINES)(player.game.shown, player.game.steps, "you")
        game = TerminalGame(player, typer.echo, is_stored=out is not None)
        lines = input_lines(None if jsonl else partial(typer.echo, nl=False))
        if not (game.play_json if jsonl else game.play)(lines):
            typer.echo(f"left open; its moves are in {out}, and the same command goes on from here", err=True)
            return 1
        right = game.verdict(as_json=jsonl)
    if html is not None:
        _write_page(html, player.game)
    return 0 if right else 1


def _write_page(file: Path, game: Game) -> None:
    from calibrant.bench.pages.capabilities import TIMELINES
    from calibrant.bench.pages.filmstrip import timeline_page
    from calibrant.dsl.atomic_write import write_atomically

    timelines = game.pool.benchmark.require(TIMELINES)
    write_atomically(file, timeline_page(game.shown.id, [timelines(game.shown, game.steps, "you")]))


def _require_browser_options(options: Mapping[str, object]) -> None:
    """Refuse options of the terminal."""
    for option, value in options.items():
        if value not in (None, False):
            raise typer.BadParameter("it is of the terminal; leave out --serve", param_hint=option)


def _serve(pool: Path, instance: str | None, out: Path | None, port: int | None) -> int:
    """Serve one pool until Ctrl-C."""
    from calibrant.bench.play.folder import PlayFolder
    from calibrant.bench.play.plan import Terms, pool_plan
    from calibrant.bench.play.pool import PlayPool
    from calibrant.bench.play.service.run import open_service, serve_until_stopped

    source = PlayPool(pool)
    plan = pool_plan(source, instance)
    terms = Terms(source.name, feedback="cells")
    with (
        PlayFolder(out, [source], {"feedback": terms.feedback}) as folder,
        open_service(folder, terms, lambda name: plan, port=port) as service,
    ):
        typer.echo(f"open {service.url}")
        typer.echo("moves are kept in memory alone; --out DIR writes them" if out is None else f"moves are in {out}")
        typer.echo("Ctrl-C stops the server; the same line goes on")
        serve_until_stopped(service)
    return 0
