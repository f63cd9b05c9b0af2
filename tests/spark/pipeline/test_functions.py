from tests.spark.pipeline.conftest import Workshop

PIPELINE = """\
name: "{name}"
sources:
  numbers: {topic: "{name}-numbers", format: json, schema: number int}
steps:
  squares: {python: "my_steps:squares", from: numbers, with: {limit: 3}}
sinks:
  out: {from: squares, topic: "{name}-out"}
"""
STEPS = """
from pyspark.sql.functions import udf

from my_helper import square


def squares(numbers, limit):
    squared = udf(square, "int")
    return numbers.where(f"number < {limit}").select("number", squared("number").alias("square"))
"""


def test_a_function_beside_the_file_runs_in_tasks_with_what_it_imports(workshop: Workshop) -> None:
    (workshop.directory / "my_steps.py").write_text(STEPS)
    (workshop.directory / "my_helper.py").write_text("def square(number): return number ** 2\n")
    workshop.topic("numbers")
    workshop.send("numbers", [{"number": number} for number in range(5)])
    workshop.run(PIPELINE)
    assert workshop.objects("out") == [
        {"number": number, "square": number**2} for number in range(3)
    ]
