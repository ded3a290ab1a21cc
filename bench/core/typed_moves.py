"""Typed lines of people who play an item: parsing into moves or edits of a draft answer.

Any other line raises `WordsError`: it costs nothing, and the message names valid lines. So does a move that is visibly
impossible, such as to put an object on the detector that is there already.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, ClassVar, Generic, NamedTuple, TypeAlias, TypeVar

from calibrant.dsl.episode import Action, Step
from calibrant.dsl.errors import CalibrantError, short_repr
from calibrant.dsl.item import Item

I = TypeVar("I", bound=Item[Any, Any])  # noqa: E741  # an item
Draft: TypeAlias = Mapping[str, Any]
"""An answer that is being written, ready for JSON; its keys are the benchmark's."""

MAX_LINE_CHARS = 4_000  # characters of a typed line


class WordsError(CalibrantError):
    """A line that is no move; it costs nothing. The message names valid lines.

    page: the message on a page, where nothing is typed; by default the message up to "; type "
    """

    def __init__(self, message: str, *, page: str = "") -> None:
        super().__init__(message)
        self.page = page or message.partition("; type ")[0]


@dataclass(frozen=True)
class Act:
    """A move: an action of the episode; for a question without steps {"submit": answer}."""

    action: Action


@dataclass(frozen=True)
class Edit:
    """A new draft of the answer; nothing is sent."""

    draft: Draft


class Verb(NamedTuple):
    """One form of a line. form: pattern to type; meaning: phrase that `help` prints beside it."""

    form: str
    meaning: str


class Position(NamedTuple):
    """Public state of a game.

    steps: steps of the episode so far, empty for a question; num_left: remaining steps of the budget
    draft: unfinished answer
    """

    steps: Sequence[Step[Any]]
    num_left: int
    draft: Draft


Reader: TypeAlias = Callable[[Any, Position, str], Act | Edit]


class Words(ABC, Generic[I]):
    """Grammar of typed lines for one benchmark.

    kind: noun for an item, singular and plural
    """

    kind: ClassVar[tuple[str, str]]

    @abstractmethod
    def opening(self, item: I) -> str:
        """Return the text that opens a game: the facts of the models' prompt, without the format of replies."""

    @abstractmethod
    def verbs(self, item: I) -> Sequence[Verb]:
        """Return the forms of lines for an item, in the order of `help`."""

    @abstractmethod
    def readers(self, item: I) -> Mapping[str, Reader]:
        """Return first word of a line -> reader of the rest of it."""

    @abstractmethod
    def answer(self, item: I, draft: Draft) -> dict[str, Any]:
        """Return the answer that a draft states; `WordsError` names what is missing."""

    @abstractmethod
    def draft_lines(self, item: I, draft: Draft) -> Sequence[str]:
        """Return lines that would produce the draft if typed."""

    @abstractmethod
    def view(self, item: I) -> dict[str, Any]:
        """Return the task's data for the page, ready for JSON; its key `view` names the script that draws them."""

    @abstractmethod
    def check_draft(self, item: I, draft: object) -> Draft:
        """Return a draft that a page sent, after checking it; `WordsError` for unknown keys or malformed values."""

    def problems(self, item: I, draft: Draft) -> Mapping[str, str]:
        """Return a mapping: part of the draft -> why it cannot be read. Whether the answer is right is not checked."""
        return {}

    def graph(self, item: I, draft: Draft) -> Mapping[str, Sequence[str]] | None:
        """Return the causes of each variable as a draft states them; None before it states any."""
        return None

    def cells(self, item: I, position: Position) -> Mapping[str, Any]:
        """Return which cells of the evidence a draft reproduces, for feedback while it is written."""
        return {}

    def check_answer(self, item: I, answer: Mapping[str, Any]) -> None:
        """Raise `WordsError` for an answer to a question that could not be scored."""
        return

    def read_form(self, item: I, position: Position, line: str) -> Act | Edit | None:
        """Return the move or edit of a line without a verb, such as `X3 = X1`; None for any other line."""
        return None

    def read_json(self, item: I, line: str) -> Act:
        """Return the action that a line of JSON states."""
        from calibrant.dsl.episode import ActionError, action_of_text

        try:
            return Act(action_of_text(line))
        except ActionError as error:
            raise WordsError(str(error)) from None

    def read(self, item: I, position: Position, line: str) -> Act | Edit:
        """Return the move or edit that a line states; `WordsError` names valid lines."""
        text = line.strip().removeprefix("ACTION:").strip()
        if len(text) > MAX_LINE_CHARS:
            raise WordsError(f"a line of {len(text):,} characters; at most {MAX_LINE_CHARS:,} are read")
        if text.startswith("{"):
            return self.read_json(item, text)
        parsed = self.read_form(item, position, text)
        if parsed is not None:
            return parsed
        readers = self.readers(item)
        verb, _, arguments = text.partition(" ")
        reader = readers.get(verb.lower())
        if reader is None:
            raise WordsError(self.unknown_verb(item, text, tuple(readers)))
        return reader(item, position, arguments.strip())

    def unknown_verb(self, item: I, text: str, verbs: Sequence[str]) -> str:
        """Return the message for a line that begins with no verb; it names the most similar form, else all forms."""
        first = text.split(maxsplit=1)[0].lower() if text.split() else ""
        close = get_close_matches(first, verbs, 1)
        forms = [verb.form for verb in self.verbs(item)]
        suggested = [form for form in forms if close and form.split()[0] == close[0]] or forms
        return f"{short_repr(text)} is no move and costs nothing; type {' | '.join(suggested)} | help"


def match_name(text: str, names: Sequence[str], kind: str) -> str:
    """Return the name equal to a text, ignoring case if only one name matches so; `WordsError` lists the names."""
    if text in names:
        return text
    matches = [name for name in names if name.casefold() == text.casefold()]
    if len(matches) == 1:
        return matches[0]
    close = get_close_matches(text, names, 1)
    hint = f"; did you mean {close[0]}?" if close else ""
    raise WordsError(f"no {kind} {short_repr(text)}; there are {', '.join(names)}{hint}")


def read_number(text: str, example: str) -> float:
    """Parse a finite number, an int if it is whole; `WordsError` shows `example`."""
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if number != number or abs(number) == float("inf"):
        raise WordsError(f"expected a number, found {short_repr(text)}; type for example {example}")
    return int(number) if number.is_integer() and abs(number) < 2**53 else number
