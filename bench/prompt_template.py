"""Prompts from templates of the user's (Jinja2), over documented fields of a task; our own wordings in the same form.

A template reads fields of what a solver may read; nothing sealed is among them. Every field that some item has must be
read, or named in a comment `{# unused: NAME, NAME #}`: a prompt that silently lacks the evidence is no prompt. A field
that an item lacks (an order that is not disclosed) is undefined; printing it is an error. `{% set system %}...
{% endset %}` is the system text; the rest is the prompt.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import StrictUndefined, TemplateError, TemplateSyntaxError, UndefinedError, meta
from jinja2.defaults import DEFAULT_NAMESPACE
from jinja2.sandbox import ImmutableSandboxedEnvironment

from calibrant.bench.core.capabilities import PromptFields
from calibrant.dsl.errors import CalibrantError, in_one_line

STANDARD = "standard"
"""The name of the bundled template of a benchmark."""
MAX_TEMPLATE_BYTES = 1_000_000
MAX_PROMPT_CHARS = 10_000_000
SYSTEM = "system"
_UNUSED = re.compile(r"\{#-?\s*unused:([^#]*?)-?#\}")


class RenderedPrompt(NamedTuple):
    """System text, empty if the template sets none, and prompt."""

    system: str
    prompt: str


class PromptTemplate:
    """A template whose names were checked against the fields of a benchmark.

    digest: SHA-256 of its text, which lines of prompts state
    """

    def __init__(self, path: Path, fields: PromptFields) -> None:
        """Read a template; `CalibrantError` if it is no template or reads a name that is no field.

        path: of a file, or the name STANDARD where there is no such file
        """
        self.path = fields.bundled if str(path) == STANDARD and not path.exists() else path
        text = _read(self.path)
        self.digest = hashlib.sha256(text.encode()).hexdigest()
        self._fields = fields
        environment = ImmutableSandboxedEnvironment(
            undefined=StrictUndefined, keep_trailing_newline=True, trim_blocks=True, lstrip_blocks=True
        )
        environment.filters["json"] = json.dumps
        environment.filters["compact"] = partial(json.dumps, sort_keys=True, separators=(",", ":"))
        environment.filters["sorted_json"] = partial(json.dumps, sort_keys=True)
        try:
            names = meta.find_undeclared_variables(environment.parse(text))
            self._template = environment.from_string(text)
        except TemplateSyntaxError as error:
            raise CalibrantError(f"{self.path}: line {error.lineno}: {in_one_line(str(error.message))}") from None
        dismissed = [name.strip() for part in _UNUSED.findall(text) for name in part.split(",") if name.strip()]
        self._check(names, dismissed)
        self._used = names | set(dismissed)

    def _check(self, names: Iterable[str], dismissed: Sequence[str]) -> None:
        listed = ", ".join(self._fields.meanings)
        unknown = sorted({*names, *dismissed} - self._fields.meanings.keys() - DEFAULT_NAMESPACE.keys())
        if unknown:
            raise CalibrantError(f"{self.path}: no field '{unknown[0]}'; fields: {listed}")
        contradictory = sorted({*dismissed} & {*names})
        if contradictory:
            raise CalibrantError(f"{self.path}: field '{contradictory[0]}' is named as unused, but it is read")

    def render(self, instance: str, task: Any, phase: str = "") -> RenderedPrompt:
        """Return the prompt of a task; `CalibrantError` for a field that it lacks or that is not read."""
        values = {k: value for k, value in self._fields.values(task, phase).items() if value is not None}
        where = f"{self.path}: {in_one_line(instance)}"
        unused = [name for name in values if name not in self._used]  # all but the id, which is no evidence
        if unused:
            raise CalibrantError(
                f"{where}: field '{unused[0]}' is not read; read it, or begin with {{# unused: {', '.join(unused)} #}}"
            )
        try:
            module = self._template.make_module({"instance": instance, **values})
            system, text = str(getattr(module, SYSTEM, "")), str(module)
        except UndefinedError as error:
            raise CalibrantError(f"{where}: {in_one_line(str(error.message))} in this item") from None
        except (TemplateError, ArithmeticError, TypeError, ValueError, LookupError, AttributeError) as error:
            raise CalibrantError(f"{where}: {type(error).__name__}: {in_one_line(str(error))}") from None
        if len(system) + len(text) > MAX_PROMPT_CHARS:
            raise CalibrantError(f"{where}: the prompt has more than {MAX_PROMPT_CHARS:,} characters")
        return RenderedPrompt(system, text)


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_TEMPLATE_BYTES + 1)
    except OSError as error:
        raise CalibrantError(f"{path}: {error.strerror}") from None
    if len(content) > MAX_TEMPLATE_BYTES:
        raise CalibrantError(f"{path}: a template has at most {MAX_TEMPLATE_BYTES:,} bytes")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise CalibrantError(f"{path}: not UTF-8 at byte {error.start}") from None
