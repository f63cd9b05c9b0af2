"""Client-side errors. Errors from the cluster are confluent-kafka's `KafkaException`."""


class BufferFull(BufferError):
    """The unsent records fill `buffer_memory`."""


class NotStarted(RuntimeError):
    """The client was not started, or is closed."""


class NotFlushed(TimeoutError):
    """Not everything was delivered in time; delivery of the rest continues."""
