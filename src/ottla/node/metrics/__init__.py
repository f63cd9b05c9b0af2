"""A node's Prometheus metrics.

The hot path counts in plain integers; they are read here, in the scraper's thread, on demand. The
event loop continues meanwhile, so a scrape may see one number a moment later than another.

    family                      names, types and texts, and how a value becomes a line
    requests, cluster, topics,  one section of the page each
    storage, groups, shares,
    transactions, locks, clients
    lag                         what groups have not read yet, asked of leaders from time to time
    page                        all sections
    server                      serves the page at /metrics

Labels are bounded: APIs, error codes, states, directories, and the topics, partitions and groups of
this node, which the configuration can omit or limit.
"""
