"""What the routes need: built once for the gateway and once for each logged-in user."""

import asyncio

from ottla.gateway.core.access import Access
from ottla.gateway.core.addresses import parse_networks
from ottla.gateway.core.administration import Administration
from ottla.gateway.core.consumer_instances import ConsumerInstances
from ottla.gateway.core.counts import Counts
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
from ottla.gateway.route_table import RouteTable
from ottla.gateway.settings import GatewaySettings


class Services:
    """Created in the serving loop, without a broker; each service is a class in `core`."""

    def __init__(
        self, settings: GatewaySettings, access: Access, own: "Services | None" = None
    ) -> None:
        """`own` is the gateway's, for work not done as a user; None to create that one."""
        self.settings = settings
        self.tables: dict[object, RouteTable] = {}  # By application.
        # Set by SIGTERM: ends streams and long polls.
        self.stopping: asyncio.Event = asyncio.Event() if own is None else own.stopping
        self.counts: Counts = Counts() if own is None else own.counts
        self.cluster = access.cluster()
        writing = access.cluster(retry_timeout_ms=settings.publish_timeout_ms)
        self.publisher = Publisher(settings, writing, self.counts)
        self.counts.publishers.append(self.publisher)
        self.delays = Delays(Administration(self.cluster))
        self.idempotency = Idempotency(self.cluster, settings.idempotency_window_s)
        self.reader = Reader(settings, self.cluster, self.stopping)
        self.tails = Tails(PartitionSource(self.cluster))
        self._tails_running = asyncio.ensure_future(self.tails.run(self.stopping))
        self.consumers = ConsumerInstances(access)
        self.signer: SharedSigner = (
            SharedSigner(access, settings.secret_file) if own is None else own.signer
        )
        loop = asyncio.get_running_loop()
        self.queues = Queues(self.cluster, self.signer, loop, self.counts)
        self.webhooks: Webhooks | None = None  # Delivered as the gateway's own user.
        if own is None:
            caller = Caller(parse_networks(settings.webhook_allow), counts=self.counts)
            self.webhooks = Webhooks(self.cluster, self.tails.source, self.queues, caller)
        elif access.user == settings.access().user:
            self.webhooks = own.webhooks
        self._owns_webhooks = own is None
        self._ending = asyncio.create_task(self._end_waits(), name="end of waits")

    async def close(self) -> None:
        """After the last request; dependents first."""
        await self._close_webhooks()
        self._tails_running.cancel()
        await self.tails.close()
        self._ending.cancel()
        await self.consumers.close()
        await self.queues.close()
        await self.publisher.close()
        self.counts.publishers.remove(self.publisher)
        self.cluster.close()

    async def _end_waits(self) -> None:
        await self.stopping.wait()
        self.queues.stop_waiting()
        await self._close_webhooks()

    async def _close_webhooks(self) -> None:
        if self._owns_webhooks and self.webhooks is not None:
            await self.webhooks.close()
