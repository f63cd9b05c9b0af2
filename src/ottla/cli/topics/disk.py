"""`ottla topics disk`: how much of the nodes' disks each topic takes."""

from collections import Counter

from kio.schema.describe_log_dirs.v5.request import DescribeLogDirsRequest

from ottla.cli.broker_call import every_broker
from ottla.cli.connection import DEFAULT_CONNECTION, Connection
from ottla.cli.output import format_size, print_listing
from ottla.cli.parameters import AsJson


def disk(*, connection: Connection = DEFAULT_CONNECTION, as_json: AsJson = False) -> None:
    """Show the disk usage of each topic over all nodes, largest first."""
    sizes: Counter[str] = Counter()
    replicas: Counter[str] = Counter()
    for broker in every_broker(connection):
        response = broker.call(DescribeLogDirsRequest(topics=None))
        for directory in response.results:
            for topic in directory.topics:
                replicas[topic.name] += len(topic.partitions)
                sizes[topic.name] += sum(partition.partition_size for partition in topic.partitions)
    rows = [
        {"topic": name, "replicas": replicas[name], "bytes": size, "size": format_size(size)}
        for name, size in sorted(sizes.items(), key=lambda item: (-item[1], item[0]))
    ]
    print_listing(("topic", "replicas", "size"), rows, as_json=as_json)
