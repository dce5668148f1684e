"""PyTorch's compiler (torch._dynamo) and its symbolic shapes (with sympy), imported only where they are needed: that takes
longer than `import torch`, and every optimizer's step and fake tensor asks for them. While a step is recorded nothing is
compiled, and all sizes are numbers. So their modules stand empty. They answer what training asks: the compiler's
settings, which are a small module of their own, functions that change nothing where nothing is compiled, and questions
about numbers. Whatever else is asked for has the module imported in its place. So has a name that this release's module
does not have: releases differ, and what it would mean is not known."""

import functools
import importlib
import importlib.machinery
import re
import sys
import types

from torch.utils import _python_dispatch as python_dispatch


def _as_it_is(function=None, *args, **kwargs):
    """A decorator, with or without arguments."""
    return function if function is not None else _as_it_is


def _nothing(*args, **kwargs):
    return None


def _truth(value, *args, **kwargs):
    return bool(value)


def _same(value, *args, **kwargs):
    return value


def _none_free(*args, **kwargs):
    return set()


def _no(*args, **kwargs):
    return False


def _equal(first, second):
    if isinstance(first, (tuple, list)) and isinstance(second, (tuple, list)):
        return len(first) == len(second) and all(map(_equal, first, second))
    return bool(first == second)


def _none(*args, **kwargs):
    return ()


class _Nowhere:
    """The type of compiled modules, and of symbols: there are none."""


class _NeverRaisedError(RuntimeError):
    pass


# What is known without the compiler, by the names of its modules.
KNOWN = {
    "torch._dynamo": {
        "disable": _as_it_is, "allow_in_graph": _as_it_is, "assume_constant_result": _as_it_is,
        **dict.fromkeys(("graph_break", "reset", "mark_dynamic", "mark_static", "mark_static_address"), _nothing),
        "is_compiling": _no, "OptimizedModule": _Nowhere,
    },
    "torch._dynamo.eval_frame": {"OptimizedModule": _Nowhere},
    "torch._dynamo.trace_rules": {"clear_lru_cache": _nothing},
    "torch._dynamo.utils": {"get_optimize_ddp_mode": lambda: "ddp_optimizer", "is_compile_supported": _no},
    "torch.fx.experimental.symbolic_shapes": {
        **dict.fromkeys(("guard_or_false", "guard_or_true", "guard_size_oblivious", "statically_known_true", "expect_true",
                         "definitely_true"), _truth),
        **dict.fromkeys(("has_free_unbacked_symbols", "has_free_symbols", "is_nested_int", "is_symbolic"), _no),
        **dict.fromkeys(("free_symbols", "free_unbacked_symbols"), _none_free),
        **dict.fromkeys(("_iterate_exprs", "_iterate_nodes"), _none),
        **dict.fromkeys(("guard_int", "optimization_hint", "guarding_hint_or_throw"), _same),
        "compute_unbacked_bindings": _nothing, "GuardOnDataDependentSymNode": _NeverRaisedError,
        "has_guarding_hint": lambda value: True, "sym_eq": _equal,
        "sym_and": lambda *values: all(values), "sym_or": lambda *values: any(values),
    },
    "torch.utils._sympy.functions": {"Max": max},
    "sympy": {"Basic": _Nowhere},
}  # fmt: skip
# Parts that do not need the rest. Others import each other in the order that their package begins with.
ALONE = frozenset(["torch._dynamo.config", "torch._dynamo._trace_wrapped_higher_order_op"])
SETTINGS = {"torch._dynamo": "torch._dynamo.config", "torch.fx.experimental.symbolic_shapes": "torch.fx.experimental._config"}


@functools.cache
def _is_in(name, module, loader):
    return re.search(rf"\b{name}\b", loader.get_source(module) or "") is not None


class _Empty(types.ModuleType):
    def __getattr__(self, name):
        path = f"{self.__name__}.{name}"
        if name in KNOWN[self.__name__] and _is_in(name, self.__name__, self.__spec__.loader.original):
            return KNOWN[self.__name__][name]
        if path in KNOWN:
            return importlib.import_module(path)
        if name.startswith("__") and name not in ("__all__", "__version__"):  # asked of any module
            raise AttributeError(f"module '{self.__name__}' has no attribute '{name}'")
        fill(self)
        return getattr(importlib.import_module(self.__name__), name)


def fill(module):
    """Its package is imported as if nothing of it had been: its modules go by the order in which they import each other.
    Who has an empty part of it is answered by the real one."""
    parent = module.__name__.rpartition(".")[0]
    package = sys.modules[parent] if parent in KNOWN else module
    if not isinstance(package, _Empty):
        return
    for name in KNOWN:
        if name.startswith(f"{package.__name__}.") and name in sys.modules:
            vars(package).pop(name.rpartition(".")[2], None)
            del sys.modules[name]
    loader = package.__spec__.loader
    package.__class__, package.__loader__, package.__spec__.loader = types.ModuleType, loader.original, loader.original
    try:
        with python_dispatch._disable_current_modes():
            loader.original.exec_module(package)
    except BaseException:
        package.__class__, package.__spec__.loader = _Empty, loader
        raise


class _Later:
    """The loader of an empty module."""

    def __init__(self, original):
        self.original = original

    def __getattr__(self, name):  # of the module's source, say
        return getattr(self.original, name)

    def create_module(self, spec):
        return _Empty(spec.name)

    def exec_module(self, module):
        if module.__name__ in SETTINGS:
            importlib.import_module(SETTINGS[module.__name__])


class _Loaded(_Later):
    """The loader of a module that came while it was looked for."""

    def create_module(self, spec):
        return sys.modules[spec.name]


class _Finder:
    def find_spec(self, name, path=None, target=None):
        parent = sys.modules.get(name.rpartition(".")[0])
        if isinstance(parent, _Empty) and name not in KNOWN and name not in ALONE:
            fill(parent)
        if name in sys.modules:  # it came with the package
            spec = sys.modules[name].__spec__
            spec.loader = _Loaded(spec.loader)
            return spec
        whole = getattr(parent, "__name__", None) in KNOWN and not isinstance(parent, _Empty)
        spec = importlib.machinery.PathFinder.find_spec(name, path, target) if name in KNOWN and not whole else None
        if spec is not None and spec.loader is not None:
            spec.loader = _Later(spec.loader)
        return spec


def put_off(stack):
    """Until the stack is left. A module that is empty then can still be filled."""
    finder = _Finder()
    sys.meta_path.insert(0, finder)
    stack.callback(sys.meta_path.remove, finder)
