"""Duration histograms, in buckets that cost the hot path no search.

A duration is counted by the bit length of its nanoseconds: bucket `i` has those from 2**(i - 1) up
to 2**i, exclusive. Readers may merge as many buckets as they want.
"""

_BUCKETS: int = 64


class Durations:
    """Plain integers, changed by one thread and readable by any."""

    __slots__ = ("counts", "total_ns")

    def __init__(self) -> None:
        self.counts = [0] * _BUCKETS
        self.total_ns = 0

    def add(self, duration_ns: int, count: int = 1) -> None:
        """`count` things took this long each."""
        self.counts[duration_ns.bit_length()] += count
        self.total_ns += duration_ns * count


class ApiCounters(Durations):
    """The requests of one API. Durations are from the receipt of a request to the moment when its
    response leaves, including everything it waited for."""

    __slots__ = ("errors", "unanswered")

    def __init__(self) -> None:
        super().__init__()
        self.unanswered = 0  # Requests without a response.
        self.errors: dict[int, int] = {}  # By error code; one per rejected item.

    @property
    def requests(self) -> int:
        """The finished requests."""
        return sum(self.counts) + self.unanswered

    def refuse(self, error_code: int) -> None:
        self.errors[error_code] = self.errors.get(error_code, 0) + 1
