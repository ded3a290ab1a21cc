"""Effect of the literals 0 and 1 on least formulas, where a grammar allows them.

An argument 0 or 1 of `and`, `or` can be dropped or makes the node constant. Under `xor` a 0 can be dropped and a 1 is
a `not` around the rest, of the same size. Under `iff` a 1 makes the node the conjunction of the rest, and a 0 its nor,
no larger. So where those operators are allowed too, a formula with a literal inside is never smaller than one without,
and the only formulas worth adding are the literals themselves.
"""

from __future__ import annotations

from calibrant.dsl.formulas.text import Grammar

_STANDS_IN = {"xor": {"not"}, "iff": {"not", "and", "or"}}


def require_literals_alone(grammar: Grammar) -> None:
    """Raise `ValueError` if literals inside formulas could make them smaller, or possible: no search covers that."""
    if not grammar.allow_constants:
        return
    for operator, needed in _STANDS_IN.items():
        missing = needed.difference(grammar.operators)
        if operator in grammar.operators and missing:
            raise ValueError(
                f"literals are allowed with {operator} but without {', '.join(sorted(missing))}: "
                "formulas with a literal inside are not searched"
            )
