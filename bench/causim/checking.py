"""Report of `calibrant pool check` on programs: the first fault of each, and comparison with a reference graph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from calibrant.bench.answers.rates import wilson
from calibrant.bench.causim.options import CheckOptions
from calibrant.bench.causim.paper import paper
from calibrant.bench.core.options import OptionError
from calibrant.bench.pages.terminal_tables import aligned
from calibrant.dsl.causim import networks
from calibrant.dsl.causim.external_programs.check import (
    DiagramNode,
    FaultKind,
    ProgramCheck,
    StructureDifference,
    check_program,
    compare_mechanisms,
    compare_structure,
    diagram_nodes,
)
from calibrant.dsl.causim.external_programs.sources import ProgramSource, read_outline, read_programs
from calibrant.dsl.causim.generated_functions import TOPOLOGIES, Parents
from calibrant.dsl.causim.language.randomness import Unsupported
from calibrant.dsl.causim.model import ModelError
from calibrant.dsl.errors import CalibrantError, in_one_line
from calibrant.dsl.text import plural

NIHSS = "nihss"
CORRECT = "correct"
SAME_MECHANISMS = "those of the reference; noise is not compared."
OUTCOMES: Mapping[str, str] = {  # titles of rows of the paper's Table 27, by the kind of the first fault
    FaultKind.DISCONNECTED: "Graph is disconnected",
    FaultKind.NODE_COUNT: "Wrong number of nodes",
    FaultKind.SYNTAX: "Invalid syntax",
    FaultKind.CONFOUNDING: "Exogenous confounding",
    CORRECT: "Correct",
}


@dataclass(frozen=True)
class CheckedProgram:
    """A program with its first fault, and its structure compared with that of the reference.

    difference: None without a reference, or if the equations could not be compared; problem: why they could not be
    mechanisms: a sentence for each mechanism that differs; None with a fault or other structure
    """

    label: str
    check: ProgramCheck
    difference: StructureDifference | None = None
    problem: str = ""
    mechanisms: tuple[str, ...] | None = None

    @property
    def passed(self) -> bool:
        return self.check.fault is None and not self.problem and (self.difference is None or self.difference.is_match)

    def lines(self) -> Iterator[str]:
        """Yield the lines that the terminal shows about the program."""
        fault = self.check.fault
        if fault is None:
            yield f"  {'ok' if self.passed else 'failed':6}  {self.label}"
        else:
            place = "".join(
                [f", line {fault.line}" if fault.line else "", f", node {fault.node}" if fault.node else ""]
            )
            yield f"  failed  {self.label}: {fault.kind}{place}: {fault.sentence}"
        yield from (f"            note: {finding}" for finding in self.check.findings)
        if self.problem:
            yield f"            structure: not compared: {self.problem}"
        elif self.difference is not None:
            yield f"            structure: {_difference_text(self.difference)}"
        if self.mechanisms is not None:
            yield from (f"            mechanisms: {text}" for text in self.mechanisms or (SAME_MECHANISMS,))

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        fault = self.check.fault
        structure = None if self.difference is None else asdict(self.difference) | {"match": self.difference.is_match}
        return {
            "program": self.label,
            "passed": self.passed,
            "fault": None if fault is None else asdict(fault),
            "findings": list(self.check.findings),
            "structure": structure,
            "problem": self.problem,
            "mechanisms": None if self.mechanisms is None else list(self.mechanisms),
        }


def _difference_text(difference: StructureDifference) -> str:
    if difference.is_match:
        return "that of the reference"
    parts = [
        f"{name} {', '.join(' -> '.join(edge) if isinstance(edge, tuple) else edge for edge in values)}"
        for name, values in (
            ("nodes missing:", difference.missing_nodes),
            ("nodes extra:", difference.extra_nodes),
            ("edges missing:", difference.missing_edges),
            ("edges extra:", difference.extra_edges),
            ("edges reversed:", difference.reversed_edges),
        )
        if values
    ]
    return "; ".join(parts)


@dataclass(frozen=True)
class ProgramReport:
    """Checked programs; its tables print the paper's figures beside ours."""

    programs: Sequence[CheckedProgram]
    with_reference: bool

    @property
    def passed(self) -> bool:
        return all(program.passed for program in self.programs)

    def lines(self) -> Iterator[str]:
        """Yield the lines of each program, then the tables."""
        for program in self.programs:
            yield from map(in_one_line, program.lines())
        yield ""
        number = plural(len(self.programs), "programs")
        yield f"Outcomes of {number}, beside Table 27 (20 nodes in one reply, of 100 each)"
        yield from aligned(["Outcome", "n", "%", "95 %", "Qwen", "GPT-5"], list(self._outcome_rows())).split("\n")
        if self.with_reference:
            yield ""
            yield "Structures that are those of the reference, beside Table 2 (NIHSS, of 100 programs each)"
            yield from aligned(["Programs", "n", "%", "95 %"], list(self._structure_rows())).split("\n")

    def _outcomes(self) -> Counter[str]:
        return Counter(
            CORRECT if program.check.fault is None else str(program.check.fault.kind) for program in self.programs
        )

    def _outcome_rows(self) -> Iterator[list[str]]:
        printed = {row[0]: row[1:] for row in paper().tables["27"].rows}
        counts = self._outcomes()
        for kind in (*FaultKind, CORRECT):
            title = OUTCOMES.get(kind, str(kind))
            if counts[kind] or title in printed:
                yield [title, *self._share(counts[kind]), *printed.get(title, ["", ""])]

    def _structure_rows(self) -> Iterator[list[str]]:
        matches = sum(program.difference is not None and program.difference.is_match for program in self.programs)
        yield ["these", *self._share(matches)]
        for method, correct in paper().tables["2"].rows:
            yield [
                f"{method} (paper)",
                correct,
                correct,
                "[{:.0f}, {:.0f}]".format(*_percent_interval(int(correct), 100)),
            ]

    def _share(self, count: int) -> list[str]:
        number = len(self.programs)
        low, high = _percent_interval(count, number)
        return [str(count), f"{100 * count / number:.0f}" if number else "", f"[{low:.0f}, {high:.0f}]"]

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        matches = sum(program.difference is not None and program.difference.is_match for program in self.programs)
        return {
            "programs": [program.to_dict() for program in self.programs],
            "outcomes": dict(self._outcomes()),
            "structures_of_reference": matches if self.with_reference else None,
            "passed": self.passed,
        }


def _percent_interval(count: int, trials: int) -> tuple[float, float]:
    low, high = wilson(count, trials)
    return 100 * low, 100 * high


def check_programs(paths: Sequence[Path], options: CheckOptions) -> ProgramReport:
    """Check every program of files and folders; the programs are parsed, never executed."""
    if options.topology is not None and options.topology not in TOPOLOGIES:
        raise OptionError(f"unknown topology '{options.topology}'; known: {', '.join(TOPOLOGIES)}", "--topology")
    names = _mapped_names(options)
    reference = None if options.reference is None else reference_source(options.reference, options.nodes)
    checked = []
    for path in paths:
        for source in read_programs(path):
            check = check_program(
                source.text,
                num_nodes=source.version if options.nodes is None else options.nodes,
                topology=options.topology or (source.topology if source.topology in TOPOLOGIES else None),
            )
            checked.append(_check_against_reference(source, check, reference, names))
    return ProgramReport(checked, options.reference is not None)


def _mapped_names(options: CheckOptions) -> dict[str, str]:
    names: dict[str, str] = {}
    for pair in options.map:
        name, equals, target = pair.partition("=")
        if not (equals and name and target):
            raise OptionError(f"'{in_one_line(pair)}' is not NAME=REFERENCE_NAME", "--map")
        if name in names:
            raise OptionError(f"{in_one_line(name)} is mapped twice", "--map")
        names[name] = target
    if names and options.reference is None:
        raise OptionError("names are mapped to those of a reference: give --reference", "--map")
    return names


def _check_against_reference(
    source: ProgramSource, check: ProgramCheck, reference: str | None, names: Mapping[str, str]
) -> CheckedProgram:
    if reference is None:
        return CheckedProgram(source.label, check)
    if check.graph is None:
        return CheckedProgram(source.label, check, problem="its equations could not be read")
    try:
        known_names = {name: target for name, target in names.items() if name in check.graph}
        difference = compare_structure(check.graph, _reference_graph(reference), known_names)
    except ModelError as error:
        return CheckedProgram(source.label, check, problem=str(error))
    if check.fault is not None or not difference.is_match:
        return CheckedProgram(source.label, check, difference)
    try:
        sentences = tuple(compare_mechanisms(diagram_nodes(source.text), _reference_nodes(reference), known_names))
    except Unsupported as error:
        sentences = (f"not compared: {error}.",)
    return CheckedProgram(source.label, check, difference, mechanisms=sentences)


def reference_source(reference: str, nodes: int | None) -> str:
    """Return the text of the program in a file that has one, or of the built-in NIHSS.

    nodes: number of nodes of NIHSS; None for all
    """
    if reference == NIHSS:
        return networks.program(nodes or networks.MAX_NODES)
    try:
        sources = list(read_programs(Path(reference)))
        if len(sources) != 1:
            raise CalibrantError(f"{len(sources)} programs; the reference is one")
        graph = _reference_graph(sources[0].text)
    except CalibrantError as error:
        reason = str(error).removeprefix(f"{Path(reference).name}: ")
        raise OptionError(f"{reference}: {reason}", "--reference") from None
    if not graph:
        raise OptionError(f"{reference}: no equations in it", "--reference")
    return sources[0].text


@cache
def _reference_graph(source: str) -> Parents:
    return read_outline(source).graph


@cache
def _reference_nodes(source: str) -> Mapping[str, DiagramNode]:
    return diagram_nodes(source)
