"""`ottla pipeline group`: run several pipelines, and start again those that fail."""

import signal
import sys

from ottla.cli.errors import CommandError, UsageError
from ottla.cli.output import print_now
from ottla.cli.parameters import Flag, validate_positive
from ottla.cli.pipelines.options import DEFAULT_OPTIONS, LOCAL, Files, PipelineOptions, spark_errors


def group(
    files: Files,
    /,
    *,
    once: Flag = False,
    failures: int = 5,
    options: PipelineOptions = DEFAULT_OPTIONS,
) -> None:
    """Run pipelines side by side, each in its own process with its own Spark.

    One that fails is restarted after a pause that doubles; the others keep running. Ctrl-c or
    SIGTERM stops all of them cleanly. Exits with 1 if it gave up on one.

    Args:
        once: Process what is available, then stop.
        failures: Give up on a pipeline after this many failures in a row.
    """
    validate_positive("--failures", failures)
    pipelines = [options.load(file) for file in files]  # What is wrong is told before any starts.
    names = [pipeline.name for pipeline in pipelines]
    if len(set(names)) != len(names):
        raise UsageError(f"two pipelines have one name: {', '.join(names)}")
    with spark_errors():
        from pyspark_ottla.pipeline.group import Group, Member
    arguments = ["--once"] if once else []
    arguments += _arguments(options)
    members = [
        Member(name, [sys.executable, "-m", "ottla", "pipeline", "run", str(file), *arguments])
        for name, file in zip(names, files, strict=True)
    ]
    running = Group(members, failures_max=failures, say=print_now)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: running.stop())
    running.run()
    if running.given_up:
        raise CommandError(f"given up: {', '.join(running.given_up)}")


def _arguments(options: PipelineOptions) -> list[str]:
    given = {
        "--bootstrap-server": options.bootstrap_server,
        "--command-config": options.command_config and str(options.command_config),
        "--checkpoints": options.checkpoints,
        "--master": None if options.master == LOCAL else options.master,
        "--remote": options.remote,
    }
    found = [text for name, value in given.items() if value for text in (name, value)]
    return found + [text for value in options.set_ or [] for text in ("--set", value)]
