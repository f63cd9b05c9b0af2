"""The contract of a replicated state machine, and the records of coordinators."""
