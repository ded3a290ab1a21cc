"""Tables beside pgmpy, pyAgrum, causal-learn, bnlearn-port (networks), sympy, pyeda (formulas), on the same files.

    python -m tests.oracles.table_peers scores|networks|formulas|configurations [--models asia,cancer] [--rows 2000]

Rows are drawn from the published models that pgmpy ships. `scores`: score of the published graph by each package.
`networks`: score of the network that each package learns, by one and the same definition, and processor seconds.
`formulas`: products and literals of the sum that each package makes of a truth table. `configurations`: products of the
conservative and the parsimonious solution, beside pyqca. What is not installed is skipped.
"""

from __future__ import annotations

import argparse
import random
import sys
import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any

import calibrant
from calibrant.baselines.structure_learning.classes import dag_of_arcs
from calibrant.baselines.structure_learning.constraints import free_constraints, graph_from_matrix, orient
from calibrant.baselines.structure_learning.levels import LevelScore, family_score
from calibrant.bench.replayscm.fitting.networks import level_frame
from calibrant.bench.replayscm.fitting.reading import read_with, reading_options

MODELS = ("asia", "cancer", "earthquake", "survey", "sachs", "alarm")
SCORES = {"bde": ("BDeu", {"equivalent_sample_size": 1}), "k2": ("K2", {}), "bic": ("BIC", {}), "aic": ("AIC", {})}
PACKAGES = {name: name for name in ("pgmpy", "pyagrum", "sympy", "pyeda")}  # name of the distribution -> of the module
PACKAGES |= {"causal-learn": "causallearn", "bnlearn-port": "pybnlearn", "pyqca": "qca"}
PROOF_SECONDS = 60.0


def draw_rows(name: str, num_rows: int, seed: int, path: Path) -> list[tuple[str, str]]:
    """Write rows drawn from a published model as CSV; return its arcs."""
    model = import_module("pgmpy.utils").get_example_model(name)
    order = list(import_module("networkx").topological_sort(model))
    rng = random.Random(f"{name}/{seed}")
    lines = [",".join(order)]
    for _ in range(num_rows):
        row: dict[str, str] = {}
        for node in order:
            cpd = model.get_cpds(node)
            given = [cpd.state_names[parent].index(row[parent]) for parent in cpd.variables[1:]]
            weights = cpd.values[(slice(None), *given)].tolist()
            row[node] = rng.choices(cpd.state_names[node], weights)[0]
        lines.append(",".join(row[node] for node in order))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return list(model.edges())


def read_frame(path: Path) -> Any:
    """Return the file as a frame of texts."""
    return import_module("pandas").read_csv(path, dtype=str)


def network_score(path: Path, score: str, arcs: list[tuple[str, str]]) -> float:
    """Return our score of a graph."""
    table = read_with(str(path), reading_options({}), "networks")
    frame, dag = level_frame(table), dag_of_arcs(table.names, [arc for arc in arcs if set(arc) <= {*table.names}])
    return sum(family_score(frame, LevelScore(score), v, parents) for v, parents in enumerate(dag))


def compare_scores(models: tuple[str, ...], num_rows: int, folder: Path) -> Iterator[str]:
    """Yield our score of each published graph beside those of the peers, with the relative differences."""
    yield "| model | score | ours | pgmpy | relative difference | bnlearn-port | relative difference |"
    yield "|---|---|--:|--:|--:|--:|--:|"
    scores = import_module("pgmpy.structure_score")
    for name in models:
        path = folder / f"{name}.csv"
        arcs = draw_rows(name, num_rows, 0, path)
        frame = read_frame(path)
        dag = import_module("pgmpy.base").DAG(arcs)
        dag.add_nodes_from(frame.columns)
        for score, (peer, options) in SCORES.items():
            ours = network_score(path, score, arcs)
            theirs = [getattr(scores, peer)(frame, **options).score(dag)]
            if find_spec("pybnlearn"):
                theirs.append(_port_score(frame, score, arcs))
            cells = (f"{value:.6f} | {abs(ours - value) / abs(ours):.1e}" for value in theirs)
            yield f"| {name} | {score} | {ours:.6f} | {' | '.join(cells)} |"


def _port_score(frame: Any, score: str, arcs: list[tuple[str, str]]) -> float:
    """Return the score by bnlearn-port, a port of the R package bnlearn."""
    port = import_module("pybnlearn")
    graph = import_module("networkx").DiGraph(arcs)
    graph.add_nodes_from(frame.columns)
    parents = {v: ":".join(graph.predecessors(v)) for v in import_module("networkx").topological_sort(graph)}
    network = port.model2network("".join(f"[{v}|{names}]" if names else f"[{v}]" for v, names in parents.items()))
    options = {"iss": 1} if score == "bde" else {}
    return float(port.score(network, frame.astype("category"), type=score, **options))


Learner = Callable[[Path, str], list[tuple[str, str]]]


def learn_by_pgmpy(path: Path, score: str) -> list[tuple[str, str]]:
    """Hill climbing."""
    peer, options = SCORES[score]
    frame = read_frame(path)
    scoring = getattr(import_module("pgmpy.structure_score"), peer)(frame, **options)
    learner = import_module("pgmpy.causal_discovery").HillClimbSearch(scoring, return_type="dag", show_progress=False)
    learner.fit(frame)
    return list(learner.causal_graph_.edges())


def learn_by_pyagrum(path: Path, score: str) -> list[tuple[str, str]]:
    """Tabu search; BDeu has one imaginary row."""
    gum = import_module("pyagrum")
    frame = read_frame(path)
    learner = gum.BNLearner(frame)
    {"bde": learner.useScoreBDeu, "k2": learner.useScoreK2, "bic": learner.useScoreBIC, "aic": learner.useScoreAIC}[
        score
    ]()
    learner.useNoPrior()
    learner.useLocalSearchWithTabuList()
    network = learner.learnBN()
    return [(network.variable(a).name(), network.variable(b).name()) for a, b in network.arcs()]


def learn_by_causal_learn(path: Path, score: str) -> list[tuple[str, str]]:
    """GES; what its class leaves undirected is directed without a new collider."""
    frame = read_frame(path)
    codes = frame.apply(lambda column: column.astype("category").cat.codes).to_numpy()
    kind = {"bde": "local_score_BDeu", "bic": "local_score_BIC"}.get(score)
    if kind is None:
        raise ValueError(f"has no score {score} of categories")
    graph = import_module("causallearn.search.ScoreBased.GES").ges(codes, score_func=kind)["G"].graph
    names = list(frame.columns)
    dag = orient(graph_from_matrix(graph == -1), free_constraints(len(names))).dag  # -1: the end of a tail
    return [(names[u], names[v]) for v, parents in enumerate(dag) for u in range(len(names)) if parents >> u & 1]


def learn_by_us(path: Path, score: str) -> list[tuple[str, str]]:
    """Optimum or bound; the line below the table has which."""
    fitted = calibrant.learn_networks(str(path), score=score, seconds=PROOF_SECONDS)
    print(f"  ours, {path.stem}, {score}: {fitted.upper_bound or 'proven'} {fitted.method or ''}", file=sys.stderr)
    return list(fitted.networks[0].arcs)


LEARNERS: dict[str, Learner] = {
    "calibrant": learn_by_us,
    "pgmpy": learn_by_pgmpy,
    "pyagrum": learn_by_pyagrum,
    "causal-learn": learn_by_causal_learn,
}


def compare_networks(models: tuple[str, ...], num_rows: int, folder: Path) -> Iterator[str]:
    """Yield the score of the network that each package learns, and its processor seconds."""
    yield "| model | score | package | score of its network | seconds |\n|---|---|---|--:|--:|"
    for name in models:
        path = folder / f"{name}.csv"
        draw_rows(name, num_rows, 0, path)
        for score in ("bde", "bic"):
            for package, learn in LEARNERS.items():
                started = process_time()
                try:
                    arcs = learn(path, score)
                    result = f"{network_score(path, score, arcs):.3f}"
                except Exception as error:
                    result = f"{type(error).__name__}: {str(error).splitlines()[0][:60]}"
                yield f"| {name} | {score} | {package} | {result} | {process_time() - started:.1f} |"


def compare_formulas(num_rows: int) -> Iterator[str]:
    """Yield products and literals of least sums of drawn truth tables of four to six columns, a tenth of rows free."""
    yield "| columns | table | calibrant | sympy | pyeda (espresso) |\n|--:|--:|---|---|---|"
    least_sums = import_module("calibrant.solvers.formulas.minimal_sums").least_sums
    for num_vars in (4, 5, 6):
        for number in range(4):
            rng = random.Random(f"{num_vars}/{number}")
            digits = [rng.choice("01" * 4 + "-") for _ in range(1 << num_vars)]
            ones = sum(1 << r for r, digit in enumerate(digits) if digit == "1")
            zeros = sum(1 << r for r, digit in enumerate(digits) if digit == "0")
            ours = least_sums(num_vars, ones, zeros)
            sizes = [f"{ours.size}{'' if ours.is_proven else ', not proven'}", "", ""]
            if find_spec("sympy"):
                sizes[1] = str(_sympy_size(num_vars, digits))
            if find_spec("pyeda"):
                sizes[2] = str(_pyeda_size(num_vars, digits))
            yield f"| {num_vars} | {number} | {' | '.join(sizes)} |"


def _sympy_size(num_vars: int, digits: list[str]) -> tuple[int, int]:
    sympy = import_module("sympy")
    logic = import_module("sympy.logic")
    symbols = sympy.symbols(f"x0:{num_vars}")
    rows = {
        digit: [[r >> v & 1 for v in range(num_vars)] for r, d in enumerate(digits) if d == digit] for digit in "1-"
    }
    formula = logic.SOPform(symbols, rows["1"], rows["-"])
    products = formula.args if isinstance(formula, sympy.Or) else (formula,)
    return len(products), sum(len(p.args) if isinstance(p, sympy.And) else 1 for p in products)


def _pyeda_size(num_vars: int, digits: list[str]) -> tuple[int, int]:
    inter = import_module("pyeda.inter")
    variables = inter.exprvars("x", num_vars)
    (formula,) = inter.espresso_tts(inter.truthtable(variables, "".join(digits)))
    products = formula.xs if isinstance(formula, import_module("pyeda.boolalg.expr").OrOp) else (formula,)
    return len(products), sum(len(p.support) for p in products)


def compare_configurations() -> Iterator[str]:
    """Yield products of both solutions of 20 drawn tables of four to six conditions, a tenth of the outcomes wrong."""
    yield "| conditions | rows | ours: conservative, parsimonious | pyqca |\n|--:|--:|---|---|"
    for number in range(20):
        rng = random.Random(f"configurations/{number}")
        names = [f"C{k}" for k in range(rng.choice([4, 5, 6]))]
        rows = [[rng.randint(0, 1) for _ in names] for _ in range(rng.randint(20, 60))]
        data = {name: [row[k] for row in rows] for k, name in enumerate(names)}
        data["Y"] = [int((a and b) or (c and not d)) ^ int(rng.random() < 0.1) for a, b, c, d, *_ in rows]
        ours = calibrant.fit(data, target="Y", consistency="4/5").to_dict()
        sizes = [ours[name]["size"][0] for name in ("zero", "open")]
        theirs: Any = "not installed"
        if find_spec("qca"):
            frame = import_module("pandas").DataFrame(data)
            fitted = import_module("qca").CSQCA(frame, "Y", names).fit(consistency_cutoff=0.8, frequency_cutoff=1)
            solution = fitted.qm_solution
            theirs = [len(solution.complex_solution), len(solution.parsimonious_solution)]
        yield f"| {len(names)} | {len(rows)} | {sizes} | {theirs} |"


def main() -> None:
    """Print the table that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", choices=["scores", "networks", "formulas", "configurations"])
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--rows", type=int, default=2_000)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    installed = [name for name, module in PACKAGES.items() if find_spec(module)]
    print(", ".join(f"{name} {version(name)}" for name in installed))
    with TemporaryDirectory() as folder:
        models = tuple(options.models.split(","))
        tables = {
            "scores": lambda: compare_scores(models, options.rows, Path(folder)),
            "networks": lambda: compare_networks(models, options.rows, Path(folder)),
            "formulas": lambda: compare_formulas(options.rows),
            "configurations": compare_configurations,
        }
        for line in tables[options.table]():
            print(line, flush=True)


if __name__ == "__main__":
    main()
