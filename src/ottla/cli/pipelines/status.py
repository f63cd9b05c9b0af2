"""`ottla pipeline status`: whether pipelines run, and how far they are."""

from ottla.cli.output import print_json, print_rows
from ottla.cli.parameters import AsJson
from ottla.cli.pipelines.options import DEFAULT_OPTIONS, Files, PipelineOptions, spark_errors


def status(
    files: Files, /, *, options: PipelineOptions = DEFAULT_OPTIONS, as_json: AsJson = False
) -> None:
    """Show the process, last batch and lag of each sink, without starting Spark.

    Covers pipelines whose checkpoints are on this machine.
    """
    pipelines = [options.load(file) for file in files]
    with spark_errors():
        from pyspark_ottla.pipeline.status import find_status

        found = [vars(each) for pipeline in pipelines for each in find_status(pipeline)]
    if as_json:
        print_json({"sinks": found})
    else:
        columns = ["pipeline", "sink", "process", "batch", "committed", "lag"]
        if any(each["backfill"] for each in found):
            columns.append("backfill")
        print_rows(columns, found)
