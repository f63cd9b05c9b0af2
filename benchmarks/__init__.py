"""Measures Ottla, next to Apache Kafka where that is available: `python -m benchmarks`."""
