"""`ottla topics unhealthy`: only the partitions that lack a leader, replicas or records."""

from typing import Any

from ottla.cli.broker_call import BrokerCall, bootstrap_broker
from ottla.cli.connection import DEFAULT_CONNECTION, Connection
from ottla.cli.damaged_replicas import DamagedReplicas, read_damage
from ottla.cli.output import print_json, print_line, print_rows
from ottla.cli.parameters import AsJson

COLUMNS = ("topic", "partition", "leader", "replicas", "isr", "problem")


def unhealthy(*, connection: Connection = DEFAULT_CONNECTION, as_json: AsJson = False) -> None:
    """Show the partitions that have no leader, or replicas that are out of sync or damaged."""
    with bootstrap_broker(connection) as broker:
        rows = unhealthy_rows(broker, read_damage(broker))
    if rows:
        _show(rows, as_json)
    connection.check_nodes(tolerates_few=True)  # Without a majority what is known may be old.
    if not rows:
        _show(rows, as_json)


def _show(rows: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        print_json(rows)
    elif rows:
        print_rows(COLUMNS, rows)
    else:
        print_line("every partition has a leader, and all replicas are in sync")


def unhealthy_rows(broker: BrokerCall, damage: DamagedReplicas) -> list[dict[str, Any]]:
    rows = []
    for topic_partition, partition in sorted(broker.partitions().items()):
        missing = [node for node in partition.replica_nodes if node not in partition.isr_nodes]
        damaged = damage.get(topic_partition, [])
        if partition.leader_id >= 0 and not missing and not damaged:
            continue
        problems = list(map(str, damaged))
        if partition.leader_id < 0:
            problems.insert(0, "no leader")
        elif missing:
            problems.insert(0, f"out of sync: {', '.join(map(str, missing))}")
        rows.append(
            {
                **topic_partition._asdict(),
                "leader": partition.leader_id if partition.leader_id >= 0 else None,
                "replicas": list(partition.replica_nodes),
                "isr": list(partition.isr_nodes),
                "problem": "; ".join(problems),
            }
        )
    return rows
