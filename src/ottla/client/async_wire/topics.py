"""Topics, made by one who needs them."""

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
    """Make the topic if it is not there; one that is stays as it is."""
    if name in await cluster.topics([name]):
        return
    request = create_request(name, partitions=partitions, config=config)

    async def create() -> None:
        validate_created(await (await cluster.controller()).call(request))

    await cluster.retry(create)
