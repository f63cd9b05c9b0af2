"""What consumer groups and share groups have in common: the coordinator assigns partitions."""
