"""Merging finds the shortest iteration with the fewest messages, and never changes what is sent."""

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costs import case, layer
from suite.config.costs import LinearCost
from suite.plan import compare_on_random, greedy_groups, layer_wise, merge, optimal_groups
from suite.plan.merge import finish

line = st.builds(LinearCost, start=st.floats(0, 2), per_byte=st.floats(0, 1))
work = st.lists(st.tuples(st.floats(0, 2), st.floats(0, 4)), min_size=1, max_size=9)


def ready_and_sizes(work: list[tuple[float, float]]) -> tuple[list[float], list[float]]:
    times, now = [], 0.0
    for backward, _ in work:
        now += backward
        times.append(now)
    return times, [size for _, size in work]


def partitions(n: int):
    """All ways to cut n layers into runs, as lengths."""
    for count in range(n):
        for cuts in combinations(range(1, n), count):
            edges = [0, *cuts, n]
            yield [b - a for a, b in zip(edges, edges[1:], strict=False)]


@given(work, line)
def test_optimal_is_what_brute_force_finds(work, line):
    ready, sizes = ready_and_sizes(work)
    ends = {tuple(groups): finish(ready, sizes, line, groups) for groups in partitions(len(work))}
    groups = optimal_groups(ready, sizes, line)
    shortest = min(ends.values())
    assert sum(groups) == len(work) and ends[tuple(groups)] == pytest.approx(shortest, rel=2e-9)
    fewest = min(len(other) for other, end in ends.items() if end <= shortest * (1 + 1e-10))
    assert len(groups) <= fewest


@settings(max_examples=5)
@given(st.lists(st.tuples(st.floats(0, 2), st.floats(0, 4)), min_size=12, max_size=12), line)
def test_brute_force_over_twelve_layers(work, line):
    ready, sizes = ready_and_sizes(work)
    shortest = min(finish(ready, sizes, line, groups) for groups in partitions(12))
    assert finish(ready, sizes, line, optimal_groups(ready, sizes, line)) == pytest.approx(shortest, rel=2e-9)


@given(work, line)
def test_optimal_is_never_longer_than_the_published_rule_layers_or_one_message(work, line):
    ready, sizes = ready_and_sizes(work)
    best = finish(ready, sizes, line, optimal_groups(ready, sizes, line))
    for groups in (greedy_groups(ready, sizes, line), [1] * len(work), [len(work)]):
        assert sum(groups) == len(work)
        assert best <= finish(ready, sizes, line, groups) * (1 + 2e-9)


def published_rule(ready, sizes, line) -> list[int]:
    """MG-WFBP's rule as published: all start times anew after every merge, by an empty message where one merged."""
    sizes, n = list(sizes), len(sizes)
    owner = list(range(n))  # the layer whose message a layer travels in

    def starts():
        out, end = [], 0.0
        for i in range(n):
            begin = max(end, ready[i])
            out.append(begin)
            end = begin + line.seconds(sizes[i]) if owner[i] == i else end
        return out

    for i in range(n - 1):
        begin = starts()[i]
        end = begin + line.seconds(sizes[i])
        if ready[i + 1] < end and (begin > ready[i + 1] or ready[i + 1] - begin < line.start):
            sizes[i + 1] += sizes[i]
            owner[i] = i + 1
    groups, held = [], 0
    for i in range(n):
        held += 1
        if owner[i] == i:
            groups.append(held)
            held = 0
    return groups


@given(work, line)
def test_greedy_is_the_published_rule(work, line):
    ready, sizes = ready_and_sizes(work)
    ours, published = greedy_groups(ready, sizes, line), published_rule(ready, sizes, line)
    assert finish(ready, sizes, line, ours) == pytest.approx(finish(ready, sizes, line, published))


@given(st.lists(layer, min_size=1, max_size=10), st.integers(0, 5000), st.floats(0, 1000), st.booleans())
def test_merging_changes_messages_but_no_segment(layers, start, per_byte, sparse):
    layout, costs, plan = case(layers, start, per_byte)
    plan = plan if sparse else layer_wise(layout, lambda name: None)
    merged = merge(plan, layout, costs).check(layout)
    assert merged.segments == plan.segments and 1 <= len(merged.messages) <= len(plan.messages)


def test_by_hand():
    """Waiting half a second for the second layer saves a start-up of one; the third one comes too late for that."""
    assert optimal_groups([1, 1.5, 9], [1, 1, 1], LinearCost(start=1, per_byte=1)) == [2, 1]


def test_what_costs_nothing_travels_in_one_message():
    assert optimal_groups([1, 2, 3], [1, 1, 1], LinearCost(start=0, per_byte=0)) == [3]


def test_the_rule_is_compared_with_the_optimum():
    found = compare_on_random(layers=8, instances=50)
    assert 0 <= found["optimal_share"] <= 1 and 0 <= found["mean_gap"] <= found["largest_gap"]
    assert found == compare_on_random(layers=8, instances=50)
