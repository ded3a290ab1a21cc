"""Cross-examination of a count of SCMs by SAT or SMT search, from the evidence alone.

Both encodings are written from docs/semantics.md and share no code with the solvers, with the certificates' plain
recount, or with each other:

sat: the mechanism of V is a Boolean function of all its admissible variables, with a bit for each combination of their
    values. V depends on U iff the bits of two combinations differ that differ in U alone. A sequential counter (C.
    Sinz, 2005) limits the dependences; a total order of the variables excludes cycles. CaDiCaL 1.5.3 (A. Biere) through
    PySAT; a step is a conflict.
smt: the parents of V are a bit vector, its mechanism is an uninterpreted function of the masked row. Each parent has a
    witness, a combination at which flipping it changes the value. A rank for each variable excludes cycles. z3 (L. de
    Moura and N. Bjorner, 2008), which is the extra `smt`; a step is a unit of its resource limit.

A count up to `MAX_LISTED` is proved by listing: each member found is replayed by the reference and excluded, until the
search proves that there is no other. For a larger count the search shows that more than `MAX_LISTED` members exist;
under sat, Ganak (S. Sharma and others, 2019) counts them again if pyganak is installed.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from itertools import combinations, product
from subprocess import TimeoutExpired, run
from typing import Any, NamedTuple, Protocol

from calibrant.audits.claims import EngineName, NotExaminedError, RecountLimitError, Refused, checkpoint
from calibrant.audits.replayscm.certificates.verify import Verification, check_shape
from calibrant.audits.search import MAX_LISTED, MAX_STEPS, CountedSearch
from calibrant.dsl.errors import short_repr
from calibrant.dsl.formulas.text import ALL_OPERATORS, parse
from calibrant.dsl.replayscm.item import Problem, Task
from calibrant.dsl.replayscm.reference import first_mismatch
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.text import plural

ENGINES: tuple[EngineName, ...] = ("sat", "smt")
MAX_DIGITS = 1000  # digits of a count
# admissible variables of a mechanism; sat: 2**11 bits a mechanism, 270,000 clauses a variable; smt: bits of a row
MAX_ADMISSIBLE = {"sat": 11, "smt": 20}
MAX_GANAK_SECONDS = 60
GANAK = """
import json, sys, pyganak
task = json.load(sys.stdin)
counter = pyganak.Counter()
counter.add_clauses(task["clauses"])
counter.set_sampling_set(task["projection"])
print(); print(counter.count())
"""


class Mechanism(NamedTuple):
    """Function of exactly these parents; table[r] is its value in row r, bit i of r the value of parents[i]."""

    parents: tuple[str, ...]
    table: tuple[bool, ...]

    def text(self, roots: Sequence[str]) -> str:
        """Return the disjunction of the rows with value 1, as a mechanism text over and, or, not.

        A constant mentions one of `roots`, since another variable may come later in the order; a literal without any.
        """
        rows = [
            [name if row >> i & 1 else f"(not {name})" for i, name in enumerate(self.parents)]
            for row, value in enumerate(self.table)
            if value
        ]
        if not self.parents:
            if not roots:
                return str(int(self.table[0]))
            return f"({'or' if self.table[0] else 'and'} {roots[0]} (not {roots[0]}))"
        terms = [parts[0] if len(parts) == 1 else f"(and {' '.join(parts)})" for parts in rows]
        return terms[0] if len(terms) == 1 else f"(or {' '.join(terms)})"


class Member(NamedTuple):
    """SCM that fits the evidence: its roots, and the mechanism of every other variable."""

    roots: tuple[str, ...]
    mechanisms: Mapping[str, Mechanism]

    def texts(self, task: Task) -> dict[str, str]:
        """Return the mechanism map, in natural order of the variables."""
        admissible = task.disclosure.admissible_parents
        return {
            v: self.mechanisms[v].text([root for root in self.roots if root in admissible(v)])
            for v in task.variables
            if v in self.mechanisms
        }

    def scm(self, task: Task) -> Scm:
        """Return the SCM of the mechanism map."""
        return Scm(self.roots, {v: parse(text, ALL_OPERATORS) for v, text in self.texts(task).items()})


class Claim(NamedTuple):
    """Claim that is examined: the number of SCMs with at most `max_parents` functional parents.

    possible_roots: variables among which the roots are, if the task hides them
    stated: the only member, if one is claimed
    """

    task: Task
    max_parents: int
    possible_roots: tuple[str, ...]
    num_members: int
    stated: Scm | None = None


class Search(Protocol):
    """Search for one member after another; `steps`: done so far."""

    engine: str
    steps: int

    def find(self) -> Member | None:
        """Return a member that is not excluded, None after exhaustion; `RecountLimitError` out of steps."""
        ...

    def exclude(self, member: Member) -> None: ...


def examine_certificate(document: Mapping[str, Any], problem: Problem, engine: EngineName) -> str:
    """Prove the count of a certificate a second time; return one line on how. Errors are those of `examine`."""
    check_shape(document)
    verification = Verification(document, problem)
    verification.check_subject()
    if verification.max_size is not None:
        raise NotExaminedError(f"{engine} search has no encoding of a cap on formula size")
    count = document["count"]
    if not count.isdecimal() or len(count) > MAX_DIGITS:
        raise Refused(f"its count {short_repr(count)} is no number")
    stated = _stated_member(document, int(count))
    claim = Claim(problem.task, verification.max_parents, verification.possible_roots, int(count), stated)
    return f"{problem.id}: {examine(claim, engine)}"


def _stated_member(document: Mapping[str, Any], num_members: int) -> Scm | None:
    """Return the member that a claim of uniqueness states; None for other counts."""
    if num_members != 1:
        return None
    if "unique" not in document:
        raise Refused("a count of 1 is claimed without the member")
    unique = document["unique"]
    mechanisms = {v: parse(text, ALL_OPERATORS) for v, text in unique["mechanisms"].items()}
    return Scm(tuple(unique["roots"]), mechanisms)


def examine(claim: Claim, engine: EngineName, max_steps: int | None = None) -> str:
    """Prove a claim a second time; return one line on how it was proved.

    `Refused` with a counterexample if it is false, `NotExaminedError` if the engine has no encoding,
    `RecountLimitError` if steps or time ran out.
    """
    widest = max((len(_admissible(claim.task, v)) for v in claim.task.disclosure.endogenous), default=0)
    if widest > MAX_ADMISSIBLE[engine]:
        raise NotExaminedError(
            f"{engine} search is for mechanisms over at most {MAX_ADMISSIBLE[engine]} admissible variables, "
            f"here are {widest}"
        )
    if claim.task.extension is not None:
        raise NotExaminedError(f"{engine} search has no encoding of noise or hidden variables")
    limit = MAX_STEPS[engine] if max_steps is None else max_steps
    search: Search = SatSearch(claim, limit) if engine == "sat" else SmtSearch(claim, limit)
    members: list[Member] = []
    while len(members) <= min(claim.num_members, MAX_LISTED):
        checkpoint(f"{search.engine}: members found", len(members), min(claim.num_members, MAX_LISTED) + 1)
        member = search.find()
        if member is None:
            if len(members) < claim.num_members:
                raise Refused(
                    f"it claims {plural(claim.num_members, 'members')}; {search.engine} finds "
                    f"{plural(len(members), 'members')} and proves that there is no other{_last(members, claim.task)}"
                )
            if claim.stated is not None and not claim.stated.equivalent(members[0].scm(claim.task)):
                raise Refused(f"the only member is another one than it states: {_map(members[0], claim.task)}")
            return f"{plural(claim.num_members, 'members')}, proved again by {search.engine} in {search.steps:,} steps"
        _certify(member, claim)
        members.append(member)
        search.exclude(member)
    if claim.num_members <= MAX_LISTED:
        raise Refused(
            f"it claims {plural(claim.num_members, 'members')}; {search.engine} finds another one: "
            f"{_map(members[-1], claim.task)}"
        )
    return _examine_large(claim, search)


def _examine_large(claim: Claim, search: Search) -> str:
    """Compare a count above MAX_LISTED with Ganak's; `NotExaminedError` without Ganak."""
    num_models = search.count() if isinstance(search, SatSearch) else None
    if num_models is None:
        raise NotExaminedError(
            f"{search.engine} shows more than {MAX_LISTED} members, in {search.steps:,} steps; whether there are "
            f"{claim.num_members:,} it does not count"
        )
    if num_models != claim.num_members:
        raise Refused(
            f"it claims {plural(claim.num_members, 'members')}; Ganak counts {num_models:,} models of the SAT encoding"
        )
    return f"{plural(claim.num_members, 'members')}, counted again by Ganak as models of the SAT encoding"


def _map(member: Member, task: Task) -> str:
    texts = "; ".join(f"{v} = {text}" for v, text in member.texts(task).items())
    return texts if task.disclosure.roots is not None else f"roots {' '.join(member.roots)}; {texts}"


def _last(members: Sequence[Member], task: Task) -> str:
    return f" than {_map(members[-1], task)}" if members else ""


def _certify(member: Member, claim: Claim) -> None:
    """Replay a member by the reference; `AssertionError` if it is none, as then the encoding is wrong."""
    wrong = first_mismatch(member.scm(claim.task), claim.task.training.worlds)
    if wrong is not None or any(len(part.parents) > claim.max_parents for part in member.mechanisms.values()):
        raise AssertionError(f"the encoding gives a model that is no member: {_map(member, claim.task)}")


def _admissible(task: Task, variable: str) -> tuple[str, ...]:
    allowed = task.disclosure.admissible_parents(variable)
    return tuple(v for v in task.variables if v in allowed)


def _free_rows(task: Task, variable: str) -> Iterator[Mapping[str, int]]:
    """Yield the distinct rows in which the variable is not a target."""
    keys = set()
    for world in task.training.worlds:
        if variable not in world.intervention.targets:
            for row in world.rows():
                key = tuple(row.values())
                if key not in keys:
                    keys.add(key)
                    yield row


# --- SAT ------------------------------------------------------------------------------------------------------------


class SatSearch(CountedSearch):
    """Search over whole functions of the admissible variables."""

    engine = "sat (CaDiCaL 1.5.3)"

    def __init__(self, claim: Claim, max_steps: int) -> None:
        from pysat.card import CardEnc
        from pysat.solvers import Cadical153

        super().__init__(max_steps)
        self.claim = claim
        self.clauses: list[list[int]] = []
        self._numbers: dict[tuple[Any, ...], int] = {}
        task = claim.task
        self.endogenous = task.disclosure.endogenous
        self.inputs = {v: _admissible(task, v) for v in self.endogenous}
        for v in self.endogenous:
            self._add_mechanism(v)
        self._add_order()
        for v in self.endogenous:
            literals = [self._depends(v, u) for u in self.inputs[v]]
            if len(literals) > claim.max_parents:
                self._add_cardinality(
                    CardEnc.atmost(literals, claim.max_parents, top_id=len(self._numbers), encoding=1)
                )
        if task.disclosure.roots is None:
            for v in self.endogenous:
                if v not in claim.possible_roots:
                    self.clauses.append([-self._root(v)])
            roots = [self._root(v) for v in self.endogenous]
            num_roots = task.disclosure.num_roots
            self._add_cardinality(CardEnc.equals(roots, num_roots, top_id=len(self._numbers), encoding=1))
        self.solver = Cadical153(bootstrap_with=self.clauses)

    def _number(self, *key: Any) -> int:
        return self._numbers.setdefault(key, len(self._numbers) + 1)

    def _bit(self, v: str, row: int) -> int:
        return self._number("bit", v, row)

    def _depends(self, v: str, u: str) -> int:
        return self._number("depends", v, u)

    def _root(self, v: str) -> int:
        return self._number("root", v)

    def _before(self, u: str, v: str) -> int:
        variables = self.claim.task.variables
        return (
            self._number("before", u, v) if variables.index(u) < variables.index(v) else -self._number("before", v, u)
        )

    def _add_cardinality(self, encoded: Any) -> None:
        """Add a cardinality constraint of PySAT, and register its auxiliary variables."""
        for auxiliary in range(len(self._numbers) + 1, max(encoded.nv, len(self._numbers)) + 1):
            self._number("counter", auxiliary)
        self.clauses.extend(encoded.clauses)

    def _add_mechanism(self, v: str) -> None:
        inputs = self.inputs[v]
        roots_told = self.claim.task.disclosure.roots is not None
        for shown_row in _free_rows(self.claim.task, v):
            bit = self._bit(v, sum(shown_row[u] << i for i, u in enumerate(inputs)))
            self.clauses.append([bit if shown_row[v] else -bit, *([] if roots_told else [self._root(v)])])
        for row in range(1 << len(inputs)):
            bit = self._bit(v, row)
            if not roots_told:  # a root has no mechanism: its bits are fixed, so that it is counted once
                self.clauses.append([-self._root(v), -bit])
            for i, u in enumerate(inputs):
                if not row >> i & 1:
                    flipped = self._bit(v, row | 1 << i)
                    changes = self._number("changes", v, u, row)
                    self.clauses += [
                        [-bit, flipped, changes],
                        [bit, -flipped, changes],
                        [-changes, bit, flipped],
                        [-changes, -bit, -flipped],
                        [-changes, self._depends(v, u)],
                    ]
        for i, u in enumerate(inputs):
            rows = [row for row in range(1 << len(inputs)) if not row >> i & 1]
            self.clauses.append([-self._depends(v, u), *(self._number("changes", v, u, row) for row in rows)])

    def _add_order(self) -> None:
        for v in self.endogenous:
            self.clauses += [[-self._depends(v, u), self._before(u, v)] for u in self.inputs[v]]
        for u, v, w in combinations(self.claim.task.variables, 3):
            self.clauses.append([-self._before(u, v), -self._before(v, w), self._before(u, w)])
            self.clauses.append([self._before(u, v), self._before(v, w), -self._before(u, w)])

    def find(self) -> Member | None:
        if not self.has_solution(self.solver):
            return None
        model = self.solver.get_model()
        roots = self.claim.task.disclosure.roots
        if roots is None:
            roots = tuple(v for v in self.endogenous if model[self._root(v) - 1] > 0)
        mechanisms = {}
        for v in (v for v in self.endogenous if v not in roots):
            parents = tuple(u for u in self.inputs[v] if model[self._depends(v, u) - 1] > 0)
            rows = self._rows(v, parents)
            mechanisms[v] = Mechanism(parents, tuple(model[self._bit(v, row) - 1] > 0 for row in rows))
        return Member(roots, mechanisms)

    def _rows(self, v: str, parents: Sequence[str]) -> list[int]:
        """Return, for each row over the parents, the row over all inputs in which the other inputs are 0."""
        bits = [self.inputs[v].index(u) for u in parents]
        return [sum((row >> i & 1) << bit for i, bit in enumerate(bits)) for row in range(1 << len(parents))]

    def exclude(self, member: Member) -> None:
        clause = []
        if self.claim.task.disclosure.roots is None:
            clause += [-self._root(v) for v in member.roots]
        for v, mechanism in member.mechanisms.items():
            clause += [-self._depends(v, u) if u in mechanism.parents else self._depends(v, u) for u in self.inputs[v]]
            for row, value in zip(self._rows(v, mechanism.parents), mechanism.table, strict=True):
                clause.append(-self._bit(v, row) if value else self._bit(v, row))
        self.solver.add_clause(clause)

    def count(self) -> int | None:
        """Count the models, projected to functions and root sets, by Ganak; None without pyganak.

        In a process of its own, stopped after MAX_GANAK_SECONDS: Ganak has no limit and writes to standard output.
        """
        if find_spec("pyganak") is None:
            return None
        projection = [variable for key, variable in self._numbers.items() if key[0] in ("bit", "root")]
        try:
            done = run(
                [sys.executable, "-c", GANAK],
                input=json.dumps({"clauses": self.clauses, "projection": projection}),
                capture_output=True,
                text=True,
                timeout=MAX_GANAK_SECONDS,
                check=True,
            )
        except TimeoutExpired:
            raise RecountLimitError(f"by Ganak: no count within {MAX_GANAK_SECONDS} seconds") from None
        return int(done.stdout.split()[-1])


# --- SMT ------------------------------------------------------------------------------------------------------------


class _Terms(NamedTuple):
    """z3 terms of one variable: parents as Booleans and as a mask, mechanism, rank, whether it is a root."""

    parents: Mapping[str, Any]
    mask: Any
    function: Any
    rank: Any
    is_root: Any


class SmtSearch(CountedSearch):
    """Search over masks of parents and uninterpreted functions of masked rows."""

    def __init__(self, claim: Claim, max_steps: int) -> None:
        import z3

        super().__init__(max_steps)
        self.z3 = z3
        self.engine = f"smt (z3 {z3.get_version_string()})"
        self.claim = claim
        self.context = z3.Context()
        self.solver = z3.Solver(ctx=self.context)
        task = claim.task
        self.width = len(task.variables)
        self.bit_of = {v: i for i, v in enumerate(task.variables)}
        self.row_sort = z3.BitVecSort(self.width, self.context)
        self.terms = {v: self._new_terms(v) for v in task.disclosure.endogenous}
        for v in self.terms:
            self._constrain(v)
        if task.disclosure.roots is None:
            roots = [(terms.is_root, 1) for terms in self.terms.values()]
            self.solver.add(z3.PbEq(roots, task.disclosure.num_roots))
            for v, terms in self.terms.items():
                if v not in claim.possible_roots:
                    self.solver.add(z3.Not(terms.is_root))

    def _row(self, bits: int) -> Any:
        return self.z3.BitVecVal(bits, self.width, self.context)

    def _new_terms(self, v: str) -> _Terms:
        z3, context = self.z3, self.context
        parents = {u: z3.Bool(f"{u} -> {v}", context) for u in _admissible(self.claim.task, v)}
        mask = self._row(0)
        for u, is_parent in parents.items():
            mask = mask | z3.If(is_parent, self._row(1 << self.bit_of[u]), self._row(0))
        function = z3.Function(f"mechanism of {v}", self.row_sort, z3.BoolSort(context))
        is_root = z3.BoolVal(False, context)
        if self.claim.task.disclosure.roots is None:
            is_root = z3.Bool(f"root {v}", context)
        return _Terms(parents, mask, function, z3.Int(f"rank of {v}", context), is_root)

    def _constrain(self, v: str) -> None:
        z3, terms = self.z3, self.terms[v]
        for row in _free_rows(self.claim.task, v):
            value_of_row = terms.function(terms.mask & self._row(sum(row[u] << i for u, i in self.bit_of.items())))
            self.solver.add(z3.Or(terms.is_root, value_of_row if row[v] else z3.Not(value_of_row)))
        if len(terms.parents) > self.claim.max_parents:
            self.solver.add(z3.PbLe([(is_parent, 1) for is_parent in terms.parents.values()], self.claim.max_parents))
        for u, is_parent in terms.parents.items():
            bit = self._row(1 << self.bit_of[u])
            witness = z3.BitVec(f"witness of {u} -> {v}", self.width, self.context)
            self.solver.add(
                z3.Implies(
                    is_parent,
                    z3.And(
                        z3.Not(terms.is_root),
                        witness & ~terms.mask == 0,
                        terms.function(witness & ~bit) != terms.function(witness | bit),
                    ),
                )
            )
            if u in self.terms:
                self.solver.add(z3.Implies(is_parent, self.terms[u].rank < terms.rank))

    def find(self) -> Member | None:
        model = self.model(self.solver)
        if model is None:
            return None
        roots = self.claim.task.disclosure.roots
        if roots is None:
            roots = tuple(v for v, terms in self.terms.items() if self._holds(model, terms.is_root))
        mechanisms = {}
        for v, terms in self.terms.items():
            if v not in roots:
                parents = tuple(u for u, is_parent in terms.parents.items() if self._holds(model, is_parent))
                values = (self._holds(model, terms.function(row)) for row in self._rows(parents))
                mechanisms[v] = Mechanism(parents, tuple(values))
        return Member(roots, mechanisms)

    def _holds(self, model: Any, term: Any) -> bool:
        return bool(self.z3.is_true(model.eval(term, model_completion=True)))

    def _rows(self, parents: Sequence[str]) -> list[Any]:
        positions = [self.bit_of[u] for u in parents]
        return [
            self._row(sum(bit << position for bit, position in zip(reversed(bits), positions, strict=True)))
            for bits in product((0, 1), repeat=len(parents))
        ]

    def exclude(self, member: Member) -> None:
        z3 = self.z3
        differences = []
        for v, mechanism in member.mechanisms.items():
            terms = self.terms[v]
            differences.append(terms.is_root)
            for u, is_parent in terms.parents.items():
                differences.append(z3.Not(is_parent) if u in mechanism.parents else is_parent)
            for row, value in zip(self._rows(mechanism.parents), mechanism.table, strict=True):
                value_of_row = terms.function(row)
                differences.append(z3.Not(value_of_row) if value else value_of_row)
        self.solver.add(z3.Or(differences))
