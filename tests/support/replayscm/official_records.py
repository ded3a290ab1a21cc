"""Official runtime records for tests: read from the shared pools as plain objects, changed, written as YAML again."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from calibrant.dsl.replayscm.item import Pool
from calibrant.dsl.replayscm.pools.files import read_pool
from tests.support.shared import shared_file

Record = dict[str, Any]
POOLS = {
    "Ordered": "pool_dev_ordered.runtime.yaml",
    "Block": "pool_dev_block.runtime.yaml",
    "Hidden-order": "pool_dev_hidden_order.runtime.yaml",
    "Hidden-roots": "pool_dev_hidden_roots.runtime.yaml",
    "Alt-Ordered": "official_sample.runtime.yaml",
}


class _Dumper(yaml.CSafeDumper):
    """Writes equal objects twice instead of once and a reference: official files have no references."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


@cache
def _beginning(file: str, length: int) -> Any:
    """Return the first records of a file; cut off as text, because parsing a whole pool takes seconds."""
    text = shared_file(file).read_text(encoding="utf-8")
    records = text.split("\n  - problem:")
    return yaml.load("\n  - problem:".join(records[: length + 1]), Loader=yaml.CSafeLoader)


def official_records(setting: str, number: int) -> list[Record]:
    """Fresh copies of the first records of a setting's pool, without their model results."""
    records: list[Record] = copy.deepcopy(_beginning(POOLS[setting], number)["problems"])
    assert len(records) == number
    return [record | {"modelResults": {}} for record in records]


def written_file(records: Sequence[Record], path: Path) -> Path:
    """Return a runtime file of these records."""
    document = {"metadata": {"runtimeSchemaVersion": "cind-a-scm-runtime-v2"}, "problems": list(records)}
    path.write_text(yaml.dump(document, Dumper=_Dumper, sort_keys=False), encoding="utf-8")
    return path


def read_records(records: Sequence[Record], folder: Path) -> Pool:
    """Return the pool that the loader makes of these records."""
    return read_pool(written_file(records, folder / "records.yaml"))
