import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.groups.consumer.regex import TopicPattern
from ottla.protocol.errors import ApiError, ErrorCode


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        ("orders", ["orders"], ["order", "orders2", ""]),
        ("orders.*", ["orders", "orders-eu"], ["xorders"]),
        ("^orders$", ["orders"], ["orders-eu"]),
        (r"\Aorders\z", ["orders"], ["orders-eu"]),
        ("a|b|cd", ["a", "b", "cd"], ["c", "ab"]),
        ("(?:a|b)+", ["a", "abba"], ["", "abc"]),
        ("(?P<x>a)(?<y>b)", ["ab"], ["a"]),
        ("[a-c_]+", ["abc_"], ["abd"]),
        ("[^a-c]+", ["xyz"], ["xaz"]),
        ("[]a-]+", ["]a-"], ["b"]),
        (r"[\d.]+", ["1.2"], ["1x"]),
        (r"\w+\.\d+", ["topic.1"], ["topic-1", "topic."]),
        (r"\D\W\S", ["a-b"], ["1-b", "aab"]),
        (r"a\.b\-c", ["a.b-c"], ["axb-c"]),
        ("a{3}", ["aaa"], ["aa", "aaaa"]),
        ("a{2,}", ["aa", "aaaaa"], ["a"]),
        ("a{1,2}b", ["ab", "aab"], ["b", "aaab"]),
        ("a{0}b", ["b"], ["ab"]),
        ("a{x}", ["a{x}"], ["a"]),
        ("a??b*?", ["", "a", "abb"], ["ba"]),
        ("(?i)Orders-[a-z]", ["ORDERS-Q", "orders-q"], ["orders-1"]),
        ("", [""], ["a"]),
        ("()", [""], ["a"]),
        ("a$|b", ["a", "b"], ["ab"]),
        ("^$", [""], ["a"]),
        (".", ["a"], ["", "\n"]),
    ],
)
def test_names_match_as_a_whole(pattern: str, matching: list[str], others: list[str]) -> None:
    compiled = TopicPattern(pattern)

    assert [name for name in matching if not compiled.matches(name)] == []
    assert [name for name in others if compiled.matches(name)] == []


@pytest.mark.parametrize(
    "pattern",
    [
        "(",
        ")",
        "a)",
        "[a",
        "[z-a]",
        r"[a-\d]",
        r"[\D]",
        "*a",
        "a**",
        "a{2}{3}{4}*",
        "a{5,2}",
        "a{1001}",
        "\\",
        r"\1",
        r"\bword",
        r"\pL",
        "(?=a)",
        "(?!a)",
        "(?<=a)",
        "(?P<>a)",
        "(a{1000}){1000}",
        "(" * 60 + ")" * 60,
        "a" * 1001,
    ],
)
def test_what_is_not_in_the_language_is_refused(pattern: str) -> None:
    with pytest.raises(ApiError) as refused:
        TopicPattern(pattern)

    assert refused.value.code is ErrorCode.invalid_regular_expression


@pytest.mark.parametrize("pattern", ["(a+)+b", "(a|a)*b", "(.*)*(.*)*b", "(a|aa)+b"])
def test_expressions_that_stop_other_engines_take_linear_time(pattern: str) -> None:
    assert not TopicPattern(pattern).matches("a" * 249)


_pieces = st.recursive(
    st.sampled_from(["a", "b", ".", "[ab]", "[^a]", r"\w", "c"]),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda pair: f"(?:{pair[0]}|{pair[1]})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,2}"])).map(
            lambda pair: f"(?:{pair[0]}){pair[1]}"
        ),
    ),
    max_leaves=6,
)


@settings(max_examples=100)
@given(_pieces, st.lists(st.text("abc", max_size=6), max_size=10))
def test_the_same_names_match_as_with_pythons_engine(pattern: str, names: list[str]) -> None:
    compiled = TopicPattern(pattern)

    for name in names:
        assert compiled.matches(name) == bool(re.fullmatch(pattern, name))
