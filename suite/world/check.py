"""What this machine can carry: asked before anything starts."""

import importlib.util
import shutil
from dataclasses import dataclass

from suite.config.experiment import WorldConfig
from suite.errors import ConfigError
from suite.world.slurm import allocation_for, mpi_of_slurm


@dataclass(frozen=True)
class HorovodBuild:
    """The installed Horovod: controllers it was built with, empty when it is not there or does not load."""

    controllers: tuple[str, ...]
    reason: str = ""


def horovod_build() -> HorovodBuild:
    """Find out what the installed Horovod can do; imports it."""
    if importlib.util.find_spec("horovod") is None:
        return HorovodBuild((), "Horovod is not installed")
    try:
        import horovod.torch as hvd
    except (ImportError, OSError) as error:
        return HorovodBuild((), f"Horovod does not load ({str(error).splitlines()[0]})")
    built = {"gloo": hvd.gloo_built(), "mpi": hvd.mpi_built()}
    return HorovodBuild(tuple(name for name, yes in built.items() if yes))


def check_machine(config: WorldConfig) -> None:
    """Refuse a transport that is not here, and a Slurm job that is too small."""
    found = allocation_for(config)
    if config.transport != "horovod":
        return
    build = horovod_build()
    instead = "run `make setup` to build it, or set world.transport to torch"
    if not build.controllers:
        raise ConfigError(f"world.transport is horovod, but {build.reason}; {instead}")
    if config.controller not in build.controllers:
        raise ConfigError(
            f"this Horovod was built without {config.controller} (it has {', '.join(build.controllers)}); {instead}"
        )
    if config.controller == "mpi" and found is not None:
        mpi_of_slurm()
    elif config.controller == "mpi" and shutil.which("mpirun") is None:
        raise ConfigError("world.controller is mpi, but there is no mpirun in PATH; install Open MPI or use gloo")
