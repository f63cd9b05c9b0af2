"""SQS answers at the root of the HTTP port and at queue URLs."""

from collections.abc import Mapping, Sequence

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from ottla.gateway.api.bodies import read_body
from ottla.gateway.api.parameters import HEADERS
from ottla.gateway.api.waiting import answer_while_connected
from ottla.gateway.core.administration import Administration
from ottla.gateway.core.compacted_table import CompactedTable
from ottla.gateway.core.idempotency import Idempotency
from ottla.gateway.dialects.sqs import moving, sending
from ottla.gateway.dialects.sqs.catalogue import Catalogue
from ottla.gateway.dialects.sqs.errors import SqsError
from ottla.gateway.dialects.sqs.managing import Managing
from ottla.gateway.dialects.sqs.moving import Moving
from ottla.gateway.dialects.sqs.receiving import Receiving
from ottla.gateway.dialects.sqs.sending import Sending
from ottla.gateway.dialects.sqs.server import Answer, SqsServer, is_receive, refused
from ottla.gateway.services import Services


def refusal(headers: Mapping[bytes, bytes], name: str, message: str) -> Response:
    """The refusal of an unauthenticated request, in the error form of its protocol."""
    found = refused(SqsError(name, message, 403), is_json=b"x-amz-target" in headers)
    return _response(found)


def _response(found: Answer) -> Response:
    return Response(found.body, found.status, found.headers)


def routes(services: Services) -> Sequence[BaseRoute]:
    catalogue = Catalogue(services.cluster, Administration(services.cluster))
    deduplication = Idempotency(
        services.cluster, sending.DEDUPLICATION_WINDOW_S, sending.DEDUPLICATION_TOPIC
    )
    server = SqsServer(
        Sending(catalogue, services.publisher, deduplication),
        Receiving(catalogue, services.queues),
        Managing(catalogue, services.queues),
        Moving(
            catalogue,
            services.queues,
            services.publisher,
            CompactedTable(services.cluster, moving.TOPIC),
        ),
    )

    async def answer(request: Request) -> Response:
        scope, body = request.scope, await read_body(request)
        headers, query = scope[HEADERS], scope["query_string"]
        host = headers.get(b"host", b"localhost").decode("latin-1")
        work = server.answer(headers, f"{scope['scheme']}://{host}", scope["path"], query, body)
        if is_receive(headers, query, body):
            return await answer_while_connected(
                request, services.queues, work, lambda found: (_response(found), found.deliveries)
            )
        return _response(await work)

    return [
        Route("/", answer, methods=["POST"]),
        Route("/{account:int}/{queue}", answer, methods=["POST"]),
    ]
