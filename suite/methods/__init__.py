"""One file a system. Importing this package finds every method file and registers what it defines.

A new method is a new file here with a `Method` subclass; nothing else has to know its name.
"""

import importlib
import pkgutil

from suite.config.costs import Costs
from suite.methods.base import Method, MethodSettings
from suite.methods.registry import METHODS, settings_from

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")


def build_method(settings: MethodSettings, costs: Costs | None = None) -> Method:
    """The method object for validated settings; `costs` are the configuration's, for methods that plan from them."""
    return METHODS[settings.name](settings, costs)


__all__ = ["METHODS", "Method", "MethodSettings", "build_method", "settings_from"]
