"""Curricula of the paper (arXiv 2605.09079, 5.2), and selection of completions (K.1).

Block l has the versions up to l that no earlier block has; l = 2, 4, 6, 8. BLOCK trains block by block, completions of
a block sampled from the checkpoint trained on the one before; AT-ONCE samples all at first and trains in block order;
EASYONLY and HARDONLY train on the first, on the last block.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from calibrant.audits.causim.training import write_training
from calibrant.dsl.atomic_write import whole_file
from calibrant.dsl.causim.item import CausimItem
from calibrant.dsl.errors import CalibrantError

Curriculum: TypeAlias = Literal["block", "at-once", "easy", "hard"]
CURRICULA: Final[tuple[Curriculum, ...]] = ("block", "at-once", "easy", "hard")
BLOCKS: Final = (2, 4, 6, 8)
BASE: Final = "base"
MANIFEST: Final = "manifest.json"


def block_of(version: int) -> int | None:
    """Return the block of a version; None for one beyond the last block, on which the paper does not train."""
    return next((block for block in BLOCKS if version <= block), None)


def blocks_of(items: Sequence[CausimItem]) -> dict[int, list[CausimItem]]:
    """Return the items by block, in the order of blocks; blocks without items are left out."""
    blocks: dict[int, list[CausimItem]] = {block: [] for block in BLOCKS}
    for item in sorted(items, key=lambda item: item.version):
        if (block := block_of(item.version)) is not None:
            blocks[block].append(item)
    return {block: group for block, group in blocks.items() if group}


def write_curriculum(folder: Path, items: Sequence[CausimItem], curriculum: Curriculum) -> list[str]:
    """Write a file for each block that a curriculum trains on, and a manifest; return lines that say what was written.

    The manifest lists the files in training order, and which checkpoint samples completions for each. The files of
    `block` joined, with one header, are the file of `at-once`.
    """
    blocks = blocks_of(items)
    if not blocks:
        raise CalibrantError(f"no questions about programs of at most {BLOCKS[-1]} nodes, on which curricula train")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise CalibrantError(f"{folder} has files; give a folder that is empty or new")
    folder.mkdir(parents=True, exist_ok=True)
    numbers = list(blocks)
    stages: dict[str, list[CausimItem]] = {f"block{number}.jsonl": blocks[number] for number in numbers}
    if curriculum == "at-once":
        stages = {"all.jsonl": [item for group in blocks.values() for item in group]}
    elif curriculum == "easy":
        stages = {f"block{numbers[0]}.jsonl": blocks[numbers[0]]}
    elif curriculum == "hard":
        stages = {f"block{numbers[-1]}.jsonl": blocks[numbers[-1]]}
    manifest, lines, previous = [], [], BASE
    for name, group in stages.items():
        num_written, num_skipped = write_training(folder / name, group)
        versions = sorted({item.version for item in group})
        manifest.append({"file": name, "versions": versions, "examples": num_written, "sampled_by": previous})
        lines.append(f"{num_written} examples written to {folder / name}; {num_skipped} instances without a solution")
        previous = f"trained on {name}" if curriculum == "block" else BASE
    with whole_file(folder / MANIFEST) as file:
        file.write(json.dumps({"curriculum": curriculum, "stages": manifest}, indent=1).encode() + b"\n")
    return lines


@dataclass
class SelectionTotals:
    """Totals of a selection: prompts with a right completion and without, and samples by block and type."""

    selected: int = 0
    dropped: int = 0
    samples: Counter[tuple[str, str]] = field(default_factory=Counter)

    def lines(self) -> Iterator[str]:
        """Yield lines for people."""
        yield f"{self.selected} prompts with a right completion, {self.dropped} without one are dropped"
        for (block, kind), number in sorted(self.samples.items()):
            yield f"  {block}, {kind}: {number} samples"


def select_first_correct(
    items: Sequence[CausimItem],
    completions: Mapping[str, Sequence[str]],
    is_right: Callable[[CausimItem, str], bool],
) -> tuple[list[dict[str, Any]], SelectionTotals]:
    """Return the first right completion of each prompt in sample order as a chat; drop prompts without one."""
    chats, totals = [], SelectionTotals()
    for item in items:
        texts = completions.get(item.id, ())
        if not texts:
            continue
        block = block_of(item.version)
        totals.samples[f"block {block}" if block else "beyond", item.task.question.type] += len(texts)
        first = next((text for text in texts if is_right(item, text)), None)
        if first is None:
            totals.dropped += 1
            continue
        totals.selected += 1
        messages = [{"role": "user", "content": item.task.prompt}, {"role": "assistant", "content": first}]
        chats.append({"id": item.id, "messages": messages})
    return chats, totals
