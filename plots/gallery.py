"""Finds the figures and draws them all."""

import importlib
import json
import pkgutil
from pathlib import Path
from types import ModuleType

from plots import figures
from plots.style import save
from plots.tables import Tables
from suite.record.atomic import write_text


def figure_modules() -> list[ModuleType]:
    """The modules of plots/figures, in the order they ask for.

    Each has `ORDER`, `TITLE`, `MISSING` (what is missing when it cannot be drawn), `CAPTION(tables)` (how to read it,
    then a line an experiment) and `draw(tables)`, which returns None where the tables hold nothing for it.
    """
    names = [item.name for item in pkgutil.iter_modules(figures.__path__)]
    return sorted((importlib.import_module(f"{figures.__name__}.{name}") for name in names), key=lambda of: of.ORDER)


def draw_all(results: Path) -> list[dict[str, str]]:
    """Write results/figures/*.{svg,png} and captions.json; returns what captions.json holds."""
    tables, folder = Tables.read(results), results / "figures"
    folder.mkdir(parents=True, exist_ok=True)
    captions = []
    for module in figure_modules():
        name = module.__name__.rpartition(".")[2]
        figure = module.draw(tables)
        if figure is None:
            # A picture of older tables would contradict its own caption.
            for kind in ("svg", "png"):
                (folder / f"{name}.{kind}").unlink(missing_ok=True)
            captions.append({"name": name, "title": module.TITLE, "missing": module.MISSING})
        else:
            save(figure, folder, name)
            captions.append({"name": name, "title": module.TITLE, "caption": module.CAPTION(tables)})
    write_text(folder / "captions.json", json.dumps(captions, indent=2, ensure_ascii=False) + "\n")
    return captions
