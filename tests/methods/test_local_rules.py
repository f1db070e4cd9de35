"""What local-update methods do to vectors, without a trainer around them: in float64 where a rule is exact."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from suite.config.costs import LinkCosts
from suite.methods import build_method, settings_from
from suite.methods.local import Step
from suite.plan import Layout

P = 8
LAYOUT = Layout(("x", "y"), (3, 2))


def method(**settings):
    made = build_method(settings_from(settings))
    made.adopt(LAYOUT, ("y",))
    return made


def averaging_steps(made, steps: int, workers: int = P) -> list[int | None]:
    return [made.group(step, workers) for step in range(1, steps + 1)]


def test_hier_avg_averages_in_groups_and_then_over_all():
    assert averaging_steps(method(name="hier_avg", k1=2, k2=6, group=4), 7) == [None, 4, None, 4, None, P, None]
    assert averaging_steps(method(name="hier_avg", k1=2, k2=4, group=1), 4) == [None, None, None, P]
    assert averaging_steps(method(name="hier_avg", k1=1, k2=1, group=4), 3) == [P, P, P]


def test_local_adaalter_warms_up_in_step():
    made = method(name="local_adaalter", period=4, warmup_steps=3)
    assert averaging_steps(made, 8) == [P, P, P, P, None, None, None, P]


@given(k1=st.integers(1, 4), times=st.integers(1, 4), group=st.sampled_from([1, 2, 4, 8]), momentum=st.booleans())
def test_bytes_of_hier_avg_by_the_formula(k1: int, times: int, group: int, momentum: bool):
    """4d [2(S-1)/S (1/K1 - 1/K2) + 2(P-1)/P 1/K2], twice that with momentum."""
    k2 = k1 * times
    made = method(name="hier_avg", k1=k1, k2=k2, group=group, average_momentum=momentum)
    formula = 2 * (group - 1) / group * (1 / k1 - 1 / k2) + 2 * (P - 1) / P / k2
    assert made.traffic(P, sparse=False) == pytest.approx((1 + momentum) * formula)


@pytest.mark.parametrize("settings, vectors, period", [
    ({"name": "local_adaalter", "period": 5}, 2, 5),
    ({"name": "local_sgda", "tau": 5}, 1, 5),
    ({"name": "adaptive_batch", "period": 5}, 2, 5),
])  # fmt: skip
def test_bytes_of_the_others(settings: dict, vectors: int, period: int):
    assert method(**settings).traffic(P, sparse=False) == pytest.approx(vectors * 2 * (P - 1) / P / period)


def test_predictions_charge_the_mean_of_rings():
    network = LinkCosts(workers=P, alpha=1e-3, bandwidth=8e9).network()
    line = method(name="hier_avg", k1=1, k2=2, group=2).collective(network, sparse=False)
    assert line.start == pytest.approx(1e-3 * (2 * 1 * 0.5 + 2 * (P - 1) * 0.5))
    assert line.per_byte == pytest.approx(1e-9 * (2 * 1 / 2 * 0.5 + 2 * (P - 1) / P * 0.5))
    whole = method(name="local_sgda", tau=1).collective(network, sparse=False)
    assert whole.start == pytest.approx(network.all_reduce.start)
    assert whole.per_byte == pytest.approx(network.all_reduce.per_byte)


@pytest.mark.parametrize("settings, reason", [
    ({"name": "hier_avg", "k1": 4, "k2": 6}, "k2 must be a multiple of k1"),
    ({"name": "local_sgda", "tau": 4, "snapshot_every": 6}, "multiple of tau"),
])  # fmt: skip
def test_periods_that_do_not_fit_are_refused(settings: dict, reason: str):
    with pytest.raises(ValidationError, match=reason):
        settings_from(settings)


# -- AdaAlter ----------------------------------------------------------------------------------------------------------


def gradients(steps: int, size: int = 5, seed: int = 0) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(size, generator=generator, dtype=torch.float64) for _ in range(steps)]


def directions(made, grads: list[torch.Tensor], period: int) -> list[torch.Tensor]:
    """Of one worker that averages with itself."""
    local, out, since = made.init(torch.zeros_like(grads[0])), [], 0
    for number, gradient in enumerate(grads, 1):
        since += 1
        out.append(made.direction(gradient.clone(), local, Step(since)))
        if number % period == 0:
            made.after_average(local, None, number)
            since = 0
    return out


def test_alone_and_with_a_period_of_1_it_is_adaalter():
    """g_t over the root of all squares before, and eps^2."""
    grads = gradients(6)
    squares = torch.zeros(5, dtype=torch.float64)
    for gradient, found in zip(
        grads, directions(method(name="local_adaalter", period=1, eps=0.5), grads, 1), strict=True
    ):
        torch.testing.assert_close(found, gradient / (squares + 0.25).sqrt(), rtol=1e-14, atol=0)
        squares += gradient**2


def test_adaalter_is_adagrad_one_step_late():
    """AdaGrad's denominator has the squares up to its own step; AdaAlter's has those up to the step before."""
    grads = gradients(6)
    alter = directions(method(name="local_adaalter", period=1), grads, 1)
    squares = torch.zeros(5, dtype=torch.float64)
    for number, gradient in enumerate(grads):
        if number + 1 < len(grads):
            squares += gradient**2
            denominator = (squares + 1).sqrt()  # AdaGrad's in this step
            following = grads[number + 1]
            torch.testing.assert_close(alter[number + 1], following / denominator, rtol=1e-14, atol=0)


@pytest.mark.parametrize("placeholder, factors", [("growing", [1, 2, 3, 1, 2, 3]), ("constant", [1] * 6)])
def test_between_averages_squares_are_frozen_and_eps_takes_their_place(placeholder: str, factors: list[int]):
    grads = gradients(6)
    made = method(name="local_adaalter", period=3, eps=2.0, placeholder=placeholder)
    frozen = torch.zeros(5, dtype=torch.float64)
    for number, (gradient, found) in enumerate(zip(grads, directions(made, grads, 3), strict=True)):
        if number == 3:
            frozen = sum(g**2 for g in grads[:3])
        torch.testing.assert_close(found, gradient / (frozen + factors[number] * 4.0).sqrt(), rtol=1e-14, atol=0)


# -- SGDA --------------------------------------------------------------------------------------------------------------


def test_ascending_entries_take_steps_of_their_own_length():
    found = method(name="local_sgda", ascent_ratio=3.0).direction(torch.ones(5), {}, Step(1))
    assert found.tolist() == [1, 1, 1, 3, 3]


def test_the_plus_variant_ascends_from_the_snapshot():
    made = method(name="local_sgda", tau=2, snapshot_every=4)
    local = {"parameters": torch.arange(5.0)}
    local |= made.init(local["parameters"])
    local["parameters"] = torch.full((5,), 9.0)
    assert made.second_point(local).tolist() == [0, 1, 2, 9, 9]
    made.after_average(local, None, 2)
    assert local["snapshot"].tolist() == [0, 1, 2, 3, 4]
    made.after_average(local, None, 4)
    assert local["snapshot"].tolist() == [9] * 5


def quadratic_floor(tau: int, lr: float, steps: int) -> float:
    """Distance from the saddle of three different scalar quadratics after so many steps, in float64."""
    made = build_method(settings_from({"name": "local_sgda", "tau": tau}))
    made.adopt(Layout(("x", "y"), (1, 1)), ("y",))
    a, b, c, u, v = torch.randn(5, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    a, c = a.exp(), c.exp()
    points = torch.ones(3, 2, dtype=torch.float64)
    for step in range(1, steps + 1):
        x, y = points.T
        # Of y negated, as a model hands it out.
        grads = torch.stack([a * x + b * y + u, -(b * x - c * y - v)], dim=1)
        for worker in range(3):
            points[worker] -= lr * made.direction(grads[worker], {}, Step(1))
        if made.group(step, 3):
            points[:] = points.mean(dim=0)
    matrix = torch.tensor([[a.mean(), b.mean()], [b.mean(), -c.mean()]])
    saddle = torch.linalg.solve(matrix, torch.stack([-u.mean(), v.mean()]))
    return float((points.mean(dim=0) - saddle).norm())


def test_workers_that_differ_end_beside_the_saddle_unless_they_average_every_step():
    """Deterministic and heterogeneous: a floor in proportion to the rate, and none for tau = 1 (acceptance E)."""
    alone = quadratic_floor(1, 0.05, 4000)
    floors = [quadratic_floor(10, lr, int(200 / lr)) for lr in (0.05, 0.025, 0.0125)]
    assert alone < 1e-13 and floors[0] > 1e-3 and floors[0] > 10 * alone
    for longer, shorter in zip(floors, floors[1:], strict=False):
        assert 1.6 < longer / shorter < 2.6


# -- adaptive batches --------------------------------------------------------------------------------------------------


def next_batches(made, grads: torch.Tensor, batches: int = 1) -> int:
    """The batch that workers with these gradients [P, d] choose, in base batches."""
    locals_ = []
    for gradient in grads:
        local = made.init(gradient) | {"batches": batches}
        made.direction(gradient.clone(), local, Step(1, batches))
        locals_.append(local)
    mean = grads.mean(dim=0)
    seen = torch.tensor([made.observe(local, {"gradient": mean}) for local in locals_], dtype=torch.float64)
    for local in locals_:
        made.after_average(local, seen, 1)
    assert len({made.batches(local) for local in locals_}) == 1
    return made.batches(locals_[0])


@pytest.mark.parametrize("test", ["norm", "inner_product"])
@given(seed=st.integers(0, 2**20), batches=st.integers(1, 5), eta=st.floats(0.05, 5))
def test_the_batch_never_shrinks_and_has_a_largest(test: str, seed: int, batches: int, eta: float):
    made = method(name="adaptive_batch", test=test, eta=eta, largest=7)
    grads = torch.randn(4, 6, generator=torch.Generator().manual_seed(seed))
    assert batches <= next_batches(made, grads, batches) <= 7


@pytest.mark.parametrize("test", ["norm", "inner_product"])
def test_extreme_thresholds(test: str):
    grads = torch.randn(4, 6, generator=torch.Generator().manual_seed(0))
    assert next_batches(method(name="adaptive_batch", test=test, eta=1e6), grads, 2) == 2
    assert next_batches(method(name="adaptive_batch", test=test, eta=1e-6, largest=9), grads) == 9


@pytest.mark.parametrize("test", ["norm", "inner_product"])
def test_equal_gradients_have_no_noise(test: str):
    made = method(name="adaptive_batch", test=test, eta=1e-3)
    assert next_batches(made, torch.ones(4, 6), 3) == 3 and next_batches(made, torch.zeros(4, 6), 3) == 3


def test_noise_without_a_gradient_takes_the_largest_batch():
    made = method(name="adaptive_batch", largest=9)
    assert next_batches(made, torch.tensor([[1.0], [-1.0]])) == 9


def test_the_norm_test_estimates_noise_over_signal():
    """Gaussian gradients of known mean G and variance sigma^2 in all: the mean of s2 is sigma^2, of ||g||^2 it is
    ||G||^2 + sigma^2 / M."""
    made, draws, d, workers, sigma = method(name="adaptive_batch"), 4000, 20, 4, 3.0
    generator = torch.Generator().manual_seed(0)
    mean = torch.ones(d, dtype=torch.float64)
    noise = torch.randn(draws, workers, d, generator=generator, dtype=torch.float64) * sigma / math.sqrt(d)
    spread, size = [], []
    for grads in mean + noise:
        average = grads.mean(dim=0)
        rows = [made.observe({"gradient": gradient}, {"gradient": average}) for gradient in grads]
        spread.append(sum(row[0] for row in rows) / (workers - 1))
        size.append(rows[0][1])
    # s2 is a chi-square of d (M - 1) degrees over as many, times sigma^2.
    error = sigma**2 * math.sqrt(2 / (d * (workers - 1)) / draws)
    assert sum(spread) / draws == pytest.approx(sigma**2, abs=4 * error)
    deviation = torch.tensor(size).std() / math.sqrt(draws)
    assert sum(size) / draws == pytest.approx(d + sigma**2 / workers, abs=4 * float(deviation))


def test_the_inner_product_test_takes_the_variance_along_the_mean():
    made = method(name="adaptive_batch", test="inner_product", eta=1.0, largest=10**6)
    grads = torch.tensor([[3.0, 5.0], [1.0, -5.0]])  # mean (2, 0): products 6 and 2, variance 8, ||g||^4 = 16
    assert next_batches(made, grads, 6) == 6 and next_batches(made, grads * torch.tensor([1.0, 9.0]), 6) == 6
    made = method(name="adaptive_batch", test="inner_product", eta=0.5, largest=10**6)
    assert next_batches(made, grads, 6) == 12  # 6 * 8 / (0.25 * 16)
