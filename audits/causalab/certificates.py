"""Findings that come with a certificate, and the evidence that a certificate is about."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from audits.claims import Certificate
from audits.finding import Finding
from dsl.causalab.episode import LabStep
from dsl.causalab.item import LabItem, Task
from dsl.causalab.mechanism import Mechanism

UNWINNABLE = "causalab-unwinnable"
CANNOT_MATTER = "causalab-edges-cannot-matter"
FREQUENCY_DECIDED = "causalab-frequency-decided"
GRAPH_DECIDED = "causalab-graph-decided"
AMBIGUOUS = "causalab-ambiguous"
NOT_A_MEAN = "causalab-not-a-mean"


@dataclass(frozen=True)
class Claimed:
    """A finding, with its certificate and the evidence of that if there is one."""

    finding: Finding
    certificate: Certificate | None = None
    evidence: Mapping[str, Any] | None = None


def evidence_record(task: Task, steps: Iterable[LabStep] = ()) -> dict[str, Any]:
    """What was shown and read, as JSON: all that a claim about members is about."""
    return {
        "properties": list(task.properties),
        "freq_parent": task.freq_parent,
        "reading": task.reading.value,
        "records": [dict(record) for record in task.records],
        "trace": [{"values": dict(t.values), "set": t.property, "value": t.value} for t in task.trace],
        "baseline": dict(task.baseline),
        "reactor": dict(task.reactor),
        "settings": [
            {"set": step.action["set"], "value": step.action["value"], "values": dict(step.reading)}
            for step in steps
            if "set" in step.action and step.reading is not None
        ],
    }


def sealed_record(item: LabItem) -> dict[str, Any]:
    """The sealed part that a claim about the item itself is about."""
    return {
        "equations": equations_record(item.sealed.mechanism),
        "reactor_bases": dict(item.sealed.bases.reactor),
        "shown": sorted(item.task.reactor),
        "tries": item.task.tries,
    }


def equations_record(mechanism: Mechanism) -> dict[str, Any]:
    """A mechanism as JSON: node -> base (the frequency's) and terms."""
    return {
        node: {"base": e.base, "terms": [[term.parent, term.power, term.weight] for term in sorted(e.terms)]}
        for node, e in sorted(mechanism.equations.items())
    }
