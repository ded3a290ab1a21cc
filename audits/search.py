"""SAT and SMT search that proves claims of certificates a second time.

sat: CaDiCaL 1.5.3 (A. Biere) through PySAT; a step is a conflict. smt: z3 (L. de Moura and N. Bjorner, 2008), extra
`smt`; a step is a unit of its resource limit. Weighted sums are encoded for SMT alone. The encodings of claims are in
`cross_examination.py` of each benchmark, written from the definition of its items; they share no code with solvers.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from calibrant.audits.claims import Certificate, EngineName, NotExaminedError, RecountLimitError, checkpoint

MAX_LISTED = 20  # a count is proved by listing its hypotheses, one search each: larger counts are not examined
MAX_STEPS: Mapping[EngineName, int] = {"sat": 2_000_000, "smt": 400_000_000}  # about a minute each
STEPS_BETWEEN_CHECKPOINTS = 20_000  # conflicts; about a second

Key: TypeAlias = tuple[Hashable, ...]
Examiner: TypeAlias = Callable[[Any, Certificate, EngineName], str]
"""(evidence, certificate, engine): one line on how the claim was proved again; `Refused` where it is false."""


class CountedSearch:
    """Search in counted steps; `engine`: name and version; `steps`: done so far, at most `max_steps`."""

    engine: str

    def __init__(self, max_steps: int) -> None:
        self.steps = 0
        self.max_steps = max_steps

    def has_solution(self, solver: Any) -> bool:
        """Solve clauses by a solver of PySAT; `RecountLimitError` out of steps."""
        answer = None
        while answer is None:
            solver.conf_budget(min(self._remaining_steps(), STEPS_BETWEEN_CHECKPOINTS))
            answer = solver.solve_limited()
            self.steps = int(solver.accum_stats()["conflicts"])
            checkpoint(f"{self.engine}: conflicts", self.steps, self.max_steps)
        return bool(answer)

    def model(self, solver: Any) -> Any:
        """Return a solution by a solver of z3, None after exhaustion; `RecountLimitError` out of steps."""
        solver.set("rlimit", self._remaining_steps())
        before = _spent(solver)
        answer = str(solver.check())
        self.steps += max(1, _spent(solver) - before)
        if answer == "unknown":
            raise self._out_of_steps()
        return None if answer == "unsat" else solver.model()

    def _remaining_steps(self) -> int:
        if self.steps >= self.max_steps:
            raise self._out_of_steps()
        return self.max_steps - self.steps

    def _out_of_steps(self) -> RecountLimitError:
        return RecountLimitError(f"by {self.engine}: {self.max_steps:,} steps are over")


def _spent(solver: Any) -> int:
    return next((int(value) for key, value in solver.statistics() if key == "rlimit count"), 0)


class BooleanSearch(CountedSearch):
    """Search over Boolean variables that are named by keys."""

    def __init__(self, engine: EngineName, max_steps: int | None = None) -> None:
        super().__init__(MAX_STEPS[engine] if max_steps is None else max_steps)
        self._keys: dict[Key, int] = {}
        self._terms: list[Any] = []  # z3 term of each variable; variable k is at index k - 1
        if engine == "sat":
            from pysat.solvers import Cadical153

            self.engine = "sat (CaDiCaL 1.5.3)"
            self._sat: Any = Cadical153()
        else:
            import z3

            self.engine = f"smt (z3 {z3.get_version_string()})"
            self._z3: Any = z3
            self._context = z3.Context()
            self._smt: Any = z3.Solver(ctx=self._context)
            self._sat = None

    def literal(self, *key: Hashable) -> int:
        """Return the number of a variable; its negative is the negation."""
        if key not in self._keys:
            self._keys[key] = len(self._keys) + 1
            if self._sat is None:
                self._terms.append(self._z3.Bool(f"x{len(self._keys)}", self._context))
        return self._keys[key]

    def add(self, *clause: int) -> None:
        """Require one of the literals; an empty clause makes the search unsatisfiable."""
        if self._sat is not None:
            self._sat.add_clause(list(clause) if clause else [self.literal("false")])
            if not clause:
                self._sat.add_clause([-self.literal("false")])
        else:
            self._add_terms([self._term(literal) for literal in clause])

    def _add_terms(self, terms: list[Any]) -> None:
        """Require one of the terms by z3's functions in C: `Or` checks types in 9 calls a literal, 70 % of the time."""
        z3, context = self._z3, self._context.ref()
        members = (z3.Ast * len(terms))(*(term.as_ast() for term in terms))
        clause = z3.BoolRef(z3.Z3_mk_or(context, len(terms), members), self._context)
        z3.Z3_solver_assert(context, self._smt.solver, clause.as_ast())

    def add_choice(self, literals: Sequence[int]) -> None:
        """Require exactly one of the literals."""
        self.add(*literals)
        for index, first in enumerate(literals):
            for second in literals[:index]:
                self.add(-first, -second)

    def add_at_most(self, terms: Iterable[tuple[int, int]], limit: int) -> None:
        """Limit the sum of weights of true literals; `terms`: (literal, weight). `NotExaminedError` for SAT."""
        if self._sat is not None:
            raise NotExaminedError("sat search has no encoding of sums of misfits; take smt")
        # weights below 0 are those of the negation, with the limit raised
        pairs = [(self._term(key if weight > 0 else -key), abs(weight)) for key, weight in terms if weight]
        limit += sum(-weight for _, weight in terms if weight < 0)
        if limit < 0:
            self._smt.add(self._false())
        elif pairs:
            self._smt.add(self._z3.PbLe(pairs, limit))

    def find(self) -> frozenset[Key] | None:
        """Return the true variables of some solution, None without one; `RecountLimitError` out of steps."""
        if self._sat is not None:
            return self._find_by_sat()
        model = self._find_model()
        if model is None:
            return None
        return frozenset(key for key, number in self._keys.items() if self._z3.is_true(model.eval(self._term(number))))

    def _find_model(self) -> Any:
        """Return a solution of z3, None after exhaustion."""
        model = self.model(self._smt)
        checkpoint(f"{self.engine}: steps", self.steps, self.max_steps)
        return model

    def _find_by_sat(self) -> frozenset[Key] | None:
        if not self.has_solution(self._sat):
            return None
        true = {number for number in self._sat.get_model() if number > 0}
        return frozenset(key for key, number in self._keys.items() if number in true)

    def _term(self, literal: int) -> Any:
        term = self._terms[abs(literal) - 1]
        if literal > 0:
            return term
        return self._z3.BoolRef(self._z3.Z3_mk_not(self._context.ref(), term.as_ast()), self._context)

    def _false(self) -> Any:
        return self._z3.BoolVal(False, self._context)


class IntegerSearch(BooleanSearch):
    """Search over integers under formulas of linear arithmetic, by SMT alone; `NotExaminedError` for SAT."""

    def __init__(self, engine: EngineName, max_steps: int | None = None) -> None:
        if engine == "sat":
            raise NotExaminedError("sat search has no encoding of equations over integers; take smt")
        super().__init__(engine, max_steps)
        self._integers: dict[Key, Any] = {}

    def integer(self, *key: Hashable) -> Any:
        """Return the z3 term of an integer."""
        if key not in self._integers:
            self._integers[key] = self._z3.Int(f"i{len(self._integers)}", self._context)
        return self._integers[key]

    def multiply(self, factor: Any, value: Any, max_factor: int) -> Any:
        """Return the product of two terms as a linear formula: by cases of `factor`, 0 to `max_factor`."""
        if isinstance(value, int):
            return factor * value
        cases = [self._z3.If(factor == k, k * value, 0) for k in range(1, max_factor + 1)]
        return self._z3.Sum(cases)

    def require(self, *alternatives: Any) -> None:
        """Require one of the formulas."""
        self._smt.add(self._z3.Or(*alternatives) if alternatives else self._false())

    def add_at_most_positive(self, terms: Iterable[Any], limit: int) -> None:
        """Limit how many of the terms are above 0."""
        self._smt.add(self._z3.AtMost(*(term > 0 for term in terms), limit))

    def find_integers(self) -> dict[Key, int] | None:
        """Return the integers of some solution, None if there is none; `RecountLimitError` out of steps."""
        model = self._find_model()
        if model is None:
            return None
        return {key: model.eval(term, model_completion=True).as_long() for key, term in self._integers.items()}


def proved_by(search: BooleanSearch) -> str:
    """Return how a claim was proved: the end of the line about it."""
    return f"proved again by {search.engine} in {search.steps:,} steps"
