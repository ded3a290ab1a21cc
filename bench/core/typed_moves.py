"""Words for people: what somebody types about an item, and the move or the change of a draft that it states.

A line that states neither is a `WordsError`: it costs nothing, and its message names what would work. Moves that a
person can see to be impossible (an object that is on the detector already) are refused in the same way.
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
    """A line that is no move; it costs nothing. The message says what would work.

    page: the message in the words of a page, where nothing is typed; by default without what could be typed
    """

    def __init__(self, message: str, *, page: str = "") -> None:
        super().__init__(message)
        self.page = page or message.partition("; type ")[0]


@dataclass(frozen=True)
class Act:
    """A move: an action of the episode; of a question {"submit": answer}."""

    action: Action


@dataclass(frozen=True)
class Edit:
    """A new draft of the answer; nothing is sent."""

    draft: Draft


class Verb(NamedTuple):
    """One form of a line. form: pattern that is typed; meaning: phrase that `help` prints beside it."""

    form: str
    meaning: str


class Position(NamedTuple):
    """Public state of a game.

    steps: steps of the episode so far, empty for a question; num_left: steps of the allowance that remain
    draft: answer that is being written
    """

    steps: Sequence[Step[Any]]
    num_left: int
    draft: Draft


Reader: TypeAlias = Callable[[Any, Position, str], Act | Edit]


class Words(ABC, Generic[I]):
    """Words of one benchmark.

    kind: what an item is called, singular and plural
    """

    kind: ClassVar[tuple[str, str]]

    @abstractmethod
    def opening(self, item: I) -> str:
        """Return what a person reads first: the facts of the prompt for models, without the form of their replies."""

    @abstractmethod
    def verbs(self, item: I) -> Sequence[Verb]:
        """Return the forms of lines for an item, in the order of `help`."""

    @abstractmethod
    def readers(self, item: I) -> Mapping[str, Reader]:
        """Return by its first word how the rest of a line is read."""

    @abstractmethod
    def answer(self, item: I, draft: Draft) -> dict[str, Any]:
        """Return the answer that a draft states; `WordsError` names what is missing."""

    @abstractmethod
    def draft_lines(self, item: I, draft: Draft) -> Sequence[str]:
        """Return the draft as lines that could be typed."""

    @abstractmethod
    def view(self, item: I) -> dict[str, Any]:
        """Return what a page shows of the item, ready for JSON, made from its task alone; `view` names its script."""

    @abstractmethod
    def check_draft(self, item: I, draft: object) -> Draft:
        """Return a draft that a page sent, with known keys alone; `WordsError` for anything else."""

    def problems(self, item: I, draft: Draft) -> Mapping[str, str]:
        """Return by part of a draft why it cannot be read; whether it is right is not considered."""
        return {}

    def graph(self, item: I, draft: Draft) -> Mapping[str, Sequence[str]] | None:
        """Return the causes of each variable as a draft states them; None before it states any."""
        return None

    def cells(self, item: I, position: Position) -> Mapping[str, Any]:
        """Return which cells of the evidence a draft fits, for feedback while it is written."""
        return {}

    def check_answer(self, item: I, answer: Mapping[str, Any]) -> None:
        """Refuse an answer to a question that could not be scored; `WordsError` says why."""
        return

    def read_form(self, item: I, position: Position, line: str) -> Act | Edit | None:
        """Return what a line without a verb states, such as `X3 = X1`; None if it is none."""
        return None

    def read_json(self, item: I, line: str) -> Act:
        """Return the action that a line of JSON states."""
        from calibrant.dsl.episode import ActionError, action_of_text

        try:
            return Act(action_of_text(line))
        except ActionError as error:
            raise WordsError(str(error)) from None

    def read(self, item: I, position: Position, line: str) -> Act | Edit:
        """Return what a line states; `WordsError` says what would work."""
        text = line.strip().removeprefix("ACTION:").strip()
        if len(text) > MAX_LINE_CHARS:
            raise WordsError(f"a line of {len(text):,} characters; at most {MAX_LINE_CHARS:,} are read")
        if text.startswith("{"):
            return self.read_json(item, text)
        stated = self.read_form(item, position, text)
        if stated is not None:
            return stated
        readers = self.readers(item)
        verb, _, arguments = text.partition(" ")
        reader = readers.get(verb.lower())
        if reader is None:
            raise WordsError(self.unknown_verb(item, text, tuple(readers)))
        return reader(item, position, arguments.strip())

    def unknown_verb(self, item: I, text: str, verbs: Sequence[str]) -> str:
        """Return the message for a line that begins with no verb: the most similar form, or all of them."""
        first = text.split(maxsplit=1)[0].lower() if text.split() else ""
        close = get_close_matches(first, verbs, 1)
        forms = [verb.form for verb in self.verbs(item)]
        alike = [form for form in forms if close and form.split()[0] == close[0]] or forms
        return f"{short_repr(text)} is no move and costs nothing; type {' | '.join(alike)} | help"


def match_name(text: str, names: Sequence[str], kind: str) -> str:
    """Return the name that a text is, in any case that fits one alone; `WordsError` lists the names."""
    if text in names:
        return text
    alike = [name for name in names if name.casefold() == text.casefold()]
    if len(alike) == 1:
        return alike[0]
    close = get_close_matches(text, names, 1)
    hint = f"; did you mean {close[0]}?" if close else ""
    raise WordsError(f"no {kind} {short_repr(text)}; there are {', '.join(names)}{hint}")


def read_number(text: str, example: str) -> float:
    """Return a finite number that a text spells; `WordsError` shows an example of the form."""
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if number != number or abs(number) == float("inf"):
        raise WordsError(f"expected a number, found {short_repr(text)}; type for example {example}")
    return int(number) if number.is_integer() and abs(number) < 2**53 else number
