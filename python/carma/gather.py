"""The source of a function that was written in a notebook or at a prompt, with all definitions from there that it uses.

A job is another process: it can import modules, but no file holds a notebook's cells. So the definitions that the
function uses are looked up in the cells and written into one file. That file imports modules and their contents; other
values are pickled. A value that fits none of these is refused by its name."""

from __future__ import annotations

import ast
import builtins
import dis
import inspect
import io
import linecache
import pickle
import sys
import types
from typing import Any, BinaryIO, Dict, Iterator, List, Optional, Set, Tuple, Union

from carma.errors import Invalid

MOST_VALUE_BYTES = 64 << 20  # of all values together
VALUES = "values.pickle"

_HEAD = f"""import pathlib as __carma_pathlib, pickle as __carma_pickle
__carma_values = __carma_pickle.loads(__carma_pathlib.Path(__file__).with_name({VALUES!r}).read_bytes())
"""
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
Definition = Union[ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef]


def pickled(value: Any) -> Tuple[bytes, List[Any]]:
    """With the classes and functions of __main__ that it refers to."""
    file = io.BytesIO()
    pickler = _Pickler(file)
    pickler.dump(value)
    return file.getvalue(), pickler.of_main


class _Pickler(pickle.Pickler):
    def __init__(self, file: BinaryIO) -> None:
        super().__init__(file)
        self.of_main: List[Any] = []

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, (type, types.FunctionType)) and value.__module__ == "__main__":
            self.of_main.append(value)
        return NotImplemented


def gather(function: types.FunctionType, others: List[Any], ours: object) -> Tuple[str, bytes]:
    """The text of a module with the function and others of __main__, and the pickled VALUES beside it. Decorators that
    are `ours` are left out."""
    gathered = _Gathered(function.__globals__, ours)
    for each in [function, *others]:
        if each.__qualname__ != each.__name__:
            raise Invalid(f"{each.__qualname__} is defined inside another: a job can only find names at the top")
        gathered.define(each.__name__, each)
    values = pickle.dumps(gathered.values)
    if len(values) > MOST_VALUE_BYTES:
        largest = max(gathered.values, key=lambda name: len(gathered.values[name]))
        raise Invalid(
            f"{function.__name__} uses the global {largest!r}, which takes {len(gathered.values[largest]) >> 20} MiB: load "
            f"such data in the function"
        )
    return _HEAD + "\n".join(gathered.lines) + "\n", values


class _Gathered:
    def __init__(self, names: Dict[str, Any], ours: object) -> None:
        self.names, self.ours = names, ours
        self.lines: List[str] = []
        self.values: Dict[str, bytes] = {}
        self._known: Set[str] = set()

    def define(self, name: str, value: Any) -> None:
        """Appends the code that makes `name` be the value; before that, the code it needs."""
        if name in self._known:
            return
        self._known.add(name)
        value = getattr(value, "__carma_function__", value)
        if isinstance(value, types.ModuleType):
            self.lines.append(f"import {value.__name__} as {name}")
        elif isinstance(value, (types.FunctionType, type)) and value.__module__ == self.names.get("__name__"):
            self._definition(name, value)
        elif _can_be_imported(value):
            self.lines.append(f"from {value.__module__} import {value.__qualname__} as {name}")
        else:
            self._value(name, value)

    def _definition(self, name: str, value: Any) -> None:
        node = _find_class(value) if isinstance(value, type) else _find_function(name, value)
        node.decorator_list = [each for each in node.decorator_list if not self._is_ours(each)]
        codes = _methods(value) if isinstance(value, type) else [inspect.unwrap(value).__code__]
        for code in codes:
            _refuse_magic(name, code)
            _refuse_closure(name, code)
        for needed in [*_names_of_definition(node), *(each for code in codes for each in _names_of_code(code))]:
            if needed in self.names and needed != node.name:
                self.define(needed, self.names[needed])
        self.lines.append(ast.unparse(node))
        if node.name != name:
            self.lines.append(f"{name} = {node.name}")

    def _is_ours(self, decorator: ast.expr) -> bool:
        target: ast.expr = decorator.func if isinstance(decorator, ast.Call) else decorator
        path: List[str] = []
        while isinstance(target, ast.Attribute):
            path.insert(0, target.attr)
            target = target.value
        found: Any = self.names.get(target.id) if isinstance(target, ast.Name) else None
        for part in path:
            found = getattr(found, part, None)
        return found is self.ours

    def _value(self, name: str, value: Any) -> None:
        if _is_literal(value):
            self.lines.append(f"{name} = {value!r}")
            return
        try:
            self.values[name], of_main = pickled(value)
        except Exception as error:
            raise Invalid(
                f"the global {name!r} cannot go along ({error}): make it in the function, or hand over its parts"
            ) from None
        for each in of_main:
            self.define(each.__name__, each)
        self.lines.append(f"{name} = __carma_pickle.loads(__carma_values[{name!r}])")


def _refuse_magic(name: str, code: types.CodeType) -> None:
    if "get_ipython" in code.co_names:
        raise Invalid(f"{name} uses a magic of IPython (a line with % or !): a job has none, write it in Python")


def _refuse_closure(name: str, code: types.CodeType) -> None:
    free = [each for each in code.co_freevars if each != "__class__"]
    if free:
        raise Invalid(f"{name} uses the variable {free[0]!r} of the function around it: hand it over as an argument")


def _can_be_imported(value: Any) -> bool:
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(name, str) or not name.isidentifier() or module == "__main__":
        return False
    return getattr(sys.modules.get(module), name, None) is value


def _is_literal(value: Any) -> bool:
    try:
        return bool(ast.literal_eval(repr(value)) == value) and len(repr(value)) < 10000
    except Exception:  # comparing may raise anything
        return False


def _methods(kind: type) -> List[types.CodeType]:
    """Only written ones: the code that a decorator makes is not in a cell."""
    found = []
    for member in vars(kind).values():
        if isinstance(member, property):
            parts = [member.fget, member.fset, member.fdel]
        else:
            parts = [getattr(member, "__func__", member)]
        for part in parts:
            code = getattr(inspect.unwrap(part) if callable(part) else part, "__code__", None)
            if isinstance(code, types.CodeType) and linecache.getlines(code.co_filename):
                found.append(code)
    return found


def _parsed(filename: str) -> Optional[ast.Module]:
    try:
        return ast.parse("".join(linecache.getlines(filename)))
    except SyntaxError:
        return None


def _first_line(node: Definition) -> int:
    return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])


def _find_function(name: str, function: Any) -> Definition:
    code: types.CodeType = inspect.unwrap(function).__code__
    for node in ast.walk(_parsed(code.co_filename) or ast.Module([], [])):
        if isinstance(node, _FUNCTIONS) and node.name == code.co_name and _first_line(node) == code.co_firstlineno:
            return node
    raise Invalid(
        f"the source of {name} is not to be found: write it with def in a cell, or in a module that can be imported"
    )


def _find_class(kind: type) -> Definition:
    """By the cell of one of its methods; else the last cell that defines a class of this name."""
    cells = [code.co_filename for code in _methods(kind)]
    cells += [name for name, entry in reversed(list(linecache.cache.items())) if len(entry) == 4 and entry[1] is None]
    for cell in cells:
        found = [node for node in ast.walk(_parsed(cell) or ast.Module([], []))
                 if isinstance(node, ast.ClassDef) and node.name == kind.__name__]  # fmt: skip
        if found:
            return found[-1]
    raise Invalid(
        f"the source of the class {kind.__name__} is not to be found: write it in a cell, or in a module that can be imported"
    )


def _names_of_code(code: types.CodeType) -> Iterator[str]:
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME") and not hasattr(builtins, str(instruction.argval)):
            yield str(instruction.argval)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names_of_code(constant)


def _names_of_definition(node: Definition) -> Iterator[str]:
    """Names that are looked up when it is defined: decorators, defaults, annotations, bases, the body of a class."""
    pending: List[ast.AST] = [node]
    while pending:
        at = pending.pop()
        if isinstance(at, ast.Name) and isinstance(at.ctx, ast.Load) and not hasattr(builtins, at.id):
            yield at.id
        for field, value in ast.iter_fields(at):
            if field == "body" and isinstance(at, (*_FUNCTIONS, ast.Lambda)):
                continue
            pending.extend(each for each in (value if isinstance(value, list) else [value]) if isinstance(each, ast.AST))
