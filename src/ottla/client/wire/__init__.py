"""A blocking client in the protocol's own words, for those who move record batches as they are.

It fetches and produces whole batches, which readers and writers of tables decode and encode in
columns. Everything else that an application wants is in the ordinary clients.
"""
