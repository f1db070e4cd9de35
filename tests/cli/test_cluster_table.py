"""What the table of a cluster's nodes complains about."""

from suite.cli.cluster import complaints_about

NODE = {
    "node": "n1", "python": "3.11.7", "torch": "2.14.1", "horovod": "gloo", "suite": "0.1.0", "cores": 8, "gpus": 4,
    "shared": True, "skew": 0.001, "peer": "n2", "latency": 1e-5, "bandwidth": 1e9, "interface": "ib0",
}  # fmt: skip


def test_nodes_that_agree_are_fine():
    assert complaints_about([NODE, NODE | {"node": "n2", "peer": "n1"}], gpus=4) == []


def test_everything_that_keeps_nodes_apart_is_said():
    odd = NODE | {"node": "n2", "shared": False, "skew": -3.2, "gpus": 3, "torch": "2.9.0", "peer": "n1"}
    del odd["latency"]
    found = complaints_about([NODE, odd, {"node": "n3", "missing": "no answer within 9 s"}], gpus=4)
    for part in ("n2 does not see this folder", "n2's clock is -3.2 s off", "n2 has 3 usable GPUs", "n3: no answer",
                 "n2 cannot reach n1", "nodes differ in torch: 2.14.1, 2.9.0"):  # fmt: skip
        assert any(part in complaint for complaint in found), part
    assert len(found) == 6
