"""What carries messages leaves nothing behind."""

import subprocess
import sys

ALONE = """
import os, sys, torch
from suite.world.transports import TorchTransport

def threads():
    names = [open(f"/proc/self/task/{task}/comm").read() for task in os.listdir("/proc/self/task")]
    return sum("gloo" in name for name in names)

transport = TorchTransport.through(f"file://{sys.argv[1]}", 0, 1, torch.device("cpu"))
block = transport.block(1)
for each in (transport, block):
    each.all_reduce(torch.ones(3), "sum").wait()
before = threads()
transport.close()
print(before, threads())
"""


def test_no_thread_of_a_group_outlives_it(tmp_path):
    """Not even while somebody still holds its transports: at interpreter exit such threads abort the process."""
    done = subprocess.run([sys.executable, "-c", ALONE, str(tmp_path / "store")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    before, after = map(int, done.stdout.split())
    assert before >= 2 and after == 0
