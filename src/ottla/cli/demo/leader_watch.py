"""Which node leads which partition, asked again and again."""

import threading
import time

from ottla.cli.demo.demo_cluster import DemoCluster
from ottla.client.wire.errors import WireError

_PAUSE_S = 0.05


class LeaderWatch:
    def __init__(self, cluster: DemoCluster, topic: str) -> None:
        self.leaders: dict[int, int] = {}  # Node ids by partition, as they were last told.
        self.asked_s = 0.0  # When those were asked for.
        self._cluster = cluster
        self._topic = topic
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="demo-leaders", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()

    def led_count(self, node_id: int) -> int:
        return sum(leader == node_id for leader in self.leaders.values())

    def _run(self) -> None:
        with self._cluster.client() as client:
            while not self._stopping.wait(_PAUSE_S):
                asked_s = time.monotonic()
                try:
                    topic = client.topics([self._topic]).get(self._topic)
                except WireError:
                    continue  # Nobody answers for seconds; the view shows what was before.
                if topic is not None:
                    self.leaders = dict(topic.leaders)
                    self.asked_s = asked_s
