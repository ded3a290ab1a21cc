"""Answers of systems as the public functions take them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from calibrant.dsl.errors import CalibrantError, in_one_line, short_repr


def parse_answer(answer: object) -> str | dict[str, Any] | None:
    """Return a text, or an answer object as it would be after a file; None for other values that JSON has.

    `CalibrantError` for what JSON cannot say: that is no answer at all.
    """
    if isinstance(answer, str):
        return answer
    if isinstance(answer, Mapping):
        return _json_object(answer)
    if answer is None or isinstance(answer, bool | int | float | list | tuple):
        return None
    raise CalibrantError(f"an answer is a text or an object, not {short_repr(type(answer).__name__)}")


def invalid_answer_message(answer: object) -> str:
    """Return why a value that is neither a text nor an object is no valid answer."""
    return f"the answer is {short_repr(answer)}, neither a text nor an object"


def _json_object(answer: Mapping[Any, Any]) -> dict[str, Any]:
    """Return an answer as it would be after a file."""
    try:
        copied: dict[str, Any] = json.loads(json.dumps(dict(answer)))
    except (TypeError, ValueError, RecursionError) as error:
        raise CalibrantError(f"the answer is no JSON object: {in_one_line(str(error))[:200]}") from None
    return copied
