"""A consumer group as an operation would leave it."""

from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.modern.draft import GroupDraft

Draft = GroupDraft[ConsumerGroup]
