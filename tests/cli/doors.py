"""Usage: doors.py SOCKET PID: sends the worst texts to each door of the carmad with that PID. Each is refused in one line,
and costs no more memory than it may (docs/threat-model.md); carmad has given it back a moment later."""

import contextlib
import json
import os
import sys
import time

from unix_http import Connection

MIB = 1 << 20
PATIENCE_S = 60
BECOMES_MIB = 48  # of a body of 16 MiB, as it is read, at most (docs/limits.md)
BEYOND_MIB = 16 + BECOMES_MIB
KEPT_MIB = 20
JOB = {"name": "n", "command": ["true"], "directory": "/", "output": "/dev/null", "held": True, "gpu_memory_bytes": 1 << 30}


def ask(method, path, body=None):
    connection = Connection(sys.argv[1], PATIENCE_S)
    with contextlib.suppress(BrokenPipeError):  # refused before all of it was read
        connection.request(method, path, body)
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read() or b"{}")


def memory_mib(name):
    with open(f"/proc/{sys.argv[2]}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(name)) / 1024


def is_sanitized():
    """Its allocator keeps what was freed: figures tell nothing."""
    with open(f"/proc/{sys.argv[2]}/maps", encoding="utf-8") as maps:
        return "libasan" in maps.read()


def filled(head, piece, tail, size):
    return head + piece * ((size - len(head) - len(tail)) // len(piece)) + tail


def worst(head, tail, size):
    """Texts of that size behind `head`, a member's name and its colon."""
    return {
        "empty objects": filled(head + "[{}", ",{}", "]" + tail, size),
        "nesting": filled(head, "[", tail, size),
        "a long text": filled(head + '"', "x", '"' + tail, size),
        "short texts": filled(head + '[""', ',""', "]" + tail, size),
        "members": head + "{" + ",".join(f'"{i:x}":0' for i in range((size - len(head) - len(tail) - 9) // 9)) + "}" + tail,
        "one member again and again": filled(head + '{"a":0', ',"a":0', "}" + tail, size),
    }


def doors(size):
    """Method, path, text; the largest of about that size."""
    yield from (("POST", "/v1/jobs", what, text) for what, text in worst('{"jobs":', "}", size).items())
    yield from (("POST", "/v1/jobs", f"a job: {what}", text) for what, text in worst('{"jobs":[{"command":', "}]}", size).items())
    large = json.dumps({**JOB, "environment": [f"V{i}={'v' * 90}" for i in range(150)]})
    yield ("POST", "/v1/jobs", "large jobs, the last one wrong",
           '{"jobs":[%s]}' % ",".join([large] * 900 * (size // MIB // 16) + [json.dumps({**JOB, "gpus": 65})]))
    for what, text in worst('{"model_type":', "}", size // 2 - 64).items():
        yield "POST", "/v1/jobs", f"hf_config: {what}", json.dumps({"jobs": [{**JOB, "gpu_memory_bytes": None, "hf_config": text,
                                                                              "hf_config_name": "c.json", "batch_size": 1}]})
    yield from (("POST", "/v1/whatif", what, text) for what, text in worst('{"policies":', "}", 65536).items())
    if os.geteuid() == 0:
        for path, member in (("/v1/leases", "command"), ("/v1/leases/1/end", "output"), ("/v1/leases/1/steps/0", "pids")):
            method = "PUT" if "steps" in path else "POST"
            yield from ((method, path, what, text) for what, text in worst('{"%s":' % member, "}", 2 * MIB).items())


class Peak:
    """Of carmad's memory, in MiB, above what it had."""

    def __enter__(self):
        self.before = memory_mib("VmRSS")
        with open(f"/proc/{sys.argv[2]}/clear_refs", "w", encoding="ascii") as peak:
            peak.write("5")
        return self

    def __exit__(self, *_):
        self.above = memory_mib("VmHWM") - self.before


def requests():
    measured = not is_sanitized()
    ask("GET", "/v1/status")
    before = memory_mib("VmRSS")
    for method, path, what, text in doors(16 * MIB if measured else MIB):
        with Peak() as peak:
            status, answer = ask(method, path, text)
        if status not in (400, 404, 413) or "\n" in answer.get("error", "\n"):
            sys.exit(f"{method} {path}, {what}: {status} {str(answer)[:300]}")
        if measured and peak.above > BEYOND_MIB:
            sys.exit(f"{method} {path}, {what}: cost {peak.above:.0f} MiB, more than {BEYOND_MIB}")
        if ask("GET", "/v1/status")[0] != 200:
            sys.exit(f"{method} {path}, {what}: the daemon does not answer after it")
    status, answer = ask("POST", "/v1/whatif", " " * 65537)
    if status != 413:
        sys.exit(f"a large body where nobody needs one: {status} {answer}")
    time.sleep(0.2)
    if measured and memory_mib("VmRSS") - before > KEPT_MIB:
        sys.exit(f"{memory_mib('VmRSS') - before:.0f} MiB were not given back")


def answers():
    """Lists that nobody takes are not made in advance; each comes in its turn."""
    measured = not is_sanitized()
    for _ in range(3):
        status, answer = ask("POST", "/v1/jobs", json.dumps({"jobs": [JOB] * 1000}))
        if status != 201:
            sys.exit(f"a thousand jobs: {status} {answer}")
    connections = [Connection(sys.argv[1], PATIENCE_S) for _ in range(64 if measured else 4)]
    with Peak() as peak:
        for connection in connections:
            connection.request("GET", "/v1/jobs")
        time.sleep(2)
        for connection in connections:
            if len(json.loads(connection.getresponse().read())["jobs"]) != 3000:
                sys.exit("a list that waited is not whole")
    if measured and peak.above > BEYOND_MIB:
        sys.exit(f"{len(connections)} lists cost {peak.above:.0f} MiB, more than {BEYOND_MIB}")


def bodies():
    """As many large ones as a user may have under way, each a byte short; then all are whole. One of them is read at a time."""
    jobs = [{**JOB, "environment": [f"A{job:04}{i:05}=0123456789abcdef" for i in range(490)]} for job in range(999)]
    text = json.dumps({"jobs": [*jobs, {**JOB, "gpus": 65}]}, separators=(",", ":"))
    text += " " * (16 * MIB - len(text))
    connections = [Connection(sys.argv[1], PATIENCE_S) for _ in range(4)]
    with Peak() as peak:
        for connection in connections:
            connection.putrequest("POST", "/v1/jobs")
            connection.putheader("Content-Length", str(len(text)))
            connection.endheaders(text[:-1].encode())
        status, answer = ask("POST", "/v1/jobs", text)
        if status != 503 or "too many large requests" not in answer["error"]:
            sys.exit(f"a fifth large body: {status} {answer}")
        for connection in connections:
            connection.send(b" ")
        for connection in connections:
            answer = json.loads(connection.getresponse().read())["error"]
            if "job 1000 of the request: gpus 65" not in answer:
                sys.exit(f"a large body that was read whole: {answer}")
    if not is_sanitized() and peak.above > 4 * 16 + BECOMES_MIB:
        sys.exit(f"four large bodies cost {peak.above:.0f} MiB, more than {4 * 16 + BECOMES_MIB}")


requests()
answers()
bodies()
