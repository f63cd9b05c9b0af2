"""`ottla cluster status`: one answer for monitoring, and an exit code."""

from ottla.cli.broker_call import bootstrap_broker
from ottla.cli.connection import DEFAULT_CONNECTION, Connection
from ottla.cli.damaged_replicas import read_damage
from ottla.cli.errors import ExitCode
from ottla.cli.output import print_outcome
from ottla.cli.parameters import AsJson
from ottla.cli.topics.unhealthy import unhealthy_rows


def status(*, connection: Connection = DEFAULT_CONNECTION, as_json: AsJson = False) -> int:
    """Show whether the cluster is healthy. Exits with 0, with 1 if not, or with 3 if it is down."""
    with bootstrap_broker(connection) as broker:
        nodes, quorum, damage = broker.nodes(), broker.quorum(), read_damage(broker)
        rows = unhealthy_rows(broker, damage)
    connection.check_nodes(tolerates_few=True)  # Without a majority nobody is fenced.
    down = [node.node_id for node in nodes if node.fenced]
    problems = [f"node {node} is down" for node in down]
    if quorum is not None and quorum.leader < 0:
        problems.append("the metadata quorum has no leader")
    leaderless = sum(row["leader"] is None for row in rows)
    if leaderless:
        problems.append(f"partitions without a leader: {leaderless}")
    behind = sum(
        row["leader"] is not None and set(row["isr"]) != set(row["replicas"]) for row in rows
    )
    if behind:
        problems.append(f"partitions with replicas out of sync: {behind}")
    problems += [
        f"{topic_partition.topic}-{topic_partition.partition} is {replica}"
        for topic_partition, replicas in sorted(damage.items())
        for replica in replicas
    ]
    text = f"healthy: {len(nodes)} {'node' if len(nodes) == 1 else 'nodes'}"
    if problems:
        text = f"unhealthy: {'; '.join(problems)}"
    document = {"healthy": not problems, "nodes": len(nodes), "problems": problems}
    print_outcome(document, text, as_json=as_json)
    return ExitCode.FAILED if problems else ExitCode.OK
