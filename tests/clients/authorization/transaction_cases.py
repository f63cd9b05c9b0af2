"""Kafka's protocol authorization table: transactions."""

from tests.clients.authorization.asked import (
    add_offsets,
    add_partitions,
    init_producer_id,
    txn_offset_commit,
)
from tests.clients.authorization.case import (
    CLUSTER_DENIED,
    CLUSTER_DENIED_OR_NOTHING,
    GROUP_DENIED,
    MISSING,
    NONE,
    NOTHING,
    TOPIC,
    TOPIC_DENIED,
    TRANSACTION,
    TRANSACTION_DENIED,
    Case,
    cluster,
    group,
    topic,
    transaction,
)
from tests.clients.authorization.entities import request
from tests.clients.authorization.shown import transactions_shown

CASES: tuple[Case, ...] = (
    # Transactions: WRITE on the transactional id, and on what is written.
    Case("InitProducerId", "denied", (topic("READ"),), init_producer_id(None), CLUSTER_DENIED),
    Case("InitProducerId", "by a topic", (topic("WRITE"),), init_producer_id(None), NONE),
    Case(
        "InitProducerId",
        "by the cluster",
        (cluster("IDEMPOTENT_WRITE"),),
        init_producer_id(None),
        NONE,
    ),
    Case(
        "InitProducerId",
        "transaction denied",
        (transaction("DESCRIBE"),),
        init_producer_id(TRANSACTION),
        TRANSACTION_DENIED,
    ),
    Case(
        "InitProducerId",
        "transaction",
        (transaction("WRITE"),),
        init_producer_id(TRANSACTION),
        NONE,
    ),
    Case(
        "AddPartitionsToTxn",
        "transaction denied",
        (topic("WRITE"),),
        add_partitions(TOPIC),
        TRANSACTION_DENIED,
    ),
    Case(
        "AddPartitionsToTxn",
        "topic denied",
        (transaction("WRITE"),),
        add_partitions(TOPIC),
        TOPIC_DENIED,
    ),
    Case(
        "AddPartitionsToTxn",
        "missing, topic denied",
        (transaction("WRITE"),),
        add_partitions(MISSING),
        TOPIC_DENIED,
    ),
    Case(
        "AddPartitionsToTxn",
        "allowed",
        (transaction("WRITE"), topic("WRITE")),
        add_partitions(TOPIC),
        {"invalid_producer_id_mapping"},
    ),
    Case(
        "AddPartitionsToTxn",
        "as a broker, denied",
        (transaction("ALL"), topic("ALL")),
        request(
            24,
            4,
            transactions=[
                {"transactional_id": TRANSACTION, "topics": [{"name": TOPIC, "partitions": [0]}]}
            ],
        ),
        CLUSTER_DENIED,
    ),
    Case(
        "AddOffsetsToTxn", "transaction denied", (group("READ"),), add_offsets(), TRANSACTION_DENIED
    ),
    Case("AddOffsetsToTxn", "group denied", (transaction("WRITE"),), add_offsets(), GROUP_DENIED),
    Case(
        "AddOffsetsToTxn",
        "allowed",
        (transaction("WRITE"), group("READ")),
        add_offsets(),
        {"invalid_producer_id_mapping"},
    ),
    Case(
        "EndTxn",
        "denied",
        (transaction("DESCRIBE"),),
        request(26, 3, transactional_id=TRANSACTION, producer_id=999),
        TRANSACTION_DENIED,
    ),
    Case(
        "EndTxn",
        "allowed",
        (transaction("WRITE"),),
        request(26, 3, transactional_id=TRANSACTION, producer_id=999),
        {"invalid_producer_id_mapping"},
    ),
    Case(
        "TxnOffsetCommit",
        "transaction denied",
        (group("READ"), topic("READ")),
        txn_offset_commit(TOPIC),
        TRANSACTION_DENIED,
    ),
    Case(
        "TxnOffsetCommit",
        "group denied",
        (transaction("WRITE"), topic("READ")),
        txn_offset_commit(TOPIC),
        GROUP_DENIED,
    ),
    Case(
        "TxnOffsetCommit",
        "topic denied",
        (transaction("WRITE"), group("READ")),
        txn_offset_commit(TOPIC),
        TOPIC_DENIED,
    ),
    Case(
        "TxnOffsetCommit",
        "missing, topic denied",
        (transaction("WRITE"), group("READ")),
        txn_offset_commit(MISSING),
        TOPIC_DENIED,
    ),
    Case(
        "WriteTxnMarkers",
        "denied",
        (cluster("DESCRIBE"),),
        request(27, 1),
        CLUSTER_DENIED_OR_NOTHING,
    ),
    Case("WriteTxnMarkers", "by ALTER", (cluster("ALTER"),), request(27, 1), set()),
    Case(
        "DescribeTransactions",
        "denied",
        NOTHING,
        request(65, 0, transactional_ids=[TRANSACTION]),
        TRANSACTION_DENIED,
    ),
    Case(
        "DescribeTransactions",
        "allowed",
        (transaction("DESCRIBE"),),
        request(65, 0, transactional_ids=["y"]),
        TRANSACTION_DENIED,
    ),
    Case("ListTransactions", "denied", NOTHING, request(66, 0), NONE, transactions_shown, []),
)
