"""What each API asks for, as in Kafka's protocol authorization table, and what it answers."""

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
# Not for Apache Kafka.
OWN_CASES = (*group_cases.OWN_CASES, *cluster_cases.NODE_CASES)
