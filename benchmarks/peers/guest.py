"""What peers that do not speak Kafka's protocol have in common."""

from pathlib import Path

from benchmarks.peers.peer import Flush


class Guest:
    """One server with one flush policy, which creates its directory when it starts."""

    def format(self, directory: Path, port: int) -> None:
        del directory, port

    def topic_config(self, flush: Flush) -> dict[str, str]:
        del flush
        return {}

    def shares_server(self) -> bool:
        return True

    def warm_seconds(self) -> float:
        return 3.0
