"""Independent checks of certificates: their fields, plain counting over rows, and a separate proof checker.

Shares no code with the solvers or with audits.replayscm.certificates.certificate: rows are dictionaries, functions are
counted by direct inclusion and exclusion over frozen sets of names, DAGs by a recurrence over sinks (Robinson 1973,
"Counting labeled acyclic digraphs"), and the CNF of a claim of uniqueness is rebuilt clause by clause. With a cap on
formula size, audits.replayscm.certificates.counting lists the functions anew. Otherwise only dsl is used.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from itertools import combinations, product
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import UNSET, Meta, UnsetType

from calibrant.audits.claims import MAX_REASON_CHARS, RecountLimitError, Refused, checkpoint
from calibrant.audits.replayscm.certificates import counting
from calibrant.dsl.errors import in_one_line, short_repr
from calibrant.dsl.formulas.formula import OPERATORS
from calibrant.dsl.formulas.text import parse
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.replayscm.pools.files import record_from_problem
from calibrant.dsl.replayscm.reference import first_mismatch
from calibrant.dsl.replayscm.scm import LocalFunction, Scm
from calibrant.dsl.replayscm.world import World


class ProofError(Exception):
    """A proof line that does not follow, or a proof that does not end in a contradiction."""


def check_refutation(clauses: Iterable[Sequence[int]], proof: Iterable[str]) -> int:
    """Return the number of clauses that a valid DRUP refutation adds; `ProofError` for an invalid one.

    If unit propagation alone refutes the clauses, the proof is the empty clause, "0"; no lines are no proof.
    """
    propagation = _Propagation()
    for clause in clauses:
        propagation.add(tuple(clause))
    steps = 0
    for line_number, line in enumerate(proof, 1):
        deletion = line.startswith("d ")
        literals = _literals(line[2:] if deletion else line, line_number)
        if deletion:
            propagation.delete(literals)
            continue
        steps += 1
        if not propagation.refutes(literals):
            raise ProofError(f"line {line_number} of the proof does not follow by unit propagation")
        if not literals:
            return steps
        propagation.add(literals)
    raise ProofError("the proof does not end with the empty clause, which is the contradiction")


def _literals(line: str, line_number: int) -> tuple[int, ...]:
    try:
        values = [int(word) for word in line.split()]
    except ValueError:
        raise ProofError(f"line {line_number} of the proof is not a clause") from None
    if not values or values[-1] != 0 or 0 in values[:-1]:
        raise ProofError(f"line {line_number} of the proof does not end in 0")
    return tuple(values[:-1])


class _Propagation:
    """A clause set with unit propagation from assumptions; the first two literals of a clause are watched."""

    def __init__(self) -> None:
        self.watching: dict[int, list[list[int]]] = {}
        self.units: list[int] = []
        self.empty = False
        self.deleted: set[int] = set()
        self.stored: dict[frozenset[int], list[list[int]]] = {}

    def add(self, literals: Sequence[int]) -> None:
        clause = list(dict.fromkeys(literals))
        if not clause:
            self.empty = True
        elif len(clause) == 1:
            self.units.append(clause[0])
        else:
            for literal in clause[:2]:
                self.watching.setdefault(literal, []).append(clause)
            self.stored.setdefault(frozenset(clause), []).append(clause)

    def delete(self, literals: Sequence[int]) -> None:
        """Drop a clause; units are kept, which stays sound: later lines may only pass more easily."""
        copies = self.stored.get(frozenset(literals))
        if copies:
            self.deleted.add(id(copies.pop()))

    def refutes(self, literals: Sequence[int]) -> bool:
        """Return whether the negation of the clause leads to a conflict by unit propagation."""
        if self.empty:
            return True
        true: set[int] = set()
        queue: list[int] = []
        for literal in (*self.units, *(-literal for literal in literals)):
            if -literal in true:
                return True
            if literal not in true:
                true.add(literal)
                queue.append(literal)
        while queue:
            if not self._visit(-queue.pop(), true, queue):
                return True
        return False

    def _visit(self, false: int, true: set[int], queue: list[int]) -> bool:
        """Update the clauses that watch a literal which became false; False on a conflict."""
        still_watching: list[list[int]] = []
        watchers = self.watching.get(false, [])
        for position, clause in enumerate(watchers):
            if id(clause) in self.deleted:
                still_watching.append(clause)
                continue
            if clause[0] == false:
                clause[0], clause[1] = clause[1], clause[0]
            if clause[0] in true:
                still_watching.append(clause)
                continue
            for index in range(2, len(clause)):
                if -clause[index] not in true:
                    clause[1], clause[index] = clause[index], clause[1]
                    self.watching.setdefault(clause[1], []).append(clause)
                    break
            else:
                still_watching.append(clause)
                if -clause[0] in true:
                    self.watching[false] = still_watching + watchers[position + 1 :]
                    return False
                true.add(clause[0])
                queue.append(clause[0])
        self.watching[false] = still_watching
        return True


# --- The fields of a certificate file, as `calibrant schema` describes them -------------------------------------------


class CertifiedClass(msgspec.Struct, forbid_unknown_fields=True):
    """The class that the count is of."""

    max_parents: Annotated[int, Meta(description="most functional parents of a mechanism of the class")]
    max_size: Annotated[int | None, Meta(description="largest formula of a mechanism; null for any")]
    nested_roots: Annotated[
        bool, Meta(description="whether, where roots are hidden, only root sets with nested columns belong to it")
    ]
    in_words: Annotated[str, Meta(description="the class of SCMs, in words")]


class UniqueMember(msgspec.Struct, forbid_unknown_fields=True):
    """The only member, and a refutation of a second one."""

    roots: Annotated[list[str], Meta(description="of the member")]
    mechanisms: Annotated[dict[str, str], Meta(description="variable -> formula")]
    variables: Annotated[
        dict[str, int],
        Meta(
            description="numbers of the propositional variables; `V <- S` selects a parent set, `U < V` says that "
            "U precedes V"
        ),
    ]
    cnf: Annotated[
        list[list[int]], Meta(description="clauses that say that there is a second member, as signed numbers")
    ]
    proof: Annotated[
        list[str],
        Meta(
            description="steps in DRUP, a clause each, ended by 0, with `d` before those that are dropped; the last "
            "is empty"
        ),
    ]


class CertificateFile(msgspec.Struct, forbid_unknown_fields=True, rename={"model_class": "class"}):
    """The claim that so many SCMs of a class fit the training worlds of an item."""

    format: Annotated[str, Meta(description="calibrant-certificate")]
    version: Annotated[int, Meta(description="version of the format")]
    instance: Annotated[str, Meta(description="id of the item, for the reader")]
    evidence: Annotated[str, Meta(description="SHA-256 of all that a solver sees")]
    model_class: Annotated[CertifiedClass, Meta(description="the class")]
    functions: Annotated[
        dict[str, dict[str, str]],
        Meta(description="variable -> functional parents -> functions of exactly these that fit, in decimal"),
    ]
    by_roots: Annotated[dict[str, str], Meta(description="root set -> members with it, in decimal")]
    count: Annotated[str, Meta(description="all members, in decimal")]
    unique: Annotated[UniqueMember | UnsetType, Meta(description="only where there is one")] = UNSET


# --- Independent checks of certificates: plain counting over rows, and a separate proof checker -----------------------
KEYS = {"format", "version", "instance", "evidence", "class", "functions", "by_roots", "count", "unique"}
CLASS_KEYS = {"max_parents", "max_size", "nested_roots", "in_words"}
UNIQUE_KEYS = {"roots", "mechanisms", "variables", "cnf", "proof"}


def verify(document: Mapping[str, Any], problem: Problem) -> str:
    """Return one line that states what was verified; `Refused` with the reason otherwise.

    `RecountLimitError` if a time limit was set and is reached: then nothing is shown.
    """
    try:
        check_shape(document)
        return in_one_line(Verification(document, problem).run())
    except RecountLimitError:
        raise
    except Refused as refusal:
        raise Refused(in_one_line(str(refusal))[:MAX_REASON_CHARS]) from None
    except Exception as error:  # whatever the text breaks: a certificate that cannot be checked does not hold
        reason = f"the certificate is malformed: {type(error).__name__} {error}"
        raise Refused(in_one_line(reason)[:MAX_REASON_CHARS]) from None


def check_shape(document: Mapping[str, Any]) -> None:
    """Check that there are no unknown fields, and the types of version and class; `Refused` otherwise."""
    for part, keys in ((document, KEYS), (document["class"], CLASS_KEYS), (document.get("unique", {}), UNIQUE_KEYS)):
        strange = set(part) - keys
        if strange:
            raise Refused(f"a certificate has no field {short_repr(min(strange, key=str))}")
    if type(document["version"]) is not int:
        raise Refused("its version is not an integer")
    chosen = document["class"]
    if type(chosen["max_parents"]) is not int or type(chosen["nested_roots"]) is not bool:
        raise Refused("its class has a number of parents or a rule for roots that is none")


class Verification:
    """Check of one certificate against one problem; methods raise `Refused` where they differ."""

    def __init__(self, document: Mapping[str, Any], problem: Problem) -> None:
        self.document = document
        self.problem = problem
        self.task = problem.task
        self.max_parents = document["class"]["max_parents"]
        self.max_size = document["class"]["max_size"]
        self.nested = document["class"]["nested_roots"]
        self.stage = ""  # parts recounted so far, for the message of a stopped check
        self.rows = [(row, w.intervention.targets) for w in self.task.training.worlds for row in w.rows()]

    def check_subject(self) -> None:
        """Check the subject of the certificate: instance, evidence, class."""
        if (self.document["format"], self.document["version"]) != ("calibrant-certificate", 2):
            raise Refused("not a certificate of a version that this program checks")
        if self.document["instance"] != self.problem.id:
            raise Refused(f"it is about instance {self.document['instance']}, not {self.problem.id}")
        if self.document["evidence"] != self._digest():
            raise Refused("it is about other evidence: the digest of the training worlds and disclosure differs")
        if not isinstance(self.max_parents, int) or not 1 <= self.max_parents <= 6:
            raise Refused(f"its class has max_parents {self.max_parents!r}, not 1 to 6")
        if self.nested and self.task.disclosure.roots is not None:
            raise Refused("its class has a rule for root sets, but the instance tells the roots")
        max_recounted = counting.MAX_CAP.get(self.max_parents, 0)
        if self.max_size is not None and not (type(self.max_size) is int and 1 <= self.max_size <= max_recounted):
            limit_note = f"with {self.max_parents} parents sizes up to {max_recounted} can be recounted"
            raise Refused(f"its class has formula sizes up to {self.max_size!r}; {limit_note}")
        msgspec.convert(self.document, CertificateFile, strict=True)  # the rest is compared, as texts and numbers

    def run(self) -> str:
        """Check everything; return one line that states the count and its class."""
        self.check_subject()
        functions = self._recount_functions()
        by_roots = self._recount_dags(functions)
        count = sum(by_roots.values())
        if self.document["count"] != str(count):
            raise Refused(f"it claims {self.document['count']} members; plain counting finds {count}")
        if (count == 1) != ("unique" in self.document):
            raise Refused("a claim of uniqueness belongs to a count of 1, and only to that")
        if count == 1:
            self._check_unique(functions, next(iter(by_roots)))
        if self.document["class"]["in_words"] != self._in_words():
            raise Refused(
                f"its class is called {short_repr(self.document['class']['in_words'])}, but is: {self._in_words()}"
            )
        return f"{self.problem.id}: {count} members ({self._in_words()})"

    def _recount_functions(self) -> dict[str, dict[counting.Names, int]]:
        """Count the functions of every variable and parent set; a wrong one is refused before the next is counted."""
        variables = [v for v in self.task.variables if self._may_be_endogenous(v)]
        if set(self.document["functions"]) - set(variables):
            raise Refused("it counts functions of a variable that cannot be endogenous")
        functions = {}
        for index, variable in enumerate(variables):
            self.stage = (
                f"recounted: functions of {index} of {len(variables)} variables; "
                "not recounted: functions of the others, sums over DAGs, the count"
            )
            functions[variable] = self._functions(variable)
            self._compare_functions(variable, functions[variable])
        return functions

    def _recount_dags(self, functions: Mapping[str, Mapping[counting.Names, int]]) -> dict[tuple[str, ...], int]:
        by_roots = {}
        root_sets = self._root_sets
        for index, roots in enumerate(root_sets):
            self.stage = (
                f"recounted: functions of all {len(functions)} variables, sums over DAGs for {index} of "
                f"{len(root_sets)} root sets; not recounted: the other sums, the count"
            )
            try:
                by_roots[roots] = counting.count_dags(functions, roots, self.task.variables, self._report_progress)
            except counting.LargeGroupError as error:
                raise RecountLimitError(f"here: {self.stage}; {error}") from None
        by_roots = {roots: count for roots, count in by_roots.items() if count}
        self._compare("by_roots", {" ".join(roots): str(count) for roots, count in by_roots.items()})
        return by_roots

    def _report_progress(self, done: int, total: int) -> None:
        checkpoint(self.stage, done, total)

    def _digest(self) -> str:
        record = msgspec.to_builtins(record_from_problem(self.problem))
        for key in ("id", "sealed", "results"):
            record.pop(key, None)
        for world in record["training"]:
            world.pop("environment", None)
        return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()

    def _in_words(self) -> str:
        size = "any formula size" if self.max_size is None else f"formula size <= {self.max_size}"
        operators = self.task.grammar.operators
        if self.max_size is None and not _is_complete(operators, constants=self.task.grammar.allow_constants):
            size = f"any function, whether or not {' '.join(operators)} can express it"
        if self.max_size is not None and "if" in operators:
            size += f" over {' '.join(name for name in operators if name != 'if')}"
        nested = ", roots with nested columns" if self.nested and self.task.disclosure.roots is None else ""
        return f"functional parents <= {self.max_parents}, {size}, {self.task.disclosure.label}{nested}"

    def _may_be_endogenous(self, variable: str) -> bool:
        return any(variable not in roots for roots in self._root_sets)

    @cached_property
    def _root_sets(self) -> list[tuple[str, ...]]:
        disclosure = self.task.disclosure
        if disclosure.roots is not None:
            return [disclosure.roots]
        return list(combinations(self.possible_roots, disclosure.num_roots))

    @property
    def possible_roots(self) -> tuple[str, ...]:
        """The variables that the class admits as roots, if the task hides them."""
        return tuple(v for v in self.task.variables if not self.nested or self._has_nested_columns(v))

    def _has_nested_columns(self, variable: str) -> bool:
        """Return whether the sets of units with value 1, in worlds that do not target the variable, form a chain."""
        sets = []
        for world in self.task.training.worlds:
            if variable not in world.intervention.targets and not _cyclic(world):
                rows = dict(zip(world.units, world.rows(), strict=True))
                sets.append(({u for u, row in rows.items() if row[variable]}, set(rows)))
        return all(
            a & shared <= b or b & shared <= a
            for (a, a_units), (b, b_units) in combinations(sets, 2)
            for shared in [a_units & b_units]
        )

    def _functions(self, variable: str) -> dict[counting.Names, int]:
        """Count, by parent set, the functions of exactly these parents that agree with every untargeted row."""
        allowed = sorted(self.task.disclosure.admissible_parents(variable))
        free = [row for row, targets in self.rows if variable not in targets]
        rows = [(tuple(row[u] for u in allowed), row[variable]) for row in free]
        if self.max_size is None:
            return counting.count_functions(rows, allowed, self.max_parents, self._report_progress)
        exactly: dict[counting.Names, int] = {}
        sizes = range(min(self.max_parents, len(allowed)) + 1)
        parent_sets = [chosen for size in sizes for chosen in combinations(allowed, size)]
        for index, chosen in enumerate(parent_sets):
            self._report_progress(index, len(parent_sets))
            observed, fits = counting.observe(rows, [allowed.index(u) for u in chosen])
            if fits and (num_small := self._count_small(len(chosen), observed)):
                exactly[frozenset(chosen)] = num_small
        return exactly

    def _count_small(self, num_parents: int, observed: Mapping[tuple[int, ...], int]) -> int:
        """Count the functions of exactly `num_parents` that agree with `observed`, with formulas within the cap."""
        grammar, operators = self.task.grammar, frozenset(self.task.grammar.operators)
        if num_parents == 0:
            sizes = counting.least_sizes(1, self.max_size, operators)
            constant_sizes = {bit: 1 if grammar.allow_constants else sizes.get(3 * bit) for bit in (0, 1)}
            return sum(
                size is not None and size <= self.max_size and observed.get((), bit) == bit
                for bit, size in constant_sizes.items()
            )
        row_of = {values: sum(bit << i for i, bit in enumerate(values)) for values in observed}
        care = sum(1 << row for row in row_of.values())
        value = sum(observed[values] << row for values, row in row_of.items())
        functions = counting.essential_functions(num_parents, self.max_size, operators)
        return int(np.count_nonzero(functions & np.uint64(care) == np.uint64(value)))

    def _within_cap(self, local: LocalFunction) -> bool:
        if not local.parents:
            return bool(self._count_small(0, {(): int(bool(local.table.bits))}))
        sizes = counting.least_sizes(len(local.parents), self.max_size, self.task.grammar.operators)
        return int(local.table.bits) in sizes

    def _compare_functions(self, variable: str, counts: Mapping[counting.Names, int]) -> None:
        order = self.task.variables.index
        recounted = {" ".join(sorted(parents, key=order)): str(count) for parents, count in counts.items()}
        claimed = self.document["functions"].get(variable)
        if claimed is None:
            raise Refused(f"it has no functions of {variable}")
        for parents in sorted(recounted.keys() | claimed.keys()):
            if recounted.get(parents) != claimed.get(parents):
                raise Refused(
                    f"functions of {variable} over ({parents}): it claims {claimed.get(parents, 'none')}, "
                    f"plain counting finds {recounted.get(parents, 'none')}"
                )

    def _compare(self, key: str, recounted: Mapping[str, str]) -> None:
        claimed = self.document[key]
        for part in sorted(recounted.keys() | claimed.keys()):
            if recounted.get(part) != claimed.get(part):
                value = recounted.get(part, "none")
                raise Refused(f"{key} ({part}): it claims {claimed.get(part, 'none')}, plain counting finds {value}")

    def _check_unique(self, functions: Mapping[str, Mapping[counting.Names, int]], roots: tuple[str, ...]) -> None:
        claim = self.document["unique"]
        if tuple(claim["roots"]) != roots:
            raise Refused("the unique member has other roots than the count")
        mechanisms = {v: parse(text, self.task.grammar) for v, text in claim["mechanisms"].items()}
        violation = self.task.disclosure.given_roots(roots).violation(mechanisms)
        if violation:
            raise Refused(f"the unique member is not legal: {violation.reason}")
        model = Scm(roots, mechanisms)
        wrong = first_mismatch(model, self.task.training.worlds)
        if wrong:
            raise Refused(f"the unique member does not replay row {wrong.row} of {wrong.world}")
        parents = {v: frozenset(local.parents) for v, local in model.local_functions.items()}
        if any(functions[v].get(parent_set) != 1 for v, parent_set in parents.items()):
            raise Refused("a parent set of the unique member has not exactly one function")
        for variable, local in model.local_functions.items():
            if self.max_size is not None and not self._within_cap(local):
                raise Refused(f"the unique member's {variable} has no formula of at most {self.max_size} nodes")
        numbered = claim["variables"]
        rebuilt = Counter(frozenset(clause) for clause in _second_member(functions, parents, roots, numbered))
        if Counter(map(frozenset, claim["cnf"])) != rebuilt:
            raise Refused("its CNF does not encode that a second member exists")
        if set(numbered.values()) != {abs(literal) for clause in rebuilt for literal in clause}:
            raise Refused("its CNF has a variable that no clause mentions")
        self.stage = "recounted: all counts; not recounted: the proof of uniqueness"
        try:
            check_refutation(claim["cnf"], self._proof_lines(claim["proof"]))
        except ProofError as error:
            raise Refused(str(error)) from None

    def _proof_lines(self, proof: Sequence[str]) -> Iterator[str]:
        for index, line in enumerate(proof):
            self._report_progress(index, len(proof))
            yield line


@cache
def _is_complete(names: tuple[str, ...], *, constants: bool) -> bool:
    """Return whether the operators express every function, by Post's criterion (1941) on tables of up to 3 arguments.

    They do iff some operator lies outside each of the five closed classes: functions that preserve 0, preserve 1, are
    monotone, affine, self-dual.
    """
    tables: list[tuple[int, Callable[[Sequence[bool]], bool]]] = []
    for operator in (OPERATORS[name] for name in names):
        max_arity = 3 if operator.max_arity is None else operator.max_arity
        tables += [(arity, operator.truth) for arity in range(operator.min_arity, max_arity + 1)]
    if constants:
        tables += [(0, lambda arguments: False), (0, lambda arguments: True)]
    leaves_class = [False] * 5  # whether some operator is outside of each class
    for arity, truth in tables:
        rows = list(product((False, True), repeat=arity))
        value = {row: bool(truth(row)) for row in rows}
        all_zeros, all_ones = rows[0], rows[-1]
        pairs = list(product(rows, repeat=2))
        leaves_class[0] |= value[all_zeros]
        leaves_class[1] |= not value[all_ones]
        leaves_class[2] |= any(value[a] > value[b] for a, b in pairs if all(x <= y for x, y in zip(a, b, strict=True)))
        leaves_class[3] |= any(
            value[tuple(x != y for x, y in zip(a, b, strict=True))] ^ value[a] ^ value[b] ^ value[all_zeros]
            for a, b in pairs
        )
        leaves_class[4] |= any(value[row] == value[tuple(not x for x in row)] for row in rows)
    return all(leaves_class)


def _cyclic(world: World) -> bool:
    """Return whether the rows repeat with a period of at most half their number, as in published `train_aug_*`."""
    rows = [tuple(row.values()) for row in world.rows()]
    return any(rows == (rows[:period] * len(rows))[: len(rows)] for period in range(1, len(rows) // 2 + 1))


def _second_member(
    functions: Mapping[str, Mapping[counting.Names, int]],
    parents: Mapping[str, counting.Names],
    roots: Sequence[str],
    numbered: Mapping[str, int],
) -> Iterator[list[int]]:
    """Yield the rebuilt clauses: a parent set each, parents precede, precedence is a total order, not the member.

    parents: of the stated member; numbered: name of a propositional variable -> number, as stated
    """
    variables = [name for name in numbered if " <- " in name or name.endswith(" <-")]
    if len(set(numbered.values())) != len(numbered) or not all(type(n) is int and n > 0 for n in numbered.values()):
        raise Refused("its CNF variables are not numbered one to one")
    selectors: dict[tuple[str, counting.Names], int] = {}
    for name in variables:
        child, _, parent_names = name.partition(" <-")
        selectors[child, frozenset(parent_names.split())] = numbered[name]
    before = _precedence(numbered)
    available = set(roots) | set(parents)
    for child in parents:
        parent_sets = [parent_set for parent_set in functions[child] if parent_set <= available]
        yield [selectors[child, parent_set] for parent_set in parent_sets]
        for parent_set in parent_sets:
            for parent in parent_set & set(parents):
                yield [-selectors[child, parent_set], before(parent, child)]
    for u, v, w in combinations(list(parents), 3):
        yield [-before(u, v), -before(v, w), before(u, w)]
        yield [before(u, v), before(v, w), -before(u, w)]
    yield [-selectors[child, parent_set] for child, parent_set in parents.items()]


def _precedence(numbered: Mapping[str, int]) -> Callable[[str, str], int]:
    """Return a function (u, v) -> literal "u precedes v"; only one of u < v and v < u is a variable."""

    def before(u: str, v: str) -> int:
        direct = numbered.get(f"{u} < {v}")
        return direct if direct is not None else -numbered[f"{v} < {u}"]

    return before
