"""Parsing plans as printed by Spark 4.3."""

from pyspark_ottla.pipeline.plan_text import find_sources, find_state, read_nodes

BELOW = """\
{indent}+- ~SubqueryAlias orders
{indent}   +- View (`orders`, [id#4L, customer#5, amount#6, at#7-T120000ms])
{indent}      +- ~EventTimeWatermark e254c13b-9dbc, at#7: timestamp, 2 minutes
{indent}         +- ~Filter (amount#6 > cast(0 as double))
{indent}            +- ~Project [value#1.id AS id#4L, value#1.customer AS customer#5]
{indent}               +- StreamingRelationV2 org.apache, ottla, [key#0, value#1]
"""
WINDOW = """\
== Parsed Logical Plan ==
'Aggregate ['customer]
== Analyzed Logical Plan ==
customer: string, minute: timestamp, orders: bigint
~Aggregate [customer#5, window#21-T120000ms], [customer#5, window#21-T120000ms.start AS minute#16, \
count(1) AS orders#17L, round(sum(amount#6), 2) AS amount#18]
+- ~Project [named_struct(start, f(at#7-T120000ms, 60000000), end, g(at#7)) AS window#21-T120000ms,\
 id#4L, customer#5, amount#6, at#7-T120000ms]
{below}
== Optimized Logical Plan ==
Aggregate [a#1], [b#2]
"""


def state_of(text: str) -> list[str]:
    return find_state(read_nodes(text))


def window(old: str = "", new: str = "") -> str:
    text = WINDOW.replace("{below}", BELOW.replace("{indent}", "   "))
    assert old in text
    return text.replace(old, new) if old else text


def test_a_window_is_told_by_its_definition() -> None:
    assert state_of(window()) == [
        "Aggregate by value.customer, named_struct(start, f(at, 60000000), end, g(at)): "
        "count(1), round(sum(amount), 2)"
    ]
    assert state_of(window("60000000", "300000000")) != state_of(window())


def test_names_filters_and_what_is_made_of_keys_are_no_state() -> None:
    more = "count(1) AS orders#17L, date(window#21-T120000ms.start) AS day#30"
    assert state_of(window("count(1) AS orders#17L", more)) == state_of(window())
    assert state_of(window("AS minute#", "AS begin#")) == state_of(window())
    assert state_of(window("cast(0 as double)", "cast(5 as double)")) == state_of(window())


def test_another_number_of_a_column_is_the_same_column() -> None:
    assert state_of(window("#5", "#77")) == state_of(window())


def test_numbers_do_not_decide_the_order() -> None:
    more = "count(1) AS orders#17L, max(id#{}L) AS i#40L, max(amount#{}) AS m#41"
    plans = [window("count(1) AS orders#17L", more.format(*pair)) for pair in ((9, 10), (10, 9))]
    assert state_of(plans[0]) == state_of(plans[1])


def test_an_added_aggregate_is_another_state() -> None:
    added = window("count(1) AS orders#17L", "count(1) AS orders#17L, max(amount#6) AS m#19")
    assert state_of(added) != state_of(window())


def test_an_aggregate_of_everything_has_no_keys() -> None:
    plan = "== Analyzed Logical Plan ==\nn: bigint\n~Aggregate [count(1) AS n#3L]\n+- ~Foo\n"
    assert state_of(plan) == ["Aggregate by : count(1)"]


JOIN = """\
== Analyzed Logical Plan ==
id: bigint
~Project [id#4L]
+- ~Join Inner, (id#4L = id#12L)
   :- ~SubqueryAlias o
   :  +- ~SubqueryAlias orders
   :     +- View (`orders`, [id#4L])
   :        +- StreamingRelationV2 org.apache, ottla, [id#4L]
   +- ~SubqueryAlias payments
      +- View (`payments`, [id#12L])
         +- {relation} org.apache, ottla, [id#12L]
"""


def test_a_join_of_two_streams_keeps_both_and_has_sources_in_order() -> None:
    nodes = read_nodes(JOIN.replace("{relation}", "StreamingRelationV2"))
    assert find_state(nodes) == ["Join Inner, (id = id)"]
    assert find_sources(nodes, {"payments", "orders"}) == ["orders", "payments"]


def test_a_join_with_what_is_no_stream_keeps_nothing() -> None:
    assert state_of(JOIN.replace("{relation}", "LogicalRelation")) == []


def test_numbers_of_functions_and_objects_are_passed_over() -> None:
    plan = """\
== Analyzed Logical Plan ==
user: string, clicks: int
TransformWithStateInPySpark transformWithStateUDF(user#{0}, page#2)#{1}, 1, org.Encoder@{2}
+- StreamingRelationV2 org.apache, ottla, [user#{0}, page#2]
"""
    assert state_of(plan.format(1, 22, "1f3a")) == state_of(plan.format(7, 35, "9bc0"))
    assert state_of(plan.format(1, 22, "1f3a")) == [
        "TransformWithStateInPySpark transformWithStateUDF(user, page), 1, org.Encoder"
    ]
