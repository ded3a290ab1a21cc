"""Submitted maps of extended items: hidden names are optional, and judged are visible rows.

Keys are all observed endogenous variables; a hidden variable may have a mechanism, and may be mentioned only if it has.
Checks are those of plain items, in their order: schema, keys, parse, legal, acyclic.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from calibrant.dsl.errors import CycleError, ParseError, PoolError, short_repr
from calibrant.dsl.formulas.formula import Formula
from calibrant.dsl.formulas.reference import evaluate
from calibrant.dsl.formulas.text import Grammar, parse
from calibrant.dsl.replayscm.disclosure import natural
from calibrant.dsl.replayscm.extensions.model_class import MechanismClass
from calibrant.dsl.replayscm.extensions.noise import parse_rate
from calibrant.dsl.replayscm.scm import topological_order
from calibrant.dsl.replayscm.submission import Rejection


@dataclass(frozen=True)
class SubmittedMap:
    """A legal map.

    formulas: observed endogenous and hidden variables; order: parents first; rate: as submitted, if it was
    """

    formulas: Mapping[str, Formula]
    order: tuple[str, ...]
    rate: Fraction | None = None

    @property
    def size(self) -> int:
        """Total formula size, hidden variables included."""
        return sum(formula.size for formula in self.formulas.values())

    def replay(self, roots: Mapping[str, int], clamped: Mapping[str, int], flipped: frozenset[str]) -> dict[str, int]:
        """Return all values in one row."""
        values = {**roots, **{v: bit for v, bit in clamped.items() if v in roots}}
        for variable in self.order:
            if variable in clamped:
                values[variable] = clamped[variable]
            else:
                values[variable] = evaluate(self.formulas[variable], values) ^ (variable in flipped)
        return values


def check_map(scm_class: MechanismClass, grammar: Grammar, answer: Any) -> SubmittedMap | Rejection:
    """Return the map of {"mechanisms": {..}, "noise": ..}, or the first reason why it is not legal."""
    if not isinstance(answer, Mapping) or not isinstance(answer.get("mechanisms"), Mapping):
        return Rejection("schema", "'mechanisms' is no object of variable: formula")
    texts: Mapping[str, Any] = answer["mechanisms"]
    problem = _key_problem(scm_class, texts)
    if problem:
        return Rejection("keys", problem)
    formulas: dict[str, Formula] = {}
    names = frozenset(scm_class.variables)
    for variable in natural(texts):
        text = texts[variable]
        if not isinstance(text, str) or not text.strip():
            return Rejection("parse", f"mechanism of '{variable}' is {short_repr(text)}, not a formula")
        try:
            formulas[variable] = parse(text, grammar, names)
        except ParseError as error:
            return Rejection("parse", f"mechanism of '{variable}': {error}")
    for variable, formula in formulas.items():
        allowed = {u for u in scm_class.admissible_parents(variable) if u in formulas or u in scm_class.roots}
        strangers = [u for u in formula.variables if u not in allowed]
        if strangers:
            listed = ", ".join(natural(allowed)) or "none"
            reason = f"mechanism of '{variable}' mentions {', '.join(strangers)}; admissible parents: {listed}"
            return Rejection("legal", reason)
    try:
        order = topological_order(formulas)
    except CycleError as error:
        return Rejection("acyclic", str(error))
    rate = None
    if answer.get("noise") is not None:
        try:
            rate = parse_rate(answer["noise"], "noise")
        except PoolError as error:
            return Rejection("schema", str(error))
    return SubmittedMap(formulas, order, rate)


def _key_problem(scm_class: MechanismClass, texts: Mapping[str, Any]) -> str:
    unknown = sorted(key for key in map(str, texts) if key not in (*scm_class.endogenous, *scm_class.hidden_parents))
    expected = ", ".join(natural(scm_class.endogenous))
    if unknown:
        return f"no endogenous variables: {', '.join(map(short_repr, unknown[:5]))}; expected: {expected}"
    missing = [v for v in natural(scm_class.endogenous) if v not in texts]
    return f"no mechanism for {', '.join(missing)}; expected: {expected}" if missing else ""
