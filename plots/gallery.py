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
from suite.words import listing, plural

# Tables that no training run of the profile has a part in.
_OF_MODELS = {"predicted", "crossings", "iteration_times", "emulated", "emulated_timeline"}
_NAMED_CELLS = 5  # that are not finished; more are counted


class _Asked:
    """The tables, and which of them a figure has asked for."""

    def __init__(self, tables: Tables):
        self._tables, self._names = tables, set()

    def __getattr__(self, name: str) -> object:
        self._names.add(name)
        return getattr(self._tables, name)

    @property
    def shows_runs(self) -> bool:
        return bool(self._names - _OF_MODELS)


def _unfinished(tables: Tables) -> str:
    """Which cells no figure can show, as a sentence; empty when all are done."""
    left = tables.states[tables.states.state != "done"]
    if left.empty:
        return ""
    named = [f"{run.partition('/')[2]} ({state})" for run, state in zip(left.run, left.state, strict=True)]
    more = len(named) - _NAMED_CELLS
    shown = named[:_NAMED_CELLS] + ([f"{more} more"] if more > 0 else [])
    return f"Not finished, and so in no figure: {listing(shown)} of {plural(len(tables.states), 'cell')}."


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
    captions, unfinished = [], _unfinished(tables)
    for module in figure_modules():
        name = module.__name__.rpartition(".")[2]
        asked = _Asked(tables)
        figure = module.draw(asked)
        if figure is None:
            # A picture of older tables would contradict its own caption.
            for kind in ("svg", "png"):
                (folder / f"{name}.{kind}").unlink(missing_ok=True)
            missing = f"{module.MISSING}; some cells are not finished" if unfinished else module.MISSING
            captions.append({"name": name, "title": module.TITLE, "missing": missing})
        else:
            save(figure, folder, name)
            caption = module.CAPTION(tables)
            if unfinished and asked.shows_runs:
                caption += f"\n{unfinished}"
            captions.append({"name": name, "title": module.TITLE, "caption": caption})
    write_text(folder / "captions.json", json.dumps(captions, indent=2, ensure_ascii=False) + "\n")
    return captions
