"""What carries messages leaves nothing behind."""

import subprocess
import sys

import pytest

COUNT = """
import os, sys, torch, torch.distributed as dist
from suite.world.transports import TorchTransport

def threads():
    names = [open(f"/proc/self/task/{task}/comm").read() for task in os.listdir("/proc/self/task")]
    return sum("gloo" in name for name in names)
"""
OURS = """
transport = TorchTransport.through(f"file://{sys.argv[1]}", 0, 1, torch.device("cpu"))
block = transport.block(1)
block.all_reduce(torch.ones(3), "sum").wait()
before = threads()
transport.close()
print(before, threads())
"""
A_SCRIPTS = """
dist.init_process_group("gloo", init_method=f"file://{sys.argv[1]}", rank=0, world_size=1)
transport = TorchTransport()
transport.all_reduce(torch.ones(3), "sum").wait()
before = threads()
dist.destroy_process_group()
print(before, threads())
"""


@pytest.mark.parametrize("group", [OURS, A_SCRIPTS], ids=["ours", "a script's"])
def test_no_thread_of_a_group_outlives_it(tmp_path, group: str):
    """Not even while somebody still holds its transports: at interpreter exit such threads abort the process."""
    done = subprocess.run(
        [sys.executable, "-c", COUNT + group, str(tmp_path / "store")], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    before, after = map(int, done.stdout.split())
    assert before >= 2 and after == 0
