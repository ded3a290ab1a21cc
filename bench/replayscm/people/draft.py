"""Drafts of mechanism maps: formulas as they are typed, checked one by one and as a map."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from calibrant.bench.core.words import Draft, WordsError
from calibrant.bench.replayscm.people.questions import (
    PART_KEYS,
    alternative_parts,
    check_parts,
    is_alternative,
    is_forecast,
    stated_forecast,
)
from calibrant.dsl.errors import ParseError
from calibrant.dsl.formulas.formula import Formula
from calibrant.dsl.formulas.text import parse_infix, render
from calibrant.dsl.replayscm.disclosure import Disclosure
from calibrant.dsl.replayscm.extensions.extension import NoiseKind
from calibrant.dsl.replayscm.item import Problem

KEYS = ("formulas", "roots", "noise", *PART_KEYS)
MAX_DRAFT_CHARS = 20_000


def noise_rates(item: Problem) -> tuple[str, ...]:
    """Return the rates among which an answer may name one; none where the rate is told or there is no noise."""
    extension = item.task.extension
    if extension is None or extension.noise.is_silent or extension.noise.kind is NoiseKind.RATE:
        return ()
    return tuple(str(rate) for rate, _ in extension.noise.grid)


def hidden_names(item: Problem) -> tuple[str, ...]:
    """Return the names that are never shown; each may have a formula, and needs one where it is mentioned."""
    extension = item.task.extension
    return () if extension is None else tuple(name for name in extension.hidden if name not in item.task.variables)


def formula_names(item: Problem) -> tuple[str, ...]:
    """Return the names that a formula may mention: observed variables, and hidden ones where there are some."""
    return (*item.task.variables, *hidden_names(item))


def stated_disclosure(item: Problem, draft: Draft) -> Disclosure:
    """Return the disclosure under the roots that a draft states, where they are not told."""
    disclosure = item.task.disclosure
    if disclosure.roots is not None:
        return disclosure
    roots: Sequence[str] = draft.get("roots", ())
    if len(roots) != disclosure.num_roots:
        names = " ".join(item.task.variables[: disclosure.num_roots])
        raise WordsError(
            f"there are {disclosure.num_roots} roots, {len(roots)} are named; type for example roots {names}"
        )
    return disclosure.given_roots([name for name in item.task.variables if name in roots])


def variables_to_explain(item: Problem, draft: Draft) -> tuple[str, ...]:
    """Return the variables that need a formula: all but the roots, which a draft states where they are not told."""
    roots = item.task.disclosure.roots
    chosen = draft.get("roots", ()) if roots is None else roots
    return tuple(name for name in item.task.variables if name not in chosen)


def read_formula(item: Problem, variable: str, text: str) -> Formula:
    """Return the formula that a text spells; `WordsError` names the place of the mistake and what is allowed."""
    try:
        formula = parse_infix(text, item.task.grammar, formula_names(item))
    except ParseError as error:
        raise WordsError(f"{variable}: {error}") from None
    if variable in formula.mentioned:
        raise WordsError(f"{variable}: a formula does not mention its own variable")
    return formula


def answer_of_draft(item: Problem, draft: Draft) -> dict[str, Any]:
    """Return the answer that a draft states; `WordsError` names what is missing or not allowed."""
    forecast = stated_forecast(item, draft)
    if forecast is not None:
        return forecast
    disclosure = stated_disclosure(item, draft)
    texts: Mapping[str, str] = draft.get("formulas", {})
    names = [*variables_to_explain(item, draft), *(name for name in hidden_names(item) if texts.get(name, "").strip())]
    missing = [name for name in names if not texts.get(name, "").strip()]
    if missing:
        chance = " (or probabilities, by `chance`)" if is_forecast(item) else ""
        raise WordsError(
            f"no formula for {', '.join(missing)}{chance}; type for example {missing[0]} = {item.task.variables[0]}"
        )
    formulas = {name: read_formula(item, name, texts[name]) for name in names}
    mentioned = {name for formula in formulas.values() for name in formula.mentioned} - {*item.task.variables}
    if mentioned - formulas.keys():
        name = min(mentioned - formulas.keys())
        raise WordsError(f"{name} is mentioned and has no formula; type for example {name} = {item.task.variables[0]}")
    violation = disclosure.violation(formulas)
    if violation is not None:
        raise WordsError(violation.reason)
    answer: dict[str, Any] = {"mechanisms": {name: render(formula) for name, formula in formulas.items()}}
    if item.task.disclosure.roots is None:
        answer = {"roots": [name for name in item.task.variables if name in draft.get("roots", ())], **answer}
    if is_alternative(item):
        return {"alternative": answer, **alternative_parts(item, draft)}
    return answer | ({"noise": draft["noise"]} if draft.get("noise") else {})


def check_draft(item: Problem, draft: object) -> Draft:
    """Return a draft that a page sent; its formulas may be unfinished."""
    if not isinstance(draft, Mapping) or not draft.keys() <= set(KEYS):
        raise WordsError(f"a draft has keys among {', '.join(KEYS)}")
    formulas, roots = draft.get("formulas", {}), draft.get("roots", [])
    if not isinstance(formulas, Mapping) or not all(isinstance(text, str) for text in formulas.values()):
        raise WordsError("formulas is an object of text by variable")
    if not formulas.keys() <= {*formula_names(item)}:
        raise WordsError(f"formulas has keys among {', '.join(formula_names(item))}")
    if not isinstance(roots, list) or not all(name in item.task.variables for name in roots):
        raise WordsError(f"roots is a list of names among {', '.join(item.task.variables)}")
    if sum(map(len, formulas.values())) > MAX_DRAFT_CHARS:
        raise WordsError(f"a draft is text of at most {MAX_DRAFT_CHARS:,} characters")
    if draft.get("noise") not in (None, "", *noise_rates(item)):
        raise WordsError(f"noise is one of {', '.join(noise_rates(item))}")
    written = {name: formulas[name] for name in formula_names(item) if formulas.get(name)}
    chosen = {"formulas": written, "roots": [name for name in item.task.variables if name in roots]}
    checked = {**chosen, "noise": draft.get("noise"), **check_parts(item, draft)}
    return {key: value for key, value in checked.items() if value}
