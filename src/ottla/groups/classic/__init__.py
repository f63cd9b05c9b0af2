"""Classic groups: the members agree on an assignment that one of them, the leader, makes."""
