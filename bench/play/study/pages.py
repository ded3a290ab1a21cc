"""Pages of a study besides items: consent, start, questions; and translations."""

from __future__ import annotations

import io
import json
import re
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal
from unicodedata import category

import msgspec
from msgspec import Meta

from calibrant.bench.core.typed_moves import WordsError
from calibrant.bench.play import game
from calibrant.bench.play.clocks import StudyTime
from calibrant.bench.play.folder import ANSWERS, PASSED, RESTART, TIME_UP, PlayFolder, Visit
from calibrant.bench.runs.records import FILE_NAME
from calibrant.bench.toml_file import read_toml
from calibrant.dsl.errors import CalibrantError, short_repr
from calibrant.dsl.text import plural

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token


# --- The text of consent in Markdown, as safe HTML and for a terminal; nothing in it is loaded or run -----------------
MAX_CONSENT_CHARS = 40_000  # about 15 pages; parsing is quadratic in unclosed brackets: 1.5 s at this length
FIRST_HEADING = 3  # first level of headings in consent, below the page's own
PAGE_HEADING = 2  # first level of headings in instructions
MAX_HEADING = 6
MAX_COLUMNS = 100  # largest width of lines in a terminal, in characters


@lru_cache(maxsize=16)
def consent_html(text: str, first_heading: int = FIRST_HEADING) -> str:
    """Return the text as HTML; raw HTML becomes text, a link its text and address, a picture its description.

    Levels of headings follow their nesting, so that none is skipped.

    first_heading: level of the outermost headings
    """
    parser = _parser()
    tokens = parser.parse(_printable(text))
    _nest_headings(tokens, first_heading)
    for token in tokens:
        if token.type == "inline":
            token.children = list(_plain_children(token.children or ()))
        elif token.type == "fence":
            token.info = ""  # it would become a CSS class
    return str(parser.renderer.render(tokens, parser.options, {}))


def consent_text(text: str) -> str:
    """Return the text as lines for a terminal of its current width, without colours and control characters."""
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
    """Return the parser for HTML and terminal, for which raw HTML is text."""
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": False})


def _printable(text: str) -> str:
    """Remove control characters, which a terminal would execute.

    Blanks of every width and joiners of letters stay, although `isprintable` excludes them.
    """
    return "".join(char for char in text if category(char) != "Cc" or char in "\n\t")


def _nest_headings(tokens: Sequence[Token], first: int) -> None:
    """Set the level of each heading by its nesting. first: level of the outermost headings."""
    open_levels: list[int] = []
    tag = ""
    for token in tokens:
        if token.type == "heading_open":
            level = int(token.tag[1:])
            open_levels = [*(above for above in open_levels if above < level), level]
            tag = f"h{min(first + len(open_levels) - 1, MAX_HEADING)}"
        if token.type in ("heading_open", "heading_close"):
            token.tag = tag


def _plain_children(children: Sequence[Token]) -> Iterator[Token]:
    """Yield the tokens of a line, with links and pictures as text."""
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


# --- Sentences of the start page: task, duration, recorded data and where they are stored -----------------------------
PRIVACY = "Every move with its time, your answers, and your participant id. No name, no address, no recording."
IN_BROWSER = "It stays in this browser until you save it as a file."
IN_SOME_GROUPS = "It may be less, by the group in which you are."
IN_MEMORY = "Nothing is written to a file."


def task_text(stops: Sequence[game.Stop], pools: Mapping[str, game.PlayPool], minutes: int = 0) -> str:
    """Return the task, such as "You will solve 3 items (2 detectors, 1 program). It takes about 5 minutes".

    pools: digest -> pool; minutes: stated duration, 0 if none is stated
    """
    kinds = Counter(pools[stop.key.pool_digest].words.kind for stop in stops if isinstance(stop, game.ItemStop))
    num_pages = sum(isinstance(stop, game.QuestionsStop) and not stop.instructions for stop in stops)
    num_instructions = sum(isinstance(stop, game.QuestionsStop) and bool(stop.instructions) for stop in stops)
    parts = []
    if num_instructions:
        parts.append(f"read {plural(num_instructions, 'pages')} of instructions")
    if kinds:
        listed = ", ".join(f"{number} {kind[number != 1]}" for kind, number in kinds.items())
        parts.append(f"solve {plural(kinds.total(), 'items')} ({listed})")
    if num_pages:
        parts.append(f"answer {plural(num_pages, 'pages')} of questions")
    duration = f" It takes about {plural(minutes, 'minutes')}." if minutes else ""
    listed = " and ".join(filter(None, [", ".join(parts[:-1]), parts[-1]]))
    return f"You will {listed}.{duration} There is nothing to prepare."


def start_text(plan: game.Plan, participant: str, terms: game.Terms, pools: Mapping[str, game.PlayPool]) -> str:
    """Return the task as stated before a group is assigned: that of the group with most stops if groups differ."""
    assigned: list[game.Assignment | None] = [game.Assignment(group, 0) for group in terms.groups]
    plans = sorted((plan(participant, group) for group in assigned or [None]), key=len)
    texts = [task_text(stops, pools, terms.minutes) for stops in plans]
    return texts[-1] if len(set(texts)) == 1 else f"{texts[-1]} {IN_SOME_GROUPS}"


def limit_text(seconds: int) -> str:
    """Return the sentence on a study's time limit; empty without a limit."""
    if not seconds:
        return ""
    duration = plural(seconds, "seconds") if seconds % 60 else plural(seconds // 60, "minutes")
    return f"The study ends {duration} after you begin, even while this window is closed."


def served_place(folder: Path | None) -> str:
    """Return where a server stores data, without the path, which remote participants need not know."""
    if folder is None:
        return IN_MEMORY
    return f"It stays on the computer that serves this page, in {folder.absolute().name}/{FILE_NAME}."


def local_place(folder: Path) -> str:
    """Return where a game in the terminal stores data."""
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
    min: Annotated[float | None, Meta(description="least number")] = None
    max: Annotated[float | None, Meta(description="greatest number")] = None
    whole: Annotated[bool, Meta(description="a whole number")] = False
    correct: Annotated[
        str | int | float | None, Meta(description="the right answer, of a check; never shown to participants")
    ] = None


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
        has_bounds = question.min is not None or question.max is not None or question.whole
        if has_bounds and question.kind != "number":
            raise CalibrantError(f"{file}: question {question.id}: min, max and whole are of numbers")
        if question.min is not None and question.max is not None and question.min > question.max:
            raise CalibrantError(f"{file}: question {question.id}: min is {question.min:g}, above max {question.max:g}")
    checked = [_with_scale(question) for question in page.question]
    for fields in checked:
        if game.CORRECT in fields:
            try:
                _check_value(fields, fields[game.CORRECT])
            except WordsError as error:
                raise CalibrantError(
                    f"{file}: question {fields['id']}: correct is none of its answers: {error}"
                ) from None
    return checked


def translated_questions(questions: Sequence[Mapping[str, Any]], page: QuestionPage, file: str) -> list[dict[str, Any]]:
    """Return the translated texts of questions; answers are recorded in the first language.

    `CalibrantError` if the file has other questions, or another number of options.
    """
    texts = []
    names = [question["id"] for question in questions]
    if [question.id for question in page.question] != names:
        raise CalibrantError(f"{file}: its questions have the ids {', '.join(names)}, in this order")
    for question, translated in zip(questions, page.question, strict=True):
        if translated.kind != question["kind"] or len(translated.options) != len(question.get("options", ())):
            raise CalibrantError(f"{file}: question {translated.id} has another kind or number of options")
        text: dict[str, Any] = {name: getattr(translated, name) for name in ("text", "low", "high")}
        texts.append(text | ({"labels": translated.options} if translated.options else {}))
    return texts


def _with_scale(question: Question) -> dict[str, Any]:
    fields = dict(msgspec.to_builtins(question))
    return fields | ({"points": question.points} if question.kind == "likert" else {})


def value_text(question: Mapping[str, Any]) -> str:
    """Return the possible values of a question, for the codebook."""
    match question["kind"]:
        case "likert":
            low, high = (f" ({question[end]})" if question.get(end) else "" for end in ("low", "high"))
            text = f"1{low} to {question['points']}{high}"
        case "choice":
            text = " or ".join(question["options"])
        case kind:
            text = _number_text(question) if kind == "number" else f"a text of at most {MAX_TEXT_CHARS:,} characters"
    return text


def _number_text(question: Mapping[str, Any]) -> str:
    """Return the allowed numbers as text, such as "a whole number from 18 to 99"."""
    low, high = (question.get(bound) for bound in ("min", "max"))
    text = "a whole number" if question.get("whole") else "a number"
    if low is not None and high is not None:
        return f"{text} from {low:g} to {high:g}"
    if low is not None:
        return f"{text} of at least {low:g}"
    return text if high is None else f"{text} of at most {high:g}"


def answers_event(stop: game.QuestionsStop, answers: object) -> dict[str, Any]:
    """Return the event that records answers to a page; `WordsError` as in `check_answers`.

    It has the ids of checks with a wrong answer and, for instructions, whether no check has one.
    """
    return _judged_event(stop, check_answers(stop.questions, answers))


def _judged_event(stop: game.QuestionsStop, answers: Mapping[str, Any], *, is_late: bool = False) -> dict[str, Any]:
    """Return the event that records checked answers.

    is_late: whether the time was up; answers may be missing then, and a check without an answer is not judged
    """
    event: dict[str, Any] = {ANSWERS: answers} | ({TIME_UP: True} if is_late else {})
    checks = [q for q in stop.questions if game.CORRECT in q and not (is_late and q["id"] not in answers)]
    if checks:
        event["failed"] = [q["id"] for q in checks if not _is_correct(q, answers.get(q["id"]))]
    if stop.instructions:
        event[PASSED] = not event.get("failed")
    return event


def _is_correct(question: Mapping[str, Any], value: object) -> bool:
    if isinstance(value, str) and question["kind"] == "text":
        return value.strip().casefold() == str(question[game.CORRECT]).strip().casefold()
    return bool(value == question[game.CORRECT])


GRACE_SECONDS = 5.0
"""How long after the limit answers are accepted: a page retries a request after 0.3, 0.6, 1.2 and 2.4 s."""


class PagePlayer(Visit):
    """One participant on a page of questions; if the page or the study has a limit, drafts of answers are stored."""

    def __init__(
        self,
        folder: PlayFolder,
        participant: str,
        stop: game.QuestionsStop,
        study: StudyTime,
        clock: Callable[[], float],
    ) -> None:
        super().__init__(folder, participant, stop.key, clock, limit=stop.limit, study=study)
        self.stop = stop
        self.is_timed = bool(stop.limit or study.limit)
        if self.is_timed or self.elapsed_before:
            self._add({"open": {RESTART: True} if self.elapsed_before else {}})

    @property
    def draft(self) -> dict[str, Any]:
        """The last stored answers that are not submitted, by question; empty if there are none."""
        events = self.folder.events(self.participant, self.item)
        return next((dict(record.event["draft"]) for record in reversed(events) if "draft" in record.event), {})

    def write(self, answers: object) -> None:
        """Replace the draft by those of these answers that are well-formed, if there is a limit."""
        draft = _allowed_answers(self.stop.questions, answers)
        if self.is_timed and draft != self.draft:
            self._add({"draft": draft})

    def submit(self, answers: object) -> None:
        """Record the answers; `WordsError` as in `check_answers`."""
        self._add(answers_event(self.stop, answers))

    def close_if_late(self, answers: object = None) -> bool:
        """Record the answers so far if the time is up; return whether it is.

        Instructions are an exception: unfinished answers to them are not recorded.

        answers: sent by the page, and recorded up to GRACE_SECONDS after the limit; after that the draft is recorded
        """
        if self.seconds_left:
            return False
        is_in_time = answers is not None and self.balance > -GRACE_SECONDS
        recorded = _allowed_answers(self.stop.questions, answers) if is_in_time else self.draft
        if not self.stop.checks_instructions:  # there a record would count as an attempt
            self._add(_judged_event(self.stop, recorded, is_late=True), is_late=True)
        return True


def _allowed_answers(questions: Sequence[Mapping[str, Any]], answers: object) -> dict[str, Any]:
    """Return those of these answers, by question, that are well-formed."""
    allowed: dict[str, Any] = {}
    for question in questions:
        value = answers.get(question["id"]) if isinstance(answers, Mapping) else None
        with suppress(WordsError):
            allowed |= {} if value in (None, "") else {question["id"]: _check_value(question, value)}
    return allowed


def check_answers(questions: Sequence[Mapping[str, Any]], answers: object) -> dict[str, Any]:
    """Return the answers to a page by question; `WordsError` for a missing or malformed one, with the question."""
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
    about = question["text"].rstrip("?.:! ")
    match question["kind"]:
        case "likert":
            points = question["points"]
            if type(value) is not int or not 1 <= value <= points:
                raise WordsError(f"{about}: a number from 1 to {points}")
        case "choice":
            if value not in question["options"]:
                raise WordsError(f"{about}: one of {', '.join(question['options'])}")
        case "number":
            if not _is_allowed_number(question, value):
                raise WordsError(f"{about}: {_number_text(question)}")
        case _:
            if not isinstance(value, str) or len(value) > MAX_TEXT_CHARS:
                raise WordsError(f"{about}: a text of at most {MAX_TEXT_CHARS:,} characters")
    return value


def _is_allowed_number(question: Mapping[str, Any], value: object) -> bool:
    """Return whether a value is a finite number within the bounds of a question."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    low, high = question.get("min"), question.get("max")
    is_within = (low is None or value >= low) and (high is None or value <= high)
    return is_within and abs(value) <= sys.float_info.max and (not question.get("whole") or value == int(value))


# --- Languages: files that map English texts of the pages, or patterns of texts, to translations ----------------------
LANGUAGES = Path(__file__).resolve().parents[1] / "languages"
_CODE = re.compile(r"[a-z]{2,3}(-[A-Za-z]{2,4})?")
_PLACEHOLDER = re.compile(r"\{(\w+)(?::t)?\}")  # {name}, or {name:t} for a text that is translated too


class LanguageFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file of texts."""

    name: Annotated[str, Meta(min_length=1, max_length=50, description="of the language, in the language")]
    texts: Annotated[dict[str, str], Meta(description="translation by English text; {name} stands for what varies")]


def read_language(code_or_file: str, folder: Path) -> game.Language:
    """Return the bundled language of a code, or that of a file in a folder; `CalibrantError` for anything else."""
    if code_or_file == game.ENGLISH.code:
        return game.ENGLISH
    path = folder / code_or_file if code_or_file.endswith(".toml") else LANGUAGES / f"{code_or_file}.toml"
    if not _CODE.fullmatch(path.stem) or not path.is_file():
        listed = ", ".join(["en", *sorted(file.stem for file in LANGUAGES.glob("*.toml"))])
        problem = f"no language {short_repr(code_or_file)}; there are {listed}, or give a file of texts such as fr.toml"
        raise CalibrantError(f"study.lang: {problem}, beside the study")
    content = read_toml(path, LanguageFile)
    for text, translation in content.texts.items():
        unknown = {*_PLACEHOLDER.findall(translation)} - {*_PLACEHOLDER.findall(text)}
        if unknown:
            raise CalibrantError(f"{path.name}: {short_repr(text)} has no {{{min(unknown)}}}, its translation has")
    return game.Language(path.stem, content.name, json.dumps(content.texts, ensure_ascii=False))


def add_title(language: game.Language, title: str, translation: str) -> game.Language:
    """Return a language to which translations of the titles of a study and of its practice are added."""
    texts = json.loads(language.texts)
    practice = {f"{title}: practice": f"{translation}: {texts.get('practice', 'practice')}"}
    return language._replace(texts=json.dumps({**texts, title: translation, **practice}, ensure_ascii=False))


def missing_texts(language: game.Language) -> list[str]:
    """Return the English texts without a translation, which the page shows in English."""
    if language == game.ENGLISH:
        return []
    expected = read_toml(LANGUAGES / "de.toml", LanguageFile).texts
    return [text for text in expected if text not in json.loads(language.texts)]


def in_language(name: str, code: str) -> str:
    """Return the name that a study's file has in another language, such as intro.de.md for intro.md."""
    return str(Path(name).with_suffix(f".{code}{Path(name).suffix}"))
