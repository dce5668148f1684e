"""Usage: run.py PREFIX SOURCE DOCUMENT [--update | --archive]

Runs the commands of a document, in a directory of their own, with the programs that are installed in PREFIX. Compares
their output with the document's.

Numbers (known or not; but for the status that `echo $?` prints) with their units, bars, times, paths of the directory, the user's and the machine's name count as alike. A line
`...` stands for any lines. A command that only looks is repeated until it shows the document's text, as people do. The
commands find an empty directory, and by `<!-- test: ... -->`:
    node=PROFILE    a virtual node, and a carmad on it
    scale=N         the virtual node's time runs N times faster (60)
    source=yes      links to the source tree's data/, docs/, script/, ...; and build/, the installed programs
    source=copy     a copy of it, without build/
    set=KEY=VALUE   a setting of the daemon's
    chat=yes        a carma-notify, and $CHAT, the address of a server that writes the text of what it gets into the file chat
    image=NAME      where there is a Podman, an image of this name that has a shell
    by=FILE         not this program, but a test of its own

--update writes the output into the document instead, where it has no `...`. --archive: a copy has the installed programs,
as an archive of script/bundle does, so that its scripts build nothing."""

import contextlib
import getpass
import http.server
import json
import os
import pathlib
import re
import select
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import blocks
import tables
from terminal import matches, transcript

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import contain  # noqa: E402

PATIENCE_SECONDS = 600
READER = "ada"  # the user that types, in the documents
LOOKS = re.compile(r"(carma (queue|show|explain|gpus|stats|history)|cat)\b[^;|&<>]*$")
LOOK_SECONDS = 45
# Each command of a block must succeed; bash itself is to go on.
WATCHED = """failed=0; trap 'echo "exit status $?: $BASH_COMMAND"; failed=1' ERR
{}
trap - ERR; test $failed = 0"""


def alike(text, home):
    """The part of a line that does not differ from run to run."""
    text = re.sub(rf"\b{re.escape(getpass.getuser())}\b", READER, text)
    text = re.sub(rf"(?<![\w/]){re.escape(os.uname().nodename)}\b", "server", text)
    text = re.sub(r"\x1b\[[0-9;]*m", "", text).replace(home, "~").replace(f"/home/{READER}", "~")
    text = re.sub(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "#", text)
    text = re.sub(r"[-+]?\d+([.,:/-]\d+)*%?", "#", text)
    text = re.sub(r"(?<= )-(?= )", "#", text)  # not known yet
    text = re.sub(r"(?<= )\?(?= )", "# B", text)  # nor these bytes
    text = re.sub(r"[\u2588-\u2593]+", "bar", text)
    text = re.sub(r"(?<=# )[kKMGT]i?(?=[BJW]\b)", "", text)  # a unit goes with its number
    return re.sub(r"[─━═-]{3,}", "---", re.sub(r"\s+", " ", text)).strip()


class Shell:
    """One bash for the whole document: a later command finds the settings of an earlier one."""

    def __init__(self, directory, environment):
        self.directory, self.environment, self.count = directory, environment, 0
        self.bash = subprocess.Popen(["bash", "--norc", "--noprofile"], cwd=directory / "work", env=environment,
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                     start_new_session=True)

    def run(self, command):
        """(exit status, its output); None for the status: it did not end."""
        self.count += 1 # an earlier command that still runs writes to a file of its own
        output = self.directory / f"output{self.count}"
        quoted = shlex.quote(str(output))
        self.bash.stdin.write(f"{{ :\n{command}\n}} >{quoted} 2>&1 </dev/null; echo \"ended $?\"\n".encode())
        self.bash.stdin.flush()
        end = time.monotonic() + PATIENCE_SECONDS
        said = b""
        while time.monotonic() < end:
            if not select.select([self.bash.stdout], [], [], 1)[0]:
                continue
            more = os.read(self.bash.stdout.fileno(), 4096)
            said += more
            ended = re.search(rb"^ended (\d+)$", said, re.MULTILINE)
            if ended:
                return int(ended.group(1)), output.read_text(errors="replace")
            if not more:
                break
        return None, said.decode(errors="replace") + output.read_text(errors="replace")


def kill_all(directory):
    """Nothing that the document has started is left: all of it has the directory in its environment."""
    mark = f"HOME={directory}/work".encode()
    for pid in contain.descendants(os.getppid()):
        if mark in contain.read_aside(pid, "environ").split(b"\0"):
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)


def start_node(shell, chosen, prefix):
    profile = chosen["node"]
    setting = f" --set {chosen['set']}" if "set" in chosen else ""
    notify = f"{prefix}/lib/carma/carma-notify 2>$HOME/.notify.log & disown" if "chat" in chosen else ":"
    status, said = shell.run(f"""
        carma-vnode create $CARMA_VNODE --profile {profile} >/dev/null
        carmad --state $HOME/.state --set mps_control={prefix}/lib/carma/vnode/nvidia-cuda-mps-control{setting} \\
            --set nvml_library={prefix}/lib/carma/vnode/libnvidia-ml.so.1 2>$HOME/.carmad.log &
        disown
        {notify}
        for try in $(seq 200); do carma gpus --json 2>/dev/null | grep -q '"observed_ns": [0-9]' && break; sleep 0.1; done
        carma gpus --json | grep -q '"observed_ns": [0-9]'""")
    if status != 0:
        sys.exit(f"the node could not be started: {said}")


class Chat(http.server.BaseHTTPRequestHandler):
    """What a chat shows of a message, in the file `file`."""

    file = None

    def do_POST(self):  # noqa: N802 the name is http.server's
        said = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with open(self.file, "a", encoding="utf-8") as file:
            print(said["text"], file=file)
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        """Nothing."""


def see_one_version():
    """Where version 1 of control groups is mounted beside version 2, no container starts: in a place of its own it sees version 2 alone."""
    mounts = ["unshare", "--mount", "--propagation", "private"]
    if os.geteuid() == 0 and os.path.isdir("/sys/fs/cgroup/unified") and "DOCS_OWN_MOUNTS" not in os.environ and \
            subprocess.run([*mounts, "true"], check=False).returncode == 0:
        os.environ["DOCS_OWN_MOUNTS"] = "yes"
        os.execvp("unshare", [*mounts, "sh", "-c", 'umount -l /sys/fs/cgroup && mount -t cgroup2 none /sys/fs/cgroup; exec "$@"', "sh",
                              sys.executable, *sys.argv])


def make_image(shell, name):
    """Of this machine's own programs; in a place of its own."""
    shell.run(f"""
        mkdir -p ../image/bin ../image/tmp
        for program in $(command -v sh cat uname); do
            cp -L $program ../image/bin
            for library in $(ldd $program | grep -o '/[^ ]*'); do
                mkdir -p ../image${{library%/*}} && cp -L $library ../image$library
            done
        done
        printf '[storage]\ndriver = "vfs"\ngraphroot = "%s/.images"\nrunroot = "%s/.images-run"\n' $HOME $HOME >$CONTAINERS_STORAGE_CONF
        tar -C ../image -cf - . | podman --cgroup-manager=cgroupfs import - {name}""")


def printed(command, shell, home):
    """(exit status, output, its lines without the parts that may differ)."""
    status, said = shell.run(command)
    return status, said, [line for line in (alike(line, home) for line in said.splitlines()) if line]


def check(shell, command, expected, home):
    status, said, got = printed(command, shell, home)
    if status is None:
        return f"did not end: {said}"
    if expected is None:
        return f"exit status {status}: {said}" if status else ""
    wanted = [line if line == "..." else alike(line, home) for line in expected if line]
    end = time.monotonic() + LOOK_SECONDS
    while LOOKS.match(command) and not matches(wanted, got) and time.monotonic() < end:
        time.sleep(0.3)
        status, said, got = printed(command, shell, home)
    right = matches(wanted, got) and (not command.endswith("echo $?") or said.split()[-1:] == expected[-1:])
    return "" if right else "printed\n" + said + "and not as the document has it:\n" + "\n".join(expected)


def update_block(shell, block, home):
    """The block's text with its commands' present output."""
    lines = []
    for command, expected in blocks.steps(block):
        if LOOKS.match(command):
            time.sleep(2)
        _, said = shell.run(command)
        kept = expected if "..." in expected else re.sub(rf"\b{getpass.getuser()}\b", READER, said.replace(home, f"/home/{READER}")).splitlines()
        lines += ["$ " + command, *kept]
    return "\n".join(lines) + "\n"


def run_block(shell, block, home):
    """Complaints."""
    if block.terminal:
        problem = transcript(block.text, shell.directory / "work", shell.environment, lambda line: alike(line, home))
        if problem:
            yield f"line {block.line}: {problem}"
    elif block.where and shell.run(block.where)[0] != 0:
        print(f"line {block.line}: left out, since this fails here: {block.where}")
    elif block.language == "console":
        for command, expected in blocks.steps(block):
            problem = check(shell, command, expected, home)
            if problem:
                yield f"line {block.line}: $ {command}\n{problem}"
    else:
        inside = block.inside or ("python3 -" if block.language == "python" else "")
        command = f"{inside} <<'END OF BLOCK'\n{block.text}END OF BLOCK\n" if inside else WATCHED.format(block.text)
        problem = check(shell, command, None, home)
        if problem:
            yield f"line {block.line}: {problem}"


def main(prefix, source, document, option=None):
    text = pathlib.Path(source, document).read_text(encoding="utf-8")
    chosen, todo, complaints = blocks.settings(text), [], []
    if "image" in chosen:
        see_one_version()
    try:
        todo = [block for block in blocks.read(text) if block.language in blocks.RUN and not block.why_not]
    except ValueError as problem:
        sys.exit(f"{document}: {problem}")
    with tempfile.TemporaryDirectory() as folder:
        directory = pathlib.Path(folder).resolve()
        work = directory / "work"
        work.mkdir()
        if chosen.get("source") == "copy":
            for name in subprocess.run(["git", "-C", source, "ls-files", "-z"], capture_output=True, check=True,
                                       text=True).stdout.split("\0")[:-1]:
                (work / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(pathlib.Path(source, name), work / name)
            for name in ("bin", "lib", "share") if option == "--archive" else ():
                (work / name).symlink_to(pathlib.Path(prefix, name))
        elif "source" in chosen:
            for entry in pathlib.Path(source).resolve().iterdir():
                if entry.name not in ("build", "build-test", ".git"):
                    (work / entry.name).symlink_to(entry)
            (work / "build").symlink_to(prefix)
        environment = {"PATH": f"{prefix}/bin:{os.environ['PATH']}", "HOME": str(work), "LC_ALL": "C.UTF-8", "TZ": "UTC",
                       "PYTHONPATH": f"{prefix}/share/carma/python", "USER": os.environ.get("USER", "root"), "COLUMNS": "100",
                       "CARMA_VNODE": f"{work}/.node", "CARMA_SOCKET": f"{work}/.carma.sock", "CARMA_TIME_SCALE": chosen.get("scale", "60"),
                       **({"CONTAINERS_STORAGE_CONF": f"{work}/.storage.conf"} if "image" in chosen else {})}
        if "chat" in chosen:
            Chat.file = work / "chat"
            chat = http.server.HTTPServer(("127.0.0.1", 0), Chat)
            threading.Thread(target=chat.serve_forever, daemon=True).start()
            environment["CHAT"] = f"http://127.0.0.1:{chat.server_port}/carma"
        shell = Shell(directory, environment)
        try:
            if "node" in chosen:
                start_node(shell, chosen, prefix)
            if "image" in chosen:
                make_image(shell, chosen["image"])
            for block in todo:
                if option == "--update" and block.language == "console" and not (block.terminal or block.where):
                    text = text.replace("console\n" + block.text, "console\n" + update_block(shell, block, str(work)), 1)
                else:
                    complaints += run_block(shell, block, str(work))
            complaints += tables.tried(text, shell)
        finally:
            kill_all(directory)
            if "image" in chosen and os.geteuid() != 0:  # podman has given its files to other users
                subprocess.run(["podman", "unshare", "rm", "-rf", work / ".local"], env=environment, check=False)
    if option == "--update":
        pathlib.Path(source, document).write_text(text, encoding="utf-8")
    for complaint in complaints:
        print(f"{document}: {complaint}", file=sys.stderr)
    print(f"{document}: {len(todo)} blocks run, {len(complaints)} complaints")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
