"""Metric families, and the lines of Prometheus' text format.

The library needs about 8 microseconds to format a sample, which is a tenth of a second for a
thousand partitions. Here the labels of a partition are formatted once for all its metrics.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple, TypeVar

from ottla.network.durations import Durations

Number = int | float
Rows = Iterable[tuple[str, Number]]  # Formatted labels and a value.

# The exponents of a histogram's bounds, powers of two in nanoseconds: 0.26 ms to 17 s, each four
# times the previous one.
_BOUNDS: Final = (18, 20, 22, 24, 26, 28, 30, 32, 34)

T = TypeVar("T")


class Family(NamedTuple):
    kind: str
    name: str
    text: str
    labels: tuple[str, ...] = ()
    setting: str = ""  # The configuration key that can omit it.

    def line(self, value: Number) -> Iterator[str]:
        """For a family without labels."""
        yield self.head
        yield f"{self.name} {value}\n"

    def lines(self, rows: Rows) -> Iterator[str]:
        yield self.head
        name = self.name
        for labels, value in rows:
            yield f"{name}{labels} {value}\n"

    def by(self, values: Iterable[tuple[str, Number]]) -> Iterator[str]:
        """For a family with one label."""
        (label,) = self.labels
        return self.lines((labelled((label,), (each,)), value) for each, value in values)

    def histogram(self, durations: Iterable[tuple[Sequence[str], Durations]]) -> Iterator[str]:
        """By label values."""
        yield self.head
        for values, each in durations:
            own = labelled(self.labels, values)[1:-1] if values else ""
            counts = tuple(each.counts)
            before = f"{own}," if own else ""
            for exponent in _BOUNDS:
                count = sum(counts[: exponent + 1])
                yield f'{self.name}_bucket{{{before}le="{2**exponent / 1e9}"}} {count}\n'
            yield f'{self.name}_bucket{{{before}le="+Inf"}} {sum(counts)}\n'
            yield f"{self.name}_sum{{{own}}} {each.total_ns / 1e9}\n"
            yield f"{self.name}_count{{{own}}} {sum(counts)}\n"

    @property
    def head(self) -> str:
        return f"# HELP {self.name} {self.text}\n# TYPE {self.name} {self.kind}\n"


class Section:
    """Related families, in the order of their declaration."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.families: list[Family] = []

    def gauge(
        self, name: str, text: str, labels: tuple[str, ...] = (), setting: str = ""
    ) -> Family:
        return self._declare(Family("gauge", name, text, labels, setting))

    def counter(
        self, name: str, text: str, labels: tuple[str, ...] = (), setting: str = ""
    ) -> Family:
        return self._declare(Family("counter", name, text, labels, setting))

    def histogram(self, name: str, text: str, labels: tuple[str, ...] = ()) -> Family:
        return self._declare(Family("histogram", name, text, labels))

    def _declare(self, family: Family) -> Family:
        self.families.append(family)
        return family


def labelled(names: Sequence[str], values: Sequence[object]) -> str:
    pairs = zip(names, values, strict=True)
    return "{" + ",".join(f'{name}="{_escaped(str(value))}"' for name, value in pairs) + "}"


def _escaped(value: str) -> str:
    if "\\" in value or '"' in value or "\n" in value:
        return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
    return value


def copied(values: Callable[[], Iterable[T]]) -> list[T]:
    """A copy of what another thread may be changing."""
    while True:
        try:
            return list(values())
        except (RuntimeError, KeyError):  # A dict has changed its size, or lost an item.
            continue
