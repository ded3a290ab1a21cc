"""Facts that only the gold SCM tells, added to a reason."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from calibrant.audits.replayscm.why.parts import Decider, FittingScm, ReplayWhy
from calibrant.audits.replayscm.why.table_rows import Context, values_at
from calibrant.audits.why import Fact
from calibrant.dsl.formulas.text import ALL_OPERATORS, parse, render
from calibrant.dsl.replayscm.scm import Scm, scm


def with_truth(why: ReplayWhy, gold: Scm) -> ReplayWhy:
    """Return the reason with the gold SCM, what its readings leave, and which of the pair has its function."""
    facts = [Fact(_pair_words(why, gold), "gold")] if why.pair is not None else []
    mechanisms = {name: render(gold.mechanisms[name]) for name in gold.order}
    deciders = tuple(_with_reading(decider, why.columns, gold) for decider in why.deciders)
    return msgspec.structs.replace(why, true_mechanisms=mechanisms, sealed=tuple(facts), deciders=deciders)


def _pair_words(why: ReplayWhy, gold: Scm) -> str:
    assert why.pair is not None
    variable = why.pair.differing[0]
    equal = [
        letter
        for letter, model in (("A", why.pair.first), ("B", why.pair.second))
        if _has_function(model, variable, gold)
    ]
    return f"true {variable}: that of {equal[0]}" if equal else f"true {variable}: neither A nor B"


def _has_function(model: FittingScm, variable: str, gold: Scm) -> bool:
    if variable not in model.mechanisms or variable not in gold.mechanisms:
        return variable not in model.mechanisms and variable not in gold.mechanisms
    fitting = scm(model.roots, {name: parse(text, ALL_OPERATORS) for name, text in model.mechanisms.items()})
    return fitting.local_functions[variable] == gold.local_functions[variable]


def _with_reading(decider: Decider, variables: Sequence[str], gold: Scm) -> Decider:
    """Return a decider with what the gold SCM's reading leaves."""
    targets = decider.world.get("constants", {})
    (pattern,) = decider.world["rows"]
    roots = {name: int(bit) for name, bit in zip(variables, pattern, strict=True) if bit != "?" and name not in targets}
    if not set(gold.roots) <= roots.keys() | targets.keys():
        return decider
    values = values_at(gold, Context(dict(targets), roots))
    row = "".join(str(values[name]) for name in variables)
    remaining = next((reading.remaining for reading in decider.readings if reading.row == row), None)
    return msgspec.structs.replace(decider, sealed=remaining)
