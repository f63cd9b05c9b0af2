"""Topics and streams as tables: Delta and Iceberg, written exactly once, without a jar.

address      where a table is: `delta:/lake/orders`, `iceberg:lake.sales.orders`
table        the table interface; `delta` and `iceberg` implement it
locations    files and directories, local or in an object store
data_files   rows into Parquet files, in tasks
batch        what a commit says about its batch
committing   one commit per batch, whatever fails in between
writer       `TableWriter`: rows of any query into a table; for foreachBatch
source       `ottla_table`: the same as a Spark format, and tables read without a jar
"""
