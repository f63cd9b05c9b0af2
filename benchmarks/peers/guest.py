"""What a peer that does not speak Kafka's protocol has in common with the others of its kind."""

from pathlib import Path

from benchmarks.peers.peer import Flush


class Guest:
    """One server with one way to flush, which makes its directory when it starts."""

    def format(self, directory: Path, port: int) -> None:
        del directory, port

    def topic_config(self, flush: Flush) -> dict[str, str]:
        del flush
        return {}

    def shares_server(self) -> bool:
        return True

    def warm_seconds(self) -> float:
        return 3.0
