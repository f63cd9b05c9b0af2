"""The contract of a replicated state machine."""
