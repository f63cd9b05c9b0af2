"""Work that is slower than reading: a bounded queue that pauses partitions while it is full.

The consumer keeps polling, so it stays in its group, but gets no records until there is room.
"""

import queue
import threading
import time

from ottla.client import Consumer, OffsetResetPolicy, Producer
from ottla.client.messages import Message

TOPIC = "uploads"
COUNT = 200
QUEUE_MAX, QUEUE_LOW = 20, 5

work: queue.Queue[Message | None] = queue.Queue(QUEUE_MAX)
done: list[bytes] = []


def shrink_pictures() -> None:
    while (message := work.get()) is not None:
        time.sleep(0.002)  # The slow part.
        done.append(message.value)


with Producer() as producer:
    for number in range(COUNT):
        producer.send(TOPIC, f"picture {number}")

worker = threading.Thread(target=shrink_pictures)
worker.start()
pauses, read = 0, 0
with Consumer(
    group_id="shrinking", auto_offset_reset=OffsetResetPolicy.EARLIEST, max_poll_records=10
) as consumer:
    consumer.subscribe(TOPIC)
    paused = False
    while read < COUNT:
        for message in consumer.poll(0.01):
            work.put(message)
            read += 1
        if not paused and work.qsize() > QUEUE_MAX - consumer.config.max_poll_records:
            consumer.pause()
            paused, pauses = True, pauses + 1
        elif paused and work.qsize() <= QUEUE_LOW:
            consumer.resume()
            paused = False
    work.put(None)
    worker.join()
print(f"{len(done)} pictures, paused {pauses} times" if pauses else f"{len(done)} pictures")
