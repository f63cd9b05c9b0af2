"""`ottla reassignments list`: which partitions get other replicas now, and how far that is."""

from ottla.cli.broker_call import bootstrap_broker
from ottla.cli.connection import DEFAULT_CONNECTION, Connection
from ottla.cli.copy_progress import bytes_left, read_sizes
from ottla.cli.output import print_json, print_line, print_rows
from ottla.cli.parameters import AsJson
from ottla.cli.reassignment import ongoing_moves

COLUMNS = ("topic", "partition", "replicas", "new_replicas", "bytes_left")


def list_reassignments(
    *, connection: Connection = DEFAULT_CONNECTION, as_json: AsJson = False
) -> None:
    """List the partitions that are being given other replicas."""
    with bootstrap_broker(connection) as broker:
        moves = ongoing_moves(broker)
        sizes = read_sizes(broker, moves) if moves else {}
    rows = [
        {
            "topic": move.topic_partition.topic,
            "partition": move.topic_partition.partition,
            "replicas": move.before,
            "new_replicas": move.after,
            "bytes_left": bytes_left(sizes, move),
        }
        for move in moves
    ]
    if as_json:
        print_json(rows)
    elif not rows:
        print_line("nothing is being reassigned")
    else:
        print_rows(COLUMNS, rows)
