"""An order service: one producer, consumers A, B and C in one group.

A customer's orders have the same key, so they are in one partition, and one consumer gets them in
order. When a consumer leaves, the others take over its partitions.
"""

import threading

from ottla.client import Admin, Consumer, ConsumerConfig, OffsetResetPolicy, Producer
from ottla.client.serializers import from_json, from_text

TOPIC = "orders"
CUSTOMERS = ("anna", "ben", "cleo", "dora", "emil", "fred")
ORDERS = 20  # Per customer.

seen: dict[str, list[int]] = {customer: [] for customer in CUSTOMERS}
worked: set[str] = set()
everything = threading.Event()
guard = threading.Lock()


def consume(name: str) -> None:
    config = ConsumerConfig(
        group_id="shipping",
        client_id=name,
        auto_offset_reset=OffsetResetPolicy.EARLIEST,
        key_deserializer=from_text,
        value_deserializer=from_json,
    )
    with Consumer(config) as consumer:
        consumer.subscribe(TOPIC)
        while not everything.is_set():
            for message in consumer.poll(0.2):
                with guard:
                    seen[message.key].append(message.value["number"])
                    worked.add(name)
                    if sum(map(len, seen.values())) >= ORDERS * len(CUSTOMERS):
                        everything.set()


Admin().create_topic(TOPIC, partitions=6, if_not_exists=True)
consumers = [threading.Thread(target=consume, args=(name,)) for name in "ABC"]
for thread in consumers:
    thread.start()
with Producer() as producer:
    for number in range(ORDERS):
        for customer in CUSTOMERS:
            producer.send(TOPIC, {"customer": customer, "number": number}, key=customer)
for thread in consumers:
    thread.join()
in_order = all(numbers == sorted(numbers) for numbers in seen.values())
print(f"{sum(map(len, seen.values()))} orders shipped, each customer's in order: {in_order}")
