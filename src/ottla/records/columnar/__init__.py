"""Records as columns: many batches decoded or encoded at once, for readers and writers of tables.

Needs numpy and pyarrow, which come with the `spark` extra. The broker imports nothing of this.
"""
