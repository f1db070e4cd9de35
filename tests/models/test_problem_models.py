"""Models of small problems: their gradients and values against formulas."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from suite.config.problems import LinearConfig, QuadraticsConfig, RobustLinearConfig
from suite.data.quadratics import load_quadratics
from suite.models.linear import Linear, RobustLinear, onto_simplex
from suite.models.saddle import Saddle

GENERATOR = torch.Generator().manual_seed(0)
VECTORS = torch.randn(7, 4, generator=GENERATOR)
LABELS = torch.tensor([1.0, -1, 1, 1, -1, -1, 1])
WEIGHT = torch.randn(4, generator=GENERATOR)


def linear(**settings) -> Linear:
    model = Linear(4, LinearConfig(**settings))
    model.weight.data.copy_(WEIGHT)
    return model


def test_logistic_regression_has_its_gradient():
    model = linear(l2=0.3)
    value = model.objective(VECTORS, LABELS)
    value.backward()
    margins = (LABELS * (VECTORS @ WEIGHT)).double()
    assert float(value.detach()) == pytest.approx(
        float(torch.log1p(torch.exp(-margins)).mean() + 0.15 * WEIGHT.double() @ WEIGHT.double()), rel=1e-6
    )
    pull = -(LABELS / (1 + torch.exp(margins)).float())
    torch.testing.assert_close(model.weight.grad, VECTORS.T @ pull / 7 + 0.3 * WEIGHT, rtol=1e-5, atol=1e-6)


def test_the_hinge_pulls_where_the_margin_is_below_1():
    model = linear(loss="hinge")
    model.objective(VECTORS, LABELS).backward()
    margins = LABELS * (VECTORS @ WEIGHT)
    pull = torch.where(margins < 1, -LABELS, 0.0)
    assert 0 < int((margins < 1).sum()) < 7
    torch.testing.assert_close(model.weight.grad, VECTORS.T @ pull / 7, rtol=1e-5, atol=1e-6)


def test_the_adversarys_gradient_comes_with_its_sign_turned():
    model = RobustLinear(4, 2, RobustLinearConfig(smoothing=0.5, l2=0.0))
    model.weight.data.copy_(WEIGHT)
    model.group_weights.data.copy_(torch.tensor([0.7, 0.3]))
    groups = torch.tensor([0.0, 1, 0, 1, 0, 1, 0, 1])
    vectors, labels = torch.cat([VECTORS, VECTORS[:1]]), torch.cat([LABELS, LABELS[:1]])
    model.objective(vectors, torch.stack([labels, groups], dim=1)).backward()
    losses = torch.nn.functional.softplus(-labels * (vectors @ WEIGHT))
    means = torch.stack([losses[groups == g].mean() for g in (0, 1)])
    ascent = means - 0.5 * torch.tensor([0.2, -0.2])
    torch.testing.assert_close(model.group_weights.grad, -ascent, rtol=1e-5, atol=1e-6)
    pull = -labels / (1 + torch.exp(labels * (vectors @ WEIGHT)))
    by_group = [vectors[groups == g].T @ pull[groups == g] / 4 for g in (0, 1)]
    torch.testing.assert_close(model.weight.grad, 0.7 * by_group[0] + 0.3 * by_group[1], rtol=1e-5, atol=1e-6)


@given(st.lists(st.floats(-5, 5, width=32), min_size=1, max_size=6))
def test_the_nearest_point_of_the_simplex(values: list[float]):
    """By the conditions of optimality: inside, and all entries above 0 were moved alike, the others no less."""
    vector = torch.tensor(values, dtype=torch.float64)
    point = onto_simplex(vector)
    assert (point >= 0).all() and float(point.sum()) == pytest.approx(1)
    moved = vector - point
    shift = float(moved[point > 0].max())
    assert torch.allclose(moved[point > 0], torch.tensor(shift, dtype=torch.float64))
    assert (moved[point == 0] <= shift + 1e-9).all()


@pytest.mark.parametrize("smoothing", [0.0, 0.4])
def test_the_worst_weights_are_worse_than_any_others(smoothing: float):
    model = RobustLinear(4, 3, RobustLinearConfig(smoothing=smoothing, l2=0.0))
    losses = torch.tensor([0.2, 0.9, 0.6], dtype=torch.float64)
    worst = float(model.worst(losses).detach())
    draws = torch.distributions.Dirichlet(torch.ones(3, dtype=torch.float64)).sample((2000,))
    values = draws @ losses - smoothing / 2 * (draws - 1 / 3).square().sum(dim=1)
    assert float(values.max()) <= worst + 1e-12 and worst - float(values.max()) < 0.02


def test_the_saddle_is_stationary_and_a_saddle():
    data = load_quadratics(QuadraticsConfig(x=4, y=3, heterogeneity=0.6))
    model = Saddle(4, 3).double()
    z = torch.from_numpy(data.saddle(5))
    mean = tuple(torch.from_numpy(values) for values in data.mean(5))
    model.x.data, model.y.data = z[:4].clone(), z[4:].clone()
    value = model(mean)
    value.backward()
    assert float(torch.cat([model.x.grad, model.y.grad]).norm()) < 1e-13
    rng = np.random.default_rng(0)
    with torch.no_grad():
        for _ in range(20):
            step = torch.from_numpy(rng.standard_normal(7))
            model.x.data, model.y.data = z[:4] + step[:4], z[4:].clone()
            assert model(mean) > value
            model.x.data, model.y.data = z[:4].clone(), z[4:] + step[4:]
            assert model(mean) < value


def test_y_comes_with_its_sign_turned():
    model = Saddle(1, 1).double()
    a, b, c, u, v = (torch.tensor([value], dtype=torch.float64) for value in (2.0, 3.0, 5.0, 7.0, 11.0))
    model((a, b[None], c, u, v)).backward()
    assert model.x.grad.item() == 2 + 3 + 7 and model.y.grad.item() == -(3 - 5 - 11)
