"""Posteriors of an unknown rate of errors in a target, as `calibrant fit` states them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any

from calibrant.bench.replayscm.fitting.fronts import LINES_SHOWN, MAX_TABLE_COLUMNS, FormulaOptions, patterns_of_target
from calibrant.bench.replayscm.fitting.table import Table
from calibrant.dsl.errors import CalibrantError, short_repr
from calibrant.solvers.formulas.flip_rates import Prior, RatePosterior, posterior_of_rates
from calibrant.solvers.formulas.least_formulas import NUM_VARS

MAX_RATE_SETS = 1_000  # sets of columns whose functions are summed, a few ms each in fractions


@dataclass(frozen=True)
class TargetRates:
    """Posteriors of a target that is flipped with an unknown rate."""

    target: str
    columns: tuple[str, ...]
    prior: Prior
    posterior: RatePosterior

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON; probabilities are fractions."""
        posterior, number = self.posterior, len(self.columns)
        entries: dict[str, Any] = {
            "functions": posterior.num_functions,
            "evidence": str(posterior.evidence),
            "rates": {str(rate): str(p) for rate, p in posterior.rates.items() if p},
            "parents": [[[self.columns[v] for v in s], str(p)] for s, p in posterior.parents.items()],
            "arcs": {name: str(p) for name, p in zip(self.columns, posterior.arcs, strict=True)},
            "predict": {"".join(map(str, pattern)): str(p) for pattern, p in posterior.predictions.items()},
        }
        if number <= MAX_TABLE_COLUMNS:
            tables = [_wide_table(columns, bits, number) for columns, bits in posterior.best]
            entries["best"] = {"tables": sorted(tables), "posterior": str(posterior.best_posterior)}
        return entries

    def lines(self) -> Iterator[str]:
        """Yield the posteriors, most probable first."""
        yield f"{self.target} as a function of others, flipped with an unknown rate; prior {self.prior}"
        for rate, p in sorted(self.posterior.rates.items()):
            yield f"  rate {rate!s:>6}  {float(p):.4f}"
        ranked = sorted(self.posterior.parents.items(), key=lambda item: (-item[1], item[0]))
        for s, p in ranked[:LINES_SHOWN]:
            yield f"  parents {', '.join(self.columns[v] for v in s) or 'none'}: {float(p):.4f}"
        if len(ranked) > LINES_SHOWN:
            yield f"  and {len(ranked) - LINES_SHOWN} more sets"


def parse_rates(rates: Any) -> list[tuple[Fraction, Fraction]]:
    """Return rates with their prior: `1/10`, `1/100:1/5,1/20:4/5`, or pairs; without priors every rate alike."""
    items = [tuple(part.split(":")) for part in rates.split(",")] if isinstance(rates, str) else [
        tuple(item) if isinstance(item, tuple | list) else (item,) for item in rates
    ]  # fmt: skip
    try:
        parsed = [tuple(map(Fraction, item)) for item in items]
    except (ValueError, ZeroDivisionError, TypeError):
        parsed = []
    if not parsed or len({len(item) for item in parsed}) > 1 or len(parsed[0]) not in (1, 2):
        raise CalibrantError(f"rates is {short_repr(rates)}; write 1/10, 1/100,1/20 or 1/100:1/5,1/20:4/5")
    priors = [item[1] if len(item) == 2 else Fraction(1, len(parsed)) for item in parsed]
    values = [item[0] for item in parsed]
    if not all(0 <= rate < Fraction(1, 2) for rate in values) or len(set(values)) < len(values):
        raise CalibrantError(f"rates is {short_repr(rates)}; different rates from 0 and below 1/2 are allowed")
    if sum(priors) != 1 or min(priors) < 0:
        raise CalibrantError(f"rates is {short_repr(rates)}; their prior probabilities do not add up to 1")
    return list(zip(values, priors, strict=True))


def target_rates(table: Table, target: str, options: FormulaOptions) -> TargetRates:
    """Return the posteriors of an unknown rate."""
    max_parents = options.max_parents
    names, patterns = patterns_of_target(table, target)
    number = sum(1 for k in range(min(max_parents, len(names)) + 1) for _ in combinations(names, k))
    if max_parents > NUM_VARS or number > MAX_RATE_SETS:
        raise CalibrantError(
            f"{table.source}: rates are for at most {NUM_VARS} parents and {MAX_RATE_SETS:,} sets of columns; here are"
            f" {number:,}: lower max_parents (--max-parents), or leave out columns"
        )
    try:
        posterior = posterior_of_rates(patterns, max_parents, parse_rates(options.rates), options.prior)
    except ValueError as error:
        raise CalibrantError(f"{table.source}: {error}; give rates above 0") from None
    return TargetRates(target, names, options.prior, posterior)


def _wide_table(columns: Sequence[int], bits: int, number: int) -> str:
    rows = range(1 << number)
    return "".join(str(bits >> sum((row >> v & 1) << k for k, v in enumerate(columns)) & 1) for row in rows)
