"""Amazon SQS: its JSON and query protocols, over topics and their share groups."""
