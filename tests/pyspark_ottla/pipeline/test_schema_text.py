import pytest

from pyspark_ottla.pipeline.schema_text import field_names, find_wrong


@pytest.mark.parametrize(
    "text",
    [
        "a int",
        "a INT, b String",
        "a: int, b: string",
        "`a b` decimal(10, 2) not null comment 'of, it', b int",
        "b map<string, struct<x: int, y: array<int>>>",
        "x interval day to second, y int",
        "struct<a: int>",
        "array<struct<a int>>",
        "a varchar(10)\n, b timestamp_ntz",
        "a string collate UNICODE_CI",
        "a struct<>",
        '{"type": "struct", "fields": []}',
    ],
)
def test_what_spark_may_take(text: str) -> None:
    assert find_wrong(text) is None


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ("page strng", "field page: there is no type strng; did you mean string?", 0),
        ("a quux", "field a: there is no type quux; such as string, bigint, double", 0),
        ("a varchar(10),\nb sting", "field b: there is no type sting; did you mean string?", 1),
        ("a array<strin>", "field a: array: there is no type strin; did you mean string?", 0),
        ("a int b int", "a comma is missing before 'b'", 0),
        ("a", "field a has no type", 0),
        ("a, b int", "field a has no type", 0),
        ("a int,", "it ends early", 0),
        ("a int,, b int", "a field is missing before ','", 0),
        ("a array", "field a: say what is in it, as array<string>", 0),
        ("a map<string>", "field a: a map has two types, such as map<string, int>", 0),
        ("a struct<b int", "> is missing", 0),
        ("a decimal(10", ") is missing", 0),
    ],
)
def test_what_is_wrong_and_where(text: str, message: str, line: int) -> None:
    wrong = find_wrong(text)
    assert wrong is not None
    assert wrong == (message, line)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("id int", ["id"]),
        ("id: int, `a,b` string comment 'x, y', d decimal(10, 2)", ["id", "a,b", "d"]),
        ("m map<string, int>, s struct<a: int, b: int>, z int", ["m", "s", "z"]),
        ("struct<a: int>", []),
        ('{"type": "struct", "fields": []}', []),
        ("id nt", []),
    ],
)
def test_the_names_of_fields(text: str, names: list[str]) -> None:
    assert field_names(text) == names
