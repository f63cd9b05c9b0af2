"""`ottla reassignments list`: which partitions get other replicas now, and how far that is."""

from ottla.cli.broker_call import bootstrap_broker
from ottla.cli.connection import DEFAULT_CONNECTION, Connection
from ottla.cli.copy_progress import bytes_left, read_sizes
from ottla.cli.output import print_line, print_listing
from ottla.cli.parameters import AsJson
from ottla.cli.reassignment import ongoing_moves, plan_document

COLUMNS = ("topic", "partition", "replicas", "new_replicas", "bytes_left")


def list_reassignments(
    *, connection: Connection = DEFAULT_CONNECTION, as_json: AsJson = False
) -> None:
    """List the partitions that are being given other replicas."""
    with bootstrap_broker(connection) as broker:
        moves = ongoing_moves(broker)
        sizes = read_sizes(broker, moves) if moves else {}
    rows = [
        row | {"bytes_left": bytes_left(sizes, move)}
        for row, move in zip(plan_document(moves), moves, strict=True)
    ]
    if rows or as_json:
        print_listing(COLUMNS, rows, as_json=as_json)
    else:
        print_line("nothing is being reassigned")
