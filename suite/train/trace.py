"""The traced iteration of a run: what happened when on every process, and what costs had predicted."""

from dataclasses import asdict

import yaml

from suite.plan import predict_plan
from suite.record import RunFolder
from suite.record.atomic import write_json, write_text
from suite.timeline import Event, Timeline, common_hidden_share
from suite.train.exchange import GradientExchange
from suite.world import World

# Past the first iterations, which pay for allocation and lazy set-up, and past those that measure costs.
TRACED_ITERATION = 5


def write_trace(folder: RunFolder, exchange: GradientExchange, world: World) -> None:
    """Write timeline.json, and costs.yaml where the run measured its own; entered by all processes together.

    The machine's monotonic clock is common to the processes of one host. `hidden_share` is the share of the time in
    which messages were on their way, all processes together, that back-propagation covers; None for one process.
    """
    everyone = world.transport.gather_objects(exchange.clock.events)
    if world.rank != 0:
        return
    origin = min(event["start"] for events in everyone for event in events)
    timelines = [
        Timeline(tuple(Event(e["phase"], e["label"], e["start"] - origin, e["end"] - origin) for e in events))
        for events in everyone
    ]
    events = [{"rank": rank} | asdict(event) for rank, timeline in enumerate(timelines) for event in timeline.events]
    hidden = common_hidden_share(timelines) if world.processes > 1 else None
    found = {"iteration": TRACED_ITERATION, "unit": "seconds", "hidden_share": hidden, "events": events}
    method = exchange.method
    if method.costs is not None:
        predicted = predict_plan(exchange.plan, exchange.layout, method.costs, method.entry_bytes, method.collective)
        found["predicted"] = [asdict(event) for event in predicted.events]
    write_json(folder.timeline, found)
    if exchange.measured_costs is not None:
        write_text(folder.costs, yaml.safe_dump(exchange.measured_costs.model_dump(), sort_keys=False))
