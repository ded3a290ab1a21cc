"""Every field of every shared vector of published networks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from calibrant.dsl.errors import RefusedError
from calibrant.dsl.logic.files.midas import parse_midas
from calibrant.dsl.logic.files.networks import parse_sif
from calibrant.dsl.logic.item import Edge, model_texts
from calibrant.dsl.logic.series import SeriesTask, parse_series, readings
from calibrant.dsl.networks.edge_tables import parse_edges
from calibrant.dsl.networks.formulas import Function
from calibrant.dsl.networks.network import FUNCTION_CLASSES, Question, Trajectory, TrajectoryTask, recognize
from calibrant.dsl.parse_limits import decode_text
from calibrant.solvers.logic.family import solve_family
from calibrant.solvers.logic.series import count_functions, solve_series
from calibrant.solvers.networks.network import parse_network
from calibrant.solvers.networks.trajectories import answer_of, fit_networks
from calibrant.solvers.outcome import Found
from tests.support.benchmarks.logic import task_of
from tests.support.benchmarks.networks import Vector, content_of, network_of, vectors_of
from tests.support.shared import shared_file

FIELDS = {"read": 10, "same": 4, "edges": 2, "dynamics": 3, "cut": 5, "fits": 3, "member": 6, "midas": 9, "series": 9}
"""Kind -> fields of an answer that is no refusal."""


def _function(function: Function) -> dict[str, Any]:
    return {"inputs": [*function.inputs], "table": function.table}


def _read(vector: Vector) -> dict[str, Any]:
    network = network_of(vector)
    return {
        "nodes": [*network.nodes],
        "functions": {name: _function(function) for name, function in network.functions.items()},
        "signs": {f"{edge.source}>{edge.target}": edge.sign for edge in network.edges()},
        "inessential": {name: [*names] for name, names in network.inessential.items()},
        "declared": [[*contradiction] for contradiction in network.declared],
        "no_rule": [*network.no_rule],
        "inputs": [*network.inputs],
        "unspecified": [*network.unspecified],
        "start": {**network.start},
        "notes": [*network.notes],
    }


def _same(vector: Vector) -> dict[str, Any]:
    comparison = network_of(vector["a"]).compare(network_of(vector["b"]))
    return {
        "equal": comparison.is_equal,
        "only_a": [*comparison.only_first],
        "only_b": [*comparison.only_second],
        "differs": [{"node": d.node, "row": {**d.row}, "a": d.first, "b": d.second} for d in comparison.differences],
    }


def _edges(vector: Vector) -> dict[str, Any]:
    table = parse_edges(vector["text"])
    return {"edges": sorted(map(list, table.edges)), "both": [[*pair] for pair in table.open_pairs]}


def _dynamics(vector: Vector) -> dict[str, Any]:
    network, clamps = network_of(vector), vector["clamps"]
    fixed_points, attractors = network.fixed_points(clamps), network.attractors(clamps)
    assert isinstance(fixed_points, Found)
    assert isinstance(attractors, Found)
    return {
        "nodes": [*network.nodes],
        "fixed_points": [*fixed_points.value.states],
        "attractors": [[*attractor] for attractor in attractors.value],
    }


def _cut(vector: Vector) -> dict[str, Any]:
    cut = network_of(vector).cut(vector["endogenous"])
    return {
        "constants": {**cut.constants},
        "inputs": [*cut.inputs],
        "feedback": None if cut.feedback is None else [*cut.feedback],
        "roots": [*cut.roots],
        "mechanisms": {name: _function(function) for name, function in cut.mechanisms.items()},
    }


def _midas(vector: Vector) -> dict[str, Any]:
    prior, options = vector.get("prior"), vector["options"]
    edges = [Edge(*edge) for edge in prior] if prior is not None else parse_sif(_shared_text(vector["prior_file"]))
    data = parse_midas(
        vector.get("text") or _shared_text(vector["file"]),
        options.get("time"),
        edges,
        normalise=options.get("normalise"),
        cell_line=options.get("cell_line"),
    )
    return {
        "stimuli": [*data.setup.stimuli],
        "inhibitors": [*data.setup.inhibitors],
        "readouts": [*data.setup.readouts],
        "experiments": [{"stimuli": sorted(e.on), "inhibited": sorted(e.inhibited)} for e in data.experiments],
        "values": [[*row] for row in data.values],
        "rows": [len(data.experiments), data.use.num_rows],
        "times": [*data.use.times],
        "other_times": {f"{time:g}": number for time, number in data.use.other_times},
        "notes": {**data.counts},
    }


def _series(vector: Vector) -> dict[str, Any]:
    genes, series = parse_series(vector["text"], updates=vector["updates"])
    prior = tuple(Edge(*edge) for edge in vector["pkn"])
    task = SeriesTask(genes, prior, series, vector["max_clause"], vector["extra_errors"], vector["updates"])
    outcome, functions = solve_series(task), count_functions(task, vector["max_parents"])
    assert isinstance(outcome, Found)
    assert isinstance(functions, Found)
    family = outcome.value
    return {
        "genes": {
            gene.gene: {
                "readings": len(list(readings(task, gene.gene))),
                "optimum": [*gene.optimum],
                "errors": [[errors, str(number)] for errors, number in gene.errors.items()],
            }
            for gene in family.genes
        },
        "least_errors": family.least_errors,
        "limit": family.limit,
        "count": str(family.count),
        "edges": {str(edge): str(number) for edge, number in family.edges.items()},
        "functions": {
            entry.gene: {
                "errors": entry.errors,
                "parents": {"+".join(parents): str(number) for parents, number in entry.functions.items()},
            }
            for entry in functions.value
        },
        "fixed": [[state, str(family.fixed([*map(int, state)]))] for state in vector["ask"]],
        "joint": None if family.joint() is None else str(family.joint()),
        "unknown_cells": task.num_unknown_cells,
    }


def _member(vector: Vector) -> dict[str, Any]:
    task = task_of({"factor": 100, "rounding": "round", **vector})
    outcome = solve_family(task)
    assert isinstance(outcome, Found)
    judgement = outcome.value.judge(network_of(vector["model"]))
    answer: dict[str, Any] = {
        "zero": [*judgement.zero],
        "ignored": [*judgement.ignored],
        "substituted": [*judgement.substituted],
        "left_out": [*judgement.left_out],
        "reason": judgement.reason,
        "detail": judgement.detail,
    }
    prediction, functions = judgement.prediction, judgement.functions
    if prediction is None or functions is None:
        return answer
    answer |= {
        "functions": {name: _function(function) for name, function in functions.items()},
        "predicted": [*prediction.answers],
        "misfit": prediction.misfit,
        "mse": round(prediction.mse, 9),
        "optimum": [*outcome.value.optimum],
        "limit": [*judgement.limit],
        "differs": [[*cell] for cell in prediction.differs or ()],
    }
    if judgement.model is not None:
        answer |= {"member": judgement.is_member, "size": judgement.size, "model": model_texts(judgement.model)}
    return answer


def _fits(vector: Vector) -> dict[str, Any]:
    network = network_of(vector)
    question = vector["question"]
    start = "".join(str(question["start"][name]) for name in network.nodes)
    task = TrajectoryTask(
        network.nodes,
        {gene: tuple(map(tuple, candidates)) for gene, candidates in vector["candidates"].items()},
        tuple(Trajectory(entry["clamps"], tuple(entry["states"])) for entry in vector["evidence"]),
        Question(question["clamps"], start, question["steps"]),
    )
    answer: dict[str, Any] = {}
    for function_class in FUNCTION_CLASSES:
        fitting = fit_networks(replace(task, function_class=function_class))
        assert isinstance(fitting, Found)
        true = answer_of(network, fitting.value)
        answer[function_class] = {
            "genes": {gene: str(number) for gene, number in fitting.value.counts.items()},
            "count": str(fitting.value.count),
            "answer": [*true.states],
            "agree": str(true.agree),
            "decided": true.is_decided,
        }
        answer["reached"] = {"transient": true.transient, "attractor": [*true.attractor]}
    return answer


def _shared_text(name: str) -> str:
    return decode_text(shared_file(name, part="frontier").read_bytes(), name)


ANSWERS: dict[str, Callable[[Vector], dict[str, Any]]] = {
    "read": _read,
    "same": _same,
    "edges": _edges,
    "dynamics": _dynamics,
    "cut": _cut,
    "fits": _fits,
    "member": _member,
    "midas": _midas,
    "series": _series,
}


def _answer(vector: Vector) -> dict[str, Any]:
    try:
        return ANSWERS[vector["kind"]](vector)
    except RefusedError as error:
        name = vector["expected"].get("name") and error.name  # some lines leave it open
        return {"refused": error.reason, "line": error.line, "name": name}


@pytest.mark.parametrize("kind", ANSWERS)
def test_every_field_is_as_expected(kind: str) -> None:
    num_lines = num_fields = 0
    for vector in vectors_of(kind):
        answer, expected = _answer(vector), vector["expected"]
        assert answer.keys() == expected.keys(), (vector["id"], answer)
        for field, value in expected.items():
            assert answer[field] == value, (vector["id"], field)
            num_fields += 1
        num_lines += "refused" not in expected
    assert num_lines > 5
    assert num_fields >= num_lines * FIELDS[kind]


def test_content_tells_the_format() -> None:
    recognized = Counter(
        recognize(content_of(vector)) == vector["format"] or vector["id"]
        for vector in vectors_of("read")
        if "refused" not in vector["expected"] or vector["expected"]["line"] is None
    )
    # a file of comments alone has no content
    assert {key for key in recognized if key is not True} == {"read-19"}
    assert recognized[True] > 60


def test_what_is_read_is_written_and_read_again() -> None:
    compared = Counter[str]()
    for vector in vectors_of("read"):
        if "functions" not in vector["expected"] or vector["expected"]["unspecified"]:
            continue
        network = network_of(vector)
        for text, chosen in ((network.to_bnet(), "bnet"), (network.to_sbml(), "sbml-qual")):
            again = parse_network(text.encode(), "", chosen, "id" if chosen == "bnet" else "name")
            assert network.compare(again).is_equal, vector["id"]
            assert again.digest == network.digest, vector["id"]
            assert recognize(text.encode()) == chosen
            compared[chosen] += len(network.functions)
    assert compared["bnet"] == compared["sbml-qual"] > 200


def test_graphs_have_the_proven_signs() -> None:
    networkx = pytest.importorskip("networkx")
    compared = 0
    for vector in vectors_of("read"):
        if "signs" in vector["expected"]:
            graph = network_of(vector).to_networkx()
            assert isinstance(graph, networkx.DiGraph)
            signs = {f"{a}>{b}": sign for a, b, sign in graph.edges(data="sign")}
            assert signs == vector["expected"]["signs"], vector["id"]
            assert sorted(graph) == vector["expected"]["nodes"]
            compared += len(signs)
    assert compared > 450
