"""`prompts --template`: the bundled templates are our prompts, every field is read, and faults are one line."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

from calibrant.bench.cli import main
from calibrant.bench.core.benchmark import Benchmark, load_benchmark
from calibrant.bench.core.capabilities import PHASES, PROMPT_FIELDS
from calibrant.bench.core.registry import bundled_sample
from calibrant.bench.prompt_template import STANDARD, PromptTemplate
from tests.support.commands import CHECKOUT, refused

POOLS = {
    "replayscm": ("ordered", "block", "hidden_order", "hidden_roots"),
    "blickets": ("blickets",),
    "causalab": ("causalab",),
    "causim": ("causim",),
    "logic": ("logic",),
}
B3 = """{# unused: num_roots, shares_units, num_heldout, allow_constants #}
{% set system %}
Answer with one JSON object.
{%- endset %}
Task: {{ kind }}
ObservedVariables: {{ variables | join(", ") }}
{% if roots is defined %}
RootVariables: {{ roots | join(", ") }}
EndogenousVariables: {{ endogenous | join(", ") }}
{% endif %}
{% if order is defined %}
TopologicalOrder: {{ order | join(", ") }}
{% elif blocks is defined %}
Blocks: {{ blocks | json }}
{% endif %}
AllowedOperators: {{ operators | map(attribute="name") | join(", ") }}
InterventionModes: {{ modes | join(", ") }}
{% for world in worlds %}
WorldId: {{ world.id }}
InterventionMode: {{ world.mode }}
InterventionTargetsAssigned: {{ world.assigned | json }}
InterventionTargetsConstant: {{ world.constants | json }}
Rows:
{% for row in world.rows %}
- {{ row.unit }}:{% for name, value in row.cells.items() %} {{ name }}={{ value }}{% endfor %}

{% endfor %}
{% endfor %}
{{ answer | json }}
"""


def items(benchmark: Benchmark[Any], pool: str) -> list[Any]:
    return list(benchmark.items.read_pool(bundled_sample(pool)).items)


@pytest.mark.parametrize(("name", "pool"), [(name, pool) for name, pools in POOLS.items() for pool in pools])
def test_the_bundled_template_is_the_prompt_by_bytes(name: str, pool: str) -> None:
    benchmark = load_benchmark(name)
    template = PromptTemplate(Path(STANDARD), benchmark.require(PROMPT_FIELDS))
    compared = 0
    for item in items(benchmark, pool):
        messages = benchmark.items.messages(item)
        system, prompt = benchmark.items.system_and_prompt(item)
        expected = [message["content"] for message in messages] if name == "causalab" else [system, prompt]
        assert [*template.render(item.id, item.task)] == expected
        for phase in ("experiment", "reactor") if name == "causalab" else ():
            of_phase = [message["content"] for message in benchmark.require(PHASES)(item, phase)]
            assert [*template.render(item.id, item.task, phase)] == of_phase
        compared += 1
    assert compared >= 6


@pytest.mark.parametrize("pool", POOLS["replayscm"])
def test_a_template_with_the_fields_of_the_papers_prompt_renders_every_disclosure(pool: str, tmp_path: Path) -> None:
    file, out = tmp_path / "b3.j2", tmp_path / "prompts.jsonl"
    file.write_text(B3, encoding="utf-8")
    assert main(["prompts", str(bundled_sample(pool)), "--template", str(file), "--out", str(out)]) == 0
    lines = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    problems = items(load_benchmark("replayscm"), pool)
    assert len(lines) == len(problems) >= 6
    for line, problem in zip(lines, problems, strict=True):
        assert line["system"] == "Answer with one JSON object."
        assert line["template"] == hashlib.sha256(B3.encode()).hexdigest()
        text, task = line["prompt"], problem.task
        rows = re.findall(r"^- \w+: (.*)$", text, flags=re.MULTILINE)
        expected = [row for world in task.training.worlds for row in world.rows()]
        assert rows == [" ".join(f"{name}={bit}" for name, bit in row.items()) for row in expected]
        assert ("RootVariables" in text) == (task.disclosure.roots is not None)
        assert ("TopologicalOrder: " in text) == (task.disclosure.order is not None)
        modes = re.findall(r"InterventionMode: (\w+)", text)
        assert modes.count("none") == sum(not world.intervention.targets for world in task.training.worlds)


@pytest.mark.parametrize("name", POOLS)
def test_fields_are_those_that_are_documented_and_none_is_sealed(name: str) -> None:
    benchmark = load_benchmark(name)
    fields = benchmark.require(PROMPT_FIELDS)
    page = (CHECKOUT / "docs" / "prompts.md").read_text(encoding="utf-8")
    for pool in POOLS[name]:
        for item in items(benchmark, pool):
            assert {"instance", *fields.values(item.task, "")} == fields.meanings.keys()
            json.dumps(fields.values(item.task, ""))  # plain values: no object of the program is handed out
    for field, meaning in fields.meanings.items():
        assert f"| `{field}` | {meaning} |" in page


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{{ gold }}", "no field 'gold'; fields: instance, objects, budget, graded, condition"),
        ("{{ objects }}{{ budget }}", "field 'graded' is not read"),
        ("{# unused: graded, nothing #}{{ objects }}{{ budget }}", "no field 'nothing'"),
        ("{# unused: graded, budget #}{{ objects }}{{ budget }}", "field 'budget' is named as unused, but it is read"),
        ("{# unused: graded #}{{ objects }}{{ budget }}{{ condition }}", "'condition' is undefined in this item"),
        ("{# unused: graded, budget #}\n{{ objects", "line 2: "),
        ("{# unused: graded, budget #}{{ objects.__class__ }}", "unsafe"),
        ("{# unused: graded, budget #}{{ objects.append(1) }}", "SecurityError"),
        ("{# unused: graded, budget #}{{ objects[99] }}", "list object has no element 99 in this item"),
        ("{# unused: graded #}{{ objects }}{{ budget // 0 }}", "ZeroDivisionError"),
        ("{# unused: graded, budget #}{{ objects }}{% include 'x' %}", "TypeError"),
    ],
)
def test_a_faulty_template_is_one_line(
    text: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "t.j2"
    file.write_text(text, encoding="utf-8")
    assert message in refused(capsys, "prompts", bundled_sample("blickets"), "--template", file)


def test_a_template_is_a_readable_text_of_bounded_size(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "t.j2"
    for content, message in ((b"\xff", "not UTF-8 at byte 0"), (b"x" * 1_000_001, "at most 1,000,000 bytes")):
        file.write_bytes(content)
        assert message in refused(capsys, "prompts", bundled_sample("blickets"), "--template", file)
    file.write_text(
        "{# unused: graded, objects #}{% for i in range(99999) %}{{ 'x' * budget * 9 }}{% endfor %}", "utf-8"
    )
    assert "more than 10,000,000 characters" in refused(
        capsys, "prompts", bundled_sample("blickets"), "--limit", "1", "--template", file
    )
