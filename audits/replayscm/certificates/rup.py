"""A forward checker of DRUP proofs: every added clause has to follow by unit propagation, the last one is empty.

Plain Python with watched literals; it shares nothing with the solver that wrote the proof. RUP: Goldberg and Novikov
2003; deletion lines: Heule, Hunt and Wetzler 2013.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence


class ProofError(Exception):
    """A proof line that does not follow, or a proof that does not end in a contradiction."""


def check_refutation(clauses: Iterable[Sequence[int]], proof: Iterable[str]) -> int:
    """Accept a DRUP refutation of the clauses and return the number of its added clauses; `ProofError` otherwise.

    Where unit propagation alone refutes the clauses, the proof is the empty clause, "0"; no lines are no proof.
    """
    propagation = _Propagation()
    for clause in clauses:
        propagation.add(tuple(clause))
    steps = 0
    for number, line in enumerate(proof, 1):
        deletion = line.startswith("d ")
        literals = _literals(line[2:] if deletion else line, number)
        if deletion:
            propagation.delete(literals)
            continue
        steps += 1
        if not propagation.refutes(literals):
            raise ProofError(f"line {number} of the proof does not follow by unit propagation")
        if not literals:
            return steps
        propagation.add(literals)
    raise ProofError("the proof does not end with the empty clause, which is the contradiction")


def _literals(line: str, number: int) -> tuple[int, ...]:
    try:
        values = [int(word) for word in line.split()]
    except ValueError:
        raise ProofError(f"line {number} of the proof is not a clause") from None
    if not values or values[-1] != 0 or 0 in values[:-1]:
        raise ProofError(f"line {number} of the proof does not end in 0")
    return tuple(values[:-1])


class _Propagation:
    """A clause set with unit propagation from assumptions; two watched literals a clause."""

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
        """Forget a clause; units are kept, which only makes the check of later lines easier to pass and stays sound."""
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
            for place in range(2, len(clause)):
                if -clause[place] not in true:
                    clause[1], clause[place] = clause[place], clause[1]
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
