"""Share groups (KIP-932): membership, the records in flight of a partition, and their state."""
