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


def change(stack, changes):
    """changes: {name of a module: function of it}."""
    for name in changes:
        if name in sys.modules:
            changes[name](sys.modules[name])
    finder = _Finder(changes)
    sys.meta_path.insert(0, finder)
    stack.callback(sys.meta_path.remove, finder)
