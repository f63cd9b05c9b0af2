"""The client's side: talks to any cluster of Kafka's protocol and knows nothing of the server."""
