"""The results of many seeds, in a few lines."""

import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from ottla.testing.simulator.runner import AS_DRAWN, Outcome, Variant


@dataclass(slots=True)
class Summary:
    variant: Variant = AS_DRAWN
    passed_count: int = 0
    failed: list[int] = field(default_factory=list)
    simulated_s: float = 0.0
    cpu_s: float = 0.0
    counts: Counter[str] = field(default_factory=Counter)

    def add(self, outcome: Outcome) -> None:
        if outcome.failure:
            self.failed.append(outcome.seed)
        else:
            self.passed_count += 1
        self.simulated_s += outcome.simulated_s
        self.cpu_s += outcome.cpu_s
        self.counts.update(outcome.counts)

    @property
    def progress(self) -> str:
        seeds_count = self.passed_count + len(self.failed)
        return f"seeds: {seeds_count} run, {self.passed_count} passed, {len(self.failed)} failed"

    def lines(self) -> Iterator[str]:
        yield self.progress
        yield f"time: {self.simulated_s:.0f} s simulated in {self.cpu_s:.0f} s of CPU"
        events = {what: count for what, count in self.counts.items() if ": " not in what}
        yield "clients: " + _listed(events)
        for kind in ("fault", "operation"):
            yield f"{kind}s: " + _listed(
                {
                    what.removeprefix(f"{kind}: "): count
                    for what, count in self.counts.items()
                    if what.startswith(f"{kind}: ")
                }
            )
        for seed in self.failed:
            yield f"failed: {self.repeat_command(seed)}"

    def repeat_command(self, seed: int) -> str:
        return f"{sys.executable} -m ottla.testing.simulator --seed {seed}{self.variant.options}"


def _listed(counts: dict[str, int]) -> str:
    return ", ".join(f"{what} {count}" for what, count in sorted(counts.items())) or "none"
