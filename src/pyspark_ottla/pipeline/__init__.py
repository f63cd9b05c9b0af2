"""Pipelines: one YAML file of sources, steps, expectations and sinks, run by Spark.

document, problems           YAML with line numbers, and problems found in it
model                        the contents of a file
file, dataset_sections,      reads a file into the model
  sink_sections
schema_text                  schemas, checked without Spark
frames, functions            sources and steps as Spark frames
expectations                 which rows are good, and where the others go
topics                       a pipeline's topics in their clusters
writers, batch_writers       one streaming query per sink
validate                     all checks before anything starts
plan_text, shape             what a query keeps in its state and checkpoint
record, changes, forecast    the record of the last run, and what has changed since
renames                      a renamed sink that continues
checkpoint, lag              how far a query has come
source_offsets               positions in a source's topics
coverage, stretches          which offsets a query has written, and what is left of a range
sink_batches                 what a sink itself knows of its batches
reset                        restart from any offset of the topics
backfill, backfill_file      write a range into a sink during the run, without duplicates
evolution, published         fields that producers add; a sink's schema, next to its topic
samples, preview             every step on a few records
cases, case_run, case_rows   tests of a pipeline; junit: their results for CI
graph                        a drawing
session                      Spark: in this process, on a cluster, or behind Spark Connect
run                          from the first batch to the last, and a clean stop
group                        several pipelines, restarted when they fail
declarative                  projects of Spark Declarative Pipelines, the alternative
progress, view, metrics      what is going on, for people and for Prometheus
lineage, lineage_events      what was read and written, for OpenLineage
"""
