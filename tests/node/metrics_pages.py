"""A node's metrics page, scraped over HTTP and read by Prometheus' own parser."""

import time
import urllib.request
from collections.abc import Callable

from prometheus_client.parser import text_string_to_metric_families

Samples = dict[tuple[str, ...], float]  # Keyed by name and label values, sorted by label name.
PATIENCE_S = 60.0


def page(url: str) -> str:
    with urllib.request.urlopen(url, timeout=60) as response:
        return str(response.read().decode())


def samples(text: str) -> Samples:
    return {
        (sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def scrape(url: str) -> Samples:
    return samples(page(url))


def scrape_until(url: str, is_wanted: Callable[[Samples], bool]) -> Samples:
    """Periodically measured values appear on a later page."""
    deadline = time.monotonic() + PATIENCE_S
    while not is_wanted(found := scrape(url)):
        assert time.monotonic() < deadline, found
        time.sleep(0.02)
    return found
