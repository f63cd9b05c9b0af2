"""Measures Ottla, beside Apache Kafka where it can be had: `python -m benchmarks`."""
