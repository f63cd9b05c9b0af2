"""`ottla secure renew`: new keys and certificates for nodes, of the same authority."""

from pathlib import Path

from ottla.cli.errors import UsageError
from ottla.cli.output import print_line
from ottla.cli.secure.init import Cluster, write_private


def renew(*, hosts: str | None = None, directory: Path = Path("secure")) -> None:
    """Create new keys and certificates for nodes that `ottla secure init` set up.

    Copy each `node.pem` over the one on its node, which reloads it by itself.

    Args:
        hosts: Names or addresses of the nodes, comma-separated. [default: all of them]
        directory: Directory that `ottla secure init` wrote.
    """
    if not (directory / "ca-key.pem").exists():
        raise UsageError(f"{directory} has no authority; `ottla secure init` makes one")
    cluster = Cluster(directory)
    known = {node.name.replace("_", ":"): node for node in cluster.nodes}
    names = [name.strip() for name in hosts.split(",")] if hosts else list(known)
    for name in names:
        if name not in known:
            raise UsageError(f"--hosts: {directory} has no node {name!r}")
    for name in names:
        path = known[name] / "node.pem"
        fresh = path.with_suffix(".new")
        fresh.unlink(missing_ok=True)
        write_private(fresh, cluster.new_keystore(name))
        fresh.replace(path)
        print_line(f"Wrote {path}. Copy it over the one on {name}.")
