"""The common part of consumer groups and share groups: the coordinator assigns partitions."""
