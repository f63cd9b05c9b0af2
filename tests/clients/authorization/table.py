"""The access that each API needs, as in Kafka's protocol authorization table, and its response."""

from tests.clients.authorization import (
    cluster_cases,
    config_cases,
    group_cases,
    topic_cases,
    transaction_cases,
)

CASES = (
    *topic_cases.CASES,
    *group_cases.CASES,
    *transaction_cases.CASES,
    *config_cases.CASES,
    *cluster_cases.CASES,
)
# Not run on Apache Kafka.
OWN_CASES = (*group_cases.OWN_CASES, *cluster_cases.NODE_CASES)
