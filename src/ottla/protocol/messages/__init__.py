"""Messages whose newest version dropped a field that older versions still need.

Each is the newest version's entity plus that field: usually the name of a topic, for which the
newest version has only its id. Handlers work with these. A request has either name or id, depending
on the client's version; a response should set both.

Some are of a version that kio does not have yet: those whose names end in V5 or V6 are its layout.

Others have a tagged field more than Kafka's, or belong to an API that Kafka does not have.
"""
