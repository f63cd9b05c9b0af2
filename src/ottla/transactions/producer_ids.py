"""How a machine obtains a new producer id."""


class ProducerIdNeeded(Exception):
    """The operation has changed nothing: call it again with a new producer id.

    Ids come from the controller, which a machine cannot call, and few operations need one.
    """


def required(new_producer_id: int | None) -> int:
    if new_producer_id is None:
        raise ProducerIdNeeded
    return new_producer_id
