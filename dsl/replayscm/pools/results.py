"""Model results embedded in official files: cut out as text, parsed only when asked for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from dsl.errors import PoolError, shown
from dsl.replayscm.problem import ModelResult
from dsl.yaml_text import load_yaml

_KEY = "modelResults:"


def cut_results(text: str) -> tuple[str, list[str]]:
    """The file without its model results, and the text of each record's results (empty where it has none).

    Works on block-style YAML, which the official files are: a record's block ends at the first line that is not
    indented deeper than its key. Anything else stays in the text and is parsed with it. The cut is right if there are
    as many blocks as records, and if they are self-contained.
    """
    if _KEY not in text:
        return text, []
    kept: list[str] = []
    blocks: list[str] = []
    cut: list[str] | None = None
    indent = -1  # column of the record's keys, known from its first line
    for line in text.split("\n"):  # not splitlines: responses contain other line separators
        stripped = line.lstrip(" ")
        column = len(line) - len(stripped)
        if cut is not None:
            if column > indent or not stripped.strip():
                cut.append(line)
                continue
            blocks[-1] = "\n".join(cut)
            cut = None
        if stripped.startswith("- problem:") and (not blocks or column + 2 == indent):
            indent = column + 2
            blocks.append("")
        elif column == indent and stripped.rstrip() == _KEY:
            kept.append(f"{' ' * column}{_KEY} {{}}")
            cut = []
            continue
        kept.append(line)
    if cut is not None:
        blocks[-1] = "\n".join(cut)
    return "\n".join(kept), blocks


_ANCHOR = re.compile(r"&(?<=[\s\[,{]&)([^\s\[\]{},]+)")
_ALIAS = re.compile(r"\*(?<=[\s\[,{]\*)([^\s\[\]{},]+)")


def are_self_contained(blocks: Iterable[str], text: str) -> bool:
    """Whether no block holds an alias of an anchor that stands elsewhere in the text; False in doubt."""
    anchors = set(_ANCHOR.findall(text))
    if not anchors:
        return True
    return all(anchors.isdisjoint({*_ALIAS.findall(block)} - {*_ANCHOR.findall(block)}) for block in blocks)


class EmbeddedResults:
    """Results of one record, as YAML text or as the mapping it parses to; a value that can be sent to a worker."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._mapping: Mapping[Any, Any] | None = None

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, Any]) -> EmbeddedResults:
        made = cls("")
        made._mapping = mapping
        return made

    def __call__(self) -> tuple[ModelResult, ...]:
        """The results in file order; `PoolError` if they are not what the format says."""
        if self._mapping is None:
            self._mapping = load_yaml(f"{_KEY}\n{self._text}")["modelResults"] or {}
        if not isinstance(self._mapping, Mapping):
            raise PoolError("expected a mapping from model to result", field="modelResults")
        results = self._mapping.items()
        return tuple(_result(model if isinstance(model, str) else shown(model), raw) for model, raw in results)


VERDICT = ("valid", "correct")  # what a result says of itself, beside its evaluation


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
