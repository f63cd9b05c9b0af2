import json
import threading
from itertools import pairwise

import pytest
from tests.client.topics import create_topic
from tests.pyspark_ottla.sink.written import records

from ottla.cli.demo import orders
from ottla.client.wire.cluster import Cluster

pytestmark = pytest.mark.process


def test_a_minute_is_written_whole_before_the_next_one_begins_also_after_a_pause(
    bootstrap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Cluster(bootstrap) as cluster:
        append_time = {"message.timestamp.type": "LogAppendTime"}
        topic = create_topic(cluster, orders.PARTITIONS, **append_time)
        monkeypatch.setattr(orders, "ORDERS", topic)
        monkeypatch.setattr(orders, "_TICK_S", 2.2)  # A pause; then the load makes up for it.
        load = orders.Load(bootstrap, rate=20_000, seconds=2.3)
        load.run(threading.Event())
        written = [record for batch in records(cluster, topic).values() for record in batch]
    appended: dict[str, list[int]] = {}  # Times, keyed by the minute of the orders.
    for record in written:
        minute = json.loads(record.value or b"")["at"][:16]
        appended.setdefault(minute, []).append(record.timestamp)
    assert len(written) == load.count + orders.PARTITIONS
    times = [appended[minute] for minute in sorted(appended)]
    assert len(times) > 2  # And the last ones, which close all minutes.
    assert all(max(earlier) <= min(later) for earlier, later in pairwise(times))
