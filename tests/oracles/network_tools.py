"""Networks beside AEON, libSBML, pyboolnet and BoolNet, where these are installed: functions, dynamics, written SBML.

    python -m tests.oracles.network_tools --count 200 [FILE_OR_FOLDER ...]

Needs biodivine_aeon and python-libsbml; pyboolnet and R with BoolNet are asked where they are installed (extra
`oracles`; cana and optboolnet give files alone). AEON reads random networks from the same bnet and aeon texts, and
files that are bnet, aeon, booleannet or SBML as they are, as far as it reads them; pyboolnet reads files of bnet. All
networks go to the tools as bnet that is written from their tables, to AEON under other names. BoolNet wants a head and
a line for each gene, and begins at states in which constants have their value: basins are compared where there are
none.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from shutil import which
from subprocess import run
from tempfile import TemporaryDirectory
from typing import Any

from calibrant.dsl.networks.formulas import NetworkError
from calibrant.solvers.networks.network import BooleanNetwork, parse_network, read_network
from calibrant.solvers.outcome import Found
from tests.support.benchmarks.networks import random_formulas, text_of

MAX_INPUTS = 8  # of a function that is compared row by row


def differences(network: BooleanNetwork) -> Iterator[str]:
    """Yield what AEON and libSBML have otherwise of a network that is written as bnet and as SBML."""
    aeon: Any = import_module("biodivine_aeon")
    texts = {name: f"v{index}" for index, name in enumerate(network.nodes)}  # AEON wants names of letters and digits
    renamed = parse_network(_renamed_bnet(network, texts).encode(), "", "bnet")
    model = aeon.BooleanNetwork.from_bnet(renamed.to_bnet())
    yield from function_differences(model, renamed)
    yield from _fixed_point_differences(aeon, model, renamed)
    yield from sbml_errors(network)


def function_differences(model: Any, network: BooleanNetwork) -> Iterator[str]:
    """Yield nodes of which AEON has another function, with a row."""
    for node in network.nodes:
        function = network.function(node)
        if function.table is None or len(function.inputs) > MAX_INPUTS:
            continue
        expression = model.get_update_function(node)
        for values in product((0, 1), repeat=len(function.inputs)):
            row = dict(zip(function.inputs, values, strict=True))
            if _value(expression, model, row) != function.value(row):
                yield f"AEON: {node} in {row}"
                break


def reader_differences(path: Path, network: BooleanNetwork) -> Iterator[str]:
    """Yield what AEON and pyboolnet read otherwise in a file itself; a line that begins with `read by` names a tool."""
    aeon: Any = import_module("biodivine_aeon")
    reader = {"bnet": "from_bnet", "aeon": "from_aeon", "booleannet": "from_booleannet", "sbml-qual": "from_sbml"}
    text = path.read_text(encoding="utf-8", errors="replace")
    if network.format in reader:
        try:
            model = getattr(aeon.BooleanNetwork, reader[network.format])(text)
            lines = [*function_differences(model, network)]
        except Exception as error:  # AEON's grammar is smaller: it says so with errors of several types
            lines = [f"not read by AEON: {str(error).splitlines()[0][:100]}"]
        yield from lines or ["read by AEON"]
    widest = max((len(function.inputs) for function in network.functions.values()), default=0)
    if network.format == "bnet" and widest <= MAX_INPUTS and find_spec("pyboolnet") is not None:
        try:
            lines = [*pyboolnet_differences(network, text)]
        except (Exception, SystemExit) as error:
            lines = [f"not read by pyboolnet: {str(error).splitlines()[:1]}"]
        yield from lines or ["read by pyboolnet"]


def _renamed_bnet(network: BooleanNetwork, names: dict[str, str]) -> str:
    """Return a network as bnet under other names, by its tables: a disjunction of the rows that are 1."""
    lines = []
    for name in network.nodes:
        function = network.function(name)
        table = function.table or ""
        rows = [row for row, value in enumerate(table) if value == "1"]
        terms = [
            "(" + " & ".join(("" if row >> i & 1 else "!") + names[s] for i, s in enumerate(function.inputs)) + ")"
            for row in rows
        ]
        constant = table if not function.inputs else "0"
        lines.append(f"{names[name]}, {' | '.join(terms) if function.inputs and terms else constant}")
    return "targets, factors\n" + "\n".join(lines) + "\n"


def _value(expression: Any, model: Any, row: dict[str, int]) -> int:
    """Return AEON's value of an update function, walked as its tree."""
    if expression is None:
        return next(iter(row.values()))  # an input keeps its value
    if expression.is_const():
        return int(expression.as_const())
    if expression.is_var():
        return row.get(model.get_variable_name(expression.as_var()), 0)  # names that change nothing are in no row
    if expression.is_not():
        return 1 - _value(expression.as_not(), model, row)
    left, right = (_value(part, model, row) for part in expression.as_binary()[1:])
    operator = str(expression.as_binary()[0]).lower()
    return {"and": left & right, "or": left | right, "xor": left ^ right}[operator]


def _fixed_point_differences(aeon: Any, model: Any, network: BooleanNetwork) -> Iterator[str]:
    outcome = network.fixed_points()
    if not isinstance(outcome, Found) or not outcome.value.is_complete:
        return
    points = aeon.FixedPoints.symbolic(aeon.AsynchronousGraph(model.infer_valid_graph()))
    number = int(points.vertices().cardinality())
    if number != len(outcome.value.states):
        yield f"AEON: {number} fixed points, {len(outcome.value.states)} expected"


# --- pyboolnet and BoolNet --------------------------------------------------------------------------------------------
_BOOLNET = """
suppressMessages(library(BoolNet))
for (file in list.files(commandArgs(TRUE)[1], full.names = TRUE)) {
  net <- suppressWarnings(loadNetwork(file))
  for (gene in names(net$interactions)) {
    i <- net$interactions[[gene]]
    cat(basename(file), gene, paste(net$genes[i$input], collapse = ","), paste(i$func, collapse = ""), sep = "\\t")
    cat("\\n")
  }
  if (length(net$genes) <= 12)
    for (a in getAttractors(net, method = "exhaustive")$attractors)
      cat(basename(file), "", ncol(a$involvedStates), paste0(a$basinSize * all(net$fixed < 0), "\\n"), sep = "\\t")
}
"""


def pyboolnet_differences(network: BooleanNetwork, text: str | None = None) -> Iterator[str]:
    """Yield nodes of which pyboolnet's prime implicants give another value in some row.

    text: bnet text that pyboolnet reads, by default that which is written of the network
    """
    primes = import_module("pyboolnet.file_exchange").bnet2primes(network.to_bnet() if text is None else text)
    for node in network.nodes:
        function = network.function(node)
        for number in range(1 << len(function.inputs) if len(function.inputs) <= MAX_INPUTS else 0):
            row = function.row(number)
            if any(all(row[name] == v for name, v in prime.items()) for prime in primes[node][1]) != function.value(
                row
            ):
                yield f"pyboolnet: {node} in {row}"
                break


def boolnet_differences(networks: Mapping[str, BooleanNetwork]) -> Iterator[tuple[str, str]]:
    """Yield names of networks with what BoolNet has otherwise: functions, periods and basins of attractors."""
    with TemporaryDirectory() as folder:
        for index, network in enumerate(networks.values()):
            lines = [line for line in network.to_bnet().splitlines() if not line.startswith("#")]
            (Path(folder) / f"{index}.bnet").write_text("\n".join(lines) + "\n")
        done = run(["Rscript", "-e", _BOOLNET, folder], capture_output=True, text=True, check=True)
    attractors: dict[str, Counter[tuple[int, int]]] = {}
    names = {f"{index}.bnet": name for index, name in enumerate(networks)}
    for file, gene, inputs, table in (line.split("\t") for line in done.stdout.splitlines()):
        network = networks[names[file]]
        if not gene:
            attractors.setdefault(file, Counter())[int(inputs), int(table)] += 1
            continue
        sources = [name for name in inputs.split(",") if name]
        function = network.function(gene)
        for values, value in zip(product((0, 1), repeat=len(sources)), table, strict=True):
            if function.value(dict(zip(sources, values, strict=True))) != int(value):
                yield names[file], f"BoolNet: {gene} in {dict(zip(sources, values, strict=True))}"
                break
    for file, counted in attractors.items():
        outcome = networks[names[file]].attractors()
        assert isinstance(outcome, Found)
        has_basins = all(function.inputs for function in networks[names[file]].functions.values())
        if counted != Counter((a.period, a.basin * has_basins) for a in outcome.value):
            yield names[file], "BoolNet: other attractors"


def sbml_errors(network: BooleanNetwork) -> Iterator[str]:
    """Yield errors of libSBML on the SBML that is written."""
    libsbml: Any = import_module("libsbml")
    document = libsbml.readSBMLFromString(network.to_sbml())
    document.checkConsistency()
    for place in range(document.getNumErrors()):
        error = document.getError(place)
        if error.getSeverity() >= libsbml.LIBSBML_SEV_ERROR:
            yield f"libSBML: {error.getMessage().strip()}"


def main() -> int:
    """Compare random networks and files; return 1 if a tool has something otherwise."""
    parser = argparse.ArgumentParser(prog="python -m tests.oracles.network_tools", description=__doc__)
    parser.add_argument("paths", nargs="*", type=Path)
    parser.add_argument("--count", type=int, default=200, help="number of random networks")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    networks: dict[str, BooleanNetwork] = {}
    failures: list[tuple[str, str]] = []
    for number in range(options.count):
        generator = random.Random(options.seed * 1_000_000 + number)
        formulas = random_formulas(generator, generator.randint(1, 7))
        texts = {form: text_of(formulas, form) for form in ("bnet", "aeon")}
        networks[f"random {number}"] = parse_network(texts["bnet"].encode())
        for form, text in texts.items():
            model = getattr(import_module("biodivine_aeon").BooleanNetwork, f"from_{form}")(text)
            lines = function_differences(model, parse_network(text.encode(), "", form))
            failures += [(f"random {number}, {form}", line) for line in lines]
    refused, readers = 0, Counter[str]()
    files = (file for path in options.paths for file in ([path] if path.is_file() else path.rglob("*")))
    for path in sorted(file for file in files if file.is_file()):
        try:
            networks[str(path)] = read_network(path)
            networks[str(path)].require_functions()
            for line in reader_differences(path, networks[str(path)]):
                is_tool = line.startswith(("read by", "not read by"))
                failures += [] if is_tool else [(str(path), line)]
                readers[line.partition(":")[0]] += is_tool
        except NetworkError as error:
            networks.pop(str(path), None)
            refused += 1
            print(f"refused  {path}: {error}")
    failures += [(name, line) for name, network in networks.items() for line in differences(network)]
    tools = ["AEON", "libSBML"]
    if find_spec("pyboolnet") is not None:
        tools.append("pyboolnet")
        narrow = {
            name: network
            for name, network in networks.items()
            if all(len(function.inputs) <= MAX_INPUTS for function in network.functions.values())
        }  # it takes hours for the prime implicants of wide functions
        failures += [(name, line) for name, network in narrow.items() for line in pyboolnet_differences(network)]
    if which("Rscript") is not None:
        tools.append("BoolNet")
        failures += boolnet_differences(networks)
    for name, line in failures:
        print(f"differs  {name}: {line}")
    print("files themselves:", ", ".join(f"{number} {line}" for line, number in sorted(readers.items())) or "none")
    tool_names = ", ".join(tools)
    print(f"{len(networks)} networks beside {tool_names}: {refused} files refused, {len(failures)} differences")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
