"""Runs projects of Spark Declarative Pipelines from pip alone.

Differs from `spark-pipelines run` of Spark 4.1 to 4.3, apart from what `workarounds` says:

catalog    There it is lost with the process, and the next run cannot recreate its tables. Here it
           is Hive's, in a directory; that must be set before the session begins, which a project
           cannot do.
flows      There two flows into one target lose each other's rows: they number their batches alike.
           Here a project with such flows in Python is refused.

A run processes what is available and ends.
"""

import dataclasses
from pathlib import Path
from typing import Any

import yaml
from pyspark.errors import PySparkException
from pyspark.pipelines import cli
from pyspark.pipelines.flow import Flow
from pyspark.pipelines.spark_connect_graph_element_registry import SparkConnectGraphElementRegistry
from pyspark.pipelines.spark_connect_pipeline import (
    create_dataflow_graph,
    handle_pipeline_events,
    start_run,
)
from pyspark.sql import SparkSession

from pyspark_ottla.java import use_java
from pyspark_ottla.pipeline.paths import resolve_path
from pyspark_ottla.pipeline.session import LOCAL, QUIET, stderr_to
from pyspark_ottla.pipeline.spark_errors import describe_error
from pyspark_ottla.python import use_installed_pyspark
from pyspark_ottla.session import session_settings
from pyspark_ottla.workarounds.interim_answers import drop_interim_answers
from pyspark_ottla.workarounds.server_port import use_picked_port


class ProjectError(Exception):
    """A project cannot be run, or its run failed; the message says why."""


def run_project(
    specification: Path, directory: Path, *, full_refresh_all: bool, dry: bool, log: Path
) -> None:
    """Process everything in the sources, or with `dry` only check the definitions.

    Tables, catalog, and the checkpoints of a relative `storage` are in the directory. Java's output
    goes to the log. Raises JavaNotFound if there is none.
    """
    try:
        project = _load(specification, directory.resolve())
        session = _open_session(project, directory.resolve(), log)
        try:
            _run(session, specification, project, full_refresh_all=full_refresh_all, dry=dry)
        finally:
            session.stop()
    except PySparkException as error:
        raise ProjectError(f"{specification}: {describe_error(error).message}") from error


def _load(specification: Path, directory: Path) -> cli.PipelineSpec:
    try:
        project = cli.load_pipeline_spec(specification)
    except OSError as error:
        raise ProjectError(f"{specification}: cannot be read: {error.strerror}") from None
    except (yaml.YAMLError, AttributeError, TypeError) as error:  # PySpark validates few things.
        raise ProjectError(f"{specification}: this is not a pipeline: {error}") from None
    storage = resolve_path(directory, project.storage)
    if storage.startswith("/"):
        storage = Path(storage).as_uri()
    return dataclasses.replace(project, storage=storage)


def _run(
    session: Any,
    specification: Path,
    project: cli.PipelineSpec,
    *,
    full_refresh_all: bool,
    dry: bool,
) -> None:
    drop_interim_answers(session.client)
    graph = create_dataflow_graph(session, project.catalog, project.database, project.configuration)
    registry = OneFlowRegistry(session, graph)
    cli.register_definitions(specification, registry, project, session, graph)
    events = start_run(
        session,
        graph,
        full_refresh=[],
        full_refresh_all=full_refresh_all,
        refresh=[],
        dry=dry,
        storage=project.storage,
    )
    handle_pipeline_events(events)


class OneFlowRegistry(SparkConnectGraphElementRegistry):
    """Refuses a second flow into the same target."""

    def __init__(self, session: Any, graph: str) -> None:
        super().__init__(session, graph)
        self._flows: dict[str, str] = {}  # By target.

    def register_flow(self, flow: Flow) -> None:
        first = self._flows.setdefault(flow.target, flow.name)
        if first != flow.name:
            raise ProjectError(
                f"{flow.source_code_location.filename}:{flow.source_code_location.line_number}:"
                f" the flows {first} and {flow.name} both write to {flow.target}, and would lose"
                " rows of each other: make them one, with a union"
            )
        super().register_flow(flow)


def _open_session(project: cli.PipelineSpec, directory: Path, log: Path) -> SparkSession:
    """With a Spark Connect server in this process, which ends with the session."""
    use_java()
    use_installed_pyspark()
    directory.mkdir(parents=True, exist_ok=True)
    use_picked_port()
    settings = {
        **session_settings(),
        **QUIET,
        "spark.connect.grpc.binding.port": "0",
        "spark.sql.connect.serverStacktrace.enabled": "false",
        "spark.sql.catalogImplementation": "hive",
        "spark.sql.warehouse.dir": str(directory / "warehouse"),
        "spark.hadoop.javax.jdo.option.ConnectionURL": (
            f"jdbc:derby:;databaseName={directory / 'catalog'};create=true"
        ),
        "spark.driver.extraJavaOptions": f"-Dderby.stream.error.file={directory / 'derby.log'}",
        **project.configuration,
    }
    builder: Any = SparkSession.builder.appName(project.name).remote(LOCAL)
    for name, value in settings.items():
        builder = builder.config(name, value)
    with stderr_to(log):
        opened: SparkSession = builder.getOrCreate()
    return opened
