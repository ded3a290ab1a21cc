"""Questionnaires as one file, for items that are answered at once: what is shown, no gold, answers by download."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any
from zlib import crc32

import msgspec
from msgspec import Meta

from calibrant.bench.core.words import Act, WordsError
from calibrant.bench.play.folder import PlayFolder
from calibrant.bench.play.game import Game, ItemStop, QuestionsStop, Stop, item_state
from calibrant.bench.play.service.routes import play_page
from calibrant.bench.play.study.config import Study
from calibrant.bench.play.study.pages import (
    IN_BROWSER,
    OF_INSTRUCTIONS,
    PRIVACY,
    answers_event,
    consent_html,
    task_text,
    value_text,
)
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.parse_limits import TooLargeError, decode_json

MAX_DOWNLOAD_BYTES = 8_000_000


class Answered(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One stop of a download."""

    stop: Annotated[str, Meta(description="public id of the item, or name of the page of questions")]
    seconds: Annotated[float, Meta(ge=0, le=1e6, description="while it was shown")] = 0.0
    draft: Annotated[dict[str, Any] | None, Meta(description="the answer as it was written; null for no answer")] = None
    answers: Annotated[dict[str, Any], Meta(description="to a page of questions")] = {}


class Download(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """File that a page lets a participant save."""

    participant: str
    agreed: bool
    stops: list[Answered]
    digests: Annotated[list[str], Meta(description="SHA-256 of the pools that the page was made from")]
    version: int = 1


def static_page(study: Study, participant: str = "") -> str:
    """Return the page of a study; `CalibrantError` for items that answer moves: they need a server.

    participant: whose order it has; empty for the order of the file
    """
    if participant:
        study.member(participant)
    _refuse_served_terms(study)
    stops: list[dict[str, Any]] = []
    pools, digests = {pool.digest: pool for pool in study.pools}, [pool.digest for pool in study.pools]
    for stop in study.plan(participant):
        if isinstance(stop, QuestionsStop):
            questions = [{**question, "values": value_text(question)} for question in stop.texts("").questions]
            page = {"phase": "questions", "name": stop.name, "heading": stop.title, "questions": questions}
            stops.append(page | {"instructions": consent_html(stop.instructions, OF_INSTRUCTIONS), "tries": 0})
            continue
        pool = pools[stop.key.pool_digest]
        game = Game(pool, stop.key.instance)
        if game.episode is not None:
            raise CalibrantError(
                f"{study.path.name}: items of {pool.path.name} answer moves; a file cannot: serve the study instead"
            )
        stops.append({"phase": "item", "item": item_state(game, with_cells=False)})
    plan = {
        "title": study.terms.title,
        "task": task_text(study.plan(participant), pools, study.terms.minutes),
        "privacy": [PRIVACY, IN_BROWSER],
        "consent": consent_html(study.terms.consent),
        # numbers: the page refuses other ids, and does not list who takes part
        "names": None if study.names is None else [crc32(name.encode()) for name in study.names],
        "stops": stops,
        "digests": digests,
    }
    return play_page(study.terms.title, participant, json.dumps(plan), langs=study.terms.langs)


def _refuse_served_terms(study: Study) -> None:
    """Refuse what only a server can hold to: a file would show its right answers and its code to who opens it."""
    stops = study.plan("")
    unsupported = {
        "two languages": len(study.terms.langs) > 1,
        "completion": study.terms.completion is not None,
        "groups": bool(study.terms.groups),
        "limit": any(isinstance(stop, ItemStop) and stop.limit for stop in stops),
        "instructions with questions": any(
            isinstance(stop, QuestionsStop) and stop.instructions and stop.questions for stop in stops
        ),
    }
    for name, is_used in unsupported.items():
        if is_used:
            raise CalibrantError(f"{study.path.name}: a file cannot hold to {name}: serve the study instead")


def import_downloads(study: Study, files: list[Path]) -> Iterator[str]:
    """Write downloads of a study's page into its folder as if they had been served; yield a line on each file."""
    with PlayFolder(study.out, study.pools, study.config) as folder:
        for file in files:
            yield f"{file}: {_import_one(study, folder, _read(file))}"


def _read(file: Path) -> Download:
    if file.stat().st_size > MAX_DOWNLOAD_BYTES:
        raise CalibrantError(f"{file}: at most {MAX_DOWNLOAD_BYTES:,} bytes are read")
    try:
        return decode_json(file.read_bytes(), Download)
    except (msgspec.DecodeError, UnicodeDecodeError, TooLargeError) as error:
        raise CalibrantError(f"{file}: no download of a questionnaire: {error}") from None


def _import_one(study: Study, folder: PlayFolder, download: Download) -> str:
    name = study.member(download.participant)
    if download.digests != [pool.digest for pool in study.pools]:
        raise CalibrantError(f"{name}: the page was made from other pools than those of {study.path.name}")
    if study.terms.consent and not download.agreed:
        raise CalibrantError(f"{name}: no consent was given")
    folder.begin(name, agreed=download.agreed)
    by_stop = {answered.stop: answered for answered in download.stops}
    counts = {"recorded": 0, "there already": 0, "without an answer": 0, "not reached": 0}
    unreadable = []
    places = {answered.stop: place for place, answered in enumerate(download.stops)}
    # in the order of the page, which is that of the file where it was made for nobody
    for stop in sorted(study.plan(name), key=lambda stop: places.get(_page_name(folder, stop), len(places))):
        if isinstance(stop, QuestionsStop):
            answered = by_stop.get(stop.name)
            if answered is not None and not folder.events(name, stop.key):
                folder.add(name, stop.key, answers_event(stop, answered.answers), answered.seconds)
            continue
        try:
            counts[_import_item(folder, name, stop, by_stop)] += 1
        except WordsError as error:
            unreadable.append(f"; not recorded: {stop.key.instance}: {error}")
    return (
        f"{name}: " + ", ".join(f"{number} {kind}" for kind, number in counts.items() if number) + "".join(unreadable)
    )


def _page_name(folder: PlayFolder, stop: Stop) -> str:
    """Return the name of a stop in a page: the public id of an item."""
    if isinstance(stop, QuestionsStop):
        return stop.name
    pool = folder.pools[stop.key.pool_digest]
    return str(pool.public.shown(pool.item(stop.key.instance)).id)


def _import_item(folder: PlayFolder, name: str, stop: ItemStop, by_stop: dict[str, Answered]) -> str:
    if folder.is_closed(name, stop.key):
        return "there already"
    game = folder.game(name, stop.key)
    answered = by_stop.get(game.shown.id)
    if answered is None:
        return "not reached"
    words = game.pool.words
    action: dict[str, Any] | None = None
    if answered.draft is not None:
        draft = words.check_draft(game.shown, answered.draft)
        stated = words.read(game.shown, game.position._replace(draft=draft), "submit")
        assert isinstance(stated, Act)
        action = dict(stated.action)
        game.check(action)
    event: dict[str, Any] = {"give_up": {}} if action is None else {"act": action}
    folder.add(name, stop.key, event, answered.seconds)
    folder.record(name, folder.game(name, stop.key))
    return "without an answer" if action is None else "recorded"
