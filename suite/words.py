"""Numbers and lists as people read them."""

import math
from collections.abc import Iterable

_TRANSPORTS = {"horovod": "Horovod", "torch": "torch.distributed"}


def number(value: float | None, digits: int = 4) -> str:
    """A number with so many significant digits, no exponent where people would not write one; a dash for none."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    size = abs(value)
    if size >= 10**digits:
        return f"{value:,.0f}" if size < 1e9 else f"{value:.{digits - 1}e}"
    return f"{value:.{digits}g}".replace("-", "−")


def amount_of_bytes(count: float) -> str:
    """Bytes in decimal units, as networks count."""
    power = min(int(math.log10(max(count, 1)) // 3), 4)
    return f"{count / 1000**power:.3g} {('B', 'kB', 'MB', 'GB', 'TB')[power]}"


def listing(parts: Iterable[str]) -> str:
    """'a', 'a and b', 'a, b and c'."""
    *front, last = parts
    return f"{', '.join(front)} and {last}" if front else last


def plural(count: int, noun: str) -> str:
    """'1 seed', '3 seeds'."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def p_text(p: float) -> str:
    """A p value after its letter: '= 0.012', '< 0.001'."""
    return "< 0.001" if p < 0.001 else f"= {p:.2g}"


def metric_name(metric: str) -> str:
    """'test_accuracy' as 'test accuracy'."""
    return metric.replace("_", " ")


def metric_value(metric: str, value: float) -> str:
    """A test metric with its unit: an accuracy in percent, a perplexity as it is, a norm briefly; a dash for none."""
    if math.isnan(value):
        return "–"
    if metric.endswith("accuracy"):
        return f"{100 * value:.2f}%"
    return f"{value:.2f}" if metric.endswith("perplexity") else f"{value:.3g}"


def placement(workers: int, processes: int, transport: str) -> str:
    """Where the workers of a run live."""
    if processes == 1:
        return f"{workers} workers in one process"
    return f"{workers} workers on {processes} processes over {_TRANSPORTS.get(transport, transport)}"


def method_label(method: str) -> str:
    """How figures and tables call a method: 'lags' as 'LAGS-SGD'; what is no method's name as it is."""
    from suite.methods import METHODS  # whose files say it; rooms below that one use these words too

    return METHODS[method].label if method in METHODS else method


def network_name(network: str) -> str:
    """'10gbe' as '10 GbE', '1gbe-fitted' as '1 GbE (fitted)'; any other name as it is."""
    speed, _, rest = network.partition("gbe")
    if not speed.replace(".", "", 1).isdigit():
        return network
    return f"{speed} GbE" + (f" ({rest.lstrip('-')})" if rest else "")
