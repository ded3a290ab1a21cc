"""Pages around items: the text of consent, sentences of the start, and questions; recorded, not scored."""

from __future__ import annotations

import io
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal
from unicodedata import category

import msgspec
from msgspec import Meta

from calibrant.bench.core.words import WordsError
from calibrant.bench.play.game import ItemStop, PlayPool, QuestionsStop, Stop
from calibrant.bench.runs.records import FILE_NAME
from calibrant.dsl.errors import CalibrantError, short_repr
from calibrant.dsl.text import plural

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token


# --- The text of consent, in Markdown: as safe HTML for a page, and for a terminal. Nothing in it is loaded or run ----
MAX_CONSENT_CHARS = 40_000  # about 15 pages; parsing is quadratic in unclosed brackets: 1.5 s at this length
FIRST_HEADING = 3  # below the page's "What is kept"
MAX_HEADING = 6
MAX_COLUMNS = 100  # columns of a terminal, for lines that can be read


@lru_cache(maxsize=4)
def consent_html(text: str) -> str:
    """Return the text as HTML. Raw HTML is shown as text, a link as its words and its address, a picture as its words.

    Headings are numbered by their nesting, so that no level is skipped below the page's own.
    """
    parser = _parser()
    tokens = parser.parse(_printable(text))
    _nest_headings(tokens)
    for token in tokens:
        if token.type == "inline":
            token.children = list(_plain_children(token.children or ()))
        elif token.type == "fence":
            token.info = ""  # a class of the page would follow from it
    return str(parser.renderer.render(tokens, parser.options, {}))


def consent_text(text: str) -> str:
    """Return the text as lines for a terminal of the present width, without colours and control characters."""
    from rich.console import Console
    from rich.markdown import Markdown

    document = Markdown(_printable(text), hyperlinks=False)
    document.parsed = _parser().parse(_printable(text))  # the library's own parser drops raw HTML
    columns = min(shutil.get_terminal_size().columns, MAX_COLUMNS)
    console = Console(file=io.StringIO(), width=columns, color_system=None, force_terminal=False)
    with console.capture() as captured:
        console.print(document)
    return "\n".join(line.rstrip() for line in captured.get().splitlines()).strip("\n")


def _parser() -> MarkdownIt:
    """Return the parser of both: raw HTML is text."""
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": False})


def _printable(text: str) -> str:
    """Return the text without control characters, which a terminal would obey.

    Blanks of every width and joiners of letters, which `isprintable` refuses too, are parts of words.
    """
    return "".join(char for char in text if category(char) != "Cc" or char in "\n\t")


def _nest_headings(tokens: Sequence[Token]) -> None:
    """Set the level of each heading by its nesting, from FIRST_HEADING on."""
    open_levels: list[int] = []
    tag = ""
    for token in tokens:
        if token.type == "heading_open":
            level = int(token.tag[1:])
            open_levels = [*(above for above in open_levels if above < level), level]
            tag = f"h{min(FIRST_HEADING + len(open_levels) - 1, MAX_HEADING)}"
        if token.type in ("heading_open", "heading_close"):
            token.tag = tag


def _plain_children(children: Sequence[Token]) -> Iterator[Token]:
    """Yield what stands in a line: links and pictures as text."""
    from markdown_it.token import Token

    addresses: list[str] = []
    label = ""
    for child in children:
        if child.type == "link_open":
            addresses.append("" if child.info == "auto" else str(child.attrs.get("href", "")))
            label = ""
        elif child.type == "link_close":
            address = addresses.pop()
            if address and address != label:
                yield Token("text", "", 0, content=f" ({address})")
        elif child.type == "image":
            yield Token("text", "", 0, content=child.content)
        else:
            label += child.content
            yield child


# --- Sentences of the start: what there is to do, how long it takes, what is kept and where ---------------------------
PRIVACY = "Every move with its time, your answers, and your participant id. No name, no address, no recording."
IN_BROWSER = "It stays in this browser until you save it as a file."
IN_MEMORY = "Nothing is written to a file."


def task_text(stops: Sequence[Stop], pools: Mapping[str, PlayPool], minutes: int = 0) -> str:
    """Return what there is to do, such as "You will solve 3 items (2 detectors, 1 program). It takes about 5 minutes".

    pools: by digest; minutes: as the study states them; 0 where it states none
    """
    kinds = Counter(pools[stop.key.pool_digest].words.kind for stop in stops if isinstance(stop, ItemStop))
    num_pages = sum(isinstance(stop, QuestionsStop) for stop in stops)
    parts = []
    if kinds:
        listed = ", ".join(f"{number} {kind[number != 1]}" for kind, number in kinds.items())
        parts.append(f"solve {plural(kinds.total(), 'items')} ({listed})")
    if num_pages:
        parts.append(f"answer {plural(num_pages, 'pages')} of questions")
    duration = f" It takes about {plural(minutes, 'minutes')}." if minutes else ""
    return f"You will {' and '.join(parts)}.{duration} There is nothing to prepare."


def served_place(folder: Path | None) -> str:
    """Return where a server writes, for participants who may sit elsewhere: without the path of the folder."""
    if folder is None:
        return IN_MEMORY
    return f"It stays on the computer that serves this page, in {folder.absolute().name}/{FILE_NAME}."


def local_place(folder: Path) -> str:
    """Return where a game in the terminal writes."""
    return f"It stays on this computer, in {folder / FILE_NAME}."


# --- Pages of questions in studies: Likert scales, choices, numbers and texts; recorded, not scored -------------------
MAX_TEXT_CHARS = 4_000
MAX_QUESTIONS = 100


class Question(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One question of a page."""

    id: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_.-]{1,64}$", description="name of its column in exports")]
    text: Annotated[str, Meta(min_length=1, max_length=2_000, description="the question")]
    kind: Annotated[Literal["likert", "choice", "number", "text"], Meta(description="form of its answer")]
    options: Annotated[list[str], Meta(max_length=50, description="of a choice")] = []
    points: Annotated[int, Meta(ge=2, le=11, description="of a Likert scale")] = 5
    low: Annotated[str, Meta(max_length=200, description="label of the lowest point")] = ""
    high: Annotated[str, Meta(max_length=200, description="label of the highest point")] = ""
    optional: Annotated[bool, Meta(description="it may be left empty")] = False


class QuestionPage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file of questions."""

    question: Annotated[list[Question], Meta(min_length=1, max_length=MAX_QUESTIONS)]
    title: str = "Questions"


def check_page(page: QuestionPage, file: str) -> list[dict[str, Any]]:
    """Return the questions of a page, ready for JSON; `CalibrantError` names the file and the question."""
    names = [question.id for question in page.question]
    for question in page.question:
        if names.count(question.id) > 1:
            raise CalibrantError(f"{file}: two questions have the id {short_repr(question.id)}")
        if question.kind == "choice" and len(set(question.options)) < 2:
            raise CalibrantError(f"{file}: question {question.id}: a choice needs two different options or more")
    return [_with_scale(question) for question in page.question]


def _with_scale(question: Question) -> dict[str, Any]:
    fields = dict(msgspec.to_builtins(question))
    return fields | ({"points": question.points} if question.kind == "likert" else {})


def value_text(question: Mapping[str, Any]) -> str:
    """Return which values a question has, for the codebook."""
    match question["kind"]:
        case "likert":
            low, high = (f" ({question[end]})" if question.get(end) else "" for end in ("low", "high"))
            text = f"1{low} to {question['points']}{high}"
        case "choice":
            text = " or ".join(question["options"])
        case kind:
            text = {"number": "a number", "text": "a text"}[kind]
    return f"{text}; may be empty" if question.get("optional") else text


def check_answers(questions: Sequence[Mapping[str, Any]], answers: object) -> dict[str, Any]:
    """Return the answers to a page; `WordsError` names the question that lacks one, or has none of the form."""
    if not isinstance(answers, Mapping):
        raise WordsError("answers are an object by question")
    checked: dict[str, Any] = {}
    for question in questions:
        value = answers.get(question["id"])
        if value in (None, ""):
            if not question.get("optional"):
                raise WordsError(f"please answer: {question['text']}")
            continue
        checked[question["id"]] = _check_value(question, value)
    return checked


def _check_value(question: Mapping[str, Any], value: object) -> Any:
    match question["kind"]:
        case "likert":
            points = question["points"]
            if type(value) is not int or not 1 <= value <= points:
                raise WordsError(f"{question['text']}: a number from 1 to {points}")
        case "choice":
            if value not in question["options"]:
                raise WordsError(f"{question['text']}: one of {', '.join(question['options'])}")
        case "number":
            if type(value) not in (int, float) or value != value or abs(float(str(value))) == float("inf"):
                raise WordsError(f"{question['text']}: a number")
        case _:
            if not isinstance(value, str) or len(value) > MAX_TEXT_CHARS:
                raise WordsError(f"{question['text']}: a text of at most {MAX_TEXT_CHARS:,} characters")
    return value
