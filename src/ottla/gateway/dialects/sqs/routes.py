"""SQS answers at the root of the HTTP port, and at the URLs of queues."""

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from ottla.gateway.core.administration import Administration
from ottla.gateway.core.compacted_table import CompactedTable
from ottla.gateway.core.idempotency import Idempotency
from ottla.gateway.dialects.sqs import moving, sending
from ottla.gateway.dialects.sqs.catalogue import Catalogue
from ottla.gateway.dialects.sqs.managing import Managing
from ottla.gateway.dialects.sqs.moving import Moving
from ottla.gateway.dialects.sqs.receiving import Receiving
from ottla.gateway.dialects.sqs.sending import Sending
from ottla.gateway.dialects.sqs.server import SqsServer
from ottla.gateway.services import Services


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
        found = await server.answer(
            request.headers,
            f"{request.url.scheme}://{request.headers.get('host', 'localhost')}",
            request.url.path,
            request.scope["query_string"],
            await request.body(),
        )
        return Response(found.body, found.status, found.headers)

    return [
        Route("/", answer, methods=["POST"]),
        Route("/{account:int}/{queue}", answer, methods=["POST"]),
    ]
