"""Answer text of a response: the response without thoughts, which are delimited by marks or by Harmony's channels.

Thoughts are the text between an opening and a closing mark of one family, the text before a closing mark without an
opening one (the chat template contained it), and the text after an opening mark without a closing one. Sources of the
marks: the chat templates of Qwen, DeepSeek, GLM, EXAONE, Seed-OSS, Magistral, Command A, Sky-T1, Kimi and Gemma; of
channels: OpenAI's Harmony response format.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias, get_args

from calibrant.dsl.episode import ActionError
from calibrant.dsl.errors import CalibrantError, short_repr
from calibrant.dsl.json_objects import decode

Thoughts: TypeAlias = Literal["strip", "opened", "keep"]
"""Policy: `strip` removes thoughts; `opened` does so assuming that the chat template opened thoughts, so that a text
without a closing mark is all thoughts; `keep` returns the text unchanged."""


def check_thoughts(thoughts: str) -> None:
    """Raise `CalibrantError` for a text that is no policy."""
    if thoughts not in get_args(Thoughts):
        raise CalibrantError(f"thoughts is {short_repr(thoughts)}; known: {', '.join(get_args(Thoughts))}")


class AnswerText(NamedTuple):
    """Text of a response outside its thoughts.

    is_unclosed: the response ends inside thoughts, or inside a Harmony message
    has_thoughts: part of the response is thoughts
    calls: contents of Harmony messages that are tool calls
    """

    text: str
    is_unclosed: bool = False
    has_thoughts: bool = False
    calls: tuple[str, ...] = ()


# --- Marks of thoughts, by family -------------------------------------------------------------------------------------
_WORDS: Final = ("think", "thinking", "thought", "thoughts", "reasoning", "scratchpad", "seed:think")
MAX_ATTRIBUTE_CHARS: Final = 4_096  # attributes inside a mark, such as <think a="b">
_LITERAL_MARKS: Final = (  # (family, opening mark, closing mark), case-sensitive
    ("THINK", "[THINK]", "[/THINK]"),
    ("cohere", "<|START_THINKING|>", "<|END_THINKING|>"),
    ("of_thought", "<|begin_of_thought|>", "<|end_of_thought|>"),
    ("kimi", "◁think▷", "◁/think▷"),
    ("gemma", "<|channel>thought", "<channel|>"),
)
_FAMILIES: Final = {opens: (family, True) for family, opens, _ in _LITERAL_MARKS} | {
    closes: (family, False) for family, _, closes in _LITERAL_MARKS
}


def _in_any_case(word: str) -> str:
    """Return a pattern of ASCII letters in any case; re.IGNORECASE would also match the Kelvin sign as a k."""
    return "".join(f"[{letter}{letter.upper()}]" if letter.isalpha() else re.escape(letter) for letter in word)


_ANY_WORD: Final = "|".join(map(_in_any_case, sorted(_WORDS, key=len, reverse=True)))
_MARK: Final = re.compile(
    rf"<[ \t]*(?:(?P<opens>{_ANY_WORD})(?:[ \t]*|\s[^<>]{{0,{MAX_ATTRIBUTE_CHARS}}})"
    rf"|/[ \t]*(?P<closes>{_ANY_WORD})[ \t]*)>|" + "|".join(map(re.escape, _FAMILIES))
)


class _Mark(NamedTuple):
    family: str
    opens: bool
    start: int
    end: int


def _marks(text: str) -> Iterator[_Mark]:
    for match in _MARK.finditer(text):
        start, end = match.span()
        if _is_quoted(text, start, end):
            continue
        opens = match["opens"]
        word = opens or match["closes"]
        family, is_opening = (word.lower(), opens is not None) if word else _FAMILIES[match[0]]
        yield _Mark(family, is_opening, start, end)


def _is_quoted(text: str, start: int, end: int) -> bool:
    """Return whether the span has exactly one backtick directly before it and exactly one directly after it."""
    before, behind = text[max(start - 2, 0) : start], text[end : end + 2]
    return before[-1:] == "`" == behind[:1] and before != "``" and behind != "``"


def _may_have_marks(text: str) -> bool:
    return "<" in text or "◁" in text or "[THINK]" in text or "[/THINK]" in text


def _is_json_container(text: str) -> bool:
    """Return whether a trimmed text is one JSON object or array, inside which nothing is a mark."""
    stripped = text.strip()
    if stripped[:1] not in ("{", "["):
        return False
    try:
        decode(stripped)
    except ValueError:
        return False
    return True


def _outside_marks(text: str, *, opened: bool) -> AnswerText:
    """Return the text outside thoughts; opened: whether the text begins inside thoughts, which any family may close."""
    pieces: list[str] = []
    family: str | None = "" if opened else None  # of the current thoughts; None outside, "" for any family
    position, has_marks = 0, opened
    for mark in _marks(text):
        if family is None:
            has_marks = True
            if mark.opens:
                pieces.append(text[position : mark.start])
                family = mark.family
            else:
                pieces, position = [], mark.end
        elif not mark.opens and family in ("", mark.family):
            family, position = None, mark.end
    if family is None:
        pieces.append(text[position:])
    return AnswerText("".join(pieces), family is not None, has_marks)


# --- Harmony: messages with channels, with their special tokens or without --------------------------------------------
_TOKEN: Final = re.compile(r"<\|(start|channel|message|constrain|end|return|call)\|>")
_HARMONY_BEGINNINGS: Final = ("<|start|>", "<|channel|>", "<|message|>")
_CALL_NAME: Final = re.compile(r"(?:^|\s)to=\S")
_ASSISTANT_FINAL: Final = "assistantfinal"
_BARE_ANALYSIS: Final = re.compile(r"\s*analysis[A-Z]")
_FINAL: Final = "final"


class _Message(NamedTuple):
    """A Harmony message; is_ended: whether an end token follows its content."""

    channel: str
    is_call: bool
    content: str
    is_ended: bool


def _harmony_messages(text: str) -> Iterator[_Message]:
    """Yield the messages of a text; text before the first token belongs to none."""
    header: int | None = None  # start of the header of a message whose content has not begun
    content: int | None = None  # start of the content of the current message
    loose: int | None = None  # start of text after the end of a message
    channel, is_call = _FINAL, False
    for token in _TOKEN.finditer(text):
        name, start, end = token[1], token.start(), token.end()
        is_end = name in ("end", "return", "call")
        if content is not None:
            if name in ("message", "constrain"):
                continue
            yield _Message(channel, is_call, text[content:start], is_end)
            content = None
        elif loose is not None and text[loose:start].strip():
            yield _Message(_FINAL, False, text[loose:start], is_end)
        if name == "message":
            channel, is_call = (_FINAL, False) if header is None else _read_header(text[header:start])
            content = end
        if name == "start" or (name == "channel" and header is None):
            header = start
        elif is_end or name == "message":
            header = None
        loose = end if is_end else None
    if content is not None:
        yield _Message(channel, is_call, text[content:], False)
    elif loose is not None and text[loose:].strip():
        yield _Message(_FINAL, False, text[loose:], False)


def _read_header(header: str) -> tuple[str, bool]:
    """Return the channel of a header, and whether the message is a tool call."""
    parts = _TOKEN.sub(lambda token: "\0" if token[1] == "channel" else " ", header).split("\0")
    words = parts[-1].split() if len(parts) > 1 else []
    return (words[0] if words else _FINAL), _CALL_NAME.search(" ".join(parts)) is not None


def _harmony_text(text: str) -> AnswerText:
    """Return the last message of channel `final` without thoughts, and the contents of tool calls."""
    messages = [*_harmony_messages(text)]
    first_token = _TOKEN.search(text)
    leading = text[: first_token.start()] if first_token else ""
    calls = tuple(message.content for message in messages if message.is_call)
    finals = [message.content for message in messages if message.channel == _FINAL and not message.is_call]
    is_unclosed = not messages or not (messages[-1].is_call or messages[-1].is_ended)
    has_thoughts = bool(leading.strip()) or any(
        message.channel != _FINAL and not message.is_call for message in messages
    )
    inner = _strip(finals[-1]) if finals else AnswerText("")
    return AnswerText(inner.text, is_unclosed or inner.is_unclosed, has_thoughts or inner.has_thoughts, calls)


def _bare_harmony_text(text: str) -> AnswerText | None:
    """Return the answer of Harmony messages whose special tokens were removed; None for any other text."""
    _, final, behind = text.rpartition(_ASSISTANT_FINAL)
    if final:
        return _strip(behind)._replace(has_thoughts=True)
    return AnswerText("", True, True) if _BARE_ANALYSIS.match(text) else None


# --- The answer text under a policy -----------------------------------------------------------------------------------


def read_answer_text(text: str, thoughts: Thoughts = "strip") -> AnswerText:
    """Return the text of a response outside its thoughts."""
    if thoughts == "keep":
        return AnswerText(text)
    is_plain = not _may_have_marks(text)
    if is_plain and thoughts == "strip" and _ASSISTANT_FINAL not in text and not _BARE_ANALYSIS.match(text):
        return AnswerText(text)
    if thoughts == "strip" and _is_json_container(text):
        return AnswerText(text)
    if any(token in text for token in _HARMONY_BEGINNINGS):
        return _harmony_text(text)
    bare = _bare_harmony_text(text)
    if bare is not None:
        return bare
    return _outside_marks(text, opened=thoughts == "opened")


def read_reply_text(text: str, thoughts: Thoughts = "strip") -> str:
    """Return the text of a reply in an episode; `ActionError` for a reply that is all thoughts."""
    answer = read_answer_text(text, thoughts)
    if (answer.has_thoughts or answer.is_unclosed) and not answer.text.strip():
        raise ActionError(
            "the reply ends inside its thoughts" if answer.is_unclosed else "the reply holds thoughts only"
        )
    return answer.text


def _strip(text: str) -> AnswerText:
    return AnswerText(text) if _is_json_container(text) else _outside_marks(text, opened=False)


# --- How the response of a score was read: why it has no answer, and verdicts by other readers ------------------------


class ScoreReading:
    """Reading of a response; verdicts by other readers are computed at first use.

    reason: why the response has no answer, empty if it has one; source: text, object, tool_call, or empty
    repairs: names of the repairs that the lenient reader made
    read_published, read_lenient: return `correct` by that reader; None if its verdict is that of the score
    """

    def __init__(
        self,
        reason: str = "",
        source: str = "",
        repairs: tuple[str, ...] = (),
        read_published: Callable[[], bool | None] | None = None,
        read_lenient: Callable[[], bool | None] | None = None,
    ) -> None:
        self.reason = reason
        self.source = source
        self.repairs = repairs
        self._read_published = read_published
        self._read_lenient = read_lenient

    def published(self, correct: bool | None) -> bool | None:
        """Return `correct` by the published reader; correct: that of the score."""
        return correct if self._read_published is None else self._published

    def lenient(self, correct: bool | None) -> bool | None:
        """Return `correct` by the lenient reader; correct: that of the score."""
        return correct if self._read_lenient is None else self._lenient

    @cached_property
    def _published(self) -> bool | None:
        assert self._read_published is not None
        return self._read_published()

    @cached_property
    def _lenient(self) -> bool | None:
        assert self._read_lenient is not None
        return self._read_lenient()


UNREAD: Final = ScoreReading()


class ReadScore:
    """Properties of a score that state how its response was read."""

    if TYPE_CHECKING:  # attributes in some classes of scores, properties in others

        @property
        def correct(self) -> bool | None: ...
        @property
        def reading(self) -> ScoreReading: ...

    @property
    def reason(self) -> str:
        """Why the response has no answer (docs/predictions.md); empty if it has one."""
        return self.reading.reason

    @property
    def repairs(self) -> tuple[str, ...]:
        """Repairs that the lenient reader made, if the paper's rule reads no answer."""
        return self.reading.repairs

    @property
    def correct_published(self) -> bool | None:
        """`correct` by the published extractor, which reads the whole text, thoughts included."""
        return self.reading.published(self.correct)

    @property
    def correct_lenient(self) -> bool | None:
        """`correct` by the lenient reader."""
        return self.reading.lenient(self.correct)
