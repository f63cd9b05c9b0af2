"""The keys of records about a group, or one of its members."""

from dataclasses import field

from ottla.machine.record import KeyLayout
from ottla.protocol.entities import entity, wire


@entity
class GroupKey(KeyLayout):
    group_id: str = field(metadata=wire("string"))


@entity
class MemberKey(KeyLayout):
    group_id: str = field(metadata=wire("string"))
    member_id: str = field(metadata=wire("string"))
