"""What a worker keeps for a method and how often it waits for others, as a run measures them."""

import pytest

from helpers import step_beside
from suite.methods import METHODS
from training import summary_of, trainer

LOCAL = {"hier_avg", "local_adaalter", "local_sgda", "adaptive_batch"}
# Vectors of d floats beside the worker's residual or, under a local-update method with momentum, its parameters.
BESIDE = {"dgc": {"velocities"}, "local_adaalter": {"squares", "frozen"}, "adaptive_batch": {"gradient"}}
LOW_RANK = {"power_sgd", "acp_sgd"}
WITHOUT_RESIDUAL = LOCAL | {"dense", "wangni"}


@pytest.mark.parametrize("name", METHODS)
def test_state_is_measured_and_rounds_are_counted(tiny, tmp_path, name: str):
    sparse = {"density": 0.05} if "density" in METHODS[name].Settings.model_fields else {}
    steady = {"eta": 1e9} if name == "adaptive_batch" else {}  # a batch that grew would end the epochs sooner
    method, train = {"name": name} | sparse | steady, {"max_iterations": 8}
    run = trainer(tiny(method=method, optimizer=step_beside(name), train=train), tmp_path)
    run.run()
    found, vector = summary_of(tmp_path), 4 * run.layout.size
    names = {"parameters", "momentum"} if name in LOCAL else set()
    names |= BESIDE.get(name, set())
    names |= set() if name in WITHOUT_RESIDUAL else {"residual"}
    own = dict(found["own_bytes"])
    factors = own.pop("factors", None)
    assert own == dict.fromkeys(names, vector)
    assert (factors is not None) == (name in LOW_RANK)
    matrices = [parameter.shape for parameter in run.flat.parameters if parameter.dim() == 2]
    if name in LOW_RANK:  # Q of every matrix; ACP-SGD's turn after an even number of iterations
        assert factors == 4 * sum(min(4, n, m) * m for n, m in matrices)
    averages = 0 if name == "local_sgda" else 2  # after 4 and 8 steps; tau is 10
    rounds = averages if name in LOCAL else 16 if name == "power_sgd" else 8
    assert found["rounds"] == run.world.rounds == rounds
    assert found["all_reduce"] == (name in LOCAL | LOW_RANK | {"dense"}) and found["collective"]


def test_nothing_that_workers_have_in_common_is_their_own(tiny, tmp_path):
    run = trainer(tiny(method="dense", train={"max_iterations": 2}), tmp_path)
    run.run()
    assert summary_of(tmp_path)["own_bytes"] == {} and run.optimizer.momentum is not None
