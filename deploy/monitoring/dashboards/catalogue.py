"""All dashboards, in the order in which Grafana lists them."""

from typing import Final

from deploy.monitoring.dashboards.groups import GROUPS
from deploy.monitoring.dashboards.health import HEALTH
from deploy.monitoring.dashboards.overview import OVERVIEW
from deploy.monitoring.dashboards.pipelines import PIPELINES
from deploy.monitoring.dashboards.replication import REPLICATION
from deploy.monitoring.dashboards.shares import SHARES
from deploy.monitoring.dashboards.topics import TOPICS

DASHBOARDS: Final = (OVERVIEW, TOPICS, GROUPS, REPLICATION, HEALTH, SHARES, PIPELINES)
