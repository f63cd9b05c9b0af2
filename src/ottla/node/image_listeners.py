"""Passes the image, and then every metadata change, to the parts of a node that act on it."""

from ottla.controller.directories import names_directories
from ottla.network.server import Server
from ottla.node.coordination import Coordination
from ottla.node.deleted_topics import DeletedTopics
from ottla.node.dynamic_configs import DynamicConfigs
from ottla.node.group_coordinators import remove_offsets_of_topics
from ottla.node.node_parts import Parts
from ottla.node.quorum import MetadataQuorum
from ottla.node.quota_updates import QuotaUpdates
from ottla.node.registration import Registration
from ottla.replication.directory_moves import DirectoryMoves
from ottla.runtime.controller import Controller
from ottla.runtime.metadata_feed import MetadataListener


def take_up_image(
    parts: Parts,
    server: Server,
    dynamic: DynamicConfigs,
    coordination: Coordination,
    quorum: MetadataQuorum,
) -> None:
    """From here on, the node acts on the metadata."""
    feed, replicas, image = parts.feed, parts.replicas, parts.feed.image
    deleted = DeletedTopics(
        parts.process.loop, lambda names: remove_offsets_of_topics(coordination.groups, names)
    )
    deleted.load(image)
    quorum.fenced.load(image)
    dynamic.load()
    quotas = QuotaUpdates(parts.quotas, server.connection_rates, parts.process.loop)
    quotas.load(image)
    replicas.load(image, feed.take_removed_topic_ids())
    feed.listen(MetadataListener(parts.brokers.on_record, lambda _: None))
    feed.listen(MetadataListener(quorum.fenced.on_record, quorum.fenced.load))
    feed.listen(MetadataListener(deleted.on_record, deleted.load))
    feed.listen(MetadataListener(quotas.on_record, quotas.load))
    feed.listen(MetadataListener(dynamic.on_record, dynamic.load))
    feed.listen(MetadataListener(replicas.on_record, replicas.load))


def report_directories(
    parts: Parts, controller: Controller, registration: Registration, moves: DirectoryMoves
) -> None:
    """Report to the controller where replicas are, unless there is no need."""
    image = parts.feed.image
    if len(parts.directories) == 1 and not names_directories(image):
        return  # No broker has reported its replicas, and none will.
    from ottla.node.directory_reports import DirectoryReports

    reports = DirectoryReports(
        node_id=parts.node_id,
        logs=parts.logs,
        image=image,
        assign=controller.call,
        broker_epoch=lambda: registration.epoch,
        random=parts.environment.random,
        supervisor=parts.process.supervisor,
    )
    parts.feed.listen(MetadataListener(reports.on_record, reports.load))
    reports.load(image)
    moves.on_moved = reports.on_moved
    moves.resume()
