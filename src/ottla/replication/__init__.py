"""Replicas of partitions: leaders, high watermark, fetch sessions, delayed requests."""
