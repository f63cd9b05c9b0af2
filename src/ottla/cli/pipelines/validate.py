"""`ottla pipeline validate`: find what is wrong with a pipeline before it starts."""

from pathlib import Path

from ottla.cli.output import print_json, print_line
from ottla.cli.parameters import AsJson
from ottla.cli.pipelines.options import DEFAULT_OPTIONS, PipelineOptions


def validate(
    file: Path, /, *, options: PipelineOptions = DEFAULT_OPTIONS, as_json: AsJson = False
) -> None:
    """Check the file, its topics, schemas, SQL and functions; nothing is read or written.

    Args:
        file: The pipeline, in YAML.
    """
    pipeline = options.load(file)
    with options.session(pipeline) as session:
        from pyspark_ottla.pipeline.validate import validate_pipeline

        validate_pipeline(session, pipeline)
    counts = {
        "sources": len(pipeline.sources),
        "steps": len(pipeline.steps),
        "sinks": len(pipeline.sinks),
    }
    if as_json:
        print_json({"pipeline": pipeline.name, "valid": True, **counts})
    else:
        from pyspark_ottla.pipeline.view import counted

        shown = ", ".join(counted(count, kind[:-1]) for kind, count in counts.items())
        print_line(f"pipeline {pipeline.name} is valid: {shown}")
