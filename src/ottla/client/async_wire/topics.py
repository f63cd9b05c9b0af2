"""Topic creation on demand."""

from collections.abc import Mapping

from ottla.client.async_wire.cluster import Cluster
from ottla.client.wire.topics import BROKER_DEFAULT, create_request, validate_created


async def ensure_topic(
    cluster: Cluster,
    name: str,
    *,
    partitions: int = BROKER_DEFAULT,
    config: Mapping[str, str] | None = None,
) -> None:
    """Create the topic if it is missing; an existing one stays unchanged."""
    if name in await cluster.topics([name]):
        return
    request = create_request(name, partitions=partitions, config=config)

    async def create() -> None:
        validate_created(await (await cluster.controller()).call(request))

    await cluster.retry(create)
