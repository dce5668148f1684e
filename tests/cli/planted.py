"""Usage: planted.py DIRECTORY CARMA CARMAD: walks kinds of planted names, by the places where they are planted and by what
carma would open there (docs/threat-model.md, "Paths"). Called by test_planted.sh, as root, with homes of alice and bob."""

import json
import os
import pathlib
import socket
import stat
import subprocess
import sys

ALICE, BOB = 12001, 12002
T, CARMA, CARMAD = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
HOME = T / "alice"
PRECIOUS, NEW, RAN = HOME / "precious", HOME / "new", HOME / "ran"
failures = []


def alice(*words, **more):
    return subprocess.run(["setpriv", f"--reuid={ALICE}", f"--regid={ALICE}", "--init-groups", *map(str, words)],
                          cwd=HOME, capture_output=True, text=True, check=False, timeout=300,
                          env={**os.environ, "HOME": str(HOME), **more})  # fmt: skip


def give(path, uid=BOB, mode=None):
    os.chown(path, uid, uid, follow_symlinks=False)
    if mode is not None:
        os.chmod(path, mode)


# ---- What bob plants; each takes the path. ----


def directory(path):
    path.mkdir()
    (path / "model.pt").write_text("planted")
    give(path, mode=0o777)


def file(path):
    path.touch()
    give(path, mode=0o666)


def link_to(target):
    def plant(path):
        path.symlink_to(target)
        give(path)

    return plant


def fifo(path):
    os.mkfifo(path)
    give(path, mode=0o666)
    readers.append(os.open(path, os.O_RDWR | os.O_NONBLOCK))


def device(path):
    os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    give(path, mode=0o666)


def hard_link(path):
    os.link(PRECIOUS, path)


def open_directory(path):
    path.mkdir()
    give(path, ALICE, 0o777)


def dead_socket(path):
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
    give(path, mode=0o666)


readers = []
LINKS = {"link to a file": link_to(PRECIOUS), "link to a directory": link_to(HOME), "dangling link": link_to(NEW)}
FILES = {**LINKS, "another's file": file, "another's FIFO": fifo, "another's device": device, "hard link": hard_link}
DIRECTORIES = {**LINKS, "another's directory": directory, "another's FIFO": fifo, "another's device": device,
               "another's socket": dead_socket, "directory that all may write": open_directory}  # fmt: skip
WHY = ("uid 12002", "others may write it", "second name")


def places():
    for name, owner, mode in (("sticky", 0, 0o1777), ("open", 0, 0o777), ("bobs", BOB, 0o777), ("closed", BOB, 0o755)):
        path = T / name
        path.mkdir()
        give(path, owner, mode)
        yield path


def whole(what):
    if PRECIOUS.read_text() != "precious" or NEW.exists():
        failures.append(f"{what}: alice's file was changed, or one was made")
        PRECIOUS.write_text("precious")
    if RAN.exists():
        failures.append(f"{what}: the job ran")
        RAN.unlink()


# ---- Jobs ----

numbered = []  # what is planted for each job, or None: it must run


def submit(what, *options):
    said = alice(CARMA, "submit", "--parsable", *options, "--", "touch", RAN if what else "/dev/null")
    numbered.append(what)
    if said.stdout.strip() != str(len(numbered)):
        failures.append(f"{what or options}: {said.stdout}{said.stderr}")


def plant_for_jobs(place):
    for kind, plant in FILES.items():
        for option in ("-o", "-e"):
            name = place / f"{kind} {option}"
            plant(name)
            submit(f"{place.name}: {option} {kind}", option, name, *(("-o", "/dev/null") if option == "-e" else ()))
    way = place / "way"
    LINKS["link to a directory"](way)
    submit(f"{place.name}: -o behind a link", "-o", way / "new")
    if place.name == "closed":
        return  # alice's job can make nothing there
    refuse(f"{place.name}: -D a link", [CARMA, "submit", "-D", way, "--", "true"])
    moved = place / "moved"
    moved.mkdir()
    give(moved, ALICE)
    submit(f"{place.name}: -D that became a link", "--hold", "-D", moved, "-o", "/dev/null")
    moved.rmdir()
    LINKS["link to a directory"](moved)
    alice(CARMA, "release", len(numbered))
    for kind, plant in DIRECTORIES.items():
        plant(place / f"carma-{len(numbered) + 1}.ckpt")
        submit(f"{place.name}: checkpoints {kind}", "-D", place, "-o", "/dev/null")


def submit_honest(place):
    """Names of her own, and root's links, stay as good as before."""
    own, roots = place / "own", place / "root's"
    own.symlink_to(HOME / "log")
    give(own, ALICE)
    roots.symlink_to(HOME)
    submit(None, "-o", own)
    submit(None, "-o", own, "-D", roots)
    (place / f"carma-{len(numbered) + 1}.ckpt").mkdir()
    give(place / f"carma-{len(numbered) + 1}.ckpt", ALICE)
    submit(None, "-D", place, "-o", roots / "log")


def check_jobs():
    alice(CARMA, "wait", f"1-{len(numbered)}")
    for number, what in enumerate(numbered, 1):
        job = json.loads(alice(CARMA, "show", "--json", str(number)).stdout)
        message = job.get("message") or ""
        if what is None and job["state"] != "COMPLETED":
            failures.append(f"job {number}, where nothing is planted: {job['state']} {message}")
        if what and (job["state"] != "FAILED" or not any(why in message for why in WHY) or "\n" in message):
            failures.append(f"{what}: {job['state']} {message!r}")
    whole("a job")


# ---- Alice's own daemon and commands ----


def check_daemon(place):
    """Directories beside its socket, and that of the socket itself."""
    for kind, plant in DIRECTORIES.items():
        if kind == "directory that all may write":
            continue  # hers: carmad closes it
        at = place / kind[:20]
        plant(pathlib.Path(f"{at}.scripts"))
        refuse(f"{place.name}: scripts, {kind}", [CARMAD, "--state", HOME / "state", "--socket", at])
    bobs = place / "bobs-own"
    directory(bobs)
    refuse(f"{place.name}: the socket's directory", [CARMAD, "--state", HOME / "state", "--socket", bobs / "socket"])


def check_mps(place):
    """Domains that carmad seems to have left: their control daemons would be asked, and ended."""
    domain = place / "mps" / "uid-12001-0123456789abcdef"
    domain.mkdir(parents=True)
    (domain / "gpus").mkdir()  # carmad cannot read whose GPUs these are
    give(place / "mps", mode=0o755)
    give(domain, ALICE)
    words = [CARMAD, "--state", HOME / "state", "--socket", place / "of-mps", "--set", f"nvml_library={T}/prefix/lib/carma/"
             "vnode/libnvidia-ml.so.1"]  # fmt: skip
    with subprocess.Popen(["setpriv", f"--reuid={ALICE}", f"--regid={ALICE}", "--init-groups", *map(str, words)], cwd=HOME,
                          env={**os.environ, "HOME": str(HOME)}, stderr=subprocess.PIPE, text=True) as carmad:  # fmt: skip
        for line in carmad.stderr:
            if "uid-12001" in line:
                break
        carmad.terminate()
        carmad.stderr.read()
    if "cannot be taken up" not in line or "uid 12002" not in line:
        failures.append(f"{place.name}: mps: {line}")


def check_commands(place):
    bobs = place / "bobs-socket"
    listen = f"import socket, sys; s = socket.socket(socket.AF_UNIX); s.bind({str(bobs)!r}); s.listen(); print(flush=True); sys.stdin.read()"
    with subprocess.Popen(["setpriv", f"--reuid={BOB}", f"--regid={BOB}", "--clear-groups", "python3", "-c", listen],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:  # fmt: skip
        server.stdout.readline()
        os.chmod(bobs, 0o666)
        refuse(f"{place.name}: a socket", [CARMA, "queue"], CARMA_SOCKET=str(bobs))
        by_root = subprocess.run([CARMA, "queue"], env={**os.environ, "CARMA_SOCKET": str(bobs)}, check=False,
                                 stderr=subprocess.PIPE, text=True, timeout=60)  # fmt: skip
        if by_root.returncode != 1 or f"own daemon, be this user: sudo -u '#{BOB}' carma" not in by_root.stderr:
            failures.append(f"{place.name}: root and bob's socket: {by_root}")
        server.communicate()
    for kind, plant in FILES.items():
        name = place / f"{kind} of monitor"
        plant(name)
        refuse(f"{place.name}: monitor --file {kind}", [CARMA, "monitor", f"--csv={name}", "--for", "0.01"])
    (T / "trace.csv").write_text("arrival_s,workload,duration_s\n0,resnet18_cifar100_20e_3,30\n")
    LINKS["link to a directory"](place / "of-play")
    refuse(f"{place.name}: play --output-dir", [CARMA, "play", "--output-dir", place / "of-play", T / "trace.csv"])


def refuse(what, words, **more):
    try:
        said = alice(*words, **more)
    except subprocess.TimeoutExpired:
        failures.append(f"{what}: it runs")
        return
    last = said.stderr.strip().splitlines()[-1:]
    if said.returncode == 0 or not last or not any(why in last[0] for why in (*WHY, "cannot make the directory")):
        failures.append(f"{what}: status {said.returncode}: {said.stderr}")


def main():
    PRECIOUS.write_text("precious")
    give(PRECIOUS, ALICE)
    found = list(places())
    for place in found:
        plant_for_jobs(place)
    for place in found[:2]:
        submit_honest(place)
    check_jobs()
    check_daemon(found[0])
    check_mps(found[0])
    check_commands(found[0])
    whole("a command")
    print("\n".join(failures), file=sys.stderr)
    return bool(failures)


sys.exit(main())
