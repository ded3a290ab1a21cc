"""Results of studies: tidy rows for R or pandas, codebook, means over participants with intervals."""

from __future__ import annotations

import csv
import io
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from calibrant.bench.answers.rates import Value, clustered_mean
from calibrant.bench.core.benchmark import load_benchmark
from calibrant.bench.core.options import describe_fields
from calibrant.bench.core.registry import stated_name
from calibrant.bench.core.scoring import PEOPLE
from calibrant.bench.play.folder import (
    ANSWERS,
    EVENTS,
    LANG,
    PASSED,
    RESTART,
    TIME_UP,
    EventRecord,
    PlayFolder,
    apply_event,
    check_participant,
)
from calibrant.bench.play.game import (
    FINISH,
    QUESTIONS,
    START,
    Game,
    ItemKey,
    PlayPool,
    evidence_attribution,
    protocol_of,
)
from calibrant.bench.play.participants import Sitting
from calibrant.bench.play.review import ReviewedItem, person_class
from calibrant.bench.play.study.config import Study, page_names
from calibrant.bench.play.study.pages import value_text
from calibrant.bench.report.capabilities import MAX_EXPORTED, Remaining, RemainingLists
from calibrant.bench.report.people import seconds_a_move
from calibrant.bench.runs.records import Record, folder_records
from calibrant.bench.runs.workers import exact_episode
from calibrant.bench.scoring.scorer import steps_of
from calibrant.dsl.atomic_write import write_privately
from calibrant.dsl.errors import CalibrantError, short_repr
from calibrant.dsl.text import plural

SEPARATOR = " | "  # between hypotheses in a cell
CODEBOOK_TITLE = "# Columns of the results of "
RECORDS = "Records: "  # prefix of the folder in the codebook
FINISHED = "finished"


# --- Columns of the tables: each field is a column; the codebook prints its description -------------------------------
class PersonRow(msgspec.Struct, frozen=True):
    """One participant on one item: a line of people.csv.

    remaining: hypotheses that fitted at the answer; answers: column -> the participant's answer on a page of questions
    """

    participant: Annotated[str, Meta(description="id of the participant")]
    position: Annotated[
        int, Meta(description="place of the item among those that the participant ended, from 1; 0: none was ended")
    ]
    benchmark: Annotated[str, Meta(description="kind of item")]
    pool: Annotated[str, Meta(description="name of the item's pool")]
    item: Annotated[str, Meta(description="id of the item in its pool")]
    setting: Annotated[str, Meta(description="row group of tables, such as the disclosure")]
    study: Annotated[str, Meta(description="title of the study")]
    feedback: Annotated[
        str, Meta(description="none, or cells: while a formula was typed, the cells that it reproduces were shown")
    ]
    correct: Annotated[
        int | None, Meta(description="1 if the answer is right, else 0; empty where nothing is held out")
    ]
    kind: Annotated[
        str,
        Meta(
            description="earned (decided by the evidence, right), lucky (undecided, right), short (undecided, wrong), "
            "missed (decided, wrong), invalid or no_answer; empty where it is not counted"
        ),
    ]
    hypotheses: Annotated[str, Meta(description="how many hypotheses still fitted the evidence of the answer")]
    moves: Annotated[int, Meta(description="moves that were made")]
    refused: Annotated[int, Meta(description="moves that the item refused")]
    seconds: Annotated[float, Meta(description="from the first sight of the item to its end, by the server's clock")]
    seconds_a_move: Annotated[float, Meta(description="mean before a move, by the server's clock")]
    started: Annotated[str, Meta(description="first sight of the item, UTC, ISO 8601")]
    group: Annotated[str, Meta(description="group of the participant; empty in studies without groups")] = ""
    lang: Annotated[str, Meta(description="language of the page; empty in studies of one language")] = ""
    finished: Annotated[
        str,
        Meta(
            description="when the participant came to the end, UTC, ISO 8601; screened out, of those who failed the "
            "questions about the instructions; empty of those who stopped before"
        ),
    ] = ""
    failed_checks: Annotated[
        str, Meta(description="columns of attention checks that the participant answered wrongly, joined by +")
    ] = ""
    instruction_tries: Annotated[int, Meta(description="answers to the questions about instructions, all pages")] = 0
    time_up: Annotated[
        str,
        Meta(
            description="what ended because its time was up: pages of questions and study, joined by +; of an item "
            "ended_by has it"
        ),
    ] = ""
    ended_by: Annotated[str, Meta(description="answer, or no answer and why")] = ""
    restarts: Annotated[
        int,
        Meta(
            description="how often the item was opened again after its server was started again, or after `quit` in a "
            "terminal; of a killed server up to a second before each is missing in seconds"
        ),
    ] = 0
    began: Annotated[str, Meta(description="when the participant began the study, UTC, ISO 8601")] = ""
    total_seconds: Annotated[
        float | None,
        Meta(description="from began to the end, or to the last event of those who stopped before; pauses count"),
    ] = None
    answer: Annotated[str, Meta(description="the answer as JSON, as the record has it")] = ""
    answer_text: Annotated[str, Meta(description="the answer in words; empty where there are none")] = ""
    truth: Annotated[str, Meta(description="the truth in words; of questions one right answer")] = ""
    remaining: Remaining | None = None
    answers: Mapping[str, Any] = {}

    def cells(self) -> dict[str, Any]:
        """Return the row for CSV; the list of hypotheses ends with the number of unlisted ones."""
        named = {name: getattr(self, name) for name in NAMES}
        open_text = "" if self.remaining is None else SEPARATOR.join(self.remaining.lines())
        return named | {OPEN: open_text} | dict(self.answers)

    def to_dict(self) -> dict[str, Any]:
        """Return the row, ready for JSON."""
        return self.cells() | {OPEN: None if self.remaining is None else self.remaining.to_dict()}


class MoveRow(msgspec.Struct, frozen=True):
    """One event of a participant: a line of people.moves.csv."""

    participant: Annotated[str, Meta(description="id of the participant")]
    number: Annotated[int, Meta(description="events of this participant on this item or page before it")]
    event: Annotated[
        str,
        Meta(
            description="open (an item, or a page that a limit may end, was shown, again after a restart of the "
            "server), act (a move or the submission), draft (a change of the answer that is being written), undo, "
            "give_up, time_up, answers (to the start page or a page of questions; with time_up in it, those until its "
            "time was up), finished or screened_out (with time_up in it: the time of the study was up)"
        ),
    ]
    benchmark: Annotated[str, Meta(description="kind of item; empty of a page")]
    pool: Annotated[str, Meta(description="name of the item's pool; empty of a page")]
    item: Annotated[
        str, Meta(description="id of the item in its pool; of a page start, end, or questions: and its name")
    ]
    position: Annotated[int | None, Meta(description="place of the item among those that the participant began")]
    content: Annotated[str, Meta(description="the move, the draft or the answers, as JSON")]
    reading: Annotated[str, Meta(description="what the move showed, as JSON; empty of what shows nothing")]
    refused: Annotated[str, Meta(description="why the item refused the move; empty if it did not")]
    cost: Annotated[int | None, Meta(description="what the move took from the allowance")]
    hypotheses: Annotated[str, Meta(description="how many hypotheses fitted after the move; empty if not counted")]
    seconds: Annotated[
        float,
        Meta(
            description="since the event before it, by the server's clock; where an item or a page was opened anew, "
            "until the end of the server before"
        ),
    ]
    page_seconds: Annotated[
        float | None,
        Meta(
            description="since the event before it, or since the item or page was shown, by the clock of the "
            "participant's page; empty in a terminal"
        ),
    ]
    interrupted: Annotated[
        str,
        Meta(
            description="what interrupted the time before it, joined by +: reload (the page was loaded anew), sleep "
            "(the device slept), hidden (the page was not in view), resent (the server did not answer at first), "
            "restart (the server was started again); empty if nothing did"
        ),
    ]
    at: Annotated[str, Meta(description="UTC, ISO 8601, by the server's clock")]
    study_seconds: Annotated[
        float | None, Meta(description="of the study until then; empty in studies without a limit")
    ] = None


OPEN = "open"
OPEN_MEANING = f"those hypotheses in words, up to {MAX_EXPORTED:,}, separated by `{SEPARATOR}`"
OPEN_OBJECT = f"those hypotheses: their number (count), up to {MAX_EXPORTED:,} of them in words (listed)"
MAY_BE_EMPTY = "; may be empty"
NO_QUESTION = "a question that the study's file does not have"
NAMES = [name for name in PersonRow.__struct_fields__ if name not in ("remaining", "answers")]


def codebook_text(study: Study, rows: Sequence[PersonRow], file: Path) -> str:
    """Return the codebook as Markdown: meanings of the columns of all tables; texts, values and blocks of questions.

    file: file of people's rows; names of the other files derive from it, and those of the other format are described
        if they exist
    """
    lines = [f"{CODEBOOK_TITLE}{study.terms.title}", "", f"{RECORDS}{_records_place(study, file)}", ""]
    lines.append("Times are seconds; an empty cell, or null, is no value.")
    places, texts = study.question_places, dict[str, str]()
    for name, question in study.questions:
        values = f"{value_text(question)}{MAY_BE_EMPTY if question.get('optional') else ''}"
        texts[name] = f"{question['text']} ({values}; {places[name]})"
    people = {name: meaning for name, meaning in describe_fields(PersonRow).items() if name in NAMES}
    people |= {OPEN: OPEN_MEANING}
    people |= {
        name: texts.get(name, NO_QUESTION)
        for name in dict.fromkeys([*texts, *(n for row in rows for n in row.answers)])
    }
    is_json, moves, of = file.suffix == ".json", _moves_file(file), "for a participant and an item"
    tables = [(file.with_suffix(".json"), f"an object {of}", people | {OPEN: OPEN_OBJECT})]
    if not is_json or moves.is_file():
        events = (moves, "a line for an event of a participant", describe_fields(MoveRow))
        as_csv = [(file.with_suffix(".csv") if is_json else file, f"a line {of}", people), events]
        tables = as_csv + tables * (is_json or tables[0][0].is_file())
    for path, entry, columns in tables:
        lines += ["", f"## {path.name}: {entry}", "", "| column | meaning |", "|---|---|"]
        lines += [f"| `{name}` | {_cell(meaning)} |" for name, meaning in columns.items()]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


# --- The rows of a folder ---------------------------------------------------------------------------------------------


@dataclass
class Person:
    """Events of a participant that belong to no item."""

    group: str = ""
    lang: str = ""
    began: str = ""
    last: str = ""
    finished: str = ""
    failed: list[str] = field(default_factory=list)
    num_tries: int = 0
    late: list[str] = field(default_factory=list)
    answers: dict[str, Any] = field(default_factory=dict)

    def fill(self, row: PersonRow) -> PersonRow:
        """Return a row with the fields that concern no single item."""
        fields = {
            "group": self.group,
            LANG: self.lang,
            "began": self.began,
            "total_seconds": _seconds_between(self.began, self.last),
            "finished": self.finished,
            "failed_checks": "+".join(self.failed),
            TIME_UP: "+".join(self.late),
        }
        return msgspec.structs.replace(row, **fields, instruction_tries=self.num_tries, answers=self.answers)


def _seconds_between(first: str, last: str) -> float | None:
    if not (first and last):
        return None
    return round((datetime.fromisoformat(last) - datetime.fromisoformat(first)).total_seconds(), 3)


def read_people(events: Iterable[EventRecord], pages: Iterable[str] = ()) -> dict[str, Person]:
    """Return participant -> facts that concern no single item.

    pages: names of the study's pages of questions, whose columns exist even if nobody reached them
    """
    events = list(events)
    reached = [e.instance.removeprefix(QUESTIONS) for e in events if e.instance.startswith(QUESTIONS)]
    names = page_names(dict.fromkeys([*pages, *reached]))
    people: dict[str, Person] = {}
    for event in events:
        person = people.setdefault(event.participant, Person())
        person.last = event.at
        if event.pool_digest:
            continue
        if event.item == START:
            person.began = event.at
            person.group, person.lang = event.event.get("group", ""), event.event.get(LANG, "")
        elif event.item == FINISH:
            person.finished = event.at if "finished" in event.event else "screened out"
            person.late += ["study" for content in event.event.values() if TIME_UP in content]
        elif ANSWERS in event.event:
            page = names[event.instance.removeprefix(QUESTIONS)]
            person.late += [page] if TIME_UP in event.event else []
            person.answers |= {f"{page}.{question}": answer for question, answer in event.event[ANSWERS].items()}
            if PASSED in event.event:
                person.num_tries += "failed" in event.event  # absent on pages without questions
            else:
                person.failed += [f"{page}.{question}" for question in event.event.get("failed", ())]
    return people


def person_rows(folder: Path, pools: Sequence[PlayPool] = (), pages: Iterable[str] = ()) -> list[PersonRow]:
    """Return the rows of a folder of play, by participant, items in the order in which they were begun.

    pools: pools for whose items truth and remaining hypotheses are listed
    pages: names of the study's pages of questions
    """
    if not any(folder.glob("*.jsonl")):
        raise CalibrantError(f"{folder}: no item has been ended there yet")
    journal = folder / EVENTS.file_name
    events = list(EVENTS.read_records(journal)) if journal.is_file() else []
    people = read_people(events, pages)
    restarts = Counter((e.participant, e.item) for e in events if "open" in e.event and e.number)
    by_digest = {pool.digest: (pool, RemainingLists(pool.benchmark, MAX_EXPORTED)) for pool in pools}
    records = [record for record in folder_records(folder) if record.protocol.startswith(PEOPLE)]
    records.sort(key=lambda record: (record.protocol, record.timing.started))
    positions: Counter[str] = Counter()
    rows = []
    for record in records:
        positions[record.protocol] += 1
        attribution = record.attribution if isinstance(record.attribution, dict) else {}
        remaining, answer_text, truth = None, "", ""
        if record.pool_digest in by_digest:
            pool, lists = by_digest[record.pool_digest]
            item = pool.item(record.instance)
            attribution = evidence_attribution(pool.benchmark, item, record)
            taken = [] if record.steps is msgspec.UNSET else steps_of(record.steps)
            remaining = lists.get(pool.digest, pool.public.shown(item), taken)
            explanation = ReviewedItem(pool.benchmark, item, record, None, attribution).explanation
            if explanation is not None:
                answer_text, truth = ("; ".join(t.splitlines()) for t in (explanation.response, explanation.gold))
        row = _row(record, positions[record.protocol], attribution, remaining)
        is_answered = record.outcome == "found"
        answer_text = answer_text if is_answered else ""
        num_restarts = restarts[row.participant, ItemKey(record.pool_digest, record.instance)]
        row = msgspec.structs.replace(row, answer_text=answer_text, truth=truth, restarts=num_restarts)
        rows.append(people.get(row.participant, Person()).fill(row))
    with_items = {row.participant for row in rows}
    rows += [person.fill(_row_without_item(name)) for name, person in people.items() if name not in with_items]
    return sorted(rows, key=lambda row: row.participant)


def _row_without_item(participant: str) -> PersonRow:
    return PersonRow(participant, 0, "", "", "", "", "", "", None, "", "", 0, 0, 0.0, 0.0, "")


def move_rows(folder: Path, pools: Sequence[PlayPool] = ()) -> Iterator[MoveRow]:
    """Yield every event of a folder, by participant, oldest first."""
    events = sorted(EVENTS.read_records(folder / EVENTS.file_name), key=lambda event: event.participant)
    by_digest = {pool.digest: (pool, RemainingLists(pool.benchmark, 1)) for pool in pools}
    games: dict[tuple[str, ItemKey], Game] = {}
    begun: Counter[str] = Counter()
    positions: dict[tuple[str, ItemKey], int] = {}
    is_restarted: set[tuple[str, ItemKey]] = set()
    for event in events:
        key = event.participant, event.item
        game, steps, remaining = None, [], None
        if event.pool_digest and key not in positions:
            begun[event.participant] += 1
            positions[key] = begun[event.participant]
        if event.pool_digest in by_digest:
            pool, lists = by_digest[event.pool_digest]
            game = games.setdefault(key, Game(pool, event.instance))
            before = len(game.steps)
            apply_event(game, event)
            steps = list(game.steps)[before:]
            if any(step.reading is not None for step in steps):
                remaining = lists.get(pool.digest, game.shown, game.steps)
        kind, content = next(iter(event.event.items()))
        if len(event.event) > 1:  # answers with their outcome
            content = event.event
        if kind == "open" and (event.number or RESTART in content):
            is_restarted.add(key)
        causes: list[str] = [] if event.clock is msgspec.UNSET else [*event.clock.interruptions]
        if kind != "open" and key in is_restarted:
            causes.append("restart")
            is_restarted.discard(key)
        yield MoveRow(
            event.participant,
            event.number,
            kind,
            "" if game is None else game.pool.benchmark.name,
            "" if game is None else game.pool.name,
            event.instance,
            positions.get(key),
            json.dumps(content, ensure_ascii=False) if content else "",
            SEPARATOR.join(json.dumps(s.reading, ensure_ascii=False) for s in steps if s.reading is not None),
            SEPARATOR.join(step.refused for step in steps if step.refused),
            sum(step.cost for step in steps) if steps else None,
            "" if remaining is None else str(remaining.count),
            event.seconds,
            None if event.clock is msgspec.UNSET else event.clock.seconds,
            "+".join(causes),
            event.at,
            None if event.study_seconds is msgspec.UNSET else event.study_seconds,
        )


def _row(record: Record, position: int, attribution: Mapping[str, Any], remaining: Remaining | None) -> PersonRow:
    steps = record.steps if isinstance(record.steps, list) else []
    mean_seconds = seconds_a_move(record)
    counted = "" if remaining is None else str(remaining.count)
    is_right = load_benchmark(stated_name(record.benchmark)).metrics.success.judge(record.score, record.setting)
    return PersonRow(
        record.protocol.removeprefix(PEOPLE),
        position,
        stated_name(record.benchmark),
        record.pool,
        record.instance,
        record.setting,
        str(record.config.get("study", "")),
        str(record.config.get("feedback", "")),
        None if is_right is None else int(is_right),
        person_class(record, attribution),
        str(attribution.get("members", counted)),
        sum(step.cost for step in steps),
        sum(bool(step.refused) for step in steps),
        record.timing.seconds,
        0.0 if mean_seconds is None else round(mean_seconds, 3),
        record.timing.started,
        ended_by="answer" if record.outcome == "found" else f"no answer: {record.provenance.get('reason', '')}",
        answer=json.dumps(record.answer, ensure_ascii=False) if record.outcome == "found" else "",
        remaining=remaining,
    )


def summary_lines(rows: Sequence[PersonRow]) -> Iterator[str]:
    """Yield lines on participants by state, means over participants by benchmark, accuracy by group and position."""
    people = {row.participant: row for row in rows}.values()
    states = Counter(map(_state, people))
    listed = ", ".join(f"{number} {state}" for state, number in sorted(states.items()))
    yield f"{plural(len(people), 'participants')}: {listed}"
    if any(row.group for row in people):
        sizes = Counter(row.group or "none" for row in people)
        yield f"groups: {', '.join(f'{group} {number}' for group, number in sorted(sizes.items()))}"
    if not any(row.position for row in rows):
        return
    counted = Counter(_state(row) for row in people if row.position)
    listed = ", ".join(f"{number} {state}" for state, number in sorted(counted.items()))
    yield f"means are over all who ended an item: {listed}"
    for benchmark in sorted({row.benchmark for row in rows if row.position}):
        chosen = [row for row in rows if row.benchmark == benchmark]
        judged = [(row, row.correct) for row in chosen if row.correct is not None]
        measures: dict[str, list[Value]] = {"right": [_value(row, correct) for row, correct in judged]}
        seconds = [_value(row, row.seconds_a_move) for row in chosen]
        if any(row.moves for row in chosen):
            measures |= {"moves": [_value(row, row.moves) for row in chosen], "seconds a move": seconds}
        else:  # questions are answered at once
            measures["seconds an answer"] = seconds
        for kind in ("earned", "lucky", "short", "missed", "invalid", "no_answer"):
            measures[kind] = [_value(row, row.kind == kind) for row in chosen if row.kind]
        for name, values in measures.items():
            if values:
                yield f"{benchmark}  {name.ljust(17)}  {_mean_text(values)}"
        for group in sorted({row.group for row, _ in judged if row.group}):
            inside = [_value(row, correct) for row, correct in judged if row.group == group]
            yield f"{benchmark}  right in group {group}  {_mean_text(inside)}"
        for position in sorted({row.position for row, _ in judged}):
            at = [_value(row, correct) for row, correct in judged if row.position == position]
            yield f"{benchmark}  right at item {position}  {_mean_text(at)}"


def _state(row: PersonRow) -> str:
    return FINISHED if row.finished[:1].isdigit() else row.finished or "not finished"


def _value(row: PersonRow, value: float) -> Value:
    return row.participant, f"{row.pool} {row.item}", float(value)


def _mean_text(values: Sequence[Value]) -> str:
    mean = clustered_mean(values)
    reach = "" if mean.interval is None else f"  {mean.interval.low:.3f} to {mean.interval.high:.3f}"
    people = f"{mean.num_participants} {'person' if mean.num_participants == 1 else 'people'}"
    return f"{mean.mean:.3f}{reach}  {people}, {plural(mean.num_items, 'items')}"


def csv_text(rows: Iterable[PersonRow], questions: Iterable[str] = ()) -> str:
    """Return rows as CSV with a header. questions: all columns of the study's questions, answered or not."""
    listed = [row.cells() for row in rows]
    answered = (name for cells in listed for name in cells if name not in NAMES and name != OPEN)
    questions = dict.fromkeys([*questions, *answered])
    return _csv_text([*NAMES, OPEN, *questions], listed)


def moves_text(rows: Iterable[MoveRow]) -> str:
    """Return events as CSV with a header."""
    names = MoveRow.__struct_fields__
    return _csv_text(names, ({name: getattr(row, name) for name in names} for row in rows))


def _csv_text(names: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def write_results(file: Path, study: Study, *, finished_only: bool = False) -> list[PersonRow]:
    """Write the rows of a study: as JSON, or as CSV with the moves beside them, and the codebook; return them.

    The files are readable by their owner alone, because they hold texts that participants typed. `CalibrantError` if
    existing files are of another study.

    finished_only: write rows of participants who reached the end alone
    """
    codebook = file.with_name(f"{file.stem}.codebook.md")
    if codebook.is_file():
        _refuse_other_study(file, codebook, study)
    _close_late(study)
    rows = person_rows(study.out, study.pools, study.page_groups)
    if finished_only:
        rows = [row for row in rows if _state(row) == FINISHED]
        if not rows:
            raise CalibrantError(f"{study.out}: no participant came to the end yet; leave out --finished for all")
    if file.suffix == ".json":
        write_privately(file, json_text(rows))
    else:
        names = {row.participant for row in rows}
        moves = (move for move in move_rows(study.out, study.pools) if not finished_only or move.participant in names)
        write_privately(file, csv_text(rows, (name for name, _ in study.questions)))
        write_privately(_moves_file(file), moves_text(moves))
    write_privately(codebook, codebook_text(study, rows, file))
    return rows


def _refuse_other_study(file: Path, codebook: Path, study: Study) -> None:
    """Raise `CalibrantError` if a codebook is of a study with another title or another folder of records."""
    title, _, text = codebook.read_text(encoding="utf-8", errors="replace").partition("\n")
    title = title.strip().removeprefix(CODEBOOK_TITLE)
    if title != study.terms.title:
        raise CalibrantError(f"{file}: it is of the study {short_repr(title)}; give --results another name")
    records = next((line.removeprefix(RECORDS) for line in text.splitlines() if line.startswith(RECORDS)), None)
    if records is not None and records != _records_place(study, file):
        problem = f"it is of a study of the same title, whose records are in {short_repr(records)}"
        raise CalibrantError(f"{file}: {problem}; give --results another name")


def _records_place(study: Study, file: Path) -> str:
    """Return the folder of a study's records relative to that of its results, for both may be moved together."""
    return Path(os.path.relpath(study.out, file.parent)).as_posix()


def _moves_file(file: Path) -> Path:
    return file.with_name(f"{file.stem}.moves.csv")


def _close_late(study: Study) -> None:
    """End stops whose limit is over, unless a server is running, which does so itself."""
    if not study.terms.limit or not (study.out / EVENTS.file_name).is_file():
        return
    with suppress(CalibrantError), PlayFolder(study.out, study.pools, study.config) as folder:  # a server runs there
        for name in folder.participants:
            Sitting(folder, name, study.plan, study.terms).close_if_over(0)


def json_text(rows: Iterable[PersonRow]) -> str:
    """Return rows as one JSON list."""
    return json.dumps([row.to_dict() for row in rows], ensure_ascii=False, indent=1) + "\n"


# --- Reviews from the records of a folder, without a running server ---------------------------------------------------


def stored_reviews(folder: Path, pools: Sequence[PlayPool], participant: str) -> list[ReviewedItem]:
    """Return the items that a participant ended, under the pools' own ids, in the order in which they were begun.

    `CalibrantError` if there are none.
    """
    protocol = protocol_of(check_participant(participant))
    by_digest = {pool.digest: pool for pool in pools}
    records = [record for record in folder_records(folder) if record.pool_digest in by_digest]
    chosen = sorted((r for r in records if r.protocol == protocol), key=lambda record: record.timing.started)
    if not chosen:
        names = sorted({record.protocol for record in records if record.protocol.startswith(protocol_of(""))})
        listed = ", ".join(name.removeprefix(protocol_of("")) for name in names[:20]) or "none"
        raise CalibrantError(f"{folder}: {participant} ended no item of these pools; who did: {listed}")
    return [_review(by_digest[record.pool_digest], record) for record in chosen]


def _review(pool: PlayPool, record: Record) -> ReviewedItem:
    """Return the review of a record; attributions of questions are computed here."""
    item = pool.item(record.instance)
    attribution = evidence_attribution(pool.benchmark, item, record)
    return ReviewedItem(pool.benchmark, item, record, exact_episode(pool.benchmark, item), attribution)
