"""HTTP access to the same topics: publish, consume, acknowledge, push. A client of the brokers."""
