"""Fields that producers have added to a source's values, taken as columns.

When a run begins, a source with `evolution: {added: take}` gets a column for every field that its
newest records have and its schema lacks. The column keeps the type that was first seen.
"""

from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark_ottla.pipeline.document import Text
from pyspark_ottla.pipeline.frames import RECORD_COLUMNS
from pyspark_ottla.pipeline.model import Pipeline, Source
from pyspark_ottla.pipeline.samples import read_newest_values
from pyspark_ottla.pipeline.schema_text import field_names, quoted

if TYPE_CHECKING:
    from pyspark_ottla.pipeline.record import Record

Added = dict[str, dict[str, str]]  # Type by source and field.

_SAMPLE = 1000  # Records per partition.


def take_added(pipeline: Pipeline, record: "Record") -> tuple[Pipeline, Added]:
    """The pipeline with the fields, and all fields added by now."""
    taking = [source for source in pipeline.sources.values() if source.takes_added]
    added: Added = {}
    for source in taking:
        known = {name.lower() for name in field_names(source.schema)}
        kept = {
            name: kind
            for name, kind in record.added.get(source.name, {}).items()
            if name.lower() not in known
        }
        added[source.name] = kept | _find_new(pipeline, source, {*known, *map(str.lower, kept)})
    return with_added(pipeline, added), added


def with_added(pipeline: Pipeline, added: Added) -> Pipeline:
    sources = {
        name: _with_fields(source, added.get(name, {})) for name, source in pipeline.sources.items()
    }
    return replace(pipeline, sources=sources)


def _with_fields(source: Source, fields: dict[str, str]) -> Source:
    if not fields:
        return source
    text = ", ".join([source.schema, *(f"{quoted(name)} {kind}" for name, kind in fields.items())])
    return replace(source, schema=Text(text, source.schema.line))


def _find_new(pipeline: Pipeline, source: Source, known: Collection[str]) -> dict[str, str]:
    from pyspark_ottla.pipeline.init import guess_format

    types = guess_format(read_newest_values(pipeline, source, _SAMPLE)).fields
    taken = {f"_{name}" for name in RECORD_COLUMNS}
    return {
        name: kind
        for name, kind in types.items()
        if name.lower() not in known and name not in taken
    }
