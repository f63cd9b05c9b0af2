"""`ottla pipeline plan`: what the next run would do, and what has changed since the last."""

from pathlib import Path
from typing import TYPE_CHECKING

from ottla.cli.errors import CommandError
from ottla.cli.output import print_json, print_line
from ottla.cli.parameters import AsJson
from ottla.cli.pipelines.options import DEFAULT_OPTIONS, PipelineOptions

if TYPE_CHECKING:
    from pyspark_ottla.pipeline.forecast import Forecast


def plan(
    file: Path, /, *, options: PipelineOptions = DEFAULT_OPTIONS, as_json: AsJson = False
) -> None:
    """Show what the next run would do with each sink; nothing is read or written.

    Exits with 1 if a change does not fit a checkpoint.

    Args:
        file: The pipeline, in YAML.
    """
    pipeline = options.load(file)
    with options.session(pipeline) as session:
        from pyspark_ottla.pipeline.forecast import forecast

        found = forecast(session, pipeline)
    if as_json:
        print_json({"pipeline": pipeline.name, "sinks": [each.as_dict() for each in found]})
    else:
        for each in found:
            print_sink(each)
    if not all(each.is_possible for each in found):
        raise CommandError(
            "the next run would refuse to start: change it back, accept it with"
            " `ottla pipeline run --accept-changes`, or begin anew with `ottla pipeline reset`"
        )


def print_sink(each: "Forecast") -> None:
    print_line(f"{each.sink}: {each.next_run}")
    for change in each.changes:
        print_line(f"  {'+' if change.is_safe else '!'} {change.message}")
