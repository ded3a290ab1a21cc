"""Certificates of extended items, as JSON, and their verification without solvers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import partial
from itertools import combinations, product
from math import ceil
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta

from calibrant.audits.claims import RecountLimitError, checkpoint
from calibrant.audits.replayscm.certificates import counting
from calibrant.dsl.replayscm.extensions.extension import MechanismClass, NoiseKind
from calibrant.solvers.acyclic.count import total
from calibrant.solvers.acyclic.least import members_of
from calibrant.solvers.replayscm.experiments.clairvoyant import ClairvoyantMinimum, ClairvoyantSearch
from calibrant.solvers.replayscm.hidden.columns import hidden_columns
from calibrant.solvers.replayscm.noise.posterior import Posterior
from calibrant.solvers.replayscm.noise.subset_tables import word_text

# --- Certificates of masses, hidden columns and clairvoyant minima, as JSON that a third party can check --------------
# A mass certificate has the evidence and, for each column of hidden variables, the weights w_v(S) of parent sets as
# integers and their sum over DAGs. A clairvoyant certificate has the worlds of the minimum, the requirements with the
# worlds that meet them, and rational dual weights, whose sum is a lower bound.
FORMAT = "calibrant-extended-certificate"
VERSION = 1
MAX_COLUMNS = 4_096  # columns of hidden variables in a certificate


def class_record(scm_class: MechanismClass) -> dict[str, Any]:
    """Return the class as JSON, with lists of admissible parents, and weights and rates as fractions."""
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
    """Return the certificate of a mass; `ValueError` if each variable has its own rate, or for too many columns."""
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
    """Return the certificate of a clairvoyant minimum.

    If `bound` is below the number of worlds, the certificate states that HiGHS proved the rest.
    """
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


# --- Independent checks of certificates by listing tables and DAGs and replaying worlds; they use no solver -----------
MAX_ENDOGENOUS = 6  # endogenous and hidden variables up to which DAGs are listed
MAX_TABLE_PARENTS = 4
# digits alone: Fraction also takes "1e999999999", a number of a gigabyte
Exact: TypeAlias = Annotated[str, Meta(pattern=r"^-?(0|[1-9][0-9]*)(/[1-9][0-9]*)?\Z")]


class HiddenValues(msgspec.Struct, forbid_unknown_fields=True):
    """Values of a hidden variable by pattern of its parents."""

    name: str
    parents: list[str]
    values: dict[str, int]


class Term(msgspec.Struct, forbid_unknown_fields=True):
    """Weights at one rate, by variable and parent set, their sum over DAGs, and what it is multiplied by."""

    factor: Exact
    weights: dict[str, dict[str, Exact]]
    sum: Exact


class Column(msgspec.Struct, forbid_unknown_fields=True):
    """One choice of the values of all hidden variables."""

    hidden: list[HiddenValues]
    terms: list[Term]


class Row(msgspec.Struct, forbid_unknown_fields=True):
    """One row of the evidence."""

    row: str
    targets: list[str]
    clean: bool


class Function(msgspec.Struct, forbid_unknown_fields=True):
    """A mechanism of the true SCM."""

    parents: list[str]
    table: str


class Requirement(msgspec.Struct, forbid_unknown_fields=True):
    """A requirement with the worlds that meet it, and its dual weights."""

    label: str
    alternatives: list[list[list[int]]]
    weight: Exact
    parts: list[list[Exact]]


class Document(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, rename={"scm_class": "class"}):
    """Fields of both claims; the class is compared with that of an item."""

    format: Literal["calibrant-extended-certificate"]
    version: Literal[1]
    instance: str = ""
    scm_class: dict[str, Any]


class MassDocument(Document, tag_field="claim", tag="mass"):
    """The mass of the evidence."""

    rows: list[Row]
    columns: list[Column]
    mass: Exact


class ClairvoyantDocument(Document, tag_field="claim", tag="clairvoyant"):
    """The fewest worlds that leave the members that all candidates leave."""

    truth: dict[str, Function]
    candidates: list[dict[str, int]]
    worlds: list[int]
    floor: str
    rows: list[Requirement]
    bound: int
    proved_by: Literal["dual weights", "HiGHS"]


class CertificateError(ValueError):
    """A certificate that does not hold; the message names the claim that fails."""


def verify_certificate(document: Mapping[str, Any]) -> str:
    """Check a certificate; return one line on what was checked, or raise `CertificateError` with the first failure."""
    try:
        checked = msgspec.convert(document, MassDocument | ClairvoyantDocument, strict=True)
        return _verify_mass(document) if isinstance(checked, MassDocument) else _verify_clairvoyant(document)
    except counting.LargeGroupError as error:
        raise RecountLimitError(f"here: {error}") from None
    except (KeyError, TypeError, IndexError, AttributeError, ZeroDivisionError) as error:
        raise CertificateError(f"malformed: {type(error).__name__} {error}") from None
    except CertificateError:
        raise
    except ValueError as error:
        raise CertificateError(f"malformed: {error}") from None


# --- mass -------------------------------------------------------------------------------------------------------------


def _verify_mass(document: Mapping[str, Any]) -> str:
    scm_class, rows = document["class"], document["rows"]
    names = [v for v in scm_class["observed"] if v not in scm_class["roots"]]
    if len(names) + len(scm_class["hidden"]) > MAX_ENDOGENOUS:
        raise CertificateError(f"more than {MAX_ENDOGENOUS} endogenous variables: DAGs are not listed")
    mass = Fraction(0)
    columns = list(_columns(scm_class, rows))
    stated = {_column_key(column["hidden"]): column for column in document["columns"]}
    if len(stated) != len(document["columns"]):
        raise CertificateError("a column is listed twice")
    for hidden in columns:
        column = stated.pop(_column_key(hidden), None)
        if column is None:
            raise CertificateError(f"a column of weight is missing: {_column_key(hidden)}")
        mass += _verify_column(scm_class, rows, hidden, column)
    if stated:
        raise CertificateError(f"a column that has no weight: {next(iter(stated))}")
    if mass != Fraction(document["mass"]):
        raise CertificateError(f"the mass is {mass}, not {document['mass']}")
    return f"mass {mass} recounted over {len(columns)} columns"


def _column_key(hidden: Sequence[Mapping[str, Any]]) -> str:
    return "; ".join(
        f"{h['name']}({','.join(h['parents'])}) {' '.join(f'{p}:{b}' for p, b in sorted(h['values'].items()))}"
        for h in hidden
    )


def _columns(scm_class: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Yield every combination of hidden values by pattern of the parents, the first value 0, that some function has.

    A column has its number of functions, twice for the complement.
    """
    options_by_variable: list[list[dict[str, Any]]] = []
    for name, stated in scm_class["hidden"].items():
        options = []
        sets = [stated] if stated is not None else _parent_sets(scm_class, name)
        for parents in sets:
            positions = [scm_class["observed"].index(u) for u in parents]
            patterns = sorted({"".join(row["row"][i] for i in positions) for row in rows}, key=lambda text: text[::-1])
            for bits in product((0, 1), repeat=max(0, len(patterns) - 1)):
                values = dict(zip(patterns, (0, *bits), strict=True)) if patterns else {}
                count = sum(
                    all(table[_table_row(pattern)] == bit for pattern, bit in values.items())
                    for table in _essential_tables(len(parents))
                )
                if count:
                    signs = 2 if patterns else 1
                    options.append({"name": name, "parents": list(parents), "values": values, "number": signs * count})
        options_by_variable.append(options)
    yield from (list(choice) for choice in product(*options_by_variable))


def _table_row(pattern: str) -> int:
    """Return the row of a table with these values; character i is variable i, bit i of the row."""
    return int(pattern[::-1] or "0", 2)


def _parent_sets(scm_class: Mapping[str, Any], name: str) -> Iterator[tuple[str, ...]]:
    candidates = scm_class["admissible"][name]
    for size in range(min(scm_class["max_parents"], len(candidates)) + 1):
        yield from combinations(candidates, size)


_TABLES: dict[int, list[tuple[int, ...]]] = {}


def _essential_tables(num_vars: int) -> list[tuple[int, ...]]:
    """Return every table that depends on all variables; bit i of a row is variable i."""
    if num_vars > MAX_TABLE_PARENTS:
        raise CertificateError(f"tables of more than {MAX_TABLE_PARENTS} parents are not listed")
    if num_vars not in _TABLES:
        size = 1 << num_vars
        tables = (tuple(bits >> row & 1 for row in range(size)) for bits in range(1 << size))
        _TABLES[num_vars] = [
            table
            for table in tables
            if all(any(table[row] != table[row ^ 1 << i] for row in range(size)) for i in range(num_vars))
        ]
    return _TABLES[num_vars]


def _verify_column(
    scm_class: Mapping[str, Any],
    rows: Sequence[Mapping[str, Any]],
    hidden: Sequence[Mapping[str, Any]],
    column: Mapping[str, Any],
) -> Fraction:
    """Check the integers of a column by listing; return its part of the mass."""
    complete = []
    for row in rows:
        values = {v: int(bit) for v, bit in zip(scm_class["observed"], row["row"], strict=True)}
        for h in hidden:
            values[h["name"]] = h["values"]["".join(str(values[u]) for u in h["parents"])]
        complete.append((values, frozenset(row["targets"]), bool(row["clean"])))
    if len(column["terms"]) != len(scm_class["rates"]):
        raise CertificateError("a term for each rate is expected")
    part = Fraction(0)
    for (rate, prior), term in zip(scm_class["rates"], column["terms"], strict=True):
        exact: dict[str, dict[str, Fraction]] = {}
        for v in (v for v in scm_class["observed"] if v not in scm_class["roots"]):
            exact[v] = {
                " ".join(parents): _set_weight(scm_class, complete, v, parents, Fraction(rate))
                for parents in _parent_sets(scm_class, v)
            }
        factor = Fraction(prior)
        for h in hidden:
            weight = Fraction(1) if scm_class["hidden"][h["name"]] is not None else _prior(scm_class, len(h["parents"]))
            factor *= h["number"] * weight
            exact[h["name"]] = {" ".join(h["parents"]): Fraction(1)}
        value = factor * _dag_sum(exact, scm_class["roots"])
        stated = {v: {s: Fraction(w) for s, w in sets.items() if Fraction(w)} for v, sets in term["weights"].items()}
        _compare_weights(exact, stated)
        if _dag_sum(stated, scm_class["roots"]) != Fraction(term["sum"]):
            raise CertificateError("the sum over DAGs of a term is wrong")
        if Fraction(term["factor"]) * Fraction(term["sum"]) != value:
            raise CertificateError("factor times sum of a term is not what is counted again")
        part += value
    return part


def _compare_weights(exact: Mapping[str, Mapping[str, Fraction]], stated: Mapping[str, Mapping[str, Fraction]]) -> None:
    """Check that the stated integers of each variable are proportional to the exact weights."""
    if stated.keys() != exact.keys():
        raise CertificateError("weights of other variables than those of the class")
    if any(weight < 0 or weight.denominator > 1 for sets in stated.values() for weight in sets.values()):
        raise CertificateError("weights are integers of 0 or more")
    for v, sets in exact.items():
        positive = {s: w for s, w in sets.items() if w}
        if positive.keys() != stated.get(v, {}).keys():
            raise CertificateError(f"parent sets of {v} differ")
        if len({stated[v][s] / w for s, w in positive.items()}) > 1:
            raise CertificateError(f"a weight of {v} is wrong")


def _set_weight(
    scm_class: Mapping[str, Any],
    rows: Sequence[tuple[Mapping[str, int], frozenset[str], bool]],
    variable: str,
    parents: Sequence[str],
    rate: Fraction,
) -> Fraction:
    """Return the prior times the probability of the variable's cells, summed over tables that depend on all parents."""
    total = Fraction(0)
    free = [(values, is_clean) for values, targets, is_clean in rows if variable not in targets]
    cells = [(sum(values[u] << i for i, u in enumerate(parents)), values[variable], clean) for values, clean in free]
    for table in _essential_tables(len(parents)):
        wrong = sum(table[row] != value for row, value, clean in cells if not clean)
        if any(table[row] != value for row, value, clean in cells if clean):
            continue
        num_noisy = sum(not clean for _, _, clean in cells)
        total += rate**wrong * (1 - rate) ** (num_noisy - wrong)
    return total * _prior(scm_class, len(parents))


def _prior(scm_class: Mapping[str, Any], num_parents: int) -> Fraction:
    return Fraction(scm_class["parent_weights"][num_parents])


def _dag_sum(options: Mapping[str, Mapping[str, Fraction]], roots: Sequence[str]) -> Fraction:
    """Sum the products of weights over acyclic parent-set assignments, by listing all assignments."""
    names = list(options)
    total = Fraction(0)
    for assignment in product(*([(s, w) for s, w in options[v].items() if w] for v in names)):
        if _is_acyclic({v: s.split() for v, (s, _) in zip(names, assignment, strict=True)}, roots):
            value = Fraction(1)
            for _, weight in assignment:
                value *= weight
            total += value
    return total


def _is_acyclic(parents: Mapping[str, Sequence[str]], roots: Sequence[str]) -> bool:
    placed, waiting = set(roots), set(parents)
    while waiting:
        ready = {v for v in waiting if placed.issuperset(parents[v])}
        if not ready:
            return False
        placed |= ready
        waiting -= ready
    return True


# --- clairvoyant ------------------------------------------------------------------------------------------------------


def _verify_clairvoyant(document: Mapping[str, Any]) -> str:
    """Check requirements by replay, dual weights by summation, and the floor by counting functions and DAGs."""
    scm_class, candidates = document["class"], document["candidates"]
    readings = [_readings(scm_class, document["truth"], do) for do in candidates]
    start = _readings(scm_class, document["truth"], {})
    loads, total = [Fraction(0)] * len(candidates), Fraction(0)
    chosen = set(document["worlds"])
    if len(chosen) != len(document["worlds"]) or not chosen <= set(range(len(candidates))):
        raise CertificateError("the worlds are no distinct candidates")
    for index, row in enumerate(document["rows"]):
        checkpoint("requirements", index, len(document["rows"]))
        weight, alternatives = Fraction(row["weight"]), row["alternatives"]
        _verify_requirement(document, row, readings, start)
        if not any(all(chosen & set(worlds) for worlds in parts) for parts in alternatives):
            raise CertificateError(f"the worlds do not meet {row['label']}")
        if weight < 0:
            raise CertificateError(f"a negative weight at {row['label']}")
        total += weight
        is_plain = len(alternatives) == 1 and len(alternatives[0]) == 1
        if is_plain and row["parts"]:
            raise CertificateError(f"one set has no parts at {row['label']}")
        pieces = [[weight]] if is_plain else [[Fraction(part) for part in parts] for parts in row["parts"]]
        if [len(parts) for parts in pieces] != [len(parts) for parts in alternatives]:
            raise CertificateError(f"weights of other sets at {row['label']}")
        for worlds_of, parts in zip(alternatives, pieces, strict=True):
            if sum(parts) < weight or min(parts) < 0:
                raise CertificateError(f"an alternative weighs more than its sets at {row['label']}")
            for worlds, part in zip(worlds_of, parts, strict=True):
                for world in worlds:
                    loads[world] += part
    if any(load > 1 for load in loads):
        raise CertificateError("a world weighs more than 1")
    if ceil(total) != document["bound"]:
        raise CertificateError(f"the weights prove {ceil(total)}, not {document['bound']}")
    if document["bound"] > len(chosen):
        raise CertificateError("the bound is above the number of worlds")
    if (document["proved_by"] == "dual weights") != (document["bound"] == len(chosen)):
        raise CertificateError("dual weights are its proof if and only if they prove the number of worlds")
    targets_of_readings = [frozenset(do) for do in candidates]
    floor = _count_members(scm_class, [(start, frozenset()), *zip(readings, targets_of_readings, strict=True)])
    if document["floor"] != str(floor):
        raise CertificateError(f"all candidates leave {floor} members, not {document['floor']}")
    worlds = [(readings[world], targets_of_readings[world]) for world in sorted(chosen)]
    num_left = _count_members(scm_class, [(start, frozenset()), *worlds])
    if num_left != floor:
        raise CertificateError(f"the worlds leave {num_left} members, all candidates {floor}")
    if document["bound"] < len(worlds):  # what the weights do not prove can be refuted by one world too many
        for index, world in enumerate(sorted(chosen)):
            if _count_members(scm_class, [(start, frozenset()), *worlds[:index], *worlds[index + 1 :]]) == floor:
                raise CertificateError(f"the worlds leave no more members without world {world}")
    return f"{len(chosen)} worlds; the weights of {len(document['rows'])} requirements prove {document['bound']}"


def _count_members(
    scm_class: Mapping[str, Any], worlds: Sequence[tuple[Sequence[Mapping[str, int]], frozenset[str]]]
) -> int:
    """Count the SCMs of a class without hidden variables that agree with worlds; worlds: rows and targets of each."""
    functions = {}
    for variable, allowed in scm_class["admissible"].items():
        free = (values for rows, targets in worlds if variable not in targets for values in rows)
        rows = ((tuple(values[u] for u in allowed), values[variable]) for values in free)
        functions[variable] = counting.count_functions(
            rows, allowed, scm_class["max_parents"], partial(checkpoint, f"functions of {variable}")
        )
    return counting.count_dags(
        functions, scm_class["roots"], scm_class["observed"], partial(checkpoint, "sums over DAGs")
    )


def _readings(scm_class: Mapping[str, Any], truth: Mapping[str, Any], do: Mapping[str, int]) -> list[dict[str, int]]:
    """Return the rows of the truth in all contexts."""
    rows = []
    for bits in product((0, 1), repeat=len(scm_class["roots"])):
        values = {root: do.get(root, bit) for root, bit in zip(scm_class["roots"], bits, strict=True)}
        waiting = dict(truth)
        while waiting:
            ready = [v for v, f in waiting.items() if v in do or all(u in values for u in f["parents"])]
            if not ready:
                raise CertificateError("the truth has a cycle")
            for v in ready:
                function = waiting.pop(v)
                table_row = 0 if v in do else sum(values[u] << i for i, u in enumerate(function["parents"]))
                values[v] = do[v] if v in do else int(function["table"][table_row])
        rows.append(values)
    return rows


def _verify_requirement(
    document: Mapping[str, Any],
    row: Mapping[str, Any],
    readings: Sequence[Sequence[Mapping[str, int]]],
    start: Sequence[Mapping[str, int]],
) -> None:
    """Check that each set of a requirement has all candidates that show its pattern, which the start does not show."""
    head, parents = _checked_set(document, row["label"])
    by_pattern: dict[tuple[int, ...], set[int]] = {}
    for world, rows in enumerate(readings):
        if head not in document["candidates"][world]:
            for values in rows:
                by_pattern.setdefault(tuple(values[u] for u in (*parents, head)), set()).add(world)
    at_start = {tuple(values[u] for u in (*parents, head)) for values in start}
    reachable = {*by_pattern, *at_start}
    conflicts = {key[:-1] for key in reachable if {(*key[:-1], 0), (*key[:-1], 1)} <= reachable}
    alternatives = {frozenset(frozenset(worlds) for worlds in parts) for parts in row["alternatives"]}
    set_text = f"{head}({','.join(parents)})"
    if not conflicts:
        needed = {
            f"{set_text} shows {sum(bit << i for i, bit in enumerate(key)):b}": {frozenset({frozenset(worlds)})}
            for key, worlds in by_pattern.items()
            if key not in at_start
        }
        if needed.get(row["label"]) != alternatives:
            raise CertificateError(f"{row['label']}: not all worlds that show the pattern are listed")
        return
    if row["label"] != f"{set_text} conflict":
        raise CertificateError(f"{row['label']}: the values of {set_text} conflict")
    if any((*pattern, 0) in at_start and (*pattern, 1) in at_start for pattern in conflicts):
        raise CertificateError(f"{row['label']}: the start shows the conflict already")
    expected = set()
    for pattern in conflicts:
        keys = [key for key in ((*pattern, 0), (*pattern, 1)) if key not in at_start]
        expected.add(frozenset(frozenset(by_pattern[key]) for key in keys))
    if alternatives != expected:
        raise CertificateError(f"{row['label']}: the alternatives are not those of all conflicts")


def _checked_set(document: Mapping[str, Any], label: str) -> tuple[str, list[str]]:
    """Return variable and parents of a requirement; `CertificateError` if changing this mechanism leaves the class."""
    scm_class = document["class"]
    head, _, parent_text = label.partition("(")
    parents = [u for u in parent_text.partition(")")[0].split(",") if u]
    if head not in scm_class["admissible"] or not set(parents) <= set(scm_class["admissible"][head]):
        raise CertificateError(f"{label}: no parent set of the class")
    if len(set(parents)) != len(parents) or len(parents) > scm_class["max_parents"]:
        raise CertificateError(f"{label}: at most {scm_class['max_parents']} distinct parents")
    if not scm_class["is_ordered"]:
        descendants = {head}
        while more := {v for v, f in document["truth"].items() if descendants & set(f["parents"])} - descendants:
            descendants |= more
        if descendants & set(parents):
            raise CertificateError(f"{label}: a parent descends from the variable")
    return head, parents
