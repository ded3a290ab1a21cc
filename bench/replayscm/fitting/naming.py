"""A table as an item, with legal names inside, and the user's own names in everything that is printed."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import comb
from typing import Any

import msgspec
import numpy as np
from markupsafe import escape

from calibrant.audits.replayscm.why.parts import Decider, ReplayWhy, target_title, title
from calibrant.bench.replayscm.fitting.columns import quote_name
from calibrant.bench.replayscm.fitting.table import Table
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.formulas.text import Grammar, infix
from calibrant.dsl.replayscm.disclosure import Disclosure, natural
from calibrant.dsl.replayscm.item import Problem, Sealed, Task, TaskKind
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.replayscm.world import Intervention, Panel, World, columns_from_rows

ITEM = "table"
MAX_PARENT_SETS = 5_000_000  # of all variables together: seconds
MAX_SHOWN_ROWS = 2_000  # rows that a reason lists; of more, each different one by its first line


@dataclass(frozen=True)
class Naming:
    """Legal names of columns and the raw ones, in the same order."""

    legal: Sequence[str]
    raw: Sequence[str]

    def graph(self, model: Scm, *, is_whole: bool) -> tuple[dict[str, str], list[tuple[str, str]]]:
        """Return the formula of each column of a model, "" of a root, and its arcs, all under the user's names.

        is_whole: with columns that no formula mentions
        """
        texts = {v: self.text(infix(formula)) for v, formula in model.mechanisms.items()}
        arcs = [(self.to_raw(parent), self.to_raw(child)) for parent, child in model.mentions]
        mentioned = {parent for parent, _ in arcs}
        formulas = {raw: texts.get(legal, "") for legal, raw in zip(self.legal, self.raw, strict=True)}
        return {v: text for v, text in formulas.items() if is_whole or text or v in mentioned}, arcs

    @cached_property
    def _changed(self) -> Mapping[str, str]:
        return {a: b for a, b in zip(self.legal, self.raw, strict=True) if a != b}

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile(r"\b(" + "|".join(map(re.escape, self._changed)) + r")\b")

    def to_legal(self, name: str) -> str:
        """Return the legal name of a column."""
        return self.legal[list(self.raw).index(name)]

    def to_raw(self, name: str) -> str:
        """Return the raw name of a column."""
        return self._changed.get(name, name)

    def text(self, text: str) -> str:
        """Return a text with names as they stand in formulas."""
        return self._replace(text, quote_name)

    def markup(self, page: str) -> str:
        """Return HTML or SVG with raw names."""
        return self._replace(page, lambda name: str(escape(name)))

    def value(self, value: Any) -> Any:
        """Return a value for JSON with raw names; inside longer texts they stand as in formulas."""
        if isinstance(value, str):
            return self._changed.get(value) or self.text(value)
        if isinstance(value, Mapping):
            return {self.value(key): self.value(entry) for key, entry in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(entry) for entry in value]
        return value

    def _replace(self, text: str, form: Callable[[str], str]) -> str:
        if not self._changed:
            return text
        return self._pattern.sub(lambda match: form(self._changed[match[1]]), text)


def task_of(table: Table, disclosure: Disclosure) -> Task:
    """Return the table as a task: rows with the same columns set are a world, in the order of the table."""
    names = natural(table.legal_names)
    order = [table.legal_names.index(name) for name in names]
    patterns = table.pattern_of_row if table.num_rows <= MAX_SHOWN_ROWS else np.arange(len(table.counts))
    lines = table.lines if table.num_rows <= MAX_SHOWN_ROWS else table.lines[table.first_rows]
    groups: dict[int, list[int]] = {}
    masks = table.set_masks[patterns].tolist()
    for r, mask in enumerate(masks):
        groups.setdefault(mask, []).append(r)
    digits = (table.codes[:, order] + ord("0")).astype(np.uint8)
    texts = [row.tobytes().decode() for row in digits]
    noun = "row" if table.layout is None else "line"
    worlds = []
    for mask, rows in groups.items():
        assigned = natural(name for k, name in enumerate(table.legal_names) if mask >> k & 1)
        title = f"do_{'_'.join(assigned)}" if assigned else "observed"
        columns = columns_from_rows([texts[patterns[r]] for r in rows], len(names))
        labels = tuple(f"{noun} {lines[r]}" for r in rows)
        worlds.append(World(title, Intervention(assigned=assigned), names, labels, columns))
    kind = TaskKind.ROOTS if disclosure.roots is None else TaskKind.SCM
    return Task(kind, disclosure, Grammar(allow_constants=True), Panel(names, tuple(worlds)), False, 0)


def problem_of(table: Table, task: Task) -> Problem:
    sealed = Sealed(None, None, Panel(task.variables, ()), task.variables)
    return Problem(ITEM, task, sealed, columns=table.legal_names)


def require_size(table: Table, task: Task, max_parents: int) -> None:
    """Refuse a table of more parent sets than are gone through."""
    numbers = [len(task.disclosure.admissible_parents(v)) for v in task.disclosure.endogenous]
    sets = sum(comb(number, k) for number in numbers for k in range(max_parents + 1))
    if sets > MAX_PARENT_SETS:
        raise CalibrantError(
            f"{table.source}: {len(table.used)} columns have {sets:,} sets of at most {max_parents} parents; at most"
            f" {MAX_PARENT_SETS:,} are gone through: leave out columns, or lower max_parents (--max-parents)"
        )


def why_of_table(why: ReplayWhy, table: Table, target: str | None) -> ReplayWhy:
    """Return the reason in the words of the table: its name, its order of columns, the target last, lines to add."""
    evidence = why.evidence
    legal = None if target is None else Naming(table.legal_names, table.names).to_legal(target)
    names = (*(name for name in table.legal_names if name != legal), *([] if legal is None else [legal]))
    places = [evidence.variables.index(name) for name in names]
    worlds = tuple(
        msgspec.structs.replace(world, rows=tuple("".join(row[place] for place in places) for row in world.rows))
        for world in evidence.worlds
    )
    deciders = tuple(_with_line(decider, table) for decider in why.deciders)
    return msgspec.structs.replace(
        why,
        title=title(table.source, why.state) if legal is None else target_title(legal, why.state),
        evidence=msgspec.structs.replace(evidence, variables=names, worlds=worlds),
        deciders=deciders,
    )


def _with_line(decider: Decider, table: Table) -> Decider:
    """Return a world of one row with its line of the table."""
    naming = Naming(table.legal_names, table.names)
    set_names = list(map(naming.to_raw, decider.world.get("constants", ())))
    line, hint = table.row_line(decider.world["rows"][0], set_names)
    return msgspec.structs.replace(decider, table_line=line, table_hint=hint)
