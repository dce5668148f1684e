"""Records the training step of whatever Python process of a command trains: carma_auto/sitecustomize.py starts it when
PyTorch has been imported. The answer goes to a pipe (docs/automatic-capture.md): a line of JSON, and after it the
capture, where there is one."""

import atexit
import contextlib
import fcntl
import hashlib
import json
import os
import sys
import sysconfig
import threading
import time

from carma.devices import device_count
from carma.errors import CaptureError
from carma.last_words import LastWords

STEPS = 2
LAUNCHERS = frozenset(["torchrun", "accelerate", "accelerate-launch", "deepspeed", "horovodrun", "fabric", "lightning"])
LAUNCHING_PACKAGES = ("torch.distributed.run", "torch.distributed.launch", "accelerate", "deepspeed", "carma")
LIBRARIES = ("torch", "torchvision", "transformers", "accelerate", "lightning", "pytorch_lightning", "timm", "peft",
             "diffusers", "torch_geometric", "bitsandbytes", "deepspeed", "datasets")  # fmt: skip
SETTINGS = (".py", ".json", ".yaml", ".yml", ".toml", ".ini", ".cfg", ".conf")  # ends of files that say what to train
SETTINGS_SIZE = 1 << 20
SHELLS = frozenset(["sh", "bash", "dash", "ksh", "zsh"])
LATE_S = 60  # since the command began: no more steps than are needed
FIRST_S = 30  # until a launcher's first process is there
SHELL_WORDS = 10  # of a shell's command, its script among them
OF_THE_NETWORK = frozenset([
    "gaierror", "URLError", "ConnectionError", "ConnectError", "ConnectTimeout", "MaxRetryError", "NewConnectionError",
    "OfflineModeIsEnabled", "LocalEntryNotFoundError", "ConnectionRefusedError", "CommError",
])  # fmt: skip
OF_CHILDREN = frozenset(["CalledProcessError", "ChildFailedError", "ProcessExitedException", "ProcessRaisedException"])
_forever = contextlib.ExitStack()  # of what is pretended
# How far a process without a capture came: the farthest one's reason is the command's.
IMPORTED, FAILED, TRAINED = 0, 1, 2


def _command():
    """The words of this interpreter's command."""
    if hasattr(sys, "orig_argv"):
        return sys.orig_argv
    with open("/proc/self/cmdline", "rb") as file:  # Python 3.9
        return file.read().decode(errors="surrogateescape").split("\0")[:-1]


def _program():
    """("m", module), ("c", text), ("file", path): the program that the interpreter was told to run."""
    words = iter(_command()[1:])
    for word in words:
        if not word.startswith("-") or word == "-":
            return "file", word
        if word.startswith("--"):
            if word == "--check-hash-based-pycs":
                next(words, None)
            continue
        for at, letter in enumerate(word[1:], 2):
            if letter in "mc":
                return letter, word[at:] or next(words, "")
            if letter in "WX":
                if not word[at:]:
                    next(words, None)
                break
    return "file", "-"


def _is_launcher():
    kind, what = _program()
    if kind == "m":
        return any(what == name or what.startswith(name + ".") for name in LAUNCHING_PACKAGES)
    return kind == "file" and os.path.basename(what) in LAUNCHERS


def _pretend_devices():
    """A launcher asks for no more than how many there are."""
    import torch

    for module in (torch.cuda, getattr(torch, "accelerator", torch.cuda)):
        module.is_available, module.device_count = lambda: True, device_count


class _Answer:
    def __init__(self, descriptor, start):
        self.descriptor, self.start, self.process = descriptor, start, os.getpid()
        self.read = set()  # settings
        self.text = ""  # a capture that a longer step may replace
        self.asked = None  # the URL, or the machine, that was asked for last
        self.lock, self.exit = threading.Lock(), os._exit
        sys.addaudithook(self._look)
        self.last = LastWords()

    def _look(self, event, args):
        if event == "open" and isinstance(args[0], str) and args[0].endswith(SETTINGS) and args[1] in ("r", "rb", None):
            self.read.add(os.path.abspath(args[0]))
        elif event == "urllib.Request":
            self.asked = str(args[0])
        elif event == "socket.getaddrinfo" and isinstance(args[0], str) and args[0] not in (self.asked or ""):
            self.asked = args[0]

    def script(self):
        """The file of the script, or None."""
        for name in ("__mp_main__", "__main__"):
            path = getattr(sys.modules.get(name), "__file__", None)
            if path and os.path.isfile(path):
                return os.path.abspath(path)
        kind, what = _program()
        return os.path.abspath(what) if kind == "file" and os.path.isfile(what) else None

    def name(self):
        """Of the script, for people."""
        kind, what = _program()
        if kind == "m":
            return f"python -m {what}"
        path = self.script()
        return os.path.basename(path) if path else "the script of python " + ("-c" if kind == "c" else "-")

    def _shell_scripts(self):
        """Of the shells that wait for this process."""
        process = os.getppid()
        with contextlib.suppress(OSError):
            while process > 1:
                with open(f"/proc/{process}/cmdline", "rb") as file:
                    words = file.read().decode(errors="replace").split("\0")
                if os.path.basename(words[0]) in SHELLS:
                    directory = os.readlink(f"/proc/{process}/cwd")
                    words = [word for word in words[1:SHELL_WORDS] if word[:1] not in ("", "-")]
                    yield from (os.path.join(directory, word) for word in words)
                with open(f"/proc/{process}/stat") as file:
                    process = int(file.read().rpartition(")")[2].split()[1])

    def _packages(self):
        """Which ones are installed where modules may come from: the names have their versions."""
        for path in sorted({os.path.abspath(path) for path in sys.path if path.endswith("-packages")}):
            with contextlib.suppress(OSError):
                names = [name for name in os.listdir(path) if name.endswith("-info") and name[0] != "."]
                lines = b"".join(os.fsencode(name) + b"\n" for name in sorted(names, key=os.fsencode) or ["*-info"])
                yield [path, hashlib.sha256(lines).hexdigest()]

    def _files(self):
        """The user's own: neither Python's nor a library's."""
        places = sysconfig.get_paths()
        own = os.path.dirname(os.path.abspath(__file__))
        foreign = [own, own + "_auto", *(places[name] for name in ("stdlib", "platstdlib", "purelib", "platlib"))]
        foreign = tuple(root + os.sep for path in foreign for root in (os.path.abspath(path), os.path.realpath(path)))
        imported = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
        read = {*imported, *self.read, self.script(), *self._shell_scripts()}
        answer = []
        for path in sorted({os.path.abspath(path) for path in read if path}):
            if path.startswith(foreign) or "/site-packages/" in path or "/dist-packages/" in path:
                continue
            with contextlib.suppress(OSError):
                if os.path.isfile(path) and (path.endswith(".py") or os.path.getsize(path) <= SETTINGS_SIZE):
                    with open(path, "rb") as file:
                        answer.append([path, hashlib.sha256(file.read()).hexdigest()])
        return answer

    def write(self, capture, text="", **more):
        versions = {name: str(sys.modules[name].__version__) for name in LIBRARIES
                    if hasattr(sys.modules.get(name), "__version__")}  # fmt: skip
        line = json.dumps({
            "capture": capture, **more, "script": self.script(), "files": self._files(),
            "packages": [*self._packages()], "versions": versions, "python": sys.executable,
            "seconds": round(os.times().elapsed - self.start, 2), "bytes": len(text),
        })  # fmt: skip
        data = memoryview(f"{line}\n{text}".encode())
        with contextlib.suppress(OSError):
            fcntl.lockf(self.descriptor, fcntl.LOCK_EX)  # other processes of the command write, too
        with contextlib.suppress(OSError):
            while data:
                data = data[os.write(self.descriptor, data) :]

    def found(self, trace, header, is_last):
        from carma import script, writer

        try:
            self.text, _ = writer.text(trace, None, header)
        except CaptureError as error:
            if not self.text:
                self.refuse(f"{self.name()}: {error}", TRAINED)
                os._exit(1)
        if is_last or os.times().elapsed - self.start > LATE_S:
            self._leave()
        script.ended_after(script.MORE_S, self._leave)
        os._exit = self._leave

    def _leave(self, status=0):
        """Nothing that the script would do matters."""
        if os.getpid() != self.process:  # forked by the script
            self.exit(status)
        with self.lock:
            self.write(True, self.text)
            self.exit(0)

    def ended(self, recorder):
        """At the exit of a process without a capture."""
        if os.getpid() != self.process:
            return
        if self.text:  # a longer step than the script's own failed
            self._leave()
        error, status = getattr(sys, "last_value", None) or self.last.error, self.last.status
        steps = max(recorder.step - 1, 0)
        if error is not None:
            reason = self._reason(error)
        elif not status:
            reason = f"{self.name()}: its optimizers made {steps} of the {STEPS} steps that a capture needs"
        else:
            what = "with exit status " if isinstance(status, int) else "itself: "
            reason = f"{self.name()} ended {what}{status}, after {steps} steps of its optimizers"
        line = self.last.line()
        if error is None and line not in reason:
            reason += f"; it wrote last: {line}"
        failed = error is not None or bool(status)
        told = type(error).__name__ in OF_CHILDREN  # by the process that failed
        self.refuse(" ".join(reason.split())[:400],
                    max(FAILED if failed and not told else IMPORTED, self.reached(recorder)), failed)  # fmt: skip

    def refuse(self, reason, closeness=FAILED, failed=True):
        self.write(False, reason=reason, closeness=closeness, failed=failed)

    def reached(self, recorder):
        return TRAINED if recorder.follower.optimizers or recorder.follower.batch is not None else IMPORTED

    def _reason(self, error):
        from carma import script

        path = self.script()
        line = script.one_line(path or self.name(), error)
        line = line.replace(path, self.name(), 1) if path else line
        known, network = error, False
        while known is not None:
            network = network or not OF_THE_NETWORK.isdisjoint(kind.__name__ for kind in type(known).__mro__)
            known = known.__cause__ or known.__context__
        if not network:
            return line
        what = line.partition(": ")[2] or line
        return f"{self.name()} needs the network: {self.asked + ': ' if self.asked and self.asked not in what else ''}{what}"


def _this_process_records():
    return int(os.environ.get("LOCAL_RANK") or 0) == 0


def _first_runs(launcher):
    """Whether the launcher's process that records is there."""
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            with open(f"/proc/{name}/stat") as file:
                parent = int(file.read().rpartition(")")[2].split()[1])
            if parent == launcher:
                with open(f"/proc/{name}/environ", "rb") as file:
                    if b"LOCAL_RANK=0" in file.read().split(b"\0"):
                        return True
    return False


def _wait_for_first(launcher):
    """Another process of the same training: a launcher would end all of them with this one, and waits for it when the first has
    ended."""
    begun, seen = time.monotonic(), False
    while os.getppid() == launcher:
        runs = _first_runs(launcher)
        if not runs and (seen or time.monotonic() > begun + FIRST_S):
            return
        seen = seen or runs
        time.sleep(0.2)


def refuse(descriptor, start, framework):
    """Instead of a run that would not end in a capture."""
    answer = _Answer(descriptor, start)
    answer.refuse(f"{answer.name()}: training with {framework} is not recorded, only with PyTorch")
    os._exit(1)


def begin(descriptor, start):
    """After `import torch`, before whoever imported it goes on."""
    if _is_launcher():
        _pretend_devices()
        return
    if not _this_process_records():
        os.close(descriptor)
        _wait_for_first(os.getppid())
        os._exit(0)
    answer = _Answer(descriptor, start)
    os.environ["WANDB_MODE"] = "disabled"
    try:
        from carma import script

        recorder = script.watch(_forever, STEPS, answer.found)
    except CaptureError as error:
        answer.refuse(str(error))
        os._exit(1)
    except Exception as error:  # PyTorch or a library is not as it is known
        version = getattr(sys.modules["torch"], "__version__", "without a version")
        answer.refuse(f"{answer.name()}: torch {version} cannot be recorded: {type(error).__name__}: {error}")
        os._exit(1)
    atexit.register(answer.ended, recorder)
