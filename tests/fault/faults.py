"""The kinds of faults: each injects a number of them while the node works, and returns the number."""

import errno
import os
import signal
import sqlite3
import time

# Where carmad and a shepherd act on the world, in the order of a job's life: program, call, part of the file's name.
# The last number is how many such calls to let pass. A kill comes before and after each.
DAEMON_POINTS = [
    ("carmad", "pwrite64", "store.db-wal", 0),  # a transaction is written
    ("carmad", "fdatasync", "store.db-wal", 0),  # ... and on the disk
    ("carmad", "fdatasync", "store.db", 0),
    ("carmad", "sendmsg", "", 0),  # a client is answered: the stored request is acknowledged
    ("carmad", "mkdir", "/no-mps", 0),  # the directory of the shepherd that waits
    ("carmad", "rename", "/runs/", 0),  # ... becomes a launch's, which so begins to exist
    ("carmad", "write", "carma-launch", 0),  # the orders for its shepherd
    ("carmad", "posix_spawn", "", 0),  # the shepherd that waits for the next job
    ("carmad", "link", "/status", 0),  # a launch whose shepherd has not begun is given up
    ("carmad", "fork", "", 0),  # carma-monitor
]
SHEPHERD_POINTS = [
    ("carma-shepherd", "write", "/status.", 0),  # the first status
    ("carma-shepherd", "link", "/status", 0),  # ... is there: the launch is the shepherd's
    ("carma-shepherd", "send", "", 0),  # the daemon is told
    ("carma-shepherd", "fork", "", 0),
    ("carma-shepherd+", "write", "pipe:", 0),  # the child reports its output's place
    ("carma-shepherd+", "write", "pipe:", 1),  # ... and that it executes the command
    ("carma-shepherd+", "execvp", "", 0),
    ("carma-shepherd", "rename", "/status", 0),  # it runs
    ("carma-shepherd", "fsync", "/status.", 0),  # how it ended
    ("carma-shepherd", "rename", "/status", 1),
]
AT_START = {"fork", "link"}  # of carmad
LATE_MS = 400  # longer than the daemon takes to start
HANG_MS = 3000  # longer than a submission takes
POINT_SECONDS = 10  # to wait for one to be passed

NEW_PROCESS_CALLS = [("carmad", "posix_spawn"), ("carma-shepherd", "fork"), ("carmad", "fork")]


class Scene:
    """The kinds' tools."""

    def __init__(self, node, clients, random):
        self.node = node
        self.clients = clients
        self.random = random
        self.wrong = []  # with the test itself

    def pause(self):
        """Now and then very short: while the daemon is only starting."""
        time.sleep(self.random.choice([self.random.uniform(0, 0.05), self.random.uniform(0.05, 0.5),
                                       self.random.uniform(0.05, 0.5), self.random.uniform(0.3, 1.0)]))

    def wait_hit(self, seconds, slot=0):
        end = time.monotonic() + seconds
        while time.monotonic() < end and not self.node.control.hits(slot):
            if not self.node.alive():
                self.node.start()
            time.sleep(0.01)
        return self.node.control.hits(slot)


def daemon(scene, count):
    for _ in range(count):
        scene.pause()
        scene.node.restart()
    return count


def points(scene, rounds, table=None):
    """Every point, before and after; `rounds` times, each time a few such calls later."""
    hits, passed, all_points = 0, set(), set()
    for turn in range(rounds):
        for program, call, file, skip in table or DAEMON_POINTS:
            for after in (False,) if call == "execvp" else (False, True):
                more = scene.random.randrange(4) if turn else 0
                if call == "link" and program == "carmad":  # there has to be a launch without a shepherd
                    scene.node.control.arm("carma-shepherd", "link", "/status", error=-LATE_MS, slot=1)
                    hits += scene.wait_hit(POINT_SECONDS, 1) > 0
                scene.node.control.arm(program, call, file, after=after, skip=skip + more)
                if program == "carmad" and call in AT_START:
                    scene.node.restart()
                point = f"{'after' if after else 'before'} {call} {file} {skip} of {program}"
                all_points.add(point)
                if scene.wait_hit(POINT_SECONDS):
                    hits += 1
                    passed.add(point)
                scene.node.control.disarm()
                scene.node.control.disarm(1)
                if not scene.node.alive():
                    scene.node.start()
                scene.node.await_ready(5)
    if not table:
        hits += sum(late_shepherd(scene) + early_answer(scene) for _ in range(2 * rounds))
    scene.wrong += [f"never {point}" for point in sorted(all_points - passed)]
    return hits


def late_shepherd(scene):
    """The daemon dies, and the next finds a run directory without a status: its shepherd is only about to begin."""
    scene.node.control.arm("carma-shepherd", "link", "/status", error=-LATE_MS, slot=1)
    hits = scene.wait_hit(POINT_SECONDS, 1) > 0
    scene.node.restart()
    scene.node.await_ready(5)
    time.sleep(2 * LATE_MS / 1000)
    scene.node.control.disarm(1)
    return hits


def early_answer(scene):
    """The daemon dies as soon as it has acknowledged a job that came while a write of its store hung."""
    scene.node.control.arm("carmad", "pwrite64", "store.db-wal", error=-HANG_MS)
    hits = scene.wait_hit(POINT_SECONDS) > 0
    scene.clients.submit()
    scene.node.restart()
    scene.node.await_ready(5)
    return hits


def shepherd(scene, count):
    """At their points, and any that runs at any time; now and then the daemon with one."""
    hits = points(scene, 1, SHEPHERD_POINTS)
    end = hits + count
    while hits < end:
        scene.pause()
        pids = scene.node.pids_of("carma-shepherd")
        if pids:
            kill(scene.random.choice(pids))
            hits += 1
            if scene.random.random() < 0.2:
                scene.node.restart()
    return hits


def kill(pid, number=signal.SIGKILL):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def monitor(scene, count):
    """Killed, stopped as if it hung, and with driver calls that do not return."""
    for turn in range(count):
        scene.pause()
        pids = scene.node.pids_of("carma-monitor")
        if turn % 3 == 2:
            scene.node.run("carma-vnode", "inject", scene.node.env["CARMA_VNODE"], "hang", "--for",
                           scene.node.scale // 2, check=True)
        elif pids:
            kill(pids[0], signal.SIGKILL if turn % 3 == 0 else signal.SIGSTOP)
    return count


def reboot(scene, count):
    """All that runs dies at once, as far as that can be done without a machine of one's own; its start is another."""
    for _ in range(count):
        time.sleep(scene.random.uniform(0.3, 1.0))
        scene.node.kill_all()
        scene.node.start()
    return count


def store(scene, count):
    """Writes that fail for lack of space or by an I/O error, locks that are held; now and then a kill meanwhile."""
    faults = [("pwrite64", "store.db", errno.ENOSPC), ("pwrite64", "store.db", errno.EIO),
              ("fdatasync", "store.db", errno.EIO), ("lock", "store.db", errno.EAGAIN), ("lock", "store.db", errno.EIO)]
    hits = 0
    for turn in range(count):
        call, file, error = faults[turn % len(faults)]
        scene.node.control.arm("carmad", call, file, skip=scene.random.randrange(20),
                               times=scene.random.choice([1, 2, 5]), error=error)
        hits += scene.wait_hit(POINT_SECONDS) > 0
        if turn % 3 == 2:
            scene.node.restart()
        scene.pause()
        scene.node.control.disarm()
        if not scene.node.alive():
            scene.node.start()
    return hits


def full(scene, count):
    """Nothing can be written for a second or two; nobody is killed."""
    hits = 0
    for _ in range(count):
        scene.pause()
        scene.node.control.arm("carmad", "pwrite64", "store.db", times=1 << 30, error=errno.ENOSPC)
        time.sleep(scene.random.uniform(0.5, 2))
        hits += scene.node.control.hits() > 0
        scene.node.control.disarm()
        scene.pause()
    return hits


def busy(scene, count):
    """Somebody else holds the database for longer than the daemon waits for it (store.md)."""
    for _ in range(count):
        other = sqlite3.connect(scene.node.state / "store.db", isolation_level=None, timeout=10)
        other.execute("BEGIN IMMEDIATE")
        time.sleep(12)
        other.execute("ROLLBACK")
        other.close()
        scene.pause()
    return count


def processes(scene, count):
    """No process can be made: not a shepherd, not a job, not carma-monitor."""
    hits = 0
    for turn in range(count):
        program, call = NEW_PROCESS_CALLS[turn % len(NEW_PROCESS_CALLS)]
        scene.node.control.arm(program, call, skip=scene.random.randrange(3), times=scene.random.choice([1, 2]),
                               error=errno.EAGAIN)
        if program == "carmad" and call == "fork":
            for pid in scene.node.pids_of("carma-monitor"):
                kill(pid)
        hits += scene.wait_hit(POINT_SECONDS) > 0
        scene.node.control.disarm()
    return hits


def files(scene, count):
    """No file can be opened, as for lack of descriptors: a status cannot be read when the daemon starts, or written."""
    hits = 0
    for turn in range(count):
        time.sleep(scene.random.uniform(0.3, 0.6))
        scene.node.control.arm(["carmad", "carma-shepherd"][turn % 2], "open", "/status", error=errno.EMFILE,
                               times=scene.random.choice([1, 2, 5]))
        scene.node.restart()
        hits += scene.wait_hit(POINT_SECONDS) > 0
        scene.node.control.disarm()
    return hits


def mps(scene, count):
    """As `daemon`, where jobs share by MPS and the control daemons are carma's own; now and then one of these is killed."""
    for turn in range(count):
        scene.pause()
        controls = scene.node.pids_of("nvidia-cuda-mps-control")
        if controls and turn % 5 == 4:
            kill(scene.random.choice(controls))
        else:
            scene.node.restart()
    return count


def memory(scene, count):
    """An allocation gives NULL, anywhere: the programs abort, or refuse."""
    hits = 0
    for turn in range(count):
        program = ["carmad", "carmad", "carma-monitor", "carma-shepherd"][turn % 4]
        most = {"carmad": 20000, "carma-monitor": 300, "carma-shepherd": 60}[program]
        scene.node.control.arm(program, "malloc", skip=scene.random.randrange(most), error=errno.ENOMEM)
        if program == "carma-monitor":
            scene.node.restart()
        hits += scene.wait_hit(POINT_SECONDS) > 0
        scene.node.control.disarm()
        scene.pause()
        if not scene.node.alive():
            scene.node.start()
    return hits


def clock(scene, count):
    """An hour forward, an hour back, and so on; now and then a restart in between."""
    for turn in range(count):
        time.sleep(scene.random.uniform(0.2, 1.0))
        scene.node.control.shift_clock([3600, 0, -3600, 0][turn % 4])
        if turn % 2:
            scene.node.restart()
    return count
