"""Members with hidden variables one by one, and how many different meanings they have.

Two SCMs have one meaning if they show the same observed rows under every intervention on observed variables. Clamp all
observed variables but X: its value is X's mechanism with hidden variables replaced by their functions, as a function
of the other observed variables. These reduced functions fix every row, since the graph is acyclic; so two members have
one meaning iff all their reduced functions are equal.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import product
from typing import TypeAlias

from calibrant.dsl.formulas.table import TruthTable, shrink, support
from calibrant.dsl.replayscm.extensions.reference import Mechanisms, apply_function, evaluation_order
from calibrant.dsl.replayscm.scm import LocalFunction
from calibrant.solvers.acyclic.least_cost import Mask, members_of
from calibrant.solvers.budget import BudgetSpent
from calibrant.solvers.replayscm.hidden.columns import HiddenColumn, hidden_columns
from calibrant.solvers.replayscm.noise.posterior import Posterior, extend_rows
from calibrant.solvers.replayscm.noise.rows import VariableRows
from calibrant.solvers.replayscm.noise.sampling import negate_arguments

# listed to count meanings: 512 members were 28 meanings, so that one member left is no criterion
MAX_LISTED_MEMBERS = 3_000

Meaning: TypeAlias = tuple[tuple[tuple[str, ...], int], ...]
"""Of each observed endogenous variable its reduced function: functional parents, bits of the table over these."""


def reduced_function(
    function: LocalFunction, hidden: tuple[tuple[str, LocalFunction], ...]
) -> tuple[tuple[str, ...], int]:
    """Return a mechanism with hidden variables replaced: functional parents, sorted, and the table over these.

    hidden: the functions of its hidden parents
    """
    replaced = dict(hidden)
    observed = {u for u in function.parents if u not in replaced}
    names = sorted(observed.union(*(h.parents for h in replaced.values())))
    # hidden parents have observed parents only, so one substitution removes them all
    bits = 0
    for row in range(1 << len(names)):
        values = {name: row >> i & 1 for i, name in enumerate(names)}
        values |= {name: apply_function(h, values) for name, h in hidden}
        bits |= apply_function(function, values) << row
    table, functional = shrink(TruthTable(len(names), bits))
    return tuple(names[i] for i in functional), table.bits


_reduced = lru_cache(maxsize=100_000)(reduced_function)  # members share most of their functions


def meaning(mechanisms: Mechanisms, hidden: Sequence[str]) -> Meaning:
    """Return the reduced functions of the observed endogenous variables, sorted by name."""
    return tuple(
        _reduced(mechanisms[v], tuple((h, mechanisms[h]) for h in mechanisms[v].parents if h in hidden))
        for v in sorted(mechanisms)
        if v not in hidden
    )


def count_meanings(posterior: Posterior, limit: int = MAX_LISTED_MEMBERS) -> int:
    """Return how many meanings the members have; `BudgetSpent` for more than `limit` members. Noise-free."""
    hidden = tuple(posterior.scm_class.hidden_parents)
    return len({meaning(member, hidden) for member in list_members(posterior, limit)})


def list_members(posterior: Posterior, limit: int = MAX_LISTED_MEMBERS) -> list[Mechanisms]:
    """Return every SCM that agrees with all rows; `BudgetSpent` for more than `limit`."""
    if not posterior.scm_class.noise.is_silent:
        raise ValueError("under noise every SCM of the class is a member")
    if posterior.num_members > limit:
        raise BudgetSpent(f"{posterior.num_members:,} members; listed are up to {limit:,}")
    columns = hidden_columns(posterior.scm_class, posterior.words)
    return [member for choice in columns for member in _column_members(posterior, choice)]


def _column_members(posterior: Posterior, columns: Sequence[HiddenColumn]) -> Iterator[Mechanisms]:
    names = posterior.scm_class.variables
    options: dict[str, list[LocalFunction]] = {}
    for v, local in posterior.local_rows.items():
        rows = extend_rows(local, columns)
        tables = (_agreeing_tables(rows, v, mask, names) for mask in posterior.masks[v])
        options[names[v]] = [table for listed in tables for table in listed]
        if not options[names[v]]:
            return
    # one column of each pair of negations is listed; children of the other negate the argument
    signs: list[list[dict[int, int]]] = []
    for column in columns:
        negated = {word: 1 - bit for word, bit in column.values.items()}
        signs.append([dict(column.values), negated] if column.values else [{}])
    for chosen in product(*options.values()):
        observed = dict(zip(options, chosen, strict=True))
        for values in product(*signs):
            flipped = {
                column.index for column, value in zip(columns, values, strict=True) if value != dict(column.values)
            }
            children = {v: negate_arguments(f, {names[i] for i in flipped}) for v, f in observed.items()}
            hidden = [
                [(names[c.index], f) for f in _completed(value, c, names)]
                for c, value in zip(columns, values, strict=True)
            ]
            for pairs in product(*hidden):
                member = children | dict(pairs)
                # options are chosen variable by variable, so cycles, also through hidden variables, are dropped here
                if evaluation_order(member) is not None:
                    yield member


def _agreeing_tables(rows: VariableRows, variable: int, parents: Mask, names: Sequence[str]) -> list[LocalFunction]:
    """Return the functions of exactly these parents that agree with all rows."""
    places = members_of(parents)
    values: dict[int, int] = {}
    for word in (*rows.noisy, *rows.clean):
        row = sum((word >> u & 1) << i for i, u in enumerate(places))
        if values.setdefault(row, word >> variable & 1) != word >> variable & 1:
            return []
    return _functions(values, tuple(names[u] for u in places))


def _completed(values: Mapping[int, int], column: HiddenColumn, names: Sequence[str]) -> list[LocalFunction]:
    places = members_of(column.parents)
    rows = {sum((word >> u & 1) << i for i, u in enumerate(places)): bit for word, bit in values.items()}
    return _functions(rows, tuple(names[u] for u in places))


def _functions(values: Mapping[int, int], parents: tuple[str, ...]) -> list[LocalFunction]:
    size = 1 << len(parents)
    unseen = [row for row in range(size) if row not in values]
    if len(unseen) > MAX_LISTED_MEMBERS.bit_length():
        raise BudgetSpent(f"2**{len(unseen)} tables; listed are up to {MAX_LISTED_MEMBERS:,} members")
    stated = sum(bit << row for row, bit in values.items())
    tables = (
        TruthTable(len(parents), stated | sum(bit << row for row, bit in zip(unseen, bits, strict=True)))
        for bits in product((0, 1), repeat=len(unseen))
    )
    return [LocalFunction(parents, table) for table in tables if len(support(table)) == len(parents)]
