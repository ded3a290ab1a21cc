"""Lines of `calibrant score`: what all benchmarks share around the fields of a score."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import pytest
from msgspec import Meta, Struct

from calibrant.bench.core.registry import benchmarks
from calibrant.bench.core.verdict import line_struct

HEAD = ["benchmark", "instanceId", "model", "sample"]
TAIL = ["pool", "poolDigest", "poolSize", "setting", "stratum", "seconds"]


class Fields(Struct, kw_only=True, rename={"kind": "class"}):
    """A score."""

    kind: Annotated[str, Meta(description="a word")]
    size: Annotated[int, Meta(description="a number")] = 0


LINE = line_struct("Line", "chess", Fields, "A line.", problem=Annotated[str, Meta(description="why not")])


def test_a_line_has_the_fields_of_the_score_between_those_of_all() -> None:
    assert [field.encode_name for field in msgspec.structs.fields(LINE)] == [*HEAD, "class", "size", "problem", *TAIL]
    assert LINE.__doc__ == "A line."
    schema = msgspec.json.schema(LINE)["$defs"]["Line"]
    assert all(value["description"] for value in schema["properties"].values())
    assert "size" not in schema["required"]


def test_a_line_is_read_strictly() -> None:
    where: dict[str, Any] = {
        "pool": "p",
        "poolDigest": "d",
        "poolSize": 1,
        "setting": "s",
        "stratum": "",
        "seconds": None,
    }
    line = {"benchmark": "chess", "instanceId": "i", "model": None, "sample": 0, "class": "k", "problem": ""} | where
    assert msgspec.to_builtins(msgspec.convert(line, LINE, strict=True)) == line | {"size": 0}
    for wrong in ({"benchmark": "go"}, {"kind": "k"}, {"sample": "0"}, {"size": None}):
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert(line | wrong, LINE, strict=True)


@pytest.mark.parametrize("benchmark", benchmarks(), ids=lambda benchmark: benchmark.name)
def test_every_benchmark_says_where_an_answer_belongs(benchmark: Any) -> None:
    keys = [field.encode_name for field in msgspec.structs.fields(benchmark.scoring.verdict_record)]
    assert {*HEAD[1:], *TAIL} <= {*keys}
    assert benchmark.name == "replayscm" or (keys[: len(HEAD)], keys[-len(TAIL) :]) == (HEAD, TAIL)
