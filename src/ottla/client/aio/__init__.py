"""The clients for asyncio, with the names that they have in `ottla.client`."""

from ottla.client.aio.admin import Admin
from ottla.client.aio.consumer import Consumer
from ottla.client.aio.producer import Producer
from ottla.client.aio.share_consumer import ShareConsumer

__all__ = ["Admin", "Consumer", "Producer", "ShareConsumer"]
