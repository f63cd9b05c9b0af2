from ottla.protocol.messages.metadata import MetadataRequest

METADATA = MetadataRequest(
    topics=(), allow_auto_topic_creation=False, include_topic_authorized_operations=False
)
