"""Reads a topic as a table and copies it, as a table and as a stream: `SOURCE TARGET BOOTSTRAP`.

Runs wherever its environment says. Prints its results as JSON. The stream runs twice from one
checkpoint, the second time with its last commit forgotten, as after a crash.
"""

import json
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession


def main(bootstrap: str, source: str, target: str, directory: Path) -> None:
    spark = SparkSession.builder.getOrCreate()
    server = {"kafka.bootstrap.servers": bootstrap}
    table = spark.read.format("ottla").options(subscribe=source, **server).load()
    found = {
        "rows": table.count(),
        "later": table.where("partition = 1 and offset >= 90").count(),
        "keys": table.selectExpr("string(key) as key").distinct().count(),
    }
    copy_stream(spark, server, source, target, directory / "checkpoint")
    forget_last_commit(directory / "checkpoint")
    copy_stream(spark, server, source, target, directory / "checkpoint")
    written = table.where("partition = 0").selectExpr("key", "concat('again ', value) as value")
    once = {"topic": target, "delivery": "exactly_once", "sinkId": f"{target}-table"}
    for _ in range(2):
        writer = written.write.format("ottla").options(**once, **server).option("batchId", 0)
        writer.mode("append").save()
    print(json.dumps(found))
    spark.stop()


def copy_stream(
    spark: Any, server: dict[str, str], source: str, target: str, checkpoint: Path
) -> None:
    reader = spark.readStream.format("ottla").options(subscribe=source, **server)
    rows = reader.options(startingOffsets="earliest", maxOffsetsPerTrigger="120").load()
    writer = rows.select("key", "value").writeStream.format("ottla").options(**server)
    writer = writer.options(topic=target, sinkId=target, checkpointLocation=str(checkpoint))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()


def forget_last_commit(checkpoint: Path) -> None:
    last = max((checkpoint / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
    for path in (last, last.with_name(f".{last.name}.crc")):
        path.unlink(missing_ok=True)


if __name__ == "__main__":
    _, bootstrap, source, target, directory = sys.argv
    main(bootstrap, source, target, Path(directory))
