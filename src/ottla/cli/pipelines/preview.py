"""`ottla pipeline preview`: every step on a few records; nothing is written."""

from pathlib import Path
from typing import TYPE_CHECKING

from ottla.cli.errors import UsageError
from ottla.cli.output import print_json, print_line, print_rows
from ottla.cli.parameters import AsJson
from ottla.cli.pipelines.options import DEFAULT_OPTIONS, PipelineOptions

if TYPE_CHECKING:
    from pyspark_ottla.pipeline.preview import Preview

_CHARACTERS_MAX = 60  # Of a cell.


def preview(
    file: Path,
    /,
    *,
    step: str = "",
    rows: int = 20,
    sample: int = 1000,
    options: PipelineOptions = DEFAULT_OPTIONS,
    as_json: AsJson = False,
) -> None:
    """Run every step on the newest records and print the results; nothing is written.

    Windows and aggregates cover the sample alone, and are shown before a watermark would emit
    them.

    Args:
        file: The pipeline, in YAML.
        step: Only this source or step.
        rows: How many rows of each to print.
        sample: How many records of each partition to read.
    """
    if rows < 1 or sample < 1:
        raise UsageError("--rows and --sample are whole numbers from 1 on")
    pipeline = options.load(file)
    with options.session(pipeline) as session:
        from pyspark_ottla.pipeline.case_rows import as_json_rows
        from pyspark_ottla.pipeline.preview import preview_pipeline

        found = preview_pipeline(session, pipeline, step=step, rows=rows, sample=sample)
        if as_json:
            steps = [each._asdict() | {"rows": as_json_rows(each.rows)} for each in found]
            print_json({"pipeline": pipeline.name, "steps": steps})
        else:
            for each in found:
                print_preview(each)


def print_preview(each: "Preview") -> None:
    from pyspark_ottla.pipeline.view import counted

    shown = "" if each.row_count == len(each.rows) else f", the first {len(each.rows)}"
    print_line(f"{each.kind} {each.name}: {counted(each.row_count, 'row')}{shown}")
    if each.rows:
        cells = [{name: _cell(value) for name, value in row.items()} for row in each.rows]
        print_rows(each.columns, cells, exact_names=True)
    for reason, count in each.refused.items():
        print_line(f"refused for {reason}: {counted(count, 'row')}")
    print_line("")


def _cell(value: object) -> str:
    text = value.decode(errors="replace") if isinstance(value, bytes) else str(value)
    text = " ".join(("-" if value is None else text).split())
    return text if len(text) <= _CHARACTERS_MAX else f"{text[: _CHARACTERS_MAX - 1]}…"
