"""Makes the daemon's job specification (docs/formats/job.md) from the arguments of carma.submit(), as `carma submit`
does."""

from __future__ import annotations

import contextlib
import os
import resource
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from carma import units
from carma.errors import Invalid
from carma.fields import FIELDS, JobFields

if TYPE_CHECKING:
    PathLike = Union[str, os.PathLike[str]]

MOST_TEXT = 8 << 20  # bytes of a summary, of a capture
CAPTURE_AUTO = "auto"  # carma is to record it; a file of that name is ./auto
MOST_CODE = 1 << 20  # bytes of a program file; a larger one is data
MOST_NAME = 128
_LIMITS = ("core", "cpu", "data", "fsize", "memlock", "msgqueue", "nofile", "nproc", "rss", "sigpending", "stack", "vmem")


class Options(JobFields, total=False):
    """Those of `carma submit`, and the variables in place of this process's."""

    environment: Mapping[str, str]


Command = Union[str, Sequence["PathLike"]]
Specification = Dict[str, Any]

_READ: Dict[str, Callable[[str, Any], Any]] = {
    "switch": lambda name, value: bool(value),
    "size": units.size_bytes,
    "factor": units.factor_permille,
    "time": units.time_ns,
    "word": lambda name, value: ",".join(value) if isinstance(value, (list, tuple)) else value,  # tag=["a", "b"]
}


def check_names(options: Mapping[str, Any]) -> None:
    unknown = sorted(set(options) - set(Options.__annotations__))
    if unknown:
        raise TypeError(f"there is no option {unknown[0]!r}: one of {', '.join(sorted(Options.__annotations__))}")


def specification(command: Command, options: Options) -> Specification:
    """The request for one job. Options that are None count as not given."""
    check_names(options)
    given: Dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    words = _words(command)
    where = directory(given.get("chdir", "."))
    spec: Specification = {
        "name": _base_name("sh" if isinstance(command, str) else words[0])[:MOST_NAME],
        "command": words,
        "environment": _environment(given["environment"] if "environment" in given else _own_environment()),
        "surroundings": _surroundings(),
        "output": "carma-%j.out",
        "gpus": 1,
    }
    for name, member, kind in FIELDS:
        if name not in given:
            continue
        if kind == "signal":
            spec["signal"], spec["signal_before_ns"] = units.signal_and_before(given[name])
        elif name == "capture" and given[name] == CAPTURE_AUTO:
            spec[member] = CAPTURE_AUTO
        elif kind == "file":
            spec[member], spec[member[: -len("_name")]] = _file(name, os.fspath(given[name]))
        else:
            spec[member] = _READ[kind](name, given[name]) if kind in _READ else given[name]
    spec["directory"] = where
    for member in ("output", "error"):
        if member in spec:
            spec[member] = _join(where, os.fspath(spec[member]))
    code = _code(words, where)
    if code:
        spec["code"] = code
    _check_text(spec)
    return spec


def _code(words: List[str], where: str) -> Optional[str]:
    """A digest of the program files that the command names, as `carma submit` makes it (FNV-1a); None: there is none."""
    digest = 0xCBF29CE484222325
    for word in words:
        if not word.endswith((".py", ".sh")):
            continue
        try:
            with open(_join(where, word), "rb") as file:
                data = file.read(MOST_CODE + 1)
        except OSError:
            continue  # the job itself tells
        for byte in data if len(data) <= MOST_CODE else b"":
            digest = (digest ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return f"{digest:016x}" if digest != 0xCBF29CE484222325 else None


def _words(command: Command) -> List[str]:
    """A text is a line for the shell, as the command line of a job file is."""
    words = ["/bin/sh", "-c", command] if isinstance(command, str) else [os.fspath(word) for word in command]
    if not words or not all(isinstance(word, str) for word in words) or not words[-1 if len(words) == 3 else 0]:
        raise Invalid("command is empty: name a program, as ['python3', 'train.py'] or 'python3 train.py'")
    return words


def _base_name(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2] or path


def _join(directory: str, path: str) -> str:
    return path if path.startswith("/") else f"{'' if directory == '/' else directory}/{path}"


def directory(wanted: PathLike) -> str:
    """Where a job is to run, which must exist now: the absolute path."""
    path = os.path.realpath(wanted)
    if not os.path.isdir(path):
        raise Invalid(
            f"directory '{str(wanted)[:200]}': {'is none' if os.path.exists(path) else 'No such file or directory'}"
        )
    return path


def _own_environment() -> Dict[str, str]:
    """Of a job that submits another: that one does not run its script."""
    return {name: value for name, value in os.environ.items() if name != "CARMA_SCRIPT"}


def _surroundings() -> str:
    """As src/base/surroundings.h has it. The umask is the kernel's word, since to ask Python for it is to change it."""
    words = [f"gid={os.getegid()}"]
    with contextlib.suppress(OSError), open("/proc/self/status", encoding="utf-8", errors="replace") as status:
        words += [f"umask={line.split()[1]}" for line in status if line.startswith("Umask:")]
    for name in _LIMITS:
        soft = resource.getrlimit(getattr(resource, f"RLIMIT_{'AS' if name == 'vmem' else name.upper()}"))[0]
        words.append(f"{name}={'unlimited' if soft == resource.RLIM_INFINITY else soft}")
    return " ".join(words)


def _environment(variables: Mapping[str, str]) -> List[str]:
    return [f"{name}={value}" for name, value in variables.items()]


def _file(what: str, path: str) -> Tuple[str, str]:
    """The daemon opens no path of a user's: the contents of files are sent."""
    try:
        with open(path, "rb") as file:
            data = file.read(MOST_TEXT + 1)
    except OSError as error:
        raise Invalid(f"{what} '{path[:200]}': {error.strerror}") from None
    if len(data) > MOST_TEXT:
        raise Invalid(f"{what} '{path[:200]}' is too large: at most {MOST_TEXT >> 20} MiB can be submitted")
    if not data:
        raise Invalid(f"{what} '{path[:200]}' is empty: fill it in or leave it out")
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise Invalid(f"{what} '{path[:200]}' is not text: give the output of the framework or of carma.capture")
    return _base_name(path), text


def _check_text(spec: Specification) -> None:
    """Python carries bytes that are not UTF-8 as lone surrogates, which JSON cannot."""
    for member, value in spec.items():
        for text in value if isinstance(value, list) else [value]:
            if not isinstance(text, str):
                continue
            try:
                text.encode()
            except UnicodeEncodeError:
                variable = text.partition("=")[0] if member == "environment" else ""
                shown: Optional[str] = variable.encode("ascii", "replace").decode()
                raise Invalid(
                    f"{member}{f' entry {shown!r}' if variable else ''} is not UTF-8 text: convert "
                    f"{'or unset it' if variable else 'it'}"
                ) from None
