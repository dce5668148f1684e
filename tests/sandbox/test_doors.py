"""Usage: test_doors.py CARMA-SANDBOX [RACES]: a directory that its user may not enter outside is not to be had inside.

Each kind of directory, named in each way that a job can name one: what a command inside can do with it is what the user
can do outside. So it is for the user's own directories, and a user who exchanges a part of a path at the right moment gets
no more. Only root can make directories of others: elsewhere the user's own are tried."""

import ctypes
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import threading

import box
from box import NOBODY, Case

OTHER = 12345
FOREIGN_GROUP = 12346
RENAME_EXCHANGE = 2
RACES = int(sys.argv.pop(2)) if len(sys.argv) > 2 else 60

# What a process can do with a directory, and with a file in it that everybody might read.
PROBE = """
import os
def attempt(what):
    try:
        what()
        return "done"
    except OSError as error:
        return error.strerror
def probe(top):
    return [attempt(what) for what in (
        lambda: os.listdir(top), lambda: os.stat(top + "/open"), lambda: open(top + "/open").read(),
        lambda: os.listdir(top + "/below"), lambda: open(top + "/below/open").read(), lambda: open(top + "/new", "w"))]
"""


def acl_without(uid):
    """An access control list: everybody may read and enter, but for one user (acl(5), linux/posix_acl_xattr.h)."""
    entries = [(0x01, 7, 0xFFFFFFFF), (0x02, 0, uid), (0x04, 5, 0xFFFFFFFF), (0x10, 7, 0xFFFFFFFF), (0x20, 5, 0xFFFFFFFF)]
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


# Each kind: owner, group, mode, and whether a list excludes the user.
KINDS = {
    "closed": (OTHER, OTHER, 0o700, False),
    "another group's": (OTHER, FOREIGN_GROUP, 0o750, False),
    "a shared group's": (OTHER, FOREIGN_GROUP, 0o2770, False),
    "root's": (0, 0, 0o700, False),
    "excluded by a list": (OTHER, OTHER, 0o755, True),
    "to be entered, not listed": (OTHER, OTHER, 0o711, False),
    "to be read, not written": (OTHER, OTHER, 0o755, False),
    "its own": (None, None, 0o700, False),
    "its own, not writable": (None, None, 0o500, False),
}
# Each way: the changes of a request that names the directory.
WAYS = {
    "directory": lambda top: {"directory": top},
    "directory below": lambda top: {"directory": top + "/below"},
    "HOME": lambda top: {"environment": [f"HOME={top}", "PATH=/usr/bin:/bin"]},
    "TMPDIR": lambda top: {"environment": [f"TMPDIR={top}", "PATH=/usr/bin:/bin"]},
    "packages": lambda top: {"environment": [f"PYTHONPATH={top}:{top}/below", f"PATH={top}:/usr/bin:/bin"]},
    "data": lambda top: {"environment": [f"HF_HOME={top}", f"XDG_CACHE_HOME={top}", "PATH=/usr/bin:/bin"]},
    "output": lambda top: {"environment": [f"LOGS={top}", f"ARGUMENTS=--out={top}/new", "PATH=/usr/bin:/bin"]},
    "conda": lambda top: {"environment": [f"CONDA_PREFIX={top}", f"CONDA_EXE={top}/bin/conda", f"PATH={top}/bin:/usr/bin:/bin"]},
    "ssh agent": lambda top: {"environment": [f"SSH_AUTH_SOCK={top}/open", "PATH=/usr/bin:/bin"]},
    "detours": lambda top: {"environment": [f"A=/tmp/..{top}", f"B={top}/below/../below", f"C=/var/tmp/../..{top}/.", "PATH=/usr/bin:/bin"]},
    "all": lambda top: {"directory": top, "environment": [f"HOME={top}", f"TMPDIR={top}", "PATH=/usr/bin:/bin"]},
}

# What a process of the user outside may try with one inside, to get at what that has open.
ENTRIES = """
import ctypes, os, sys
pid, libc = int(sys.argv[1]), ctypes.CDLL(None, use_errno=True)
def call(number, *arguments):
    if libc.syscall(number, *arguments) < 0:
        raise OSError(ctypes.get_errno(), "")
def read_memory():
    vector = (ctypes.c_uint64 * 2)(ctypes.addressof(ctypes.create_string_buffer(8)), 8)
    address = int(open(f"/proc/{pid}/maps").readline().split("-")[0], 16)
    call(310 if os.uname().machine == "x86_64" else 270, pid, vector, 1, (ctypes.c_uint64 * 2)(address, 8), 1, ctypes.c_ulong(0))
def take_over():
    call(101 if os.uname().machine == "x86_64" else 117, 16, pid, 0, 0)
    os.waitpid(pid, 0x40000000)
def open_link(name):
    return lambda: os.close(os.open(f"/proc/{pid}/{name}", os.O_PATH))
def open_first(directory):
    return lambda: open_link(directory + "/" + os.listdir(f"/proc/{pid}/{directory}")[0])()
def join():
    user, rest = (os.open(f"/proc/{pid}/ns/{name}", 0) for name in ("user", "mnt"))
    if libc.setns(user, 0) < 0 or libc.setns(rest, 0) < 0:
        raise OSError(ctypes.get_errno(), "")
def join_by_pidfd():
    if libc.setns(os.pidfd_open(pid), 0x10020000) < 0:
        raise OSError(ctypes.get_errno(), "")
entries = {name: open_link(name) for name in ("root", "cwd", "exe", "fd/3", "fd/0", "task/" + str(pid) + "/root")}
entries |= {"map_files": open_first("map_files"), "ns": open_first("ns"), "memory": read_memory, "ptrace": take_over,
            "descriptor": lambda: call(438, os.pidfd_open(pid), 3, 0), "join": join, "join by pidfd": join_by_pidfd}
for name, what in entries.items():
    if os.fork() == 0:
        try:
            what()
            os.write(1, f"{name}: done\\n".encode())
        except OSError as error:
            os.write(1, f"{name}: {error.errno}\\n".encode())
        os._exit(0)
    os.wait()
"""

LASTING = f"sleep 100.{os.getpid()}"  # of this test alone: others may run it at the same time


def remove(top):
    subprocess.run(["chmod", "-R", "u+rwx", top], check=True)  # its owner may have closed it to himself
    subprocess.run(["rm", "-rf", top], check=True)


class Doors(Case):
    def setUp(self):
        super().setUp()
        # Below /tmp the job has only what it names.
        self.place = pathlib.Path(tempfile.mkdtemp(prefix="carma-doors-", dir="/srv" if os.geteuid() == 0 else None))
        self.place.chmod(0o755)
        self.addCleanup(shutil.rmtree, self.place, ignore_errors=True)

    def make(self, kind):
        owner, group, mode, listed = KINDS[kind]
        top = self.place / "door"
        for directory in (top, top / "below"):
            directory.mkdir()
            (directory / "open").write_text("text")
            directory.chmod(0o755)
        if listed:
            os.setxattr(top, "system.posix_acl_access", acl_without(self.mode.uid))
        if os.geteuid() == 0:
            for path in (top, top / "below", top / "open", top / "below" / "open"):
                os.chown(path, self.mode.uid if owner is None else owner, self.mode.uid if group is None else group)
        if not listed:
            top.chmod(mode)
        self.addCleanup(subprocess.run, ["chmod", "-R", "u+rwx", top], check=False, capture_output=True)
        return str(top)

    def outside(self, top, by_root=True):
        script = f"{PROBE}print(probe({top!r}))"
        said = self.mode.as_user(sys.executable, "-c", script, stdout=subprocess.PIPE, text=True).communicate()[0].strip()
        if by_root:
            pathlib.Path(top, "new").unlink(missing_ok=True)
        return said

    @staticmethod
    def probe(top):
        return "/usr/bin/python3", "-c", f"{PROBE}os.write(3, str(probe({top!r})).encode())"

    def kinds(self):
        return KINDS if os.geteuid() == 0 else [kind for kind in KINDS if KINDS[kind][0] is None]

    def test_open_inside_as_outside(self):
        for kind in self.kinds():
            top = self.make(kind)
            expected = self.outside(top)
            for way, changes in WAYS.items():
                with self.subTest(kind=kind, way=way):
                    self.check(top, expected, changes(top))
            remove(top)

    def check(self, top, expected, changes):
        status, result, message = self.done(*self.probe(top), **changes)
        if "cannot enter the directory" in message:  # the same outside: it is not to be entered
            self.assertIn("Permission denied", expected)
            return
        self.assertEqual((status, message), (0, ""))
        self.assertEqual(result.replace("Read-only file system", "Permission denied"),
                         expected.replace("Read-only file system", "Permission denied"))
        self.assertFalse(os.path.exists(top + "/new"))

    def test_beside_a_mount(self):
        """Then the directory above it is a mount inside."""
        beside, self.place = self.place / "mount", self.place / "above"
        beside.mkdir(), self.place.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", beside], check=os.geteuid() == 0)
        self.addCleanup(subprocess.run, ["umount", beside], check=False)
        top = self.make("to be entered, not listed")
        self.check(top, self.outside(top), {})

    def test_on_a_read_only_file_system(self):
        """The kernel says that it is one before it says whose a directory is."""
        if os.geteuid() != 0:
            self.skipTest("only root can mount one")
        below = self.place
        for kind in ("closed", "another group's", "a shared group's", "root's", "its own"):
            self.place = below / "mount"
            self.place.mkdir()
            subprocess.run(["mount", "-t", "tmpfs", "tmpfs", self.place], check=True)
            top = self.make(kind)
            subprocess.run(["mount", "-o", "remount,ro", self.place], check=True)
            for way in ("directory", "HOME", "all"):
                with self.subTest(kind=kind, way=way):
                    status, result, message = self.done(*self.probe(top), **WAYS[way](top))
                    if kind == "its own":
                        self.assertEqual((status, message), (0, ""))
                        self.assertIn("done", result)
                    elif "cannot enter the directory" not in message:
                        self.assertEqual(result, self.outside(top, by_root=False), message)
            subprocess.run(["umount", self.place], check=True)
            self.place.rmdir()
        self.place = below

    def test_where_root_may_not_look(self):
        """A file system that answers its user alone, as NFS with root_squash does: FUSE without allow_other."""
        if os.geteuid() != 0 or not shutil.which("fuse-overlayfs") or not os.path.exists("/dev/fuse"):
            self.skipTest("only root can mount one for a user, and only with fuse-overlayfs")
        owned, mounted = self.place / "owned", self.place / "door"
        (owned / "below").mkdir(parents=True)
        mounted.mkdir()
        for path in (owned, owned / "below"):
            (path / "open").write_text("text")
            for one in (path, path / "open"):
                os.chown(one, self.mode.uid, self.mode.uid)
        device, libc = os.open("/dev/fuse", os.O_RDWR), ctypes.CDLL(None, use_errno=True)
        options = f"fd={device},rootmode=40000,user_id={self.mode.uid},group_id={self.mode.uid}"
        self.assertEqual(libc.mount(b"carma", os.fsencode(mounted), b"fuse", 0, options.encode()), 0)
        server = self.mode.as_user("fuse-overlayfs", "-f", "-o", f"lowerdir={owned}", f"/dev/fd/{device}", pass_fds=[device])
        try:
            expected = self.outside(str(mounted), by_root=False)
            self.assertEqual(eval(expected)[:5], ["done"] * 5)
            self.assertRaises(PermissionError, os.listdir, mounted)
            for way, changes in WAYS.items():
                with self.subTest(way=way):
                    status, result, message = self.done(*self.probe(str(mounted)), **changes(str(mounted)))
                    self.assertEqual((status, eval(result)[:5], message), (0, ["done"] * 5, ""))
        finally:
            libc.umount2(os.fsencode(mounted), 2)
            os.close(device)
            server.kill()
            server.wait()

    def test_what_a_mount_covers_outside_is_covered_inside(self):
        """Also where the mount cannot be had inside: an overlay of overlays, and a file system without its server."""
        if os.geteuid() != 0:
            self.skipTest("only root can mount one")
        libc, device = ctypes.CDLL(None, use_errno=True), os.open("/dev/fuse", os.O_RDWR)
        first, second, fuse, empty = (self.place / name for name in ("first", "second", "fuse", "empty"))
        for directory in (first, second, fuse, empty):
            directory.mkdir()
            (directory / "covered").write_text("text")
        (empty / "covered").unlink()
        mounts = [(first, b"overlay", f"lowerdir={empty}:/usr/share/misc"), (second, b"overlay", f"lowerdir={first}:{empty}"),
                  (fuse, b"fuse", f"fd={device},rootmode=40000,user_id={self.mode.uid},group_id={self.mode.uid}")]
        for target, kind, options in mounts:
            self.assertEqual(libc.mount(b"carma", os.fsencode(target), kind, 1, options.encode()), 0, os.strerror(ctypes.get_errno()))
            self.addCleanup(libc.umount2, os.fsencode(target), 2)
        os.close(device)
        for target in (second, fuse):
            for changes in ({}, {"directory": str(self.place)}):
                with self.subTest(target=target.name, changes=changes):
                    said = self.done("/bin/sh", "-c", f"ls {target} >&3; cat {target}/covered >&3; echo end >&3", **changes)
                    self.assertEqual(said, (0, "end\n", ""))

    def test_closed_for_who_looks_in_from_outside(self):
        for kind in self.kinds():
            top = self.make(kind)
            expected = self.outside(top)
            process = self.start(self.request("/bin/sh", "-c", f"echo $$ >&3; exec {LASTING}", environment=[f"TMPDIR={top}"],
                                              **({"directory": top} if "Permission denied" not in expected else {})))
            with self.subTest(kind=kind):
                for pid in self.sleepers(process):
                    script = f"{PROBE}print(probe('/proc/{pid}/root' + {top!r}))"
                    seen = self.mode.as_user(sys.executable, "-c", script, stdout=subprocess.PIPE, text=True)
                    for inside, allowed in zip(eval(seen.communicate()[0]), eval(expected)):
                        self.assertTrue(inside != "done" or allowed == "done", (kind, inside, allowed))
            process.kill()
            process.communicate()
            remove(top)

    def test_closed_while_a_command_runs(self):
        """What it has not looked up by then is closed to it, too."""
        if os.geteuid() != 0:
            self.skipTest("only root can make another's directory")
        top = self.make("to be read, not written")
        os.chmod(top, 0o777)
        pathlib.Path(top, "first").write_text("first")
        probe = f"{PROBE}print(probe({top!r}))"
        process = self.start(self.request("/bin/sh", "-c", f'cat {top}/first >&3; {LASTING}; /usr/bin/python3 -c "$0" >&3', probe,
                                          environment=[f"DATA={top}", "PATH=/usr/bin:/bin"]))
        found = self.sleepers(process)
        os.chmod(top, 0o700)
        for pid in found:
            os.kill(int(pid), 9)
        said = process.communicate()[0]
        self.assertEqual(said, "first" + str(["Permission denied"] * 6) + "\n")

    def test_nobody_enters_from_outside(self):
        """But for a user that runs carma-sandbox himself."""
        process = self.start(self.request("/bin/sh", "-c", f"{LASTING}; :"))
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        for pid in self.sleepers(process):
            tried = self.mode.as_user("/usr/bin/python3", "-c", ENTRIES, pid, stdout=subprocess.PIPE, text=True).communicate()[0]
            for name, outcome in (line.split(": ") for line in tried.splitlines()):
                with self.subTest(name=name, pid=pid):
                    entered = self.mode.enters and name != "map_files"  # which is for the machine's root alone
                    self.assertIn(outcome, ("done",) if entered else ("1", "13"))
            self.assertEqual(tried.count("\n"), 13)

    def sleepers(self, process):
        """The command's processes, by their pids outside, once there are some."""
        for _ in range(600):
            found = subprocess.run(["pgrep", "-xf", LASTING], capture_output=True, text=True, check=False).stdout.split()
            if found or process.poll() is not None:
                return found
            threading.Event().wait(0.05)
        raise AssertionError("the command does not start")

    def test_no_exchange_of_a_path_wins(self):
        if os.geteuid() != 0:
            self.skipTest("only root can make another's directory")
        closed = self.make("closed")
        own = self.place / "own"
        (own / "part").mkdir(parents=True)
        (own / "link").symlink_to(closed)
        for path in (own, own / "part"):
            os.chown(path, self.mode.uid, self.mode.uid)
        rename, going = ctypes.CDLL(None).renameat2, threading.Event()

        def exchange():
            parts = [os.fsencode(own / name) for name in ("part", "link")]
            while not going.is_set():
                rename(-100, parts[0], -100, parts[1], RENAME_EXCHANGE)

        thread = threading.Thread(target=exchange)
        thread.start()
        try:
            script = f"cat {closed}/open {own}/part/open {own}/link/open >&3 2>/dev/null; ls {closed} {own}/part/ >&3 2>/dev/null; :"
            for number in range(RACES):
                way = [{"directory": f"{own}/part"}, {"environment": [f"HOME={own}/part"]},
                       {"environment": [f"TMPDIR={own}/part", f"DATA={own}/part/new"]}][number % 3]
                result = self.done("/bin/sh", "-c", script, **way)[1]
                self.assertNotIn("text", result)
                self.assertNotIn("open", result)
        finally:
            going.set()
            thread.join()


if __name__ == "__main__":
    assert NOBODY not in (OTHER, FOREIGN_GROUP)
    box.main(sys.argv[1])
