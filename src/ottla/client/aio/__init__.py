"""The clients for asyncio, under the same names as in `ottla.client`."""

from ottla.client.aio.admin import Admin
from ottla.client.aio.consumer import Consumer
from ottla.client.aio.producer import Producer
from ottla.client.aio.share_consumer import ShareConsumer

__all__ = ["Admin", "Consumer", "Producer", "ShareConsumer"]
