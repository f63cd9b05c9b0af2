"""`ottla pipeline init`: write a first pipeline for a topic."""

import sys
from pathlib import Path

from ottla.cli.command_config import hand_to_spark
from ottla.cli.connection import DEFAULT_CONNECTION, Connection
from ottla.cli.errors import UsageError
from ottla.cli.output import print_line
from ottla.cli.pipelines.options import spark_errors

_KINDS = ("topic", "delta", "iceberg", "parquet", "console")


def init(
    file: Path,
    /,
    *,
    topic: str = "",
    into: str = "",
    connection: Connection = DEFAULT_CONNECTION,
) -> None:
    """Look at the newest records of a topic, infer their schema, and write a commented file.

    On a terminal it prompts for missing options.

    Args:
        file: The file to write, such as orders.yaml.
        topic: The topic to read.
        into: Where rows go: topic:NAME, delta:PATH, iceberg:CATALOG.NAMESPACE.TABLE,
            parquet:DIRECTORY or console.
    """
    topic = topic or _ask("--topic", "Topic to read")
    into = into or _ask("--into", "Where rows go (topic:NAME, delta:PATH, console, ...)")
    kind, _, target = into.partition(":")
    if kind not in _KINDS or bool(target) == (kind == "console"):
        raise UsageError(f"--into {into} is not topic:NAME, delta:PATH, ... or console")
    hand_to_spark(connection.command_config)
    with spark_errors():
        from pyspark_ottla.pipeline.init import write_pipeline

        guess = write_pipeline(file, topic, into, connection.bootstrap_server)
    print_line(f"wrote {file}: {topic} is {guess.format} by its newest {guess.looked_at} records")
    if guess.unreadable:
        print_line(f"{guess.unreadable} of them are not, and would go to the dead-letter topic")
    print_line(f"see the result: ottla pipeline preview {file}")


def _ask(option: str, question: str) -> str:
    if not sys.stdin.isatty():
        raise UsageError(f"{option} is missing")
    return input(f"{question}: ").strip()
