"""Model results embedded in official files: cut out as text, parsed only when asked for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import yaml

from calibrant.dsl.errors import PoolError, short_repr
from calibrant.dsl.replayscm.problem import ModelResult
from calibrant.dsl.yaml_text import load_yaml

_KEY = "modelResults:"


def cut_results(text: str) -> tuple[str, ResultsCut]:
    """Return the file without its model results, and what was cut out of it."""
    cut = ResultsCut()
    if _KEY not in text:
        return text, cut
    return "\n".join(cut.lean(text.split("\n"))), cut


class ResultsCut:
    """Takes model results out of the lines of a file.

    Works on block-style YAML, which the official files are: a record's block ends at the first line that is not
    indented deeper than its key. Anything else stays in the text and is parsed with it. The cut is right if there are
    as many blocks as records, and none holds an alias of an anchor that stands elsewhere.

    blocks: the text of each record's results, empty where it has none; complete up to the last line that was yielded
    is_whole: no line was left out so far
    """

    def __init__(self) -> None:
        self.blocks: list[str] = []
        self.is_whole = True
        self._anchors: set[str] = set()
        self._foreign: set[str] = set()  # aliases in blocks that have no such anchor

    def lean(self, lines: Iterable[str]) -> Iterator[str]:
        """Yield the other lines."""
        cut: list[str] | None = None
        indent = -1  # column of the record's keys, known from its first line
        for line in lines:  # which end at line feeds alone: responses contain other separators
            stripped = line.lstrip(" ")
            column = len(line) - len(stripped)
            if cut is not None:
                if column > indent or not stripped.strip():
                    cut.append(line)
                    continue
                self._keep("\n".join(cut))
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
            self._keep("\n".join(cut))

    def _keep(self, block: str) -> None:
        self.blocks[-1] = block
        block_anchors = set(_ANCHOR.findall(block)) if "&" in block else set()
        self._anchors |= block_anchors
        if "*" in block:
            self._foreign.update(set(_ALIAS.findall(block)) - block_anchors)

    def take(self, record: int) -> str:
        """Return the block of a record, which is kept no longer; empty if there is no such one."""
        if record >= len(self.blocks):
            return ""
        block, self.blocks[record] = self.blocks[record], ""
        return block

    @property
    def are_self_contained(self) -> bool:
        """Return whether no anchor or alias crosses the border of the blocks; False in doubt."""
        return self._anchors.isdisjoint(self._foreign)


_ANCHOR = re.compile(r"&(?<=[\s\[,{]&)([^\s\[\]{},]+)")
_ALIAS = re.compile(r"\*(?<=[\s\[,{]\*)([^\s\[\]{},]+)")


class EmbeddedResults:
    """Results of one record, as YAML text or as the mapping it parses to; a value that can be sent to a worker."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._mapping: Mapping[Any, Any] | None = None

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, Any]) -> EmbeddedResults:
        results = cls("")
        results._mapping = mapping
        return results

    def __call__(self) -> tuple[ModelResult, ...]:
        """Return the results in file order; `PoolError` if they are not what the format says."""
        if self._mapping is None:
            self._mapping = load_yaml(f"{_KEY}\n{self._text}")["modelResults"] or {}
        if not isinstance(self._mapping, Mapping):
            raise PoolError("expected a mapping from model to result", field="modelResults")
        results = self._mapping.items()
        return tuple(_result(model if isinstance(model, str) else short_repr(model), raw) for model, raw in results)

    def as_text(self) -> str:
        """YAML that says the same; whatever its writer raises if these results do not fit it."""
        if not self._text:
            text: str = yaml.dump({_KEY[:-1]: self._mapping}, Dumper=yaml.CSafeDumper, sort_keys=False)
            self._text = text.partition("\n")[2]
        return self._text


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
