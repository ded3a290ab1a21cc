"""Items of lines that name none: by the prompt that the line has."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Protocol

from calibrant.bench.scoring.files import prediction_object
from calibrant.dsl.errors import CalibrantError

MIN_PROMPT_LINES = 3  # of which inner ones are whole lines wherever the prompt stands
PROMPT_FIELDS = (
    *("prompt", "input", "inputs", "question", "messages", "arguments", "request", "body", "contents", "query"),
)
_ANSWERING = ("assistant", "model")  # no set: a role may be a list
MAX_PROMPT_DEPTH = 12


class PromptedItems(Protocol):
    """Items of a pool; prompt: of an item, as `calibrant prompts` writes it."""

    @property
    def digest(self) -> str: ...
    @property
    def instances(self) -> Collection[str]: ...
    @property
    def prompt(self) -> Callable[[str], str] | None: ...


class PromptIndex:
    """Finds the one item whose user prompt a text is, or contains.

    A prompt is looked for where a line of it stands that few other prompts have: comparing every prompt with every text
    would take minutes for 10,000 lines and 1,000 items.
    """

    def __init__(self, pools: Sequence[PromptedItems]) -> None:
        self._items: dict[str, set[tuple[str, str]]] = {}
        self._prompts: dict[tuple[str, str], str] = {}
        by_line: dict[str, set[str]] = {}
        for pool in pools:
            for instance in pool.instances if pool.prompt is not None else ():
                assert pool.prompt is not None
                prompt = pool.prompt(instance).strip()
                self._prompts[pool.digest, instance] = prompt
                self._items.setdefault(prompt, set()).add((pool.digest, instance))
        for prompt in self._items:
            for line in set(prompt.splitlines()[1:-1]):
                by_line.setdefault(line, set()).add(prompt)
        self._by_line: dict[str, list[str]] = {}
        self._short: list[str] = []
        for prompt in self._items:
            inner = prompt.splitlines()[1:-1]
            if len(inner) < MIN_PROMPT_LINES:
                self._short.append(prompt)
            else:
                rarest = min(inner, key=lambda line: (len(by_line[line]), -len(line)))
                self._by_line.setdefault(rarest, []).append(prompt)

    def find(self, texts: Sequence[str]) -> set[tuple[str, str]]:
        """Return the items of the prompts that a text equals; of those that one contains, where none is equal."""
        for text in texts:
            if found_items := self._items.get(text.strip()):
                return found_items
        contained: set[str] = set()
        for text in texts:
            for line in set(text.splitlines()):
                contained.update(prompt for prompt in self._by_line.get(line, ()) if prompt in text)
            contained.update(prompt for prompt in self._short if prompt in text)
        longest = {
            prompt for prompt in contained if not any(prompt != longer and prompt in longer for longer in contained)
        }
        return {item for prompt in longest for item in self._items[prompt]}


def prompt_texts(values: Iterable[Any]) -> list[str]:
    """Return the texts in the fields of prompts of some objects, without messages of the assistant."""
    texts: list[str] = []
    for value in values:
        if isinstance(value, Mapping):
            for name in PROMPT_FIELDS:
                _add_texts(value.get(name), texts, 0)
    return texts


def _add_texts(value: Any, texts: list[str], depth: int) -> None:
    if isinstance(value, str):
        texts.append(value)
    elif depth < MAX_PROMPT_DEPTH and isinstance(value, Mapping):
        if value.get("role") not in _ANSWERING:
            for part in value.values():
                _add_texts(part, texts, depth + 1)
    elif depth < MAX_PROMPT_DEPTH and isinstance(value, list):
        for part in value:
            _add_texts(part, texts, depth + 1)


def inner_object(value: Any) -> Mapping[str, Any]:
    """Return an object, or one that a text spells; an empty one for anything else."""
    if isinstance(value, Mapping):
        return value
    if isinstance(value, str) and value.startswith("{"):
        return _object_or_none(value) or {}
    return {}


def _object_or_none(text: str) -> Mapping[str, Any] | None:
    """Return the object that a text spells; None for anything else."""
    try:
        return prediction_object(text.encode("utf-8", "surrogatepass"))
    except CalibrantError:
        return None
