"""Usage: test_sandbox.py CARMA-SANDBOX [TEST...]: commands in the sandbox that mean harm, and some that do not."""

import ctypes
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

import box
from box import Case

TRUE = "/bin/true"
PATIENCE_S = int(os.environ.get("PATIENCE_S", "400"))


def sockets(made, count=400):
    """A script of pairs of sockets that are filled as far as they can be. `most` is what one has taken."""
    return f"""
server = socket.create_server(('127.0.0.1', 0))
def connected():
    client = socket.create_connection(server.getsockname())
    return client, server.accept()[0]
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
kept, most = [], 0
for _ in range({count}):
    kept.append({made})
    kept[-1][0].setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 26)
    kept[-1][0].setblocking(False)
    taken = 0
    try:
        while True:
            taken += kept[-1][0].send(b'x' * 65536)
    except OSError:
        most = max(most, taken)
"""


def listener(path):
    """A listening socket at the path, or an abstract one, and a list that has an item for each connection."""
    heard = []
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(path))
    if not str(path).startswith("\0"):
        os.chmod(path, 0o777)
    server.listen()

    def accept():
        while True:
            try:
                heard.append(server.accept())
            except OSError:
                return
    threading.Thread(target=accept, daemon=True).start()
    return server, heard


class Result(Case):
    def test_comes_by_descriptor_3_alone(self):
        status, result, message = self.done("/bin/sh", "-c", "echo lost; echo lost >&2; printf kept >&3")
        self.assertEqual((status, result, message), (0, "kept", ""))

    def test_of_a_command_that_fails_by_itself_comes_with_its_status(self):
        self.assertEqual(self.done("/bin/sh", "-c", "echo x >&3; exit 3"), (1, "x\n", "ended with exit status 3\n"))

    def test_of_a_command_that_fails_has_its_last_words(self):
        for end, says in (("exit 3", "ended with exit status 3"), ("kill -9 $$", "killed by signal 9 (Killed)")):
            script = f"echo first >&2; printf '  no data\\n\\n' >&2; {end}"
            self.assertEqual(self.done("/bin/sh", "-c", script)[2], f"{says}: no data\n")

    def test_of_one_that_is_ended_is_nothing(self):
        killed = (1, "", "killed by signal 9 (Killed)\n")
        self.assertEqual(self.done("/bin/sh", "-c", "echo x >&3; kill -9 $$"), killed)

    def test_a_program_that_is_not_there(self):
        status, _, message = self.done("no-such-program")
        self.assertEqual(status, 1)
        self.assertIn("cannot run 'no-such-program'", message)

    def test_without_end_is_cut_off(self):
        self.assertIn("wrote more than 1 MiB of result", self.fails("for _ in range(32): os.write(3, b'x' * 65536)"))

    def test_that_somebody_outside_can_write_is_not_waited_for(self):
        mark = f"held-{os.getpid()}"
        give = (f"import os, socket; s = socket.socket(socket.AF_UNIX); s.bind('/tmp/{mark}'); s.listen()\n"
                "c, _ = s.accept(); socket.send_fds(c, [b'x'], [3]); os.write(3, b'said')")  # fmt: skip
        take = f"""import socket, subprocess, time
while True:
    for pid in subprocess.run(['pgrep', '-f', '^/usr/bin/python3.*{mark}$'], capture_output=True, text=True).stdout.split():
        try:
            s = socket.socket(socket.AF_UNIX)
            s.connect(f'/proc/{{pid}}/root/tmp/{mark}')
            held = socket.recv_fds(s, 1, 1)
            print('held', flush=True)
            time.sleep(300)
        except OSError:
            pass
    time.sleep(0.02)"""
        process = self.start(self.request("/usr/bin/python3", "-c", give, mark))
        holder = self.mode.as_who_enters("/usr/bin/python3", "-c", take, stdout=subprocess.PIPE, text=True)
        self.assertEqual(holder.stdout.readline(), "held\n")
        self.assertEqual(process.communicate(timeout=60), ("said", ""))
        holder.kill()
        holder.communicate()

    def test_that_nobody_takes_is_not_waited_for(self):
        mark = f"79{os.getpid()}"
        process = self.start(self.request("/bin/sh", "-c", f"exec sleep {mark}"))
        while subprocess.run(["pgrep", "-f", f"^sleep {mark}$"], capture_output=True, check=False).returncode:
            time.sleep(0.02)
        process.stdout.close()
        self.assertEqual(process.wait(), 1)
        process.stderr.close()

    def test_the_environment_does_not_reach_the_program_that_sets_it_up(self):
        """The dynamic linker would complain of it there."""
        self.assertEqual(self.done(TRUE, environment=["LD_PRELOAD=/no/such/library", "ASAN_OPTIONS=help=1"]), (0, "", ""))

    def test_requests_that_are_none(self):
        for text in ("", "[]", "{", '{"uid": 1}', '{"uid": 1, "gid": 1, "user": "x", "directory": "x"}'):
            process = self.mode.sandbox(stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            result, message = process.communicate(text)
            self.assertEqual((process.returncode, result, message.count("\n")), (2, "", 1), text)


class Bare(Case):
    """Where no sandbox can be had and the user wants it all the same."""

    def request(self, *command, **changes):
        return super().request(*command, **changes) | {"without_sandbox": True}

    def alive(self, mark):
        return subprocess.run(["pgrep", "-f", f"^sleep {mark}$"], capture_output=True, check=False).returncode == 0

    def test_is_the_user_without_rights(self):
        gid = self.request()["gid"]
        groups = "[]" if os.geteuid() == 0 else str(os.getgroups())
        self.assertEqual(self.inside("""
status = dict(line.split(":\\t") for line in open("/proc/self/status") if ":\\t" in line)
say(os.getresuid(), os.getresgid(), os.getgroups())
say(status["CapEff"].strip(), status["CapPrm"].strip(), status["NoNewPrivs"].strip())
"""), f"{(self.mode.uid,) * 3} {(gid,) * 3} {groups}\n{0:016x} {0:016x} 1\n")

    def test_its_files_are_real(self):
        self.inside("open('made', 'w').write('x')")
        self.assertEqual((self.work / "made").read_text(), "x")

    def test_ends_with_all_that_it_has_started(self):
        mark = f"78{os.getpid()}"
        self.inside(f"""
subprocess.Popen(['setsid', 'sh', '-c', 'setsid sleep {mark} & exec setsid sleep {mark}'], start_new_session=True)
while subprocess.run(['pgrep', '-f', '^sleep {mark}$'], capture_output=True).stdout.count(b'\\n') < 2:
    time.sleep(0.02)
""")
        self.assertFalse(self.alive(mark))

    def test_limits(self):
        mark = f"77{os.getpid()}"
        self.assertEqual(self.fails(f"subprocess.run(['setsid', '-w', 'sleep', '{mark}'])", time_s=1), "took longer than 1 s")
        self.assertFalse(self.alive(mark))
        self.assertEqual(self.inside("say(attempt(lambda: bytearray(2 << 30)))"), "MemoryError\n")

    def test_ends_with_who_has_asked(self):
        """As carmad's low_child ends it: its group is killed. A process in a session of its own must not go on."""
        mark = f"76{os.getpid()}"
        process = subprocess.Popen([self.mode.program], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True,
                                   **({"user": self.mode.uid, "group": self.mode.uid, "extra_groups": []} if self.mode.drop else {}))
        process.stdin.write(json.dumps(self.request("/bin/sh", "-c", f"setsid sh -c 'sleep {mark}; true'; true")).encode())
        process.stdin.close()
        while not self.alive(mark):
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        while self.alive(mark):
            time.sleep(0.02)

    def test_variables_that_lead_outside_are_gone(self):
        self.assertEqual(self.inside("say('SSH_AUTH_SOCK' in os.environ)", environment=["SSH_AUTH_SOCK=/x"]), "False\n")

    def test_roots_command_is_not_run(self):
        if os.geteuid() != 0 or self.mode.drop:
            self.skipTest("only root can ask for it")
        self.assertEqual(self.done(TRUE, uid=0, gid=0), (2, "", "root's commands are not run without a sandbox\n"))


class Files(Case):
    def setUp(self):
        super().setUp()
        for directory in (self.home, self.work, self.top):
            (directory / "kept").write_text("old")
            (directory / "deep" / "er").mkdir(parents=True)
            (directory / "deep" / "er" / "kept").write_text("old")
        if os.geteuid() == 0:
            for path in (self.top, *self.top.rglob("*")):
                os.chown(path, self.mode.uid, self.mode.uid)

    def outside(self):
        return {str(path): (path.stat().st_mtime_ns, path.read_text() if path.is_file() else "")
                for path in (self.top, *self.top.rglob("*"))}

    def test_written_and_deleted_inside_are_as_before_outside(self):
        before = self.outside()
        result = self.inside(f"""
for place in ({str(self.home)!r}, '.', '/tmp', '/var/tmp', '/dev/shm', {str(self.top)!r}):
    open(place + '/carma-sandbox-new', 'w').write('new')
    if place[0] != '/' or place.startswith('/tmp/'):
        open(place + '/kept', 'a').write('new')
        assert open(place + '/kept').read() == 'oldnew'
os.chmod('kept', 0)
import shutil
shutil.move('deep', 'moved')
os.symlink('/etc', 'link')
subprocess.check_call('rm -rf ~/* ~/deep ./* /tmp/carma-sandbox-new', shell=True)
os.mkdir('deep')
say(os.listdir('.'), os.listdir(os.path.expanduser('~')))
""")
        self.assertEqual(result, "['deep'] []\n")
        self.assertEqual(self.outside(), before)
        for place in ("/tmp", "/var/tmp", "/dev/shm"):
            self.assertFalse(os.path.exists(place + "/carma-sandbox-new"))

    def test_the_rest_is_read_only(self):
        with tempfile.TemporaryDirectory(dir="/var") if os.geteuid() == 0 else tempfile.TemporaryDirectory() as other:
            os.chmod(other, 0o777)
            if os.geteuid() != 0:
                self.skipTest("a user has no directory beside these")
            self.assertEqual(self.inside(f"say(attempt(lambda: open('/' + {other[1:]!r} + '/x', 'w')))"), "OSError\n")
            self.assertEqual(self.inside(f"say(attempt(lambda: open({other!r} + '/x', 'w')))"), "done\n", "where it is named")
            self.assertEqual(self.inside("say(attempt(lambda: open(os.environ['OTHER'] + '/x', 'w')))", environment=[f"OTHER={other}"]),
                             "done\n")
            self.assertEqual(os.listdir(other), [])

    def test_no_mount_can_be_written_but_the_throw_away_ones(self):
        self.assertEqual(self.inside("""
for line in open('/proc/self/mounts'):
    _, path, kind, options, *_ = line.split()
    if 'ro' not in options.split(',') and kind != 'devpts' and path not in ('/dev/shm', '/run', '/tmp', '/var/tmp'):
        if kind != 'overlay':
            say(line)
    if 'nosuid' not in options.split(','):
        say(line)
say('no other')
"""), "no other\n")

    def test_can_be_read(self):
        """Modules from the home, data by a relative path, a large file that is not copied: it exceeds the memory."""
        module = self.home / "venv" / "things.py"
        module.parent.mkdir()
        module.write_text("VALUE = 42")
        with open(self.work / "large", "wb") as large:
            large.truncate(3 << 30)
            large.seek(2 << 30)
            large.write(b"here")
        for path in (module.parent, module, self.work / "large"):
            os.chmod(path, 0o755)
        self.assertEqual(self.inside("""
sys.path.insert(0, os.path.expanduser('~/venv'))
import things
reading = open('large', 'rb')
reading.seek(2 << 30)
say(things.VALUE, reading.read(4), open('deep/er/kept').read(), os.getcwd() == os.path.realpath('.'))
"""), "42 b'here' old True\n")

    def test_of_others_cannot_be_read(self):
        if os.geteuid() != 0:
            self.skipTest("only root has files that the user cannot read")
        secret = self.top / "secret"
        secret.write_text("of root")
        os.chown(secret, 0, 0)
        secret.chmod(0o600)
        self.assertEqual(self.inside(f"say(attempt(lambda: open({str(secret)!r})))"), "PermissionError\n")

    def test_throw_away_directories_have_only_what_the_job_names(self):
        """A name is any absolute path in the command or its environment. It brings the whole entry, links as links."""
        for place in ("/tmp", "/var/tmp"):
            entries = [pathlib.Path(tempfile.mkdtemp(prefix="carma-sandbox ", dir=place)) for _ in range(3)]
            link = pathlib.Path(f"{place}/carma-sandbox-link-{os.getpid()}")
            link.symlink_to(entries[0])
            for entry in entries:
                self.addCleanup(shutil.rmtree, entry)
                subprocess.check_call(["install", "-dm", "777", entry / "bin"])  # to be written, though the entry is not
                entry.chmod(0o755)
            self.addCleanup(link.unlink)
            named = [f"DATA={entries[0]}", f"PATH=/usr/bin:/bin:{link}/bin"]
            self.assertEqual(self.inside(f"say(sorted(os.listdir({place!r})), os.listdir({str(link)!r}))", environment=named),
                             f"{sorted([entries[0].name, link.name] + [self.top.name] * (place == '/tmp'))} ['bin']\n")
            said = self.done("/bin/sh", "-c", f"ls {place} >&3; : '{entries[1]}/x'; dd of={link}/bin/x || echo no >&3")[1].splitlines()
            self.assertEqual(sorted(set(said) - {self.top.name}), sorted([entries[0].name, link.name]))

    def test_nothing_is_uncovered(self):
        """/run is empty, and the tree below the overlays is gone."""
        self.assertEqual(self.inside(f"""
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
say(os.listdir('/run'), os.path.exists('/var/run/docker.sock'))
say([libc.umount2(path, flags) for path in (b'/run', b'/tmp', b'/', b'{self.home}') for flags in (0, 2)])
say(libc.mount(b'x', b'/tmp', b'tmpfs', 0, b''), libc.chroot(b'/tmp'), libc.unshare(0x10000000))
say([word for word in open('/proc/self/mounts').read().split() if word == 'shadow'])
"""), "[] False\n[-1, -1, -1, -1, -1, -1, -1, -1]\n-1 -1 -1\n[]\n")

    def test_below_a_directory_of_another(self):
        mine = self.top / "theirs" / "mine"
        mine.mkdir(parents=True)
        if os.geteuid() == 0:
            os.chown(mine, self.mode.uid, self.mode.uid)
        self.assertEqual(self.inside("open('new', 'w').write('x')\nsay(os.listdir())", directory=str(mine)), "['new']\n")
        self.assertEqual(os.listdir(mine), [])

    def test_that_are_many_have_an_end(self):
        self.assertIn(self.fails("""
try:
    for i in range(4096):
        open(f'/tmp/{i}', 'wb').write(b'x' * (1 << 20))
except OSError:
    sys.exit(7)
""", memory_bytes=256 << 20), ("ended with exit status 7", "needed more than 256 MiB"))

    def test_a_directory_in_a_mount_of_its_own(self):
        if os.geteuid() != 0:
            self.skipTest("only root can mount")
        if self.mode.drop:
            self.skipTest("the mount namespace of the test would be the user's")
        mounted = self.home / "data"
        mounted.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=777", "carma-test", mounted], check=True)
        self.addCleanup(subprocess.run, ["umount", mounted], check=True)
        (mounted / "kept").write_text("old")
        script = "say(open('{0}/kept').read(), attempt(lambda: open('{0}/kept', 'w')), attempt(lambda: open('x', 'w')))"
        self.assertEqual(self.inside(script.format(mounted)), "old OSError done\n")
        os.chmod(mounted / "kept", 0o666)
        self.assertEqual(self.inside(script.format(mounted), directory=str(mounted)), "old done done\n")
        self.assertEqual((mounted / "kept").read_text(), "old")


class Sockets(Case):
    def test_of_outside_are_not_reached(self):
        run = pathlib.Path("/run" if os.geteuid() == 0 else tempfile.mkdtemp(dir=f"/run/user/{os.geteuid()}"
                           if os.access(f"/run/user/{os.geteuid()}", os.W_OK) else None))
        for path in (self.home / "socket", self.work / "socket", self.top / "socket", run / "carma-sandbox-test",
                     pathlib.Path("/var/carma-sandbox-test" if os.geteuid() == 0 else self.top / "other"),
                     f"\0carma-sandbox-{os.getpid()}"):
            server, heard = listener(path)
            try:
                said = self.inside(f"say(attempt(lambda: socket.socket(socket.AF_UNIX).connect({str(path)!r})))",
                                   environment=[f"SSH_AUTH_SOCK={path}"] if "home" in str(path) else [])
                self.assertIn(said, ("ConnectionRefusedError\n", "FileNotFoundError\n", "PermissionError\n"), path)
                self.assertEqual(heard, [], path)
                self.assertEqual(self.mode.as_user("/usr/bin/python3", "-c", "import socket; "
                                 f"socket.socket(socket.AF_UNIX).connect({str(path)!r})").wait(), 0, "not even outside")
            finally:
                server.shutdown(socket.SHUT_RDWR)
                server.close()
                for connection, _ in heard:
                    connection.close()
                if not str(path).startswith("\0"):
                    os.unlink(path)

    def test_fifos_of_outside_are_not_reached(self):
        fifo = self.home / "fifo"
        os.mkfifo(fifo)
        fifo.chmod(0o666)
        reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, reader)
        self.assertEqual(self.inside(f"say(attempt(lambda: os.open({str(fifo)!r}, os.O_WRONLY | os.O_NONBLOCK)))"),
                         "OSError\n")
        os.close(os.open(fifo, os.O_WRONLY | os.O_NONBLOCK))  # outside there is a reader

    def test_of_inside_work(self):
        """As multiprocessing and torch.distributed need them."""
        self.assertEqual(self.inside("""
import multiprocessing
server = socket.create_server(('127.0.0.1', 0))
client = socket.create_connection(server.getsockname())
own = socket.socket(socket.AF_UNIX)
own.bind('/tmp/own')
own.listen()
socket.socket(socket.AF_UNIX).connect('/tmp/own')
def work(queue):
    queue.put(6 * 7)
context = multiprocessing.get_context('fork')
queue = context.Queue()
context.Process(target=work, args=(queue,)).start()
say(queue.get())
"""), "42\n")

    def test_the_network_is_not_there(self):
        server = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(server.close)
        self.assertEqual(self.inside(f"""
say(attempt(lambda: socket.create_connection(('127.0.0.1', {server.getsockname()[1]}), 5)))
say(attempt(lambda: socket.create_connection(('192.0.2.1', 80), 5)))
say(attempt(lambda: socket.socket(socket.AF_VSOCK)), sorted(name for _, name in socket.if_nameindex())[:1])
"""), "ConnectionRefusedError\nOSError\nOSError ['lo']\n")

    def test_variables_that_lead_outside_are_dropped(self):
        environment = ["CARMA_SOCKET=/x", "SSH_AUTH_SOCK=/x", "DBUS_SESSION_BUS_ADDRESS=/x", "XDG_RUNTIME_DIR=/x",
                       "DISPLAY=:0", "CUDA_HOME=/kept"]
        self.assertEqual(self.inside("say(sorted(set(os.environ) - {'LC_CTYPE'}))", environment=environment),
                         "['CUDA_HOME', 'HOME', 'PATH']\n")


class Processes(Case):
    def bystander(self):
        """A process of the same user outside, with something to steal."""
        process = self.mode.as_user("/bin/sleep", "1000")
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def test_of_outside_are_not_seen(self):
        process = self.bystander()
        self.assertEqual(self.inside(f"""
import ctypes
ptrace = ctypes.CDLL(None).ptrace
say(sorted(int(name) for name in os.listdir('/proc') if name.isdigit()))
say(ptrace(16, {process.pid}, 0, 0), attempt(lambda: open('/proc/{process.pid}/mem')))
say(attempt(lambda: open('/proc/1/mem', 'rb')), attempt(lambda: os.listdir('/proc/1/fd')), ptrace(16, 1, 0, 0))
say(attempt(lambda: os.kill(1, 0)) and attempt(lambda: os.listdir('/proc/1/root')))
"""), "[1, 2]\n-1 FileNotFoundError\nPermissionError PermissionError -1\nPermissionError\n")

    def test_queues_of_outside_are_not_seen(self):
        libc = ctypes.CDLL(None)
        queue = libc.msgget(0, 0o666)
        self.addCleanup(libc.msgctl, queue, 0, None)
        self.assertEqual(self.inside("say(len(open('/proc/sysvipc/msg').readlines()))"), "1\n")

    def test_signals_reach_nobody_outside(self):
        process = self.bystander()
        self.inside(f"""
signal.signal(signal.SIGTERM, signal.SIG_IGN)
attempt(lambda: os.kill({process.pid}, signal.SIGKILL))
attempt(lambda: os.kill(-1, signal.SIGTERM))  # nobody else is there
os.kill(1, signal.SIGKILL)
say('alive')
""")
        self.assertIn("killed by signal 9", self.fails("os.kill(0, signal.SIGKILL)"))
        self.assertIsNone(process.poll())

    def test_that_stay_behind_are_ended(self):
        mark = f"77{os.getpid()}"
        self.inside(f"""
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
            os.closerange(0, 100)
            os.execv('/bin/sleep', ['sleep', '{mark}'])
        os._exit(0)
time.sleep(0.2)
""")
        self.assertEqual(subprocess.run(["pgrep", "-f", f"sleep {mark}"], capture_output=True, check=False).stdout, b"")

    def test_without_end_are_ended(self):
        self.assertRegex(self.fails("""
while True:
    try:
        os.fork()
    except OSError:
        pass
""", time_s=2), "needed more than 512 processes|took longer than 2 s")

    def test_of_root_have_an_end_too(self):
        """The kernel's own limit does not hold root's processes. (They are not endless here, should ours not hold.)"""
        if os.geteuid() != 0 or self.mode.drop:
            self.skipTest("only root runs root's jobs")
        self.assertEqual(self.fails("for _ in range(11): attempt(os.fork)\ntime.sleep(60)", uid=0, gid=0,
                                    directory="/usr", time_s=20), "needed more than 512 processes")

    def test_that_never_end_are_ended_in_time(self):
        began = time.monotonic()
        self.assertEqual(self.fails("while True: pass", time_s=1), "took longer than 1 s")
        self.assertGreaterEqual(time.monotonic() - began, 1)

    def test_that_take_memory_are_ended(self):
        shared = "import mmap\ntaken = mmap.mmap(-1, 1 << 30)\nfor _ in range(1 << 10): taken.write(b'x' * (1 << 20))\n"
        for script in ("taken = b'x' * (1 << 30)", shared, shared + "taken.madvise(mmap.MADV_DONTNEED)",
                       "taken = open('/dev/shm/x', 'wb')\nfor _ in range(1 << 10): taken.write(b'x' * (1 << 20))",
                       sockets("socket.socketpair()"), sockets("socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)"),
                       sockets("connected()")):
            self.assertRegex(self.fails(script + "\ntime.sleep(300)", memory_bytes=256 << 20, time_s=max(20, PATIENCE_S // 2)),
                             "needed more than 256 MiB|ended with exit status 1", script)

    def test_that_use_a_little_of_each_are_not(self):
        self.assertEqual(self.inside(sockets("socket.socketpair()", 16) + "assert most <= 512 << 10, most" + sockets("connected()", 8) + """
assert most <= 2 << 20, most
import mmap
for _ in range(16):
    mmap.mmap(-1, 1 << 20).write(b'x' * (1 << 20))
time.sleep(1.5)
say('done')""", memory_bytes=256 << 20), "done\n")

    def test_shared_pages_count_once(self):
        """A loader's workers share what their parent has read."""
        self.assertEqual(self.inside("""
taken = b'x' * (150 << 20)
for _ in range(4):
    if os.fork() == 0:
        time.sleep(1)
        os._exit(0)
for _ in range(4):
    os.wait()
say('done')""", memory_bytes=400 << 20), "done\n")

    def test_end_with_the_one_that_asked(self):
        """carmad is killed while a capture runs."""
        mark = f"78{os.getpid()}"
        process = self.start(self.request("/bin/sh", "-c", f"exec sleep {mark}"))
        pattern = ["pgrep", "-f", f"^sleep {mark}$"]
        while subprocess.run(pattern, capture_output=True, check=False).returncode:
            time.sleep(0.02)
        process.kill()
        process.wait()
        ends = time.monotonic() + 60
        while not subprocess.run(pattern, capture_output=True, check=False).returncode:
            self.assertLess(time.monotonic(), ends, "the command outlived carma-sandbox")
            time.sleep(0.02)
        process.stdout.close()
        process.stderr.close()

    def test_have_the_lowest_priority(self):
        self.assertEqual(self.inside("""
import resource
say(os.nice(0), resource.getrlimit(resource.RLIMIT_CORE))
say(attempt(lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))), attempt(lambda: os.nice(-1)))
"""), "19 (1, 1)\nPermissionError PermissionError\n")


class Groups(Case):
    """Its own control group. The limits themselves need a machine whose controllers are of version 2."""

    def setUp(self):
        super().setUp()
        mounts = [line.split()[4] for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines()
                  if " - cgroup2 " in line]
        if os.geteuid() != 0 or not mounts or not os.access(mounts[0], os.W_OK):
            self.skipTest("only root can make a control group of version 2, where there is one")
        self.group = pathlib.Path(tempfile.mkdtemp(prefix="carma-test-", dir=mounts[0]))
        self.addCleanup(self.group.rmdir)

    def test_of_its_own_is_gone_with_it(self):
        if self.mode.drop:
            self.skipTest("the group is not the user's: see below")
        left = self.group / "sandbox-999999"
        left.mkdir()
        said = self.inside("say(open('/proc/self/cgroup').read())", cgroup=str(self.group))
        self.assertRegex(said, f"0::.*/{self.group.name}/sandbox-[0-9]+\n")
        self.assertEqual([path.name for path in self.group.iterdir() if path.is_dir()], [])

    def test_that_cannot_be_had_is_done_without(self):
        for group in (str(self.group) if self.mode.drop else str(self.top), "/no/such/group"):
            self.assertEqual(self.inside("say('well')", cgroup=group), "well\n")
            self.assertEqual(list(self.top.glob("sandbox-*")), [])


class Rights(Case):
    def test_are_those_of_the_user_and_no_more(self):
        self.assertEqual(self.inside("""
status = open('/proc/self/status').read()
fields = dict(line.split(':', 1) for line in status.splitlines())
say(os.getresuid(), [fields[name].strip().strip('0') for name in
    ('CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb')], fields['NoNewPrivs'].strip(), fields['Seccomp'].strip())
"""), f"({self.mode.uid}, {self.mode.uid}, {self.mode.uid}) "
            "['', '', '', '', ''] 1 2\n")

    def test_set_user_id_programs_gain_nothing(self):
        program = self.top / "setuid"
        program.write_bytes(pathlib.Path("/usr/bin/id").read_bytes())
        if os.geteuid() == 0:
            os.chown(program, 0, 0)
        program.chmod(0o4755)
        self.assertEqual(self.inside(f"say(subprocess.check_output([{str(program)!r}, '-u'], text=True).strip())"),
                         f"{self.mode.uid}\n")

    def test_no_namespace_brings_them_back(self):
        self.assertEqual(self.inside("""
import ctypes, platform
libc = ctypes.CDLL(None, use_errno=True)
clone = 56 if platform.machine() == 'x86_64' else 220
say(libc.unshare(0x10000000), libc.syscall(clone, 0x10000000 | 17, 0, 0, 0, 0), libc.syscall(435, 0, 0))
"""), "-1 -1 -1\n")

    def test_keys_and_rings_are_not_there(self):
        self.assertEqual(self.inside("""
import ctypes, errno, platform
libc = ctypes.CDLL(None, use_errno=True)
calls = (248, 249, 250, 425) if platform.machine() == 'x86_64' else (217, 218, 219, 425)
def why(call):
    libc.syscall(call, 0, 0, 0, 0, 0)
    return errno.errorcode[ctypes.get_errno()]
say([why(call) for call in calls])
"""), "['ENOSYS', 'ENOSYS', 'ENOSYS', 'ENOSYS']\n")

    def test_descriptors_are_three_and_the_result(self):
        self.assertEqual(self.inside("""
say({name: os.readlink('/proc/self/fd/' + name).split(':')[0] for name in ('0', '1', '2', '3')},
    sum(1 for number in range(64) if attempt(lambda: os.fstat(number)) == 'done'))
"""), "{'0': '/dev/null', '1': '/dev/null', '2': 'pipe', '3': 'pipe'} 4\n")

    def test_devices_are_harmless(self):
        self.assertEqual(self.inside("""
say(sorted(os.listdir('/dev')), open('/dev/zero', 'rb').read(1), attempt(lambda: os.openpty()))
open('/dev/null', 'w').write('x')
say(attempt(lambda: open('/dev/new', 'w')), attempt(lambda: os.mknod('/tmp/null-%d' % os.getpid(), 0o20666, os.makedev(1, 3))))
"""), "['fd', 'full', 'null', 'ptmx', 'pts', 'random', 'shm', 'stderr', 'stdin', 'stdout', 'urandom', 'zero'] "
            "b'\\x00' done\nOSError PermissionError\n")

    def test_of_root_are_none_either(self):
        """Root's own job: settings of the kernel belong to root, whatever its capabilities."""
        if os.geteuid() != 0 or self.mode.drop:
            self.skipTest("only root runs root's jobs")
        self.assertEqual(self.inside("""
say(os.getuid(), attempt(lambda: open('/' 'etc/passwd', 'a')),
    attempt(lambda: open('/proc/sys/kernel/core_pattern', 'r+')), attempt(lambda: os.setuid(1)))
""", uid=0, gid=0, user="root", directory="/usr"), "0 OSError OSError PermissionError\n")

    def test_of_another_user_are_not_to_be_had(self):
        if os.geteuid() == 0 and not self.mode.drop:
            self.skipTest("root may")
        self.assertEqual(self.done(TRUE, uid=self.mode.uid + 1)[::2],
                         (2, f"only root can run a command as another user (uid {self.mode.uid + 1})\n"))


if __name__ == "__main__":
    box.main(sys.argv[1])
