"""Orders from a topic into tables, and large ones into another topic, exactly once."""

import os

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

SERVERS = os.environ.get("OTTLA_BOOTSTRAP_SERVER", "localhost:9092")

spark = SparkSession.active()


@dp.table
def raw_orders() -> DataFrame:
    """Every order, as a streaming table: each run adds the new ones."""
    return (
        spark.readStream.format("ottla")
        .option("kafka.bootstrap.servers", SERVERS)
        .option("subscribe", "orders")
        .option("startingOffsets", "earliest")
        .option("valueFormat", "json")
        .option("valueSchema", "id bigint, customer string, amount double")
        .load()
        .select("value.*", "timestamp")
    )


@dp.materialized_view
def per_customer() -> DataFrame:
    """What each customer has ordered; recomputed by each run."""
    orders = spark.read.table("raw_orders")
    return orders.groupBy("customer").agg(
        F.count("*").alias("orders"), F.sum("amount").alias("amount")
    )


dp.create_sink(
    "large_orders",
    "ottla",
    {
        "kafka.bootstrap.servers": SERVERS,
        "topic": "large-orders",
        "sinkId": "declarative-large-orders",
    },
)


# A table in files takes one flow; two would lose each other's rows.
@dp.append_flow(target="large_orders")
def large() -> DataFrame:
    orders = spark.readStream.table("raw_orders").where("amount >= 100")
    return orders.select(
        F.col("customer").alias("key"), F.to_json(F.struct("id", "amount")).alias("value")
    )
