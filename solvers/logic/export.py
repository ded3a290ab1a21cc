"""Families as tables, as one record, and as the union network of their members."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any

from calibrant.dsl.errors import MissingExtraError
from calibrant.dsl.logic.clause import model_texts
from calibrant.solvers.logic.family import LogicFamily
from calibrant.solvers.logic.next_experiment import NextExperiment
from calibrant.solvers.logic.predictions import Predictions


def spectrum_csv(family: LogicFamily) -> str:
    """Return the spectrum as CSV: misfit, size, members."""
    return _csv(("misfit", "size", "members"), ((*point, number) for point, number in family.spectrum.items()))


def marginals_csv(family: LogicFamily) -> str:
    """Return the numbers and shares of members by clause and edge as CSV; those of no member are left out."""
    rows: list[tuple[object, ...]] = []
    for kind, numbers in (("clause", family.clauses()), ("edge", family.edges())):
        for part, number in numbers.items():
            status = "always" if number == family.count else "open"
            rows.append((kind, part, number, f"{number / family.count:.6g}", status))
    return _csv(("kind", "part", "members", "share", "status"), rows)


def predictions_csv(family: LogicFamily, predictions: Predictions) -> str:
    """Return the share of members that answer 1 as CSV: a row an experiment, a column a readout."""
    setup = family.task.setup
    rows = [
        (experiment.text(setup), *(f"{float(share):.6g}" for share in predictions.shares(number)))
        for number, experiment in enumerate(predictions.experiments)
    ]
    return _csv(("experiment", *setup.readouts), rows)


def candidates_csv(family: LogicFamily, best: NextExperiment) -> str:
    """Return the candidates as CSV: sum of squares of the outcome numbers, share left, outcomes, whether done."""
    setup, predictions = family.task.setup, best.predictions
    rows = []
    for number, experiment in enumerate(predictions.experiments):
        squares = predictions.sum_of_squared_counts(number)
        share = f"{squares / predictions.count**2:.6g}"
        outcomes = len(predictions.outcomes[number])
        rows.append((experiment.text(setup), squares, share, outcomes, "yes" if best.is_done[number] else "no"))
    return _csv(("experiment", "squares", "share", "outcomes", "done"), rows)


def _csv(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return buffer.getvalue()


def family_record(family: LogicFamily, best: NextExperiment | None = None) -> dict[str, Any]:
    """Return a family as one JSON object; numbers of members are texts, since they exceed 64 bits."""
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
        "spectrum": [[*point, str(number)] for point, number in family.spectrum.items()],
        "clauses": {str(clause): str(number) for clause, number in family.clauses().items()},
        "edges": {str(edge): str(number) for edge, number in family.edges().items()},
        "exclusive": [[str(clause) for clause in pair] for pair in exclusive],
        "inclusive": [[str(clause) for clause in pair] for pair in inclusive],
    }
    if best is not None:
        record["next"] = {
            "stimuli": sorted(best.experiment.on),
            "inhibited": sorted(best.experiment.inhibited),
            "squares": str(best.squares),
            "share": float(best.share),
            "behaviours": best.predictions.behaviours,
        }
    return record


def union_network(family: LogicFamily) -> Any:
    """Return the union of all members as a networkx `DiGraph`, for GraphML and DOT.

    Nodes have a `kind` (stimulus, node, gate), edges `sign` and `share`, the share of members. A clause of several
    literals is a gate. `MissingExtraError` without networkx.
    """
    try:
        networkx = import_module("networkx")
    except ImportError:
        raise MissingExtraError("networkx is missing; run: pip install networkx pydot") from None
    graph = networkx.DiGraph()
    stimuli = set(family.task.setup.stimuli)
    for clause, number in family.clauses().items():
        share = number / family.count
        gate = clause.target
        graph.add_node(clause.target, kind="node")
        if len(clause.literals) > 1:
            gate = f"gate {clause}"
            graph.add_node(gate, kind="gate")
            graph.add_edge(gate, clause.target, sign=1, share=share)
        for source, sign in clause.literals:
            graph.add_node(source, kind="stimulus" if source in stimuli else "node")
            if graph.has_edge(source, gate):  # both signs between two nodes, each a clause of its own
                gate = f"gate {clause}"
                graph.add_node(gate, kind="gate")
                graph.add_edge(gate, clause.target, sign=1, share=share)
            graph.add_edge(source, gate, sign=sign, share=share)
    return graph
