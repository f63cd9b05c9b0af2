"""Read, process and write atomically: each order is summed once, although some attempts fail."""

import random

from ottla.client import Consumer, ConsumerConfig, OffsetResetPolicy, Producer
from ottla.client.serializers import from_json

ORDERS, SUMS = "amounts", "sums"
COUNT = 60
READING = ConsumerConfig(
    group_id="summing",
    auto_offset_reset=OffsetResetPolicy.EARLIEST,
    enable_auto_commit=False,
    max_poll_records=10,
    value_deserializer=from_json,
)

with Producer() as producer:
    for number in range(COUNT):
        producer.send(ORDERS, number)

chance = random.Random(7)
summed, failures = 0, 0
offsets: list[int] = []  # Where the sums are.
with Consumer(READING) as consumer, Producer(transactional_id="summing-1") as producer:
    consumer.subscribe(ORDERS)
    while summed < COUNT:
        amounts = [message.value for message in consumer.poll()]
        if not amounts:
            continue
        try:
            with producer.transaction(consumer):
                delivery = producer.send(SUMS, sum(amounts))
                if chance.random() < 0.3:
                    raise ConnectionError("something else failed")
        except ConnectionError:
            failures += 1  # Rolled back; the same orders are read again.
        else:
            summed += len(amounts)
            offsets.append(delivery.result().offset)

with Consumer(value_deserializer=from_json).assign({(SUMS, 0): offsets[0]}) as consumer:
    total = 0
    while total < sum(range(COUNT)):
        total += sum(message.value for message in consumer.poll())
orders = sum(range(COUNT))
print(f"the sums add up to {total}, the orders to {orders}; {failures} tries failed")
