"""`ottla pipeline declarative`: run a project of Spark Declarative Pipelines."""

import tempfile
from pathlib import Path

from ottla.cli.errors import CommandError
from ottla.cli.parameters import Flag


def declarative(
    file: Path,
    /,
    *,
    directory: Path | None = None,
    full_refresh_all: Flag = False,
    dry_run: Flag = False,
    spark_log: Path | None = None,
) -> None:
    """Run a Spark Declarative Pipelines project once: process what is available, then stop.

    Args:
        file: Its spark-pipeline.yml.
        directory: Where tables and the state for the next run are kept; `state` next to the file by
            default.
        full_refresh_all: Discard all state and start over.
        dry_run: Only check for errors; nothing is read or written.
        spark_log: File for Spark's own log; by default one in the directory for temporary files.
    """
    try:
        from pyspark_ottla.java import JavaNotFound
        from pyspark_ottla.pipeline.declarative import ProjectError, run_project
    except ImportError as error:
        raise CommandError(_describe_missing(error)) from None
    try:
        run_project(
            file,
            directory or file.parent / "state",
            full_refresh_all=full_refresh_all,
            dry=dry_run,
            log=spark_log or Path(tempfile.gettempdir(), "ottla-declarative-spark.log"),
        )
    except (JavaNotFound, ProjectError) as error:
        raise CommandError(str(error)) from None


def _describe_missing(error: ImportError) -> str:
    if error.name == "pyspark.pipelines":
        return "Spark 4.0 has no declarative pipelines: pip install 'pyspark>=4.1'"
    return (
        f"declarative pipelines run on Spark Connect, and {error.name or error} is missing:"
        " pip install 'ottla[connect]'"
    )
