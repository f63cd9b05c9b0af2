"""The consensus core: KRaft without I/O."""
