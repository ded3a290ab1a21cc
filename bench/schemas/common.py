"""What fields mean that have the same meaning wherever they occur, by their names in Python."""

from __future__ import annotations

from collections.abc import Mapping

COMMON: Mapping[str, str] = {
    "pool": "name of the pool",
    "pool_digest": "SHA-256 of what the pool's file holds, decompressed",
    "pool_size": "how many items the pool has",
    "index": "place of the item in its pool, from 0",
    "instance": "id of the item",
    "instance_id": "id of the item",
    "setting": "row group of tables: the disclosure, or the published table that the pool belongs to",
    "stratum": "the finer group of the generator; empty if there is none",
    "protocol": "name of the protocol",
    "program": "version of the program",
    "timing": "when, and how long",
    "version": "version of the format",
    "format": "name of the format",
    "in_words": "the class of SCMs, in words",
    "max_parents": "most functional parents of a mechanism of the class",
    "max_size": "largest formula of a mechanism of the class",
    "members": "SCMs of the class that fit the training worlds, in decimal",
    "variable": "name of the variable",
    "variables": "names, in the order of columns",
    "roots": "names of the variables without a mechanism",
    "type": "which disclosure",
    "size_bound": "largest formula that is looked at",
    "size_penalty": "members weigh 2**(-size_penalty * total formula size); null: all the same",
}
