"""The common part of consumer, share and streams groups, which the coordinator assigns."""
