"""Whether a program that imports another framework trains without PyTorch. Many import TensorFlow for their log alone. A wrong
yes costs a job its estimate, a wrong no the time of a capture. So it is yes only where one of the program's own files
imports the framework, and none of those that it can import names PyTorch, a library that trains by it, or a module by its
text.

Which files those are the standard library's modulefinder tells: it reads them, and runs none."""

import modulefinder
import os
import sys
import sysconfig

LONGEST = 1 << 20  # a file of the program
NAMES = (b"torch", b"lightning", b"accelerate", b"ultralytics", b"timm", b"fastai", b"diffusers", b"monai", b"peft",
         b"Trainer", b"import_module", b"__import__", b"hydra")  # fmt: skip


def _is_own(path):
    """Neither Python's nor an installed package's."""
    roots = [os.path.realpath(sysconfig.get_path(name)) + os.sep for name in ("stdlib", "platstdlib")]
    path = os.path.realpath(path)
    return "-packages" + os.sep not in path + os.sep and not any((path + os.sep).startswith(root) for root in roots)


def _importer(frame):
    """The file whose statement it is."""
    while frame is not None and "importlib" in frame.f_code.co_filename:
        frame = frame.f_back
    return frame and frame.f_code.co_filename


def _own_files(main):
    """Of the module `main`: its own and those that it can import."""
    finder = modulefinder.ModuleFinder(path=[path for path in sys.path if _is_own(path or os.getcwd())])
    spec = getattr(main, "__spec__", None)
    if spec is not None:  # python -m
        finder.import_hook(spec.name)
    else:
        finder.run_script(main.__file__)
    return [module.__file__ for module in finder.modules.values() if module.__file__]


def trains_without_torch(frame):
    """frame: of the import."""
    importer, main = _importer(frame), sys.modules.get("__main__")
    if importer is None or not os.path.isfile(importer) or not _is_own(importer):
        return False
    try:
        for path in {importer, *_own_files(main)}:
            with open(path, "rb") as file:
                text = file.read(LONGEST)
            if len(text) == LONGEST or any(name in text for name in NAMES):
                return False
    except Exception:  # a file that is no Python, or cannot be read
        return False
    return True
