"""Usage: test_contain.py CONTAIN

That contain.py gives the test's exit status, and that nothing of a test outlives it, however it or contain.py ends."""

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

CONTAIN = [sys.executable, "-S", "-B", str(pathlib.Path(sys.argv[1]).resolve())]
PATIENCE_SECONDS = 60
# A daemon without a parent, with its pid in a file that is complete as soon as it is there.
DAEMON = "setsid sh -c 'echo $$ >pid.new; mv pid.new pid; exec sleep 1000' & while [ ! -e pid ]; do sleep 0.02; done; "


def until(what, condition):
    end = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < end, f"waited in vain for {what}"
        time.sleep(0.05)


def ended(pid):
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(") ")[2][0] in "ZX"
    return True


def child_of(pid):
    return int(pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="utf-8").split()[0])


def contained(script, folder, ends=lambda outer: None):
    """Exit status and messages of a contained script; `ends` is called once the script has made the file `pid`."""
    process = subprocess.Popen([*CONTAIN, "sh", "-c", script], cwd=folder, stderr=subprocess.PIPE, text=True,
                               start_new_session=True, close_fds=False)
    if "pid" in script:
        until("the daemon", (folder / "pid").exists)
    ends(process.pid)
    messages = process.communicate(timeout=PATIENCE_SECONDS)[1]
    return process.returncode, messages


def expect(name, script, status, ends=lambda outer: None, message=""):
    with tempfile.TemporaryDirectory() as name_of_folder:
        folder = pathlib.Path(name_of_folder)
        was, messages = contained(script, folder, ends)
        assert was == status, f"{name}: exit status {was}, not {status}: {messages}"
        assert message in messages, f"{name}: no '{message}' in: {messages}"
        if (folder / "pid").exists():
            until(f"{name}: the daemon's end", lambda: ended(int((folder / "pid").read_text(encoding="utf-8"))))


expect("passes", "true", 0)
expect("fails", "exit 7", 7)
expect("is skipped", "exit 77", 77)
os.environ |= {"TMPDIR": "/tmp" + 20 * "/.", "PYTHONUNBUFFERED": "1"}
expect("has the same environment everywhere", 'test "$TMPDIR" = /tmp -a -z "${PYTHONUNBUFFERED-}"', 0)
for ignored in (signal.SIGHUP, signal.SIGQUIT):
    signal.signal(ignored, signal.SIG_IGN)
    expect(f"{ignored} ends it, whatever ignored it", f"ulimit -c 0; kill -{ignored} $$; exit 1", 128 + ignored)
    signal.signal(ignored, signal.SIG_DFL)
os.umask(0o077)
os.set_inheritable(os.open("/dev/null", os.O_RDONLY), True)
expect("has the same umask and no descriptor more everywhere",
       'test "$(umask)" = 0022 && set -- /proc/$$/fd/* && echo "$@" >&2 && test $# -le 4', 0)
expect("is killed", "kill -KILL $$", 128 + signal.SIGKILL)
expect("leaves a daemon", DAEMON, 1, message="the test has left processes behind:")
expect("leaves a daemon and fails", DAEMON + "exit 7", 1, message="sleep 1000")
expect("is told to end", "trap 'echo last words >&2' TERM; " + DAEMON + "sleep 1000 & wait", 128 + signal.SIGTERM,
       lambda outer: os.kill(outer, signal.SIGTERM), "last words")
expect("the inner one is killed", DAEMON + "sleep 1000", 128 + signal.SIGKILL,
       lambda outer: os.kill(child_of(outer), signal.SIGKILL))
expect("the group is killed, as by meson", DAEMON + "sleep 1000", -signal.SIGKILL,
       lambda outer: os.killpg(outer, signal.SIGKILL))
