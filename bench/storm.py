"""Four users at the bounds of a request, beside a fifth (bench/crowd): how long his submission takes, and carmad's memory.
Each of the four sends the largest bodies that are taken, on as many connections as may have one under way."""

import json
import multiprocessing
import os
import statistics
import threading
import time

CONNECTIONS, BODY_BYTES, JOBS, SECONDS = 4, 16 << 20, 1000, 15
PAUSE_S = 0.02  # between two of the fifth's submissions
HELD = {"name": "storm", "command": ["true"], "directory": "/", "output": "/dev/null", "held": True, "gpu_memory_bytes": 1 << 30}


def filled(head, piece, tail):
    return (head + piece * ((BODY_BYTES - len(head) - len(tail)) // len(piece)) + tail).encode()


def bodies():
    """Refused after they were counted; after all of their jobs were read; taken, as long as the user may have more jobs."""
    text = {**HELD, "summary_name": "m", "environment": [f"V{i}={'v' * 90}" for i in range(150)]}
    jobs = [json.dumps(text)] * (JOBS - 1)
    return {
        "a million empty objects": filled('{"jobs":[', "{},", "{}]}"),
        "nested": filled('{"jobs":[{"a":', "[", "}]}"),
        "a job of empty objects": filled('{"jobs":[{"command":[', "{},", "{}]}]}"),
        "a huge text": filled('{"jobs":[{"name":"', "x", '"}]}'),
        "large jobs, the last one wrong": ('{"jobs":[' + ",".join([*jobs, json.dumps({**text, "gpus": 65})]) + "]}").encode(),
        "a thousand jobs": json.dumps({"jobs": [HELD] * JOBS}).encode(),
    }


def model(layers, batch_size):
    config = {"model_type": "gpt2", "n_embd": 64, "n_layer": layers, "n_head": 2, "vocab_size": 100}
    return {**HELD, "gpu_memory_bytes": None, "hf_config": json.dumps(config), "batch_size": batch_size}


def models():
    """Of no two jobs the same: costly ones beyond a request's bound; large and small ones at it; a short text of many layers."""
    layers = {**model(1, 1), "hf_config": None, "summary": "N(\n  (0-48999): 49000 x Linear(in_features=8, out_features=8)\n)\n"}
    jobs = ([model(10000, 1 + i) for i in range(36)], [model(4000, 1 + i) for i in range(3)],
            [model(120, 1 + i) for i in range(100)], [{**layers, "batch_size": 1 + i} for i in range(2)])
    return {str(i): json.dumps({"jobs": each}).encode() for i, each in enumerate(jobs)}


# The fifth's uid, the four having those before it, and jobs: one that is read on the loop, one of 20 KB, one with a model of GPT-2's size.
PLAIN = 65529, [HELD]
OF_POOL = 65519, [{**HELD, "environment": [f"V{i}={'v' * 90}" for i in range(200)]}, model(12, 8)]


def become(uid):
    os.setgid(uid)
    os.setuid(uid)


def storm(connect, uid, bodies, counts, end):
    """Statuses are counted: 201, 4xx, 503."""
    become(uid)
    texts = list(bodies.values())

    def send(first):
        connection = connect()
        for turn in range(first, 1 << 30):
            if time.monotonic() > end:
                return
            try:
                connection.request("POST", "/v1/jobs", texts[turn % len(texts)])
                answer = connection.getresponse()
                answer.read()
                counts[{2: 0, 4: 1}.get(answer.status // 100, 2)] += 1
            except OSError:  # refused before its body was read
                counts[2] += 1
                connection = connect()

    threads = [threading.Thread(target=send, args=(i,)) for i in range(CONNECTIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def submissions(connect, uid, jobs, seconds, took):
    """Of a user with one connection; all are taken."""
    become(uid)
    connection, end = connect(), time.monotonic() + seconds
    bodies, times = [json.dumps({"jobs": [job]}) for job in jobs], []
    while time.monotonic() < end:
        begun = time.perf_counter()
        connection.request("POST", "/v1/jobs", bodies[len(times) % len(bodies)])
        answer = connection.getresponse()
        said = answer.read()
        if answer.status != 201:
            took.put(f"bench/crowd: the fifth user's job was refused: {said!r}")
            return
        times.append(time.perf_counter() - begun)
        time.sleep(PAUSE_S)
    took.put(times)


def fifth(connect, user, seconds=SECONDS):
    """Seconds at the median and at 99%."""
    took = multiprocessing.Queue()
    process = multiprocessing.Process(target=submissions, args=(connect, *user, seconds, took))
    process.start()
    times = took.get(timeout=seconds + 120)
    process.join()
    if isinstance(times, str):
        raise SystemExit(times)
    cut = statistics.quantiles(times, n=100)
    return statistics.median(times), cut[98]


def beside(connect, user, bodies, seconds=SECONDS):
    """The same, beside the four; and their counts of statuses."""
    end = time.monotonic() + seconds + 1
    users = range(user[0] - 4, user[0])
    counts = [multiprocessing.Array("q", 3, lock=False) for _ in users]
    processes = [multiprocessing.Process(target=storm, args=(connect, uid, bodies, count, end)) for uid, count in zip(users, counts)]
    for process in processes:
        process.start()
    time.sleep(1)
    found = fifth(connect, user, seconds)
    for process in processes:
        process.join()
    return found, [sum(column) for column in zip(*counts)]
