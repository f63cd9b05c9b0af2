"""Consumer groups (KIP-848): the coordinator makes the assignment and reconciles the members."""
