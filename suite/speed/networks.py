"""Networks by name (replications/*/networks.yaml), by bandwidth, or from a file that `suite measure network` wrote."""

from pathlib import Path

from pydantic import NonNegativeFloat, PositiveFloat, PositiveInt, ValidationError

from suite.config.costs import LinearCost, LinkCosts, NetworkCosts
from suite.config.profiles import replication_folders
from suite.config.strict import Strict, nearest
from suite.config.values import read_yaml, sentence
from suite.errors import ConfigError
from suite.words import listing


class GatherFit(Strict):
    """An all-gather that was fitted among a number of workers: a + b P seconds a byte that a worker hands in."""

    workers: PositiveInt
    a: NonNegativeFloat
    b: NonNegativeFloat

    @property
    def line(self) -> LinearCost:
        """Seconds over the bytes that one worker hands in."""
        return LinearCost(start=self.a, per_byte=self.b * self.workers)


class Network(Strict):
    """Equal links; collectives follow by the usual models, or from a fit for the numbers of workers it was made with.

    alpha is in seconds a step of a collective, bandwidth in bit/s.
    """

    alpha: NonNegativeFloat
    bandwidth: PositiveFloat
    all_gather: tuple[GatherFit, ...] = ()
    source: str

    def serves(self, workers: int) -> bool:
        """Whether its collectives are known among so many workers."""
        return not self.all_gather or any(fit.workers == workers for fit in self.all_gather)

    def at(self, workers: int) -> NetworkCosts:
        """Its collectives among so many workers.

        Raises:
            ConfigError: they were fitted for other numbers of workers.
        """
        if not self.serves(workers):
            fitted = listing(str(fit.workers) for fit in self.all_gather)
            raise ConfigError(f"the network was fitted for {fitted} workers, not for {workers}; take one of those")
        link = LinkCosts(workers=workers, alpha=self.alpha, bandwidth=self.bandwidth, source=self.source).network()
        fits = {fit.workers: fit.line for fit in self.all_gather}
        return link.model_copy(update={"all_gather": fits.get(workers, link.all_gather)})


class NamedNetworks(Strict):
    """A whole networks.yaml."""

    networks: dict[str, Network]


def read_networks() -> dict[str, Network]:
    """All named networks, in their files' order; empty outside of a checkout."""
    found: dict[str, Network] = {}
    for path in [folder / "networks.yaml" for folder in replication_folders()]:
        if path.exists():
            try:
                found |= NamedNetworks.model_validate(read_yaml(path)).networks
            except ValidationError as error:
                raise ConfigError(f"{path}: {sentence(error)}") from error
    return found


def read_network(name: str) -> Network:
    """The network of that name.

    Raises:
        ConfigError: there is none; names the nearest.
    """
    known = read_networks()
    if name not in known:
        hint = nearest(name, known) if known else "names are in replications/*/networks.yaml of the suite's checkout"
        raise ConfigError(f"there is no network '{name}'; {hint}")
    return known[name]


def network_at(name: str, workers: int) -> NetworkCosts:
    """The collectives of a named network, or of a file that holds costs.network, among so many workers.

    Raises:
        ConfigError: neither a name nor a file, or of other numbers of workers.
    """
    path = Path(name)
    if not path.is_file():
        return read_network(name).at(workers)
    values = read_yaml(path)
    values = values.get("network", values)  # a run's costs.yaml holds both layers and network
    try:
        if values.keys() & {"alpha", "bandwidth"}:
            return LinkCosts.model_validate(values | {"workers": workers}).network()
        network = NetworkCosts.model_validate(values)
    except ValidationError as error:
        raise ConfigError(f"{path}: {sentence(error)}") from error
    if network.workers != workers:
        raise ConfigError(
            f"{path} holds times of {network.workers} workers, not of {workers}; give --workers {network.workers} or "
            "measure that world with `suite measure network`"
        )
    return network


def link_at(gigabits: float, workers: int, alpha: float | None = None) -> NetworkCosts:
    """The collectives on links of so many Gb/s; without alpha, in seconds a step, with `usual_latency`."""
    alpha = usual_latency() if alpha is None else alpha
    return LinkCosts(workers=workers, alpha=alpha, bandwidth=gigabits * 1e9).network()


def usual_latency() -> float:
    """alpha of the named network of least bandwidth, in seconds a step.

    Raises:
        ConfigError: no network has a name here.
    """
    known = read_networks().values()
    if not known:
        raise ConfigError("a link of --bandwidth also needs its latency: give --alpha, in seconds a step")
    return min(known, key=lambda network: network.bandwidth).alpha
