"""`ottla table sync`: a topic as a table."""

import contextlib
import json
import signal
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from ottla.cli.command_config import hand_to_spark
from ottla.cli.connection import DEFAULT_CONNECTION, Connection
from ottla.cli.errors import CommandError, UsageError
from ottla.cli.output import print_now
from ottla.cli.parameters import AsJson, Flag, validate_positive
from ottla.cli.tables.libraries import table_errors
from ottla.cli.tables.vacuum import RETENTION_HOURS

if TYPE_CHECKING:
    from pyspark_ottla.tables.sync_plan import SyncPlan
    from pyspark_ottla.tables.table import Version

LOCAL = "local[*]"
INTERVAL_S = 10.0
SHARE_PERCENT = 10.0


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class RowOptions:
    """How records become rows.

    Args:
        format: What values are.
        schema: Columns of JSON values, as 'item string, price int', or a file with it; for Avro
            the file with the writer's schema. JSON without it: from the first records.
        key_format: What keys are.
        headers: Keep the headers, in the column _headers.
        bad_rows: What becomes of values that do not fit: an error, or text in the column _corrupt.
        new_fields: Give the table a new column for each new field of JSON values.
        mode: Append every record, or have one row for each key: the last, unless it is a tombstone.
        partition_by: Partition a new table by the records' time (month, day, hour), by a hash of
            the key (key/16), or both (day,key/16).
    """

    format: Literal["json", "avro", "string", "binary"] = "json"
    schema: str | None = None
    key_format: Literal["binary", "string"] = "binary"
    headers: Flag = False
    bad_rows: Literal["fail", "column"] = "fail"
    new_fields: Flag = False
    mode: Literal["append", "upsert"] = "append"
    partition_by: str | None = None


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class RunOptions:
    """How it runs.

    Args:
        once: Write what there is now, then stop.
        interval: Seconds from one commit to the next.
        max_records: At most about so many in one commit.
        compact_every: Make few files of many after each N commits.
        maintain: Between commits, merge small files and remove old versions and stray files.
        maintain_share: How many percent of the time maintenance may take.
        retention_hours: How long maintenance keeps versions that a later one has replaced.
        commit_group: Commit offsets for this group, so that its lag is seen.
        sink_id: Name of the sync in the table; sync.TOPIC if not given.
        checkpoint: Directory of Spark's checkpoint; in the table if not given.
        starting_offsets: earliest, latest, or JSON as of the Spark source, for a new table.
        allow_data_loss: Go on when records are gone before they were read.
        master: Where Spark runs: local[*], or spark://HOST:PORT of a cluster.
        remote: sc://HOST:PORT of a Spark Connect server, instead of --master.
    """

    once: Flag = False
    interval: float = INTERVAL_S
    max_records: int | None = None
    compact_every: int | None = None
    maintain: Flag = False
    maintain_share: float = SHARE_PERCENT
    retention_hours: int = RETENTION_HOURS
    commit_group: str | None = None
    sink_id: str | None = None
    checkpoint: str | None = None
    starting_offsets: str = "earliest"
    allow_data_loss: Flag = False
    master: str = LOCAL
    remote: str | None = None


DEFAULT_ROWS = RowOptions()
DEFAULT_RUN = RunOptions()


def sync(
    topic: str,
    /,
    *,
    to: Annotated[
        str, Parameter(help="delta:PATH, iceberg:PATH, or iceberg:CATALOG.NAMESPACE.TABLE.")
    ],
    rows: RowOptions = DEFAULT_ROWS,
    options: RunOptions = DEFAULT_RUN,
    connection: Connection = DEFAULT_CONNECTION,
    as_json: AsJson = False,
) -> None:
    """Copy the records of a topic into a table, each exactly once, until ctrl-c or SIGTERM.

    The next run resumes where the table ends.

    Args:
        topic: Its name.
    """
    _validate(options)
    connection.client_config()  # Says at once when no broker is there.
    hand_to_spark(connection.command_config)
    with table_errors():
        plan = _plan(topic, to, rows, options, connection.bootstrap_server)
        from pyspark_ottla.tables.table import open_table

        open_table(to)  # Says which library is missing.
        plan.validate()
        _run(plan, options, as_json=as_json)


def _validate(options: RunOptions) -> None:
    if options.remote and options.master != LOCAL:
        raise UsageError("--master and --remote exclude each other")
    if options.interval <= 0:
        raise UsageError(f"--interval {options.interval} is not more than 0")
    if not 0 < options.maintain_share <= 100:
        raise UsageError(f"--maintain-share {options.maintain_share:g} is not between 0 and 100")
    for name in ("max_records", "compact_every", "retention_hours"):
        validate_positive(f"--{name.replace('_', '-')}", getattr(options, name))


def _plan(topic: str, to: str, rows: RowOptions, options: RunOptions, server: str) -> "SyncPlan":
    from pyspark_ottla.source_options import ValueFormat
    from pyspark_ottla.tables.address import parse_address
    from pyspark_ottla.tables.maintenance import Maintenance
    from pyspark_ottla.tables.partitioning import parse_partitioning
    from pyspark_ottla.tables.sync_plan import SyncPlan
    from pyspark_ottla.tables.topic_rows import BadRows, TopicRows

    if rows.partition_by and rows.mode == "upsert":
        raise UsageError("--partition-by is for --mode append")
    is_json = rows.format == "json"
    if rows.new_fields and not is_json:
        raise UsageError("--new-fields is for --format json")
    topic_rows = TopicRows(
        format=ValueFormat(rows.format),
        avro_schema=_avro_schema(rows),
        key_is_text=rows.key_format == "string",
        has_headers=rows.headers,
        bad_rows=BadRows(rows.bad_rows),
        is_changes=rows.mode == "upsert",
    )
    return SyncPlan(
        topic=topic,
        table=str(parse_address(to)),
        bootstrap_servers=server,
        rows=topic_rows,
        sink_id=options.sink_id or f"sync.{topic}",
        schema=rows.schema if is_json else None,
        new_fields=rows.new_fields,
        start=options.starting_offsets,
        records_max=options.max_records,
        compact_every=options.compact_every,
        maintenance=Maintenance(options.retention_hours, options.maintain_share)
        if options.maintain
        else None,
        partitioning=parse_partitioning([rows.partition_by] if rows.partition_by else []),
        commit_group=options.commit_group,
        fail_on_data_loss=not options.allow_data_loss,
        checkpoint=options.checkpoint,
    )


def _avro_schema(rows: RowOptions) -> str | None:
    if rows.format != "avro":
        if rows.schema is not None and rows.format != "json":
            raise UsageError(f"--schema has no meaning with --format {rows.format}")
        return None
    if rows.schema is None:
        raise UsageError("--format avro needs --schema: the file with the writer's schema")
    if rows.schema.lstrip()[:1] in '{["':
        return rows.schema
    try:
        return Path(rows.schema).read_text()
    except OSError as error:
        raise UsageError(f"--schema {rows.schema}: {error.strerror}") from None


def _run(plan: "SyncPlan", options: RunOptions, *, as_json: bool) -> None:
    from pyspark.errors import PySparkException

    from pyspark_ottla.java import JavaNotFound
    from pyspark_ottla.pipeline.session import open_session
    from pyspark_ottla.pipeline.spark_errors import describe_error
    from pyspark_ottla.tables.sync_run import SyncRun

    log = Path(tempfile.gettempdir(), f"ottla-table-{plan.sink_id}.log")
    try:
        spark = open_session(
            plan.topic, master=options.master, remote=options.remote or "", settings={}, log=log
        )
    except JavaNotFound as error:
        raise CommandError(str(error)) from None
    try:
        run = SyncRun(
            spark,
            plan,
            interval_s=None if options.once else options.interval,
            report=_print_as_json if as_json else _print,
        )
        with _stopped_by_signals(run):
            run.start()
            run.wait()
    except PySparkException as error:
        raise CommandError(describe_error(error).message) from None
    finally:
        spark.stop()


def _print(version: "Version") -> None:
    batch = version.batch
    assert batch is not None, "versions of a sync are batches"
    bad = f", {batch.bad_rows} bad" if batch.bad_rows else ""
    print_now(f"version {version.id}: {batch.rows} rows{bad}")


def _print_as_json(version: "Version") -> None:
    assert version.batch is not None, "versions of a sync are batches"
    print_now(json.dumps({"version": version.id, **version.batch.to_json()}))


@contextlib.contextmanager
def _stopped_by_signals(run: Any) -> Iterator[None]:
    """Between two batches; a second ctrl-c ends the process at once."""

    def stop(number: int, _: object) -> None:
        run.stop()
        signal.signal(number, signal.SIG_DFL)

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
