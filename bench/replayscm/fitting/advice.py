"""Advice where nothing fits a table."""

from __future__ import annotations

from calibrant.audits.replayscm.why.parts import Contradiction
from calibrant.bench.replayscm.fitting.columns import BooleanTable
from calibrant.solvers.replayscm.space import MAX_PARENTS

NOISY = "if values are noisy, learn networks (--score bde; learn_networks in Python)"


def contradiction_message(table: BooleanTable, clash: Contradiction) -> str:
    """Return which rows contradict each other, and what to do."""
    first, second = (place.split()[-1] for place in (clash.first, clash.second))
    reason = f"{clash.variable} differs, and all that it may depend on is equal"
    advice = "" if table.has_do else "name the columns that were set in a column given by do (--do), "
    rows = f"rows {first} and {second} ({table.counting})"
    return f"{rows} contradict each other: {reason}; correct one, {advice}or {NOISY}"


def advise_bound(max_parents: int) -> str:
    """Return which bound to raise, and what fits noisy columns."""
    if max_parents < MAX_PARENTS:
        return f"raise max_parents (--max-parents), at most {MAX_PARENTS}; {NOISY}"
    wider = f"wider classes than {MAX_PARENTS} are not searched: leave out columns, or add one that combines some"
    return f"{wider}; {NOISY}"
