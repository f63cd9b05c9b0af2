"""The parts of a dashboard: panels, each a question with the queries that answer it.

`$interval` in a query is the range of a rate: Grafana's `$__rate_interval`, or what a test needs.
"""

from typing import Final, NamedTuple

TOPIC: Final = '{topic=~"$topic"}'
GROUP: Final = '{group=~"$group"}'


class Panel(NamedTuple):
    title: str
    text: str
    queries: dict[str, str]  # Keyed by legend.
    unit: str = "short"
    alert: str = ""  # The alert whose runbook it links to.
    needs: str = ""  # What must run for the panel to show data.


class Dashboard(NamedTuple):
    uid: str
    title: str
    panels: tuple[Panel, ...]
    variables: dict[str, str] = {}  # Names, and the metrics whose label they choose from.


def rate(metric: str, by: str, labels: str = "") -> str:
    return f"sum by ({by}) (rate({metric}{labels}[$interval]))"


def quantile(metric: str, by: str, labels: str = "") -> str:
    return f"histogram_quantile(0.99, {rate(f'{metric}_bucket', f'{by}, le', labels)})"
