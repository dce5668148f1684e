"""Loaded by every Python interpreter of a command that carmad runs to know its memory (docs/automatic-capture.md): this
folder comes first in PYTHONPATH then. Where PyTorch is imported, carma.automatic records the training. Everything else
is as without it, and an interpreter without PyTorch pays a few file operations."""

import _thread
import os
import sys

# What a script trains with that cannot be recorded: trying it would take the whole time for nothing.
_OTHERS = {"tensorflow": "TensorFlow", "keras": "Keras", "jax": "JAX", "flax": "JAX", "mxnet": "MXNet", "paddle": "Paddle"}


class _Torch:
    """Finds torch as without it, and has carma.automatic look on once torch is loaded. Others may ask for torch first and
    import it later, or never: transformers and datasets do. So it stays until torch has been loaded."""

    def __init__(self):
        self.thread = _thread._local()  # .asks: it is being asked by itself

    def find_spec(self, name, path=None, target=None):
        if name in _OTHERS and path is None and "torch" not in sys.modules:
            self._refuse(name, sys._getframe(1))
        if name != "torch" or getattr(self.thread, "asks", False):
            return None
        self.thread.asks = True
        try:
            spec = self._found_by_others(name, path, target)
        finally:
            self.thread.asks = False
        if hasattr(getattr(spec, "loader", None), "exec_module"):
            self._look_on(spec.loader)
        return spec

    def _refuse(self, name, frame):
        if _carma("carma.without_torch").trains_without_torch(frame):
            _carma().refuse(_descriptor, _start, _OTHERS[name])

    def _found_by_others(self, name, path, target):
        for finder in list(sys.meta_path):
            spec = finder.find_spec(name, path, target) if hasattr(finder, "find_spec") else None
            if spec is not None:
                return spec
        return None

    def _look_on(self, loader):
        load = loader.exec_module

        def exec_module(module):
            os.environ["CUDA_VISIBLE_DEVICES"] = ""  # before PyTorch looks
            load(module)
            if self in sys.meta_path:
                sys.meta_path.remove(self)
                _carma().begin(_descriptor, _start)

        loader.exec_module = exec_module


def _carma(name="carma.automatic"):
    """A module of carma's own folder, wherever the script's carma would come from. That folder may hold all of a
    system's modules: it does not enter sys.path."""
    import importlib.util

    folder = os.path.join(os.path.dirname(_folder), "carma")
    found = getattr(sys.modules.get("carma"), "__path__", None)
    if found is None or os.path.realpath(folder) not in [os.path.realpath(entry) for entry in found]:
        for name in [name for name in sys.modules if name == "carma" or name.startswith("carma.")]:
            del sys.modules[name]
        spec = importlib.util.spec_from_file_location(
            "carma", os.path.join(folder, "__init__.py"), submodule_search_locations=[folder]
        )
        sys.modules["carma"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules["carma"])
    return importlib.import_module(name)


def _is_pipe(descriptor):
    try:
        return descriptor >= 0 and (os.fstat(descriptor).st_mode & 0o170000) == 0o010000
    except OSError:
        return False


def _keep_for_children(descriptor):
    """Python closes it for the programs that it starts."""
    import _posixsubprocess

    original = _posixsubprocess.fork_exec

    def fork_exec(args, executables, close, keep, *rest):
        if _is_pipe(descriptor):
            keep = tuple(sorted({*keep, descriptor}))
        return original(args, executables, close, keep, *rest)

    _posixsubprocess.fork_exec = fork_exec


def _chain():
    """The sitecustomize that this one hides."""
    own = sys.modules.pop(__name__, None)
    try:
        import sitecustomize  # noqa: F401
    except ImportError as error:
        if error.name != "sitecustomize":
            raise
    finally:
        sys.modules.setdefault(__name__, own)


_folder = os.path.dirname(os.path.abspath(__file__))
_start = os.times().elapsed
_number = os.environ.get("CARMA_AUTO_CAPTURE_FD", "")
_descriptor = int(_number) if _number.isdigit() else -1
sys.path[:] = [_entry for _entry in sys.path if os.path.abspath(_entry) != _folder]
sys.path_importer_cache.pop(_folder, None)
if _is_pipe(_descriptor):
    for _library in ("HF_HUB", "HF_DATASETS", "TRANSFORMERS"):  # they would try for minutes
        os.environ.setdefault(f"{_library}_OFFLINE", "1")
    sys.meta_path.insert(0, _Torch())
    _keep_for_children(_descriptor)
_chain()
