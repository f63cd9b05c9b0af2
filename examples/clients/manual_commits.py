"""Commit what is done; the next consumer, or a rewind, reads again what failed."""

from ottla.client import Consumer, ConsumerConfig, OffsetResetPolicy, Producer
from ottla.client.messages import Message

TOPIC = "payments"
CONFIG = ConsumerConfig(
    group_id="bookkeeping",
    auto_offset_reset=OffsetResetPolicy.EARLIEST,
    enable_auto_commit=False,
)

tries: dict[bytes, int] = {}


def book(message: Message) -> None:
    tries[message.value] = tries.get(message.value, 0) + 1
    if message.value == b"payment 3" and tries[message.value] == 1:
        raise ConnectionError("the bank does not answer")
    print(f"booked {message.value.decode()}, try {tries[message.value]}")


with Producer() as producer:
    for number in range(6):
        producer.send(TOPIC, f"payment {number}")

booked = 0
with Consumer(CONFIG) as consumer:
    consumer.subscribe(TOPIC)
    while booked < 6:
        for message in consumer.poll():
            try:
                book(message)
            except ConnectionError as error:
                print(f"failed at {message.value.decode()}: {error}")
                consumer.rewind()
                break
            consumer.commit({(message.topic, message.partition): message.offset + 1})
            booked += 1
