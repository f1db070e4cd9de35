"""Before the first iteration: do all processes mean the same run? A difference would train on in silence, or hang."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from torch import nn

from suite.errors import SuiteError
from suite.plan import Plan, Segment
from suite.words import listing
from suite.world import World


def parameter_facts(names: Iterable[str], parameters: Iterable[nn.Parameter], plan: Plan) -> dict[str, Any]:
    """What an exchange takes for equal on all processes: parameters in order, segments with their k, messages."""
    return {
        "parameter": tuple(
            f"{name} {list(p.shape)} {str(p.dtype).removeprefix('torch.')}"
            for name, p in zip(names, parameters, strict=True)
        ),
        "segment": tuple(f"{s.name} ({_amount(s)} of {s.size:,} entries)" for s in plan.segments),
        "message": tuple(f"{m.name} from entry {m.start:,} to {m.stop:,}" for m in plan.messages),
    }


def _amount(segment: Segment) -> str:
    if segment.values is not None:
        return f"{segment.values:,} values in place"
    return "all" if segment.k is None else f"k = {segment.k:,}"


def check_agreement(world: World, facts: dict[str, Any]) -> None:
    """Compare facts over all processes, which enter this together and with the same keys.

    Args:
        facts: values by name; of a tuple the first place that differs is told.

    Raises:
        SuiteError: they differ; the same sentence on every process, naming ranks and values.
    """
    everyone = world.transport.gather_objects(facts)
    for name in facts:
        values = [of[name] for of in everyone]
        if len(set(values)) > 1:
            raise SuiteError(
                f"the processes do not agree, so training has not begun: {_difference(name, values)}; give all of them "
                "the same code, settings and data"
            )


def _difference(name: str, values: list[Any]) -> str:
    """The odd ranks and what they have, beside what most have."""
    if isinstance(values[0], tuple):
        length = max(map(len, values))
        padded = [value + ("none",) * (length - len(value)) for value in values]
        place = next(i for i in range(length) if len({value[i] for value in padded}) > 1)
        name, values = f"{name} {place + 1}", [value[place] for value in padded]
    (usual, _), *_ = Counter(values).most_common(1)
    ranks: dict[Any, list[str]] = {}
    for rank, value in enumerate(values):
        ranks.setdefault(value, []).append(str(rank))
    odd = listing(f"{value} on rank {listing(of)}" for value, of in ranks.items() if value != usual)
    return f"{name} is {odd}, but {usual} on rank {listing(ranks[usual])}"
