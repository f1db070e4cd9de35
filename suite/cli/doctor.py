"""The examinations behind `suite doctor`."""

import importlib.util
import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

_ON_DISK = {"cifar10": "CIFAR-10", "ptb": "Penn Treebank", "imagenet": "ImageNet"}


@dataclass(frozen=True)
class Finding:
    """One line: what was looked at, whether it is there, and what that means."""

    name: str
    ok: bool
    text: str
    needed: bool = False

    @property
    def mark(self) -> str:
        return "yes" if self.ok else "no"


def examine() -> list[Finding]:
    """Look at everything the suite can use; never raises."""
    checks: list[Callable[[], Finding]] = [
        _python, _machine, _packages, _torch, _gpu, _horovod, _mpirun, _data,
        *(partial(_on_disk, *names) for names in _ON_DISK.items()), _decoded, _disk, _replications,
        _browser, _slurm, _emulation,
    ]  # fmt: skip
    return [check() for check in checks]


def _python() -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    return Finding(
        "Python", sys.version_info[:2] == (3, 11), f"{version} (3.11 is what the lock is made for)", needed=True
    )


def _machine() -> Finding:
    from suite.record.environment import cpu_name

    pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    usable = len(os.sched_getaffinity(0))
    return Finding("machine", True, f"{cpu_name()}, {usable} usable cores, {pages * size / 2**30:.0f} GiB")


def _packages() -> Finding:
    missing = [name for name in ("pydantic", "pyarrow", "pandas", "seaborn", "mlflow", "snakemake", "scipy", "jinja2")
               if importlib.util.find_spec(name) is None]  # fmt: skip
    return Finding(
        "packages", not missing, f"missing: {', '.join(missing)}; run `make setup`" if missing else "all there", True
    )


def _torch() -> Finding:
    try:
        import torch
        import torch.distributed as dist
    except ImportError as error:
        return Finding("torch", False, f"does not load: {error}", needed=True)
    gloo = (
        "with Gloo"
        if dist.is_available() and dist.is_gloo_available()
        else "without Gloo: no torch.distributed on CPUs"
    )
    return Finding("torch", True, f"{torch.__version__}, {gloo}", needed=True)


def _gpu() -> Finding:
    import torch

    n = torch.cuda.device_count() if torch.cuda.is_available() else 0
    return Finding("GPU", n > 0, f"{n} found" if n else "none; everything runs on the CPU")


def _horovod() -> Finding:
    from suite.world.check import horovod_build

    build = horovod_build()
    lost = "runs use torch.distributed and virtual workers; `make setup` says why"
    text = f"built with {', '.join(build.controllers)}" if build.controllers else f"{build.reason}; {lost}"
    return Finding("Horovod", bool(build.controllers), text)


def _mpirun() -> Finding:
    path = shutil.which("mpirun")
    return Finding("mpirun", path is not None, path or "not in PATH; world.controller: mpi cannot start ranks")


def _data() -> Finding:
    from suite.config.experiment import DigitsConfig, PydocConfig
    from suite.data.digits import load_digits
    from suite.data.pydoc import load_pydoc

    try:
        digits, text = load_digits(DigitsConfig()), load_pydoc(PydocConfig())
    except Exception as error:
        return Finding("embedded data", False, f"cannot be read: {error}", needed=True)
    found = f"{digits.train_size} digits and {text.train_size:,} words to train on"
    return Finding("embedded data", True, found, needed=True)


def _on_disk(name: str, title: str) -> Finding:
    from suite.data import find_data
    from suite.errors import ConfigError

    try:
        found = find_data(name)
    except ConfigError as error:
        return Finding(title, False, str(error))
    return Finding(title, found is not None, str(found.where) if found else "not here; downloaded where it is needed")


def _decoded() -> Finding:
    from suite.data.files import cache_root
    from suite.words import amount_of_bytes

    root = cache_root()
    try:
        size = sum(path.stat().st_size for path in root.rglob("*") if path.is_file())
    except OSError as error:
        return Finding("decoded data", False, f"{root} cannot be read ({error.strerror}); see SUITE_CACHE")
    return Finding("decoded data", True, f"{amount_of_bytes(size)} in {root}" if size else f"none yet in {root}")


def _disk() -> Finding:
    free = shutil.disk_usage(".").free / 2**30
    writable = os.access(".", os.W_OK)
    text = f"{free:.0f} GiB free here" if writable else "this folder cannot be written"
    return Finding("disk", writable and free > 1, text, needed=True)


def _replications() -> Finding:
    from suite.config.profiles import replication_folders

    names = [folder.name for folder in replication_folders()]
    text = ", ".join(names) or "none here; run from the root of a checkout to use the pipeline and cell addresses"
    return Finding("replications", bool(names), text)


def _browser() -> Finding:
    path = shutil.which("chromium")
    return Finding("chromium", path is not None, path or "not here; the report's browser test skips")


def _slurm() -> Finding:
    path = shutil.which("sbatch")
    return Finding("Slurm", path is not None, path or "not here; runs start on this machine")


def _emulation() -> Finding:
    from suite.emulate.check import why_not

    reason = why_not()
    return Finding(
        "emulated network",
        reason is None,
        f"{reason}; iteration times are predicted only" if reason else "suite emulate works",
    )
