"""Topics and streams as tables: Delta and Iceberg, written exactly once, without a jar.

address      where a table is: `delta:/lake/orders`, `iceberg:lake.sales.orders`
table        what a table can do; `delta` and `iceberg` do it
locations    files and directories, on this machine or in an object store
data_files   rows into Parquet files, in tasks
batch        what a commit says of the batch that it is
committing   one commit for each batch, whoever fails in between
writer       `TableWriter`: rows of any query into a table; for foreachBatch
source       `ottla_table`: the same as a format of Spark, and tables read without a jar
"""
