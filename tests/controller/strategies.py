"""Metadata records as Hypothesis draws them."""

from uuid import UUID

from hypothesis import strategies as st

from ottla.controller import records

broker_ids = st.integers(0, 2**31 - 1)
broker_lists = st.lists(broker_ids, max_size=4).map(tuple)
uuids = st.integers(1, 2**128 - 1).map(lambda number: UUID(int=number))
uuid_lists = st.lists(uuids, max_size=2).map(tuple)
names = st.text(max_size=12)
int16 = st.integers(-(2**15), 2**15 - 1)
int32 = st.integers(-(2**31), 2**31 - 1)
int64 = st.integers(-(2**63), 2**63 - 1)

metadata_records = st.one_of(
    st.builds(
        records.RegisterBrokerRecord,
        broker_id=broker_ids,
        incarnation_id=uuids,
        broker_epoch=int64,
        end_points=st.lists(
            st.builds(
                records.BrokerEndpoint,
                name=names,
                host=names,
                port=st.integers(0, 65535),
                security_protocol=int16,
            ),
            max_size=2,
        ).map(tuple),
        features=st.lists(
            st.builds(
                records.BrokerFeature,
                name=names,
                min_supported_version=int16,
                max_supported_version=int16,
            ),
            max_size=2,
        ).map(tuple),
        rack=st.none() | names,
        fenced=st.booleans(),
        in_controlled_shutdown=st.booleans(),
        log_dirs=uuid_lists,
    ),
    st.builds(records.UnregisterBrokerRecord, broker_id=broker_ids, broker_epoch=int64),
    st.builds(records.TopicRecord, name=names, topic_id=uuids),
    st.builds(
        records.PartitionRecord,
        partition_id=int32,
        topic_id=uuids,
        replicas=broker_lists,
        isr=broker_lists,
        removing_replicas=broker_lists,
        adding_replicas=broker_lists,
        leader=broker_ids,
        leader_recovery_state=st.integers(0, 1),
        leader_epoch=int32,
        partition_epoch=int32,
        directories=uuid_lists,
        eligible_leader_replicas=st.none() | broker_lists,
        last_known_elr=st.none() | broker_lists,
    ),
    st.builds(
        records.ConfigRecord,
        resource_type=st.integers(-128, 127),
        resource_name=names,
        name=names,
        value=st.none() | names,
    ),
    st.builds(
        records.PartitionChangeRecord,
        partition_id=int32,
        topic_id=uuids,
        isr=st.none() | broker_lists,
        leader=broker_ids,
        replicas=st.none() | broker_lists,
        directories=st.none() | uuid_lists,
        eligible_leader_replicas=st.none() | broker_lists,
    ),
    st.builds(records.RemoveTopicRecord, topic_id=uuids),
    st.builds(records.FeatureLevelRecord, name=names, feature_level=int16),
    st.builds(
        records.ProducerIdsRecord, broker_id=broker_ids, broker_epoch=int64, next_producer_id=int64
    ),
    st.builds(
        records.BrokerRegistrationChangeRecord,
        broker_id=broker_ids,
        broker_epoch=int64,
        fenced=st.integers(-1, 1),
        in_controlled_shutdown=st.integers(0, 1),
        log_dirs=uuid_lists,
    ),
    st.builds(
        records.AccessControlEntryRecord,
        id=uuids,
        resource_type=st.integers(-128, 127),
        resource_name=names,
        pattern_type=st.integers(-128, 127),
        principal=names,
        host=names,
        operation=st.integers(-128, 127),
        permission_type=st.integers(-128, 127),
    ),
    st.builds(records.RemoveAccessControlEntryRecord, id=uuids),
    st.builds(records.NoOpRecord),
)
