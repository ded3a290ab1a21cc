"""Models as bnet: `v, (a & !b) | c`; a stimulus is `s, s`, an empty formula `v, 0`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from calibrant.dsl.errors import PoolError, short_repr
from calibrant.dsl.logic.clause import ClauseError, Model, clause
from calibrant.dsl.logic.files.text_input import check_name, read_text, split_lines

_HEADER = ("targets", "factors")


def bnet_text(model: Model, nodes: Iterable[str], stimuli: Iterable[str]) -> str:
    """Return a model as bnet.

    nodes: every node of the class that is no stimulus
    """
    lines = ["targets, factors", *(f"{name}, {name}" for name in stimuli)]
    for node in sorted({*nodes, *(member.target for member in model)}):
        terms = []
        for member in sorted(member for member in model if member.target == node):
            literals = [("" if sign == 1 else "!") + source for source, sign in member.literals]
            terms.append(f"({' & '.join(literals)})" if len(literals) > 1 else literals[0])
        lines.append(f"{node}, {' | '.join(terms) or '0'}")
    return "\n".join(lines) + "\n"


def read_bnet(path: Path) -> Model:
    """Return the model of a bnet file; `PoolError` names the line of what is no disjunction of conjunctions."""
    return parse_bnet(read_text(path), path.name)


def parse_bnet(text: str, file: str = "") -> Model:
    """Return the model of a bnet text, see `read_bnet`."""
    clauses = set()
    targets: set[str] = set()
    for number, line in enumerate(split_lines(text), 1):
        where = f"line {number}"
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        target, comma, factor = (part.strip() for part in line.partition(","))
        if not targets and (target, factor) == _HEADER:
            continue
        if not comma or not factor:
            raise PoolError("expected: v, (a & !b) | c", file=file, instance=where)
        check_name(target, file=file, where=where)
        if target in targets:
            raise PoolError(f"{short_repr(target)} has a second line", file=file, instance=where)
        targets.add(target)
        if factor in (target, "0"):
            continue
        for term in factor.split("|"):
            try:
                clauses.add(clause(target, _literals(term.strip(), file, where)))
            except ClauseError as error:
                raise PoolError(str(error), file=file, instance=where) from None
    if not targets:
        raise PoolError("no line of a node; expected: v, (a & !b) | c", file=file)
    return frozenset(clauses)


def _literals(term: str, file: str, where: str) -> list[tuple[str, int]]:
    body = term[1:-1] if term.startswith("(") and term.endswith(")") else term
    literals = []
    for part in body.split("&"):
        text = part.strip()
        sign, name = (-1, text[1:].strip()) if text.startswith("!") else (1, text)
        if name in ("0", "1") or "(" in name or ")" in name:
            raise PoolError(
                f"{short_repr(text)}; a formula is a disjunction of conjunctions of literals", file=file, instance=where
            )
        literals.append((check_name(name, file=file, where=where), sign))
    return literals
