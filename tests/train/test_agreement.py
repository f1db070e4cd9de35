"""What a difference between processes is called."""

import pytest
import torch
from torch import nn

from suite.errors import SuiteError
from suite.plan import Layout, layer_wise
from suite.train.agreement import check_agreement, parameter_facts


class Gathered:
    """A world whose other processes have said what the test wants."""

    def __init__(self, others: list[dict]):
        self.transport, self.others = self, others

    def gather_objects(self, mine: dict) -> list[dict]:
        return [mine, *self.others]


def facts(shapes: dict[str, tuple[int, ...]], density: float = 0.5, dtype: torch.dtype = torch.float32) -> dict:
    parameters = [nn.Parameter(torch.zeros(shape, dtype=dtype)) for shape in shapes.values()]
    layout = Layout(tuple(shapes), tuple(p.numel() for p in parameters))
    return parameter_facts(shapes, parameters, layer_wise(layout, lambda _: density))


SHAPES = {"a.weight": (4, 3), "a.bias": (4,), "b.weight": (2, 4)}


def test_equal_processes_agree():
    check_agreement(Gathered([facts(SHAPES), facts(SHAPES)]), facts(SHAPES))


@pytest.mark.parametrize(
    "other, sentence",
    [
        (
            facts({"a.bias": (4,), "a.weight": (4, 3), "b.weight": (2, 4)}),
            "parameter 1 is a.bias [4] float32 on rank 2",
        ),
        (facts(SHAPES | {"a.weight": (3, 4)}), "parameter 1 is a.weight [3, 4] float32 on rank 2, but a.weight [4, 3]"),
        (facts(SHAPES, dtype=torch.float64), "parameter 1 is a.weight [4, 3] float64 on rank 2"),
        (facts(SHAPES, density=0.25), "segment 1 is b.weight (k = 2 of 8 entries) on rank 2, but b.weight (k = 4 of 8"),
        (facts({"a.weight": (4, 3), "a.bias": (4,)}), "parameter 3 is none on rank 2, but b.weight [2, 4] float32"),
    ],
)
def test_the_odd_one_is_named(other: dict, sentence: str):
    with pytest.raises(SuiteError) as error:
        check_agreement(Gathered([facts(SHAPES), other]), facts(SHAPES))
    assert sentence in str(error.value) and "on rank 0 and 1;" in str(error.value)
    assert "give all of them the same code, settings and data" in str(error.value)


def test_other_numbers_are_told_too():
    mine = facts(SHAPES) | {"the number of iterations": 25}
    with pytest.raises(SuiteError, match="the number of iterations is 24 on rank 1, but 25 on rank 0 and 2"):
        check_agreement(Gathered([mine | {"the number of iterations": 24}, mine]), mine)
