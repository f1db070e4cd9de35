"""What an emulated host computes: slept for as long as costs say, or measured and stretched."""

import time
from typing import Any

import torch

from suite.compress import Accumulation, Payload
from suite.compress.compressors import Compressor, State
from suite.plan import Layout, Message


class Device:
    """A device whose computations are slept, `stretch` times as long as they take.

    What a sleep overshoots is taken off the next one; what this process really does in between is not.
    """

    def __init__(self, stretch: float):
        self.stretch = stretch
        self._free = self._awake = 0.0

    def start(self) -> float:
        """Begin an iteration; returns the moment on the machine's monotonic clock."""
        self._free = self._awake = time.monotonic()
        return self._free

    def compute(self, seconds: float) -> None:
        """Be busy for `seconds` of the emulated device's time."""
        now = time.monotonic()
        self._free += (now - self._awake) + seconds * self.stretch
        time.sleep(max(self._free - now, 0.0))
        self._awake = time.monotonic()


class SleptSelection:
    """A compressor that really makes each message's payload once, and afterwards takes a given time to hand it out.

    Args:
        inner: what makes the payloads.
        device: that is busy meanwhile.
        seconds: by message name; a message that is not there, as a dense one, takes no time.
    """

    def __init__(self, inner: Compressor, device: Device, seconds: dict[str, float]):
        self.inner, self.device, self.seconds = inner, device, seconds
        self._payloads: dict[str, Payload] = {}

    def init(self, layout: Layout, seed: int) -> State:
        return self.inner.init(layout, seed)

    def compress(
        self, accumulation: Accumulation, message: Message, state: State, rng: torch.Generator
    ) -> tuple[Payload, State]:
        if message.name not in self._payloads:
            self._payloads[message.name], state = self.inner.compress(accumulation, message, state, rng)
        self.device.compute(self.seconds.get(message.name, 0.0))
        return self._payloads[message.name], state


class MeasuredSelection:
    """A compressor that takes `stretch` times the processor time which its selection really took.

    Processor time, because the hosts share this machine's cores and wait for them.
    """

    def __init__(self, inner: Compressor, device: Device):
        self.inner, self.device = inner, device

    def init(self, layout: Layout, seed: int) -> State:
        return self.inner.init(layout, seed)

    def compress(
        self, accumulation: Accumulation, message: Message, state: State, rng: torch.Generator
    ) -> tuple[Any, State]:
        began, computed = time.monotonic(), time.thread_time()
        payload, state = self.inner.compress(accumulation, message, state, rng)
        left = (time.thread_time() - computed) * self.device.stretch - (time.monotonic() - began)
        time.sleep(max(left, 0.0))
        return payload, state
