"""Share groups (KIP-932): membership, the in-flight records of a partition, and their state."""
