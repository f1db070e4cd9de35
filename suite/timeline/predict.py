"""Predicts one iteration of a worker that has a process, and a device, of its own."""

from collections.abc import Sequence
from dataclasses import dataclass

from suite.config.costs import LayerCosts
from suite.timeline.timeline import Event, Timeline


@dataclass(frozen=True)
class Sending:
    """A message to predict.

    Attributes:
        label: what the events are called.
        layers: how many parameter tensors it carries, counted on from the message before in back-propagation order.
        exchange: seconds of its collective.
        selects: whether its entries are chosen first; a dense message has nothing to choose.
        select: seconds of that choice, where it is not the sum of its layers'.
    """

    label: str
    layers: int
    exchange: float
    selects: bool
    select: float | None = None


def predict(costs: LayerCosts, messages: Sequence[Sending]) -> Timeline:
    """The timeline of one iteration: forward, backward from the last layer to the first, and messages on the way.

    A message's entries are selected on the computing thread as soon as its last gradient exists, and back-propagation
    goes on after that. Its exchange starts when they are selected and the exchange before has ended. With tb, ts, tc
    of layer or message l (L next to the loss), selection s and exchange c start at

        tau_s[l] = tau_b[l] + tb[l]        tau_b[l-1] = tau_s[l] + ts[l]
        tau_c[l] = max(tau_c[l+1] + tc[l+1], tau_s[l] + ts[l])

    (wait-free back-propagation: MG-WFBP, arXiv 1811.11141; with selection: the authors' OMGS-SGD code). A single
    message of all layers predicts a method that sends after back-propagation, such as SLGS-SGD. What follows the last
    exchange, applying the update, is the same for all methods and is left out.

    Raises:
        ValueError: the messages do not carry every layer once.
    """
    if sum(message.layers for message in messages) != len(costs.layers):
        raise ValueError(
            f"the messages carry {sum(message.layers for message in messages)} of {len(costs.layers)} layers"
        )
    events = [Event("forward", "", 0.0, costs.forward)]
    backward_order = reversed(costs.layers)
    now, network_free = costs.forward, 0.0
    for message in messages:
        select = 0.0
        for _ in range(message.layers):
            layer = next(backward_order)
            events.append(Event("backward", layer.name, now, now + layer.backward))
            now += layer.backward
            select += layer.select
        if message.selects:
            select = select if message.select is None else message.select
            events.append(Event("select", message.label, now, now + select))
            now += select
        start = max(network_free, now)
        network_free = start + message.exchange
        events.append(Event("exchange", message.label, start, network_free))
    return Timeline(tuple(events))
