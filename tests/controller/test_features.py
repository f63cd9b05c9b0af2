from tests.controller.cluster import Cluster
from tests.controller.test_feature_updates import NAME, SAFE_DOWNGRADE, update

from ottla.controller.features import feature_level, finalized_levels


def test_a_feature_has_its_default_until_it_is_written() -> None:
    cluster = Cluster()
    assert finalized_levels(cluster.image) == {
        NAME: 2,
        "eligible.leader.replicas.version": 1,
        "group.version": 1,
        "share.version": 1,
        "streams.version": 1,
        "kraft.version": 1,
        "metadata.version": 30,
    }
    cluster.apply(update(cluster, (NAME, 1, SAFE_DOWNGRADE)))
    assert feature_level(cluster.image, NAME) == 1
