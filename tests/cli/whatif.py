"""Questions of what-if to a daemon. Usage: whatif.py SOCKET CHECK [ARGUMENT]

  fails TEXT      a question fails, and says why with this text
  refused         questions that are not valid
  answers JOBS    a question's answer is there, about JOBS jobs
  saved JOBS      what sharing has saved is simulated by itself, once JOBS jobs have ended
  waits           one is simulated (until killed), others wait, more are refused
  kills TEXT      a simulation is killed, and says so
  begins          asks one
  ends_with PID   ends carmad, and with it its simulations
"""

import json
import os
import pathlib
import signal
import sys
import time

from unix_http import Connection

PATIENCE_S = float(os.environ.get("PATIENCE_S", "90"))


def call(method, path, body=None):
    connection = Connection(sys.argv[1], PATIENCE_S)
    text = body if body is None or isinstance(body, str) else json.dumps(body)
    connection.putrequest(method, path, skip_host=True)
    connection.putheader("Host", "carma")
    if method == "POST":
        connection.putheader("Content-Length", str(len(text or "")))
    connection.endheaders((text or "").encode())
    answer = connection.getresponse()
    value = json.loads(answer.read())
    connection.close()
    return answer.status, value


def until(condition, what):
    end = time.monotonic() + PATIENCE_S
    while not (value := condition()):
        assert time.monotonic() < end, what
        time.sleep(0.05)
    return value


def ask(**question):
    status, answer = call("POST", "/v1/whatif", question)
    assert status == 202, answer
    return answer["id"]


def answer_of(number):
    return until(lambda: (answer := call("GET", f"/v1/whatif/{number}")[1])["state"] != "running" and answer, number)


def fails(text):
    answer = answer_of(ask(policies=["exclusive"]))
    assert answer["state"] == "failed" and text in answer["error"] and answer["policies"] is None, answer


def refused():
    many = {f"k{i}": "1" for i in range(17)}
    for body, text in [("", "not JSON"), ("[" * 100, "levels deep"), ("[]", "is not {"), ("{}", "is not {"), ('{"policies":"carma"}', "is not a list"),
                       ({"policies": []}, "is not a list"), ({"policies": ["carma"] * 13}, "is not a list"), ({"policies": [1]}, "is not a name"),
                       ({"policies": ["x"]}, "write carma, default"), ({"policies": ["carma@oracle"]}, "write carma"),
                       ({"policies": ["carma,lug"]}, "write carma"), ({"policies": ["carma/settle=1s"]}, "write carma"),
                       ({"policies": ["x" * 65]}, "is not a name"), ({"policies": ["carma"], "more": 1}, "is not {"),
                       ({"policies": ["carma"], "settings": []}, "is not {"),
                       ({"policies": ["carma"], "settings": {"socket": "/tmp/x"}}, "not a setting that decides"),
                       ({"policies": ["carma"], "settings": {"machine_profile": "/etc/shadow"}}, "not a setting that decides"),
                       ({"policies": ["carma"], "settings": {"policy": "lug"}}, "not a setting that decides"),
                       ({"policies": ["carma"], "settings": {"nvml_library": "x"}}, "not a setting that decides"),
                       ({"policies": ["carma"], "settings": {"none": "x"}}, "not a setting that decides"),
                       ({"policies": ["carma"], "settings": {"settle": 60}}, "not a short text"),
                       ({"policies": ["carma"], "settings": {"settle": "60s/learn=no"}}, "not a short text"),
                       ({"policies": ["carma"], "settings": {"share": "mps, 1=time-slice"}}, "not a short text"),
                       ({"policies": ["carma"], "settings": {"settle": "60"}}, "write 0s to"),
                       ({"policies": ["carma"], "settings": many}, "too many"),
                       ('{"policies":["carma"],"policies":["lug"]}', "not JSON")]:
        status, answer = call("POST", "/v1/whatif", body)
        assert status == 400 and text in answer["error"], (body, status, answer)
    for method, path, wanted in [("GET", "/v1/whatif", 405), ("POST", "/v1/whatif/1", 405), ("GET", "/v1/whatif/", 404),
                                 ("GET", "/v1/whatif/01", 404), ("GET", "/v1/whatif/x", 404), ("GET", "/v1/whatif/999", 404)]:
        assert call(method, path)[0] == wanted, (method, path)


def check_numbers(value, where=""):
    """Numbers and the names of policies, and nothing that a user or a job wrote."""
    if isinstance(value, dict):
        for key, one in value.items():
            check_numbers(one, key)
    elif isinstance(value, list):
        for one in value:
            check_numbers(one, where)
    else:
        assert value is None or isinstance(value, (int, float)) or where in ("policy", "share", "state", "power_of"), (where, value)


def answers(jobs):
    answer = answer_of(ask(policies=["exclusive", "carma", "carma"], settings={"share": "mps", "max_slowdown": "4"}))
    assert answer["state"] == "done" and answer["error"] is None, answer
    check_numbers(answer)
    assert answer["jobs"] == int(jobs) and answer["power_of"] == "NVIDIA A100-SXM4-40GB", answer
    now, exclusive, mps, again = answer["policies"]
    assert [one["policy"] for one in answer["policies"]] == ["carma", "exclusive", "carma", "carma"]
    assert mps == again  # the same question, of the same past
    assert mps["makespan_s"] != now["makespan_s"]  # MPS, and not the streams that it is set to
    assert exclusive["sharing_slowdown_max"]["mean"] < 1.1 < mps["sharing_slowdown_max"]["mean"], (exclusive, mps)
    assert not exclusive["incomplete"] and exclusive["jain_index"]["mean"] == 1, exclusive
    for one in answer["policies"]:
        line, makespan_s = one["timeline"], one["makespan_s"]["mean"]
        assert [len(line[name]) for name in ("sm_activity", "power_w", "jobs")] == [300] * 3
        assert abs(line["step_s"] * 300 / makespan_s - 1) < 1e-6, (line["step_s"], makespan_s)
        assert abs(sum(line["power_w"]) * line["step_s"] / one["energy_j"]["mean"] - 1) < 1e-3
        assert abs(sum(line["sm_activity"]) / 300 - one["smact_mean"]["mean"]) < 1e-3
        assert 0 < max(line["jobs"]) <= int(jobs)
    limited = answer_of(ask(policies=["exclusive"], settings={"max_gpu_memory_per_user": "1M"}))
    assert limited["state"] == "done" and [one["incomplete"] for one in limited["policies"]] == [False, True], limited
    for _ in range(9):  # the latest eight are kept
        last = answer_of(ask(policies=["lug"]))
    assert call("GET", f"/v1/whatif/{last['id'] - 7}")[0] == 200
    assert call("GET", f"/v1/whatif/{last['id'] - 8}")[0] == 404


def saved(jobs):
    saved = until(lambda: (now := call("GET", "/v1/status")[1]["saved"]) and now["jobs"] == int(jobs) and now, "it is never simulated")
    assert 0 < saved["gpu_ns"] < saved["gpu_alone_ns"] and saved["wait_ns"] < saved["wait_alone_ns"], saved
    assert saved["text"].startswith("saves ") and f"({jobs} jobs of the last 7 days)" in saved["text"], saved


def simulated():
    """The pids of carmad's children."""
    pids = []
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if b"CARMA_VNODE=%s\0" % os.environ["CARMA_VNODE"].encode() in (path / "environ").read_bytes() and \
                    (path / "cmdline").read_bytes() == b"sleep\x001000\0":
                pids.append(int(path.name))
        except OSError:
            pass
    return pids


def waits():
    first = ask(policies=["lug"])
    pid, = until(simulated, "nothing is simulated")
    assert os.getpriority(os.PRIO_PROCESS, pid) == 19
    limits = pathlib.Path(f"/proc/{pid}/limits").read_text(encoding="ascii")
    assert "Max cpu time              300" in limits, limits
    assert int(pathlib.Path(f"/proc/{pid}/oom_score_adj").read_text(encoding="ascii")) == 1000
    waiting = [ask(policies=["lug"]), ask(policies=["mug"])]
    status, answer = call("POST", "/v1/whatif", {"policies": ["lug"]})
    assert status == 503 and "2 simulations of yours are waiting" in answer["error"], answer
    assert call("GET", "/v1/status")[0] == 200
    for number in [first, *waiting]:
        assert call("GET", f"/v1/whatif/{number}")[1]["state"] == "running"
    assert simulated() == [pid]
    for number in [first, waiting[0]]:
        os.kill(until(simulated, "the next does not begin")[0], signal.SIGKILL)
        answer = answer_of(number)
        assert answer["state"] == "failed" and "ended by signal 9" in answer["error"], answer


def kills(text):
    """The one that is left of those that waited."""
    last = max(number for number in range(1, 100) if call("GET", f"/v1/whatif/{number}")[0] == 200)
    os.kill(until(simulated, "it does not begin")[0], signal.SIGKILL)
    assert text in answer_of(last)["error"]


def begins():
    ask(policies=["lug"])
    until(simulated, "nothing is simulated")


def ends_with(pid):
    os.kill(int(pid), signal.SIGTERM)
    until(lambda: not simulated(), "it outlives carmad")


globals()[sys.argv[2]](*sys.argv[3:4])
