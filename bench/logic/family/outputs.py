"""Outputs of `calibrant family`: JSON record, files, and lines of the terminal."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from calibrant.audits.why import listed, number_text
from calibrant.bench.logic.family import words
from calibrant.bench.logic.why import family_page
from calibrant.bench.terminal import NextCommand
from calibrant.dsl.atomic_write import write_atomically, write_pieces
from calibrant.dsl.errors import CalibrantError, MissingExtraError, require_extra
from calibrant.dsl.logic.files.midas import Dataset
from calibrant.dsl.logic.files.networks import bnet_text, networks_pieces
from calibrant.dsl.logic.item import Clause, LogicItem, Model, Task, model_size, model_texts, node_names
from calibrant.dsl.logic.records import write_pool
from calibrant.dsl.logic.reference import misfit
from calibrant.dsl.text import plural
from calibrant.solvers.logic import family as logic_family
from calibrant.solvers.logic.comparison import Comparison, Judgement, Overclaim, network_clamps
from calibrant.solvers.logic.elimination.lattice import LatticeLimitError
from calibrant.solvers.logic.sums import Predictions, find_done

if TYPE_CHECKING:
    from calibrant.audits.claims import Certificate


# --- A counted family and the audit of a list, ready for JSON ---------------------------------------------------------


def counted_record(counted: words.Counted) -> dict[str, Any]:
    """Return a counted family, ready for JSON; numbers of members, which may exceed 2**53, are decimal strings."""
    record: dict[str, Any] = {
        "data": {
            "prior": counted.prior.name,
            "measurements": counted.data.name,
            **use_record(counted.dataset),
            "stimuli": list(counted.task.setup.stimuli),
            "inhibitors": list(counted.task.setup.inhibitors),
            "readouts": list(counted.task.setup.readouts),
            "conditions": [experiment.text(counted.task.setup) for experiment in counted.task.experiments],
        },
        **logic_family.family_record(counted.family, counted.ranking.best),
        "merged_nodes": sorted(counted.task.merged_nodes),
        "notes": list(counted.notes),
        "models_of_class": None if counted.total is None else str(counted.total),
        "members_of_whole_family": str(counted.whole.count),
        "candidates": counted.ranking.num_candidates,
        "next_not_computed": counted.ranking.reason or None,
    }
    repeat, predictions = counted.ranking.repeat, counted.ranking.predictions
    if predictions is not None:
        record["predictions"] = list(_predictions(counted.task, predictions))
    record.setdefault("next", None)
    if repeat is not None:
        record["repeat"] = repeat.to_dict()
    if counted.members is not None:
        record["listed" if not counted.members.is_drawn else "drawn"] = [
            member_record(model, counted.task) for model in counted.members.models
        ]
    if counted.comparison is not None:
        record["comparison"] = comparison_record(counted.comparison)
    if counted.judgement is not None:
        record["model"] = judgement_record(counted.judgement)
    return record


def judgement_record(judgement: Judgement) -> dict[str, Any]:
    """Return the judgement of another tool's network, ready for JSON."""
    prediction, functions = judgement.prediction, judgement.functions
    record: dict[str, Any] = {
        "member": judgement.is_member,
        "reason": judgement.reason or None,
        "detail": judgement.detail or None,
        "zero": list(judgement.zero),
        "ignored": list(judgement.ignored),
        "substituted": list(judgement.substituted),
        "left_out": list(judgement.left_out),
        "lacks": msgspec.to_builtins(judgement.lacks),
        "cycle": [edge._asdict() for edge in judgement.cycle],
        "reached": judgement.reached,
    }
    if prediction is None or functions is None:
        return record
    return record | {
        "functions": {name: {"inputs": list(f.inputs), "table": f.table} for name, f in functions.items()},
        "predicted": list(prediction.answers),
        "misfit": prediction.misfit,
        "mse": prediction.mse,
        "differs": None if prediction.differs is None else [list(cell) for cell in prediction.differs],
        "size": judgement.size,
        "model": None if judgement.model is None else model_texts(judgement.model),
        "formulas": judgement.num_formulas,
        "members": judgement.num_members,
    }


def use_record(dataset: Dataset) -> dict[str, Any]:
    """Return what part of a data file is used, ready for JSON."""
    use = dataset.use
    return {
        "experiments": len(dataset.experiments),
        "rows_in_file": use.num_rows,
        "values": dataset.num_values,
        "values_in_file": use.num_values,
        "time": use.times[0] if len(use.times) == 1 else list(use.times),
        "values_at_other_times": {f"{time:g}": number for time, number in use.other_times},
        "normalise": use.normalisation,
        "ranges": {
            entry.readout: {"measured": list(entry.measured), "normalised": list(entry.normalised)}
            for entry in use.ranges
        },
    }


def _predictions(task: Task, predictions: Predictions) -> Iterator[dict[str, Any]]:
    is_done = find_done(task, predictions.experiments)
    for index, experiment in enumerate(predictions.experiments):
        yield {
            "stimuli": sorted(experiment.on),
            "inhibited": sorted(experiment.inhibited),
            "shares": [float(share) for share in predictions.shares(index)],
            "outcomes": {answers: str(count) for answers, count in predictions.outcomes[index].items()},
            "squares": str(predictions.sum_of_squared_counts(index)),
            "done": is_done[index],
        }


def member_record(model: Model, task: Task) -> dict[str, Any]:
    """Return a model with its misfit and size, ready for JSON."""
    return {"clauses": model_texts(model), "misfit": misfit(model, task), "size": model_size(model)}


def comparison_record(comparison: Comparison) -> dict[str, Any]:
    """Return the audit of a list, ready for JSON; models are numbered from 0 in its order."""
    outside = [
        {"model": entry.number, "rule": entry.rule or "outside the limits", "misfit": entry.misfit, "size": entry.size}
        for entry in (*comparison.outside_class, *comparison.outside_limits)
    ]
    overclaims = [
        {
            "kind": "clause" if isinstance(claim.part, Clause) else "edge",
            "part": str(claim.part),
            "claimed": claim.claimed,
            "members": str(claim.count),
            "witness": model_texts(claim.witness),
        }
        for claim in comparison.overclaims
    ]
    misstatements = [
        {"model": entry.number, "field": entry.field, "stated": entry.stated, "actual": entry.actual}
        for entry in comparison.misstatements
    ]
    clause = comparison.max_difference_clause
    return {
        "listed": comparison.num_listed,
        "distinct": comparison.num_distinct,
        "members": comparison.num_members,
        "share": float(comparison.share),
        "outside": outside,
        "overclaims": overclaims,
        "misstatements": misstatements,
        "unknown_edges": [str(edge) for edge in comparison.unknown_edges],
        "merged_nodes": list(comparison.merged_nodes),
        "max_difference": float(comparison.max_difference),
        "max_difference_clause": None if clause is None else str(clause),
    }


# --- Files of a family: CSV tables, the JSON record, networks for drawing tools, models, certificates, the page -------
MAX_BNET_FILES = 1_000  # one file for each model
MAX_OPEN_CERTIFICATES = 200  # each states a member with an open clause and one without it
ITEM_FILE = "item.jsonl"


def write_outputs(
    counted: words.Counted, *, out: Path | None, html: Path | None, certificates: Path | None
) -> Iterator[str]:
    """Write the requested outputs and yield notes; `CalibrantError` for certificates of a restricted family."""
    if certificates is not None and counted.is_restricted:
        raise CalibrantError("--certificates is about the whole family; leave out --given and --without")
    if out is not None:
        yield from _write_folder(counted, out)
    if html is not None:
        words.require_members(counted.family)
        lines = [*words.data_lines(counted.dataset), *words.merged_lines(counted.task)]
        lines += [f"note      {note}" for note in counted.notes]
        page = family_page(
            counted.family,
            words.item_name(counted.data),
            counted.ranking.predictions,
            counted.ranking.reason,
            lines,
            counted.dataset.value_times,
            audit_text(counted),
        )
        write_atomically(html, page)
        yield f"page written to {html}"
    if certificates is not None:
        yield from _write_certificates(counted, certificates)


def _write_folder(counted: words.Counted, folder: Path) -> Iterator[str]:
    family, task = counted.family, counted.task
    write_atomically(folder / "family.json", json.dumps(counted_record(counted), indent=1) + "\n")
    write_atomically(folder / "spectrum.csv", logic_family.spectrum_csv(family))
    write_atomically(folder / "marginals.csv", logic_family.marginals_csv(family))
    try:
        write_atomically(folder / "predicted.csv", logic_family.predicted_csv(family, counted.dataset.value_times))
    except LatticeLimitError as error:
        yield f"predicted.csv not written: {error}"
    predictions = counted.ranking.predictions
    if predictions is not None:
        write_atomically(folder / "predictions.csv", logic_family.predictions_csv(family, predictions))
        write_atomically(folder / "candidates.csv", logic_family.candidates_csv(family, predictions))
    else:
        yield f"predictions.csv and candidates.csv not written: {counted.ranking.reason or 'no candidate'}"
    write_atomically(folder / "optimum.bnet", _bnet(counted.whole.witness, counted))
    yield from _write_networks(counted, folder)
    if counted.members is not None:
        yield from _write_members(counted, counted.members.models, folder)
    yield f"tables of {plural(len(task.edges), 'edges')} written to {folder}"


def _bnet(model: Model, counted: words.Counted) -> str:
    setup = counted.task.setup
    nodes = node_names(counted.task.edges) - set(setup.stimuli)
    return bnet_text(model, nodes, setup.stimuli)


def _write_networks(counted: words.Counted, folder: Path) -> Iterator[str]:
    try:
        require_extra("graphs", "networkx", "pydot")
    except MissingExtraError as error:
        yield f"union.graphml and union.dot not written: {error}"
        return
    graph, networkx, pydot = counted.family.to_networkx(), import_module("networkx"), import_module("pydot")
    write_pieces(folder / "union.graphml", (f"{line}\n" for line in networkx.generate_graphml(graph)))
    write_atomically(folder / "union.dot", _dot_text(graph, pydot))


def _dot_text(graph: Any, pydot: Any) -> str:
    """Return a graph as DOT: width is the share, open edges are dashed, gates are dots, inhibition ends in a bar."""
    dot = pydot.Dot("union", graph_type="digraph")
    shapes = {"stimulus": "box", "node": "ellipse", "gate": "point"}
    for node, data in graph.nodes(data=True):
        dot.add_node(pydot.Node(_quoted(node), shape=shapes[data["kind"]]))
    for source, target, data in graph.edges(data=True):
        style = {
            "arrowhead": "normal" if data["sign"] == 1 else "tee",
            "penwidth": f"{1 + 3 * data['share']:.2f}",
            "style": "solid" if data["share"] == 1 else "dashed",
            "share": f"{data['share']:.6g}",
            "sign": str(data["sign"]),
        }
        dot.add_edge(pydot.Edge(_quoted(source), _quoted(target), **style))
    return str(dot.to_string())


def _quoted(name: str) -> str:
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _write_members(counted: words.Counted, models: Sequence[Model], folder: Path) -> Iterator[str]:
    task = counted.task
    clauses = sorted(counted.family.clauses())
    write_pieces(folder / "members.csv", networks_pieces(models, clauses))
    write_pieces(
        folder / "members.jsonl",
        (json.dumps(member_record(model, task), ensure_ascii=False) + "\n" for model in models),
    )
    width = len(str(min(len(models), MAX_BNET_FILES)))
    for number, model in enumerate(models[:MAX_BNET_FILES], 1):
        write_atomically(folder / f"members-{number:0{width}}.bnet", _bnet(model, counted))
    if len(models) > MAX_BNET_FILES:
        yield f"the first {MAX_BNET_FILES:,} of {len(models):,} models written as bnet; members.csv has all"


def _write_certificates(counted: words.Counted, folder: Path) -> Iterator[str]:
    """Write the item, and certificates that `calibrant verify` checks against it."""
    item = LogicItem(words.item_name(counted.data), counted.task)
    folder.mkdir(parents=True, exist_ok=True)
    write_pool(folder / ITEM_FILE, item.id, [item])
    num_certificates = 0
    for num_certificates, certificate in enumerate(_certificates(counted), 1):
        content = {"instance": item.id, "certificate": msgspec.to_builtins(certificate)}
        write_atomically(folder / f"{num_certificates:04}.claim.json", json.dumps(content, indent=1) + "\n")
    yield f"{plural(num_certificates, 'certificates')} written to {folder}"


def _certificates(counted: words.Counted) -> Iterator[Certificate]:
    from calibrant.audits.logic.items import (
        better_certificate,
        count_certificate,
        missing_certificate,
        open_certificate,
    )

    family = counted.whole
    yield count_certificate(family, sorted(family.clauses(), key=str))
    open_parts: list[Clause] = sorted(family.open_clauses(), key=str)
    for clause in open_parts[:MAX_OPEN_CERTIFICATES]:
        certificate = open_certificate(family, clause)
        if certificate is not None:
            yield certificate
    if counted.comparison is None:
        return
    models = counted.comparison.models
    missing = missing_certificate(family, models)
    if missing is not None:
        yield missing
    outside = {entry.number for entry in counted.comparison.outside_class}
    fitting = [model for index, model in enumerate(models) if index not in outside]
    best = min(fitting, key=lambda model: misfit(model, counted.task), default=None)
    if best is not None and misfit(best, counted.task) > family.optimum[0]:
        yield better_certificate(family, best)


# --- Audit of another tool's list or model, in words ------------------------------------------------------------------


def audit_text(counted: words.Counted) -> words.AuditText:
    """Return the audit of another tool's models for the page; empty if none were given."""
    judgement = counted.judgement
    lines = [line for entries in audit_lines(counted) for line in entries]
    if not lines or counted.options.listed is None:
        return words.AuditText("")
    heading = f"The {'list' if judgement is None else 'model'} {counted.options.listed.name}"
    return words.AuditText(
        heading, lines, [[" or ".join(text) for text in row] for row in words.model_answers(judgement)]
    )


def audit_lines(counted: words.Counted) -> Iterator[Iterator[str]]:
    """Yield blocks of lines: the judgement of another tool's network, and the comparison of its models."""
    judgement, comparison = counted.judgement, counted.comparison
    if judgement is not None:
        yield judgement_lines(judgement, counted)
    if comparison is not None:
        yield comparison_lines(comparison) if judgement is None else model_lines(comparison)


def judgement_lines(judgement: Judgement, counted: words.Counted) -> Iterator[str]:
    """Yield how a network was adapted to the class, its misfit, and whether it is a member of the family."""
    for names, text in (
        (judgement.lacks.stimuli, "stimuli that the model lacks, so that they change nothing in it"),
        (
            judgement.lacks.inhibitors,
            "inhibited nodes that the model lacks, so that inhibiting them changes nothing in it",
        ),
        (judgement.lacks.readouts, "readouts that the model lacks, predicted 0"),
        (judgement.ignored, "rules of stimuli, which the clamps override"),
        (judgement.zero, "driven by nothing, so 0"),
        (judgement.substituted, "merged and helper nodes, put into those that read them"),
        (judgement.left_out, "left out, for no readout depends on them"),
    ):
        if names:
            yield f"{text}: {listed(names, words.MAX_PRINTED)}"
    prediction = judgement.prediction
    if prediction is None:
        yield from _cycle_lines(judgement, counted)
        return
    least = counted.whole.optimum[0]
    size = "" if judgement.size is None else f", size {judgement.size}"
    limit = judgement.limit[judgement.reason == "size"]
    detail = judgement.detail.replace(" ", " to ") or ("" if limit is None else f"{limit:,}")
    yield (
        f"The model: {_REASONS[judgement.reason].format(detail)}; misfit {prediction.misfit:,}, MSE"
        f" {prediction.mse:.4f}{size}"
    )
    if judgement.num_formulas is not None and judgement.num_members is not None:
        formulas = plural(judgement.num_formulas, "formulas")
        yield f"1 function, {formulas} of the class, {plural(judgement.num_members, 'members')}"
    elif judgement.model is None and prediction.misfit < least:
        yield f"its misfit is below the least of the class, {least:,}: the prior forbids a better model"
    if prediction.differs:
        yield f"measured values that it predicts otherwise than every optimal model: {len(prediction.differs)}"


def _cycle_lines(judgement: Judgement, counted: words.Counted) -> Iterator[str]:
    """Yield the cycle of a network, and commands that show its attractors under the clamps of the experiments."""
    arrows = {"+": "->", "-": "-|", "both": "-?"}
    cycle = "".join(f"{edge.source} {arrows[edge.sign]} " for edge in judgement.cycle) + judgement.cycle[0].source
    yield f"The model: not of the class, whose models have no feedback: it has the cycle {cycle}"
    setup = counted.task.setup
    if judgement.reached is not None:
        yield "so no member; beside what was measured stands what its attractors have: synchronous, from any start"
        yield _reached_words(judgement.reached, counted.task)
    nodes = {*judgement.nodes}
    commands: dict[str, str] = {}  # command line: first experiment with these clamps of the network's nodes
    for experiment in counted.task.experiments:
        clamps = [f"{name}={value}" for name, value in network_clamps(setup, experiment, nodes).items()]
        clamp_option = ("--clamp", ",".join(clamps)) if clamps else ()
        command = NextCommand(("network", counted.options.listed, "--attractors", *clamp_option), "")
        commands.setdefault(command.line, experiment.text(setup))
    yield "the states that it reaches under the clamps of an experiment:"
    for line, text in [*commands.items()][:MAX_COMMANDS]:
        yield f"  {text}: {line}"
    if len(commands) > MAX_COMMANDS:
        yield f"  and {len(commands) - MAX_COMMANDS} more experiments"


def _reached_words(reached: Sequence[Sequence[str]], task: Task) -> str:
    """Return how many measured values occur in all states of the attractors, in some, in none."""
    counts = Counter(
        "none" if str(int(value > 1 / 2)) not in text else "every" if len(text) == 1 else "some"
        for texts, values in zip(reached, task.values, strict=True)
        for text, value in zip(texts, values, strict=True)
        if value is not None
    )
    every, some, none = (counts[word] for word in ("every", "some", "none"))
    return f"measured values (1 above 1/2): {every} that all states of attractors have, {some} some, {none} none"


MAX_COMMANDS = 6  # printed, one for each set of clamps


_REASONS: Final[Mapping[str, str]] = {
    "": "a member",
    "constant": "not of the class, {} is 1 whatever the stimuli",
    "edge": "not of the class, which has no edge from {}",
    "sign": "not of the class, whose edge from {} has another sign",
    "clause": "not of the class, whose clauses are too short for the function of {}",
    "misfit": "no member, its misfit is above {}",
    "size": "no member, its size is above {}",
}


def comparison_lines(comparison: Comparison) -> Iterator[str]:
    """Yield the comparison of another tool's list with the family; models are numbered from 1."""
    num_outside = len(comparison.outside_class) + len(comparison.outside_limits)
    share = words.percent(float(comparison.share))
    yield (
        f"The list: {plural(comparison.num_listed, 'models')}, {comparison.num_distinct} different;"
        f" members among them: {comparison.num_members}, {share} of the family; others: {num_outside}"
    )
    if comparison.merged_nodes:
        yield f"merged in the list as in the prior: {listed(comparison.merged_nodes, words.MAX_PRINTED)}"
    for entry in comparison.outside_class[: words.MAX_PRINTED]:
        yield f"model {entry.number + 1} of the list: not of the class, {entry.rule}"
    for entry in comparison.outside_limits[: words.MAX_PRINTED]:
        yield f"model {entry.number + 1} of the list: misfit {entry.misfit:,}, size {entry.size}: beyond the limits"
    yield from _overclaim_lines(comparison, "the list")
    for wrong in comparison.misstatements[: words.MAX_PRINTED]:
        stated = f"{wrong.field} is {wrong.actual:g}, the list states {wrong.stated:g}"
        yield f"model {wrong.number + 1} of the list: {stated}"
    if comparison.unknown_edges:
        edges = listed([words.edge_words(edge) for edge in comparison.unknown_edges])
        yield f"edges that the class lacks: {edges}"
    if comparison.max_difference_clause is not None:
        difference = words.percent(float(comparison.max_difference))
        yield f"largest difference of a frequency: {difference}, of {comparison.max_difference_clause}"


def model_lines(comparison: Comparison) -> Iterator[str]:
    """Yield whether a single model is a member, and what it has or lacks that members disagree on."""
    share = words.percent(float(comparison.share))
    if comparison.num_members:
        yield f"The model beside all members: it is one of them, {share} of the family"
    else:
        yield "The model beside all members: it is none of them"
    yield from _overclaim_lines(comparison, "the model")


def _overclaim_lines(comparison: Comparison, name: str) -> Iterator[str]:
    for claim in comparison.overclaims[: words.MAX_PRINTED]:
        yield _overclaim(claim, name)
    if len(comparison.overclaims) > words.MAX_PRINTED:
        yield f"and {len(comparison.overclaims) - words.MAX_PRINTED} more that {name} calls certain; --json has all"


def _overclaim(claim: Overclaim, name: str) -> str:
    part = f"clause {claim.part}" if isinstance(claim.part, Clause) else f"edge {words.edge_words(claim.part)}"
    members = "1 member has it" if claim.count == 1 else f"{number_text(claim.count)} members have it"
    if name == "the model":
        return f"{part}: {name} {'has' if claim.claimed == 'always' else 'lacks'} it, {members}"
    return f"{part}: in {'every model' if claim.claimed == 'always' else 'no model'} of {name}, but {members}"


# --- Output of `calibrant family` for counted families, and for data whose models are too many to count ---------------


@dataclass(frozen=True)
class PresentedFamily:
    """Implements CountedFamily (bench.pools.capabilities)."""

    counted: words.Counted

    @property
    def is_counted(self) -> bool:
        return True

    def lines(self, *, ranks_candidates: bool) -> Iterator[str]:
        counted, judgement = self.counted, self.counted.judgement
        yield from words.family_lines(counted, ranks_candidates=ranks_candidates)
        if not counted.family.count:
            return
        for lines in audit_lines(counted):
            yield ""
            yield from lines
        if judgement is not None and words.model_answers(judgement):
            yield ""
            yield from words.answer_lines(judgement, counted.task)

    def to_dict(self) -> dict[str, Any]:
        return counted_record(self.counted)

    def failures(self, kinds: Sequence[str]) -> Sequence[str]:
        comparison, judgement = self.counted.comparison, self.counted.judgement
        failures = []
        if judgement is not None and judgement.model is None and "outside" in kinds:
            failures.append(
                f"outside: the model is none of the class ({judgement.reason} {judgement.detail}".rstrip() + ")"
            )
        if comparison is None:
            return failures
        certain = [claim for claim in comparison.overclaims if claim.claimed == "always"]
        if "overclaimed" in kinds and certain:
            names = ", ".join(str(claim.part) for claim in certain[:3]) + (", ..." if len(certain) > 3 else "")
            failures.append(f"overclaimed: {len(certain)} that the list has always and the family has not ({names})")
        if "missing" in kinds and comparison.num_members < self.counted.family.count:
            failures.append(
                f"missing: the list has {comparison.num_members:,} of {self.counted.family.count:,} members"
            )
        num_outside = len(comparison.outside_class) + len(comparison.outside_limits)
        if "outside" in kinds and num_outside:
            failures.append(
                f"outside: {num_outside} of {plural(comparison.num_listed, 'models')} of the list are no members"
            )
        return failures

    def write(self, *, out: Path | None, html: Path | None, certificates: Path | None) -> Iterator[str]:
        return write_outputs(self.counted, out=out, html=html, certificates=certificates)


@dataclass(frozen=True)
class Uncounted:
    """Implements CountedFamily for models that are too many to count; reached: why and where the count stopped."""

    reached: str

    @property
    def is_counted(self) -> bool:
        return False

    def lines(self, *, ranks_candidates: bool) -> Iterator[str]:
        yield f"not counted: {self.reached}"

    def to_dict(self) -> dict[str, Any]:
        return {"out_of_budget": self.reached}

    def failures(self, kinds: Sequence[str]) -> Sequence[str]:
        return ()

    def write(self, *, out: Path | None, html: Path | None, certificates: Path | None) -> Iterator[str]:
        if out or html or certificates:
            yield "nothing written: the models were not counted"


@dataclass(frozen=True)
class UncountedFamily(Uncounted):
    """An uncounted family of MIDAS data; notes: remarks on how these were read."""

    dataset: Dataset
    notes: tuple[str, ...]

    def lines(self, *, ranks_candidates: bool) -> Iterator[str]:
        yield from words.data_lines(self.dataset)
        yield from super().lines(ranks_candidates=ranks_candidates)
        for note in self.notes:
            yield f"note  {note}"

    def to_dict(self) -> dict[str, Any]:
        return {"data": use_record(self.dataset)} | super().to_dict() | {"notes": list(self.notes)}
