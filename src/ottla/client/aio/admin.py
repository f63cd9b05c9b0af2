"""Inspect and administer a cluster from asyncio."""

from typing import Any

from ottla.client import admin
from ottla.client.aio.in_thread import InThread, in_thread
from ottla.client.config import ClientConfig


class Admin(InThread):
    def __init__(self, config: ClientConfig | None = None, **settings: Any) -> None:
        super().__init__(admin.Admin(config, **settings))

    topics = in_thread(admin.Admin.topics)
    partitions = in_thread(admin.Admin.partitions)
    create_topic = in_thread(admin.Admin.create_topic)
    delete_topic = in_thread(admin.Admin.delete_topic)
    add_partitions = in_thread(admin.Admin.add_partitions)
    end_offsets = in_thread(admin.Admin.end_offsets)
    configs = in_thread(admin.Admin.configs)
    set_configs = in_thread(admin.Admin.set_configs)
    groups = in_thread(admin.Admin.groups)
    group = in_thread(admin.Admin.group)
    delete_group = in_thread(admin.Admin.delete_group)
    offsets = in_thread(admin.Admin.offsets)
    set_offsets = in_thread(admin.Admin.set_offsets)
    lag = in_thread(admin.Admin.lag)
    users = in_thread(admin.Admin.users)
    set_user = in_thread(admin.Admin.set_user)
    delete_user = in_thread(admin.Admin.delete_user)
    acls = in_thread(admin.Admin.acls)
    add_acls = in_thread(admin.Admin.add_acls)
    delete_acls = in_thread(admin.Admin.delete_acls)
    cluster = in_thread(admin.Admin.cluster)
