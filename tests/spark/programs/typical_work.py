"""Does a little of what Spark does in the tests, so that Java can archive the classes it needs."""

import json
import tempfile
from pathlib import Path
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession
from tests.broker_process import BrokerProcess
from tests.client.topics import create_topic
from tests.pyspark_ottla.rows import write
from tests.spark.deployments import SETTINGS

from ottla.client.wire.cluster import Cluster, TopicPartition
from pyspark_ottla.pipeline.file import load_pipeline
from pyspark_ottla.pipeline.run import run_pipeline

PIPELINE = """\
name: typical
sources:
  clicks:
    topic: clicks
    format: json
    schema: at timestamp, page string
    watermark: {column: at, delay: 1 minute}
    bad-values: quarantine
    expect:
      has_page: {check: page is not null, otherwise: drop}
steps:
  counts:
    sql: select window.start as start, page, count(*) as clicks from clicks
      group by window(at, '1 minute'), page
sinks:
  out: {from: counts, topic: out}
  files: {from: clicks, parquet: files}
  table: {from: clicks, delta: table}
"""


def main(directory: Path) -> None:
    builder: Any = SparkSession.builder.master("local[2]")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    spark = builder.config("spark.sql.shuffle.partitions", "1").getOrCreate()
    with BrokerProcess(directory) as broker, Cluster(broker.bootstrap) as cluster:
        topic = create_topic(cluster, name="clicks")
        clicks = [{"at": f"2026-01-01T10:0{minute}:30Z", "page": "/"} for minute in (0, 1, 9)]
        write(cluster, TopicPartition(topic, 0), *(json.dumps(each).encode() for each in clicks))
        path = directory / "pipeline.yaml"
        path.write_text(PIPELINE)
        run_pipeline(spark, load_pipeline(path, bootstrap_servers=broker.bootstrap))
        reader = spark.read.format("ottla").option("kafka.bootstrap.servers", broker.bootstrap)
        rows = reader.option("subscribe", topic).load().where("offset < 9")
        rows.groupBy("key").count().orderBy("count").collect()
    spark.read.parquet(str(directory / "files")).collect()
    gateway = SparkContext._gateway
    assert gateway is not None
    spark.stop()
    gateway.proc.stdin.close()  # Java exits, which takes as long as it takes to write an archive.
    gateway.proc.wait()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        main(Path(directory))
