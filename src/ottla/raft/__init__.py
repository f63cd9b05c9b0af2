"""The consensus core: KRaft as decisions without I/O."""
