"""Lets a producer hear of deliveries.

Whoever sends much hears of them while it sends, which costs least; a thread does it for those that
wait or have paused. Two threads that poll at once would only hold each other up.
"""

import threading

import confluent_kafka

_POLL_S = 0.1
_STAND_BACK_S = 0.05


class Poller:
    def __init__(self, producer: confluent_kafka.Producer) -> None:
        self._producer = producer
        self._polled = False  # By one who sends, since the thread last looked.
        self._hurry = threading.Event()
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="ottla-producer", daemon=True)
        self._thread.start()

    def poll(self) -> None:
        """By one who sends."""
        self._polled = True
        self._producer.poll(0)

    def hurry(self) -> None:
        """Somebody waits for a delivery."""
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
