"""The documentation's examples work, and its links lead somewhere."""

import re
from pathlib import Path

import pytest
import yaml

from helpers import ROOT
from suite.methods import METHODS
from suite.words import method_label
from training import summary_of, trainer

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted(ROOT.glob("replications/*/README.md"))]


def test_the_example_method_trains(tiny, tmp_path):
    """The code of docs/adding-a-method.md, as it stands there."""
    page = (ROOT / "docs" / "adding-a-method.md").read_text()
    ((code,), (line,)) = (re.findall(rf"```{kind}\n(.*?)```", page, re.DOTALL) for kind in ("python", "yaml"))
    try:
        exec(compile(code, "random_k.py", "exec"), {"__name__": "random_k"})
        run = trainer(tiny(**yaml.safe_load(line)["random_k"], train={"max_iterations": 5}), tmp_path)
        run.run()
        assert run.method.label == method_label("random_k") == summary_of(tmp_path)["label"] == "Random-k"
        assert run.exchange.plan.entries < 0.02 * run.layout.size
        assert all(worker.residual.any() for worker in run.workers)
        assert summary_of(tmp_path)["own_bytes"] == {"residual": 4 * run.layout.size}
    finally:
        METHODS.pop("random_k", None)


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_links_lead_somewhere(page: Path):
    for target, anchor in re.findall(r"\]\(([^)#:]*)(?:#([^)]*))?\)", page.read_text()):
        place = page.parent / target if target else page
        assert place.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.*)$", place.read_text(), re.MULTILINE)
            assert anchor in {re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-") for heading in headings}, (
                anchor
            )


def test_the_readme_names_targets_of_the_makefile():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"(?m)(?:`|^)make ([a-z-]+)", "\n".join(page.read_text() for page in PAGES)))
    assert {"replicate", "test"} <= named <= targets


def test_nothing_of_a_developers_machine_is_named():
    files = [
        path
        for part in ("suite", "plots", "rules", "replications", "docs", "cluster")
        for path in (ROOT / part).rglob("*")
    ]
    for path in [*files, ROOT / "README.md", ROOT / "Makefile", ROOT / "Snakefile"]:
        if path.is_file() and path.suffix != ".png" and "__pycache__" not in path.parts:
            text = path.read_text()
            assert str(ROOT) not in text, path
