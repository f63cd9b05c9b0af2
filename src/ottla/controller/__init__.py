"""The cluster's metadata: brokers, topics, partitions, configs."""
