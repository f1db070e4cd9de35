"""What one training run is made of. Field descriptions are the documentation of the YAML keys."""

from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import (
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    field_validator,
    model_validator,
)

from suite.config.costs import HOW_TO_GET_COSTS, Costs
from suite.config.optimizer import OptimizerConfig
from suite.config.problems import (
    GroupedConfig,
    LabelledConfig,
    LibsvmConfig,
    LinearConfig,
    QuadraticsConfig,
    RobustLinearConfig,
    SaddleConfig,
)
from suite.config.strict import Strict

Density = Annotated[float, Field(gt=0, le=1)]


class ResNet20Config(Strict):
    """CIFAR-form residual network of 20 layers (He et al. 2016, section 4.2) with parameter-free shortcuts."""

    kind: ClassVar[str] = "images"
    name: Literal["resnet20"] = "resnet20"


class VGG16Config(Strict):
    """VGG-16 in its usual CIFAR form: BatchNorm after each convolution, one linear classifier; 14.7 M parameters."""

    kind: ClassVar[str] = "images"
    smallest_image: ClassVar[int] = 32
    name: Literal["vgg16"] = "vgg16"
    width: PositiveInt = Field(
        64, description="channels of the first block, 64 as published; others are multiples of it"
    )


class ResNet50Config(Strict):
    """ResNet-50 in its ImageNet form (He et al. 2016, table 1), untrained: 25.6 M parameters."""

    kind: ClassVar[str] = "images"
    name: Literal["resnet50"] = "resnet50"


class InceptionV4Config(Strict):
    """Inception-v4 (Szegedy et al. 2016), untrained and without auxiliary classifier: 42.7 M parameters."""

    kind: ClassVar[str] = "images"
    smallest_image: ClassVar[int] = 75
    name: Literal["inception_v4"] = "inception_v4"


class LSTMConfig(Strict):
    """Recurrent language model of the shape of Zaremba et al. 2014: embedding, LSTM layers, linear decoder."""

    kind: ClassVar[str] = "text"
    name: Literal["lstm"] = "lstm"
    embedding: PositiveInt = Field(64, description="width of the token embedding")
    hidden: PositiveInt = Field(128, description="width of each LSTM layer")
    layers: PositiveInt = 2
    dropout: float = Field(
        0.0, ge=0, lt=1, description="drop probability on embeddings, between layers, before decoder"
    )


class MLPConfig(Strict):
    """Linear layers with tanh between them and one output: smooth, not convex, for experiments on convergence rates."""

    kind: ClassVar[str] = "vectors"
    name: Literal["mlp"] = "mlp"
    widths: tuple[PositiveInt, ...] = Field((16, 8), min_length=1, description="of the hidden layers")


class DigitsConfig(Strict):
    """scikit-learn's 1,797 handwritten digits: 8 x 8 grey images, 10 classes; ships inside the package."""

    kind: ClassVar[str] = "images"
    channels: ClassVar[int] = 1
    classes: ClassVar[int] = 10
    name: Literal["digits"] = "digits"
    image_size: int = Field(8, ge=8, le=64, description="pixels a side; above 8 the images are enlarged bilinearly")
    test_fraction: float = Field(0.2, gt=0, lt=1)
    split_seed: NonNegativeInt = 0


class SyntheticConfig(Strict):
    """Random images with a mean a class, for benchmarks and timings; says nothing about accuracy."""

    kind: ClassVar[str] = "images"
    tells_accuracy: ClassVar[bool] = False
    name: Literal["synthetic"] = "synthetic"
    image_size: int = Field(32, ge=8, le=512, description="pixels a side")
    channels: PositiveInt = 3
    classes: int = Field(10, ge=2)
    samples: PositiveInt = Field(1024, description="training images; the test images are an eighth more")
    split_seed: NonNegativeInt = Field(0, description="draws training and test images")


class PydocConfig(Strict):
    """The text of Python's own documentation topics (`pydoc_data.topics`), about 700 kB; ships with Python."""

    kind: ClassVar[str] = "text"
    name: Literal["pydoc"] = "pydoc"
    vocabulary: int = Field(2000, ge=10, description="most frequent words kept; the others become <unk>")
    sequence_length: PositiveInt = Field(20, description="tokens a window: the length of truncated back-propagation")
    max_train_tokens: PositiveInt | None = Field(None, description="cut the training text to this many tokens")
    test_fraction: float = Field(0.1, gt=0, lt=1, description="share of the topics, not of the tokens")
    split_seed: NonNegativeInt = 0

    @property
    def classes(self) -> int:
        """Words of the vocabulary."""
        return self.vocabulary


class TeacherConfig(Strict):
    """Random vectors with what a random network says of them, plus noise; says nothing about accuracy on real data."""

    kind: ClassVar[str] = "vectors"
    name: Literal["teacher"] = "teacher"
    features: PositiveInt = 32
    samples: PositiveInt = 4096
    noise: NonNegativeFloat = Field(
        0.5, description="deviation of the noise on the targets, which deviate by about 0.8"
    )
    split_seed: NonNegativeInt = Field(0, description="draws the vectors and the network")


class Cifar10Config(Strict):
    """CIFAR-10 (Krizhevsky 2009): 50,000 training and 10,000 test images of 32 x 32, 10 classes; see docs/data.md."""

    kind: ClassVar[str] = "images"
    on_disk: ClassVar[bool] = True
    channels: ClassVar[int] = 3
    classes: ClassVar[int] = 10
    image_size: ClassVar[int] = 32
    name: Literal["cifar10"] = "cifar10"
    augment: bool = Field(
        True, description="standard augmentation: 4 black pixels around, random crop, random mirroring"
    )
    max_train_samples: PositiveInt | None = Field(None, description="cut the training images to the first so many")


class ImageNetConfig(Strict):
    """ImageNet, or any tree train/CLASS/IMAGE and val/CLASS/IMAGE; images are decoded while training goes on."""

    kind: ClassVar[str] = "images"
    on_disk: ClassVar[bool] = True
    channels: ClassVar[int] = 3
    classes: ClassVar[int] = 1000  # of ImageNet; another tree has its own
    name: Literal["imagenet"] = "imagenet"
    image_size: int = Field(
        224, ge=32, le=512, description="pixels a side after cropping; the authors' Inception-v4: 299"
    )
    augment: bool = Field(True, description="random crop of 8-100% of the area and random mirroring; else centre crop")
    threads: PositiveInt = Field(4, description="of a process, that decode the next batches")


class PtbConfig(Strict):
    """Penn Treebank as prepared by Mikolov et al. 2010: 929,589 training tokens, 10,000 words; see docs/data.md."""

    kind: ClassVar[str] = "text"
    on_disk: ClassVar[bool] = True
    classes: ClassVar[int] = 10_000
    name: Literal["ptb"] = "ptb"
    sequence_length: PositiveInt = Field(35, description="tokens a window: the length of truncated back-propagation")
    max_train_tokens: PositiveInt | None = Field(None, description="cut the training text to this many tokens")
    evaluate: Literal["valid", "test"] = Field("valid", description="text that is tested on; the source reports valid")
    windows: Literal["streams", "shuffled"] = Field(
        "streams",
        description="streams: each window continues the one before; shuffled: windows in random order although hidden "
        "state is carried from one to the next, a quirk of the authors' code",
    )


ModelConfig = (
    ResNet20Config | VGG16Config | ResNet50Config | InceptionV4Config | LSTMConfig | MLPConfig
    | LinearConfig | RobustLinearConfig | SaddleConfig
)  # fmt: skip
DataConfig = (
    DigitsConfig | SyntheticConfig | TeacherConfig | Cifar10Config | ImageNetConfig | PydocConfig | PtbConfig
    | LabelledConfig | LibsvmConfig | GroupedConfig | QuadraticsConfig
)  # fmt: skip


class WorldConfig(Strict):
    """P logical workers on N processes, and what carries their messages."""

    workers: PositiveInt = Field(16, description="P, the number of logical SGD workers")
    processes: PositiveInt = Field(1, description="N, the number of processes that host them; divides workers")
    transport: Literal["virtual", "horovod", "torch"] = Field("virtual", description="virtual means one process")
    controller: Literal["gloo", "mpi"] = Field("gloo", description="Horovod's controller; mpi starts ranks by mpirun")
    threads: PositiveInt = Field(1, description="CPU threads a process; part of what makes results repeat bit for bit")
    deterministic: bool = Field(False, description="dense all-reduce sums in worker order: same bits in any placement")
    overlap: bool = Field(
        True,
        description="send messages while back-propagation goes on; the same bits with and without, where messages are "
        "gathered or `deterministic` is set",
    )

    @model_validator(mode="after")
    def _placement(self) -> "WorldConfig":
        if self.workers % self.processes:
            fits = [n for n in range(1, self.workers + 1) if self.workers % n == 0]
            raise ValueError(
                f"processes must divide workers, and {self.processes} does not divide {self.workers}; "
                f"possible are {', '.join(map(str, fits))}"
            )
        if self.transport == "virtual" and self.processes != 1:
            raise ValueError(
                f"the virtual transport is one process, not {self.processes}; "
                "set world.transport to horovod or torch, or world.processes to 1"
            )
        if self.transport != "horovod" and self.controller != "gloo":
            raise ValueError("world.controller is Horovod's; set world.transport to horovod or leave controller out")
        return self


class ComputeConfig(Strict):
    """How forward and backward are computed; parameters, exchange and optimiser are float32 in any case."""

    precision: Literal["float32", "bfloat16"] = Field(
        "float32", description="bfloat16: forward and backward under autocast; pays where the processor multiplies it"
    )
    channels_last: bool = Field(
        False,
        description="images in memory as [B, H, W, channels]: convolutions are faster, results differ in rounding",
    )
    cuda_graph: bool = Field(
        False, description="on a GPU, record forward and backward once and replay them: for networks of small kernels"
    )


class TrainConfig(Strict):
    """Length, batch and bookkeeping of a run."""

    epochs: PositiveInt = 1
    max_iterations: PositiveInt | None = Field(None, description="end after this many iterations, also in mid-epoch")
    batch_size: PositiveInt = Field(8, description="samples, or text streams, a worker takes an iteration")
    seed: NonNegativeInt = Field(0, description="initial weights, data order, dropout, random draws")
    checkpoint_every: PositiveInt = Field(50, description="iterations between checkpoints")
    batchnorm: Literal["average", "worker0"] = Field(
        "average", description="statistics a test uses: the workers' average, or worker 0's as in the authors' code"
    )
    max_skipped: PositiveInt = Field(
        3, description="consecutive iterations with a non-finite gradient that end the run"
    )
    stall_limit: PositiveFloat | None = Field(
        300.0,
        description="seconds without progress on any process that end the run: longer than the forward and backward of "
        "one worker; null waits for ever",
    )


class AssumptionConfig(Strict):
    """How often the paper's analytical assumption is measured."""

    every: NonNegativeInt = Field(1, description="iterations between measurements; 0 switches it off")
    random_draw: bool = Field(True, description="also compare with one random-k draw, as the authors' code does")


# What the authors' published code does otherwise than this suite by default: the defaults of `mode: as-published`.
AS_PUBLISHED: dict[str, dict[str, Any]] = {
    "train": {"batchnorm": "worker0"},
    "optimizer": {"decay_chain": True},
    "data": {"windows": "shuffled"},  # of a data set that has windows
}


def _is_named(model: type[Strict], values: Any) -> bool:
    return isinstance(values, dict) and values.get("name") == model.model_fields["name"].default


class ExperimentConfig(Strict):
    """One training run, complete: equal configurations give equal bits.

    On several processes all-reduces keep that promise under `world.deterministic` only: how messages are merged is
    measured, and where one ends decides how a ring rounds.
    """

    mode: Literal["sound", "as-published"] = Field(
        "sound", description="as-published: the quirks of the authors' code, each a setting of its own, become defaults"
    )
    model: Annotated[ModelConfig, Field(discriminator="name")] = ResNet20Config()
    data: Annotated[DataConfig, Field(discriminator="name")] = DigitsConfig()
    method: Any = Field(description="name and settings of the method: `suite list methods`")
    optimizer: OptimizerConfig = OptimizerConfig()
    world: WorldConfig = WorldConfig()
    compute: ComputeConfig = ComputeConfig()
    train: TrainConfig = TrainConfig()
    assumption: AssumptionConfig = AssumptionConfig()
    costs: Costs | None = Field(None, description="times of layers and network: what adaptive and merged plans need")

    @model_validator(mode="before")
    @classmethod
    def _quirks(cls, values: Any) -> Any:
        if not isinstance(values, dict) or values.get("mode") != "as-published":
            return values
        out = dict(values)
        for section, quirks in AS_PUBLISHED.items():
            given = out.get(section, {})
            known = next((m for m in get_args(DataConfig) if _is_named(m, given)), None) if section == "data" else None
            if section != "data" or (known is not None and quirks.keys() <= known.model_fields.keys()):
                out[section] = quirks | given if isinstance(given, dict) else given
        return out

    @field_validator("method", mode="plain")
    @classmethod
    def _method_settings(cls, value: Any) -> Any:
        # Each method file brings its own settings model, so that a new method is one file; the methods are looked up
        # here at the last moment because their room builds on this one.
        from suite.methods import settings_from

        return settings_from(value)

    @model_validator(mode="after")
    def _model_reads_data(self) -> "ExperimentConfig":
        if self.model.kind != self.data.kind:
            raise ValueError(
                f"model {self.model.name} reads {self.model.kind}, but dataset {self.data.name} is {self.data.kind}"
            )
        smallest = getattr(self.model, "smallest_image", 0)
        if smallest and self.data.image_size < smallest:
            raise ValueError(
                f"model {self.model.name} halves images five times and needs {smallest} pixels a side, not "
                f"{self.data.image_size}; set data.image_size to {smallest} or more"
            )
        return self

    @model_validator(mode="after")
    def _method_fits(self) -> "ExperimentConfig":
        self.method.check_workers(self.world.workers)
        self.method.check_momentum(self.optimizer.momentum)
        return self

    @model_validator(mode="after")
    def _graph_has_one_shape(self) -> "ExperimentConfig":
        if self.compute.cuda_graph and self.model.kind not in ("images", "vectors"):
            raise ValueError(
                f"compute.cuda_graph records networks of images and vectors, not models of {self.model.kind}; set it "
                "to false"
            )
        return self

    @model_validator(mode="after")
    def _costs_where_needed(self) -> "ExperimentConfig":
        if self.costs is not None and self.costs.network.workers != self.world.workers:
            raise ValueError(
                f"costs.network is of {self.costs.network.workers} workers and the world has {self.world.workers}; "
                "measure this world with `suite measure network` or set world.workers"
            )
        if self.costs is None and self.method.needs_costs:
            raise ValueError(
                f"method.{self.method.needs_costs} is planned from costs, and there are none; {HOW_TO_GET_COSTS}"
            )
        return self

    def to_dict(self) -> dict[str, Any]:
        """The resolved configuration as plain values, every default filled in."""
        out = self.model_dump(mode="json", exclude={"method"})
        out["method"] = self.method.model_dump(mode="json")
        return out


def variants(section: str) -> dict[str, type[Strict]]:
    """Settings models by name of a section that has several: "model" or "dataset"."""
    models = {"model": ModelConfig, "dataset": DataConfig}
    return {model.model_fields["name"].default: model for model in get_args(models[section])}
