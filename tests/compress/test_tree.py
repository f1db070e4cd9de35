"""gTop-k's tree: what it chooses, what the two repairs give back, and what the published one loses."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from exchanging import Party, normals, total
from suite.compress import TopK, TreeTopK, select_topk
from suite.compress.tree import pairs
from suite.plan import Layout, whole_gradient


def party(workers: int, size: int, k: int, repair: str | None) -> Party:
    layout = Layout(("x",), (size,))
    return Party(TreeTopK(repair), whole_gradient(layout, k / size), workers, layout)


def missing(of: Party, accs: list[torch.Tensor], update: torch.Tensor) -> torch.Tensor:
    """What of the accumulated sum is neither in the update nor in anybody's rest, float64 [d]."""
    return total(accs) - of.workers * update.double() - total(of.lefts)


def lost_share(of: Party) -> float:
    return of.payloads[0].notes(of.found[0])["lost_share"]


CASES = {"workers": st.integers(1, 9), "size": st.integers(1, 60), "seed": st.integers(0, 2**31)}


@pytest.mark.parametrize("repair", ["exact", "owners"])
@given(**CASES, data=st.data())
@settings(max_examples=80)
def test_ours_conserve_for_any_number_of_workers(repair, workers: int, size: int, seed: int, data: st.DataObject):
    k = data.draw(st.integers(1, size))
    of, accs = party(workers, size, k, repair), normals(seed, workers, size)
    update = of.exchange(accs)
    torch.testing.assert_close(missing(of, accs, update), torch.zeros(size, dtype=torch.float64), rtol=0, atol=1e-5)
    assert lost_share(of) == 0 and int(update.count_nonzero()) <= k


@given(**CASES, data=st.data())
@settings(max_examples=80)
def test_the_published_repair_loses_what_it_says(workers: int, size: int, seed: int, data: st.DataObject):
    """lost_share is the sum of magnitudes of partial sums that nobody gets back, over that of what all have chosen."""
    k = data.draw(st.integers(1, size))
    of, accs = party(workers, size, k, "published"), normals(seed, workers, size)
    update = of.exchange(accs)
    lost = missing(of, accs, update)
    found = of.found[0]
    expected = torch.zeros(size, dtype=torch.float64)
    for drop in found.dropped:
        inside = torch.isin(drop.indices, found.indices)
        expected.index_add_(0, drop.indices[inside].long(), drop.values[inside].double())
    torch.testing.assert_close(lost, expected, rtol=0, atol=1e-5)
    if workers <= 2:
        assert lost_share(of) == 0 and not expected.any()
    # What a worker chose and the global choice lacks is back bit for bit.
    for acc, left in zip(accs, of.lefts, strict=True):
        outside = torch.ones(size, dtype=torch.bool)
        outside[found.indices.long()] = False
        assert torch.equal(left[outside], acc[outside])


def test_the_example_with_three_entries():
    """Worker 0's 2 is dropped by worker 0's merge with worker 1 and then chosen through worker 2."""
    accs = [torch.tensor(x) for x in ([2.0, 0, 0], [0, 4.0, 0], [9.0, 0, 0], [0, 0, 0.1])]
    published, exact, owners = (party(4, 3, 1, repair) for repair in ("published", "exact", "owners"))
    for of in (published, exact, owners):
        assert of.exchange(accs).tolist() == [9 / 4, 0, 0]
    assert [left.tolist() for left in published.lefts] == [[0, 0, 0], [0, 4, 0], [0, 0, 0], [0, 0, pytest.approx(0.1)]]
    assert lost_share(published) == pytest.approx(2 / 15.1)
    # Worker 0 merged first with 1, then with 2; worker 2 with 3.
    assert exact.lefts[0].tolist() == [2, 4, 0] and exact.lefts[2].tolist() == [0, 0, pytest.approx(0.1)]
    assert [left.tolist() for left in owners.lefts] == [[2, 0, 0], [0, 4, 0], [0, 0, 0], [0, 0, pytest.approx(0.1)]]


@given(**CASES, data=st.data())
@settings(max_examples=40)
def test_owners_get_back_what_they_sent_or_nothing(workers: int, size: int, seed: int, data: st.DataObject):
    """Bit for bit, and at least all that the published rule puts back."""
    k = data.draw(st.integers(1, size))
    accs = normals(seed, workers, size)
    ours, published = party(workers, size, k, "owners"), party(workers, size, k, "published")
    ours.exchange(accs), published.exchange(accs)
    for acc, left, other in zip(accs, ours.lefts, published.lefts, strict=True):
        assert torch.equal(torch.where(left == 0, acc, left), acc)
        assert torch.equal(torch.where(other == 0, left, other), left)


def steps_that_lose(workers: int, repair: str, steps: int = 100) -> tuple[float, float]:
    """Share of random steps (d = 200, k = 10) that lose gradient, and the mean of what they lose, relative."""
    shares = []
    for seed in range(steps):
        of = party(workers, 200, 10, repair)
        of.exchange(normals(seed, workers, 200))
        shares.append(lost_share(of))
    losing = [share for share in shares if share > 0]
    return len(losing) / steps, sum(losing) / max(len(losing), 1)


def test_most_random_steps_of_eight_workers_lose_gradient_under_the_published_rule():
    share, amount = steps_that_lose(8, "published")
    assert share > 0.5 and 0 < amount < 1
    assert steps_that_lose(8, "exact")[0] == steps_that_lose(8, "owners")[0] == 0
    assert steps_that_lose(2, "published")[0] == 0
    assert 0 < steps_that_lose(3, "published")[0] < steps_that_lose(4, "published")[0] < share


@given(seed=st.integers(0, 2**31), workers=st.sampled_from([1, 2]), data=st.data())
@settings(max_examples=40)
def test_one_and_two_workers_choose_the_largest_sums(seed: int, workers: int, data: st.DataObject):
    size = 30
    k = data.draw(st.integers(1, size))
    accs = normals(seed, workers, size)
    plain = Party(TopK(), whole_gradient(Layout(("x",), (size,)), k / size), workers, Layout(("x",), (size,)))
    summed = plain.exchange(accs)
    values, indices = select_topk(summed, k)
    expected = torch.zeros(size).index_add_(0, indices, values)
    torch.testing.assert_close(party(workers, size, k, "published").exchange(accs), expected, rtol=1e-6, atol=0)


@given(seed=st.integers(0, 2**31), workers=st.integers(1, 9), repair=st.sampled_from(["published", "exact", "owners"]))
@settings(max_examples=30)
def test_choosing_everything_is_dense(seed: int, workers: int, repair: str):
    accs, of = normals(seed, workers, 20), party(workers, 20, 20, repair)
    update = of.exchange(accs)
    torch.testing.assert_close(update.double(), total(accs) / workers, rtol=1e-5, atol=1e-6)
    assert not any(left.any() for left in of.lefts)


@pytest.mark.parametrize("workers", range(1, 18))
def test_a_binomial_tree_of_any_number_of_workers(workers: int):
    """Everybody but worker 0 sends once; worker 0 merges ceil(log2 P) times, nobody more often."""
    found = list(pairs(workers))
    assert sorted(other for _, other in found) == list(range(1, workers))
    merges = [sum(worker == w for worker, _ in found) for w in range(workers)]
    assert max(merges) == merges[0] == math.ceil(math.log2(workers))
    for at, (worker, _) in enumerate(found):  # whoever merges has not sent yet
        assert worker not in [other for _, other in found[:at]]


def test_ties_go_to_the_lowest_index():
    of = party(3, 4, 2, "exact")
    update = of.exchange([torch.ones(4), torch.ones(4), torch.ones(4)])
    assert update.tolist() == [1, 1, 0, 0]


def test_without_error_feedback_nothing_is_put_back_or_noted():
    of = party(4, 30, 3, None)
    accs = normals(1, 4, 30)
    of.exchange(accs)
    assert of.payloads[0].notes(of.found[0]) == {}
    assert all(int((left != acc).sum()) == 3 for left, acc in zip(of.lefts, accs, strict=True))


@given(seed=st.integers(0, 2**31), repair=st.sampled_from(["published", "exact", "owners", None]))
@settings(max_examples=20)
def test_withheld_is_what_was_sent_less_the_update(seed: int, repair: str | None):
    """So that those who measure know the mean of what was accumulated."""
    accs, of = normals(seed, 5, 40), party(5, 40, 4, repair)
    update = of.exchange(accs)
    plain = Party(TopK(), of.plan, 5, of.layout)
    sent = plain.exchange(accs)
    torch.testing.assert_close(update + of.payloads[0].withheld(of.found[0], 5), sent, rtol=1e-5, atol=1e-6)
