"""Classic groups: the leader, one of the members, makes the assignment."""
