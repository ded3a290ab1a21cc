"""Columns, dataset card and Croissant metadata of exported pools.

The public part holds the prompts that models read, and nothing that depends on sealed content. Its digests are of
prompts, since the digest of a record with few possible truths would reveal the truth. The part with gold holds
everything.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Literal, Protocol, TypeAlias

import yaml

from calibrant.bench.core.registry import benchmark
from calibrant.bench.training import LABELS
from calibrant.dsl.text import plural

# --- The columns of an export, and the rows of a pool under them ------------------------------------------------------
Row: TypeAlias = dict[str, Any]
DIFFICULTY = "difficulty_"
CANARY = "Benchmark data; it should never appear in training corpora of models that are evaluated on it. canary GUID "
_NAMESPACE = uuid.UUID("5a3d3c0e-1c1b-5f0e-9d55-3c7c1fb1a0c4")


@dataclass(frozen=True)
class Column:
    """Column of a data set.

    means: its meaning in words; sealed: whether the part with gold alone has it
    kind: type of its values; labels of difficulty may lack some
    """

    name: str
    means: str
    sealed: bool = False
    kind: Literal["text", "number"] = "text"


COLUMNS = (
    Column("id", "public id of the item; it tells nothing of it, and `calibrant score` with its pool knows it"),
    Column("benchmark", "which of the benchmarks it is of"),
    Column("system", "system message, empty if there is none"),
    Column("prompt", "user message; of an interactive item what is said before the first action"),
    Column("digest", "SHA-256 of system and prompt, a zero byte between them"),
    Column("canary", "a text to find leaked copies by, the same in every row of an export"),
    Column("item", "the item's id in its pool", sealed=True),
    Column("salt", "key of the public ids of its pool", sealed=True),
    Column("pool", "name of its pool", sealed=True),
    Column("setting", "row group of the benchmark's tables", sealed=True),
    Column("stratum", "finer group of its generator, empty if there is none", sealed=True),
    Column("record", "the native record as JSON, the sealed part too; rewards and `calibrant` read it", sealed=True),
    Column("answer", "a right answer as JSON, empty where none can be handed in at once", sealed=True),
    Column("record_digest", "SHA-256 of the record", sealed=True),
    Column("pool_digest", "SHA-256 of the pool's file, by which records of runs name it", sealed=True),
)


def columns_of(rows: Iterable[Mapping[str, Any]], *, with_gold: bool) -> list[Column]:
    """Return the columns for these rows; with gold, one for each difficulty label that occurs is among them."""
    if not with_gold:
        return [column for column in COLUMNS if not column.sealed]
    labels = sorted({name for row in rows for name in row if name.startswith(DIFFICULTY)})
    columns = [
        Column(n, f"number of {LABELS[n.removeprefix(DIFFICULTY)]}; null where there is none", True, "number")
        for n in labels
    ]
    return [*COLUMNS, *columns]


def canary_of(digests: Iterable[str]) -> str:
    """Return the canary of an export with prompts of these digests; it depends on nothing else."""
    return f"{CANARY}{uuid.uuid5(_NAMESPACE, ''.join(digests))}"


def record_text(record: Mapping[str, Any]) -> str:
    """Return the text of a record in its column; equal records have equal texts."""
    return json.dumps(record, sort_keys=True, separators=(",", ":"))


def prompt_digest(system: str, prompt: str) -> str:
    return text_digest(f"{system}\0{prompt}")


def text_digest(text: str) -> str:
    """Return the SHA-256 digest of a text in hexadecimal digits."""
    return sha256(text.encode()).hexdigest()


# --- Description of an export: numbers and words of both the card and the Croissant metadata --------------------------
SPLIT = "test"  # of the data sets of lm-evaluation-harness too


class Rows(Protocol):
    """Rows that can be iterated repeatedly."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Row]: ...


@dataclass(frozen=True)
class Described:
    """One part of an export.

    file: name of its Parquet file; sha256: hexadecimal digest of the file; size: of the file, in bytes
    license: identifier of the license, empty for none; drawn_from_seeds: whether every pool states a seed
    audits: lines on counts of audits; split: name of the split
    """

    name: str
    file: str
    sha256: str
    size: int
    rows: Rows
    columns: Sequence[Column]
    license: str = ""
    drawn_from_seeds: bool = False
    audits: Sequence[str] = ()
    split: str = SPLIT

    @property
    def with_gold(self) -> bool:
        return any(column.sealed for column in self.columns)

    @property
    def benchmarks(self) -> list[str]:
        return [benchmark(name).title for name in dict.fromkeys(row["benchmark"] for row in self.rows)]

    @property
    def groups(self) -> list[tuple[str, int]]:
        """Return names of pools, in the public part those of benchmarks, with their numbers of items."""
        counts: dict[str, int] = {}
        column = "pool" if self.with_gold else "benchmark"
        for row in self.rows:
            counts[row[column]] = counts.get(row[column], 0) + 1
        return list(counts.items())

    @property
    def summary(self) -> str:
        part = "with their sealed parts and right answers" if self.with_gold else "as a model is shown them"
        return (
            f"{plural(len(self.rows), 'items')} of {' and '.join(self.benchmarks)}, {part}. A causal mechanism is to be"
            " identified from finite evidence; answers are executed and checked, not compared with a reference text."
        )

    @property
    def responsible_ai(self) -> Mapping[str, str]:
        """Return the statements on the making of these pools, and those that hold for every pool."""
        return (_DRAWN if self.drawn_from_seeds else _NOT_STATED) | _ALWAYS


_DRAWN = {
    "dataCollection": "Drawn by programs from seeds. No part of it was collected from people or observed in the world.",
    "dataCollectionType": "Synthetic",
    "dataBiases": (
        "Items follow the generator's distribution over graphs, formulas and interventions, and names that it invents."
    ),
    "personalSensitiveInformation": "None.",
}
_NOT_STATED = {
    "dataCollection": "The pools do not state how their items were made.",
    "dataBiases": "Items follow the distribution of whatever made them, which the pools do not state.",
    "personalSensitiveInformation": "The pools do not state any.",
}
_ALWAYS = {
    "dataUseCases": (
        "Evaluation and training of systems that identify causal mechanisms from interventional evidence."
        " Not evidence about any real causal system."
    ),
    "dataLimitations": (
        "Mechanisms are small and of few classes. The evidence of an item may leave several mechanisms open;"
        " `calibrant audit` counts them. Training on the part with gold makes an evaluation on these items void."
    ),
    "dataSocialImpact": "None is expected of the data; scores on it say nothing of causal reasoning in general.",
    "annotationsPerItem": "None by people; labels are computed.",
}


# --- The dataset card of a part of an export: the Hub's page and the settings of its loader ---------------------------
SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))


def card(part: Described) -> str:
    """Return README.md of a part: settings of the Hub, then a page."""
    return f"---\n{yaml.safe_dump(_settings(part), sort_keys=False, allow_unicode=True)}---\n\n" + "\n".join(
        _page(part)
    )


def folder_card(title: str, files: Mapping[str, str], split: str) -> str:
    """Return README.md of an export, by which the Hub's loader finds each part and takes the first by default.

    files: name of a part -> its file, relative to the folder
    """
    configs = [
        {"config_name": name, "data_files": [{"split": split, "path": file}]} | ({} if index else {"default": True})
        for index, (name, file) in enumerate(files.items())
    ]
    settings = {"pretty_name": title, "configs": configs}
    first, *others = files
    page = [
        f"# {_plain(title)}",
        "",
        "Each part is a folder that is published apart. Here they are loaded as they are:",
        "",
    ]
    page += ["```python", "from datasets import load_dataset", ""]
    page += [f'{first} = load_dataset("path/to/this/folder", split="{split}")']
    page += [f'{name} = load_dataset("path/to/this/folder", "{name}", split="{split}")' for name in others]
    page += ["```", "**Gold is in this folder: publish it whole only if these items are meant for training.**", ""]
    return f"---\n{yaml.safe_dump(settings, sort_keys=False, allow_unicode=True)}---\n\n" + "\n".join(page)


def _settings(part: Described) -> dict[str, object]:
    number = len(part.rows)
    license_ = {"license": part.license} if part.license else {}
    return {
        "pretty_name": part.name,
        "language": ["en"],
        **license_,
        "tags": ["causal-inference", *["synthetic"] * part.drawn_from_seeds, "benchmark", "calibrant"],
        "size_categories": [next((name for limit, name in SIZES if number < limit), "n>1M")],
        "configs": [{"config_name": "default", "data_files": [{"split": part.split, "path": part.file}]}],
    }


def _page(part: Described) -> Iterator[str]:
    yield f"# {_plain(part.name)}"
    yield ""
    yield part.summary
    yield ""
    if part.with_gold:
        yield "**This part has gold. Publish it only if these items are meant for training.**"
    else:
        yield "This part has no gold and no digest of it. Ids and the order of rows tell nothing of the items."
    yield ""
    yield f"| {'pool' if part.with_gold else 'benchmark'} | items |"
    yield "|---|--:|"
    yield from (f"| {_plain(name)} | {number} |" for name, number in part.groups)
    yield ""
    yield "## Columns"
    yield "| column | meaning |"
    yield "|---|---|"
    yield from (f"| `{column.name}` | {column.means} |" for column in part.columns)
    yield ""
    yield "## Use"
    yield "```python"
    yield "from datasets import load_dataset"
    yield ""
    yield f'items = load_dataset("path/to/this/folder", split="{part.split}")'
    yield "```"
    yield "Answers are scored by `calibrant score`; `calibrant.rewards` takes these columns as they are."
    yield ""
    if not part.with_gold:
        yield from _about(part)
        return
    yield "## Audit"
    if part.audits:
        yield "Counts of `calibrant audit`, exact in the classes that it names:"
        yield ""
        yield from (f"- {_plain(line.replace(':', ' '))}" for line in part.audits)
    else:
        yield "No audit was exported with these items (`calibrant export --audits DIR`)."
    yield ""
    yield from _about(part)


def _about(part: Described) -> Iterator[str]:
    yield "## About the data"
    yield from (f"- **{_separate_words(name)}**: {text}" for name, text in part.responsible_ai.items())
    yield ""
    yield "## Canary"
    yield next((row["canary"] for row in part.rows), "")
    yield ""


def _plain(text: str) -> str:
    """Return a file's name on one line, without Markdown's special characters."""
    return " ".join("".join(c if c.isalnum() or c in " ._-+()" else " " for c in text).split())[:120]


def _separate_words(name: str) -> str:
    return "".join(f" {c.lower()}" if c.isupper() else c for c in name).capitalize()


# --- Croissant metadata of a part of an export, with the fields of its vocabulary for responsible use (RAI) -----------
CONFORMS_TO = ["http://mlcommons.org/croissant/1.0", "http://mlcommons.org/croissant/RAI/1.0"]
_KINDS = {"text": "sc:Text", "number": "sc:Integer"}
CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileProperty": "cr:fileProperty",
    "fileObject": "cr:fileObject",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}


def croissant(part: Described) -> dict[str, Any]:
    """Return the JSON-LD metadata of a part."""
    fields = [
        {
            "@type": "cr:Field",
            "@id": f"items/{column.name}",
            "name": column.name,
            "description": column.means,
            "dataType": _KINDS[column.kind],
            "source": {"fileObject": {"@id": part.file}, "extract": {"column": column.name}},
        }
        for column in part.columns
    ]
    return {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "name": part.name,
        "description": part.summary,
        "conformsTo": CONFORMS_TO,
        **({"license": part.license} if part.license else {}),
        **{f"rai:{name}": text for name, text in part.responsible_ai.items()},
        "distribution": [
            {
                "@type": "cr:FileObject",
                "@id": part.file,
                "name": part.file,
                "contentUrl": part.file,
                "contentSize": f"{part.size} B",
                "encodingFormat": "application/x-parquet",
                "sha256": part.sha256,
            }
        ],
        "recordSet": [{"@type": "cr:RecordSet", "@id": "items", "name": "items", "field": fields}],
    }
