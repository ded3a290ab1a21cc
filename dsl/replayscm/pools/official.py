"""The benchmark's official runtime YAML: its pool files, its records, and the model results in them; read only.

Sizes and SHA-256 digests are those of the frozen release; settings are the labels of the paper's Table A.1.

Each record is converted to a native one, whose checks are in dsl.replayscm.pools.records; here are only the
checks of official fields against each other.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from calibrant.dsl.errors import PoolError, short_repr
from calibrant.dsl.formulas.formula import STANDARD_OPERATORS
from calibrant.dsl.replayscm.item import ModelResult, Problem, TaskKind
from calibrant.dsl.replayscm.pools import records

# --- The benchmark's official pool files: digests, and settings in published tables -----------------------------------


class OfficialFile(NamedTuple):
    """One file of the release; settings that end in -CEx are of counterexample audit pools."""

    name: str
    num_bytes: int
    digest: str
    setting: str


OFFICIAL_FILES = (
    OfficialFile(
        "cind_a_scm_benchmark240_final_v1.runtime.yaml",
        82955433,
        "c7f37486bf1cd9524bb6d82e293c32caa029a2f9351272ade71e27d77fa69817",
        "Ord-Full",
    ),
    OfficialFile(
        "cind_a_scm_ntopo_benchmark240_final_v1.runtime.yaml",
        85967736,
        "acee26065448c3a2d0d6344b7ead8d385a7c96b1311e9dcc0384655ffc10b47c",
        "Hid-Full",
    ),
    OfficialFile(
        "cind_a_scm_paired50_partial_order_mixed25_2block25_3block_v3.runtime.yaml",
        37546204,
        "ed07cda18084d8a407695196c730094101f766616bb56358289ae3eb47c9d3b9",
        "Block",
    ),
    OfficialFile(
        "cind_a_scm_root_unknown_paired90_ntopo_v1.runtime.yaml",
        33993918,
        "c5a9d06eb396a8ba22a904ef2cf6c0d1a71bbb25736c9e3369f6ec65c0430f2b",
        "Hid-Roots",
    ),
    OfficialFile(
        "cind_a_scm_alt_exp_paired50_ordered_v1.runtime.yaml",
        36571614,
        "0fcd5433d5879e4d582ed273227604d5088eb15444c0369cd80e8e8d5283b76d",
        "Alt-Ord",
    ),
    OfficialFile(
        "cind_a_scm_alt_exp_paired50_ntopo_v1.runtime.yaml",
        38211811,
        "3633006bd5e8c1ea8a1cdce4b774f20f21f695567f17db3ba5367b07a7b204ae",
        "Alt-Hid",
    ),
    OfficialFile(
        "cind_a_scm_ident_audit_ordered_pairs100_v1.runtime.yaml",
        34423348,
        "28c651fb754c7bee379beb2183714e37e7ec5fd4661b8f0c8435b09d72b808ed",
        "Ord-Ext",
    ),
    OfficialFile(
        "cind_a_scm_ident_audit_ntopo_pairs100_v1.runtime.yaml",
        34411076,
        "edc5229f12ff9cc6dccec1ef9c12333237eb6a29bd8d626115d64414323d51ae",
        "Hid-Ext",
    ),
    OfficialFile(
        "cind_a_scm_ident_counterexample_ordered_pairs100_v5.runtime.yaml",
        39121817,
        "f94e3dc6b97c7c15148f7bf192b2a9844dafc5f717f12cfc2dac367ab51f7ff0",
        "Ord-CEx",
    ),
    OfficialFile(
        "cind_a_scm_ident_counterexample_ntopo_pairs100_v5.runtime.yaml",
        36113617,
        "efe9667c2c477cb938216e947d1f371bb6908904e0bed97701cc7a75f710dc28",
        "Hid-CEx",
    ),
)

BY_DIGEST: Mapping[str, OfficialFile] = {file.digest: file for file in OFFICIAL_FILES}
BY_NAME: Mapping[str, OfficialFile] = {file.name: file for file in OFFICIAL_FILES}


def table_setting(digest: str, setting: str) -> str:
    """Return the setting of a pool in tables: the published one for an official file, else `setting`."""
    return BY_DIGEST[digest].setting if digest in BY_DIGEST else setting


PAIR_SUFFIXES = ("__ALT_EXP", "__ROOT_UNKNOWN", "__PARTIAL_ORDER_2BLOCK", "__PARTIAL_ORDER_3BLOCK")


def latent_of(instance: str) -> str:
    """Return the id of the latent SCM by the release's naming: an instance's id without the suffixes of its variant."""
    for suffix in PAIR_SUFFIXES:
        instance = instance.removesuffix(suffix)
    return instance


# --- Model results embedded in official files: cut out as text, parsed only when asked for ----------------------------
_KEY = "modelResults:"


def cut_results(text: str) -> tuple[str, ResultsCut]:
    """Return the file without its model results, and what was cut out of it."""
    cut = ResultsCut()
    if _KEY not in text:
        return text, cut
    return "\n".join(cut.remove_results(text.split("\n"))), cut


class ResultsCut:
    """Removes model results from the lines of a file, and collects them.

    Works on block-style YAML, which the official files are: a record's block ends at the first line that is not
    indented deeper than its key. Anything else stays in the text and is parsed with it. The cut is valid if there are
    as many blocks as records, and none has an alias of an anchor outside of it.

    blocks: text of each record's results, empty without any; complete up to the last yielded line
    is_whole: whether no line was removed so far
    """

    def __init__(self) -> None:
        self.blocks: list[str] = []
        self.is_whole = True
        self._anchors: set[str] = set()
        self._foreign_aliases: set[str] = set()  # aliases in blocks that have no such anchor

    def remove_results(self, lines: Iterable[str]) -> Iterator[str]:
        """Yield the other lines."""
        cut: list[str] | None = None
        indent = -1  # column of the record's keys, known from its first line
        for line in lines:  # split at line feeds only: responses contain other separators
            stripped = line.lstrip(" ")
            column = len(line) - len(stripped)
            if cut is not None:
                if column > indent or not stripped.strip():
                    cut.append(line)
                    continue
                self._store_block("\n".join(cut))
                cut = None
            if "&" in line:
                self._anchors.update(_ANCHOR.findall(f"\n{line}"))
            if stripped.startswith("- problem:") and (not self.blocks or column + 2 == indent):
                indent = column + 2
                self.blocks.append("")
            elif column == indent and stripped.rstrip() == _KEY:
                self.is_whole = False
                cut = []
                yield f"{' ' * column}{_KEY} {{}}"
                continue
            yield line
        if cut is not None:
            self._store_block("\n".join(cut))

    def _store_block(self, block: str) -> None:
        self.blocks[-1] = block
        block_anchors = set(_ANCHOR.findall(block)) if "&" in block else set()
        self._anchors |= block_anchors
        if "*" in block:
            self._foreign_aliases.update(set(_ALIAS.findall(block)) - block_anchors)

    def take(self, record: int) -> str:
        """Return and forget the block of a record; empty if there is none."""
        if record >= len(self.blocks):
            return ""
        block, self.blocks[record] = self.blocks[record], ""
        return block

    @property
    def are_self_contained(self) -> bool:
        """Whether no alias refers across a block's border; may be False where none does."""
        return self._anchors.isdisjoint(self._foreign_aliases)


_ANCHOR = re.compile(r"&(?<=[\s\[,{]&)([^\s\[\]{},]+)")
_ALIAS = re.compile(r"\*(?<=[\s\[,{]\*)([^\s\[\]{},]+)")


class EmbeddedResults:
    """Results of one record, as YAML text or as the parsed mapping; picklable."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._mapping: Mapping[Any, Any] | None = None

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, Any]) -> EmbeddedResults:
        results = cls("")
        results._mapping = mapping
        return results

    def __call__(self) -> tuple[ModelResult, ...]:
        """Return the results in file order; `PoolError` if they break the format."""
        if self._mapping is None:
            from calibrant.dsl.yaml_text import load_yaml  # 12 ms, which scoring need not wait for

            self._mapping = load_yaml(f"{_KEY}\n{self._text}")["modelResults"] or {}
        if not isinstance(self._mapping, Mapping):
            raise PoolError("expected a mapping from model to result", field="modelResults")
        results = self._mapping.items()
        return tuple(_result(model if isinstance(model, str) else short_repr(model), raw) for model, raw in results)

    def as_text(self) -> str:
        """Return the results as YAML; errors of the YAML writer are raised as they are."""
        if not self._text:
            import yaml

            text: str = yaml.dump({_KEY[:-1]: self._mapping}, Dumper=yaml.CSafeDumper, sort_keys=False)
            self._text = text.partition("\n")[2]
        return self._text


VERDICT = ("valid", "correct")  # keys of a result beside its evaluation


def _result(model: str, raw: Any) -> ModelResult:
    if not isinstance(raw, Mapping):
        raise PoolError("expected a mapping", field=f"modelResults.{model}")
    response = raw.get("rawResponse")
    evaluation = raw.get("evaluation")
    if evaluation is not None and not isinstance(evaluation, Mapping):
        raise PoolError("expected a mapping", field=f"modelResults.{model}.evaluation")
    return ModelResult(
        model,
        response if isinstance(response, str) else None,
        raw.get("extractedAnswer"),
        evaluation or {},
        {key: raw[key] for key in VERDICT if key in raw},
    )


# --- Records of the benchmark's official runtime YAML (compact binary rows, or expanded rows): read only --------------
ORDERED_VARIANTS = frozenset({"with_topological_order"})
BLOCK_VARIANTS = frozenset({"partial_topological_order", "partial_order", "partial_topo"})
HIDDEN_VARIANTS = frozenset(
    {"no_topological_order", "ntopo", "no_topo", "unknown_topological_order", "blind_topological_order"}
)
WORLD_FIELDS = {"worldId", "observationMode", "split", "envProfile", "rows", "rowsVerbose", "extra"}
WORLD_FIELDS |= {"intervention", "interventions", "interventionSummary"}
WORLD_FIELDS |= {"domain", "domainSize", "predicates", "events", "targetLabels"}
SUMMARY_FIELDS = {"do", "interventionMode", "InterventionMode", "InterventionTargetsAssigned"}
SUMMARY_FIELDS |= {"InterventionTargetsConstant", "InterventionTargetsAll"}
OWN_LABELS = "calibrantLabels"  # all labels, in files that Calibrant wrote, if they are not those of `_labels`


def problem_from_official(raw: Any, index: int) -> Problem:
    """Return the problem of one official record, as parsed from YAML; `index` names records without an id in errors."""
    return OfficialRecord(raw, index).problem


class OfficialRecord:
    """One official record, as parsed from YAML; `PoolError` with the instance if it is invalid.

    problem: the record's problem; native: its record in the native format, without the stored results
    results: those that it holds, or the given ones in their place
    """

    def __init__(self, raw: Any, index: int, results: records.Results | None = None) -> None:
        record = records.Fields(raw, "record")
        problem = record.child("problem")
        instance = problem.get("instanceId")
        with records.error_location(instance=instance[:120] if isinstance(instance, str) else f"record {index}"):
            self.native = _native(record, problem)
            stored = record.mapping("modelResults", {})
            self.results = EmbeddedResults.from_mapping(stored) if stored and results is None else results
            self.problem = records.problem_from_record(self.native, self.results)


def _native(record: records.Fields, problem: records.Fields) -> records.ProblemRecord:
    signature, task, gold = problem.child("signature"), problem.child("task"), problem.child("goldAnswer")
    parameters, gold_scm = task.child("parameters"), gold.child("scm")
    variables = signature.names("variables")
    _require_same_names(set(parameters.names("variables", variables)), set(variables), "task.parameters.variables")
    if not _is_binary(signature.get("domains", "binary"), variables):
        raise PoolError(
            f"only binary variables are supported, not {short_repr(signature.get('domains'))}", field="domains"
        )
    roots = parameters.names("rootVariables", signature.names("rootVariables", gold_scm.names("rootVariables", [])))
    endogenous = parameters.names("endogenousVariables", [v for v in variables if v not in roots])
    if set(roots) & set(endogenous) or set(roots) | set(endogenous) != set(variables):
        raise PoolError("roots and endogenous variables do not partition the variables", field="rootVariables")
    kind = task.text("taskName")
    units = problem.names("panelUnits", [])
    worlds = [_World(records.Fields(raw, "worlds"), variables, units) for raw in problem.sequence("worlds")]
    order = parameters.names("topologicalOrder", signature.names("topologicalOrder", variables))
    sealed = records.SealedRecord(
        heldout=[world.record for world in worlds if not world.is_training],
        gold=gold_scm.texts("mechanisms", None),
        gold_size=gold_scm.integer("totalAst", None),
        latent_order=order,
        max_predecessors=parameters.integer("maxPredecessorsPerMechanism", None),
        budget_deltas=parameters.integers("budgetDeltas", [0, 10, 25]),
        labels=_labels(record, problem, parameters),
    )
    if not units and worlds:
        units = worlds[0].record.units or []
    return records.ProblemRecord(
        id=problem.text("instanceId"),
        kind=kind,
        variables=variables,
        units=units,
        disclosure=_disclosure(kind, parameters, roots, order),
        training=[world.record for world in worlds if world.is_training],
        sealed=sealed,
        operators=[name.strip() for name in parameters.names("allowedOperators", list(STANDARD_OPERATORS))],
        allow_constants=parameters.flag("allowConstants", True),
        shares_units=signature.flag("PanelSemantics", parameters.flag("PanelSemantics", False)),
        reference=gold.child("scm_alt_exp").texts("referenceMechanisms", None) if kind == _ALTERNATIVE else None,
    )


_ALTERNATIVE = TaskKind.ALTERNATIVE.value


def _require_same_names(names: set[str], signature_names: set[str], field: str) -> None:
    if names != signature_names:
        raise PoolError(
            f"differs from signature.variables in {', '.join(sorted(names ^ signature_names))}", field=field
        )


def _is_binary(domains: Any, variables: list[str]) -> bool:
    return bool(domains == "binary" or domains == {variable: [0, 1] for variable in variables})


def _disclosure(kind: str, parameters: records.Fields, roots: list[str], order: list[str]) -> records.DisclosureRecord:
    variant = parameters.text("scmPromptVariant", "with_topological_order")
    if kind == TaskKind.ROOTS.value:
        return records.HiddenRootsRecord(root_count=parameters.integer("rootCount", None) or len(roots))
    if variant in BLOCK_VARIANTS:
        return records.BlocksRecord(blocks=parameters.name_lists("topologicalLayers"), roots=roots)
    if variant in HIDDEN_VARIANTS:
        return records.HiddenOrderRecord(roots=roots)
    if variant in ORDERED_VARIANTS:
        return records.OrderedRecord(order=order, roots=roots)
    known_variants = ", ".join(sorted(ORDERED_VARIANTS | BLOCK_VARIANTS | HIDDEN_VARIANTS))
    raise PoolError(f"unknown variant {short_repr(variant)}; known: {known_variants}", field="scmPromptVariant")


def _labels(record: records.Fields, problem: records.Fields, parameters: records.Fields) -> dict[str, str]:
    description = record.child("problemDescription")
    extra = description.child("extra")
    native_labels = extra.texts(OWN_LABELS, None)
    if native_labels is not None:
        return native_labels
    labels = {
        "stratum": record.get("subslice") or problem.get("subslice") or parameters.get("difficulty"),
        "difficulty": parameters.get("difficulty"),
        "seed": description.get("seed"),
        "latent": extra.get("pairedSourceInstanceId") or latent_of(problem.text("instanceId")),
        "alternative_sources": _alternative_sources(problem),
        "kill_coverage": _kill_coverage(extra),
    }
    return {
        name: value if isinstance(value, str) else short_repr(value)
        for name, value in labels.items()
        if value is not None
    }


def _alternative_sources(problem: records.Fields) -> str | None:
    """Return, as a JSON list, the models that gave the known alternative of an Alternative-SCM record, or None."""
    pair = problem.child("goldAnswer").child("scm_alt_exp")
    entries = pair.get("alternativeSupport")
    if not isinstance(entries, list):
        return None
    models = {entry.get("model") for entry in entries if isinstance(entry, dict)}
    return json.dumps(sorted(model for model in models if isinstance(model, str)))


def _kill_coverage(extra: records.Fields) -> str | None:
    """Return the share of variables with a shortcut that generation ruled out, as the record states it."""
    diagnostics = extra.get("generationDiagnostics")
    ratio = diagnostics.get("kill_coverage_ratio") if isinstance(diagnostics, dict) else None
    if isinstance(ratio, bool) or not isinstance(ratio, int | float) or not 0 <= ratio <= 1:
        return None
    return repr(float(ratio))


class _World:
    """One world of an official record: its native record, and whether it is a training world."""

    def __init__(self, raw: records.Fields, variables: list[str], units: list[str]) -> None:
        raw.only(WORLD_FIELDS)
        self.id = raw.text("worldId")
        with records.error_location(field=f"worlds[{short_repr(self.id)}]"):
            extra = raw.child("extra")
            split = raw.get("split", extra.get("split"))
            if split not in (None, "train", "heldout"):
                raise PoolError(f"split {short_repr(split)}; known: train, heldout", field="split")
            heldout = split == "heldout" or (split is None and self.id.startswith(("heldout", "test")))
            self.is_training = not heldout
            mode = raw.get("observationMode", "panel_full")
            if mode != "panel_full":
                raise PoolError(
                    f"unknown observation mode {short_repr(mode)}; known: panel_full", field="observationMode"
                )
            rows, own_units = _rows(raw, extra, variables, units)
            constants, assigned = _intervention(raw, extra)
            environment = raw.levels("envProfile") or extra.levels("envProfile")
            self.record = records.WorldRecord(self.id, rows, constants, assigned, own_units, environment)


def _rows(
    raw: records.Fields, extra: records.Fields, variables: list[str], units: list[str]
) -> tuple[list[str], list[str] | None]:
    """Return row strings in `variables` order, and unit ids if the world has its own, else None."""
    compact = raw.get("rows")
    verbose = raw.get("rowsVerbose", extra.get("rows"))
    if (compact is None) == (verbose is None):
        raise PoolError("exactly one of compact rows and expanded rows is needed", field="rows")
    domain = raw.names("domain", units)
    if domain and raw.integer("domainSize", None) not in (None, len(domain)):
        raise PoolError(f"differs from the {len(domain)} units", field="domainSize")
    if compact is not None:
        rows = raw.sequence("rows")
        for index, row in enumerate(rows):
            if not isinstance(row, str):
                raise PoolError(f"row {index} is {short_repr(row)}, not a quoted string of 0 and 1", field="rows")
        return rows, domain if domain != units else None
    rows, unit_ids = [], []
    for index, item in enumerate(verbose if isinstance(verbose, list) else [verbose]):
        row = records.Fields(item, f"rows[{index}]")
        values = row.mapping("values")
        if set(values) != set(variables) or any(type(bit) is not int or bit not in (0, 1) for bit in values.values()):
            raise PoolError(f"row {index} does not give every variable a bit", field="rows")
        rows.append("".join(str(values[v]) for v in variables))
        unit_ids.append(row.text("unitId"))
    if "domain" in raw and unit_ids != domain:
        raise PoolError("the units of the rows are not those of the domain", field="domain")
    return rows, unit_ids if unit_ids != units else None


def _intervention(raw: records.Fields, extra: records.Fields) -> tuple[dict[str, int], list[str]]:
    """Return constants and row-wise targets, from the structured fields if present, else the older entry."""
    summary = raw.child("interventionSummary")
    summary.only(SUMMARY_FIELDS)
    source = summary if "InterventionMode" in summary else extra
    if "InterventionMode" not in source:
        return _older_intervention(raw)
    mode = source.text("InterventionMode")
    constants = source.bits("InterventionTargetsConstant")
    targets = source.names("InterventionTargetsAll", [])
    assigned = [v for v in targets if v not in constants]
    if mode not in ("none", "hard_constant", "hard_assigned"):
        raise PoolError(
            f"unknown mode {short_repr(mode)}; known: none, hard_constant, hard_assigned", field="InterventionMode"
        )
    stated_targets = source.names("InterventionTargetsAssigned", assigned)
    if set(stated_targets) != set(assigned) or not set(constants) <= set(targets) or len(set(targets)) != len(targets):
        raise PoolError("targets are not the constant ones plus the assigned ones", field="InterventionTargetsAll")
    if (mode == "none" and targets) or (mode != "hard_assigned" and assigned):
        raise PoolError(f"mode {mode} does not go with targets {', '.join(targets)}", field="InterventionMode")
    return constants, assigned


def _older_intervention(raw: records.Fields) -> tuple[dict[str, int], list[str]]:
    entries = raw.sequence("interventions") if "interventions" in raw else [raw.get("intervention", {})]
    if len(entries) > 1:
        raise PoolError(f"{len(entries)} interventions in one world; at most one is understood", field="interventions")
    entry = records.Fields(entries[0] if entries else {}, "intervention")
    kind = entry.text("type", "hard_do")
    if kind != "hard_do":
        raise PoolError(f"unknown intervention type {short_repr(kind)}; known: hard_do", field="intervention.type")
    constants = entry.bits("assignments")
    return constants, [v for v in entry.names("targets", []) if v not in constants]
