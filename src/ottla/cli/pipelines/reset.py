"""`ottla pipeline reset`: restart a pipeline from any offset of its topics."""

from pathlib import Path

from ottla.cli.errors import UsageError
from ottla.cli.output import print_json, print_line
from ottla.cli.parameters import AsJson, Flag
from ottla.cli.pipelines.options import DEFAULT_OPTIONS, PipelineOptions, spark_errors


def reset(
    file: Path,
    /,
    *,
    from_: str = "earliest",
    sink: list[str] | None = None,
    yes: Flag = False,
    options: PipelineOptions = DEFAULT_OPTIONS,
    as_json: AsJson = False,
) -> None:
    """Make a pipeline start over. It must be stopped.

    The checkpoints are set aside, not deleted. Existing output stays, and records that are read
    again are written again: empty the targets first, unless they are tables with a key.

    Args:
        file: The pipeline, in YAML.
        from_: Where the next run starts: earliest, latest, an offset, or a time as
            2026-01-31T12:00:00Z.
        sink: Only this sink; may be repeated.
        yes: Confirm; required.
    """
    pipeline = options.load(file)
    if not yes:
        named = ", ".join(sink or pipeline.sinks)
        raise UsageError(
            f"the next run would read from {from_} and write again to: {named}; give --yes to do it"
        )
    with spark_errors():
        from pyspark_ottla.pipeline.reset import reset_pipeline

        done = reset_pipeline(pipeline, from_, sink or ())
    if as_json:
        starts = {
            name: {str(topic_partition): offset for topic_partition, offset in offsets.items()}
            for name, offsets in done.starts.items()
        }
        document = {"pipeline": pipeline.name, "queries": done.queries, "starts": starts}
        print_json(document | {"set_aside": done.set_aside})
        return
    for path in done.set_aside:
        print_line(f"set aside {path}")
    for name, offsets in done.starts.items():
        listed = ", ".join(f"{key} offset {offset}" for key, offset in offsets.items())
        print_line(f"{name} starts at {listed}")
