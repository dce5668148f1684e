"""The bounds of carmad's requests, at them and over them. Usage: bounds.py SOCKET
queue|pages|share|sizes|texts|texts_again|held|held_again|models|slow|slow_user|tenfold|tenfold_long ..., for test_bounds.sh and test_slow_disk.sh. Each limit is met, which is taken,
and then passed by one, which is refused in one line; the daemon answers after each."""

import contextlib
import json
import os
import select
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from unix_http import Connection

GIB = 1 << 30


class Daemon(Connection):
    def __init__(self):
        super().__init__(sys.argv[1])

    def send_request(self, method, path, body=None):
        self.request(method, path, None if body is None else json.dumps(body))

    def answer(self):
        response = self.getresponse()
        return response.status, json.loads(response.read())

    def call(self, method, path, body=None):
        self.send_request(method, path, body)
        return self.answer()


def job(**members):
    return {"name": "n", "command": ["true"], "directory": "/", "output": "/dev/null", "held": True,
            "gpu_memory_bytes": GIB, **members}


def submit(jobs):
    return Daemon().call("POST", "/v1/jobs", {"jobs": jobs})


def expect(what, found, status, text=""):
    if found[0] != status or text not in found[1].get("error", "") or "\n" in found[1].get("error", ""):
        sys.exit(f"{what}: {found[0]} {str(found[1])[:300]}, not {status} with '{text}'")
    if Daemon().call("GET", "/v1/status")[0] != 200:
        sys.exit(f"{what}: the daemon does not answer after it")


def queue():
    """max_queued is 5."""
    expect("5 jobs", submit([job()] * 5), 201)
    expect("a job more", submit([job()]), 503, "the queue is full: 5 jobs have not ended, max_queued is 5 and you submit 1")
    expect("a cancel", Daemon().call("POST", "/v1/jobs/1/cancel"), 200)
    expect("two jobs for one place", submit([job()] * 2), 503, "4 jobs have not ended")
    expect("a job for one place", submit([job()]), 201)
    expect("ten times as many", submit([job()] * 50), 503, "the queue is full: 5 jobs have not ended")


def share():
    """max_queued is 200: the last 20 are for users with at most 2."""
    expect("the jobs that anybody may have", submit([job()] * 180), 201)
    expect("more of a user with many", submit([job()]), 503, "the last 20 of max_queued 200 are for users with at most 2 (you have 180")
    if os.geteuid() != 0:
        return
    other = os.fork()
    if other == 0:
        os.setuid(12345)
        expect("of a user with none", submit([job()] * 2), 201)
        expect("more of that user", submit([job()]), 503, "the queue is nearly full: 182 jobs have not ended")
        os._exit(0)
    if os.waitpid(other, 0)[1] != 0:
        sys.exit("another user has no share")


def slow_user():
    """For the named uid the user database takes 4 s to answer. The second submission needs no answer."""
    uid = int(sys.argv[3])
    submitter = os.fork()
    if submitter == 0:
        if os.geteuid() == 0:
            os.setgid(uid)
            os.setuid(uid)
        begun = time.monotonic()
        status, answer = submit([job(held=False), job()])
        took = time.monotonic() - begun
        print(status, answer, f"{took:.1f} s", flush=True)
        again, _ = submit([job()])
        os._exit(0 if status == again == 201 and took >= 4 else 1)
    longest = 0.0
    while not (ended := os.waitpid(submitter, os.WNOHANG))[0]:
        begun = time.monotonic()
        expect("a look", Daemon().call("GET", "/v1/jobs"), 200)
        longest = max(longest, time.monotonic() - begun)
        time.sleep(0.05)
    if ended[1] != 0:
        sys.exit("the slow user's submission")
    if longest > 2:
        sys.exit(f"another waited {longest:.1f} s for a slow user's name")


def pages():
    """2300 jobs in parts: the first, the last, those behind one; an impossible part is refused."""
    def listed(query, left_out, *ids):
        status, answer = Daemon().call("GET", "/v1/jobs" + query)
        found = [entry["id"] for entry in answer.get("jobs", [])]
        if status != 200 or found != list(*ids) or answer["left_out"] != left_out:
            sys.exit(f"GET /v1/jobs{query}: {status} {answer.get('left_out')} left out, {len(found)} jobs from {found[:1]}")

    for count in (1000, 1000, 300):
        expect("jobs", submit([job()] * count), 201)
    listed("", 0, range(1, 2301))
    listed("?limit=1000", 1300, range(1, 1001))
    listed("?limit=1000&after=1000", 300, range(1001, 2001))
    listed("?limit=1000&after=2000", 0, range(2001, 2301))
    listed("?state=waiting&last=2&uid=self", 2298, range(2299, 2301))
    listed("?after=2300", 0, [])
    listed("?uid=4294967294", 0, [])
    for dependency, count in (("singleton", 200), ("afterany:" + ":".join("1" * 400), 51)):
        expect("many dependencies", submit([job(dependency=dependency)] * count), 413, "submit fewer at once")
    for query in ("limit=x", "last=-1", "after=1x", "uid=me", "limit=1&last=1", "state=losing"):
        expect(query, Daemon().call("GET", f"/v1/jobs?{query}"), 400, "")


def texts():
    """max_texts_per_user is 1M. What remains of an ended job is small, whatever its environment had: in three turns."""
    large = job(environment=["A=" + "\n\x01\"" * 30000])
    for first in (1, 4, 7):
        expect("what a user may have", submit([large] * 3), 201)
        texts_again()
        for number in range(first, first + 3):
            expect("a cancel", Daemon().call("POST", f"/v1/jobs/{number}/cancel"), 200)
    expect("what a user may have", submit([large] * 3), 201)


def texts_again():
    """Three are there, also after a restart."""
    large = job(environment=["A=" + "\n\x01\"" * 30000])
    expect("a job more", submit([large]), 503, "you submit 293 KiB, a user may have 1 MiB (max_texts_per_user): wait")


def held():
    """A quarter of it may be in memory, where what equal jobs have in common counts once; and a request more."""
    unlike = [job(environment=[f"A={number}" + "x" * 70000]) for number in range(5)]
    expect("a job", submit([job()]), 201)
    expect("many dependencies on it", submit([job(dependency="afterany:" + ":".join("1" * 400))] * 11), 201)
    expect("a job more", submit([job()]), 503, "of carmad's memory")
    for number in range(1, 13):
        expect("a cancel", Daemon().call("POST", f"/v1/jobs/{number}/cancel"), 200)
    expect("equal jobs", submit([unlike[0]] * 2), 201)
    for number in range(1, 4):
        expect("an unlike one", submit([unlike[number]]), 201)
    held_again()


def held_again():
    """Also after a restart. An end makes room."""
    unlike = [job(environment=[f"A={number}" + "x" * 70000]) for number in (5, 6)]
    expect("too many unlike ones", submit([unlike[0]]), 503, " KiB of carmad's memory, a user may have 256 KiB")
    ids = [each["id"] for each in Daemon().call("GET", "/v1/jobs")[1]["jobs"]]
    for number in ids[-2:]:
        expect("a cancel", Daemon().call("POST", f"/v1/jobs/{number}/cancel"), 200)
    for each in unlike:
        expect("one in its place", submit([each]), 201)


def padded(count, each):
    return ["x" * (each - 1)] * count


def sizes():
    million = 1 << 20
    for member, most, text in (("name", 128, "name is too long"), ("dataset", 1024, "dataset is too long"), ("directory", 4095, "directory is too long")):
        start = "/" if member == "directory" else "x"
        expect(f"{member} at its limit", submit([job(**{member: start + "x" * (most - 1)})]), 201)
        expect(f"{member} over it", submit([job(**{member: start + "x" * most})]), 400, text)
    for member, most in (("command", 4096), ("environment", 8192)):
        expect(f"{member} at its number", submit([job(**{member: ["A=b"] * most})]), 201)
        expect(f"{member} over its number", submit([job(**{member: ["A=b"] * (most + 1)})]), 400, "too many entries")
        expect(f"{member} at its size", submit([job(**{member: ["A=" + "x" * (million - 3)]})]), 201)
        expect(f"{member} over its size", submit([job(**{member: ["A=" + "x" * (million - 2)]})]), 400, "more than 1048576")
    expect("1000 jobs", submit([job()] * 1000), 201)
    expect("1001 jobs", submit([job()] * 1001), 413, "1001 jobs at once are too many: submit at most 1000")
    expect("a member too many", submit([job(**{f"x{i}": 0 for i in range(8200)})]), 413, "values and names are too many")
    expect("a job like no other", submit([[], job()]), 400, "job 1 of the request: the job is not a JSON object")
    expect("a number for a job", submit([job(), 1]), 400, "the request is not {")


def model(layers, batch_size=1):
    """Of 328 events a layer: more than 152 are a costly one, estimated in a turn of its own."""
    config = {"model_type": "gpt2", "n_embd": 64, "n_layer": layers, "n_head": 2, "vocab_size": 100}
    return job(hf_config=json.dumps(config), batch_size=batch_size, gpu_memory_bytes=None)


def processor_s(path=""):
    """Of carmad, or of one of its threads."""
    with open(f"/proc/{sys.argv[3]}{path}/stat", encoding="ascii") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def beside_the_loop_s(layers, old="", new=""):
    """What 40 requests with such a model cost carmad's other threads: its first one is the loop. What the loop itself
    takes meanwhile grows with the time that passes, on a busy machine without end."""
    others = processor_s() - processor_s(f"/task/{sys.argv[3]}")
    for i in range(40):
        connection = Daemon()
        connection.request("POST", "/v1/jobs", json.dumps({"jobs": [model(layers, 1 + i)]}).replace(old, new))
        if connection.answer()[0] != 201:
            sys.exit("a small request was refused")
    return processor_s() - processor_s(f"/task/{sys.argv[3]}") - others


def expect_low_priority():
    """Of root's carmad: a costly estimate is made behind its loop. One may pass between two looks."""
    own = os.getpriority(os.PRIO_PROCESS, int(sys.argv[3]))
    for attempt in range(20):
        connection = Daemon()
        connection.send_request("POST", "/v1/jobs", {"jobs": [model(1500, 99 + attempt)]})
        while not select.select([connection.sock], [], [], 0.001)[0]:
            for thread in os.listdir(f"/proc/{sys.argv[3]}/task"):
                with contextlib.suppress(OSError):
                    if os.getpriority(os.PRIO_PROCESS, int(thread)) > own:
                        connection.answer()
                        return
        expect("a costly model", connection.answer(), 201)
    sys.exit("a costly estimate has the priority of carmad")


def models():
    """Equal ones are made once; of all together a request has 4,000,000 events; none are estimated on the loop."""
    same = submit([model(1000)] * 20 + [model(100)] * 20 + [model(1), {**model(1), "lengths": "64 5\n512\n"}])
    expect("equal models", same, 201)
    if len({str(each["estimate"]) for each in same[1]["jobs"]}) != 4 or same[1]["jobs"][0]["estimate"]["bytes"] is None:
        sys.exit(f"equal models have other estimates: {same[1]}")
    expect("models beyond the bound", submit([model(4000, 1 + i) for i in range(4)]), 413, "job 4 of the request: with its model the models of the request")
    rows = "".join(f"Linear-{i} [-1, 8] 72\n" for i in range(1, 40001))
    heads = f"{'-' * 64}\nLayer (type) Output Shape Param #\n{'=' * 64}\n"
    ends = f"{'=' * 64}\nTotal params: 2,880,000\nTrainable params: 2,880,000\nNon-trainable params: 0\n{'-' * 64}\n"
    sizes = "".join(f"{what} (MB): {mb}\n" for what, mb in
                    (("Input size", 1), ("Forward/backward pass size", 2.44), ("Params size", 10.99), ("Estimated Total Size", 14.43)))
    layers = {"hf_config": None, "batch_size": 1, "summary": heads + rows + ends + sizes + "-" * 64}
    expect("layers beyond it", submit([{**model(1), **layers, "batch_size": 1 + i} for i in range(3)]), 413, "job 3 of the request: with its")
    expect("one that is too large", submit([model(10000)] * 2 + [{**model(10000), "method": "accumulate=2"}]), 400, "it has too many layers")
    little = beside_the_loop_s(1)
    for old, new in (("true", "true"), ("hf_config", "hf\\u005fconfig")):
        used = beside_the_loop_s(150, old, new)
        if used < little + 0.1:  # about 0.01 s each
            sys.exit(f"'{new}': of estimates only {used:.2f} s of processor time were not the loop's, of tiny ones {little:.2f} s")
    if os.geteuid() == 0:
        expect_low_priority()


def slow():
    """A submission with a sync of a second, and the answers meanwhile."""
    syncs, others = sys.argv[3], [Daemon() for _ in range(20)]
    watcher, submitter = Daemon(), Daemon()
    open(syncs, "wb").close()
    submitter.send_request("POST", "/v1/jobs", {"jobs": [job()]})
    end = time.monotonic() + 30
    while not os.path.getsize(syncs):
        if time.monotonic() > end:
            sys.exit("the store syncs nothing: is the library loaded?")
    for other in others:  # these wait together, for one more sync
        other.send_request("POST", "/v1/jobs", {"jobs": [job()]})
    answered = 0
    while not select.select([submitter.sock], [], [], 0)[0]:
        expect("a look", watcher.call("GET", "/v1/jobs"), 200)
        answered += 1
    if answered < 3:
        sys.exit(f"only {answered} requests were answered while the disk was slow")
    expect("the submission", submitter.answer(), 201)
    for other in others:
        expect("a submission behind it", other.answer(), 201)
    count = os.path.getsize(syncs)
    os.unlink(syncs)
    if count > 8:
        sys.exit(f"{count} syncs for 21 submissions: they do not share transactions")


def carma(*words):
    return subprocess.run([sys.argv[3], *words], check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode


def stream(_):
    """The status, while the others are open: 0 is a stream that is cut off for another's."""
    connection = Daemon()
    connection.request("GET", "/v1/events", headers={"Accept": "text/event-stream"})
    response = connection.getresponse()
    streams.append(response)
    return response.status


def ran_out(_):
    """A message behind ten times the output that is read for it."""
    words = "yes | head -c 10M; echo 'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 45.00 GiB.'; exit 1"
    job_id = subprocess.check_output([sys.argv[3], "submit", "--parsable", "-o", "/dev/null", "-e", "ten", "--", "sh", "-c",
                                      f"({words}) >&2"], text=True).strip()  # fmt: skip
    carma("wait", job_id)
    return Daemon().call("GET", f"/v1/jobs/{job_id}")[1]["exit_cause"]


def large(_):
    """Refused before it is sent."""
    connection = Daemon()
    connection.request("POST", "/v1/jobs", headers={"Content-Length": str(160 << 20)})
    return connection.getresponse().status


def by_python(_):
    import carma as client

    return len(client.gpus())


def explained(_):
    """When a job starts that waits for one on all GPUs."""
    return Daemon().call("GET", f"/v1/jobs/{waiting[1]}/explain")[0]


streams, waiting = [], []
# Ten times a bound, as many at once, what each does, and all that may come of it. (Ten times the connections of a user:
# test_turns.sh. A text's size: sizes().)
TENFOLD = (
    ("history: 4 questions under way", 40, lambda _: carma("stats", "--json"), {0}),
    ("history: 1,000 rows", 1, lambda _: Daemon().call("GET", "/v1/history?limit=10000")[0], {400}),
    ("1 submission is estimated", 10, lambda n: submit([model(150, 1 + n)])[0], {201}),
    ("8 streams of events", 80, stream, {200, 503}),
    ("the last MiB of an output", 1, ran_out, {"gpu_oom"}),
    ("1,000 jobs of a request", 1, lambda _: submit([job()] * 10000)[0], {413}),
    ("10,000 jobs of an array", 1, lambda _: submit([job(array="0-99999")])[0], {400}),
    ("256 ranges of an array", 1, lambda _: submit([job(array=",".join(map(str, range(0, 5120, 2))))])[0], {400}),
    ("a request of 16 MiB", 1, large, {413}),
    ("explain: 4 expected starts of a user", 40, explained, {200}),  # last: nothing else runs then
)
TENFOLD_LONG = (
    ("1,000 jobs of a request", 1, lambda _: carma("submit", "--hold", *["job.sh"] * 10000), {0}),
    ("200 connections a second", 2000, by_python, {4}),
)


def tenfold(rows=TENFOLD):
    print(f"{'bound':34}{'at once':>8}  came of it")
    for bound, count, work, may in rows:
        if work is explained:
            all_gpus = job(held=False, exclusive=True, gpus=4, command=["sleep", "1000"])
            waiting.extend(each["id"] for each in submit([all_gpus] * 2)[1]["jobs"])
        with ThreadPoolExecutor(min(count, 100)) as pool:
            came = list(pool.map(work, range(count)))
        print(f"{bound:34}{count:>8}  " + ", ".join(f"{came.count(each)} x {each}" for each in sorted(set(came), key=str)))
        expect(bound, (200, {}), 200)
        if set(came) - may or (len(may) > 1 and set(came) != may):
            sys.exit(f"{bound}: {set(came)}, not {may}")
    carma("cancel", *(str(each) for each in waiting))


def tenfold_long():
    tenfold(TENFOLD_LONG)


{"queue": queue, "pages": pages, "share": share, "sizes": sizes, "texts": texts, "texts_again": texts_again, "held": held, "held_again": held_again, "models": models, "slow": slow, "slow_user": slow_user, "tenfold": tenfold, "tenfold_long": tenfold_long}[sys.argv[2]]()
