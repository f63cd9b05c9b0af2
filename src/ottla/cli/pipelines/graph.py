"""`ottla pipeline graph`: the steps of a pipeline as a drawing."""

from pathlib import Path

from ottla.cli.output import print_line
from ottla.cli.pipelines.options import DEFAULT_OPTIONS, PipelineOptions, spark_errors


def graph(
    file: Path, /, *, svg: Path | None = None, options: PipelineOptions = DEFAULT_OPTIONS
) -> None:
    """Draw how rows flow from topics through steps to sinks; needs neither Spark nor a broker.

    Args:
        file: The pipeline, in YAML.
        svg: File to write the drawing to, instead of printing it.
    """
    pipeline = options.load(file)
    with spark_errors():
        from pyspark_ottla.pipeline.graph import as_svg, as_text

        if svg is None:
            print_line(as_text(pipeline))
        else:
            svg.write_text(as_svg(pipeline))
            print_line(f"wrote {svg}")
