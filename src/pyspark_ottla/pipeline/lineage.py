"""Lineage: what a run reads and writes, as OpenLineage events (2-0-2).

Each sink is a job, each run of it a run: START once its query has started, and at the end one of
COMPLETE, FAIL and ABORT, the last for a query stopped because another has failed.
"""

import datetime as dt
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from ottla import __version__
from pyspark_ottla.pipeline.frames import Frames
from pyspark_ottla.pipeline.model import Pipeline, Sink, SinkKind
from pyspark_ottla.pipeline.progress import Progress, QueryProgress
from pyspark_ottla.pipeline.shape import Shape
from pyspark_ottla.tables.address import is_catalog_name

_SPEC: Final = "https://openlineage.io/spec"
_EVENT: Final = f"{_SPEC}/2-0-2/OpenLineage.json#/$defs/RunEvent"
_FACETS: Final = {
    "schema": "1-2-0/SchemaDatasetFacet.json#/$defs/SchemaDatasetFacet",
    "errorMessage": "1-0-1/ErrorMessageRunFacet.json#/$defs/ErrorMessageRunFacet",
    "jobType": "2-0-4/JobTypeJobFacet.json#/$defs/JobTypeJobFacet",
    "processing_engine": "1-1-1/ProcessingEngineRunFacet.json#/$defs/ProcessingEngineRunFacet",
    "outputStatistics": (
        "1-0-2/OutputStatisticsOutputDatasetFacet.json#/$defs/OutputStatisticsOutputDatasetFacet"
    ),
}
_NAMESPACE: Final = "ottla"
_PRODUCER: Final = f"urn:ottla:{__version__}"


@dataclass
class Lineage:
    """The lineage of one run of a pipeline."""

    send: Callable[[dict[str, Any]], None]
    pipeline: Pipeline
    frames: Frames
    shapes: Mapping[str, Shape]
    spark_version: str
    is_stream: bool

    def __post_init__(self) -> None:
        self._schemas = {name: frame.schema for name, frame in self.frames.good.items()}
        self._runs: dict[str, str] = {}  # Ids of started runs, by sink.

    def start(self, sink: str) -> None:
        """Ignores queries that are not sinks."""
        if sink in self.shapes:
            self._runs[sink] = str(uuid.uuid4())
            self._emit("START", sink)

    def end(self, progress: Progress) -> None:
        """End all runs that have started."""
        has_failed = any(query.error for query in progress.queries.values())
        for sink in list(self._runs):
            query = progress.queries[sink]
            kind = "FAIL" if query.error else "ABORT" if has_failed else "COMPLETE"
            self._emit(kind, sink, query)
            del self._runs[sink]

    def _emit(self, kind: str, sink: str, query: QueryProgress | None = None) -> None:
        self.send(self._event(kind, self.pipeline.sinks[sink], query))

    def _event(self, kind: str, sink: Sink, query: QueryProgress | None) -> dict[str, Any]:
        run_facets = _facet("processing_engine", version=self.spark_version, name="spark")
        if query is not None and query.error:
            run_facets |= _facet("errorMessage", message=query.error, programmingLanguage="PYTHON")
        processing = "STREAMING" if self.is_stream else "BATCH"
        job_facets = _facet(
            "jobType", processingType=processing, integration="OTTLA", jobType="PIPELINE"
        )
        return {
            "eventType": kind,
            "eventTime": dt.datetime.now(dt.UTC).isoformat(),
            "producer": _PRODUCER,
            "schemaURL": _EVENT,
            "run": {"runId": self._runs[sink.name], "facets": run_facets},
            "job": {
                "namespace": _NAMESPACE,
                "name": f"{self.pipeline.name}.{sink.name}",
                "facets": job_facets,
            },
            "inputs": self._inputs(sink),
            "outputs": self._outputs(sink, query),
        }

    def _inputs(self, sink: Sink) -> list[dict[str, Any]]:
        return [
            self._topic(topic) | {"facets": _schema(self._schemas[name])}
            for name, *topics in self.shapes[sink.name].sources
            for topic in topics
        ]

    def _outputs(self, sink: Sink, query: QueryProgress | None) -> list[dict[str, Any]]:
        if sink.kind is SinkKind.CONSOLE or not sink.target:
            return []
        output = self._dataset(sink) | {"facets": _schema(self._schemas[sink.input])}
        if query is not None:
            output["outputFacets"] = _facet("outputStatistics", rowCount=query.rows_out)
        return [output]

    def _dataset(self, sink: Sink) -> dict[str, Any]:
        target = str(sink.target)
        if sink.kind is SinkKind.TOPIC:
            return self._topic(target)
        if sink.kind is SinkKind.ICEBERG and is_catalog_name(target):
            catalog, _, name = target.partition(".")
            return {"namespace": f"iceberg://{catalog}", "name": name}
        scheme, separator, rest = target.partition("://")
        if not separator:
            return {"namespace": "file", "name": target}
        bucket, _, path = rest.partition("/")
        return {"namespace": f"{scheme}://{bucket}", "name": path}

    def _topic(self, name: str) -> dict[str, Any]:
        server = self.pipeline.bootstrap_servers.split(",")[0]
        return {"namespace": f"kafka://{server}", "name": name}


def _facet(facet: str, /, **values: Any) -> dict[str, Any]:
    """The facet under its name."""
    url = f"{_SPEC}/facets/{_FACETS[facet]}"
    return {facet: {"_producer": _PRODUCER, "_schemaURL": url, **values}}


def _schema(schema: StructType) -> dict[str, Any]:
    return _facet("schema", fields=_fields(schema))


def _fields(schema: StructType) -> list[dict[str, Any]]:
    return [
        {"name": field.name, "type": field.dataType.simpleString()} | _nested(field.dataType)
        for field in schema
        if not field.name.startswith("_")
    ]


def _nested(kind: DataType) -> dict[str, Any]:
    if isinstance(kind, ArrayType):
        kind = kind.elementType
    elif isinstance(kind, MapType):
        kind = kind.valueType
    return {"fields": _fields(kind)} if isinstance(kind, StructType) else {}
