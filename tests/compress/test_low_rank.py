"""Power-SGD and ACP-SGD, in float64 where an identity is exact: what factors promise."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from exchanging import Party, normals
from suite.compress import AlternatingLowRank, PowerSGD
from suite.compress.low_rank import orthonormal
from suite.plan import Layout, low_rank

F64 = torch.float64
TIGHT = {"rtol": 0, "atol": 1e-12}
SHAPES = [("conv", (6, 2, 3)), ("bias", (6,)), ("fc", (4, 9)), ("norm", (5,))]
LAYOUT = Layout.of(SHAPES)
COMPRESSORS = {"power": PowerSGD, "acp": AlternatingLowRank}


def party(kind: str, rank: int, workers: int = 3, layout: Layout = LAYOUT, seed: int = 0, merged: bool = True) -> Party:
    plan = low_rank(layout, rank, 0.5 if kind == "acp" else 1.0)
    return Party(COMPRESSORS[kind](rank), plan.merged() if merged else plan, workers, layout, seed)


def run(of: Party, steps: int, seed: int = 1, constant: bool = False, feedback: bool = True):
    """Steps with error feedback: (gradients M_p, accumulated M_p + E_p, update G, left E_p) of each."""
    size = of.layout.size
    lefts = [torch.zeros(size, dtype=F64)] * of.workers
    for step in range(steps):
        gradients = normals(seed if constant else seed + step, of.workers, size, F64)
        accs = [g + e if feedback else g for g, e in zip(gradients, lefts, strict=True)]
        update = of.exchange(accs)
        lefts = of.lefts
        yield gradients, accs, update, lefts


def matrix(of: Party, vector: torch.Tensor, name: str = "conv") -> torch.Tensor:
    (segment,) = [s for s in of.plan.segments if s.name == name]
    return vector[segment.start : segment.stop].view(segment.matrix or (-1,))


def mean(vectors: list[torch.Tensor]) -> torch.Tensor:
    return torch.stack(vectors).mean(dim=0)


def basis(of: Party, name: str = "conv") -> tuple[bool, torch.Tensor]:
    return of.payloads[0].bases[name]


@pytest.mark.parametrize("kind", COMPRESSORS)
@given(seed=st.integers(0, 2**31), workers=st.integers(1, 4), rank=st.integers(1, 6), merged=st.booleans())
@settings(max_examples=25)
def test_sent_and_left_are_what_was_accumulated_on_average(kind, seed: int, workers: int, rank: int, merged: bool):
    """G + mean E_new == mean M + mean E_old at every step."""
    of = party(kind, rank, workers, seed=seed, merged=merged)
    for _, accs, update, lefts in run(of, 4, seed):
        torch.testing.assert_close(update + mean(lefts), mean(accs), **TIGHT)


@pytest.mark.parametrize("kind", COMPRESSORS)
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_the_update_has_at_most_the_rank(kind: str, rank: int):
    of = party(kind, rank)
    for _, _, update, _ in run(of, 4):
        for name in ("conv", "fc"):
            values = torch.linalg.svdvals(matrix(of, update, name))
            assert (values[rank:] <= 1e-12 * values[0]).all() and values[0] > 0


@pytest.mark.parametrize("kind", COMPRESSORS)
def test_vectors_travel_whole(kind: str):
    of = party(kind, 2)
    for _, accs, update, lefts in run(of, 3):
        for name in ("bias", "norm"):
            torch.testing.assert_close(matrix(of, update, name), matrix(of, mean(accs), name), **TIGHT)
            assert not any(matrix(of, left, name).any() for left in lefts)


def test_acp_leaves_nothing_in_the_span_of_what_stays():
    """After P = M Q, E_p Q == 0; after Q = M^T P, E_p^T P == 0."""
    of, turns = party("acp", 2), []
    for _, _, _, lefts in run(of, 4):
        sends_right, factor = basis(of)
        turns.append(sends_right)
        for left in lefts:
            error = matrix(of, left)
            rest = error.T @ factor if sends_right else error @ factor
            torch.testing.assert_close(rest, torch.zeros_like(rest), **TIGHT)
    assert turns == [False, True, False, True]


@pytest.mark.parametrize("shape, sends_right", [((7, 3), False), ((3, 7), True)])
def test_acp_is_exact_when_the_factor_spans_everything(shape: tuple[int, int], sends_right: bool):
    """r = m when P travels, r = n when Q does: G is the mean gradient and nothing is left."""
    layout = Layout.of([("conv", shape)])
    of, seen = party("acp", 3, layout=layout), 0
    for _, accs, update, lefts in run(of, 4):
        if basis(of)[0] == sends_right:
            seen += 1
            torch.testing.assert_close(update, mean(accs), **TIGHT)
            torch.testing.assert_close(torch.stack(lefts), torch.zeros(3, 21, dtype=F64), **TIGHT)
    assert seen == 2


@pytest.mark.parametrize("shape", [(7, 3), (3, 7)])
def test_power_sgd_of_full_rank_is_exact(shape: tuple[int, int]):
    of = party("power", 3, layout=Layout.of([("conv", shape)]), workers=2)
    for _, accs, update, _ in run(of, 3):
        # P spans all columns of the mean, whichever side is the shorter one; the first Q is random.
        torch.testing.assert_close(update, mean(accs), rtol=0, atol=1e-10)


@pytest.mark.parametrize("kind", COMPRESSORS)
def test_a_constant_matrix_leads_to_its_best_approximation(kind: str):
    """One worker, no error feedback: subspace iteration, whose error falls to that of the truncated SVD."""
    of, errors = party(kind, 2, workers=1), []
    for gradients, _, update, _ in run(of, 60, constant=True, feedback=False):
        target = matrix(of, gradients[0])
        errors.append(float((target - matrix(of, update)).norm()))
    best = float(torch.linalg.svdvals(target)[2:].norm())
    assert errors[0] > 1.01 * best and errors[-1] == pytest.approx(best, rel=1e-3) and min(errors) >= best * (1 - 1e-12)


@given(seed=st.integers(0, 2**31), scale=st.sampled_from([2.0, 3.0, 1e-3]))
@settings(max_examples=20)
def test_the_scale_of_the_factor_that_stays_is_irrelevant(seed: int, scale: float):
    """A sum over workers would do as well as their mean."""
    (factor,) = normals(seed, 1, 18, F64)
    a, b = orthonormal(factor.view(6, 3)), orthonormal(scale * factor.view(6, 3))
    torch.testing.assert_close(a @ a.T, b @ b.T, **TIGHT)
    torch.testing.assert_close(a.T @ a, torch.eye(3, dtype=F64), **TIGHT)


def test_power_sgds_residual_misses_the_average_and_acps_the_own_approximation():
    for kind in COMPRESSORS:
        of = party(kind, 2)
        for _, accs, update, lefts in run(of, 1):
            for acc, left in zip(accs, lefts, strict=True):
                missed = matrix(of, acc) - matrix(of, left)
                if kind == "power":
                    torch.testing.assert_close(missed, matrix(of, update), **TIGHT)
                else:
                    factor = basis(of)[1]
                    torch.testing.assert_close(missed, matrix(of, acc) @ factor @ factor.T, **TIGHT)


@pytest.mark.parametrize("rank", [1, 2, 4])
def test_bytes_by_the_formula_and_acp_sends_half(rank: int):
    """r (n + m) against r n and r m in turn, and d1 entries of vectors in both (float64: 8 bytes)."""
    power, acp = party("power", rank), party("acp", rank)
    for of in (power, acp):
        for _ in run(of, 2):
            pass
    factors = sum(min(rank, n, m) * (n + m) for n, m in ((6, 6), (4, 9)))
    assert power.handed_in / 2 == 8 * (factors + 11)
    assert acp.handed_in / 2 == 8 * (factors / 2 + 11)
    assert power.plan.entries == factors + 11 and acp.plan.entries == factors / 2 + 11


@pytest.mark.parametrize("kind", COMPRESSORS)
def test_all_workers_begin_alike_and_end_alike(kind: str):
    """The first factor is a function of the run's seed, and what is remembered the same on all workers."""
    a, b, other = party(kind, 2), party(kind, 2), party(kind, 2, seed=5)
    updates = [[update for _, _, update, _ in run(of, 3)] for of in (a, b, other)]
    assert all(torch.equal(x, y) for x, y in zip(*updates[:2], strict=True))
    assert not torch.equal(updates[0][0], updates[2][0])
    first, *others = [state["factors"] for state in a.states]
    assert first.keys() == {"conv", "fc"} and all(state.keys() == first.keys() for state in others)


@pytest.mark.parametrize("kind", COMPRESSORS)
@pytest.mark.parametrize("fill", [0.0, float("nan"), float("inf")])
def test_zero_and_what_is_not_finite_come_to_their_end(kind: str, fill: float):
    of = party(kind, 2)
    update = of.exchange([torch.full((LAYOUT.size,), fill, dtype=F64)] * 3)
    assert torch.isfinite(update).all() if fill == 0 else not torch.isfinite(update).all()
    if fill == 0:  # and the next gradient is approximated as any
        for _, accs, update, lefts in run(of, 2):
            torch.testing.assert_close(update + mean(lefts), mean(accs), **TIGHT)
            assert matrix(of, update).norm() > 0.1


@pytest.mark.parametrize("kind", COMPRESSORS)
def test_a_state_is_not_changed_in_place(kind: str):
    of = party(kind, 2)
    before = of.states[0]
    of.exchange(normals(1, 3, LAYOUT.size, F64))
    assert before == {"seed": 0, "factors": {}} and of.states[0]["factors"]
