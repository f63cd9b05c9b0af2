import json
import threading

import pytest
from tests.client.topics import create_topic
from tests.pyspark_ottla.sink.written import records

from ottla.cli.demo import orders
from ottla.client.wire.cluster import Cluster

pytestmark = pytest.mark.process


def test_no_order_is_written_after_those_that_close_all_minutes(
    bootstrap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Cluster(bootstrap) as cluster:
        append_time = {"message.timestamp.type": "LogAppendTime"}
        topic = create_topic(cluster, orders.PARTITIONS, **append_time)
        monkeypatch.setattr(orders, "ORDERS", topic)
        load = orders.Load(bootstrap, rate=2_000, seconds=0.1)
        load.run(threading.Event())
        written = [record for batch in records(cluster, topic).values() for record in batch]
    appended: dict[bool, list[int]] = {False: [], True: []}  # Times, by whether it is a last one.
    for record in written:
        customer = json.loads(record.value or b"")["customer"]
        appended[customer == orders.LAST_CUSTOMER].append(record.timestamp)
    assert len(appended[False]) == load.count > 0
    assert len(appended[True]) == orders.PARTITIONS
    assert max(appended[False]) <= min(appended[True])
