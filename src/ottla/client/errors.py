"""What goes wrong in a client. Errors of the cluster are confluent-kafka's `KafkaException`."""


class BufferFull(BufferError):
    """More is to be sent than `buffer_memory` holds."""


class NotStarted(RuntimeError):
    """The client is not started, or is closed."""


class NotFlushed(TimeoutError):
    """Not everything was delivered in time; what was not is still tried."""
