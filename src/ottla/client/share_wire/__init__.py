"""Members of share groups over the wire, for many consumers of one event loop: what several of them
wait for is fetched together, and a delivery is settled by whoever holds it, one by one."""
