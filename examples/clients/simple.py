"""Write records and read them."""

from ottla.client import Consumer, OffsetResetPolicy, Producer
from ottla.client.serializers import from_json

TOPIC = "greetings"

with Producer() as producer:
    for name in ("anna", "ben", "cleo"):
        written = producer.send(TOPIC, {"hello": name}, key=name).result()
        print(f"wrote {name} to partition {written.partition}, offset {written.offset}")

with Consumer(
    group_id="simple",
    auto_offset_reset=OffsetResetPolicy.EARLIEST,
    value_deserializer=from_json,
) as consumer:
    consumer.subscribe(TOPIC)
    for count, message in enumerate(consumer, start=1):
        print(f"read {message.value['hello']} from offset {message.offset}")
        if count == 3:
            break
