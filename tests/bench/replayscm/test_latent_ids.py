"""Latent SCMs as pool files state them, apart from the names of instances."""

from __future__ import annotations

import json
from pathlib import Path

from calibrant.bench.core.registry import bundled_files
from calibrant.bench.replayscm.appendix.facts import pool_facts
from calibrant.dsl.records import file_digest


def test_labels_of_the_file_name_the_latents_and_other_benchmarks_are_passed_over(tmp_path: Path) -> None:
    files = bundled_files()
    header, *lines = files["replayscm"][0].read_text(encoding="utf-8").splitlines()
    records = [json.loads(line) for line in lines]
    records[0]["sealed"].setdefault("labels", {})["latent"] = "L7"
    records[1]["sealed"].setdefault("labels", {}).pop("latent", None)
    changed = tmp_path / "changed.jsonl"
    changed.write_text("\n".join([header, *map(json.dumps, records[:2])]) + "\n", encoding="utf-8")
    latents = pool_facts([files["causim"][0], changed]).latents
    assert latents == {(file_digest(changed), records[0]["id"]): "L7"}
