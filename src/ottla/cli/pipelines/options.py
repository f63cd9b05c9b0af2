"""What the commands about pipelines have in common: their options, and Spark where it is needed."""

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from ottla.cli.assignments import parse_assignments
from ottla.cli.command_config import hand_to_spark
from ottla.cli.errors import CommandError, ManyErrors, UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pyspark_ottla.pipeline.model import Pipeline

LOCAL = "local[*]"

Files = Annotated[list[Path], Parameter(name="file", help="Pipelines, in YAML.")]


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class PipelineOptions:
    bootstrap_server: Annotated[
        str | None,
        Parameter(
            name=("--bootstrap-server", "-b"),
            env_var="OTTLA_BOOTSTRAP_SERVER",
            help="Broker to connect to first, as HOST:PORT, instead of the one in the file.",
        ),
    ] = None
    command_config: Annotated[
        Path | None,
        Parameter(
            env_var="OTTLA_COMMAND_CONFIG",
            help="File with client settings, such as security.protocol and the login. "
            "[default: the current profile, if it is for the same brokers]",
            show_default=False,
        ),
    ] = None
    set_: Annotated[
        list[str] | None,
        Parameter(help="Set a variable of the file, as NAME=VALUE; may be repeated."),
    ] = None
    checkpoints: Annotated[
        str | None,
        Parameter(help="Directory for checkpoints, instead of the one in the file."),
    ] = None
    master: Annotated[
        str, Parameter(help="Where Spark runs: local[*], or spark://HOST:PORT of a cluster.")
    ] = LOCAL
    remote: Annotated[
        str | None, Parameter(help="sc://HOST:PORT of a Spark Connect server, instead of --master.")
    ] = None

    def load(self, file: Path) -> "Pipeline":
        if self.remote and self.master != LOCAL:
            raise UsageError("--master and --remote exclude each other")
        hand_to_spark(self.command_config)
        with spark_errors():
            from pyspark_ottla.pipeline.file import load_pipeline

            return load_pipeline(
                file,
                variables=parse_assignments("--set", self.set_ or []),
                bootstrap_servers=self.bootstrap_server or "",
                checkpoints=self.checkpoints or "",
            )

    def describe_start(self, log: Path) -> str:
        """What a user waits for while the session is opened."""
        if self.remote:
            return f"connecting to Spark at {self.remote}"
        master = "" if self.master == LOCAL else f" with {self.master}"
        return f"starting Spark{master}, which takes some seconds; its log is in {log}"

    def open_session(self, pipeline: "Pipeline", log: Path) -> "SparkSession":
        """`log` is a file for what Spark has to say."""
        from pyspark_ottla.java import JavaNotFound
        from pyspark_ottla.pipeline.session import open_session

        try:
            return open_session(
                pipeline.name,
                master=self.master,
                remote=self.remote or "",
                settings=pipeline.spark_settings,
                log=log,
            )
        except JavaNotFound as error:
            raise CommandError(str(error)) from None

    @contextlib.contextmanager
    def session(self, pipeline: "Pipeline") -> Iterator["SparkSession"]:
        """A session without a log, for a pipeline whose topics are right."""
        with spark_errors():
            from pyspark_ottla.pipeline.validate import validate_topics

            validate_topics(pipeline)  # Does not need Spark, which takes seconds to start.
            session = self.open_session(pipeline, Path(os.devnull))
            try:
                yield session
            finally:
                session.stop()


DEFAULT_OPTIONS = PipelineOptions()


@contextlib.contextmanager
def spark_errors() -> Iterator[None]:
    """Turn what pipelines raise into errors of the command."""
    try:
        from pyspark_ottla.pipeline.problems import PipelineError
    except ImportError:
        raise CommandError(
            "pipelines run on Spark, which is not installed: pip install 'ottla[spark]'"
        ) from None
    try:
        yield
    except PipelineError as error:
        raise ManyErrors(str(error).splitlines()) from error
