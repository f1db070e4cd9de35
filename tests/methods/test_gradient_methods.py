"""What the related gradient methods keep when they train: special cases, conservation, bytes."""

import pandas as pd
import pytest
import torch

from suite.config import validate_config
from suite.methods import settings_from
from suite.plan import Layout, low_rank
from training import gradients_of, parameters_after, trainer

PLAIN = {"lr": 0.5, "momentum": 0.0, "weight_decay": 0.0, "clip_norm": None}
SENDS_ALL = {
    "topk": {"density": 1.0},
    "mem_sgd": {"density": 1.0},
    "rtopk": {"density": 1.0},
    "gtopk": {"density": 1.0},
    "wangni": {"density": 1.0, "iterations": 50},
}


@pytest.mark.parametrize("name", SENDS_ALL)
def test_sending_everything_is_dense(tiny, tmp_path, name: str):
    run = trainer(tiny(method={"name": name} | SENDS_ALL[name]), tmp_path / "sparse")
    run.run()
    dense = parameters_after(tiny(method="dense"), tmp_path / "dense")
    torch.testing.assert_close(run.flat.vector, dense, rtol=1e-4, atol=1e-5)
    assert all(worker.residual is None or not worker.residual.any() for worker in run.workers)


def test_one_worker_that_sends_everything_is_sgd_bit_for_bit(tiny, tmp_path):
    dense = parameters_after(tiny(method="dense", world={"workers": 1}, optimizer=PLAIN), tmp_path / "dense")
    for name in ("mem_sgd", "rtopk", "gtopk", "topk"):
        run = trainer(
            tiny(method={"name": name, "density": 1.0}, world={"workers": 1}, optimizer=PLAIN), tmp_path / name
        )
        run.run()
        assert torch.equal(run.flat.vector, dense) and not run.workers[0].residual.any(), name


@pytest.mark.parametrize(
    "method",
    [{"name": "topk"}, {"name": "mem_sgd"}, {"name": "rtopk", "pool": 1.0, "lr_placement": "inside"}],
    ids=lambda method: method["name"],
)
def test_the_same_method_by_another_name(tiny, tmp_path, method: dict):
    """Top-k SGD, Mem-SGD's top-k and rTop-k with r = k are SLGS with the learning rate inside, bit for bit."""
    slgs = {"name": "slgs", "density": 0.05, "lr_placement": "inside"}
    assert torch.equal(
        parameters_after(tiny(method=method | {"density": 0.05}), tmp_path / "ours"),
        parameters_after(tiny(method=slgs), tmp_path / "slgs"),
    )


@pytest.mark.parametrize("repair", ["published", "exact", "owners"])
def test_gtopk_of_one_worker_is_slgs_bit_for_bit(tiny, tmp_path, repair: str):
    ends = [
        parameters_after(tiny(method=method | {"density": 0.05}, world={"workers": 1}), tmp_path / method["name"])
        for method in ({"name": "gtopk", "repair": repair}, {"name": "slgs"})
    ]
    assert torch.equal(*ends)


@pytest.mark.parametrize("selection", ["top", "random"])
def test_the_virtual_iterate_of_mem_sgd(tiny, tmp_path, selection: str):
    """w_t - mean m_t == w_0 - sum lr g: memory holds what the iterate lacks."""
    method = {"name": "mem_sgd", "density": 0.05, "selection": selection}
    run = trainer(tiny(method=method, optimizer=PLAIN, train={"max_iterations": 12}), tmp_path)
    start, seen = run.flat.vector.double(), gradients_of(run)
    run.run()
    walked = sum(sum(g.double() for g in of.values()) / 4 for of in seen) * 0.5
    memory = torch.stack([worker.residual.double() for worker in run.workers]).mean(dim=0)
    torch.testing.assert_close(run.flat.vector.double() - memory, start - walked, rtol=1e-5, atol=1e-5)
    assert memory.any()


@pytest.mark.parametrize("name, settings", [("topk", {}), ("mem_sgd", {"selection": "random"}), ("rtopk", {})])
def test_the_recursion_of_residuals(tiny, tmp_path, name: str, settings: dict):
    """||e_t|| <= sqrt(1 - k/d) (||e_(t-1)|| + ||a g_t||) for top-k at every step; any selection keeps below it without
    the root."""
    run = trainer(tiny(method={"name": name, "density": 0.05} | settings, train={"max_iterations": 10}), tmp_path)
    seen, norms, real = gradients_of(run), [], run.exchange.commit

    def commit():
        before = [float(worker.residual.double().norm()) for worker in run.workers]
        real()
        norms.append((before, [float(worker.residual.double().norm()) for worker in run.workers]))

    run.exchange.commit = commit
    run.run()
    lr = 1.0  # of the fixture
    root = (1 - run.exchange.plan.entries / run.layout.size) ** 0.5 if name == "topk" else 1.0
    for (before, after), gradients in zip(norms, seen, strict=True):
        for position, (old, new) in enumerate(zip(before, after, strict=True)):
            assert new <= root * (old + lr * float(gradients[position].double().norm())) * (1 + 1e-6)


@pytest.mark.parametrize("name, settings", [("rtopk", {}), ("gtopk", {"repair": "exact"}), ("power_sgd", {}),
                                            ("gtopk", {"repair": "owners"}),
                                            ("acp_sgd", {"rank": 1})])  # fmt: skip
def test_mass_is_conserved_over_workers(tiny, tmp_path, name: str, settings: dict):
    """sum_p accumulated_p == P * update + sum_p residual_p in every iteration of a training run."""
    settings = settings if name in ("acp_sgd", "power_sgd") else settings | {"density": 0.05}
    run = trainer(tiny(method={"name": name} | settings, train={"max_iterations": 5}), tmp_path)
    seen, sums, real = gradients_of(run), [], run.exchange.finish

    def finish(*arguments):
        before = sum(worker.residual.double() for worker in run.workers)
        outcome = real(*arguments)
        accumulated = before + sum(g.double() for g in seen[-1].values())
        sums.append((accumulated, 4 * outcome.update.double() + sum(w.accumulated.double() for w in run.workers)))
        return outcome

    run.exchange.finish = finish
    run.run()
    assert len(sums) == 5
    for accumulated, found in sums:
        torch.testing.assert_close(found, accumulated, rtol=1e-4, atol=1e-5)


def test_gtopks_assumption_is_of_what_was_accumulated(tiny, tmp_path):
    """Although its update is not the mean of what workers sent, and lost_share tells of the loss."""
    for repair in ("published", "exact", "owners"):
        method = {"name": "gtopk", "density": 0.05, "repair": repair}
        run = trainer(tiny(method=method, world={"workers": 8}, train={"max_iterations": 4}), tmp_path / repair)
        seen, real = gradients_of(run), run.exchange.finish

        def finish(*arguments, run=run, seen=seen, real=real):
            before = sum(worker.residual.double() for worker in run.workers)
            outcome = real(*arguments)
            mean = (before + sum(g.double() for g in seen[-1].values())) / 8
            torch.testing.assert_close(outcome.mean_accumulated.double(), mean, rtol=1e-4, atol=1e-6)
            return outcome

        run.exchange.finish = finish
        run.run()
        table = pd.read_parquet(tmp_path / repair / "observations.parquet")
        assert list(table["quantity"]) == ["lost_share"] * 4
        assert (table["value"] > 0).any() if repair == "published" else (table["value"] == 0).all()


def test_wangni_keeps_no_residual_and_counts_what_was_sent(tiny, tmp_path):
    method = {"name": "wangni", "density": 0.1}
    run = trainer(tiny(method=method, train={"max_iterations": 6}), tmp_path)
    sent, real = [], run.exchange._settle

    def settle(message, payloads, found):
        sent.append(sum(payload.values.numel() for payload in payloads) / len(payloads))
        real(message, payloads, found)

    run.exchange._settle = settle
    run.run()
    assert all(worker.residual is None for worker in run.workers)
    assert run.world.bytes_sent == pytest.approx(3 * 8 * sum(sent)) and len(set(sent)) > 1
    assert sum(sent) == pytest.approx(6 * 0.1 * run.layout.size, rel=0.1)


P = 4  # workers of the fixture


@pytest.mark.parametrize("name", ["topk", "mem_sgd", "rtopk", "gtopk", "power_sgd", "acp_sgd"])
def test_bytes_by_the_formula(tiny, tmp_path, name: str):
    """Of 6 iterations; what `suite plan` expects of one is the same."""
    sparse = {} if name in ("acp_sgd", "power_sgd") else {"density": 0.05}
    run = trainer(tiny(method={"name": name} | sparse, train={"max_iterations": 6}), tmp_path)
    run.run()
    k, matrices = run.exchange.plan.entries, [p.shape for p in run.flat.parameters if p.dim() > 1]
    vectors = sum(p.numel() for p in run.flat.parameters if p.dim() == 1)
    factors = sum(min(4, n, m) * (n + m) for n, m in matrices)
    expected = {
        "gtopk": 2 * (P - 1) / P * 8 * k,
        "power_sgd": 2 * (P - 1) / P * 4 * (factors + vectors),
        "acp_sgd": 2 * (P - 1) / P * 4 * (factors / 2 + vectors),
    }.get(name, (P - 1) * 8 * k)
    assert run.world.bytes_sent == pytest.approx(6 * expected)
    method, plan = run.method, run.exchange.plan
    handed_in = sum(method.handed_in(message) for message in plan.messages)
    assert method.traffic(P, plan.is_sparse) * handed_in == pytest.approx(expected)


def test_low_rank_plans_need_shapes():
    from suite.errors import ConfigError

    with pytest.raises(ConfigError, match="follows from the tensors' shapes"):
        low_rank(Layout(("a",), (12,)), 2)
    plan = low_rank(Layout.of([("a", (3, 4)), ("b", (5,)), ("c", (2, 3, 2))]), 2)
    assert [(s.name, s.matrix, s.sent) for s in plan.segments] == [
        ("c", (2, 6), 16), ("b", None, 5), ("a", (3, 4), 14)
    ]  # fmt: skip
    assert not plan.is_sparse and plan.check(Layout(("a", "b", "c"), (12, 5, 12)))


def test_uniform_probabilities_have_no_hybrid_code():
    with pytest.raises(ValueError, match="set plain"):
        settings_from({"name": "wangni", "rule": "uniform", "coding": "hybrid"})


def test_settings_survive_the_run_folder(tiny):
    config = tiny(method={"name": "gtopk", "repair": "exact", "density_warmup": [0.004]})
    assert validate_config(config.to_dict()) == config
