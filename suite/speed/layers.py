"""Layer times of published models, made from their totals and the models' shapes."""

from suite.config.costs import LayerCosts
from suite.config.experiment import ModelConfig
from suite.speed.published import ModelTimes
from suite.timeline.spread import spread

_DIGITS = 6  # of a time in a layers file: more would be noise


def spread_over_layers(name: str, times: ModelTimes) -> LayerCosts:
    """The published totals of a model, spread over its parameter tensors; see suite.timeline.spread.

    Backward goes by the tensors' multiply-accumulates, selection by n log2 n; SLGS-SGD's selection, one over the whole
    gradient, stays as published. Needs torch, on whose meta device the model is described, but computes nothing.
    """
    work, sizes = arithmetic(times.model, times.input, times.classes)
    source = (
        f"{name}, published totals (forward {times.forward:g} s, backward {times.backward:g} s, selection "
        f"{times.lags.selection:g} s, of the whole gradient {times.slgs.selection:g} s) spread over the layers of "
        f"{times.model.name}: backward by their multiply-accumulates, selection by n log2 n"
    )
    found = spread(
        times.forward, times.backward, times.lags.selection, work, sizes, source, select_whole=times.slgs.selection
    )
    rounded = [
        layer.model_copy(update={"backward": _rounded(layer.backward), "select": _rounded(layer.select)})
        for layer in found.layers
    ]
    return found.model_copy(update={"layers": tuple(rounded)})


def arithmetic(settings: ModelConfig, sample: tuple[int, ...], classes: int) -> tuple[dict[str, float], dict[str, int]]:
    """Multiply-accumulates of one sample and elements, by parameter tensor in the model's order.

    Args:
        sample: channels, height and width of an image, or tokens of a window.
        classes: of the labels, or words of the vocabulary.
    """
    import torch

    from suite.measure.work import multiply_accumulates
    from suite.models import describe_model

    model = describe_model(settings, sample[0], classes).eval()
    if settings.kind == "images":
        batch = (torch.empty(1, *sample, device="meta"),)
    else:
        batch = (torch.zeros(1, *sample, dtype=torch.long, device="meta"), None)
    return multiply_accumulates(model, *batch), {name: p.numel() for name, p in model.named_parameters()}


def _rounded(seconds: float) -> float:
    return float(f"{seconds:.{_DIGITS}g}")
