"""Measures Spark over Ottla beside Spark's own Kafka connector: `python -m benchmarks.spark`."""
