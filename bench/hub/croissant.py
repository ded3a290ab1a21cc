"""Croissant metadata of a part of an export, with the fields of its vocabulary for responsible use (RAI)."""

from __future__ import annotations

from typing import Any

from calibrant.bench.hub.describe import Described

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
    """Return the JSON-LD that stands beside the file of a part."""
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
