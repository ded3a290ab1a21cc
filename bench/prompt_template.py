"""Prompts from the user's or bundled templates (Jinja2) over documented fields of a task.

A template reads fields of a task; none of them is sealed. It must read every field that an item has, or name it in a
comment `{# unused: NAME, NAME #}`, so that no prompt lacks evidence by mistake. A field that an item lacks (an order
that is not disclosed) is undefined, and printing it is an error. `{% set system %}...{% endset %}` is the system text;
all other text is the prompt.
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
MAX_PROMPT_CHARS = 10_000_000  # of a rendered prompt
SYSTEM = "system"
_UNUSED = re.compile(r"\{#-?\s*unused:([^#]*?)-?#\}")


class RenderedPrompt(NamedTuple):
    """A rendered prompt; system: system text, empty if the template sets none."""

    system: str
    prompt: str


class PromptTemplate:
    """A template whose names are checked against the fields of a benchmark.

    digest: SHA-256 of its text in hexadecimal digits, stated in lines of prompts
    """

    def __init__(self, path: Path, fields: PromptFields) -> None:
        """Read a template; `CalibrantError` if it is invalid or reads a name that is no field.

        path: a file, or STANDARD for the bundled template if there is no such file
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
        """Return the prompt of a task; `CalibrantError` for a printed field that it lacks and a field that is not read.

        instance: id of the item; phase: as in `PromptFields`
        """
        values = {k: value for k, value in self._fields.values(task, phase).items() if value is not None}
        where = f"{self.path}: {in_one_line(instance)}"
        unused = [name for name in values if name not in self._used]  # the id is no evidence
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
