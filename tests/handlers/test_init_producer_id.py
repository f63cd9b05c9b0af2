from kio.schema.init_producer_id.v6.request import InitProducerIdRequest

from ottla.handlers.init_producer_id import handle as handle_init_producer_id
from ottla.protocol.times import milliseconds


def asking(transactional_id=None):
    return InitProducerIdRequest(
        transactional_id=transactional_id, transaction_timeout=milliseconds(1000)
    )


def test_every_producer_gets_an_id_of_its_own(node):
    answers = [node.call(handle_init_producer_id, asking()) for _ in range(3)]
    first = answers[0].producer_id
    assert [(answer.producer_id - first, answer.producer_epoch) for answer in answers] == [
        (0, 0),
        (1, 0),
        (2, 0),
    ]
    assert node.image.next_producer_id == first + 1000
