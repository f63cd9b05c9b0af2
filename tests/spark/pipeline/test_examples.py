"""The pipelines in examples/pipelines, end to end on generated data."""

import collections
import datetime as dt
import json
import random
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import deltalake
import pytest
from tests.broker_process import BrokerProcess
from tests.client.topics import create_topic
from tests.fork_server import REPOSITORY
from tests.pyspark_ottla.rows import write
from tests.pyspark_ottla.sink.written import records, values

from ottla.client.wire.cluster import Cluster, TopicPartition
from ottla.records.builder import Record
from pyspark_ottla.pipeline.file import load_pipeline
from pyspark_ottla.pipeline.progress import Progress
from pyspark_ottla.pipeline.run import run_pipeline
from pyspark_ottla.spark_api import VERSION

EXAMPLES = REPOSITORY / "examples" / "pipelines"
START = dt.datetime(2026, 1, 1, 10, tzinfo=dt.UTC)
CUSTOMERS = ("anna", "ben", "carl")


class Shop:
    """Its own broker, because the examples have fixed topic names."""

    def __init__(self, spark: Any, bootstrap: str, cluster: Cluster, directory: Path) -> None:
        self.spark = spark
        self.bootstrap = bootstrap
        self.cluster = cluster
        self.directory = directory

    def run(self, example: str, **variables: str) -> Progress:
        pipeline = load_pipeline(
            EXAMPLES / example,
            variables=variables,
            bootstrap_servers=self.bootstrap,
            checkpoints=str(self.directory / "checkpoints"),
        )
        return run_pipeline(self.spark, pipeline)

    def send(self, topic: str, rows: Iterable[Any], partition: int = 0) -> None:
        """Objects as JSON, text unchanged; a pair is a key and a value."""
        pairs = [row if isinstance(row, tuple) else (None, row) for row in rows]
        made = [
            Record(
                timestamp=_milliseconds(START) + number,
                key=None if key is None else key.encode(),
                value=_bytes(value),
            )
            for number, (key, value) in enumerate(pairs)
        ]
        write(self.cluster, TopicPartition(topic, partition), *made)

    def objects(self, topic: str) -> list[dict[str, Any]]:
        return [json.loads(value) for value in values(self.cluster, topic)]


def _bytes(value: Any) -> bytes | None:
    if value is None or isinstance(value, str):
        return None if value is None else value.encode()
    return json.dumps(value).encode()


def _milliseconds(time: dt.datetime) -> int:
    return int(time.timestamp() * 1000)


@pytest.fixture(scope="module")
def shop(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    directory = tmp_path_factory.mktemp("shop")
    with (
        BrokerProcess(directory) as broker,
        Cluster(broker.bootstrap) as cluster,
    ):
        yield Shop(spark, broker.bootstrap, cluster, directory)


def order(number: int, seconds: float, **changes: Any) -> dict[str, Any]:
    at = START + dt.timedelta(seconds=seconds)
    return {
        "id": number,
        "customer": CUSTOMERS[number % len(CUSTOMERS)],
        "amount": number % 50 + 0.5,
        "at": at.isoformat(),
    } | changes


def per_minute(orders: list[dict[str, Any]]) -> list[dict[str, Any]]:
    totals: dict[Any, list[float]] = collections.defaultdict(list)
    for each in orders:
        minute = dt.datetime.fromisoformat(each["at"]).replace(second=0, microsecond=0)
        totals[minute, each["customer"]].append(each["amount"])
    return [
        {
            "customer": customer,
            "minute": minute.strftime("%Y-%m-%dT%H:%M:%S.000Z"),
            "orders": len(amounts),
            "amount": round(sum(amounts), 2),
        }
        for (minute, customer), amounts in totals.items()
    ]


GOOD = [order(number, number * 3) for number in range(200)]
LATE = [order(number, 3600) for number in (500, 501)]  # Close all the minutes before.
BAD = [order(300, 100, customer=None), order(301, 100, amount=-1), "no json"]


@pytest.fixture(scope="module")
def orders(shop: Shop) -> Shop:
    create_topic(shop.cluster, 2, "orders")
    shuffled = random.Random(7).sample(GOOD, 30)  # These arrive in the second partition.
    rest = [each for each in GOOD if each not in shuffled]
    shop.send("orders", [*rest, *BAD, LATE[0]])
    shop.send("orders", [*shuffled, LATE[1]], partition=1)
    return shop


def by_row(rows: Iterable[dict[str, Any]]) -> list[str]:
    return sorted(json.dumps(row, sort_keys=True) for row in rows)


def test_orders_per_minute_and_the_replay_of_dead_letters(orders: Shop) -> None:
    progress = orders.run("orders-per-minute.yaml").queries["totals"]
    assert progress.refused == {
        "orders.has_customer": 1,
        "orders.positive_amount": 1,
        "orders.bad value": 1,
    }
    assert by_row(orders.objects("orders-per-minute")) == by_row(per_minute(GOOD))
    dead = values(orders.cluster, "orders-per-minute.dead-letter")
    assert dead == ["no json", json.dumps(BAD[0])]

    orders.run("dead-letter-replay.yaml", reason="has_customer")
    orders.run("dead-letter-replay.yaml", reason="has_customer")
    assert values(orders.cluster, "orders").count(json.dumps(BAD[0])) == 2
    assert values(orders.cluster, "orders").count("no json") == 1


def test_a_join_of_two_topics(orders: Shop) -> None:
    create_topic(orders.cluster, 1, "payments")
    paid = {number: START + dt.timedelta(seconds=number * 3 + 60) for number in range(0, 200, 7)}
    paid[1] = START + dt.timedelta(hours=5)  # Too late.
    orders.send(
        "payments",
        [{"order_id": number, "paid_at": at.isoformat()} for number, at in paid.items()],
    )
    orders.run("join.yaml")
    del paid[1]
    found = {each["id"]: each["customer"] for each in orders.objects("paid-orders")}
    assert found == {number: GOOD[number]["customer"] for number in paid}


def test_an_archive_has_every_record_as_it_is(orders: Shop) -> None:
    path = orders.directory / "archive"
    orders.run("archive.yaml", topic="orders", path=str(path))
    files = orders.spark.read.parquet(str(path / "orders"))
    archived = sorted(bytes(row.value) for row in files.select("value").collect())
    written = records(orders.cluster, "orders")
    assert archived == sorted(each.value or b"" for part in written.values() for each in part)
    assert [each.name for each in (path / "orders" / "topic=orders").iterdir()] == [
        "day=2026-01-01"
    ] or files.select("day").distinct().count() > 1  # The replayed rows have another day.


def test_an_archive_in_a_delta_table(orders: Shop) -> None:
    path = orders.directory / "archive-delta"
    orders.run("archive-delta.yaml", topic="orders", path=str(path))
    orders.send("orders", [("a key", "another record")], partition=1)
    orders.run("archive-delta.yaml", topic="orders", path=str(path))
    table = deltalake.DeltaTable(str(path / "orders")).to_pyarrow_table()
    archived = {(row["partition"], row["offset"]): row for row in table.to_pylist()}
    assert len(archived) == len(table)
    written = records(orders.cluster, "orders")
    assert {
        archived_path: (row["key"], row["value"]) for archived_path, row in archived.items()
    } == {
        (partition, each.offset): (each.key, each.value)
        for partition, part in written.items()
        for each in part
    }
    assert {row["day"] for row in archived.values()} >= {START.date()}


def click(user: str, page: str, minutes: float) -> dict[str, Any]:
    return {"user": user, "page": page, "at": (START + dt.timedelta(minutes=minutes)).isoformat()}


@pytest.mark.skipif(VERSION < (4, 1), reason="Spark 4.0 has no transformWithState in Python")
def test_sessions_of_a_clickstream_in_a_delta_table(shop: Shop) -> None:
    create_topic(shop.cluster, 1, "clicks")
    table = str(shop.directory / "sessions")
    shop.send(
        "clicks",
        [
            click("anna", "/", 0),
            click("anna", "/lamps", 5),
            click("ben", "/", 6),
            click("anna", "/lamps", 20),
            click("anna", "/", 60),  # 40 minutes later: a new session.
            "no json",
            click(None, "/", 61),  # type: ignore[arg-type]
        ],
    )
    shop.run("clickstream-sessions.yaml", table=table)
    shop.send("clicks", [click("anna", "/desks", 62), click("zoe", "/", 300)])
    shop.run("clickstream-sessions.yaml", table=table)
    rows = deltalake.DeltaTable(table).to_pyarrow_table().to_pylist()
    found = {
        (row["user"], row["clicks"], row["pages"], _minutes(row["start"]), _minutes(row["end"]))
        for row in rows
    }
    assert found == {("anna", 3, 2, 0, 20), ("ben", 1, 1, 6, 6), ("anna", 2, 2, 60, 62)}
    assert len(rows) == 3


def _minutes(time: dt.datetime) -> float:
    return (time - START) / dt.timedelta(minutes=1)


def test_change_events_as_the_current_state_in_a_delta_table(shop: Shop) -> None:
    create_topic(shop.cluster, 1, "customers", **{"cleanup.policy": "compact"})
    table = str(shop.directory / "customers")

    def change(key: str, city: str | None) -> tuple[str, Any]:
        return key, None if city is None else {"name": key.title(), "city": city, "credit": 1.5}

    shop.send("customers", [change("anna", "Ulm"), change("ben", "Bonn"), change("anna", "Kiel")])
    shop.run("current-state.yaml", table=table)
    assert _cities(table) == {"anna": "Kiel", "ben": "Bonn"}
    shop.send("customers", [change("ben", None), change("carl", "Jena"), change("anna", "Trier")])
    shop.run("current-state.yaml", table=table)
    assert _cities(table) == {"anna": "Trier", "carl": "Jena"}


def _cities(table: str) -> dict[str, str]:
    rows = deltalake.DeltaTable(table).to_pyarrow_table().to_pylist()
    return {row["id"]: row["city"] for row in rows}
