"""Costs and plans of made-up models, for hypothesis to draw."""

from hypothesis import strategies as st

from suite.config.costs import Costs, LayerCost, LayerCosts, LinearCost, NetworkCosts
from suite.plan import Layout, Plan, layer_wise

# Milliseconds of backward and selection, and entries, of a layer; microseconds of a start-up, nanoseconds a byte.
layer = st.tuples(st.integers(0, 50), st.integers(0, 10), st.integers(1, 10**6))
start, per_byte = st.integers(0, 5000), st.floats(0, 1000)


def case(layers, start: float, per_byte: float, c_u: float = 1000) -> tuple[Layout, Costs, Plan]:
    """Layout, costs and the plan at c_u of layers given in the model's order."""
    names = tuple(f"l{i}" for i in range(len(layers)))
    rows = [LayerCost(name=n, backward=b / 1e3, select=s / 1e3) for n, (b, s, _) in zip(names, layers, strict=True)]
    line = LinearCost(start=start / 1e6, per_byte=per_byte / 1e9)
    layout = Layout(names, tuple(d for _, _, d in layers))
    costs = Costs(
        layers=LayerCosts(forward=0.01, layers=rows),
        network=NetworkCosts(workers=16, all_gather=line, all_reduce=line),
    )
    return layout, costs, layer_wise(layout, lambda name: 1 / c_u)
