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
    """Run a project of Spark Declarative Pipelines: everything that there is now, then stop.

    Args:
        file: Its spark-pipeline.yml.
        directory: For tables and what the next run goes on from; `state` beside the file if not
            given.
        full_refresh_all: Forget what was done, and begin anew.
        dry_run: Only find what is wrong; nothing is read or written.
        spark_log: File for what Spark itself logs; one in the directory for temporary files if
            not given.
    """
    try:
        from pyspark_ottla.java import JavaNotFound
        from pyspark_ottla.pipeline.declarative import ProjectError, run_project
    except ImportError as error:
        raise CommandError(
            f"declarative pipelines run on Spark Connect, and {error.name or error} is missing:"
            " pip install 'ottla[connect]'"
        ) from None
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
