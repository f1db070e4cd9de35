"""Exchange alone, on real ranks: ours, the published scheme, and a dense all-reduce, in turn."""

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from suite.bench.timing import medians
from suite.config import validate_config
from suite.world.check import check_machine
from suite.world.launch import launch


def bench_exchange(model: str, ranks: int, density: float, messages: str, repeats: int) -> dict[str, Any]:
    """Start Horovod ranks on loopback and time the exchange of a model's gradients, without any back-propagation.

    Every rank holds one random gradient a tensor. Ours is the training loop's own exchange: accumulate, select, pack,
    all-gather, add up, average, keep the residual. See `suite.bench.schemes` for the others. A round's time is the
    slowest rank's; the faster of the two dense all-reduces, Horovod's and torch's over Gloo, is the baseline.

    Args:
        model: an image model, built for 1,000 classes.
        ranks: processes with one worker each.
        messages: of LAGS: one, or one a layer.

    Returns:
        seconds by scheme, ratios (how many times faster ours is), bytes a rank sends, messages.
    """
    config = validate_config(
        {
            "model": {"name": model},
            "data": {"name": "synthetic", "classes": 1000, "samples": 8 * ranks},
            "method": {"name": "lags", "density": density, "messages": messages},
            "world": {"workers": ranks, "processes": ranks, "transport": "horovod"},
        }
    )
    check_machine(config.world)
    with tempfile.TemporaryDirectory(prefix="suite-bench-") as folder:
        out = Path(folder) / "times.json"
        settings = json.dumps({"config": config.to_dict(), "repeats": repeats})
        command = [sys.executable, "-m", "suite.bench.exchange_ranks", settings, str(out)]
        launch(config.world, command, Path(folder) / "logs")
        found = json.loads(out.read_text())
    rounds = found.pop("seconds")
    seconds = medians(rounds)
    dense = min(("dense_horovod", "dense_gloo"), key=seconds.__getitem__)
    return {
        "benchmark": "exchange",
        "model": model,
        "ranks": ranks,
        "density": density,
        "repeats": repeats,
        "ratio_to_published_scheme": seconds["published_scheme"] / seconds["ours"],
        "ratio_to_dense": seconds[dense] / seconds["ours"],
        "dense_baseline": dense,
        "seconds": seconds,
        **found,
        "rounds": rounds,
    }
