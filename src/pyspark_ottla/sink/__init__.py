"""Rows into topics: what `write` and `writeStream` of the format `ottla` do.

options, columns     what the user asks for, checked
partitioner          which partition each row belongs to
producer             rows of one task to their partitions, in batches
identity             the names of transactions
decisions            the log that says which batch of a sink is the last one that counts
two_phase            exactly once: prepare in tasks, one decision, finish
writers              what Spark calls
"""
