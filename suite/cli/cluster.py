"""The table behind `suite doctor --slurm`."""

from pathlib import Path
from typing import Any

_LARGEST_SKEW = 1.0  # seconds: timestamps of one run, and make-like tools, want clocks closer than that


def report_cluster(site: Path, patience: float) -> bool:
    """Ask every node of the site's partition and print what they say; whether all can train together."""
    from rich.console import Console
    from rich.table import Table

    from suite.config.site import site_from
    from suite.config.values import read_yaml
    from suite.errors import ConfigError
    from suite.measure.cluster import survey

    if not site.exists():
        raise ConfigError(f"there is no {site}; name the cluster's description with --site")
    described = site_from(read_yaml(site))
    if described is None:
        raise ConfigError(f"{site} has no section `slurm`; see cluster/slurm/site.yaml")
    rows = survey(described, patience)
    table = Table("node", "Python", "torch", "Horovod", "cores", "GPUs", "this folder", "clock", "to", "there and back",
                  "bandwidth", "by")  # fmt: skip
    for row in rows:
        table.add_row(*_cells(row))
    Console(width=160).print(table)
    complaints = complaints_about(rows, described.gpus_per_node)
    for complaint in complaints:
        print(complaint)
    return not complaints


def _cells(row: dict[str, Any]) -> list[str]:
    if "missing" in row:
        return [row["node"], row["missing"]]
    way = [row.get("peer", ""), "", ""]
    if "latency" in row:
        way[1:] = [f"{row['latency'] * 1e6:.0f} us", f"{row['bandwidth'] * 8 / 1e9:.2f} Gb/s"]
    seen = "seen" if row["shared"] else "not seen"
    counts = [str(row["cores"]), str(row["gpus"]), seen, f"{row['skew'] * 1e3:+.1f} ms"]
    return [row["node"], row["python"], row["torch"], row["horovod"], *counts, *way, row["interface"]]


def complaints_about(rows: list[dict[str, Any]], gpus: int) -> list[str]:
    """A sentence for everything that would keep nodes from training together.

    Args:
        rows: of `suite.measure.cluster.survey`.
        gpus: how many a node should have.
    """
    found = [f"{row['node']}: {row['missing']}" for row in rows if "missing" in row]
    present = [row for row in rows if "missing" not in row]
    for row in present:
        if not row["shared"]:
            found.append(f"{row['node']} does not see this folder; run folders have to be on storage all nodes share")
        if abs(row["skew"]) > _LARGEST_SKEW:
            found.append(f"{row['node']}'s clock is {row['skew']:+.1f} s off; ask for time synchronisation")
        if row["gpus"] < gpus:
            found.append(f"{row['node']} has {row['gpus']} usable GPUs and slurm.gpus_per_node is {gpus}")
        if "peer" in row and "latency" not in row:
            found.append(f"{row['node']} cannot reach {row['peer']}; name another interface in SUITE_INTERFACE")
    for what in ("python", "torch", "horovod", "suite"):
        kinds = {row[what] for row in present}
        if len(kinds) > 1:
            found.append(f"nodes differ in {what}: {', '.join(sorted(map(str, kinds)))}")
    return found
