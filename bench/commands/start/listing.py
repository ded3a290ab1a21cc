"""Command `calibrant list`."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import msgspec
import typer

from calibrant.bench.commands.guard import READS, WRITES_PAGE
from calibrant.bench.commands.options import AsJson, PoolPath, refuse_options
from calibrant.bench.core.attribution import KEY, share_key
from calibrant.bench.core.benchmark import Benchmark
from calibrant.bench.help import INPUT, ITEMS, OUTPUT, VIEW
from calibrant.bench.terminal import json_text
from calibrant.dsl.errors import CalibrantError, in_one_line, short_repr
from calibrant.dsl.parse_limits import TooLargeError, decode_json
from calibrant.dsl.records import MAX_CACHED_ITEMS, file_digest, plain_pool
from calibrant.dsl.text import plural

if TYPE_CHECKING:
    from calibrant.bench.pages.terminal_tables import Fitted


DEFAULT_LIMIT = 20
MAX_CRASH_LINES = 10
COUNTED_CLASS = "counted"  # row key: description of the hypothesis class that Left and Fit count
COLUMNS = {
    "id": "Id",
    "setting": "Setting",
    "suite": "Suite",
    "system": "System",
    "sample": "Sample",
    "class": "Class",
    "moves": "Moves",
    "left": "Left",  # number of remaining hypotheses
    "right": "Right",  # whether the answer is right
    "fit": "Fit",
    "reason": "Why",
}
# columns that a narrow terminal keeps after id and system, in this order; the class of an answer implies `right`
NARROW_COLUMNS = (
    "class",
    "left",
    "sample",
    "right",
    "fit",
    "moves",
)
MIN_REASON_WIDTH = 30


Scores: TypeAlias = Annotated[
    list[Path] | None,
    typer.Option(
        "--scores",
        metavar="FILE|DIR",
        help="List answers: a file of `calibrant score --out`, or a run.",
        rich_help_panel=INPUT,
    ),
    READS,
]


Assumption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--assume",
        metavar="FILE",
        help="With --why: only hypotheses that satisfy its lines, such as `require X1 -> X2`.",
        rich_help_panel=INPUT,
    ),
    READS,
]


def list_items(
    pool: PoolPath,
    setting: Annotated[
        str | None, typer.Option("--setting", metavar="NAME", help="Only items of this setting.", rich_help_panel=ITEMS)
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", min=0, help="Maximum number of lines; 0 lists all.", rich_help_panel=ITEMS)
    ] = DEFAULT_LIMIT,
    why: Annotated[
        bool, typer.Option("--why", help="Also how many hypotheses fit, and why an item is open.", rich_help_panel=VIEW)
    ] = False,
    assume: Assumption = None,
    scores: Scores = None,
    kind: Annotated[
        Literal["earned", "lucky", "short", "missed", "uncounted", "invalid", "no_answer"] | None,
        typer.Option("--class", help="With --scores: only answers of this class.", rich_help_panel=ITEMS),
    ] = None,
    system: Annotated[
        str | None,
        typer.Option(
            "--system", metavar="NAME", help="With --scores: only answers of this system.", rich_help_panel=ITEMS
        ),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(
            "--html",
            metavar="FILE",
            help="Write one page of the listed items and why each is open, instead of a list; with --why both.",
            rich_help_panel=OUTPUT,
        ),
        WRITES_PAGE,
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the items of a pool in the order of the file: id, setting and suite; with --why the reason of each.

    With --scores the answers to them: class (earned, lucky, short, missed or another), moves, how many hypotheses were
    left, and whether it is right. With --json an object a line. For a pool of more than 2,000 items --limit 0
    lists only ids; --setting and --why read the whole pool, which takes longer.
    """
    from calibrant.bench.core.items import refuse_empty
    from calibrant.bench.core.registry import benchmark_of, is_native_pool
    from calibrant.bench.terminal import NextCommand, print_next

    _refuse_other_mode(
        scores, {"--why": why, "--html": html, "--assume": assume}, {"--class": kind, "--system": system}
    )
    benchmark = benchmark_of(pool)
    # for a large pool alone: of its items only the listed ones are read
    ids = large_pool_ids(pool) if not scores and setting is None and is_native_pool(pool) else None
    if ids is not None and not limit and not why and html is None:
        _print_ids(ids, as_json=as_json)
        return
    items = first_items(benchmark, pool, limit) if ids is not None and limit else benchmark.items.read_pool(pool).items
    refuse_empty(len(items), pool)
    matching_indices = _select_setting(items, setting, pool.name)
    if scores:
        answers = AnswerFilter(benchmark, pool, items, frozenset(matching_indices), kind, system)
        _list_answers(answers, scores, limit, as_json=as_json)
        return
    indices = matching_indices[:limit] if limit else matching_indices
    conditioned = None if assume is None else _apply_knowledge(benchmark, [items[k] for k in indices], assume)
    num_matching = len(matching_indices) if ids is None else len(ids)
    if html is None or why or as_json:
        rows = _item_rows(benchmark, conditioned or (items[k] for k in indices), why=why)
        _print_rows(rows, len(indices), num_matching, "item", as_json=as_json)
    if html is not None:
        _write_index(benchmark, pool, conditioned or (items[k] for k in indices), html)
        print_next([] if as_json else [NextCommand(("audit", pool), "counts and findings")])


def _refuse_other_mode(
    scores: Sequence[Path] | None, item_options: Mapping[str, object], answer_options: Mapping[str, object]
) -> None:
    """Refuse item options with --scores, answer options without it, and --assume without --why or --html."""
    if scores:
        refuse_options(item_options, "it is about items, and --scores lists answers")
        return
    refuse_options(answer_options, "it is about answers: give --scores")
    if not item_options["--why"] and item_options["--html"] is None:
        refuse_options({"--assume": item_options["--assume"]}, "it is about what fits: give --why")


def _apply_knowledge(benchmark: Benchmark[Any], items: Sequence[Any], file: Path) -> Sequence[Any]:
    """Return the items restricted by the statements of a file; `CalibrantError` if no item admits the statements."""
    from calibrant.bench.core.capabilities import ASSUME
    from calibrant.dsl.knowledge import read_knowledge

    assumable, knowledge = benchmark.require(ASSUME), read_knowledge(file, "--assume")
    refusals = []
    for item in items:
        try:
            assumable.check(item, knowledge)
        except CalibrantError as refusal:
            refusals.append(refusal)
    if refusals and len(refusals) == len(items):
        raise refusals[0]
    return [assumable.assume(item, knowledge) for item in items]


def _select_setting(items: Sequence[Any], setting: str | None, name: str) -> Sequence[int]:
    """Return the indices of the items of a setting, of all if None; `CalibrantError` if there are none."""
    if setting is None:
        return range(len(items))
    chosen = [k for k, item in enumerate(items) if item.setting == setting]
    if not chosen:
        settings = ", ".join(dict.fromkeys(item.setting for item in items))
        raise CalibrantError(f"{name} has no item of setting {short_repr(setting)}; it has {settings}")
    return chosen


def _list_answers(answers: AnswerFilter, scores: Sequence[Path], limit: int, *, as_json: bool) -> None:
    rows = list(answers.rows(scores))
    if not as_json and not any(row["sample"] for row in rows):
        rows = [{**row, "sample": None} for row in rows]  # only first samples: the table leaves the column out
    first = rows[:limit] if limit else rows
    _print_rows(first, len(first), len(rows), "answer", as_json=as_json)
    shares = [row["right_of_ties"] for row in rows if row.get("right_of_ties") is not None]
    if shares and not as_json:
        from calibrant.bench.answers.rates import exact_mean

        mean = f"{exact_mean(shares):.3f}"
        text = (
            f"{plural(len(shares), 'answers')} listed as its tie rule chose; of all equally good ones {mean} are right"
        )
        typer.echo(f"{text}, as `calibrant table` counts them", err=True)
    if not as_json:
        crashes = Counter((row.get("system") or "", row["crash"]) for row in rows if row["crash"])
        for (system, crash), num_crashes in crashes.most_common(MAX_CRASH_LINES):
            subject = f"{in_one_line(system)}: " if system else ""
            typer.echo(f"{subject}{plural(num_crashes, 'answers')} crashed: {crash}", err=True)


def _item_rows(benchmark: Benchmark[Any], items: Iterable[Any], *, why: bool) -> Iterator[dict[str, Any]]:
    """Yield a row for each item, keyed as COLUMNS; with `why` also COUNTED_CLASS, None without an explanation."""
    from calibrant.bench.core.capabilities import STATISTICS
    from calibrant.bench.runs.audits import explain_item, reason_record

    suite_of = benchmark.require(STATISTICS).group
    for item in items:
        row = {"id": item.id, "setting": item.setting, "suite": suite_of(item)}
        if why:
            explanation = explain_item(benchmark, item)  # a text where the item cannot be explained
            reason = reason_record(explanation)
            row |= {"fit": reason.fit, "reason": reason.reason}
            row[COUNTED_CLASS] = None if isinstance(explanation, str) else explanation.class_in_words
        yield row


def _write_index(benchmark: Benchmark[Any], pool: Path, items: Iterable[Any], html: Path) -> None:
    from calibrant.bench.pages.capabilities import EXPLANATIONS
    from calibrant.bench.pages.why import MAX_EMBEDDED, IndexItem, index_page, with_pool
    from calibrant.bench.runs.audits import explain_item, reason_record
    from calibrant.bench.terminal import print_written
    from calibrant.dsl.atomic_write import write_atomically

    explanations = benchmark.require(EXPLANATIONS)

    def index_items() -> Iterator[IndexItem]:
        num_pages = 0
        for item in items:
            explanation = explain_item(benchmark, item)
            if isinstance(explanation, str) or num_pages >= MAX_EMBEDDED:
                yield IndexItem(item.id, reason_record(explanation))
            else:
                body = with_pool(explanations.body(explanation, f"i{num_pages}"), pool)
                yield IndexItem(item.id, reason_record(explanation), body)
                num_pages += 1

    write_atomically(html, index_page(pool.name, index_items()))
    print_written(html)


def _print_rows(
    rows: Iterable[Mapping[str, Any]], num_rows: int, num_matching: int, noun: str, *, as_json: bool
) -> None:
    """Print rows as JSON lines, or as a table without empty columns, followed by their number.

    num_matching: number of rows without --limit
    """
    if as_json:
        for row in rows:
            sys.stdout.write(json_text(row, indent=None) + "\n")
        return
    rows = list(rows)
    texts = [{key: _cell(key, row.get(key)) for key in COLUMNS} for row in rows]
    left_out: tuple[str, ...] = ()
    if texts:
        width = max(len(text["left"]) for text in texts)
        texts = [{**text, "left": text["left"].rjust(width)} for text in texts]
        table = _table(texts)
        text, left_out = table.text, table.left_out
        typer.echo(text)
    more = "" if num_rows == num_matching else "; --limit 0 for all, --json for scripts"
    listed = plural(num_matching, f"{noun}s")
    typer.echo(f"{num_rows} of {listed}{more}" if more else listed, err=True)
    for line in _counted_lines(rows):
        typer.echo(line, err=True)
    if left_out:
        _print_left_out(left_out)


def _counted_lines(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a line for each hypothesis class that Left or Fit counts; with several classes it names the items."""
    heading = "Left" if any(row.get("left") for row in rows) else "Fit"
    ids: dict[str, list[str]] = {}
    for row in rows:
        if row.get(COUNTED_CLASS) and (row.get("left") or row.get("fit")):
            ids.setdefault(row[COUNTED_CLASS], []).append(str(row["id"]))
    for class_in_words, class_ids in ids.items():
        first = in_one_line(class_ids[0])
        others = len(set(class_ids)) - 1
        items = f" (of {first}{f' and {others} more' if others else ''})" if len(ids) > 1 else ""
        yield f"{heading} counts {class_in_words}{items}"
    if any(row.get("class") in ("earned", "missed") and row.get("left") not in (None, "1") for row in rows):
        yield "Earned and missed: what is left decides the answer, though it may be several"


def _print_left_out(headings: Sequence[str]) -> None:
    from calibrant.bench.terminal import NextCommand, invocation, width_of

    words = invocation.get()
    hint = f"; `{NextCommand((*words, '--json'), '').line}` shows them" if words else ""
    typer.echo(f"left out to fit {width_of(sys.stdout)} columns: {', '.join(headings)}{hint}", err=True)


def _print_ids(ids: Sequence[str], *, as_json: bool) -> None:
    if as_json:
        sys.stdout.writelines(f"{json_text({'id': name}, indent=None)}\n" for name in ids)
        return
    sys.stdout.writelines(f"{in_one_line(name)}\n" for name in (COLUMNS["id"], *ids))
    typer.echo(plural(len(ids), "items"), err=True)


def _cell(key: str, value: object) -> str:
    """Return the text of a cell; numbers of hypotheses may be arbitrarily large."""
    from calibrant.audits.why import number_text

    if key == "left" and value is not None:
        return number_text(int(str(value)))
    return "" if value is None else ("yes" if value else "no") if isinstance(value, bool) else str(value)


def _table(rows: Sequence[Mapping[str, str]]) -> Fitted:
    """Return the rows as a table that fits the width; the last column is wrapped if it is the reason."""
    from calibrant.bench.pages.terminal_tables import GAP, Fitted, aligned, fit_columns, wrapped_row
    from calibrant.bench.terminal import RECORDS_BELOW, width_of

    width = width_of(sys.stdout)
    columns = {key: heading for key, heading in COLUMNS.items() if key == "id" or any(row[key] for row in rows)}
    if "reason" not in columns or width < RECORDS_BELOW:
        return fit_columns(columns, rows, first=NARROW_COLUMNS, labels=("id", "system"), width=width)
    # the wrapped reason takes the width of setting and suite
    labels = [key for key in columns if key not in ("reason", "setting", "suite")]
    label_width = sum(max(len(columns[key]), *(len(row[key]) for row in rows)) + GAP for key in labels)
    reason_width = max(MIN_REASON_WIDTH, width - label_width)
    keys = [*labels, "reason"]
    lines = [line for row in rows for line in wrapped_row([in_one_line(row[key]) for key in keys], reason_width)]
    return Fitted(aligned([columns[key] for key in keys], lines), ())


# --- Large pools: all ids are read, but only listed items are checked -------------------------------------------------


class _IdOnly(msgspec.Struct):
    id: str


def large_pool_ids(path: Path) -> list[str] | None:
    """Return the ids of a native pool of more than 2,000 items; None for others, and if a line is no item."""
    with plain_pool(path) as file:
        next(file, b"")
        try:
            ids = [decode_json(line, _IdOnly).id for line in file if not line.isspace()]
        except (msgspec.DecodeError, UnicodeDecodeError, TooLargeError):  # `read_pool` names the line
            return None
    return ids if len(ids) > MAX_CACHED_ITEMS else None


def first_items(benchmark: Benchmark[Any], path: Path, num_items: int) -> Sequence[Any]:
    """Return the first items of a native pool, checked, without reading the others."""
    with TemporaryDirectory(prefix="calibrant-list-") as folder, plain_pool(path) as file:
        head = Path(folder) / path.name.removesuffix(".gz")
        lines = (line for line in file if not line.isspace())
        head.write_bytes(b"".join(islice(lines, num_items + 1)))  # the header, then the items
        items: Sequence[Any] = benchmark.items.read_pool(head).items
        return items


# --- Answers to items of a pool, for `calibrant list --scores` --------------------------------------------------------


@dataclass(frozen=True)
class AnswerFilter:
    """Selection of the answers to chosen items of a pool.

    indices: positions of the chosen items in `items`; kind: class of the selected answers (earned, ...), all if None
    system: name of the system whose answers are selected, all if None
    """

    benchmark: Benchmark[Any]
    pool: Path
    items: Sequence[Any]
    indices: Collection[int]
    kind: str | None
    system: str | None

    def rows(self, sources: Sequence[Path]) -> Iterator[dict[str, Any]]:
        """Yield a row for each answer, in the order of the sources; `CalibrantError` if there are none of the pool."""
        from calibrant.bench.report.pool_attribution import add_attributions
        from calibrant.bench.report.sources import scored_answers

        digest, systems = file_digest(self.pool), dict[str, None]()
        index_by_id = {item.id: index for index, item in enumerate(self.items)}
        answers = ((context, score) for context, score in scored_answers(sources) if context.pool_digest == digest)
        num_answers = 0
        # --class needs attributions; without it recorded ones are listed, and none is computed
        for context, score in add_attributions(answers, [self.pool] if self.kind else [], with_chance=False):
            num_answers += 1
            systems[context.system] = None
            attribution = score.get(KEY) or {}
            if self.system not in (None, context.system) or index_by_id.get(context.instance) not in self.indices:
                continue
            if self.kind in (None, share_key(score)):
                yield self._row(context, score, attribution)
        if not num_answers:
            names = ", ".join(map(str, sources))
            raise CalibrantError(f"no answer in {names} is to an item of {self.pool.name}; its SHA-256 is {digest[:8]}")
        if self.system is not None and self.system not in systems:
            raise CalibrantError(f"no answer of {short_repr(self.system)}; there are {', '.join(systems)}")

    def _row(self, context: Any, score: Mapping[str, Any], attribution: Mapping[str, Any]) -> dict[str, Any]:
        row: dict[str, Any] = {"id": context.instance, "setting": context.setting}
        if self.system is None:
            row["system"] = context.system
        row["sample"] = context.sample
        steps = score.get("steps", score.get("num_steps"))
        success = self.benchmark.metrics.success
        ties = {"right_of_ties": success.rate(score, context.setting)} if context.is_tied else {}
        return row | {
            "class": share_key(score),
            "moves": steps if isinstance(steps, int) else None,
            "left": attribution.get("members"),
            COUNTED_CLASS: attribution.get("class"),
            "crash": context.reason if context.outcome == "crashed" else None,
            "right": success.judge(score, context.setting),
            **ties,
        }
