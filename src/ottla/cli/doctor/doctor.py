"""`ottla doctor`: what is wrong, how bad it is, and which command repairs it.

Without a path it looks at a running cluster; with `--config` or `--data` at the machine that a
node is to run on, and its files.
"""

import datetime as dt
import ssl
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ottla.cli.broker_call import bootstrap_broker
from ottla.cli.connection import DEFAULT_CONNECTION, Connection
from ottla.cli.doctor.cluster_checks import check_cluster
from ottla.cli.doctor.cluster_state import read_cluster
from ottla.cli.doctor.config_checks import check_config, check_expiry, peer_certificate_end
from ottla.cli.doctor.data_checks import check_data
from ottla.cli.doctor.finding import Finding, Severity, critical, note, numbered, warning
from ottla.cli.doctor.machine_checks import check_machine
from ottla.cli.errors import CommandError, ExitCode
from ottla.cli.output import print_json, print_line, some
from ottla.cli.parameters import AsJson, Flag
from ottla.node.config import NODE_ID
from ottla.protocol.addresses import Address
from ottla.storage.broker_config import LOG_DIRS

LAG_NOTED: Final = 100_000  # Records.
_WIDTH: Final = 79
_INDENT: Final = 10
_SEVERITIES: Final = {
    Severity.CRITICAL: ("critical", "critical"),
    Severity.WARNING: ("warning", "warnings"),
    Severity.NOTE: ("note", "notes"),
}


def doctor(
    *,
    config: Path | None = None,
    data: list[Path] | None = None,
    deep: Flag = False,
    connection: Connection = DEFAULT_CONNECTION,
    as_json: AsJson = False,
) -> int:
    """Find problems in a cluster, a configuration or a data directory, and how to fix them.

    Exits with 1 if there are any.

    Args:
        config: Check this machine, this configuration file and its data directories instead of a
            cluster.
        data: Check this machine and this data directory instead of a cluster; may be repeated.
        deep: Read and check every record in the data directories.
    """
    if config is not None or data:
        findings = [*check_machine(), *_check_files(config, data or [], deep=deep)]
    else:
        findings = list(_check_running(connection))
    findings.sort(key=lambda finding: -finding.severity)
    is_healthy = all(finding.severity is Severity.NOTE for finding in findings)
    if as_json:
        print_json({"healthy": is_healthy, "findings": [each.document() for each in findings]})
    else:
        _print(findings)
    return ExitCode.OK if is_healthy else ExitCode.FAILED


def _check_files(config: Path | None, data: list[Path], *, deep: bool) -> Iterator[Finding]:
    node_id: int | None = None
    directories = list(data)
    if config is not None:
        findings, values = check_config(config, dt.datetime.now(dt.UTC))
        yield from findings
        if values is not None:
            node_id = values[NODE_ID]
            directories.extend(Path(path) for path in values[LOG_DIRS])
    for directory in dict.fromkeys(directories):
        yield from check_data(directory, node_id, deep=deep)


def _check_running(connection: Connection) -> Iterator[Finding]:
    try:
        state = read_cluster(connection)
    except CommandError as error:
        yield critical("cluster", str(error), "see the message")
        return
    yield from check_cluster(state)
    if state.unreachable:
        return  # What follows asks every node.
    for name, look in (
        ("transactions", _check_transactions),
        ("groups", _check_groups),
        ("certificates", _check_certificates),
    ):
        try:
            yield from look(connection)
        except CommandError as error:
            yield warning(name, f"they could not be looked at: {error}", "see the message")


def _check_transactions(connection: Connection) -> Iterator[Finding]:
    from ottla.cli.transactions.hanging import LONGEST_TRANSACTION_MS, find_hanging

    found = find_hanging(connection, None, time.time_ns() // 1_000_000 - LONGEST_TRANSACTION_MS)
    if found:
        topic_partitions = sorted({str(each.topic_partition) for each in found})
        yield critical(
            "transactions",
            f"{numbered(len(found), 'transaction hangs', 'transactions hang')}, and read_committed"
            f" consumers wait there: {some(topic_partitions)}",
            "ottla transactions hanging --abort",
        )


def _check_groups(connection: Connection) -> Iterator[Finding]:
    from ottla.cli.groups.lag import lag_rows

    for row in lag_rows(connection):
        name, behind = row["group"], row["lag"]
        if behind and not row["members"]:
            yield warning(
                "lag",
                f"group {name} has no members and is"
                f" {numbered(behind, 'record', 'records')} behind",
                f"start its consumers, or delete it: `ottla groups delete {name}`",
            )
        elif behind >= LAG_NOTED:
            yield note(
                "lag",
                f"group {name} is {behind} records behind, with {row['members']} members",
                f"`ottla groups describe {name}` shows where; add consumers or partitions",
            )


def _check_certificates(connection: Connection) -> Iterator[Finding]:
    import socket

    with bootstrap_broker(connection, looks=False) as broker:
        nodes = [node for node in broker.nodes() if not node.fenced]
    for address in (Address(node.host, node.port) for node in nodes):
        try:
            with (
                socket.create_connection(address, timeout=connection.connect_timeout) as plain,
                connection.security().wrap(plain, address.host) as locked,
            ):
                if isinstance(locked, ssl.SSLSocket) and (end := peer_certificate_end(locked)):
                    yield from check_expiry(
                        f"the certificate of {address}", end, dt.datetime.now(dt.UTC)
                    )
        except OSError as error:
            raise CommandError(f"{address}: {error}") from None


def _print(findings: list[Finding]) -> None:
    for finding in findings:
        name = finding.severity.name.ljust(_INDENT)
        print_line(_wrapped(f"{finding.subject}: {finding.problem}", name))
        print_line(_wrapped(f"-> {finding.repair}", " " * _INDENT) + "\n")
    counts = [
        numbered(count, *_SEVERITIES[severity])
        for severity in reversed(Severity)
        if (count := sum(finding.severity is severity for finding in findings))
    ]
    print_line(f"found: {', '.join(counts)}" if counts else "nothing is wrong")


def _wrapped(text: str, first: str) -> str:
    return textwrap.fill(
        text,
        _WIDTH,
        initial_indent=first,
        subsequent_indent=" " * _INDENT,
        break_long_words=False,
        break_on_hyphens=False,
    )
