"""Counts the records of a topic and prints the Java in use: `BOOTSTRAP TOPIC`."""

import json
import sys

from pyspark.sql import SparkSession


def main(bootstrap: str, topic: str) -> None:
    spark = SparkSession.builder.getOrCreate()
    reader = spark.read.format("ottla").option("kafka.bootstrap.servers", bootstrap)
    rows = reader.option("subscribe", topic).load().count()
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    home = jvm.java.lang.System.getProperty("java.home")
    print(json.dumps({"rows": rows, "java": home}))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
