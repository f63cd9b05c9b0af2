"""What a person sees of the demonstration: a page that is drawn again, or lines."""

import contextlib
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from ottla.cli.demo.demo_cluster import DemoCluster
from ottla.cli.demo.leader_watch import LeaderWatch
from ottla.cli.demo.ledger import Latency, Ledger
from ottla.cli.demo.traffic import PARTITIONS
from ottla.cli.output import print_line, print_now

if TYPE_CHECKING:
    from rich.console import RenderableType

EVENTS_SHOWN = 6
LATENCIES_SHOWN = 2_000
BARS = " ▁▂▃▄▅▆▇█"
BARS_SHOWN = 40


class Standing(NamedTuple):
    """How it stands, after `passed_s` of `of_s` seconds."""

    passed_s: float
    of_s: float
    ledger: Ledger
    watch: LeaderWatch


class View:
    """Shows nothing."""

    def tell(self, passed_s: float, text: str) -> None:
        """Something happened."""

    def show(self, standing: Standing) -> None:
        """It goes on."""

    def summarize(self, outcome: Mapping[str, Any]) -> None:
        """It is over."""


@contextlib.contextmanager
def open_view(cluster: DemoCluster, *, is_live: bool, is_silent: bool) -> Iterator[View]:
    if is_silent:
        yield View()
    elif is_live and sys.stdout.isatty():
        with _live(cluster) as view:
            yield view
    else:
        yield LineView()


class LineView(View):
    def __init__(self) -> None:
        self._next_s = 1.0

    def tell(self, passed_s: float, text: str) -> None:
        print_now(f"{passed_s:5.1f} s  {text}")

    def show(self, standing: Standing) -> None:
        passed_s, _, ledger, _ = standing
        if passed_s < self._next_s:
            return
        self._next_s = int(passed_s) + 1
        rate = ledger.by_second[int(passed_s) - 1]
        latency = _latency_text(ledger.latency(LATENCIES_SHOWN))
        print_now(
            f"{passed_s:5.1f} s  {rate:,}/s  {latency}  lag {ledger.lag:,}"
            f"  lost {ledger.lost_so_far}"
        )

    def summarize(self, outcome: Mapping[str, Any]) -> None:
        for line in summary_lines(outcome):
            print_now(line)


@contextlib.contextmanager
def _live(cluster: DemoCluster) -> Iterator[View]:
    from rich.live import Live

    view = LiveView(cluster)
    with Live(get_renderable=view.render, refresh_per_second=5) as live:
        view.refresh = live.refresh
        yield view
    for line in view.last_lines:
        print_line(line)


class LiveView(View):
    def __init__(self, cluster: DemoCluster) -> None:
        self.refresh: Any = lambda: None
        self.last_lines: list[str] = []
        self._cluster = cluster
        self._events: list[str] = []
        self._standing: Standing | None = None

    def tell(self, passed_s: float, text: str) -> None:
        self._events.append(f"{passed_s:5.1f} s  {text}")
        self.refresh()

    def show(self, standing: Standing) -> None:
        self._standing = standing
        self.refresh()

    def summarize(self, outcome: Mapping[str, Any]) -> None:
        self.last_lines = summary_lines(outcome)

    def render(self) -> "RenderableType":
        from rich.console import Group
        from rich.text import Text

        title = Text("ottla demo", style="bold")
        title.append("  three nodes, replication factor 3, acks=all", style="dim")
        if self._standing is None:
            return Group(title, Text(), *map(Text, self._events[-EVENTS_SHOWN:]))
        passed_s, of_s, ledger, watch = self._standing
        title.append(f"  {min(passed_s, of_s):.0f} of {of_s:g} s", style="bold")
        return Group(
            title,
            Text(),
            self._nodes(watch),
            Text(),
            self._figures(int(passed_s), ledger),
            Text(),
            *map(Text, self._events[-EVENTS_SHOWN:]),
        )

    def _nodes(self, watch: LeaderWatch) -> "RenderableType":
        from rich.table import Table
        from rich.text import Text

        table = Table.grid(padding=(0, 2))
        for node_id in self._cluster.node_ids:
            pid = self._cluster.pid(node_id)
            led = 0 if pid is None else watch.led_count(node_id)
            state = Text("down", style="bold red") if pid is None else Text("up", style="green")
            table.add_row(
                f"node {node_id}",
                state,
                self._cluster.address(node_id),
                f"process {pid}" if pid else "",
                f"leads {led} of {PARTITIONS} " + "█" * led,
            )
        return table

    def _figures(self, second: int, ledger: Ledger) -> "RenderableType":
        from rich.table import Table
        from rich.text import Text

        lost = ledger.lost_so_far
        table = Table.grid(padding=(0, 2))
        table.add_row("written", f"{ledger.acknowledged_count:,}", _bars(ledger, second))
        table.add_row("", f"{ledger.by_second[max(0, second - 1)]:,}/s", "acknowledged per second")
        table.add_row("latency", "", _latency_text(ledger.latency(LATENCIES_SHOWN)))
        pause = f"longest pause of a partition {ledger.longest_pause_s:.2f} s"
        table.add_row("read", f"{ledger.read_count:,}", f"lag {ledger.lag:,}, {pause}")
        table.add_row("lost", Text(str(lost), style="bold red" if lost else "bold green"), "")
        return table


def summary_lines(outcome: Mapping[str, Any]) -> list[str]:
    latency = "no record was acknowledged"
    if outcome["latency_median_ms"] is not None:
        latency = (
            f"latency {outcome['latency_median_ms']} ms, p99 {outcome['latency_p99_ms']} ms, max"
            f" {outcome['latency_max_ms']} ms; longest pause of a partition"
            f" {outcome['longest_pause_s']} s"
        )
    lines = [
        f"{outcome['acknowledged']:,} records acknowledged in {outcome['seconds']} s"
        f" ({outcome['records_per_second']:,}/s), {outcome['failed']} failed",
        latency,
    ]
    if outcome["killed_node"] is None:
        lines.append("no node was killed")
    elif outcome["failover_s"] is None:
        lines.append(f"node {outcome['killed_node']} was killed")
    else:
        lines.append(
            f"node {outcome['killed_node']} was killed; its partitions had new leaders after"
            f" {outcome['failover_s']} s"
        )
    lines.append(
        f"{outcome['read']:,} read: {outcome['lost']} lost, {outcome['duplicated']} twice,"
        f" {outcome['out_of_order']} out of order"
    )
    return lines


def _latency_text(latency: Latency | None) -> str:
    if latency is None:
        return "latency -"
    return f"median {latency.median:.1f} ms, p99 {latency.p99:.1f} ms, max {latency.longest:.0f} ms"


def _bars(ledger: Ledger, second: int) -> str:
    """The last seconds that are over, the highest as high as a line."""
    counts = [ledger.by_second[each] for each in range(max(0, second - BARS_SHOWN), second)]
    top = max(counts, default=0)
    return "".join(BARS[(len(BARS) - 1) * count // top] if top else " " for count in counts)
