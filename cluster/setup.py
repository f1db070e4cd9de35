"""Sets the suite up in .venv: the packages of requirements.lock, Horovod from source, and the suite itself.

`make setup` runs this with the system's Python 3.11, before anything is installed: standard library only. A complete
set-up is recognised within a second; an interrupted one is taken up again by the next call. Horovod is the one part
that may fail, because the suite has other transports.
"""

import fcntl
import hashlib
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv"
LOCK = ROOT / "requirements.lock"
RECIPE = ROOT / "cluster" / "horovod"


class Failed(Exception):
    """A step that did not work; the text is the reason, without a full stop."""


class Step:
    """A numbered line on the screen: what is being done, how far it is, how long it took."""

    def __init__(self, number: int, title: str):
        self.head = f"[{number}/4] {title} ... "
        self.begun = self.shown = time.monotonic()
        self.live = sys.stdout.isatty()
        print(self.head, end="" if self.live else "\n", flush=True)

    def say(self, text: str, end: str = "") -> None:
        self.shown = time.monotonic()
        text = f"{text} ({self.shown - self.begun:.0f} s)"
        print(f"\r\033[K{self.head}{text}{end}" if self.live else f"      {text}\n", end="", flush=True)

    def tick(self, text: str) -> None:
        """Progress, at a pace that suits a terminal or a log."""
        if time.monotonic() - self.shown > (0.5 if self.live else 20):
            self.say(text)

    def done(self, text: str = "done") -> None:
        self.say(text, end="\n")


def digest(*paths: Path) -> str:
    """Identifies the content of files, or of folders of files, in this checkout."""
    total = hashlib.sha256()
    for path in paths:
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file():
                total.update(f"{file.relative_to(ROOT)} {file.stat().st_size}\n".encode() + file.read_bytes())
    return total.hexdigest()


def pinned(name: str, file: Path = LOCK) -> str:
    return re.search(rf"^{name}==([^\s;]+)", file.read_text(), re.MULTILINE)[1]


def offer() -> set:
    """What the environment offers or asks of Horovod now.

    More of it than last time makes Horovod due again; less of it, say an MPI module not loaded today, changes nothing.
    """
    if os.environ.get("SUITE_WITHOUT_HOROVOD"):
        return set()
    compiler = (os.environ.get("CXX") or "g++").split()[0]
    tools = {"compiler": compiler, "make": "make", "mpi": "mpicxx"}
    gpu = os.environ.get("HOROVOD_GPU_OPERATIONS")
    return {"horovod", *(word for word, tool in tools.items() if shutil.which(tool)), *([f"gpu={gpu}"] if gpu else [])}


def wheel_key(torch: str, controllers: str, gpu: str, recipe: str) -> str:
    """Names a cached Horovod wheel after everything that makes it differ from another one."""
    version = pinned("horovod", RECIPE / "requirements.txt")
    python = "cp" + "".join(map(str, sys.version_info[:2]))
    parts = (f"horovod-{version}", f"torch-{torch}", python, platform.machine(), controllers, gpu, recipe[:12])
    return "_".join(filter(None, parts))


def environment() -> dict:
    """The children's environment: our venv first, and nobody else's packages, pip habits or ban on compiled files."""
    foreign = ("PYTHONPATH", "PYTHONHOME", "PIP_USER", "PYTHONDONTWRITEBYTECODE")
    kept = {name: value for name, value in os.environ.items() if name not in foreign}
    return {**kept, "PATH": f"{VENV / 'bin'}{os.pathsep}{os.environ['PATH']}", "VIRTUAL_ENV": str(VENV)}


def pip(*arguments) -> list:
    return [str(VENV / "bin" / "python"), "-u", "-m", "pip", "--disable-pip-version-check", *map(str, arguments)]


def reason(log: Path) -> str:
    """The line of a log that says what went wrong: a compiler's or CMake's first error, else the last thing said."""
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    for at, line in enumerate(lines):
        if line.startswith("CMake Error"):
            return " ".join(lines[at : at + 2])
        if re.search(r"\berror: (?!subprocess-exited)", line):
            return line.removeprefix("error: ")
    return next((line for line in reversed(lines) if re.match(r"ERROR|\w*Error", line)), (lines or ["no output"])[-1])


def run(step: Step, name: str, command: list, progress) -> None:
    """Runs a command with its output in a log, shows how far it is, and never leaves it running behind us."""
    log = VENV / f"setup-{name}.log"
    with log.open("w") as output:
        # A session of its own, so that all of it can be ended; it inherits the lock, so that after a kill the next
        # set-up waits for what is still writing here.
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
            cwd=ROOT, env=environment(), start_new_session=True, close_fds=False,
        )  # fmt: skip
    try:
        while process.poll() is None:
            time.sleep(0.2)
            step.tick(progress(log.read_text(errors="replace")))
    except BaseException:
        os.killpg(process.pid, signal.SIGINT)  # pip then removes its temporary files, which a termination leaves
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
        raise
    if process.returncode:
        shown = log.relative_to(ROOT) if ROOT in log.parents else log
        raise Failed(f"{reason(log).rstrip('.')}; see {shown}")


def python_that_fits() -> str:
    """The base interpreter: never .venv's own, which may be about to be replaced."""
    if sys.version_info[:2] != (3, 11):
        found = ".".join(map(str, sys.version_info[:2]))
        raise Failed(f"The suite needs Python 3.11 and this is {found}: try `make setup PYTHON=/path/to/python3.11`")
    if not sys.platform.startswith("linux"):
        raise Failed("The suite is pinned and tested for Linux: use a Linux machine or a container")
    if not find_spec("ensurepip"):
        raise Failed("This Python cannot make virtual environments: on Debian and Ubuntu, `apt install python3-venv`")
    return sys.executable if sys.prefix == sys.base_prefix else str(Path(sys.base_prefix, "bin", "python3.11"))


def fresh_venv(python: str, mark: Path) -> None:
    """An empty .venv in place of an outdated or half-made one of ours: pip would trust half a package that a kill left.

    The mark, empty until the packages are complete, tells ours from a folder that somebody made by hand.
    """
    VENV.mkdir(exist_ok=True)
    if any(VENV.iterdir()) and not mark.exists():
        raise Failed("there is a .venv that `make setup` did not make: move it away or delete it")
    mark.write_text("")
    for old in VENV.iterdir():
        if old.is_dir() and not old.is_symlink():
            shutil.rmtree(old)
        elif old != mark:
            old.unlink()
    made = subprocess.run([python, "-m", "venv", str(VENV)], check=False, capture_output=True, text=True)
    if made.returncode:
        raise Failed(f"`{python} -m venv .venv` failed: {(made.stdout + made.stderr).strip().splitlines()[-1]}")


def packages(step: Step) -> None:
    count = len(re.findall(r"^\S+==", LOCK.read_text(), re.MULTILINE))
    installed = VENV / "lib" / "python3.11" / "site-packages"

    def progress(log: str) -> str:
        if "\nInstalling collected packages" in log:
            present = len(list(installed.glob("*.dist-info"))) - 1  # pip itself is not in the lock
            return f"{present} of {count} packages installed"
        return f"{len(re.findall('^Collecting ', log, re.MULTILINE))} of {count} packages fetched"

    # Not compiled in advance: Python compiles what is imported when it is imported, and that is a small part.
    run(step, "packages", pip("install", "--no-compile", "--require-hashes", "-r", LOCK), progress)


def install_wheel(step: Step, folder: Path) -> bool:
    """Installs the folder's Horovod wheel; says whether there was one and it loads."""
    wheel = next(folder.glob("horovod-*.whl"), None)
    if not wheel:
        return False
    install = pip("install", "--no-index", "--no-deps", "--force-reinstall", wheel)
    load = [str(VENV / "bin" / "python"), "-c", "import horovod.torch"]
    try:
        for command in (install, load):
            run(step, "wheel", command, lambda log: "installing the wheel")
    except Failed:
        return False
    return True


def build_wheel(step: Step, folder: Path) -> None:
    """Compiles Horovod and puts the wheel into the cache by a rename, so that others see it whole or not at all."""

    def progress(log: str) -> str:
        percent = re.findall(r"\[ *(\d+)%\]", log)
        return f"{percent[-1]} % compiled" if percent else "configuring the build"

    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        run(step, "horovod", [str(RECIPE / "build.sh"), scratch], progress)
        wheel = next(Path(scratch).glob("horovod-*.whl"))
        wheel.replace(folder / wheel.name)


def horovod_is_settled(mark: Path) -> bool:
    words = mark.read_text().splitlines() if mark.exists() else []
    return words[:1] == [digest(RECIPE)] and offer() <= set(words)


def horovod(step: Step, mark: Path) -> None:
    """Horovod from the cache or from source; where that fails, a sentence on the screen and in horovod-missing.txt."""
    note, seen = VENV / "horovod-missing.txt", offer()
    try:
        if os.environ.get("SUITE_WITHOUT_HOROVOD"):
            raise Failed("left out because SUITE_WITHOUT_HOROVOD is set")
        cache = os.environ.get("SUITE_CACHE") or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache", "lags-suite")
        controllers = "gloo-mpi" if "mpi" in seen else "gloo"
        gpu = os.environ.get("HOROVOD_GPU_OPERATIONS", "")
        key = wheel_key(pinned("torch"), controllers, gpu, digest(RECIPE))
        folder = Path(cache).expanduser().absolute() / "wheels" / key
        built = not install_wheel(step, folder)
        if built:
            build_wheel(step, folder)
            if not install_wheel(step, folder):
                raise Failed(f"{reason(VENV / 'setup-wheel.log')}; see .venv/setup-wheel.log")
    except (Failed, OSError) as why:
        lost = "the suite runs over torch.distributed and virtual workers; Horovod runs are skipped"
        note.write_text(f"Horovod is not installed ({why}): {lost} (`rm .venv/horovod; make setup` tries again).\n")
        step.done("not installed")
        print(note.read_text(), end="", flush=True)
    else:
        note.unlink(missing_ok=True)
        step.done(f"{controllers.replace('-', ' and ')}, {'built' if built else 'from the cache'}")
    mark.write_text("\n".join([digest(RECIPE), *sorted(seen)]) + "\n")


def set_up(python: str) -> None:
    """The four steps; each leaves a mark of what it was made from, and is done again when that has changed."""
    # A moved checkout counts as another one: the scripts in .venv hold its full path.
    mark, made_from = VENV / "packages", digest(LOCK) + str(VENV)
    there = mark.exists() and mark.read_text() == made_from and (VENV / "bin" / "python").exists()
    note = "there already" if there else "done"
    step = Step(1, "Python environment in .venv")
    if not there:
        fresh_venv(python, mark)
    step.done(note)
    step = Step(2, "Packages of requirements.lock")
    if not there:
        packages(step)
        mark.write_text(made_from)
    step.done(note)

    step = Step(3, f"Horovod {pinned('horovod', RECIPE / 'requirements.txt')} from source")
    if horovod_is_settled(VENV / "horovod"):
        step.done("settled already")
    else:
        horovod(step, VENV / "horovod")

    step = Step(4, "The suite itself")
    run(step, "suite", pip("install", "--no-deps", "--no-build-isolation", "-e", ROOT), lambda log: "installing")
    compile_kernels = [
        str(VENV / "bin" / "python"),
        "-c",
        "from suite.compress.kernels import compile_all; compile_all()",
    ]
    run(step, "kernels", compile_kernels, lambda log: "compiling the selection kernels")
    step.done()


def main() -> int:
    try:
        python = python_that_fits()
    except Failed as why:
        print(f"{why}.", file=sys.stderr)
        return 2
    ready = VENV / "ready"
    wanted = digest(LOCK, ROOT / "pyproject.toml", RECIPE, Path(__file__).resolve()) + str(VENV)

    def complete() -> bool:
        stamped = ready.exists() and ready.read_text() == wanted and (VENV / "bin" / "python").exists()
        return stamped and horovod_is_settled(VENV / "horovod")

    if complete():
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        with Path(__file__).open("r+") as alone:
            os.set_inheritable(alone.fileno(), True)
            try:
                fcntl.flock(alone, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                print("Another set-up is at work in this folder: waiting for it.", flush=True)
                fcntl.flock(alone, fcntl.LOCK_EX)
            if not complete():
                ready.unlink(missing_ok=True)
                set_up(python)
                ready.write_text(wanted)
    except Failed as why:
        print(f"\nThe set-up failed: {why}.", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nInterrupted: the next `make setup` goes on from here.", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
