"""Usage: python run.py [--capture] FOLDER

The program of a carma.job job: calls the function that FOLDER describes, and leaves its result there. With --capture it
records the training step that the function's capture= makes instead."""

from __future__ import annotations

import sys

if __name__ == "__main__" and not getattr(sys.flags, "safe_path", False):
    del sys.path[0]  # this directory: it is no place of modules

import importlib
import json
import os
import pathlib
import pickle
import traceback
import types
from typing import Any, Dict

from carma import daemon, function
from carma.errors import CarmaError


def _load_main(folder: pathlib.Path, name: str) -> types.ModuleType:
    """The script or the notebook, as it was when the job was submitted. Not under the name __main__: code under `if
    __name__ == "__main__"` is for the submitting process."""
    main = types.ModuleType(function.LOADED_MAIN)
    main.__file__ = name
    sys.modules[function.LOADED_MAIN] = sys.modules["__main__"] = main
    path = folder / function.MAIN
    exec(compile(path.read_bytes(), str(path), "exec", dont_inherit=True), main.__dict__)
    return main


def _load(folder: pathlib.Path, call: Dict[str, Any]) -> types.ModuleType:
    sys.path[:] = call["path"] + [entry for entry in sys.path if entry not in call["path"]]
    daemon.loading = True
    try:
        if call["file"] is not None:
            return _load_main(folder, call["file"])
        module = importlib.import_module(call["module"])
    finally:
        daemon.loading = False
    sys.modules["__main__"] = module  # the arguments may be of classes that it calls so
    return module


def _find(module: types.ModuleType, name: str) -> Any:
    found: Any = module
    for part in name.split("."):
        found = getattr(found, part)
    return getattr(found, "__carma_function__", found)


def _write_result(folder: pathlib.Path, kind: str, value: Any) -> None:
    try:
        answer = pickle.dumps((kind, value))
    except Exception as error:
        text = f"its result cannot be pickled: {error}"
        print(f"carma.run: {text}", file=sys.stderr)
        answer = pickle.dumps(("no value", text))
    part = folder / (function.RESULT + ".part")
    part.write_bytes(answer)
    os.replace(part, folder / function.RESULT)


def _capture(folder: pathlib.Path, call: Dict[str, Any], module: types.ModuleType, args: Any, kwargs: Any) -> None:
    name, qualname = call["capture"]
    owner = module if name in ("__main__", call["module"]) else importlib.import_module(name)
    made = _find(owner, qualname)(*args, **kwargs)
    if not isinstance(made, dict):
        raise CarmaError(f"{qualname} returns {type(made).__name__}: a dict of carma.capture()'s arguments is wanted")
    importlib.import_module("carma.step").capture(path=str(folder / function.CAPTURE), **made)


def main() -> None:
    words = sys.argv[1:]
    record = words[:1] == ["--capture"]
    if len(words) != 1 + record or words[-1].startswith("-"):
        sys.exit("usage: python run.py [--capture] FOLDER")
    folder = pathlib.Path(words[-1])
    try:
        call = json.loads((folder / function.CALL).read_text(encoding="utf-8"))
        arguments = (folder / function.ARGUMENTS).read_bytes()
    except OSError as error:
        sys.exit(f"carma.run: {error.filename}: {error.strerror}: a job's folder has to stay until it has ended")
    try:
        module = _load(folder, call)
        args, kwargs = pickle.loads(arguments)
        if record:
            _capture(folder, call, module, args, kwargs)
            return
        called = _find(module, call["function"])
    except CarmaError as error:
        sys.exit(f"carma.run: {error}")
    try:
        value = called(*args, **kwargs)
    except Exception as error:
        _write_result(folder, "raised", "".join(traceback.format_exception_only(type(error), error)).strip())
        raise
    _write_result(folder, "value", value)


if __name__ == "__main__":
    main()
