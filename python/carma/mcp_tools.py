"""What carma.mcp offers: each tool is a function, whose arguments a schema describes and Tool.call() checks."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import time
from typing import Any, Callable, Dict, List, Optional, Union

from carma import client, daemon, output, submission, text, units
from carma.errors import CarmaError
from carma.fields import FIELDS
from carma.handle import Job

ESTIMATE_S = 300.0  # it may run the command in a sandbox until that has trained a step
WHATIF_S = 330.0  # carmad ends a simulation after 300 s
TAIL_BYTES = 65536
MOST_ROWS = 200

Schema = Dict[str, Any]
_TYPES: Dict[str, Any] = {"string": str, "integer": int, "number": (int, float), "boolean": bool, "array": list, "object": dict}
_JOB: Schema = {"type": ["integer", "string"], "description": "the job's id: 7, or 120_7 of an array"}
_COMMAND: Schema = {"type": ["array", "string"], "description": "its words, or a text for the shell"}


def _option(kind: str) -> Schema:
    """Of a field of a job: carma.fields."""
    if kind == "switch":
        return {"type": "boolean"}
    if kind in ("count", "number", "rank"):
        return {"type": "integer"}
    return {"type": {"factor": ["number", "string"], "time": ["string", "integer"]}.get(kind, "string")}


OPTIONS: Dict[str, Schema] = {name: _option(kind) for name, _, kind in FIELDS}
# Those that carma estimate has, too.
MODEL = ("summary", "capture", "hf_config", "batch_size", "optimizer", "precision", "sequence_length", "lengths", "method", "no_capture")


def _fits(value: Any, kind: str) -> bool:
    return isinstance(value, _TYPES[kind]) and (kind == "boolean") == isinstance(value, bool)


class Tool:
    def __init__(self, does: Callable[..., str], arguments: Dict[str, Schema], required: List[str], changes: bool = False) -> None:
        self.does, self.arguments, self.required, self.changes = does, arguments, required, changes

    def described(self) -> Dict[str, Any]:
        return {
            "name": self.does.__name__,
            "description": " ".join((self.does.__doc__ or "").split()),
            "inputSchema": {"type": "object", "properties": self.arguments, "required": self.required, "additionalProperties": False},
            "annotations": {"readOnlyHint": not self.changes, "openWorldHint": False},
        }

    def call(self, arguments: Any) -> str:
        """CarmaError: they are not the tool's."""
        if not isinstance(arguments, dict):
            raise CarmaError("arguments is to be an object")
        for name, value in arguments.items():
            if name not in self.arguments:
                raise CarmaError(f"there is no argument {name[:60]!r}: one of {', '.join(self.arguments) or 'none'}")
            kinds = self.arguments[name]["type"]
            kinds = [kinds] if isinstance(kinds, str) else kinds
            if not any(_fits(value, kind) for kind in kinds):
                raise CarmaError(f"{name} is to be of the type {' or '.join(kinds)}, and is {json.dumps(value)[:60]}")
        for name in self.required:
            if name not in arguments:
                raise CarmaError(f"the argument {name} is missing")
        return self.does(**arguments)


def queue(state: str = "", limit: int = 50) -> str:
    """The jobs that run and wait: a table. `state`: running, waiting, ended or all."""
    return repr(client.jobs(state=state, limit=min(max(limit, 1), MOST_ROWS)))


def gpus() -> str:
    """The GPUs: memory in use and free, activity, power, and the jobs on each."""
    return repr(client.gpus())


def _job(name: Union[int, str]) -> Job:
    if isinstance(name, int):
        return Job(name)
    if not re.fullmatch(r"[1-9][0-9]{0,17}(_[0-9]{1,9})?", name):
        raise CarmaError(f"{name[:60]!r} is not a job's id: 7, or 120_7 of an array")
    found = daemon.call("GET", f"/v1/jobs?state=all&ids={name}")["jobs"]
    if len(found) > 1:
        raise CarmaError(f"{name} is an array: name a job of it, as {name}_{found[0]['array']['index']}")
    if not found:
        raise CarmaError(f"there is no job {name}")
    return Job(found[0]["id"])


def show(job: Union[int, str]) -> str:
    """All that carma tells of a job, as JSON."""
    return json.dumps(_job(job).info, indent=1)


def explain(job: Union[int, str]) -> str:
    """Why a job waits, what each GPU says to it, and when it is expected to start."""
    return str(_job(job).explain())


def tail(job: Union[int, str], lines: int = 50, error: bool = False) -> str:
    """The last lines of a job's output; with `error` of its standard error."""
    handle = _job(job)
    info = handle.info
    path = (info.get("error") if error else None) or info.get("output")
    if not path:
        raise CarmaError(f"permission denied: job {job} belongs to {info.get('user')}")
    try:
        with output.open_file(handle.id, path, info["uid"]) as file:
            file.seek(max(os.fstat(file.fileno()).st_size - TAIL_BYTES, 0))
            said = file.read(TAIL_BYTES).decode("utf-8", "replace").splitlines()
    except FileNotFoundError:
        raise CarmaError(f"job {job} has written nothing: it is {info['state']}") from None
    return "\n".join(text.printable(line) for line in said[-max(lines, 1) :])


def what_if(policies: List[Any], settings: Optional[Dict[str, Any]] = None) -> str:
    """This machine's own past, simulated under other placement policies (names such as exclusive, thesis) and settings: how
    long jobs waited and took. The first entry of the answer is the present configuration."""
    asked = daemon.call("POST", "/v1/whatif", {"policies": policies, "settings": settings or {}})
    deadline = time.monotonic() + WHATIF_S
    while (answer := daemon.call("GET", f"/v1/whatif/{asked['id']}"))["state"] == "running":
        if time.monotonic() >= deadline:
            raise CarmaError(f"simulation {asked['id']} takes longer than {WHATIF_S:.0f} s")
        time.sleep(0.2)
    if answer["error"]:
        raise CarmaError(answer["error"])
    for policy in answer["policies"]:
        policy.pop("timeline", None)
    return json.dumps(answer, indent=1)


def _program() -> str:
    """`carma` of the PATH, or of the installation that this package is a part of (PREFIX/share/carma/python)."""
    near = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../../bin/carma")
    found = shutil.which("carma") or (near if os.access(near, os.X_OK) else None)
    if not found:
        raise CarmaError("the program carma is not in the PATH: it makes the estimate")
    return found


def _estimated(command: Any, options: Dict[str, Any]) -> Dict[str, Any]:
    words = [_program(), "estimate", "--json"]
    for name in MODEL:
        value = options.get(name)
        if value is not None and value is not False:
            words.append(f"--{name.replace('_', '-')}" + ("" if value is True else f"={value}"))
    if command and not {"summary", "capture", "hf_config"} & set(options):  # carma estimate takes one of these
        words += ["--", *(["sh", "-c", command] if isinstance(command, str) else [str(word) for word in command])]
    try:
        done = subprocess.run(
            words, cwd=options.get("chdir"), stdin=subprocess.DEVNULL, capture_output=True, timeout=ESTIMATE_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise CarmaError(f"no estimate after {ESTIMATE_S:.0f} s") from None
    if done.returncode != 0:
        said = (done.stderr.decode("utf-8", "replace").strip() or "carma estimate failed").splitlines()[-1]
        raise CarmaError(said[len("carma: ") :] if said.startswith("carma: ") else said)
    found: Dict[str, Any] = json.loads(done.stdout)
    return found


def estimate(command: Any = None, **options: Any) -> str:
    """How much GPU memory a training needs on each of its GPUs, as JSON: from its command, which is tried in a sandbox without a
    GPU, or from a model's summary, capture or hf_config (paths of files). Nothing is submitted."""
    return json.dumps(_estimated(command, options), indent=1)


def _need(command: Any, options: Dict[str, Any]) -> str:
    """Its request in words, and on which GPUs so much is free now."""
    wanted, there = options.get("gpus", 1), [gpu for gpu in client.gpus() if gpu.get("index") is not None]
    if wanted == 0:
        return "It needs no GPU."
    if "gpu_memory" in options:
        needed, source = units.size_bytes("gpu_memory", options["gpu_memory"]), "as it says"
    else:
        try:
            found = _estimated(command, options)
        except CarmaError as error:
            return f"How much GPU memory it needs is not known ({error}): say gpu_memory, or it gets what is enough for most jobs here."
        needed, source = found["memory_bytes"], f"estimated by {found.get('source') or found['estimator']}, confidence {found['confidence']}"
    free = [str(gpu["index"]) for gpu in there if (gpu.get("free_bytes") or 0) >= needed]
    now = f"so much is free now on GPU {', '.join(free)}" if free else "so much is free on no GPU now"
    late = "" if len(free) >= wanted else ": it would wait"
    return f"It needs {units.bytes_text(needed)} on each of {wanted} GPU{'s' if wanted > 1 else ''} ({source}); {now}{late}."


def submit(command: Any, really: bool = False, **options: Any) -> str:
    """Submits a training job, with the options of `carma submit` by their names. Without `really` it only says what the job would
    need and where that is free, or why it would be refused; with really=true it is submitted and runs."""
    specification = submission.specification(command, options)  # type: ignore[arg-type]
    if not really:
        daemon.call("POST", "/v1/jobs/check", {"jobs": [specification]})  # what would be refused is refused
        waiting = client.status()["waiting"]
        return (
            f"Not submitted: say really=true for that. {_need(command, options)} {waiting} job{'s' if waiting != 1 else ''} "
            f"wait{'s' if waiting == 1 else ''} already. It would run in {text.printable(specification['directory'])}: "
            f"{text.printable(json.dumps(specification['command']))}"
        )
    job = client.submit_specifications([specification])[0]
    return f"submitted: job {job.id}\n{job.explain()}"


_MODEL_ARGUMENTS = {name: OPTIONS[name] for name in MODEL if name in OPTIONS}

TOOLS: Dict[str, Tool] = {
    tool.does.__name__: tool
    for tool in (
        Tool(queue, {"state": {"type": "string"}, "limit": {"type": "integer"}}, []),
        Tool(gpus, {}, []),
        Tool(show, {"job": _JOB}, ["job"]),
        Tool(explain, {"job": _JOB}, ["job"]),
        Tool(tail, {"job": _JOB, "lines": {"type": "integer"}, "error": {"type": "boolean"}}, ["job"]),
        Tool(what_if, {"policies": {"type": "array", "items": {"type": "string"}}, "settings": {"type": "object"}}, ["policies"]),
        Tool(estimate, {"command": _COMMAND, "chdir": OPTIONS["chdir"], **_MODEL_ARGUMENTS}, []),
        Tool(submit, {"command": _COMMAND, "really": {"type": "boolean"}, **OPTIONS}, ["command"], changes=True),
    )
}
