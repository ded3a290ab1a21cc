"""A target: columns that it needs, formulas of many columns, advice where nothing fits, and unknown rates of errors."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from math import comb
from typing import Any, TypeAlias

from calibrant.audits.replayscm.why.explanation import smallest_contradiction
from calibrant.audits.replayscm.why.parts import Contradiction
from calibrant.bench.replayscm.fitting import fronts
from calibrant.bench.replayscm.fitting.columns import quote_name
from calibrant.bench.replayscm.fitting.table import Table, task_of
from calibrant.dsl.errors import CalibrantError, readable_repr
from calibrant.dsl.formulas.formula import Formula
from calibrant.dsl.formulas.text import infix, render
from calibrant.dsl.knowledge import Knowledge
from calibrant.dsl.replayscm.disclosure import HiddenOrder, HiddenRoots, natural
from calibrant.dsl.replayscm.item import Task
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.text import plural
from calibrant.solvers.formulas.fronts import Patterns, front, num_sets
from calibrant.solvers.formulas.least_formulas import NUM_VARS, tree_formula
from calibrant.solvers.formulas.uncertain_rows import Prior, RatePosterior, posterior_of_rates
from calibrant.solvers.formulas.wide_tables import (
    MAX_COLUMNS,
    NeededColumns,
    WideFormula,
    best_known_formula,
    count_wide_functions,
    find_needed_columns,
    find_wide_formula,
)
from calibrant.solvers.outcome import BudgetSpent, Found, Impossible, OutOfBudget
from calibrant.solvers.replayscm.certified import certify
from calibrant.solvers.replayscm.exact import ExactAnswer, unsatisfied_words
from calibrant.solvers.replayscm.space import MAX_PARENTS

# --- Columns that a target needs, its least formula where it mentions more than six, and advice where nothing fits ----
Outcome: TypeAlias = Found[ExactAnswer] | Impossible | OutOfBudget
SETS_LISTED = 20
MAX_PLAIN_SETS = 5_000  # sets of columns in which a tie without xor and iff is looked for: 18 columns, 0.2 s
SETS_SHOWN = 3
MAX_DIGITS = 25  # digits of a number that is printed in full, with its commas


@dataclass(frozen=True)
class TargetNeeds:
    """Smallest sets of columns that determine a target. columns: all others; legal: their names inside formulas."""

    target: str
    columns: tuple[str, ...]
    legal: tuple[str, ...]
    patterns: Patterns
    needed: NeededColumns

    def find_formula(self, max_parents: int, best: Formula | None = None) -> WideFormula:
        """Return the least formula of at most so many columns; best: the least one of at most six."""
        return find_wide_formula(self.patterns, self.needed, self.legal, max_parents, best=best)

    def best_known(self, max_parents: int) -> Formula | None:
        """Return a formula that fits and mentions at most so many columns, not proven least; None without one."""
        number = self.needed.number
        if number is None or number > max_parents or self.needed.clash is not None:
            return None
        return best_known_formula(self.patterns, self.needed, self.legal)

    def count_functions(self, max_parents: int) -> int | None:
        """Return how many functions of at most so many columns fit; None where too many columns are in the table."""
        if len(self.columns) > MAX_COLUMNS:
            return None
        return count_wide_functions(self.patterns, max_parents)

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        needed = self.needed
        entries: dict[str, Any] = {
            "needed": needed.number,
            "sets": needed.num_sets if needed.number is not None else None,
            "listed": [[self.columns[c] for c in chosen] for chosen in needed.sets[:SETS_LISTED]],
        }
        if needed.number is None and needed.clash is None:
            entries["needed_at_least"] = needed.at_least
        return entries

    def advice(self, max_parents: int, limit: int) -> str | None:
        """Return how many columns are needed and the option that goes on, where the bound is lower."""
        number = self.needed.number
        if number is None or number <= max_parents:
            return None
        sets = f"{plural(self.needed.num_sets, 'sets')} of {number} {'does' if self.needed.num_sets == 1 else 'do'}"
        go_on = f": --max-parents {number}" if number <= limit else f", more than the {limit} that are searched"
        return f"{number} are needed, {sets}{go_on}"

    def lines(self, *, every: bool = False) -> Iterator[str]:
        """Yield the number of columns needed and the sets; every: up to 20 of these."""
        number = self.needed.number
        if number is None:
            if self.needed.clash is None:
                least = plural(self.needed.at_least, "columns")
                yield f"{self.target} needs at least {least}; the search for the least number was not ended"
            return
        sets = self.needed.sets[: SETS_LISTED if every else SETS_SHOWN]
        texts = "; ".join(", ".join(quote_name(self.columns[c]) for c in chosen) or "none" for chosen in sets)
        more = "" if self.needed.num_sets <= len(sets) else ", ..."
        is_only = self.needed.num_sets == 1
        count = "1 set of them determines it" if is_only else f"{self.needed.num_sets:,} sets of them determine it"
        yield f"{self.target} needs {plural(number, 'columns')}; {count}: {texts}{more}"


def find_needs(table: Table, target: str) -> TargetNeeds:
    """Return the smallest sets of columns that determine a target."""
    columns, patterns = fronts.patterns_of_target(table, target)
    try:
        needed = find_needed_columns(patterns)
    except BudgetSpent:  # more pairs of rows than are compared
        needed = NeededColumns(0, None)
    legal = tuple(table.legal_names[table.position(name)] for name in columns)
    return TargetNeeds(target, columns, legal, patterns, needed)


def bounds_text(formula: Formula | None, bound: str) -> str:
    """Return the size of the best known formula with its bound, and the formula."""
    if formula is None:
        return f"no formula within the budget, {bound}"
    return f"best known {plural(formula.size, 'nodes')}, {bound}: {infix(formula)}"


def state_best_known(outcome: Outcome, needs: TargetNeeds | None, max_parents: int) -> tuple[Outcome, Formula | None]:
    """Return an outcome that is not decided with the best formula that is known of a target, and this formula."""
    if needs is None or not isinstance(outcome, OutOfBudget) or outcome.lower_bound is None:
        return outcome, None
    best = needs.best_known(max_parents)
    return OutOfBudget(bounds_text(best, f"at least {outcome.lower_bound}"), outcome.lower_bound), best


def prefer_plain(
    outcome: Outcome,
    table: Table,
    options: fronts.FormulaOptions,
    computed: Sequence[fronts.TargetFront | fronts.ScmFront],
) -> Outcome:
    """Return least formulas without xor and iff where those that were found have either and a tie has not.

    computed: fronts that are at hand, of which one of not, and, or has the formula of its target
    """
    if options.assume is not None or not isinstance(outcome, Found):
        return outcome
    model = outcome.value.model
    plain: dict[str, Formula] = {}
    for legal, formula in model.mechanisms.items():
        if not re.search(r"\((?:xor|iff) ", render(formula)):
            continue
        tie = _find_plain_tie(table, legal, formula, options, computed)
        if tie is not None:
            plain[legal] = tie
    if not plain:
        return outcome
    task = task_of(table, HiddenOrder(natural(table.legal_names), model.roots))
    return Found(replace(outcome.value, model=certify(task, Scm(model.roots, {**model.mechanisms, **plain}))))


def _find_plain_tie(
    table: Table,
    legal: str,
    formula: Formula,
    options: fronts.FormulaOptions,
    computed: Sequence[fronts.TargetFront | fronts.ScmFront],
) -> Formula | None:
    """Return a formula of the same size without xor and iff that fits; None without one.

    Compared over all columns for a target and up to MAX_PLAIN_SETS sets of them, else over those that it mentions.
    """
    names = table.naming
    columns, patterns = fronts.patterns_of_target(table, table.names[table.legal_names.index(legal)])
    chosen, widest = list(range(len(columns))), min(options.max_parents, NUM_VARS)
    if options.target is None or num_sets(len(columns), widest) > MAX_PLAIN_SETS:
        chosen = [k for k in chosen if names.to_legal(columns[k]) in formula.mentioned]
    texts = [names.to_legal(columns[k]) for k in chosen]
    at_hand = [f for f in computed if isinstance(f, fronts.TargetFront) and f.measure == "and-or-not"]
    if options.target is not None and at_hand and len(chosen) == len(columns):
        points = [point for point in at_hand[0].front.points if point.errors == 0]
    else:
        rows = Patterns(patterns.codes[:, chosen], patterns.zeros, patterns.ones)
        points = list(front(rows, "and-or-not", widest, texts, max_errors=0, ties=1).points)
    if not points or points[0].size != formula.size:
        return None
    return tree_formula(points[0].formulas(1)[0][1], texts)


def functions_line(number: int) -> str:
    """Return how many functions fit: with commas, a long number as a power of ten."""
    text = f"{number:,}" if len(f"{number:,}") <= MAX_DIGITS else f"about 10**{len(str(number)) - 1}"
    return f"{text} {'function' if number == 1 else 'functions'} of at most that many columns fit{'s' * (number == 1)}"


# --- Advice where nothing fits a table --------------------------------------------------------------------------------
NOISY = "if values are noisy, learn networks (--score bde; learn_networks in Python)"
ALLOWING = NOISY.replace("learn networks", "allow errors (--errors front) or learn networks")


class ContradictionError(CalibrantError):
    """Rows that contradict each other: nothing of any class fits."""


def contradiction_message(table: Table, clash: Contradiction) -> str:
    """Return which rows contradict each other, and what to do."""
    first, second = sorted((place.split()[-1] for place in (clash.first, clash.second)), key=int)
    reason = f"{clash.variable} differs, and all that it may depend on is equal"
    advice = "" if table.has_targets else "name the columns that were set in a column given by do (--do), "
    rows = f"rows {first} and {second} ({table.counting})"
    unused = next((column.name for column in table.columns if column.kind == "id"), None)
    if unused is not None:
        advice += f"read {readable_repr(unused)}, left out as all different, by a rule (--binarize '{unused}:RULE'), "
    return f"{rows} contradict each other: {reason}; correct one, {advice}or {ALLOWING}"


def advise_networks(outcome: Outcome) -> Outcome:
    """Return an outcome that advises no errors, where these are allowed already."""
    if not isinstance(outcome, Impossible):
        return outcome
    return Impossible(outcome.exhausted.replace(ALLOWING, NOISY))


def advise_bound(max_parents: int) -> str:
    """Return which bound to raise, and what fits noisy columns."""
    if max_parents < MAX_PARENTS:
        return f"raise max_parents (--max-parents), at most {MAX_PARENTS}; {NOISY}"
    wider = f"wider classes than {MAX_PARENTS} are not searched: leave out columns, or add one that combines some"
    return f"{wider}; {NOISY}"


def advise_on_no_fit(table: Table, max_parents: int) -> str:
    """Return the contradicting rows if no bound helps, else the bound to raise."""
    if max_parents < len(table.legal_names) - 1:
        return advise_bound(max_parents)
    for name in table.legal_names:
        others = natural(column for column in table.legal_names if column != name)
        clash = smallest_contradiction(task_of(table, HiddenOrder(natural(table.legal_names), others)))
        if clash is not None:
            return contradiction_message(table, clash)
    raise AssertionError("every column is a function of the others, but no set of roots fits")


def report_exhaustion(
    outcome: Impossible, task: Task, table: Table, needs: TargetNeeds | None, max_parents: int
) -> str:
    """Report which class was exhausted, and which bound to raise."""
    if task.assumption is not None:
        return f"{outcome.exhausted}; {advise_bound(max_parents)}"
    if needs is None:
        return f"{outcome.exhausted}; {advise_bound(max_parents)}"
    num_others = len(task.variables) - 1
    sets = sum(comb(num_others, k) for k in range(max_parents + 1))
    name = table.naming.to_legal(needs.target)
    claim = (
        f"{name} is no function of at most {max_parents} of the {num_others} other columns: "
        f"all {sets:,} sets were tried"
    )
    advice = needs.advice(max_parents, fronts.MAX_TARGET_PARENTS)
    return f"{claim}; {advice}; {NOISY}" if advice else f"{claim}; {advise_bound(max_parents)}"


def report_unsatisfied(outcome: Outcome, task: Task, assumption: Knowledge, max_parents: int) -> str:
    """Report why no number of roots satisfies an assumption. outcome: of the fit without it."""
    if not isinstance(outcome, Found):
        return f"whether or not the assumption holds: {outcome}"
    tasks = [
        replace(task, disclosure=HiddenRoots(task.variables, number), assumption=assumption)
        for number in range(1, len(task.variables))
    ]
    return unsatisfied_words(tasks, max_parents)


# --- Posteriors of an unknown rate of errors in a target, as `calibrant fit` states them ------------------------------
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
        if number <= fronts.MAX_TABLE_COLUMNS:
            tables = [_wide_table(columns, bits, number) for columns, bits in posterior.best]
            entries["best"] = {"tables": sorted(tables), "posterior": str(posterior.best_posterior)}
        return entries

    def lines(self) -> Iterator[str]:
        """Yield the posteriors, most probable first."""
        yield f"{self.target} as a function of others, flipped with an unknown rate; prior {self.prior}"
        for rate, p in sorted(self.posterior.rates.items()):
            yield f"  rate {rate!s:>6}  {float(p):.4f}"
        ranked = sorted(self.posterior.parents.items(), key=lambda item: (-item[1], item[0]))
        for s, p in ranked[: fronts.LINES_SHOWN]:
            yield f"  parents {', '.join(self.columns[v] for v in s) or 'none'}: {float(p):.4f}"
        if len(ranked) > fronts.LINES_SHOWN:
            yield f"  and {len(ranked) - fronts.LINES_SHOWN} more sets"


def parse_rates(rates: Any) -> list[tuple[Fraction, Fraction]]:
    """Return rates with their prior: `1/10`, `1/100:1/5,1/20:4/5`, or pairs; without priors every rate alike."""
    stated = rates if isinstance(rates, Iterable) else ()
    items = [tuple(part.split(":")) for part in rates.split(",")] if isinstance(rates, str) else [
        tuple(item) if isinstance(item, tuple | list) else (item,) for item in stated
    ]  # fmt: skip
    try:
        parsed = [tuple(Fraction(str(part)) for part in item) for item in items]  # .1 is 1/10
    except (ValueError, ZeroDivisionError, TypeError):
        parsed = []
    if not parsed or len({len(item) for item in parsed}) > 1 or len(parsed[0]) not in (1, 2):
        raise CalibrantError(f"rates is {readable_repr(rates)}; write 1/10, 1/100,1/20 or 1/100:1/5,1/20:4/5")
    priors = [item[1] if len(item) == 2 else Fraction(1, len(parsed)) for item in parsed]
    values = [item[0] for item in parsed]
    if not all(0 <= rate < Fraction(1, 2) for rate in values) or len(set(values)) < len(values):
        raise CalibrantError(f"rates is {readable_repr(rates)}; different rates from 0 and below 1/2 are allowed")
    if sum(priors) != 1 or min(priors) < 0:
        raise CalibrantError(f"rates is {readable_repr(rates)}; their prior probabilities do not add up to 1")
    return list(zip(values, priors, strict=True))


def target_rates(table: Table, target: str, options: fronts.FormulaOptions) -> TargetRates:
    """Return the posteriors of an unknown rate."""
    max_parents = options.max_parents
    names, patterns = fronts.patterns_of_target(table, target)
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


def log_step(step: str, done: int, total: int) -> None:
    """Log a step of a fit, for programs."""
    logging.getLogger("calibrant.fit").info("%s: %d of %d", step, done, total)
