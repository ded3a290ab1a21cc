"""Croissant metadata of a release's public items, and its own check of what the specification requires.

Croissant 1.1 requires more than its validator complains about: missing `description`, `url` or `creator` pass silently,
and a wrong digest is met only when files are loaded (mlcroissant 1.1.1).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from calibrant.bench.hub.card import CONFORMS_TO, CONTEXT
from calibrant.bench.suites.digests import sha256_of
from calibrant.bench.suites.release.items import ITEMS, public_columns
from calibrant.bench.suites.specification import SuiteSpec
from calibrant.dsl.errors import CalibrantError

REQUIRED = (
    *("@context", "@type", "conformsTo", "name", "description", "license", "url", "creator", "datePublished"),
    "distribution",
)
_MEDIA = {"jsonl": "application/jsonlines", "parquet": "application/x-parquet"}
_RAI = {
    "collection": "dataCollection",
    "preprocessing": "dataPreprocessingProtocol",
    "biases": "dataBiases",
    "limitations": "dataLimitations",
    "uses": "dataUseCases",
    "social_impact": "dataSocialImpact",
    "personal_information": "personalSensitiveInformation",
    "maintenance": "dataReleaseMaintenancePlan",
}
"""Fields of RAI 1.0 by the key of the statement that they repeat."""


def describe_release(spec: SuiteSpec, public: Path) -> dict[str, Any]:
    """Return the JSON-LD; `CalibrantError` if a required field is missing or a digest is wrong."""
    files = [(pool.name, kind) for pool in spec.pools for kind in spec.formats]
    described = {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": CONFORMS_TO,
        "name": spec.title,
        "description": spec.summary,
        "license": spec.license,
        "url": spec.url or "index.html",  # beside this file: the only address that is known
        "creator": [{"@type": "sc:Person", "name": name} for name in spec.creators],
        "datePublished": spec.date.isoformat(),
        "version": spec.version,
        "inLanguage": "en",
        "isLiveDataset": False,
        "citeAs": spec.citation or _citation(spec),
        **{f"rai:{field}": spec.statements[key] for key, field in _RAI.items() if key in spec.statements},
        "distribution": [_file(public, f"{name}/{ITEMS}.{kind}", kind) for name, kind in files],
        "recordSet": [_records(name, spec) for name in dict.fromkeys(name for name, _ in files)],
    }
    check_described(described, public)
    return described


def check_described(described: Mapping[str, Any], public: Path) -> None:
    """Raise `CalibrantError` for a required field that is missing or empty, and for a file with another digest."""
    for name in REQUIRED:
        if not described.get(name):
            raise CalibrantError(f"croissant.json: {name} is missing")
    for file in described["distribution"]:
        if sha256_of(public / file["contentUrl"]) != file["sha256"]:
            raise CalibrantError(f"croissant.json: {file['contentUrl']} has another digest")


def _citation(spec: SuiteSpec) -> str:
    """Return a BibTeX entry of what the specification states."""
    fields = {
        "title": f"{spec.title} {spec.version}",
        "author": " and ".join(spec.creators),
        "year": str(spec.date.year),
    } | ({} if spec.url is None else {"url": spec.url})
    listed = ", ".join(f"{name} = {{{text}}}" for name, text in fields.items())
    return f"@misc{{{spec.name}, {listed}}}"


def _file(public: Path, name: str, kind: str) -> dict[str, Any]:
    path = public / name
    return {
        "@type": "cr:FileObject",
        "@id": name,
        "name": name,
        "contentUrl": name,
        "contentSize": f"{path.stat().st_size} B",
        "encodingFormat": _MEDIA[kind],
        "sha256": sha256_of(path),
    }


def _records(name: str, spec: SuiteSpec) -> dict[str, Any]:
    kind = "parquet" if "parquet" in spec.formats else "jsonl"
    source = f"{name}/{ITEMS}.{kind}"
    fields = [
        {
            "@type": "cr:Field",
            "@id": f"{name}/{column.name}",
            "name": column.name,
            "description": column.means,
            "dataType": "sc:Text",
            "source": {
                "fileObject": {"@id": source},
                "extract": {"column": column.name} if kind == "parquet" else {"jsonPath": f"$.{column.name}"},
            },
        }
        for column in public_columns(spec)
    ]
    return {"@type": "cr:RecordSet", "@id": name, "name": name, "field": fields}
