#!/usr/bin/env python3
"""A node as large as one likes, for the dashboard: serves the files of web/ and answers as docs/formats/http.md says.

    fake_node.py WEB_DIRECTORY GPUS JOBS

A tenth of the jobs has ended, three jobs run on each GPU, the others wait. Once a second the figures of all GPUs
change, and one job ends. Prints its port; ends when its standard input does.
"""
import http.server
import json
import os
import sys
import threading
import time
import urllib.parse

WEB, GPUS, JOBS = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
DYGRAPHS = "/usr/share/javascript/dygraphs/dygraph.min.js"
GIB = 1 << 30
LISTED = 10_000  # in an answer, at most
TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
BEGAN_NS = time.time_ns()


def wave(i, at, low, high):
    """Between low and high, another for each i, and no two moments alike."""
    return low + (high - low) * ((i * 7919 + at * 131) % 1000) // 1000


def state_of(number):
    if number <= JOBS // 10:
        return "FAILED" if number % 9 == 0 else "COMPLETED"
    return "RUNNING" if number <= JOBS // 10 + 3 * GPUS else "QUEUED"


def job(number, state=None):
    state = state or state_of(number)
    runs, ended = state == "RUNNING", state in ("FAILED", "COMPLETED", "CANCELLED")
    at = BEGAN_NS - (JOBS - number) * 10**9
    gpu = number % GPUS
    return {
        "id": number, "name": f"train-{number % 40}", "user": ["ana", "bo", "chi", "dee"][number % 4], "uid": 1000 + number % 4,
        "state": state, "letter": state[0], "gpus": 1, "reserved_bytes": (4 + number % 11) * GIB, "reservation_source": "estimated",
        "share": "any", "runs_by": "mps" if runs or ended else None, "exclusive": False, "retry": False, "crashes": 0,
        "attempts": int(runs or ended), "submitted_ns": at, "first_started_ns": at if runs or ended else None,
        "started_ns": at if runs or ended else None, "ended_ns": at + 6 * 10**11 if ended else None, "time_limit_ns": None,
        "crashed_ns": None, "exit_status": 1 if state == "FAILED" else 0 if ended else None, "exit_cause": None, "last_end": None,
        "message": None, "gpu_ns": 10**12, "modelled_energy_mj": 10**9 if runs or ended else None, "unused_since_ns": None,
        "placements": [{"index": gpu, "uuid": f"GPU-{gpu}", "observed_bytes": (3 + number % 9) * GIB}] if runs or ended else [],
        "priority": 0, "array": None, "estimating": False, "turn": None if runs or ended else {"place": number, "of": JOBS, "first": 1},
        "progress": {"step": 40 + number % 50, "total": 100, "steps_per_s": 0.02, "at_ns": at} if runs and number % 2 else None,
        "slowdown_permille": 1000 + number % 7 * 100 if runs else None,
        "over_reservation_bytes": 2 * GIB if runs and number == JOBS // 10 + 150 else None,
        "reason": None if runs or ended else {"code": "memory", "text": f"needs {4 + number % 11}.0 GiB on 1 GPU; GPU 3, the "
                                              "best, has 2.1 GiB free"},
    }


def gpus(at):
    listed = []
    for i in range(GPUS):
        residents = [number for number in range(JOBS // 10 + 1, JOBS // 10 + 3 * GPUS + 1) if number % GPUS == i]
        used = sum((3 + number % 9) * GIB for number in residents)
        listed.append({
            "index": i, "uuid": f"GPU-{i}", "name": "NVIDIA H100 80GB HBM3", "kind": "whole", "parent": None, "lost": i == 11,
            "share": "mps", "total_bytes": 80 * GIB, "used_bytes": used + 2 * GIB, "free_bytes": 78 * GIB - used,
            "unmanaged_bytes": 2 * GIB if i % 5 == 0 else 0, "mps_server_bytes": 2 * GIB if i else 0, "share_why": None,
            "drained": i == 3, "why": "drained by root: new fan" if i == 3 else None, "sm_activity_permille": wave(i, at, 300, 990),
            "power_mw": wave(i, at, 200000, 640000), "xid": {"code": 31, "count": 2, "at_ns": BEGAN_NS} if i == 7 else None,
            "residents": [{"id": number, "reserved_bytes": (4 + number % 11) * GIB, "observed_bytes": (3 + number % 9) * GIB}
                          for number in residents],
        })
    reserved = {"reservation": 1, "gpus": [4, 5], "users": ["ada", "bob"], "from_ns": BEGAN_NS, "until_ns": time.time_ns() + 10**13,
                "by": "root", "why": "course"}
    return {"now_ns": time.time_ns(), "reservations": [reserved], "gpus": listed}


def status():
    counts = {}
    for number in range(1, JOBS + 1):
        counts[state_of(number)] = counts.get(state_of(number), 0) + 1
    return {"version": "0.2.0", "policy": "carma", "memory_view": "reserve", "share": "mps", "time_scale": 1.0,
            "now_ns": time.time_ns(), "gpus": GPUS, "counts": counts, "waiting": counts.get("QUEUED", 0),
            "unfinished": counts.get("QUEUED", 0) + counts.get("RUNNING", 0), "trouble": None}


def listed(state, limit=LISTED, after=0):
    """The jobs, and how many more there are."""
    wanted = {"waiting": ("QUEUED",), "running": ("RUNNING",), "ended": ("COMPLETED", "FAILED")}[state]
    numbers = [number for number in range(after + 1, JOBS + 1) if state_of(number) in wanted]
    here = numbers[-limit:] if state == "ended" else numbers[:limit]
    return [job(number) for number in here], len(numbers) - len(here)


def series():
    steps = 300
    return {"now_ns": time.time_ns(), "from_ns": time.time_ns() - 3600 * 10**9, "step_ns": 12 * 10**9, "gpus": [
        {"index": i, "uuid": f"GPU-{i}", "used_bytes": [wave(i, k // 20, 20, 60) * GIB for k in range(steps)],
         "reserved_bytes": [60 * GIB] * steps, "unmanaged_bytes": [0] * steps,
         "sm_activity_permille": [wave(i, k // 9, 200, 990) for k in range(steps)],
         "power_mw": [wave(i, k // 9, 150000, 640000) for k in range(steps)]} for i in range(GPUS)]}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def send(self, body, kind="application/json", code=200):
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def event(self, name, data):
        self.wfile.write(f"event: {name}\ndata: {json.dumps(data)}\n\n".encode())

    def events(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.event("status", status())
        self.event("gpus", gpus(0))
        self.event("jobs", {"now_ns": time.time_ns(),
                            "jobs": listed("running")[0] + listed("waiting", 200)[0] + listed("ended", 100)[0]})
        for at in range(1, 10**6):
            time.sleep(1)
            self.event("gpus", gpus(at))
            self.event("jobs", {"now_ns": time.time_ns(), "jobs": [job(JOBS // 10 + at, "CANCELLED")]})

    def do_GET(self):
        path, _, query = self.path.partition("?")
        name = path[1:] or "index.html"
        file = DYGRAPHS if name == os.path.basename(DYGRAPHS) else os.path.join(WEB, os.path.basename(name))
        if path == "/v1/events":
            self.events()
        elif path.endswith("/explain"):
            self.send(b'{"start": {"median_ns": 720000000000, "text": "in about 12 min"}}')
        elif path == "/v1/series":
            self.send(json.dumps(series()).encode())
        elif path == "/v1/jobs":
            asked = dict(urllib.parse.parse_qsl(query))
            jobs, left_out = listed(asked["state"], after=int(asked.get("after", 0)))
            self.send(json.dumps({"now_ns": time.time_ns(), "left_out": left_out, "jobs": jobs}).encode())
        elif os.path.splitext(name)[1] in TYPES and "/" not in name and os.path.exists(file):
            with open(file, "rb") as content:
                self.send(content.read(), TYPES[os.path.splitext(name)[1]])
        else:
            self.send(json.dumps({"error": f"there is no '{self.path}'"}).encode(), code=404)

    def log_message(self, *_):
        pass

    def handle(self):
        try:
            super().handle()
        except (BrokenPipeError, ConnectionResetError):
            pass  # the browser has gone


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
threading.Thread(target=server.serve_forever, daemon=True).start()
print(server.server_address[1], flush=True)
sys.stdin.read()
