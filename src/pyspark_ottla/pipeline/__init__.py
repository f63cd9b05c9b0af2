"""Pipelines: one YAML file of sources, steps, expectations and sinks, run by Spark.

document, problems           YAML with lines, and what is wrong in them
model                        what a file says
file, places, sink_sections  a file as the model
frames, functions            sources and steps as frames of Spark
expectations                 which rows are good, and where the others go
topics                       the topics of a pipeline in their clusters
writers, batch_writers       one streaming query for each sink
validate                     everything that can be wrong, before anything starts
session                      Spark: here, on a cluster, or behind Spark Connect
run                          from the first batch to the last, and a clean stop
declarative                  projects of Spark Declarative Pipelines, the other way
progress, view, metrics      what is going on, for people and for Prometheus
"""
