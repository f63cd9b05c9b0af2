from pathlib import Path


def forget_last_commit(checkpoint: Path) -> None:
    """As if Spark had died before it recorded the batch as written."""
    last = max((checkpoint / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
    for path in (last, last.with_name(f".{last.name}.crc")):
        path.unlink(missing_ok=True)
