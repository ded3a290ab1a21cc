"""Certificates of masses, hidden columns and clairvoyant minima, as JSON that a third party can check.

(a) mass: the evidence, the integers w_v(S) over a common denominator, and Z. (b) hidden: Z of every column. (c) the
worlds of a clairvoyant minimum, the requirements with their worlds, and rational dual weights, whose sum is a bound.
audits.replayscm.extended.verify recomputes all of it by listing and shares no code with the solvers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from calibrant.dsl.replayscm.extensions.extension import MechanismClass, NoiseKind
from calibrant.solvers.acyclic.count import total
from calibrant.solvers.acyclic.least import members_of
from calibrant.solvers.replayscm.experiments.clairvoyant import ClairvoyantMinimum, ClairvoyantSearch
from calibrant.solvers.replayscm.hidden.columns import hidden_columns
from calibrant.solvers.replayscm.noise.local_weights import word_text
from calibrant.solvers.replayscm.noise.posterior import Posterior

FORMAT = "calibrant-extended-certificate"
VERSION = 1
MAX_COLUMNS = 4_096


def class_record(scm_class: MechanismClass) -> dict[str, Any]:
    """Return the class as JSON: admissible parents spelled out, weights and rates as fractions."""
    names = (*scm_class.endogenous, *scm_class.hidden_parents)
    return {
        "observed": list(scm_class.observed),
        "roots": list(scm_class.roots),
        "max_parents": scm_class.max_parents,
        "is_ordered": scm_class.disclosure.order is not None,
        "admissible": {v: list(scm_class.admissible_parents(v)) for v in names},
        "hidden": {h: None if parents is None else list(parents) for h, parents in scm_class.hidden_parents.items()},
        "parent_weights": [str(weight) for weight in scm_class.parent_weights],
        "rates": [[str(rate), str(prior)] for rate, prior in scm_class.noise.grid],
    }


def mass_certificate(posterior: Posterior) -> dict[str, Any]:
    """Return the certificate of a mass; `ValueError` for an independent rate of each variable or too many columns."""
    scm_class = posterior.scm_class
    if scm_class.noise.kind is NoiseKind.EACH:
        raise ValueError("certificates are for a rate that is common to all variables")
    columns: list[dict[str, Any]] = []
    for chosen in hidden_columns(scm_class, posterior.words):
        if len(columns) >= MAX_COLUMNS:
            raise ValueError(f"more than {MAX_COLUMNS:,} columns of hidden variables")
        terms = [
            {
                "factor": str(term.factor),
                "weights": _weights(scm_class, term.weights.endogenous, term.weights.options),
                "sum": str(total(term.weights)),
            }
            for term in posterior.column_terms(chosen)
        ]
        columns.append(
            {
                "hidden": [
                    {
                        "name": scm_class.variables[c.index],
                        "parents": [scm_class.variables[u] for u in members_of(c.parents)],
                        "values": {_pattern_text(word, c.parents): bit for word, bit in sorted(c.values.items())},
                    }
                    for c in chosen
                ],
                "terms": terms,
            }
        )
    return {
        "format": FORMAT,
        "version": VERSION,
        "claim": "mass",
        "class": class_record(scm_class),
        "rows": [
            {
                "row": word_text(row.word, len(scm_class.observed)),
                "targets": [v for i, v in enumerate(scm_class.observed) if row.clamped >> i & 1],
                "clean": row.is_clean,
            }
            for row in posterior.rows
        ],
        "columns": columns,
        "mass": str(posterior.mass),
    }


def clairvoyant_certificate(search: ClairvoyantSearch, minimum: ClairvoyantMinimum) -> dict[str, Any]:
    """Return the certificate of a clairvoyant minimum; `bound` below the number of worlds leaves the rest to HiGHS."""
    scm_class = search.scm_class
    return {
        "format": FORMAT,
        "version": VERSION,
        "claim": "clairvoyant",
        "class": class_record(scm_class),
        "truth": {
            v: {"parents": list(f.parents), "table": _table_text(f.table.bits, len(f.parents))}
            for v, f in search.truth.items()
        },
        "candidates": [dict(do) for do in search.worlds],
        "worlds": list(minimum.worlds),
        "floor": str(minimum.floor),
        "rows": [
            {
                "label": row.label,
                "alternatives": [[sorted(worlds) for worlds in parts] for parts in row.alternatives],
                "weight": str(weight.weight),
                "parts": [[str(part) for part in parts] for parts in weight.parts],
            }
            for row, weight in zip(minimum.rows, minimum.weights, strict=True)
        ],
        "bound": minimum.bound,
        "proved_by": "dual weights" if minimum.is_certified else "HiGHS",
    }


def _weights(
    scm_class: MechanismClass, endogenous: Sequence[int], options: Sequence[Mapping[int, int]]
) -> dict[str, dict[str, str]]:
    names = scm_class.variables
    return {
        names[v]: {" ".join(names[u] for u in members_of(mask)): str(weight) for mask, weight in sorted(sets.items())}
        for v, sets in zip(endogenous, options, strict=True)
    }


def _pattern_text(word: int, parents: int) -> str:
    return "".join(str(word >> u & 1) for u in members_of(parents))


def _table_text(bits: int, num_parents: int) -> str:
    return "".join(str(bits >> row & 1) for row in range(1 << num_parents))
