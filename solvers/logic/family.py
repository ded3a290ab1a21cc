"""The family of near-optimal logic models (its members), counted exactly: shares, samples, lists and predictions."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from importlib import import_module
from itertools import product
from math import prod
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from calibrant.dsl.errors import require_extra
from calibrant.dsl.logic import reference
from calibrant.dsl.logic.files.midas import candidate_experiments
from calibrant.dsl.logic.files.networks import ListedModel
from calibrant.dsl.logic.item import (
    Clause,
    Edge,
    Experiment,
    LogicError,
    Model,
    Task,
    Tolerance,
    fit_limit,
    model_size,
    model_texts,
    parse_clause,
)
from calibrant.dsl.logic.score import Table
from calibrant.dsl.networks.network import Network
from calibrant.dsl.pictures import MAX_PICTURE_ROWS, Picture, Pictured, PictureEdge
from calibrant.dsl.text import plural
from calibrant.solvers.logic import sums as logic_sums
from calibrant.solvers.logic.comparison import (
    Comparison,
    Judgement,
    compare_models,
    errors_by_readout,
    judge_network,
    mean_squared_error,
)
from calibrant.solvers.logic.elimination.lattice import SIZE_BASE, Lattice, LatticeLimitError
from calibrant.solvers.logic.search import USUAL_LIMITS, Limits, class_lattice, lattice_within, search
from calibrant.solvers.outcome import BestSoFar, Found, OutOfBudget
from calibrant.solvers.space import space_repr


def solve_family(task: Task, limits: Limits = USUAL_LIMITS) -> Found[LogicFamily] | OutOfBudget:
    """Return the family of a task; `OutOfBudget` with the limit that was reached, and bounds if there are any."""
    outcome = search(task, limits)
    if not isinstance(outcome, Found):
        return outcome
    result = outcome.value
    size, fit = task.tolerance.size, task.tolerance.fit
    return Found(
        LogicFamily(
            task,
            result.lattice,
            (result.misfit, result.size),
            result.witness,
            fit_limit(result.misfit, fit),
            None if size is None else result.size + size,
            limits=limits,
        )
    )


def solve_class(task: Task, limits: Limits = USUAL_LIMITS) -> Found[LogicFamily] | OutOfBudget:
    """Return all models of the class as a family, without the data."""
    bare = task.without_data()
    try:
        lattice = class_lattice(bare, limits)
    except LatticeLimitError as error:
        return OutOfBudget(str(error))
    return Found(LogicFamily(bare, lattice, (0, 0), frozenset(), None, None, limits=limits))


@dataclass(frozen=True, eq=False)
class LogicFamily(Pictured):
    """Models of a task within its tolerances that also satisfy a restriction and reproduce further readings.

    lattice: partial models, state by state; None if there is no member
    optimum: (least misfit, least size at that misfit) of the whole family; witness: a model that has both
    misfit_limit, size_limit: upper limits of members, None for no limit
    readings: experiments with the required answers of all readouts; restriction: clauses that members have or lack
    """

    task: Task
    lattice: Lattice | None
    optimum: tuple[int, int]
    witness: Model
    misfit_limit: int | None
    size_limit: int | None
    readings: tuple[tuple[Experiment, str], ...] = ()
    restriction: logic_sums.Restriction = logic_sums.NO_RESTRICTION
    limits: Limits = field(default=USUAL_LIMITS, repr=False)

    def __repr__(self) -> str:
        return space_repr(self)

    def picture(self) -> Picture:
        """Return the union of the members: an edge that every member has is "good", any other "open"."""
        edges = self.edges() if self.lattice is not None else {}
        clauses = sorted(self.clauses().items(), key=lambda entry: (-entry[1], str(entry[0]))) if edges else []
        shares = [(str(clause), f"{count / self.count:.3f}") for clause, count in clauses]
        nodes = sorted({name for edge in self.task.edges for name in (edge.source, edge.target)})
        return Picture(
            f"Family of {plural(self.count, 'logic models')}",
            (self.in_words, f"least misfit {self.optimum[0]} and size {self.optimum[1]}"),
            nodes=dict.fromkeys(nodes, ""),
            edges=tuple(
                PictureEdge(edge.source, edge.target, "good" if count == self.count else "open")
                for edge, count in sorted(edges.items())
            ),
            caption="Share of the models that have a clause",
            columns=("clause", "share"),
            rows=tuple(shares[:MAX_PICTURE_ROWS]),
            num_rows=len(shares),
        )

    @property
    def in_words(self) -> str:
        """The class in words, for claims about the family."""
        misfit = "any misfit" if self.misfit_limit is None else f"misfit at most {self.misfit_limit}"
        size = "any size" if self.size_limit is None else f"size at most {self.size_limit}"
        clause = self.task.options.max_clause
        parts = [
            f"acyclic logic models over {len(self.task.edges)} {'merged ' if self.task.options.compress else ''}edges",
            f"clauses of at most {clause} literals" if clause else "clauses of any length",
            misfit,
            size,
        ]
        if self.readings:
            parts.append(f"{len(self.readings)} readings")
        return ", ".join(parts + self.restriction.words())

    # --- Numbers of members ----------------------------------------------------------------------------------------

    @cached_property
    def _multiplicities(self) -> list[int]:
        assert self.lattice is not None
        return self.restriction.multiplicities(self.lattice)

    def _sums(self, *, with_misfit: bool, with_size: bool, only: int | None = None) -> logic_sums.PathSums:
        assert self.lattice is not None
        return logic_sums.PathSums(
            self.lattice,
            self._multiplicities,
            self.size_limit,
            with_misfit=with_misfit,
            with_size=with_size,
            only=only,
        )

    @cached_property
    def _plain_sums(self) -> logic_sums.PathSums:
        """Sums whose keys have only the components (misfit, size) with a limit."""
        return self._sums(with_misfit=self.misfit_limit is not None, with_size=self.size_limit is not None)

    @cached_property
    def count(self) -> int:
        """Exact number of members."""
        return 0 if self.lattice is None else self._plain_sums.count

    @cached_property
    def spectrum(self) -> Mapping[tuple[int, int], int]:
        """(misfit, size) -> number of members, ascending."""
        if self.lattice is None:
            return {}
        # the keys of the count lack a component without a limit: then the spectrum needs sums of its own
        if self.misfit_limit is not None and self.size_limit is not None:
            ends = self._plain_sums.ends
        else:
            ends = self._sums(with_misfit=True, with_size=True).ends
        constant = self.lattice.columns.constant
        return {(key // SIZE_BASE + constant, key % SIZE_BASE): count for key, count in sorted(ends.items()) if count}

    @property
    def num_states(self) -> int:
        """Number of states of the lattice; each is on the path of some model within the misfit limit."""
        return 0 if self.lattice is None else self.lattice.num_states

    # --- Clauses and edges -----------------------------------------------------------------------------------------

    @cached_property
    def _marginals(self) -> logic_sums.Marginals:
        if self.lattice is None:
            return logic_sums.Marginals({}, {})
        return self.restriction.marginals(self.lattice, self._plain_sums)

    def clauses(self) -> Mapping[Clause, int]:
        """Return clause -> number of members that have it; clauses of no member are left out."""
        return self._marginals.clauses

    def edges(self) -> Mapping[Edge, int]:
        """Return edge -> number of members that use it in a clause; edges of no member are left out."""
        return self._marginals.edges

    def never(self) -> list[Edge]:
        """Return the edges of the class that no member uses, sorted."""
        return sorted(set(self.task.edges) - self.edges().keys())

    def always(self) -> list[Clause]:
        """Return the clauses that every member has."""
        return [clause for clause, count in self.clauses().items() if count == self.count]

    def open_clauses(self) -> list[Clause]:
        """Return the clauses that some members have and some lack."""
        return [clause for clause, count in self.clauses().items() if count < self.count]

    def pairs(self) -> tuple[list[tuple[Clause, Clause]], list[tuple[Clause, Clause]]]:
        """Return the exclusive pairs of open clauses (every member has just one) and the inclusive ones (both or none).

        Each pair and each list is sorted by text.
        """
        counts = self.clauses()
        candidates = sorted(self.open_clauses(), key=str)
        exclusive, inclusive = [], []
        for i, first in enumerate(candidates):
            others = candidates[i + 1 :]
            # "exactly one" needs |A| + |B| = N, "both or neither" needs |A| = |B|: joint counts, which take a pass over
            # the lattice, are computed only for such pairs
            opposed = [second for second in others if counts[first] + counts[second] == self.count]
            alike = [second for second in others if counts[first] == counts[second]]
            if not opposed and not alike:
                continue
            joint = self.condition(first).clauses()
            exclusive += [(first, second) for second in opposed if not joint.get(second)]
            inclusive += [(first, second) for second in alike if joint.get(second) == counts[first]]
        return exclusive, inclusive

    def condition(self, clause: Clause | str, *, present: bool = True) -> LogicFamily:
        """Return the members that have a clause, or lack it; `LogicError` for a clause outside of the class."""
        chosen = parse_clause(clause) if isinstance(clause, str) else clause
        rule = reference.class_violation([chosen], self.task)
        if rule == reference.UNKNOWN:
            raise LogicError(self.task.outside_class(chosen))
        return replace(self, restriction=self.restriction.adding(chosen, present=present))

    # --- Members ---------------------------------------------------------------------------------------------------

    def fits(self, member: Model) -> bool:
        """Return whether a set of clauses is a member, by the reference."""
        if reference.class_violation(member, self.task) or not self.restriction.admits(member):
            return False
        if self.misfit_limit is not None and reference.misfit(member, self.task) > self.misfit_limit:
            return False
        if self.size_limit is not None and model_size(member) > self.size_limit:
            return False
        return all(
            reference.predict(member, self.task.setup, experiment) == answers for experiment, answers in self.readings
        )

    def judge(self, network: Network) -> Judgement:
        """Return whether a network of a published file is a member, or the first reason why not."""
        optimal = solve_family(replace(self.task, tolerance=Tolerance("0", 0)), self.limits)
        answers = None
        if isinstance(optimal, Found):
            with suppress(LatticeLimitError):  # too many predictions to list
                answers = optimal.value.predict(self.task.experiments).outcomes
        return judge_network(self.task, network, (self.misfit_limit, self.size_limit), answers)

    def draw(self, rng: np.random.Generator, n: int) -> list[Model]:
        """Return n members, drawn uniformly with replacement; `ValueError` if there is none."""
        if not self.count:
            raise ValueError("the family has no member to draw")
        return [self._draw(self._plain_sums, rng) for _ in range(n)]

    def sample(self, rng: np.random.Generator, n: int) -> Sequence[Model]:
        """Return n members, drawn uniformly with replacement; see `draw`."""
        return self.draw(rng, n)

    def draw_sized(self, size: int, rng: np.random.Generator, n: int) -> list[Model]:
        """Draw n members of one size uniformly; `ValueError` without any, or if the family has a misfit limit."""
        if self.misfit_limit is not None:
            raise ValueError("members of one size are drawn from families without a limit of the misfit")
        sums = self._sums(with_misfit=False, with_size=True, only=size)
        if not sums.count:
            raise ValueError(f"the family has no member of size {size} to draw")
        return [self._draw(sums, rng) for _ in range(n)]

    def _draw(self, sums: logic_sums.PathSums, rng: np.random.Generator) -> Model:
        assert self.lattice is not None
        clauses: set[Clause] = set()
        for group in sums.draw_groups(lambda number: _below(rng, number)):
            formulas = self.restriction.formulas(self.lattice, group)
            clauses.update(self.lattice.formula(group, formulas[_below(rng, len(formulas))]))
        return frozenset(clauses)

    def models(self) -> Iterator[Model]:
        """Yield every member once, by ascending (misfit, size); the order within a pair is fixed."""
        if self.lattice is None:
            return
        constant = self.lattice.columns.constant
        # sums for each (misfit, size), so that the depth-first walk visits only paths that end there
        for misfit, size in self.spectrum:
            sums = self._sums(with_misfit=True, with_size=True, only=(misfit - constant) * SIZE_BASE + size)
            for groups in sums.paths():
                yield from self._members(groups)

    def _members(self, groups: Sequence[int]) -> Iterator[Model]:
        lattice = self.lattice
        assert lattice is not None
        choices = [
            [tuple(lattice.formula(group, formula)) for formula in self.restriction.formulas(lattice, group)]
            for group in groups
        ]
        # fast path: most groups have one formula
        if prod(map(len, choices)) == 1:
            yield frozenset(clause for ((clauses),) in choices for clause in clauses)
            return
        for chosen in product(*choices):
            yield frozenset(clause for clauses in chosen for clause in clauses)

    # --- Experiments -----------------------------------------------------------------------------------------------

    def predict(self, experiments: Sequence[Experiment]) -> logic_sums.Predictions:
        """Count, for each experiment, the members by their answers of all readouts.

        `LatticeLimitError` if a single experiment has too many combinations of answers and states.
        """
        if self.lattice is None:
            return logic_sums.Predictions(tuple(experiments), tuple({} for _ in experiments), 0, {})
        return logic_sums.predict_outcomes(self.task, self.lattice, self._plain_sums, self.restriction, experiments)

    def best_next(
        self, candidates: Sequence[Experiment] | None = None, *, max_stimuli: int = 2, max_inhibitors: int = 1
    ) -> logic_sums.NextExperiment | None:
        """Return the candidate of least expected share of members left, the first in a tie; None without any.

        candidates: experiments, measured ones allowed; None for all new ones with at most `max_stimuli` stimuli and
            `max_inhibitors` inhibitors
        """
        if candidates is not None:
            return logic_sums.choose_next(self.task, self.predict(candidates), range(len(candidates)))
        tried = candidate_experiments(self.task.setup, max_stimuli=max_stimuli, max_inhibitors=max_inhibitors)
        predictions = self.predict(tried)
        return logic_sums.choose_next(self.task, predictions, logic_sums.rank_new(self.task, predictions))

    def outcomes(self, experiment: Experiment) -> Mapping[str, int]:
        """Count the members by their answers of all readouts."""
        return self.predict([experiment]).outcomes[0]

    def verdicts(self) -> Mapping[tuple[str, ...], int]:
        """Count the members by their table of answers to the task's questions."""
        tables = self.predict(self.task.questions).tables
        if tables is None:
            raise LatticeLimitError("too many different tables of answers to the questions")
        return tables

    def after(self, experiment: Experiment, reading: str) -> LogicFamily:
        """Return the members that have this reading, the answers of all readouts as a text of 0 and 1.

        `LogicError` for a malformed reading; `LatticeLimitError` if the budget runs out.
        """
        if len(reading) != len(self.task.setup.readouts) or set(reading) - {"0", "1"}:
            raise LogicError(f"a reading has {len(self.task.setup.readouts)} digits of 0 and 1, in order of readouts")
        readings = (*self.readings, (experiment, reading))
        lattice = None
        if self.lattice is not None:
            # a new lattice, since the reading is a new column, which splits groups that the old columns merged
            lattice = lattice_within(self.task, self.misfit_limit, readings, self.limits)
        return replace(self, lattice=lattice, readings=readings)

    # --- Exports ---------------------------------------------------------------------------------------------------

    def to_networkx(self) -> Any:
        """Return the union of all members as a networkx `DiGraph`, for GraphML and DOT.

        Nodes have a `kind` (stimulus, node, gate); edges have `sign` and `share`, the share of members. A clause of
        several literals is a gate. `MissingExtraError` without networkx.
        """
        require_extra("graphs", "networkx")
        networkx = import_module("networkx")
        graph = networkx.DiGraph()
        stimuli = set(self.task.setup.stimuli)
        for clause, count in self.clauses().items():
            share = count / self.count
            gate = clause.target
            graph.add_node(clause.target, kind="node")
            if len(clause.literals) > 1:
                gate = f"gate {clause}"
                graph.add_node(gate, kind="gate")
                graph.add_edge(gate, clause.target, sign=1, share=share)
            for source, sign in clause.literals:
                graph.add_node(source, kind="stimulus" if source in stimuli else "node")
                if graph.has_edge(source, gate):  # edges of both signs, each a clause of its own
                    gate = f"gate {clause}"
                    graph.add_node(gate, kind="gate")
                    graph.add_edge(gate, clause.target, sign=1, share=share)
                graph.add_edge(source, gate, sign=sign, share=share)
        return graph

    def compare(self, models: Sequence[ListedModel | Model]) -> Comparison:
        """Compare a list of models with the family."""
        listed = [model if isinstance(model, ListedModel) else ListedModel(model) for model in models]
        return compare_models(self, listed)


# `given` is the public name of `condition`
LogicFamily.given = LogicFamily.condition  # type: ignore[attr-defined]


def first_member(family: LogicFamily) -> Model | None:
    """Return a member of the least misfit and size, None if there is none."""
    return next(family.models(), None)


def _below(rng: np.random.Generator, bound: int) -> int:
    """Return a uniformly random integer from 0 to `bound` - 1, of any size."""
    # numpy draws at most 64 bits, and families exceed them (3.3e21 models of ExtLiver). Values of `bound` or more, less
    # than half of all, are rejected, so that the others stay uniform
    bits = (bound - 1).bit_length()
    if not bits:
        return 0
    while True:
        value = int.from_bytes(rng.bytes((bits + 7) // 8), "big") >> (-bits % 8)
        if value < bound:
            return value


__all__ = ["BestSoFar", "LogicFamily", "first_member", "solve_family"]


# --- Families as tables, as one record, and as the union network of their members -------------------------------------


def spectrum_csv(family: LogicFamily) -> str:
    """Return the spectrum as CSV: misfit, size, members."""
    return _csv(("misfit", "size", "members"), ((*point, count) for point, count in family.spectrum.items()))


def marginals_csv(family: LogicFamily) -> str:
    """Return the numbers and shares of members by clause and edge as CSV; clauses of no member are left out."""
    rows: list[tuple[object, ...]] = []
    for kind, counts in (("clause", family.clauses()), ("edge", family.edges())):
        for part, count in counts.items():
            status = "always" if count == family.count else "open"
            rows.append((kind, part, count, f"{count / family.count:.6g}", status))
    rows += [("edge", edge, 0, "0", "never") for edge in family.never()]
    return _csv(("kind", "part", "members", "share", "status"), rows)


def predictions_csv(family: LogicFamily, predictions: logic_sums.Predictions) -> str:
    """Return the share of members that answer 1 as CSV: one row per experiment, one column per readout."""
    setup = family.task.setup
    rows = [
        (experiment.text(setup), *(f"{float(share):.6g}" for share in predictions.shares(index)))
        for index, experiment in enumerate(predictions.experiments)
    ]
    return _csv(("experiment", *setup.readouts), rows)


class MeasuredCell(NamedTuple):
    """A measured value with its predictions.

    number: number of the experiment, from 1; time: None if the data have none
    value: as measured, or scaled by the data's normalisation; integer: discretised value
    predicted: prediction of the witness; share: share of members that predict 1
    """

    number: int
    experiment: str
    time: float | None
    readout: str
    value: float
    integer: int
    predicted: int
    share: float

    @property
    def square(self) -> float:
        """Squared difference of prediction and value."""
        return (self.predicted - self.value) ** 2


ValueTimes: TypeAlias = Sequence[Sequence[float | None]]  # one row per experiment, in the order of readouts


def measured_cells(family: LogicFamily, times: ValueTimes = ()) -> Iterator[MeasuredCell]:
    """Yield the measured values, experiment by experiment; `LatticeLimitError` if shares are out of budget."""
    task, predictions = family.task, family.predict(family.task.experiments)
    rows = zip(task.experiments, task.values, task.discretised, strict=True)
    for index, (experiment, values, integers) in enumerate(rows):
        answers = reference.predict(family.witness, task.setup, experiment)
        columns = zip(task.setup.readouts, values, integers, answers, predictions.shares(index), strict=True)
        for column, (readout, value, integer, answer, share) in enumerate(columns):
            if value is not None and integer is not None:
                text, time = experiment.text(task.setup), times[index][column] if times else None
                yield MeasuredCell(index + 1, text, time, readout, value, integer, int(answer), float(share))


def predicted_csv(family: LogicFamily, times: ValueTimes = ()) -> str:
    """Return the measured values with predictions as CSV, one row per value; squares use undiscretised values."""
    head = ("number", "experiment", "time", "readout", "value", "discretised", "predicted", "share", "square")
    rows = (
        (
            *(cell.number, cell.experiment, "" if cell.time is None else f"{cell.time:g}", cell.readout),
            *(f"{cell.value:.9g}", cell.integer, cell.predicted, f"{cell.share:.6g}", f"{cell.square:.9g}"),
        )
        for cell in measured_cells(family, times)
    )
    return _csv(head, rows)


def candidates_csv(family: LogicFamily, predictions: logic_sums.Predictions) -> str:
    """Return the candidates as CSV: sum of squared outcome counts, share left, outcomes, whether measured."""
    setup, is_done = family.task.setup, logic_sums.find_done(family.task, predictions.experiments)
    rows = []
    for index, experiment in enumerate(predictions.experiments):
        squares = predictions.sum_of_squared_counts(index)
        share = f"{squares / predictions.count**2:.6g}"
        outcomes = len(predictions.outcomes[index])
        rows.append((experiment.text(setup), squares, share, outcomes, "yes" if is_done[index] else "no"))
    return _csv(("experiment", "squares", "share", "outcomes", "done"), rows)


def _csv(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows([header, *rows])
    return buffer.getvalue()


def family_record(family: LogicFamily, best: logic_sums.NextExperiment | None = None) -> dict[str, Any]:
    """Return a family as one JSON object; numbers of members are texts, since they may exceed 64 bits."""
    exclusive, inclusive = family.pairs()
    record: dict[str, Any] = {
        "class": family.in_words,
        "edges_of_prior": len(set(family.task.prior)),
        "edges_of_class": len(family.task.edges),
        "optimum": list(family.optimum),
        "misfit_limit": family.misfit_limit,
        "size_limit": family.size_limit,
        "members": str(family.count),
        "witness": model_texts(family.witness),
        "spectrum": [[*point, str(count)] for point, count in family.spectrum.items()],
        "clauses": {str(clause): str(count) for clause, count in family.clauses().items()},
        "edges": {str(edge): str(count) for edge, count in family.edges().items()},
        "never": [str(edge) for edge in family.never()],
        "mse": mean_squared_error(family.witness, family.task),
        "mse_by_readout": errors_by_readout(family.witness, family.task),
        "exclusive": [[str(clause) for clause in pair] for pair in exclusive],
        "inclusive": [[str(clause) for clause in pair] for pair in inclusive],
    }
    if best is not None:
        record["next"] = best.to_dict()
    return record


# --- Answers that follow from the exact family: its least model, the majority of its members cell by cell, the shares


def exact(task: Task, limits: Limits = USUAL_LIMITS) -> Found[Model] | OutOfBudget:
    """Return a model proven to have least misfit, and least size at that misfit."""
    outcome = solve_family(task, limits)
    return Found(outcome.value.witness) if isinstance(outcome, Found) else outcome


def posterior(task: Task, limits: Limits = USUAL_LIMITS) -> Found[Table] | OutOfBudget:
    """Return the share of members that answer 1, cell by cell of the questions."""
    shares = _shares(task, limits)
    if not isinstance(shares, Found):
        return shares
    return Found(tuple(tuple(map(float, row)) for row in shares.value))


def vote(task: Task, limits: Limits = USUAL_LIMITS) -> Found[Table] | OutOfBudget:
    """Return the answer of most members, cell by cell of the questions; 0 if as many answer 1 as 0."""
    shares = _shares(task, limits)
    if not isinstance(shares, Found):
        return shares
    return Found(tuple(tuple(float(share > Fraction(1, 2)) for share in row) for row in shares.value))


def _shares(task: Task, limits: Limits) -> Found[tuple[tuple[Fraction, ...], ...]] | OutOfBudget:
    outcome = solve_family(task, limits)
    if not isinstance(outcome, Found):
        return outcome
    try:
        return Found(question_shares(outcome.value))
    except LatticeLimitError as error:
        return OutOfBudget(str(error))


def question_shares(family: LogicFamily) -> tuple[tuple[Fraction, ...], ...]:
    """Return, for each question and readout, the share of members that answer 1."""
    predictions = family.predict(family.task.questions)
    return tuple(predictions.shares(k) for k in range(len(family.task.questions)))
