"""Exports for a hub: columns, files, and the command."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from calibrant.bench.core.registry import NAMES, benchmark, benchmark_of, bundled_pool, bundled_sample
from calibrant.bench.hub.card import COLUMNS, SPLIT, Described, card, columns_of, croissant
from calibrant.bench.hub.export import ExportRows, audit_lines
from calibrant.bench.pools.generated import write_drawn
from calibrant.dsl.blickets.generation import SUITES, sample_items
from calibrant.dsl.blickets.item import Form, Mechanism, Rule
from calibrant.dsl.blickets.records import write_pool
from calibrant.dsl.errors import CalibrantError
from tests.support.commands import CHECKOUT, called, refused

# --- What an export's parts hold, and that the public one tells nothing that is sealed --------------------------------
PUBLIC = [column.name for column in COLUMNS if not column.sealed]


def _pool(folder: Path, name: str) -> Path:
    path = folder / f"{name}.jsonl"
    bench = benchmark(name)
    write_drawn(bench, path, bench.training.stages[:2], 5, 2)
    return path


@pytest.mark.parametrize("name", NAMES)
def test_rows_of_every_benchmark(name: str, tmp_path: Path) -> None:
    path = _pool(tmp_path, name)
    items = benchmark_of(path).items.read_pool(path).items
    rows = ExportRows([path], tmp_path / "rows")
    assert len(rows) == len(items)
    assert [row["item"] for row in rows] == [item.id for item in items]
    for row, item in zip(rows, items, strict=True):
        assert row["benchmark"] == name
        assert benchmark(name).items.item_of_record(json.loads(row["record"])) == item
        assert row["record_digest"] == hashlib.sha256(row["record"].encode()).hexdigest()
        assert row["pool_digest"] == hashlib.sha256(path.read_bytes()).hexdigest()
        assert row["digest"] == hashlib.sha256(f"{row['system']}\0{row['prompt']}".encode()).hexdigest()
        told = [message["content"] for message in benchmark(name).items.messages(item)]
        assert [text for text in (row["system"], row["prompt"]) if text] == told


def test_nothing_sealed_is_in_the_public_part(tmp_path: Path) -> None:
    """Another mechanism behind the same detector: the public part is the same text, gold is not."""
    item = next(sample_items(SUITES["conjunctive"], 1))
    parts: list[list[dict[str, Any]]] = []
    for blickets in (0b00011, 0b00110):
        mechanisms = (Mechanism(Rule(Form.CONJUNCTIVE, blickets)),)
        write_pool(tmp_path / "pool.jsonl", "pool", [replace(item, sealed=replace(item.sealed, mechanisms=mechanisms))])
        parts.append(list(ExportRows([tmp_path / "pool.jsonl"], tmp_path / f"rows {blickets}")))
    shown = [name for name in PUBLIC if name != "id"]  # a digest under a key that only the pool's file gives
    first, second = ([{name: row[name] for name in shown} for row in rows] for rows in parts)
    assert first == second
    assert all(parts[0][0][name] != parts[1][0][name] for name in ("record", "answer", "record_digest", "pool_digest"))
    assert [column.name for column in columns_of(parts[0], with_gold=False)] == PUBLIC


def test_labels_are_columns_of_gold(tmp_path: Path) -> None:
    rows = ExportRows([bundled_pool("ordered")], tmp_path / "rows")
    labels = [column for column in columns_of(rows, with_gold=True) if column.kind == "number"]
    assert [column.name.removeprefix("difficulty_") for column in labels] == ["edges", "parents", "variables", "worlds"]
    assert all(column.sealed for column in labels)


def test_a_canary_is_of_what_is_shown(tmp_path: Path) -> None:
    one, other = (list(ExportRows([bundled_pool(name)], tmp_path / name)) for name in ("ordered", "block"))
    assert len({row["canary"] for row in one}) == 1
    assert one[0]["canary"] != other[0]["canary"]
    assert one[0]["canary"].rpartition("GUID ")[2].count("-") == 4


def test_card_and_metadata_name_every_column_and_field(tmp_path: Path) -> None:
    rows = ExportRows([bundled_pool("ordered")], tmp_path / "rows")
    for with_gold in (False, True):
        columns = columns_of(rows, with_gold=with_gold)
        part = Described("a name: with\nmore | in it", "part.parquet", "0" * 64, 12, rows, columns, "cc-by-4.0")
        page, metadata = card(part), croissant(part)
        assert all(f"| `{column.name}` |" in page for column in columns)
        assert "\n# a name with more in it\n" in page
        assert ("has gold" in page) is with_gold
        assert next(iter(rows))["canary"] in page
        assert [field["name"] for field in metadata["recordSet"][0]["field"]] == [column.name for column in columns]
        assert {f"rai:{name}" for name in part.responsible_ai} <= metadata.keys()
        assert metadata["distribution"][0]["sha256"] == "0" * 64


def described(pool: Path, folder: Path, audits: Path | None = None) -> str:
    """Return the card of the part with gold of a pool."""
    rows = ExportRows([pool], folder / f"{pool.stem}.rows")
    columns = columns_of(rows, with_gold=True)
    part = Described("a", "gold.parquet", "0" * 64, 12, rows, columns, "", rows.drawn_from_seeds)
    if audits is not None:
        part = replace(part, audits=audit_lines(audits, rows.pool_digests))
    return card(part)


def test_a_card_says_only_what_the_pool_states_about_its_making(tmp_path: Path) -> None:
    """A pool of one's own has no seed in its metadata."""
    header, *items = bundled_pool("ordered").read_text("utf-8").splitlines(keepends=True)
    own = tmp_path / "own.jsonl"
    stated = {**json.loads(header), "metadata": {"author": "somebody"}}
    own.write_text(json.dumps(stated) + "\n" + items[0], "utf-8")
    assert "Drawn by programs from seeds." in described(bundled_pool("ordered"), tmp_path)
    page = described(own, tmp_path)
    assert "seeds" not in page
    assert "synthetic" not in page.lower()
    assert "The pools do not state how their items were made." in page
    assert "No audit was exported with these items" in page


def test_a_card_carries_the_counts_of_an_audit_of_the_same_pool(tmp_path: Path) -> None:
    replayscm, labs = tmp_path / "replayscm.jsonl", tmp_path / "labs.jsonl"
    for path, source in ((replayscm, bundled_pool("ordered")), (labs, bundled_sample("causalab"))):
        path.write_text("".join(source.read_text("utf-8").splitlines(keepends=True)[:3]), "utf-8")
        assert called("audit", path, "--out", tmp_path / path.stem, "--workers", "1").returncode == 0
    page = described(replayscm, tmp_path, tmp_path / "replayscm")
    assert "- sample_ordered 2 of 2 items audited\n" in page
    assert "- more than one model of at most 4 functional parents fits 2\n" in page
    assert "- ambiguous refuted for 2\n" in described(labs, tmp_path, tmp_path / "labs")
    with pytest.raises(CalibrantError, match="its audits are of other pools"):
        described(labs, tmp_path / "replayscm", tmp_path / "replayscm")
    with pytest.raises(CalibrantError, match=r"no audits\.jsonl in it"):
        audit_lines(tmp_path, [])


@pytest.mark.parametrize("line", ["{", "[]", "{}", '{"pool": "a", "pool_digest": "b"}'])
def test_a_line_that_is_no_audit_is_named(tmp_path: Path, line: str) -> None:
    (tmp_path / "audits.jsonl").write_text(line + "\n", encoding="utf-8")
    with pytest.raises(CalibrantError, match=r"audits\.jsonl: line 1: not a record of an audit"):
        audit_lines(tmp_path, ["b"])


def test_the_split_has_one_name() -> None:
    """Of cards, of the pages that load them, and of lm-evaluation-harness."""
    texts = [(CHECKOUT / path).read_text("utf-8") for path in ("docs/hub.md", "docs/training.md")]
    assert {name for text in texts for name in re.findall(r'split="(\w+)"', text)} == {SPLIT}
    assert f"test_split: {SPLIT}\n" in (CHECKOUT / "calibrant" / "lm_eval" / "_calibrant_yaml").read_text("utf-8")


# --- calibrant export: what is refused, before anything is written ----------------------------------------------------


def test_a_folder_that_is_there_is_not_touched(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "kept").write_text("kept")
    said = refused(capsys, "export", str(bundled_pool("ordered")), "--out", str(tmp_path))
    assert said.endswith("there already; an export is a folder of its own")
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


@pytest.mark.skipif(importlib.util.find_spec("pyarrow") is not None, reason="pyarrow is installed here")
def test_without_pyarrow_one_line_says_what_to_install(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = refused(capsys, "export", str(bundled_pool("ordered")), "--out", str(tmp_path / "out"))
    assert said.endswith("an export needs pyarrow; install it with pip install 'calibrant[hub]'")
    assert not list(tmp_path.iterdir())
