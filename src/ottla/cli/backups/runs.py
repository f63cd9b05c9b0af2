"""`ottla backup list`: the runs from which a backup can be restored."""

from ottla.cli.backups.manifest import BackupDocument, runs_of
from ottla.cli.backups.store import open_store
from ottla.cli.output import print_listing
from ottla.cli.parameters import AsJson


def list_runs(from_: str, /, *, as_json: AsJson = False) -> None:
    """List the runs that are kept, oldest first.

    Args:
        from_: The directory, or the URL of the object store.
    """
    store = open_store(from_)
    BackupDocument.load(store)
    rows = []
    for run in runs_of(store):
        document = BackupDocument.load(store, run)
        rows.append(
            {
                "run": run,
                "taken_at": document.taken_at,
                "topics": len(document.topics),
                "partitions": sum(len(topic.end_offsets) for topic in document.topics),
            }
        )
    print_listing(("run", "taken_at", "topics", "partitions"), rows, as_json=as_json)
