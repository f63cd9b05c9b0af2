"""Pipelines: one YAML file of sources, steps, expectations and sinks, run by Spark.

document, problems           YAML with lines, and what is wrong in them
model                        what a file says
file, dataset_sections,      a file as the model
  sink_sections
schema_text                  schemas, checked without Spark
frames, functions            sources and steps as frames of Spark
expectations                 which rows are good, and where the others go
topics                       the topics of a pipeline in their clusters
writers, batch_writers       one streaming query for each sink
validate                     everything that can be wrong, before anything starts
plan_text, shape             what a query keeps in its state and checkpoint
record, changes, forecast    what was kept of the last run, and what has changed since
renames                      a sink that has another name, and goes on
checkpoint, lag              how far a query has come
source_offsets               positions in the topics of a source
coverage, stretches          which offsets a query has written, and what is left of a range
sink_batches                 what a sink itself knows of its batches
reset                        restart from any offset of the topics
backfill, backfill_file      a range into a sink beside the run, and no row twice
evolution, published         fields that producers add; the schema of a sink, beside its topic
samples, preview             every step on a few records
cases, case_run, case_rows   tests of a pipeline; junit: their outcome for CI
graph                        a drawing
session                      Spark: here, on a cluster, or behind Spark Connect
run                          from the first batch to the last, and a clean stop
group                        several pipelines, started again when they fail
declarative                  projects of Spark Declarative Pipelines, the other way
progress, view, metrics      what is going on, for people and for Prometheus
lineage, lineage_outlets     what was read and written, for OpenLineage
"""
