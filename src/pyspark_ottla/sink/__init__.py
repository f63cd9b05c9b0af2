"""Rows into topics: what `write` and `writeStream` of the format `ottla` do.

options, columns     validated user input
partitioner          which partition each row belongs to
producer             one task's rows to their partitions, in batches
identity             transaction names
decisions            the log of each sink's last batch that counts
two_phase            exactly once: prepare in tasks, one decision, finish
writers              the interface that Spark calls
"""
