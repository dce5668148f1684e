"""Submissions that are repeated. Usage: once.py SOCKET CHECK [ARGUMENT...]

  drop PROXY TIMES   listens on PROXY and passes on to SOCKET, but closes the first TIMES connections with a request on them
                     once the daemon has answered, without the answer; until its input ends
  same               the same submission, twice at once and once more, another under its id, and wrong ids
  again FILE         sends the body in FILE, and expects the answer beside it; where FILE is not there: makes it
"""

import json
import os
import select
import socket
import sys
import threading

from unix_http import Connection


def post(path, body):
    connection = Connection(path, 60)
    connection.request("POST", "/v1/jobs", json.dumps(body))
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())


def request(name, request_id, count=2):
    spec = {"name": name, "command": ["true"], "environment": [], "directory": "/tmp", "output": "/dev/null", "gpus": 1,
            "held": True}
    return {"jobs": [spec] * count, "request_id": request_id}


def held(path):
    connection = Connection(path, 60)
    connection.request("GET", "/v1/jobs?state=waiting")
    return [job["id"] for job in json.loads(connection.getresponse().read())["jobs"]]


def same(path):
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(post(path, request("same", "a.b-C_1")))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    answers.append(post(path, request("same", "a.b-C_1")))
    assert answers[0][0] == 201 and len(answers[0][1]["jobs"]) == 2, answers
    assert answers[0] == answers[1] == answers[2], answers
    jobs = [job["id"] for job in answers[0][1]["jobs"]]
    assert held(path) == jobs, (held(path), jobs)
    status, answer = post(path, request("other", "a.b-C_1"))
    assert status == 409 and "is that of another submission" in answer["error"], (status, answer)
    for wrong in "", "a b", "x" * 65, "ä", 7:
        status, answer = post(path, request("wrong", wrong))
        assert status == 400 and "request_id" in answer["error"], (status, answer)
    assert held(path) == jobs, held(path)


def again(path, file):
    if not os.path.exists(file):
        body = request("again", "again")
        with open(file, "w") as out:
            json.dump([body, post(path, body)], out)
        return
    with open(file) as saved:
        body, (status, answer) = json.load(saved)
    before = held(path)
    now = post(path, body)
    assert status == 201 and now == (status, answer), (now, status, answer)
    assert held(path) == before, (held(path), before)


def pass_on(client, path, drop):
    daemon = socket.socket(socket.AF_UNIX)
    daemon.connect(path)
    while True:
        ready, _, _ = select.select([client, daemon], [], [])
        for side in ready:
            block = side.recv(65536)
            if not block or (side is daemon and drop(block)):
                client.close()
                daemon.close()
                return
            (daemon if side is client else client).sendall(block)


def drop(path, proxy, times):
    left = [int(times)]

    def drops(block):
        left[0] -= 1
        return left[0] >= 0

    listener = socket.socket(socket.AF_UNIX)
    listener.bind(proxy)
    listener.listen()
    print("ready", flush=True)
    while True:
        ready, _, _ = select.select([listener, sys.stdin], [], [])
        if sys.stdin in ready:
            return
        threading.Thread(target=pass_on, args=(listener.accept()[0], path, drops), daemon=True).start()


{"drop": drop, "same": same, "again": again}[sys.argv[2]](sys.argv[1], *sys.argv[3:])
