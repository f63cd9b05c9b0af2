"""How long things take, in buckets that cost the hot path no search.

A duration is counted by the bit length of its nanoseconds: bucket `i` has those from 2**(i - 1) up
to, not including, 2**i. Whoever reads the counts joins as many buckets as wanted.
"""

_BUCKETS: int = 64


class Durations:
    """Plain integers, which one thread changes and any may read."""

    __slots__ = ("counts", "total_ns")

    def __init__(self) -> None:
        self.counts = [0] * _BUCKETS
        self.total_ns = 0

    def add(self, duration_ns: int, count: int = 1) -> None:
        """`count` things took this long each."""
        self.counts[duration_ns.bit_length()] += count
        self.total_ns += duration_ns * count


class ApiCounters(Durations):
    """The requests of one API. Durations are those of answers: from the receipt of the request to
    the moment when its answer leaves, with everything that it waited for."""

    __slots__ = ("errors", "unanswered")

    def __init__(self) -> None:
        super().__init__()
        self.unanswered = 0  # Those that want no answer.
        self.errors: dict[int, int] = {}  # By error code; one for each item that was refused.

    @property
    def requests(self) -> int:
        """Those that are done with."""
        return sum(self.counts) + self.unanswered

    def refuse(self, error_code: int) -> None:
        self.errors[error_code] = self.errors.get(error_code, 0) + 1
