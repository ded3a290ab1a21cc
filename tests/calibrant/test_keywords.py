"""The keywords of the public functions are those of the Structs that check them, in name, type and default."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any, get_overloads, get_type_hints

import msgspec
import pytest

from calibrant import options, verbs
from calibrant.bench.core.options import keyword_struct
from calibrant.bench.core.registry import benchmark

FUNCTIONS = ("score", "score_many", "solve", "version_space", "audit", "separate", "harden", "generate", "text_episode")
ITEMS = {
    "Problem": "replayscm",
    "BlicketItem": "blickets",
    "LabItem": "causalab",
    "CausimItem": "causim",
    "LogicItem": "logic",
}


SHARED = {"score": {"extractor", "thoughts"}}
"""Keywords that the public name itself takes, of every benchmark alike."""


def typed_calls() -> Iterator[Any]:
    """Yield each function on each benchmark with the TypedDict of its keywords, None where it takes none."""
    for name in FUNCTIONS:
        function = getattr(verbs, name)
        for overload in get_overloads(function) or [function]:
            hints = overload.__annotations__
            named = re.findall(
                "|".join([*ITEMS, *ITEMS.values()]), f"{hints.get('item')}{hints.get('items')}{hints.get('of')}"
            )
            for word in named:
                keywords = re.fullmatch(r"Unpack\[(\w+)\]", hints.get("options", ""))
                yield pytest.param(name, ITEMS.get(word, word), keywords and keywords[1], id=f"{name}:{word}")


def keywords_of(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the default of each keyword but the steps of an episode, which are replayed and not converted."""
    parameters = inspect.signature(function).parameters.values()
    return {one.name: one.default for one in parameters if one.kind is one.KEYWORD_ONLY and one.name != "steps"}


@pytest.mark.parametrize(("function", "name", "keywords"), list(typed_calls()))
def test_checkers_and_structs_agree(function: str, name: str, keywords: str | None) -> None:
    verb = "score" if function == "score_many" else function
    struct = keyword_struct(verb, name)
    declared = {field.name: field.default for field in msgspec.structs.fields(struct)}
    taken = keywords_of(getattr(benchmark(name).functions, verb))
    typed = get_type_hints(getattr(options, keywords)) if keywords else {}
    typed = {key: hint for key, hint in typed.items() if key not in SHARED.get(verb, {})}
    assert typed.keys() == taken.keys() <= declared.keys()
    hints = get_type_hints(struct)
    assert {key: hints[key] for key in typed} == typed
    assert {key: declared[key] for key in taken} == taken


def test_every_public_function_with_keywords_is_compared() -> None:
    assert {name for name, of in vars(verbs).items() if "Unpack" in str(getattr(of, "__annotations__", ""))} <= set(
        FUNCTIONS
    )
    assert len(list(typed_calls())) >= 4 * 5 + 2


@pytest.mark.parametrize("name", list(ITEMS.values()))
def test_every_declared_keyword_is_one_of_a_function(name: str) -> None:
    from importlib import import_module

    for function, struct in import_module(f"calibrant.bench.{name}.options").KEYWORDS.items():
        assert {field.name for field in msgspec.structs.fields(struct)} == keywords_of(
            getattr(benchmark(name).functions, function)
        ).keys()
