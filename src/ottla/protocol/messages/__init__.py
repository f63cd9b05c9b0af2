"""Messages whose newest version dropped a field that older versions still need.

Each is the newest version's entity and that field besides: most often the name of a topic, for
which the newest version has only its id. Handlers work with these. In a request one of name and id
is there, as the client's version has it; in a response both should be given.

Others have a tagged field more than Kafka's, or belong to an API that Kafka does not have.
"""
