"""What a gradient-exchange method has to say about itself: settings, plan, compressor."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field, PositiveInt

from suite.config.costs import Costs, LinearCost, NetworkCosts
from suite.config.experiment import Density
from suite.config.strict import Strict
from suite.plan import Layout, Message, Plan, merge, message_bytes, usual_collective, usual_traffic

if TYPE_CHECKING:  # torch is only needed once a run starts; validating a configuration must stay quick
    from suite.compress import Compressor, WireFormat


class MethodSettings(Strict):
    """Settings every method has."""

    name: str

    @property
    def needs_costs(self) -> str | None:
        """The setting that plans from the configuration's costs, None where nothing does."""
        return None

    @property
    def groups(self) -> tuple[int, ...]:
        """Sizes of the groups of workers that exchange among themselves; none where all do with all."""
        return ()

    def check_workers(self, workers: int) -> None:
        """ValueError, in one sentence, where these settings make no sense for P workers."""

    def check_momentum(self, momentum: float) -> None:
        """ValueError, in one sentence, where the step that follows must not have this momentum."""


class WireSettings(Strict):
    """How a sent entry travels; see suite/compress/wire.py."""

    values: Literal["float32", "bfloat16"] = Field(
        "float32", description="bfloat16: two bytes a value; what rounding takes off stays in the residual"
    )
    indices: Literal["int32", "compact"] = Field(
        "int32", description="compact: one or two bytes an index, whichever takes less; the same bits arrive"
    )

    def format(self) -> WireFormat:
        """What packs and unpacks payloads."""
        from suite.compress import WireFormat

        return WireFormat(self.values, self.indices)


class DensitySettings(MethodSettings):
    """Settings of the methods that send k of d entries."""

    density: Density = Field(0.001, description="rho = k / d")
    density_warmup: tuple[Density, ...] = Field((), description="densities of the first epochs, one an epoch")

    def density_at(self, epoch: int) -> float:
        """The global density in force in `epoch` (from 0)."""
        return self.density_warmup[epoch] if epoch < len(self.density_warmup) else self.density


class FeedbackSettings(MethodSettings):
    """Settings of the methods with error feedback."""

    error_feedback: bool = Field(True, description="keep what was not sent and add it to the next gradient")
    lr_placement: Literal["outside", "inside"] = Field(
        "outside",
        description="outside: accumulate gradients and scale the average by the learning rate, as the authors' code "
        "does; inside: accumulate lr * gradient, as the papers write it",
    )


class SparseSettings(DensitySettings, FeedbackSettings):
    """Settings of the methods whose workers each send k entries as they are."""

    wire: WireSettings = WireSettings()


class LayerMessages(MethodSettings):
    """Settings of the methods that send layer by layer."""

    messages: Literal["layer", "one", "merged"] = Field(
        "merged",
        description="layer: a message a parameter tensor, as the papers draw it; one: all in one message; merged: "
        "neighbours share a message where costs predict that the iteration gets no longer, either the configuration's "
        "or, without them, what the run measures in its first iterations; all in one where nothing can overlap. What "
        "is selected is the same in all three",
    )


class LowRankSettings(LayerMessages, FeedbackSettings):
    """Settings of the methods that send two thin factors of every matrix."""

    rank: PositiveInt = Field(4, description="most columns of a factor; fewer where the matrix has fewer rows")


class Method(ABC):
    """A system under test. Subclasses live one a file in this folder and are marked with `@register`.

    Class attributes:
        Settings: the settings model; its `name` is a Literal with the method's name as default.
        interface_version: of this class, checked at registration.
        label: how figures and tables call it.
        measures_xi: whether what its analysis assumes is measured where `assumption.every` asks; see suite.measure.xi.
        remembered: vectors of d entries that a worker's compressor keeps beside the residual.
    """

    Settings: ClassVar[type[MethodSettings]]
    interface_version: ClassVar[int] = 1
    label: ClassVar[str]
    measures_xi: ClassVar[bool] = False
    remembered: ClassVar[int] = 0

    def __init__(self, settings: MethodSettings, costs: Costs | None = None):
        self.settings, self.costs = settings, costs

    @property
    def error_feedback(self) -> bool:
        return getattr(self.settings, "error_feedback", False)

    @property
    def lr_inside(self) -> bool:
        return getattr(self.settings, "lr_placement", "outside") == "inside"

    def density_at(self, epoch: int) -> float | None:
        """The global density of `epoch`; None for a method that sends everything, or where ratios adapt to costs."""
        settings = self.settings
        if not isinstance(settings, DensitySettings):
            return None
        adapts = getattr(settings, "adaptive", None) and epoch >= len(settings.density_warmup)
        return None if adapts else settings.density_at(epoch)

    @property
    def entry_bytes(self) -> int:
        """Bytes that planning counts for a selected entry on the wire: a compact index takes about two, seldom one."""
        wire = getattr(self.settings, "wire", WireSettings())
        return (2 if wire.values == "bfloat16" else 4) + (2 if wire.indices == "compact" else 4)

    @property
    def merges_by_costs(self) -> bool:
        """Whether its messages are merged as costs say; without costs the run measures them."""
        return getattr(self.settings, "messages", None) == "merged"

    def in_messages(self, plan: Plan, layout: Layout) -> Plan:
        """A layer-wise plan in the messages `settings.messages` asks for; not merged yet where no costs are known."""
        if self.settings.messages == "one":
            return plan.merged()
        if self.merges_by_costs and self.costs is not None:
            return merge(plan, layout, self.costs, self.entry_bytes, collective=self.collective)
        return plan

    def collective(self, network: NetworkCosts, sparse: bool) -> LinearCost:
        """Seconds that a message takes on `network`, over the bytes that one worker hands in for it.

        Predictions, merging and adaptive ratios ask here. A method whose messages travel otherwise than by one
        all-gather or all-reduce says so by overriding this; `network.link` is one message between two workers.

        Args:
            network: its collectives and, by them, its links.
            sparse: whether the message carries selected entries.
        """
        return usual_collective(network, sparse)

    def traffic(self, workers: int, sparse: bool) -> float:
        """Bytes a worker puts on the wire for each byte it hands in for a message: `collective`'s other half.

        A run counts by this too, whatever carries the message in truth.
        """
        return usual_traffic(workers, sparse)

    def collective_name(self, sparse: bool) -> str:
        """By what a message travels, in the field's words."""
        return "all-gather" if sparse else "ring all-reduce"

    def handed_in(self, message: Message) -> float:
        """Bytes one worker hands in for a message of the plan; the expected number where it is random."""
        wire = getattr(self.settings, "wire", None)
        if wire is None or not message.is_sparse:
            return message_bytes(message, self.entry_bytes)
        return wire.format().nbytes(message.entries, message.stop - message.start)

    @abstractmethod
    def plan(self, layout: Layout, epoch: int) -> Plan:
        """The plan in force in `epoch` for a gradient of this layout."""

    @abstractmethod
    def compressor(self) -> Compressor:
        """A compressor for the messages of `plan`."""
