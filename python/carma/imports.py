"""Changes to modules that a script may import, made when it does."""

import importlib.machinery
import sys


class _Finder:
    def __init__(self, changes):
        self.changes = changes

    def find_spec(self, name, path=None, target=None):
        if name not in self.changes:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None:
            return spec
        original = spec.loader.exec_module

        def exec_module(module):
            original(module)
            self.changes[name](module)

        spec.loader.exec_module = exec_module
        return spec


class _Unfinished(importlib.machinery.ModuleSpec):
    """Of a module that is being executed, perhaps because it is what imports PyTorch: changed when it is done."""

    @property
    def _initializing(self):
        return self.__dict__.get("_initializing", False)

    @_initializing.setter
    def _initializing(self, value):
        self.__dict__["_initializing"] = value
        module = sys.modules.get(self.name)
        if not value and module is not None:
            self.__dict__.pop("carma_change", lambda module: None)(module)


def change(stack, changes):
    """changes: {name of a module: function of it}."""
    for name in changes:
        module = sys.modules.get(name)
        spec = getattr(module, "__spec__", None)
        if type(spec) is importlib.machinery.ModuleSpec and getattr(spec, "_initializing", False):
            spec.carma_change, spec.__class__ = changes[name], _Unfinished
        elif module is not None:
            changes[name](module)
    finder = _Finder(changes)
    sys.meta_path.insert(0, finder)
    stack.callback(sys.meta_path.remove, finder)
