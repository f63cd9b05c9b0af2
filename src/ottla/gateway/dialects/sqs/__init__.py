"""Amazon SQS: the JSON and the query protocol, over topics and their share groups."""
