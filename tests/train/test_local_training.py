"""Local-update methods in the trainer: who averages when, what a test is of, what is skipped, what is resumed."""

import math

import pandas as pd
import pytest
import torch

from suite.config import validate_config
from suite.errors import ConfigError
from training import parameters_after, summary_of, trainer

PLAIN = {"momentum": 0.0, "weight_decay": 0.0, "clip_norm": None}
METHODS = {
    "hier_avg": {"name": "hier_avg", "k1": 2, "k2": 4, "group": 2},
    "local_adaalter": {"name": "local_adaalter", "period": 4},
    "local_sgda": {"name": "local_sgda", "tau": 4},
    "adaptive_batch": {"name": "adaptive_batch", "period": 4, "eta": 2.0},
}


def assert_bits(a: torch.Tensor, b: torch.Tensor) -> None:
    assert torch.equal(a.view(torch.int32), b.view(torch.int32))


def own(run) -> list[torch.Tensor]:
    """The parameters of every worker."""
    return [worker.local["parameters"] for worker in run.workers]


def after_every_iteration(run, look) -> list:
    """What `look` finds after each iteration of a run, which is run."""
    seen, real = [], run._iterate

    def iterate(*arguments):
        result = real(*arguments)
        seen.append(look())
        return result

    run._iterate = iterate
    run.run()
    return seen


# -- special cases -----------------------------------------------------------------------------------------------------


def test_k_avg_in_all_its_guises(tiny, tmp_path):
    """S = 1, K1 = K2 and S = P with half as many averages over all are the same bits; see algorithms of Hier-AVG."""
    guises = [
        {"k1": 2, "k2": 4, "group": 1}, {"k1": 4, "k2": 4, "group": 2}, {"k1": 4, "k2": 8, "group": 4},
    ]  # fmt: skip
    ends = [
        parameters_after(
            tiny(method={"name": "hier_avg"} | guise, train={"max_iterations": 10}), tmp_path / str(number)
        )
        for number, guise in enumerate(guises)
    ]
    assert_bits(ends[0], ends[1])
    assert_bits(ends[0], ends[2])


@pytest.mark.parametrize("method", [
    {"name": "hier_avg", "k1": 1, "k2": 1, "group": 2}, {"name": "local_sgda", "tau": 1},
    {"name": "adaptive_batch", "period": 1, "eta": 1e9},
])  # fmt: skip
@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_averaging_every_step_is_synchronous_sgd(tiny, tmp_path, method: dict, momentum: float):
    """To rounding: the mean of P stepped vectors is not rounded as one vector is that takes the mean step."""
    optimizer = {"momentum": momentum, "clip_norm": None, "lr": 0.5}
    local = parameters_after(tiny(method=method, optimizer=optimizer), tmp_path / "local")
    dense = parameters_after(tiny(method="dense", optimizer=optimizer), tmp_path / "dense")
    torch.testing.assert_close(local, dense, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("method", [
    {"name": "local_sgda", "tau": 3}, {"name": "local_sgda", "tau": 3, "snapshot_every": 6},
    {"name": "adaptive_batch", "period": 3, "eta": 1e9},
])  # fmt: skip
def test_without_what_makes_them_special_they_are_local_sgd(tiny, tmp_path, method: dict):
    """No maximising parameters; batches that never grow."""
    k_avg = {"name": "hier_avg", "k1": 3, "k2": 3, "group": 1}
    ends = [
        parameters_after(tiny(method=m, train={"max_iterations": 10}), tmp_path / str(i))
        for i, m in enumerate((method, k_avg))
    ]
    assert_bits(*ends)


def test_one_worker_takes_plain_steps(tiny, tmp_path):
    settings = {"world": {"workers": 1}, "train": {"max_iterations": 8}}
    ends = [
        parameters_after(tiny(method=method, **settings), tmp_path / method["name"])
        for method in ({"name": "hier_avg", "k1": 2, "k2": 4, "group": 1}, {"name": "dense"})
    ]
    assert_bits(*ends)


# -- averages ----------------------------------------------------------------------------------------------------------


def test_groups_agree_and_then_all(tiny, tmp_path):
    run = trainer(tiny(method=METHODS["hier_avg"], train={"max_iterations": 6}), tmp_path)
    seen = after_every_iteration(run, lambda: [w.clone() for w in own(run)])
    alike = [[torch.equal(a, b) for a, b in ((w[0], w[1]), (w[2], w[3]), (w[0], w[2]))] for w in seen]
    apart, groups, everyone = [False] * 3, [True, True, False], [True] * 3
    assert alike == [apart, groups, apart, everyone, apart, groups]


def test_an_average_inside_groups_leaves_the_mean_of_all_alone(tiny, tmp_path):
    run = trainer(tiny(method=METHODS["hier_avg"], train={"max_iterations": 3}), tmp_path)
    means, real = [], run.optimizer._average

    def average(group):
        means.append([torch.stack(own(run)).double().mean(dim=0), None])
        real(group)
        means[-1][1] = torch.stack(own(run)).double().mean(dim=0)

    run.optimizer._average = average
    run.run()
    ((before, after),) = means
    torch.testing.assert_close(after, before, rtol=1e-5, atol=1e-7)


def test_momentum_stays_unless_it_is_asked_for(tiny, tmp_path):
    def momenta(average: bool) -> list[torch.Tensor]:
        method = METHODS["hier_avg"] | {"average_momentum": average}
        run = trainer(tiny(method=method, train={"max_iterations": 4}), tmp_path / str(average))
        run.run()
        return [worker.local["momentum"] for worker in run.workers]

    assert not torch.equal(*momenta(False)[:2]) and torch.equal(*momenta(True)[::3])


def test_squares_of_adaalter_are_means_over_workers_and_grow(tiny, tmp_path):
    run = trainer(tiny(method=METHODS["local_adaalter"], optimizer=PLAIN, train={"max_iterations": 12}), tmp_path)

    def look():
        return [[w.local[name].clone() for w in run.workers] for name in ("frozen", "squares", "parameters")]

    seen = after_every_iteration(run, look)
    for number, (frozen, squares, parameters) in enumerate(seen, 1):
        assert all(torch.equal(frozen[0], other) for other in frozen)
        agree = [torch.equal(vectors[0], vectors[1]) for vectors in (squares, parameters)]
        assert agree == [number % 4 == 0] * 2
        if number % 4 == 0:
            assert torch.equal(frozen[0], squares[0])
            before = seen[number - 5][0][0] if number > 4 else torch.zeros_like(frozen[0])
            assert (frozen[0] >= before).all() and not torch.equal(frozen[0], before)
            if number > 1:  # the mean of what they had: each worker's own squares were never mixed before
                assert (torch.stack(seen[number - 2][1]).mean(dim=0) <= frozen[0] * (1 + 1e-6)).all()


@pytest.mark.parametrize("name", METHODS)
def test_bytes_count_when_something_travels(tiny, tmp_path, name: str):
    run = trainer(tiny(method=METHODS[name], train={"max_iterations": 8}), tmp_path)
    run.run()
    p, d = run.world.size, run.layout.size
    assert run.world.bytes_sent == pytest.approx(8 * 4 * d * run.method.traffic(p, sparse=False))
    rows = pd.read_parquet(tmp_path / "iterations.parquet")
    communicating = rows.loc[rows["bytes_sent"].diff().fillna(rows["bytes_sent"]) > 0, "iteration"]
    assert list(communicating) == ([2, 4, 6, 8] if name == "hier_avg" else [4, 8])
    assert run.world.rounds == len(communicating)


def test_a_test_is_of_the_average_of_all_workers(tiny, tmp_path):
    run = trainer(tiny(method=METHODS["hier_avg"], train={"max_iterations": 6}), tmp_path)
    tested, real = [], run.task.evaluate

    def evaluate(model):
        tested.append((run.flat.vector.clone(), torch.stack(own(run)).double().mean(dim=0)))
        return real(model)

    run.task.evaluate = evaluate
    run.run()
    ((vector, mean),) = tested
    torch.testing.assert_close(vector.double(), mean, rtol=1e-5, atol=1e-7)
    assert not torch.equal(vector, own(run)[0]) and torch.equal(run.flat.vector, vector)


# -- what may go wrong -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_all_skip_a_gradient_that_is_not_finite(tiny, tmp_path, name: str, value: float):
    run = trainer(tiny(method=METHODS[name], train={"max_iterations": 9}), tmp_path)
    real = run.exchange._take

    def take(parameter, number):
        if run.exchange._receiver == 2 and run.iteration == 4 and number == 1:
            parameter.grad.view(-1)[-1] = value
        real(parameter, number)

    run.exchange._take = take
    states = after_every_iteration(run, lambda: [worker.state_dict() for worker in run.workers])
    for before, after in zip(states[2], states[3], strict=True):
        for key in before["local"]:
            assert same(before["local"][key], after["local"][key]), key
        assert all(map(torch.equal, before["hidden"], after["hidden"]))
    # The skipped step does not count, so that the fourth one, an iteration later, is followed by an average.
    agree = [torch.equal(s[0]["local"]["parameters"], s[3]["local"]["parameters"]) for s in states]
    assert [number for number, equal in enumerate(agree, 1) if equal] == [5, 9]
    assert summary_of(tmp_path)["skipped"] == 1 and torch.isfinite(run.flat.vector).all()


def same(a, b) -> bool:
    return torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b


@pytest.mark.parametrize("name", [*METHODS, "local_sgda+"])
def test_a_run_resumes_within_a_local_period(tiny, tmp_path, name: str):
    """Bit for bit, with momentum, and with averages of iterates."""
    method = METHODS.get(name) or {"name": "local_sgda", "tau": 4, "snapshot_every": 8}
    saddles = {"model": {"name": "saddle"}, "data": {"name": "quadratics"}} if name == "local_sgda+" else {}

    def config(iterations: int):
        return tiny(
            method=method, optimizer={"average": {"shift": 3}, "lr": 0.1},
            train={"max_iterations": iterations, "batch_size": 1, "checkpoint_every": 50}, **saddles,
        )  # fmt: skip

    straight = trainer(config(15), tmp_path / "straight")
    straight.run()
    broken = trainer(config(7), tmp_path / "broken")
    broken.run()
    assert broken.optimizer.since == 3
    resumed = trainer(config(15), tmp_path / "broken")
    resumed.run()
    assert resumed.resumed_at == [7] and resumed.taken == straight.taken
    assert_bits(resumed.flat.vector, straight.flat.vector)
    for ours, theirs in zip(resumed.workers, straight.workers, strict=True):
        for key, value in ours.state_dict()["local"].items():
            assert same(value, theirs.local[key]), key
    scores = [summary_of(tmp_path / folder)["final"] for folder in ("straight", "broken")]
    assert scores[0] == scores[1]


@pytest.mark.parametrize("method, workers, reason", [
    ({"name": "hier_avg", "group": 3}, 4, "method.group must divide the 4 workers; possible are 1, 2, 4"),
    ({"name": "adaptive_batch"}, 1, "needs two; set world.workers"),
])  # fmt: skip
def test_worlds_that_do_not_fit_are_refused(tiny, method: dict, workers: int, reason: str):
    with pytest.raises(ConfigError, match=reason):
        tiny(method=method, world={"workers": workers})


def test_the_drop_in_optimiser_has_no_use_for_them():
    import suite

    model = torch.nn.Linear(2, 1)
    sgd = torch.optim.SGD(model.parameters(), lr=0.1)
    with pytest.raises(ConfigError, match="averages parameters and exchanges no gradients"):
        suite.DistributedOptimizer(sgd, model.named_parameters(), method="hier_avg", world=one_process())


def one_process():
    from suite.config.experiment import WorldConfig
    from suite.world import open_world

    return open_world(WorldConfig(workers=1))


# -- batches that grow -------------------------------------------------------------------------------------------------

VECTORS = {
    "model": {"name": "linear", "l2": 0.01},
    "data": {"name": "labelled", "samples": 256, "features": 12},
    "optimizer": {"lr": 0.3, "momentum": 0.0},
    "world": {"workers": 4},
}


def growing(eta: float, **train):
    return validate_config(
        VECTORS | {"method": {"name": "adaptive_batch", "period": 2, "eta": eta, "largest": 6}, "train": train}
    )


def test_an_epoch_is_one_pass_however_batches_grow(tmp_path):
    run = trainer(growing(1.0, epochs=3, batch_size=2), tmp_path)
    taken: dict[tuple[int, int], list[int]] = {}
    real = run.task.loss

    def loss(model, worker, number):
        taken.setdefault(((run.taken - 1) // run.per_epoch, worker.index), []).append(number)
        return real(model, worker, number)

    run.task.loss = loss
    run.run()
    assert run.per_epoch == 32 and taken.keys() == {(epoch, worker) for epoch in range(3) for worker in range(4)}
    assert all(numbers == list(range(32)) for numbers in taken.values())
    rows = pd.read_parquet(tmp_path / "iterations.parquet")
    sizes = rows["batch_size"].to_numpy()
    assert sizes.sum() == 3 * 32 * 2 and sizes.max() == 12 and sizes[0] == 2
    ends = rows["epoch"].diff().shift(-1).fillna(1).to_numpy() == 1  # where an epoch takes what is left
    steady = sizes[~ends]
    assert (steady[1:] >= steady[:-1]).all() and len(set(steady)) > 2
    summary = summary_of(tmp_path)
    assert summary["iterations"] == len(rows) < 96 and summary["epochs"] == 3


def test_a_grown_batch_is_the_mean_over_its_base_batches(tmp_path):
    run = trainer(growing(1.0, epochs=1, batch_size=2), tmp_path)
    run.task.start_epoch(0, run.workers)
    run.workers[0].local["batches"] = 3
    assert run.optimizer.take(32) == 3 and run.optimizer.take(2) == 2
    run.optimizer.take(32)
    run.exchange.begin(run.workers, 0.1)
    loss = run._compute(0, range(5, 8))
    batches = [run.task.epoch.batch(0, number) for number in range(5, 8)]
    weight = torch.nn.Parameter(run.workers[0].local["parameters"].clone())
    run.flat.model.weight.data.copy_(weight.data)
    whole = run.flat.model.objective(*(torch.cat(part) for part in zip(*batches, strict=True)))
    assert loss == pytest.approx(float(whole.detach()), rel=1e-6)
    (gradient,) = torch.autograd.grad(whole, [run.flat.model.weight])
    torch.testing.assert_close(run.workers[0].accumulated, gradient, rtol=1e-5, atol=1e-7)


def test_a_skipped_batch_of_several_is_forgotten_as_a_whole(tiny, tmp_path):
    """Hidden state, which went on from one base batch to the next, is where it was before the first of them."""
    method = {"name": "adaptive_batch", "period": 1, "eta": 1e-6, "largest": 3}
    run = trainer(tiny(method=method, train={"max_iterations": 4, "batch_size": 1}), tmp_path)
    real, calls = run.exchange._take, []

    def take(parameter, number):
        calls.append(run.iteration)
        # The fifth back-propagation of the third iteration is of worker 1's second base batch.
        if run.iteration == 3 and number == 1 and 4 * len(names) < calls.count(3) <= 5 * len(names):
            assert run.exchange._receiver == 1
            parameter.grad.view(-1)[0] = math.nan
        real(parameter, number)

    names = run.flat.names
    run.exchange._take = take
    states = after_every_iteration(run, lambda: ([w.state_dict() for w in run.workers], run.taken))
    assert [taken for _, taken in states] == [1, 4, 7, 10] and summary_of(tmp_path)["skipped"] == 1
    for before, after, later in zip(states[1][0], states[2][0], states[3][0], strict=True):
        assert all(map(torch.equal, before["hidden"], after["hidden"]))
        assert not any(map(torch.equal, after["hidden"], later["hidden"]))


def test_a_run_resumes_among_growing_batches(tmp_path):
    straight = trainer(growing(1.0, epochs=2, batch_size=2), tmp_path / "straight")
    straight.run()
    middle = straight.iteration // 2
    broken = trainer(growing(1.0, epochs=2, batch_size=2, max_iterations=middle), tmp_path / "broken")
    broken.run()
    assert 1 < broken.optimizer.take(99) and broken.taken > middle
    resumed = trainer(growing(1.0, epochs=2, batch_size=2), tmp_path / "broken")
    resumed.run()
    assert_bits(resumed.flat.vector, straight.flat.vector)
    tables = [pd.read_parquet(tmp_path / name / "iterations.parquet") for name in ("straight", "broken")]
    columns = ["iteration", "epoch", "loss", "batch_size", "bytes_sent"]
    pd.testing.assert_frame_equal(*(table[columns] for table in tables))


def test_a_tiny_threshold_takes_the_largest_batch_at_once(tmp_path):
    run = trainer(growing(1e-6, epochs=1, batch_size=2), tmp_path)
    run.run()
    sizes = pd.read_parquet(tmp_path / "iterations.parquet")["batch_size"]
    assert list(sizes) == [2, 2, 12, 12, 12, 12, 12]  # 1 + 1 + 5 * 6 base batches: one pass
