"""Polls a producer for deliveries.

A busy sender polls while it sends, which is cheapest; a thread polls for callers that wait or have
paused. Two threads polling at once would only block each other.
"""

import threading

import confluent_kafka

_POLL_S = 0.1
_STAND_BACK_S = 0.05


class Poller:
    def __init__(self, producer: confluent_kafka.Producer) -> None:
        self._producer = producer
        self._polled = False  # By a sender, since the thread last looked.
        self._hurry = threading.Event()
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="ottla-producer", daemon=True)
        self._thread.start()

    def poll(self) -> None:
        """Called by senders."""
        self._polled = True
        self._producer.poll(0)

    def hurry(self) -> None:
        """Called when somebody waits for a delivery."""
        self._hurry.set()

    def stop(self) -> None:
        self._closing = True
        self._hurry.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._closing:
            if self._polled:
                self._polled = False
                self._hurry.wait(_STAND_BACK_S)
                self._hurry.clear()
            else:
                self._producer.poll(_POLL_S)
