"""Measures Spark on Ottla next to Spark's own Kafka connector: `python -m benchmarks.spark`."""
