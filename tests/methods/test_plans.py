"""The plans methods make: which messages, which ratios, and when."""

import pytest

from costs import case
from suite.config import validate_config
from suite.methods import build_method, settings_from
from suite.plan import entries_kept

# A large layer whose exchange can hide in part, on a network whose start-ups make merging worth it.
LAYOUT, COSTS, _ = case([(1, 0, 10_000), (5, 0, 100), (1, 0, 400_000), (1, 0, 100)], start=100, per_byte=10)


def plan_of(epoch: int = 0, **settings):
    return build_method(settings_from(settings), COSTS).plan(LAYOUT, epoch).check(LAYOUT)


@pytest.mark.parametrize("adaptive", [None, {"rule": "later"}, {"rule": "next"}], ids=str)
def test_messages_never_change_what_lags_selects(adaptive):
    layer, one, merged = (
        plan_of(name="lags", density=0.01, adaptive=adaptive, messages=messages)
        for messages in ("layer", "one", "merged")
    )
    assert layer.segments == one.segments == merged.segments
    assert (len(layer.messages), len(one.messages)) == (4, 1) and 1 < len(merged.messages) <= 4


def test_dense_sends_everything_in_any_messages():
    plans = [plan_of(name="dense", messages=messages) for messages in ("layer", "one", "merged")]
    assert [plan.entries for plan in plans] == [LAYOUT.size] * 3 and not any(plan.is_sparse for plan in plans)
    assert (len(plans[0].messages), len(plans[1].messages)) == (4, 1) and len(plans[2].messages) < 4


def test_c_u_is_the_largest_ratio_but_for_layers_too_small_for_it():
    plan = plan_of(name="lags", adaptive={"c_u": 50})
    assert all(segment.k >= entries_kept(segment.size, 1 / 50) for segment in plan.segments)
    assert plan.segments[-1].k == 200 and plan.entries > 1004


def test_a_compact_wire_lets_more_entries_hide():
    def adaptive(**wire):
        return plan_of(name="lags", adaptive={"c_u": 100}, wire=wire)

    assert adaptive(values="bfloat16", indices="compact").entries > adaptive(indices="compact").entries
    assert adaptive(indices="compact").entries > adaptive().entries


def test_ratios_adapt_after_the_warm_up():
    settings = {"name": "lags", "density_warmup": [0.25], "adaptive": {"c_u": 100}}
    assert [segment.k for segment in plan_of(0, **settings).segments] == [25, 100_000, 25, 2500]
    assert plan_of(1, **settings) == plan_of(name="lags", adaptive={"c_u": 100})


def test_fixed_and_adaptive_ratios_exclude_each_other():
    with pytest.raises(ValueError, match="leave one of the two out"):
        settings_from({"name": "lags", "adaptive": {}, "layer_density": {"fc": 0.1}})


def test_the_whole_plan_follows_from_the_configuration():
    values = {
        "method": {"name": "lags", "adaptive": {"rule": "next", "c_u": 250}, "messages": "merged"},
        "costs": COSTS.model_dump(),
    }
    config = validate_config(values)
    assert validate_config(config.to_dict()) == config
