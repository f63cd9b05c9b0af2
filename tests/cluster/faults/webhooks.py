"""Gateways and brokers killed while records are published and sent to a webhook.

    python -m tests.cluster.faults.webhooks --minutes 5

Like `gateway`, with a webhook receiver instead of consumers. At the end everything that was
acknowledged as published must have been sent, and nothing before its delay was over. Repetitions
have the same id and are counted: any failure at the wrong moment can cause one.
"""

import argparse
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Final

import httpx
from tests.cluster.faults.gateway import (
    ANSWER_S,
    CLOCK_S,
    PUBLISHERS,
    SETTLE_S,
    TOPIC,
    GatewayTrial,
    Publisher,
)
from tests.cluster.processes import ClusterProcesses, wait_until
from tests.gateway.gateway_process import GatewayProcess
from tests.gateway.receiver import Call, Receiver

CALM_S: Final = 8.0  # Between two kills, in addition to those of the trial.
SUBSCRIPTION: Final = {"topic": TOPIC, "start": "earliest", "max_deliveries": 10}


class WebhookTrial(GatewayTrial):
    gateway_arguments = ("--webhook-allow", "127.0.0.0/8")

    def _run(
        self, cluster: ClusterProcesses, gateways: list[GatewayProcess], seconds: float
    ) -> None:
        self.ids: Counter[str] = Counter()
        with Receiver(self._on_call) as receiver:
            subscription = SUBSCRIPTION | {"url": receiver.url}
            made = httpx.post(
                f"{gateways[0].url}/subscriptions", json=subscription, timeout=ANSWER_S
            )
            made.raise_for_status()
            publishers = [
                Publisher(gateways, self.history, number, self._seed + number, self._pace)
                for number in range(PUBLISHERS)
            ]
            for publisher in publishers:
                publisher.start()
            wait_until(lambda: bool(self.ids), "the first call")
            end_s = time.monotonic() + seconds
            while time.monotonic() < end_s:
                self._disturb(cluster, gateways)
                time.sleep(CALM_S)
            for publisher in publishers:
                publisher.end()
            for publisher in publishers:
                publisher.join(ANSWER_S)
            deadline_s = time.monotonic() + SETTLE_S
            while self.history.missing and time.monotonic() < deadline_s:
                time.sleep(0.5)
        missing = sorted(self.history.missing)
        self.history.findings += [f"{name} was not sent" for name in missing[:20]]

    def _on_call(self, call: Call) -> int:
        history, name = self.history, call.json["value"]
        with history.lock:
            early_s = history.deliver_at_s.get(name, 0.0) - time.time()
            if early_s > CLOCK_S:
                history.findings.append(f"{name} was sent {early_s:.3f} s too early")
            self.ids[call.headers["webhook-id"]] += 1
            history.settled.add(name)
            history.deliveries_count += 1
        return 204


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 100_000)
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}", flush=True)
    directory = Path(tempfile.mkdtemp(prefix="ottla-webhooks-"))
    trial = WebhookTrial(directory, arguments.seed, lambda line: print(line, flush=True))
    findings = trial.run(arguments.minutes * 60)
    print(f"the logs are in {directory}")
    print(f"{trial.summary()}; {sum(trial.ids.values()) - len(trial.ids)} calls were repetitions")
    print("\n".join(findings) or "everything was sent, nothing early")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
