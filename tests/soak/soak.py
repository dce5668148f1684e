"""Many short jobs of several users: nothing is lost, and nothing grows. Run by tests/soak/soak:
soak.py PREFIX [--jobs N] [--scale X] [--flat]. Starts a virtual node and a carmad of its own under a temporary
directory. CLIENTS processes, of three uids in turn, each submit their part of the jobs, and ask for each until it has
ended. Each has one connection that is kept; every 20th submission goes by the program `carma`. Every job adds a line to
a file of its own, so that a second run would be seen, and ends with a status that its number gives. Every 50th is
cancelled at once. Meanwhile carmad's memory, descriptors, run directories and store are watched. Data forgotten after
the retention (a minute of node time, PREFIX's clock at X times the wall's) must not add up."""

import argparse
import json
import multiprocessing
import os
import pathlib
import pwd
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "cli"))
import unix_http  # noqa: E402

CLIENTS, UIDS = 8, (12001, 12002, 12003)
BATCH, OUTSTANDING = 5, 60  # of one client: jobs of a request; most that have not been seen to end
CANCELLED, BY_PROGRAM = 50, 20  # every so manieth
WORKLOADS = 50
RETENTION_S = 60


class Connection(unix_http.Connection):
    def call(self, method, path, body=None):
        self.request(method, path, json.dumps(body) if body else None)
        response = self.getresponse()
        answer = json.loads(response.read())
        if response.status == 404:
            return None
        if response.status not in (200, 201):
            raise SystemExit(f"{method} {path}: {response.status} {answer}")
        return answer


# ---- One client: a process of its own, with its user's rights ----

def script(number, folder):
    """Job `number` of this client: it says that it ran, and ends with a status that its id gives. Of WORKLOADS kinds,
    so that each one's learned data is kept and found again."""
    return ["sh", "-c", f"echo $CARMA_JOB_ID >>{folder}/ran-$CARMA_JOB_ID; [ $((CARMA_JOB_ID % 7)) -ne 0 ] || exit 3",
            str(number % WORKLOADS)]


def is_cancelled(number):
    return number % CANCELLED == CANCELLED // 2


class Client:
    def __init__(self, folder, carma, jobs):
        self.folder, self.carma, self.jobs = folder, carma, jobs
        self.connection = Connection(os.environ["CARMA_SOCKET"])
        self.open = {}  # job: its number with this client
        self.may_run = os.access(carma, os.X_OK)  # not below somebody's home directory
        self.problems, self.forgotten = [], 0

    def submit_by_program(self, number):
        run = subprocess.run([self.carma, "submit", "--parsable", "--gpu-memory", "1G", "-o", "/dev/null", "--",
                              *script(number, self.folder)], stdout=subprocess.PIPE, check=True, cwd=self.folder)
        self.open[int(run.stdout)] = number

    def submit(self, numbers):
        jobs = [{"name": f"n{number}", "command": script(number, self.folder), "directory": str(self.folder),
                 "output": "/dev/null", "gpu_memory_bytes": 1 << 30} for number in numbers]
        for number, job in zip(numbers, self.connection.call("POST", "/v1/jobs", {"jobs": jobs})["jobs"]):
            self.open[job["id"]] = number
            if is_cancelled(number):
                self.cancel(job["id"])

    def cancel(self, job):
        try:
            self.connection.call("POST", f"/v1/jobs/{job}/cancel")
        except SystemExit as refusal:
            if "already ended" not in str(refusal):
                raise

    def check(self, job, view):
        number = self.open.pop(job)
        proof = self.folder / f"ran-{job}"
        lines = proof.read_text().split() if proof.exists() else []
        wanted = ("FAILED", 3) if job % 7 == 0 else ("COMPLETED", 0)
        if view is None:  # forgotten before this busy machine came to ask: it has run all the same
            self.forgotten += 1
            view = {"state": "forgotten", "exit_status": None, "attempts": 1, "uid": os.getuid()}
            good = lines == [str(job)] or (not lines and is_cancelled(number))
        elif view["state"] == "CANCELLED" and is_cancelled(number):
            good = lines in ([], [str(job)])
        else:
            good = (view["state"], view["exit_status"]) == wanted and lines == [str(job)]
        if not good or view["attempts"] > 1 or view["uid"] != os.getuid():
            self.problems.append(f"job {job} (number {number} of uid {os.getuid()}): {view['state']}, status "
                                 f"{view['exit_status']}, {view['attempts']} launches, ran as {lines}")
        proof.unlink(missing_ok=True)

    def look(self):
        for job in list(self.open):
            view = self.connection.call("GET", f"/v1/jobs/{job}")
            if view is None or view["ended_ns"] is not None:
                self.check(job, view)

    def run(self):
        number, seen = 0, 0
        while number < self.jobs or self.open:
            while number < self.jobs and len(self.open) < min(OUTSTANDING, self.jobs // 5):
                batch = list(range(number + 1, min(number + BATCH, self.jobs) + 1))
                by_program = [one for one in batch if self.may_run and one % BY_PROGRAM == 0]
                self.submit([one for one in batch if one not in by_program])
                for one in by_program:
                    self.submit_by_program(one)
                number = batch[-1]
            self.look()
            seen = number - len(self.open)
            (self.folder / "seen").write_text(str(seen))
            time.sleep(0.2)
        return {"seen": seen, "forgotten": self.forgotten, "by_program": self.may_run, "problems": self.problems}


def run_client(uid, folder, carma, jobs, results):
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    results.put(Client(folder, carma, jobs).run())


# ---- The watch ----

class Watch:
    """Carmad's resources, against the number of ended jobs."""

    def __init__(self, daemon, state, clients):
        self.daemon, self.state, self.clients, self.rows = daemon, state, clients, []

    def ended(self):
        seen = [folder / "seen" for folder in self.clients]
        return sum(int(file.read_text() or 0) for file in seen if file.exists())

    def look(self):
        status = pathlib.Path(f"/proc/{self.daemon}/status").read_text()
        self.rows.append({
            "ended": self.ended(),
            "memory": int(re.search(r"VmRSS:\s+(\d+)", status)[1]) << 10,
            "descriptors": len(os.listdir(f"/proc/{self.daemon}/fd")),
            "runs": len(os.listdir(self.state / "runs")),
            "store": sum(file.stat().st_size for file in self.state.glob("store.db*")),
        })

    def slope(self, figure):
        """Least squares over the second half: the growth with each job that ends."""
        rows = self.rows[len(self.rows) // 2:]
        x, y = [row["ended"] for row in rows], [row[figure] for row in rows]
        mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
        over = sum((a - mean_x) ** 2 for a in x)
        return sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y)) / over if over else 0.0

    def check(self):
        """Flat: the maximum of the second half is hardly above that of the first."""
        problems = []
        for figure, spare in (("memory", 1 << 20), ("descriptors", 8), ("runs", 200), ("store", 4 << 20)):
            half = len(self.rows) // 2
            first, second = (max(row[figure] for row in rows) for rows in (self.rows[:half], self.rows[half:]))
            if second > first * 1.1 + spare:
                problems.append(f"{figure} grew from {first} at most in the first half to {second} in the second")
        return problems

    def show(self):
        print(f"\n{'':14}{'at first':>10}{'a quarter':>11}{'half':>11}{'the end':>11}{'most':>11}{'per job, 2nd half':>19}")
        for figure, unit, name in (("memory", 1 << 20, "MiB"), ("descriptors", 1, ""), ("runs", 1, ""),
                                   ("store", 1 << 20, "MiB")):
            at = [self.rows[i][figure] / unit for i in (0, len(self.rows) // 4, len(self.rows) // 2, -1)]
            most = max(row[figure] for row in self.rows) / unit
            print(f"{(figure + ' ' + name):14}" + f"{at[0]:10.1f}" + "".join(f"{value:11.1f}" for value in at[1:])
                  + f"{most:11.1f}{self.slope(figure):15.3f}" + (" B" if unit > 1 else ""))


def until(what, condition, seconds):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise SystemExit(f"soak: waited {seconds} s for {what}")
        time.sleep(0.05)


def start_daemon(prefix, base):
    subprocess.run([prefix / "bin" / "carma-vnode", "create", base / "node", "--profile", "h100x8-80g"], check=True,
                   stdout=subprocess.DEVNULL)
    with open(base / "log", "w", encoding="utf-8") as log:
        daemon = subprocess.Popen(
            [prefix / "bin" / "carmad", "--config", "/dev/null", "--state", base / "state", "--socket", base / "socket",
             "--set", "settle=0s", "--set", "grace=1s", "--set", f"retention={RETENTION_S}s",
             "--set", f"nvml_library={prefix}/lib/carma/vnode/libnvidia-ml.so.1"], stderr=log)
    carma = prefix / "bin" / "carma"
    until("the daemon and its GPUs", lambda: b'"observed_ns": ' in subprocess.run(
        [carma, "gpus", "--json"], capture_output=True, check=False).stdout, 30)
    return daemon


def start_clients(base, carma, jobs, results):
    clients = []
    for i in range(CLIENTS):
        folder, uid = base / f"client-{i}", UIDS[i % len(UIDS)]
        folder.mkdir()
        os.chown(folder, uid, uid)
        part = jobs // CLIENTS + (i < jobs % CLIENTS)
        client = multiprocessing.Process(target=run_client, args=(uid, folder, carma, part, results))
        client.start()
        clients.append((folder, client))
    return clients


def see_forgotten(base, jobs):
    """Once the retention has passed, little more has to happen until the jobs' traces are gone."""
    connection = Connection(str(base / "socket"))
    held = {"name": "stirs", "command": ["true"], "directory": "/", "output": "/dev/null", "held": True}

    def are_gone():
        for job in connection.call("POST", "/v1/jobs", {"jobs": [held] * 200})["jobs"]:
            connection.call("POST", f"/v1/jobs/{job['id']}/cancel")
        time.sleep(0.5)
        return len(os.listdir(base / "state" / "runs")) < jobs / 20

    until("the run directories of jobs that ended before the retention to go", are_gone,
          RETENTION_S / float(os.environ["CARMA_TIME_SCALE"]) + 30)


def soak(base, prefix, jobs, flat):
    carma = prefix / "bin" / "carma"
    daemon = start_daemon(prefix, base)
    began = time.monotonic()
    results = multiprocessing.Queue()
    clients = start_clients(base, carma, jobs, results)
    watch = Watch(daemon.pid, base / "state", [folder for folder, _ in clients])
    problems, seen, forgotten, by_program = [], 0, 0, True
    try:
        while any(client.is_alive() for _, client in clients):
            watch.look()
            time.sleep(0.5)
        for _, client in clients:
            result = results.get() if client.exitcode == 0 else {
                "seen": 0, "forgotten": 0, "by_program": False, "problems": ["a client failed"]}
            seen += result["seen"]
            forgotten += result["forgotten"]
            by_program = by_program and result["by_program"]
            problems += result["problems"]
        took = time.monotonic() - began
        watch.look()
        counts = Connection(str(base / "socket")).call("GET", "/v1/status")
        if counts["unfinished"] or seen != jobs:
            problems.append(f"{seen} of {jobs} jobs were seen to end, {counts['unfinished']} have not")
        see_forgotten(base, jobs)
    finally:
        daemon.terminate()
        daemon.wait()
        for _, client in clients:
            client.kill()
    if daemon.returncode != 0:
        problems.append(f"carmad ended with {daemon.returncode}")
    verified = subprocess.run([carma, "admin", "verify", "--state", base / "state"], capture_output=True, text=True,
                              check=False)
    if verified.returncode != 0:
        problems.append(f"carma admin verify: {verified.stderr.strip()}")
    if flat:
        problems += watch.check()
    print(f"{jobs} jobs of {CLIENTS} clients and {len(UIDS)} uids in {took:.0f} s: {len(problems)} problems, {forgotten} forgotten before "
          f"they were asked for; retention {RETENTION_S / float(os.environ['CARMA_TIME_SCALE']):.0f} s")
    print(verified.stdout.strip() + ("" if by_program else "; the users may not run carma here: all over HTTP"))
    watch.show()
    return problems


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("prefix", type=pathlib.Path)
    parser.add_argument("--jobs", type=int, default=10000)
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--flat", action="store_true", help="see that nothing grows in the second half")
    options = parser.parse_args()
    for uid in UIDS:
        pwd.getpwuid(uid)  # tests/soak/soak gives them names
    os.umask(0o022)
    base = pathlib.Path(tempfile.mkdtemp(prefix="carma-soak-"))
    os.chmod(base, 0o755)
    os.environ.update(CARMA_VNODE=str(base / "node"), CARMA_TIME_SCALE=str(options.scale),
                      CARMA_SOCKET=str(base / "socket"), CARMA_PREFIX=str(options.prefix.resolve()))
    try:
        problems = soak(base, options.prefix.resolve(), options.jobs, options.flat)
        for problem in problems[:20]:
            print(f"FAILED: {problem}")
        if problems:
            sys.stdout.write((base / "log").read_text()[-4000:])
    finally:
        shutil.rmtree(base, ignore_errors=True)
    return 1 if problems else 0


sys.exit(main())
