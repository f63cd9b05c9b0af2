"""Records as columns: decodes or encodes many batches at once, for table readers and writers.

Needs numpy and pyarrow, which come with the `spark` extra. The broker imports none of this.
"""
