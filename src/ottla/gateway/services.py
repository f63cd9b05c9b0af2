"""What the routes need, built once for each gateway and closed with it."""

import asyncio
from typing import Self

from ottla.client.async_wire.cluster import Cluster
from ottla.gateway.core.addresses import parse_networks
from ottla.gateway.core.administration import Administration
from ottla.gateway.core.consumer_instances import ConsumerInstances
from ottla.gateway.core.delays import Delays
from ottla.gateway.core.idempotency import Idempotency
from ottla.gateway.core.partition_source import PartitionSource
from ottla.gateway.core.publishing import Publisher
from ottla.gateway.core.queues import Queues
from ottla.gateway.core.reading import Reader
from ottla.gateway.core.shared_secret import SharedSigner
from ottla.gateway.core.tails import Tails
from ottla.gateway.core.webhook_calls import Caller
from ottla.gateway.core.webhooks import Webhooks
from ottla.gateway.settings import GatewaySettings


class Services:
    """Made by `build` in the loop that serves; each service is a class in `core`."""

    def __init__(self, settings: GatewaySettings) -> None:
        self.settings = settings
        self.stopping = asyncio.Event()  # Set by SIGTERM: streams and long polls end now.
        self.cluster = Cluster(settings.bootstrap_servers, client_id="ottla-gateway")
        writing = Cluster(
            settings.bootstrap_servers,
            client_id="ottla-gateway",
            retry_timeout_ms=settings.publish_timeout_ms,
        )
        self.publisher = Publisher(settings, writing)
        self.delays = Delays(Administration(self.cluster))
        self.idempotency = Idempotency(self.cluster, settings.idempotency_window_s)
        self.reader = Reader(settings, self.cluster, self.stopping)
        self.tails = Tails(PartitionSource(self.cluster))
        self._tails_running = asyncio.ensure_future(self.tails.run(self.stopping))
        self.consumers = ConsumerInstances(settings.bootstrap_servers)
        self.signer = SharedSigner(settings.bootstrap_servers, settings.secret_file)
        self.queues = Queues(self.cluster, self.signer, asyncio.get_running_loop())
        allowed = parse_networks(settings.webhook_allow)
        self.webhooks = Webhooks(self.cluster, self.tails.source, self.queues, Caller(allowed))
        self._ending = asyncio.create_task(self._end_waits(), name="end of waits")

    @classmethod
    async def build(cls, settings: GatewaySettings) -> Self:
        """Needs no broker: a gateway starts before its cluster."""
        return cls(settings)

    async def close(self) -> None:
        """After the last request; in the reverse order of what stands on what."""
        await self.webhooks.close()
        self._tails_running.cancel()
        await self.tails.close()
        self._ending.cancel()
        await self.consumers.close()
        await self.queues.close()
        await self.publisher.close()
        self.cluster.close()

    async def _end_waits(self) -> None:
        await self.stopping.wait()
        self.queues.stop_waiting()
        await self.webhooks.close()
