"""Passes quotas from the metadata to the parts that enforce them."""

from asyncio import AbstractEventLoop

from ottla.controller.image import MetadataImage
from ottla.controller.records import ClientQuotaRecord
from ottla.network.connection_rates import ConnectionRates
from ottla.security.client_quotas import ClientQuotas
from ottla.security.quotas import CONNECTION_CREATION_RATE, QuotaKey


class QuotaUpdates:
    def __init__(
        self, clients: ClientQuotas, connections: ConnectionRates, loop: AbstractEventLoop
    ) -> None:
        self._clients = clients
        self._connections = connections
        self._loop = loop
        self._is_due = False

    def on_record(self, record: object, image: MetadataImage) -> None:
        """Applies all records of one turn of the loop at once."""
        if isinstance(record, ClientQuotaRecord) and not self._is_due:
            self._is_due = True
            self._loop.call_soon(self.load, image)

    def load(self, image: MetadataImage) -> None:
        self._is_due = False
        self._clients.load(image.client_quotas)
        rates = QuotaKey(image.client_quotas, CONNECTION_CREATION_RATE)
        self._connections.of_address = rates.of_address
